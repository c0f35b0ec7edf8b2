package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"turnstone/actors"
	"turnstone/providers/model"
)

func testText(t *testing.T, subject Subject) {
	_, asked := start(t, subject, steps(Step{Text: []string{"A small ", "wäder", " 🐦.\n", "\n"}}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	if err != nil || TextOf(chunks) != "A small wäder 🐦.\n\n" || StopOf(chunks) != actors.StopEndTurn {
		t.Errorf("got %q, %s, %v", TextOf(chunks), StopOf(chunks), err)
	}
	if asked.Family() != subject.Family {
		t.Errorf("family %q", asked.Family())
	}
}

// testPromptly lets the provider speak on only after its last piece was passed on: pieces that come together may leave
// together, but none may wait for the next.
func testPromptly(t *testing.T, subject Subject) {
	gate := make(chan struct{}, 1)
	_, asked := start(t, subject, steps(Step{
		Reasoning: []string{"Hm.", " Well."}, Text: []string{"one ", "two ", "three ", "four"}, Gate: gate,
	}), model.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var said []string
	err := asked.Stream(ctx, simple(), func(chunk actors.ModelChunk) error {
		if chunk.Text != "" {
			said = append(said, chunk.Text)
			gate <- struct{}{}
		}
		return nil
	})
	if want := []string{"Hm.", " Well.", "one ", "two ", "three ", "four"}; err != nil || !reflect.DeepEqual(said, want) {
		t.Errorf("got %q, %v", said, err)
	}
}

// testTogether finds all of a long answer however its pieces were cut and joined on the way.
func testTogether(t *testing.T, subject Subject) {
	var pieces []string
	for i := range 2000 {
		pieces = append(pieces, []string{"word ", "\"quoted\"\n", "wäder", "🐦", "\u0001", "\u2028<&>"}[i%6])
	}
	_, asked := start(t, subject, steps(Step{Text: pieces}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	if err != nil || TextOf(chunks) != strings.Join(pieces, "") {
		t.Errorf("got %d bytes of %d, %v", len(TextOf(chunks)), len(strings.Join(pieces, "")), err)
	}
	if n := len(only(chunks, actors.ChunkText)); n > len(pieces) {
		t.Errorf("%d chunks of %d pieces", n, len(pieces))
	}
}

func testRequest(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"ok"}}), model.Options{})
	request := simple()
	request.ReasoningEffort = "high"
	request.Tools = []actors.ModelTool{
		{Name: "calculate", Description: "Works out a sum.", Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}}}`)},
		{Name: "bare"},
	}
	request.Messages = []actors.ModelMessage{
		{Role: "user", Text: "one"}, {Role: "assistant", Text: "two"}, {Role: "user", Text: "three"}, {Role: "user", Text: "four"},
	}
	if _, err := Ask(t.Context(), t, asked, request); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[0]
	if got.Model != request.Model || got.System != request.System || got.MaxTokens != 4096 || got.Effort != "high" {
		t.Errorf("got %+v", got)
	}
	if !reflect.DeepEqual(got.Tools, []string{"calculate", "bare"}) || !strings.Contains(string(got.Raw), `"expression"`) {
		t.Errorf("tools %v in %s", got.Tools, got.Raw)
	}
	if !reflect.DeepEqual(got.Messages, request.Messages) {
		t.Errorf("messages %+v", got.Messages)
	}
}

func testReasoning(t *testing.T, subject Subject) {
	_, asked := start(t, subject, steps(Step{Reasoning: []string{"First ", "this."}, Text: []string{"Then that."}}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	if err != nil || joined(chunks, actors.ChunkReasoning) != "First this." || TextOf(chunks) != "Then that." {
		t.Fatalf("got %+v, %v", chunks, err)
	}
	if chunks[0].Kind != actors.ChunkReasoning {
		t.Errorf("first came %+v", chunks[0])
	}
}

func testSealed(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{
		Reasoning: []string{"Hm."}, Text: []string{"Let me see. "}, ToolCalls: []actors.ModelToolCall{calculateCall},
	}), model.Options{})
	request := simple()
	request.ReasoningEffort = "low"
	chunks, err := Ask(t.Context(), t, asked, request)
	if err != nil {
		t.Fatal(err)
	}
	opaque := only(chunks, actors.ChunkOpaque)
	if (len(opaque) == 1) != subject.SendsSealed {
		t.Fatalf("opaque parts: %v", opaque)
	}
	if !subject.SendsSealed {
		return
	}
	request.Step = 2
	request.Messages = append(request.Messages, actors.ModelMessage{
		Role: "assistant", Text: "Let me see. ", ToolCalls: []actors.ModelToolCall{calculateCall},
		Opaque: opaque[0].Opaque, OpaqueOwner: subject.Family,
	}, actors.ModelMessage{Role: "tool", Text: "84", ToolCallID: calculateCall.ID})
	if _, err := Ask(t.Context(), t, asked, request); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[1].Messages[1]
	if string(got.Opaque) != `"`+Sealed+`"` || got.Text != "Let me see. " || len(got.ToolCalls) != 1 {
		t.Errorf("sent back: %+v", got)
	}
	request.Messages[1].OpaqueOwner = "another"
	if _, err := Ask(t.Context(), t, asked, request); err != nil {
		t.Fatal(err)
	}
	if got := server.Requests()[2].Messages[1]; got.Opaque != nil || got.Text != "Let me see. " {
		t.Errorf("another family's sealed part was sent: %+v", got)
	}
}

var calculateCall = actors.ModelToolCall{ID: "call_7", Name: "calculate", Input: json.RawMessage(`{"expression":"12*7"}`)}

func testTools(t *testing.T, subject Subject) {
	second := actors.ModelToolCall{ID: "call_8", Name: "current_time", Input: json.RawMessage(`{}`)}
	server, asked := start(t, subject, Script{React: func(request Request) Step {
		if len(request.Messages) == 1 {
			return Step{ToolCalls: []actors.ModelToolCall{calculateCall, second}}
		}
		return Step{Text: []string{"It is 84."}}
	}}, model.Options{})
	request := simple()
	chunks, err := Ask(t.Context(), t, asked, request)
	if err != nil || StopOf(chunks) != actors.StopToolCalls {
		t.Fatalf("stop %s, %v", StopOf(chunks), err)
	}
	calls := only(chunks, actors.ChunkToolCall)
	if len(calls) != 2 || !reflect.DeepEqual(calls[0].ToolCall, calculateCall) || !reflect.DeepEqual(calls[1].ToolCall, second) {
		t.Fatalf("calls %+v", calls)
	}
	request.Messages = append(request.Messages,
		actors.ModelMessage{Role: "assistant", ToolCalls: []actors.ModelToolCall{calculateCall, second}},
		actors.ModelMessage{Role: "tool", Text: "84", ToolCallID: calculateCall.ID},
		actors.ModelMessage{Role: "tool", Text: "no clock", ToolCallID: second.ID, ToolFailed: true},
		actors.ModelMessage{Role: "user", Text: "and briefly"})
	chunks, err = Ask(t.Context(), t, asked, request)
	if err != nil || TextOf(chunks) != "It is 84." {
		t.Fatalf("got %q, %v", TextOf(chunks), err)
	}
	got := server.Requests()[1].Messages
	if len(got) != 5 || !reflect.DeepEqual(got[1].ToolCalls, request.Messages[1].ToolCalls) || got[2].Text != "84" ||
		got[4].Text != "and briefly" {
		t.Errorf("the second request says %+v", got)
	}
	if failed := got[3]; !failed.ToolFailed && failed.Text != "Error: no clock" {
		t.Errorf("the failure of a tool was not told: %+v", failed)
	}
}

func testUsage(t *testing.T, subject Subject) {
	want := actors.ModelUsage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 7, CachedInputTokens: 64}
	_, asked := start(t, subject, steps(Step{Text: []string{"a", "b"}, Usage: &want}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	counts := only(chunks, actors.ChunkUsage)
	if err != nil || len(counts) == 0 || counts[len(counts)-1].Usage != want {
		t.Errorf("got %+v, %v", counts, err)
	}
}

func testEstimated(t *testing.T, subject Subject) {
	_, asked := start(t, subject, steps(Step{Text: []string{"The ruddy turnstone ", "is a small wader."}}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	if err != nil {
		t.Fatal(err)
	}
	usage := only(chunks, actors.ChunkUsage)[0].Usage
	if !usage.Estimated || usage.OutputTokens < 6 || usage.OutputTokens > 15 || usage.InputTokens < 8 || usage.InputTokens > 30 {
		t.Errorf("got %+v", usage)
	}
}

func testStops(t *testing.T, subject Subject) {
	for _, stop := range []actors.ModelStop{actors.StopEndTurn, actors.StopMaxTokens, actors.StopRefusal} {
		_, asked := start(t, subject, steps(Step{Text: []string{"So far"}, Stop: stop}), model.Options{})
		if chunks, err := Ask(t.Context(), t, asked, simple()); err != nil || StopOf(chunks) != stop {
			t.Errorf("want %s, got %s, %v", stop, StopOf(chunks), err)
		}
	}
}

func testLimitedTools(t *testing.T, subject Subject) {
	_, asked := start(t, subject, steps(Step{
		Text: []string{"Well"}, ToolCalls: []actors.ModelToolCall{calculateCall}, Stop: actors.StopMaxTokens,
	}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	if err != nil || StopOf(chunks) != actors.StopMaxTokens || has(chunks, actors.ChunkToolCall) {
		t.Errorf("got %+v, %v", chunks, err)
	}
}

func testCancel(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	err := asked.Stream(ctx, simple(), func(actors.ModelChunk) error {
		seen++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen == 0 {
		t.Errorf("after %d chunks: %v", seen, err)
	}
	await(t, server.Aborted(), "the provider did not learn of the cancel")
}

func await(t *testing.T, signal <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patient):
		t.Fatal(otherwise)
	}
}

func testCancelled(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two", "three"}}), model.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := asked.Stream(ctx, simple(), func(chunk actors.ModelChunk) error {
		if chunk.Kind == actors.ChunkText {
			seen++
			cancel()
		}
		return nil
	})
	if seen != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d chunks of text, %v", seen, err)
	}
	if chunks, err := Ask(ctx, t, asked, simple()); len(chunks) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v, %v", chunks, err)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func testFailingEmit(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{})
	gone, seen := errors.New("the turn is gone"), 0
	err := asked.Stream(t.Context(), simple(), func(actors.ModelChunk) error {
		seen++
		return gone
	})
	if !errors.Is(err, gone) || seen != 1 {
		t.Errorf("after %d chunks: %v", seen, err)
	}
	await(t, server.Aborted(), "the provider did not learn of the end")
}
