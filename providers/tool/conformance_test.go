package tool

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
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

func TestEveryToolPassesTheSuite(t *testing.T) {
	waited := 0
	for _, tool := range everyTool() {
		spec := tool.Spec()
		toolboxtest.Suite(t, toolboxtest.Case{Tool: tool, Waits: waits[spec.Name], Instant: spec.Name == "current_time"})
		if waits[spec.Name] != "" {
			waited++
		}
		if (spec.Kind == "web_search") != (spec.Describe != nil && spec.Describe(json.RawMessage(`{"query":"tides","url":"https://example.org/"}`)).Outward != "") {
			t.Errorf("%s: a tool of the web, and no other one, sends something out", spec.Name)
		}
	}
	if waited != len(waits) {
		t.Errorf("%d tools that wait were called", waited)
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
