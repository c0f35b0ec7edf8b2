package tool

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/providers/code"
	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hanging hangs until the call ends.
type hanging struct{}

func (hanging) Search(ctx context.Context, _ string, _ int, _ func(string)) (*search.Found, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Read(ctx context.Context, _ string, _ func(string)) (*page.Page, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Run implements CodeRunner.
func (hanging) Run(ctx context.Context, _ protocol.AccountID, _ *code.Task, _ func(string)) (*code.Result, time.Duration, error) {
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

// waits lists the tools that wait for another server or for a child process, each with an input for which they do.
var waits = map[string]string{"web_search": `{"query":"a"}`, "read_page": `{"url":"https://a.example/"}`, "run_code": `{"code":"for (;;);"}`}

func everyTool() []toolbox.Tool {
	return allOn(&Web{Searcher: hanging{}, Pages: hanging{}}, &Code{Runner: hanging{}})
}

// allOn returns every tool, on stores of the tests, a web and an engine for code.
func allOn(web *Web, code *Code) []toolbox.Tool {
	l := newLibrary()
	return All(&Stores{
		Files: l, Artifacts: newShelf(""), Projects: &folder{}, Past: &past{}, Locations: &whereabouts{}, Research: researchOn(&begun{}), Kept: keptSources{}, Web: web, Code: code,
	})
}

// entryOf returns the entry of a tool in a catalogue of all.
func entryOf(t *testing.T, name string) *toolbox.Entry {
	t.Helper()
	catalogue, err := toolbox.NewCatalogue(everyTool())
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.Find(name)
}

func TestEveryToolIsDescribedCompletely(t *testing.T) {
	names := map[string]bool{}
	for _, tool := range everyTool() {
		spec := tool.Spec()
		if !regexp.MustCompile(`^[a-z][a-z_]{2,40}$`).MatchString(spec.Name) || names[spec.Name] {
			t.Errorf("%q is not a name, or one of two tools", spec.Name)
		}
		names[spec.Name] = true
		if spec.Kind == "" || spec.Title == "" || len(spec.Description) < 50 || spec.Effect == "" || spec.Risk == "" || spec.Reversibility == "" || spec.Timeout <= 0 || spec.Unavailable != "" {
			t.Errorf("%s: %+v", spec.Name, spec)
		}
		if (spec.Kind == "web_search") != (spec.Describe != nil && spec.Describe(json.RawMessage(`{"query":"tides","url":"https://example.org/"}`)).Outward != "") {
			t.Errorf("%s: a tool of the web, and no other one, sends something out", spec.Name)
		}
		checkSchema(t, &spec)
	}
	if len(names) < len(waits)+4 {
		t.Errorf("only these tools were checked: %v", names)
	}
}

// checkSchema checks that the schema of a tool is valid, and that it allows only the properties that it describes.
func checkSchema(t *testing.T, spec *toolbox.Spec) {
	t.Helper()
	entry := entryOf(t, spec.Name)
	for _, input := range []string{`{"another":1}`, `[]`} {
		if entry.Plan(&policy.Call{Input: json.RawMessage(input)}).Failure == nil {
			t.Errorf("%s: the schema accepts %s", spec.Name, input)
		}
	}
	if input, waiting := waits[spec.Name]; waiting {
		if plan := entry.Plan(&policy.Call{Input: json.RawMessage(input)}); plan.Failure != nil {
			t.Errorf("%s: the schema refuses %s: %v", spec.Name, input, plan.Failure)
		}
	}
	var schema struct {
		Type       string
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil || schema.Type != "object" {
		t.Errorf("%s: the input is not an object: %v", spec.Name, err)
	}
	for name, property := range schema.Properties {
		if property.Type == "" || property.Description == "" {
			t.Errorf("%s: %s has no type or no description", spec.Name, name)
		}
	}
}

func TestNoToolAcceptsGarbage(t *testing.T) {
	for _, tool := range everyTool() {
		name := tool.Spec().Name
		for _, input := range []string{
			"", "null", "[]", `""`, "1", "{", "\xff", `{"query":7}`, `{"query":""}`, `{"query":" "}`, `{"url":["x"]}`, `{"url":""}`, `{"expression":{}}`,
			`{"file_id":"../x"}`, `{"time_zone":7}`, `{"time_zone":"../../etc/passwd"}`, `{"query":"a","from":"yesterday"}`, `{"query":"a","to":"2026-02-30"}`, strings.Repeat("[", 10_000),
		} {
			if plan := entryOf(t, name).Plan(&policy.Call{Input: json.RawMessage(input)}); plan.Failure != nil {
				if !strings.HasSuffix(plan.Failure.Detail, ".") || plan.Failure.Code != protocol.ToolCallInvalid {
					t.Errorf("%s(%.40s): %+v is not a sentence", name, input, plan.Failure)
				}
				continue // such a call never reaches the tool
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is accepted must end at once
			_, err := tool.Run(ctx, &toolbox.Call{Input: json.RawMessage(input), FirstSource: 1})
			var failure *toolbox.Failure
			switch {
			case errors.As(err, &failure):
				if !strings.HasSuffix(failure.Detail, ".") || failure.Code == "" {
					t.Errorf("%s(%.40s): %+v is not a sentence", name, input, failure)
				}
			case errors.Is(err, context.Canceled):
			case err != nil:
				t.Errorf("%s(%.40s): %v", name, input, err)
			case name != "current_time": // whose input may be empty
				t.Errorf("%s(%.40s) succeeds", name, input)
			}
			if describe := tool.Spec().Describe; describe != nil {
				describe(json.RawMessage(input)) // must not panic
			}
		}
	}
}

func TestEveryToolThatWaitsEndsWithItsCall(t *testing.T) {
	waited := 0
	for _, tool := range everyTool() {
		input, waiting := waits[tool.Spec().Name]
		if !waiting {
			continue
		}
		waited++
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := tool.Run(ctx, &toolbox.Call{Input: json.RawMessage(input), FirstSource: 1})
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool.Spec().Name, err)
		}
	}
	if waited != len(waits) {
		t.Errorf("%d tools were called", waited)
	}
}

func TestAToolThatIsNotAvailableSaysWhy(t *testing.T) {
	const reason = "This cannot be done."
	for _, tool := range allOn(&Web{Unavailable: reason}, &Code{Unavailable: reason}) {
		spec := tool.Spec()
		input, waiting := waits[spec.Name]
		if !waiting {
			continue
		}
		_, err := tool.Run(t.Context(), &toolbox.Call{Input: json.RawMessage(input)})
		var failure *toolbox.Failure
		if spec.Unavailable != reason || !errors.As(err, &failure) || failure.Detail != reason {
			t.Errorf("%s: %v, %+v", spec.Name, err, spec)
		}
	}
}
