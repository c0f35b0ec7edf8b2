package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
	"turnstone/providers/model"
)

func testText(t *testing.T, subject Subject) {
	_, provider := start(t, subject, steps(Step{Text: []string{"A small ", "wäder", " 🐦.\n", "\n"}}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	if err != nil || TextOf(chunks) != "A small wäder 🐦.\n\n" || StopOf(chunks) != llm.StopEndTurn {
		t.Errorf("got %q, %s, %v", TextOf(chunks), StopOf(chunks), err)
	}
	if provider.Family() != subject.Family {
		t.Errorf("family %q", provider.Family())
	}
}

// testPromptly lets the provider send the next piece only after the previous one was emitted. Pieces that arrive
// together may be emitted together, but no piece may wait for the next.
func testPromptly(t *testing.T, subject Subject) {
	gate := make(chan struct{}, 1)
	_, provider := start(t, subject, steps(Step{
		Reasoning: []string{"Hm.", " Well."}, Text: []string{"one ", "two ", "three ", "four"}, Gate: gate,
	}), model.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var pieces []string
	err := provider.Stream(ctx, simple(), func(chunk llm.Chunk) error {
		if chunk.Text != "" {
			pieces = append(pieces, chunk.Text)
			gate <- struct{}{}
		}
		return nil
	})
	if want := []string{"Hm.", " Well.", "one ", "two ", "three ", "four"}; err != nil || !reflect.DeepEqual(pieces, want) {
		t.Errorf("got %q, %v", pieces, err)
	}
}

// testTogether checks that a long answer is complete even if its pieces are split and joined in transport.
func testTogether(t *testing.T, subject Subject) {
	var pieces []string
	for i := range 2000 {
		pieces = append(pieces, []string{"word ", "\"quoted\"\n", "wäder", "🐦", "\u0001", "\u2028<&>"}[i%6])
	}
	_, provider := start(t, subject, steps(Step{Text: pieces}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	if err != nil || TextOf(chunks) != strings.Join(pieces, "") {
		t.Errorf("got %d bytes of %d, %v", len(TextOf(chunks)), len(strings.Join(pieces, "")), err)
	}
	if n := len(only(chunks, llm.ChunkText)); n > len(pieces) {
		t.Errorf("%d chunks of %d pieces", n, len(pieces))
	}
}

func testRequest(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"ok"}}), model.Options{})
	request := simple()
	request.Model = "claude-of-next-year" // other models behind Anthropic's format are sent no effort
	request.ReasoningEffort = "high"
	request.Tools = []llm.Tool{
		{Name: "calculate", Description: "Works out a sum.", Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}}}`)},
		{Name: "bare"},
	}
	request.Messages = []llm.Message{
		{Role: "user", Text: "one"}, {Role: "assistant", Text: "two"}, {Role: "user", Text: "three"}, {Role: "user", Text: "four"},
	}
	if _, err := Collect(t.Context(), t, provider, request); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[0]
	if got.Model != request.Model || got.System != request.System || got.MaxTokens != 4096 || got.Effort != "high" {
		t.Errorf("got %+v", got)
	}
	if !reflect.DeepEqual(got.Tools, []string{"calculate", "bare"}) || !strings.Contains(string(got.Raw), `"expression"`) {
		t.Errorf("tools %v in %s", got.Tools, got.Raw)
	}
	if !reflect.DeepEqual(got.Messages, subject.sent(request.Messages)) {
		t.Errorf("messages %+v", got.Messages)
	}
}

// sent returns messages whose last two are the user's in the form in which the wire format sends them.
func (s *Subject) sent(messages []llm.Message) []llm.Message {
	if s.Wire != Chat {
		return messages
	}
	last := len(messages) - 1
	joined := messages[last-1]
	joined.Text += messages[last].Text
	if len(joined.Pictures) == 0 {
		joined.Text = messages[last-1].Text + "\n\n" + messages[last].Text
	}
	return append(slices.Clone(messages[:last-1]), joined)
}

func testPictures(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"ok"}}), model.Options{})
	large := append([]byte("\xFF\xD8\xFF"), make([]byte, 500<<10)...)
	pictures := []turnlog.Picture{turnlog.NewPicture([]byte("\x89PNG\r\n\x1a\n...")), turnlog.NewPicture(large)}
	request := simple()
	request.Messages = []llm.Message{
		{Role: "user", Text: "one", Pictures: pictures}, {Role: "assistant", Text: "two"}, {Role: "user", Text: "three", Pictures: pictures[:1]}, {Role: "user", Text: "four"},
	}
	if _, err := Collect(t.Context(), t, provider, request); err != nil {
		t.Fatal(err)
	}
	if got := server.Requests()[0].Messages; !reflect.DeepEqual(got, subject.sent(request.Messages)) {
		t.Errorf("%d messages, not those of the request", len(got))
	}
}

func testReasoning(t *testing.T, subject Subject) {
	_, provider := start(t, subject, steps(Step{Reasoning: []string{"First ", "this."}, Text: []string{"Then that."}}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	if err != nil || joined(chunks, llm.ChunkReasoning) != "First this." || TextOf(chunks) != "Then that." {
		t.Fatalf("got %+v, %v", chunks, err)
	}
	if chunks[0].Kind != llm.ChunkReasoning {
		t.Errorf("the first chunk is %+v", chunks[0])
	}
}

func testSealed(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{
		Reasoning: []string{"Hm."}, Text: []string{"Let me see. "}, ToolCalls: []llm.ToolCall{calculateCall},
	}), model.Options{})
	request := simple()
	request.ReasoningEffort = "low"
	chunks, err := Collect(t.Context(), t, provider, request)
	if err != nil {
		t.Fatal(err)
	}
	opaque := only(chunks, llm.ChunkOpaque)
	if len(opaque) != 1 {
		t.Fatalf("opaque parts: %v", opaque)
	}
	request.Step = 2
	request.Messages = append(request.Messages, llm.Message{
		Role: "assistant", Text: "Let me see. ", ToolCalls: []llm.ToolCall{calculateCall},
		Opaque: opaque[0].Opaque, OpaqueOwner: subject.Family,
	}, llm.Message{Role: "tool", Text: "84", ToolCallID: calculateCall.ID})
	if _, err := Collect(t.Context(), t, provider, request); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[1].Messages[1]
	if !subject.SendsSealed {
		if raw := string(server.Requests()[1].Raw); !strings.Contains(raw, `"reasoning_content":"Hm."`) {
			t.Errorf("the reasoning is not in %s", raw)
		}
		return
	}
	if string(got.Opaque) != `"`+Sealed+`"` || got.Text != "Let me see. " || len(got.ToolCalls) != 1 {
		t.Errorf("sent back: %+v", got)
	}
	request.Messages[1].OpaqueOwner = "another"
	if _, err := Collect(t.Context(), t, provider, request); err != nil {
		t.Fatal(err)
	}
	if got := server.Requests()[2].Messages[1]; got.Opaque != nil || got.Text != "Let me see. " {
		t.Errorf("the sealed part of another family was sent: %+v", got)
	}
}

var calculateCall = llm.ToolCall{ID: "call_7", Name: "calculate", Input: json.RawMessage(`{"expression":"12*7"}`)}

func testTools(t *testing.T, subject Subject) {
	second := llm.ToolCall{ID: "call_8", Name: "current_time", Input: json.RawMessage(`{}`)}
	server, provider := start(t, subject, Script{Respond: func(request Request) Step {
		if len(request.Messages) == 1 {
			return Step{ToolCalls: []llm.ToolCall{calculateCall, second}}
		}
		return Step{Text: []string{"It is 84."}}
	}}, model.Options{})
	request := simple()
	chunks, err := Collect(t.Context(), t, provider, request)
	if err != nil || StopOf(chunks) != llm.StopToolCalls {
		t.Fatalf("stop %s, %v", StopOf(chunks), err)
	}
	calls := only(chunks, llm.ChunkToolCall)
	if len(calls) != 2 || !reflect.DeepEqual(calls[0].ToolCall, calculateCall) || !reflect.DeepEqual(calls[1].ToolCall, second) {
		t.Fatalf("calls %+v", calls)
	}
	request.Messages = append(request.Messages,
		llm.Message{Role: "assistant", ToolCalls: []llm.ToolCall{calculateCall, second}},
		llm.Message{Role: "tool", Text: "84", ToolCallID: calculateCall.ID},
		llm.Message{Role: "tool", Text: "no clock", ToolCallID: second.ID, ToolFailed: true},
		llm.Message{Role: "user", Text: "and briefly"})
	chunks, err = Collect(t.Context(), t, provider, request)
	if err != nil || TextOf(chunks) != "It is 84." {
		t.Fatalf("got %q, %v", TextOf(chunks), err)
	}
	got := server.Requests()[1].Messages
	if len(got) != 5 || !reflect.DeepEqual(got[1].ToolCalls, request.Messages[1].ToolCalls) || got[2].Text != "84" ||
		got[4].Text != "and briefly" {
		t.Errorf("the messages of the second request are %+v", got)
	}
	if failed := got[3]; !failed.ToolFailed && failed.Text != "Error: no clock" {
		t.Errorf("the failure of a tool was not sent: %+v", failed)
	}
}

func testUsage(t *testing.T, subject Subject) {
	want := llm.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 7, CachedInputTokens: 64}
	_, provider := start(t, subject, steps(Step{Text: []string{"a", "b"}, Usage: &want}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	counts := only(chunks, llm.ChunkUsage)
	if err != nil || len(counts) == 0 || counts[len(counts)-1].Usage != want {
		t.Errorf("got %+v, %v", counts, err)
	}
}

func testEstimated(t *testing.T, subject Subject) {
	_, provider := start(t, subject, steps(Step{Text: []string{"The ruddy turnstone ", "is a small wader."}}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	if err != nil {
		t.Fatal(err)
	}
	usage := only(chunks, llm.ChunkUsage)[0].Usage
	if !usage.Estimated || usage.OutputTokens < 6 || usage.OutputTokens > 15 || usage.InputTokens < 8 || usage.InputTokens > 30 {
		t.Errorf("got %+v", usage)
	}
}

func testStops(t *testing.T, subject Subject) {
	for _, stop := range []llm.Stop{llm.StopEndTurn, llm.StopMaxTokens, llm.StopRefusal} {
		_, provider := start(t, subject, steps(Step{Text: []string{"So far"}, Stop: stop}), model.Options{})
		if chunks, err := Collect(t.Context(), t, provider, simple()); err != nil || StopOf(chunks) != stop {
			t.Errorf("want %s, got %s, %v", stop, StopOf(chunks), err)
		}
	}
}

func testLimitedTools(t *testing.T, subject Subject) {
	_, provider := start(t, subject, steps(Step{
		Text: []string{"Well"}, ToolCalls: []llm.ToolCall{calculateCall}, Stop: llm.StopMaxTokens,
	}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
	if err != nil || StopOf(chunks) != llm.StopMaxTokens || has(chunks, llm.ChunkToolCall) {
		t.Errorf("got %+v, %v", chunks, err)
	}
}

func testCancel(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	err := provider.Stream(ctx, simple(), func(llm.Chunk) error {
		seen++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen == 0 {
		t.Errorf("after %d chunks: %v", seen, err)
	}
	await(t, server.Aborted(), "the cancel did not close the provider's connection")
}

func await(t *testing.T, signal <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(waitLimit):
		t.Fatal(otherwise)
	}
}

func testCancelled(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two", "three"}}), model.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := provider.Stream(ctx, simple(), func(chunk llm.Chunk) error {
		if chunk.Kind == llm.ChunkText {
			seen++
			cancel()
		}
		return nil
	})
	if seen != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d chunks of text, %v", seen, err)
	}
	if chunks, err := Collect(ctx, t, provider, simple()); len(chunks) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, %v", chunks, err)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func testFailingEmit(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{})
	ended, seen := errors.New("the turn has ended"), 0
	err := provider.Stream(t.Context(), simple(), func(llm.Chunk) error {
		seen++
		return ended
	})
	if !errors.Is(err, ended) || seen != 1 {
		t.Errorf("after %d chunks: %v", seen, err)
	}
	await(t, server.Aborted(), "the failing emit did not close the provider's connection")
}
