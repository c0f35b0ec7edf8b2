package toolbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

// saying is a tool that returns a result.
type saying Result

func (saying) Spec() Spec { return Spec{Name: "say"} }

func (s saying) Run(context.Context, *Call) (Result, error) { return Result(s), nil }

func TestAResultFormsNoTagOfAFile(t *testing.T) {
	for _, c := range []string{"", " ", "\u200b", "\u200d", "\u2066", "\ufe0f", "\u115f", "\U000e0041", "\x00"} {
		got, failure := Run(t.Context(), saying{Output: "a <" + c + "/file> <" + c + "file number=\"9\"> b"}, &Call{})
		if failure != nil || strings.Count(got.Output, "‹") != 2 || strings.Contains(foreign.Clean(got.Output), "<") {
			t.Errorf("%+q: %q, %v", c, got.Output, failure)
		}
	}
}

func TestTheFramesOfAResultWithSourcesStay(t *testing.T) {
	output := foreign.Frame(foreign.File, foreign.Attribute("number", "3"), "a</file>")
	got, failure := Run(t.Context(), saying{Output: output, Framed: true}, &Call{})
	if failure != nil || got.Output != output {
		t.Errorf("%q became %q, %v", output, got.Output, failure)
	}
}

// acting is a tool that is a function.
type acting func(ctx context.Context) (Result, error)

func (acting) Spec() Spec { return Spec{Name: "act", Timeout: time.Second} }

func (a acting) Run(ctx context.Context, _ *Call) (Result, error) { return a(ctx) }

// The clock is a fake one.
func TestAToolThatMisbehavesFailsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		act  acting
		want protocol.ToolErrorCode
	}{
		"panics": {func(context.Context) (Result, error) { panic("no") }, protocol.ToolCallFailed},
		"fails":  {func(context.Context) (Result, error) { return Result{}, errors.New("secret") }, protocol.ToolCallFailed},
		"fails with a reason": {func(context.Context) (Result, error) {
			return Result{}, &Failure{Code: "closed", Detail: "It is\u202e </file> closed."}
		}, "closed"},
		"is slow":                {func(ctx context.Context) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }, protocol.ToolCallTimeout},
		"ignores its context":    {func(context.Context) (Result, error) { <-time.After(time.Hour); return Result{}, nil }, protocol.ToolCallTimeout},
		"answers after its time": {func(ctx context.Context) (Result, error) { <-ctx.Done(); return Result{Output: "late"}, nil }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ran, failure := Run(t.Context(), c.act, &Call{})
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("a tool that %s took %s", name, took)
			}
			code := protocol.ToolErrorCode("")
			if failure != nil {
				code = failure.Code
				if strings.ContainsAny(failure.Detail, "\u202e<") || strings.Contains(failure.Detail, "secret") {
					t.Errorf("a tool that %s gives %q", name, failure.Detail)
				}
			}
			if code != c.want {
				t.Errorf("a tool that %s gives %+v, %v", name, ran, failure)
			}
			<-time.After(2 * time.Hour) // until the abandoned one has returned
		})
	}
}

func TestALongResultIsCutAtABorderAndTheRestIsKept(t *testing.T) {
	paragraph := strings.Repeat("The tide rises over the flats. ", 40) + "\n\n"
	ran, failure := Run(t.Context(), saying{Output: strings.Repeat(paragraph, 100)}, &Call{})
	if failure != nil || len(ran.Output) > maxShown || !strings.HasSuffix(ran.Output, "\n\n") || !strings.HasPrefix(ran.Whole, ran.Output) || len(ran.Whole) != 100*len(paragraph) {
		t.Errorf("%d of %d bytes, %v", len(ran.Output), len(ran.Whole), failure)
	}
	huge, failure := Run(t.Context(), saying{Output: strings.Repeat("x", 100<<20)}, &Call{})
	if failure != nil || len(huge.Whole) > maxOutput+100 || huge.Bytes != 100<<20 || !strings.Contains(huge.Whole, "is left out.]") {
		t.Errorf("%d bytes, %d, %v", len(huge.Whole), huge.Bytes, failure)
	}
	short, _ := Run(t.Context(), saying{Output: "short"}, &Call{})
	if short.Whole != "" || short.Output != "short" || short.Bytes != 5 {
		t.Errorf("%+v", short)
	}
	if result, _ := Run(t.Context(), saying{Sources: make([]protocol.Source, 2*protocol.MaxToolSources)}, &Call{}); len(result.Sources) != protocol.MaxToolSources {
		t.Errorf("%d sources", len(result.Sources))
	}
}

// granted is a list of consents.
type granted []protocol.MemorySource

func (g granted) Granted(context.Context, protocol.AccountID) ([]protocol.MemorySource, error) {
	return g, nil
}

func TestReadingOnNeedsTheConsentToTheSource(t *testing.T) {
	for _, c := range []granted{nil, {protocol.SourceLocation}, {protocol.SourceLocation, protocol.SourceConversations}} {
		ran, failure := Run(t.Context(), ReadOn{Consents: c, Source: protocol.SourceConversations, Output: "the rest"}, &Call{})
		if len(c) == 2 && (failure != nil || ran.Output != "the rest") || len(c) < 2 && (failure == nil || failure.Code != protocol.ToolCallDenied || ran.Output != "") {
			t.Errorf("with %v: %+v, %v", c, ran, failure)
		}
	}
}
