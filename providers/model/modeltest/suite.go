package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors"
	"turnstone/providers/model"
)

// Subject is a provider behind one of its wire formats.
type Subject struct {
	Wire   string
	Family string
	New    func(baseURL, key string, times model.Options) (actors.Model, error)
	// SendsSealed says that reasoning comes with a sealed part that the provider wants back.
	SendsSealed bool
}

const (
	key     = "key-of-the-suite"
	patient = 20 * time.Second // how long a test waits for what must come
	short   = 150 * time.Millisecond
)

// Run holds a provider to the contract of actors.Model against a server that speaks its wire format.
func Run(t *testing.T, subject Subject) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, test := range map[string]func(*testing.T, Subject){
		"text comes in order and stops once":                testText,
		"no piece waits for the next":                       testPromptly,
		"pieces that come together are kept whole":          testTogether,
		"the request says what the turn says":               testRequest,
		"reasoning comes before the text":                   testReasoning,
		"sealed reasoning goes back in its place":           testSealed,
		"a tool call goes out and its result comes back":    testTools,
		"usage is the provider's":                           testUsage,
		"usage is estimated when there is none":             testEstimated,
		"the reasons of the end":                            testStops,
		"a limit drops the tool calls that it may have cut": testLimitedTools,
		"a cancel reaches the provider":                     testCancel,
		"nothing is emitted after a cancel":                 testCancelled,
		"a failing emit ends the stream":                    testFailingEmit,
		"failures are retried before the first chunk":       testRetry,
		"retries end":                                 testRetriesEnd,
		"a cut answer is not retried":                 testCut,
		"Retry-After is waited for, within reason":    testRetryAfter,
		"refusals have codes":                         testRefusals,
		"what is not the wire format":                 testProtocol,
		"an endless line is not swallowed":            testEndlessLine,
		"silence before the first byte ends":          testFirstByte,
		"silence within the answer ends":              testIdle,
		"a slow reader is not the provider's silence": testSlowReader,
		"a connection is used again":                  testReuse,
		"many at once":                                testConcurrent,
		"ready":                                       testReady,
	} {
		t.Run(name, func(t *testing.T) { test(t, subject) })
	}
}

// Ask streams an answer and checks what every answer must keep: chunks from one goroutine, exactly one stop, last,
// after the usage; none beside an error.
func Ask(ctx context.Context, t *testing.T, asked actors.Model, request actors.ModelRequest) ([]actors.ModelChunk, error) {
	t.Helper()
	var chunks []actors.ModelChunk
	err := asked.Stream(ctx, request, func(chunk actors.ModelChunk) error {
		chunks = append(chunks, chunk)
		return nil
	})
	for i, chunk := range chunks {
		if last := i == len(chunks)-1; (chunk.Kind == actors.ChunkStop) != (last && err == nil) {
			t.Errorf("chunk %d of %d is of kind %d, with error %v", i, len(chunks), chunk.Kind, err)
		}
		if chunk.Kind == actors.ChunkToolCall && (chunk.ToolCall.ID == "" || !isObject(chunk.ToolCall.Input)) {
			t.Errorf("a tool call without identifier or input: %+v", chunk.ToolCall)
		}
	}
	if err == nil && (len(chunks) < 2 || !has(chunks, actors.ChunkUsage)) {
		t.Errorf("an answer without usage or stop: %v", chunks)
	}
	return chunks, err
}

func isObject(raw json.RawMessage) bool {
	var object map[string]any
	return json.Unmarshal(raw, &object) == nil && object != nil
}

func has(chunks []actors.ModelChunk, kind actors.ChunkKind) bool { return len(only(chunks, kind)) > 0 }

func only(chunks []actors.ModelChunk, kind actors.ChunkKind) []actors.ModelChunk {
	var found []actors.ModelChunk
	for _, chunk := range chunks {
		if chunk.Kind == kind {
			found = append(found, chunk)
		}
	}
	return found
}

// TextOf joins the text of an answer.
func TextOf(chunks []actors.ModelChunk) string { return joined(chunks, actors.ChunkText) }

func joined(chunks []actors.ModelChunk, kind actors.ChunkKind) string {
	var all strings.Builder
	for _, chunk := range only(chunks, kind) {
		all.WriteString(chunk.Text)
	}
	return all.String()
}

// StopOf is the reason of the end; empty where there is none.
func StopOf(chunks []actors.ModelChunk) actors.ModelStop {
	if len(chunks) == 0 {
		return ""
	}
	return chunks[len(chunks)-1].Stop
}

// simple is a request of one message.
func simple() actors.ModelRequest {
	return actors.ModelRequest{
		Model: "some-model", System: "Be brief.", MaxOutputTokens: 4096, Step: 1,
		Messages: []actors.ModelMessage{{Role: "user", Text: "What is a turnstone?"}},
	}
}

func start(t *testing.T, subject Subject, script Script, times model.Options) (*Server, actors.Model) {
	t.Helper()
	script.Key = key
	server := NewServer(subject.Wire, script)
	t.Cleanup(server.Close)
	return server, open(t, subject, server.URL, key, times)
}

func open(t *testing.T, subject Subject, url, key string, times model.Options) actors.Model {
	t.Helper()
	if times.Backoff == 0 {
		times.Backoff = time.Millisecond
	}
	made, err := subject.New(url, key, times)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func steps(steps ...Step) Script { return Script{Steps: steps} }

// wantError checks code, Cut and Retryable of a failed answer.
func wantError(t *testing.T, err error, code string, cut, retryable bool) *actors.ModelError {
	t.Helper()
	var failure *actors.ModelError
	if !errors.As(err, &failure) {
		t.Fatalf("want %s, got %v", code, err)
	}
	if failure.Code != code || failure.Cut != cut || failure.Retryable != retryable {
		t.Errorf("want %s cut=%v retryable=%v, got %+v", code, cut, retryable, *failure)
	}
	if failure.Err == nil || strings.Contains(failure.Error(), "turnstone?") {
		t.Errorf("an error for the log must say something, and nothing of the user: %v", failure)
	}
	return failure
}

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

func testRetry(t *testing.T, subject Subject) {
	for name, first := range map[string]Step{
		"500":                   {Status: http.StatusInternalServerError},
		"503":                   {Status: http.StatusServiceUnavailable, RetryAfter: "0.01"},
		"cut before any text":   {Fault: Cut, Text: []string{"never"}},
		"ended before any text": {Fault: NoMarker, Text: []string{"never"}},
		"an event of error":     {Fault: ErrorEvent, Text: []string{"never"}, Error: Error{Type: "overloaded_error", Code: "server_error"}},
	} {
		server, asked := start(t, subject, steps(first, Step{Text: []string{"at last"}}), model.Options{})
		chunks, err := Ask(t.Context(), t, asked, simple())
		if err != nil || TextOf(chunks) != "at last" || len(server.Requests()) != 2 {
			t.Errorf("%s: %q after %d requests, %v", name, TextOf(chunks), len(server.Requests()), err)
		}
	}
}

func testRetriesEnd(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Status: http.StatusBadGateway}), model.Options{})
	chunks, err := Ask(t.Context(), t, asked, simple())
	wantError(t, err, "model_unavailable", false, true)
	if n := len(server.Requests()); n != 3 || len(chunks) > 0 {
		t.Errorf("%d requests, %v", n, chunks)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + listener.Addr().String()
	_ = listener.Close()
	_, err = Ask(t.Context(), t, open(t, subject, refused, key, model.Options{}), simple())
	wantError(t, err, "model_unavailable", false, true)
}

func testCut(t *testing.T, subject Subject) {
	for _, fault := range []Fault{Cut, NoMarker} {
		server, asked := start(t, subject, steps(Step{Text: []string{"one ", "two ", "three"}, Fault: fault, After: 2}), model.Options{})
		chunks, err := Ask(t.Context(), t, asked, simple())
		wantError(t, err, "model_unavailable", true, true)
		if TextOf(chunks) != "one two " || len(server.Requests()) != 1 {
			t.Errorf("fault %d: %q after %d requests", fault, TextOf(chunks), len(server.Requests()))
		}
	}
	_, asked := start(t, subject, steps(Step{
		Text: []string{"one"}, Fault: ErrorEvent, After: 1, Error: Error{Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	}), model.Options{})
	_, err := Ask(t.Context(), t, asked, simple())
	wantError(t, err, "model_rate_limited", true, true)
}

func testRetryAfter(t *testing.T, subject Subject) {
	limited := Step{Status: http.StatusTooManyRequests, Error: Error{Type: "rate_limit_error"}}
	limited.RetryAfter = "0.05"
	_, asked := start(t, subject, steps(limited, Step{Text: []string{"now"}}), model.Options{})
	begin := time.Now()
	if chunks, err := Ask(t.Context(), t, asked, simple()); err != nil || TextOf(chunks) != "now" {
		t.Errorf("got %q, %v", TextOf(chunks), err)
	}
	if waited := time.Since(begin); waited < 50*time.Millisecond {
		t.Errorf("asked again after %s", waited)
	}
	limited.RetryAfter = "3600"
	server, asked := start(t, subject, steps(limited), model.Options{})
	_, err := Ask(t.Context(), t, asked, simple())
	if failure := wantError(t, err, "model_rate_limited", false, true); failure.RetryAfter != time.Hour {
		t.Errorf("retry after %s", failure.RetryAfter)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func testRefusals(t *testing.T, subject Subject) {
	tooLong := Error{Type: "invalid_request_error", Code: "context_length_exceeded", Message: "prompt is too long: 300000 tokens > 200000 maximum"}
	for name, refusal := range map[string]struct {
		step Step
		code string
	}{
		"wrong":           {Step{Status: 400, Error: Error{Type: "invalid_request_error", Message: "no: What is a turnstone?"}}, "model_rejected"},
		"unknown":         {Step{Status: 404, Error: Error{Type: "not_found_error", Message: "model: some-model"}}, "model_rejected"},
		"too long":        {Step{Status: 400, Error: tooLong}, "model_context_exceeded"},
		"too large":       {Step{Status: 413, Error: Error{Type: "request_too_large"}}, "model_context_exceeded"},
		"forbidden":       {Step{Status: 403, Error: Error{Type: "permission_error"}}, "model_unauthorized"},
		"elsewhere":       {Step{Status: 307, Location: "http://127.0.0.1:1/"}, "model_protocol"},
		"too long, event": {Step{Text: []string{"never"}, Fault: ErrorEvent, Error: tooLong}, "model_context_exceeded"},
	} {
		server, asked := start(t, subject, steps(refusal.step), model.Options{})
		_, err := Ask(t.Context(), t, asked, simple())
		var failure *actors.ModelError
		if !errors.As(err, &failure) || failure.Code != refusal.code || failure.Retryable {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), "What is a turnstone") {
			t.Errorf("%s: the error repeats the user's words", name)
		}
		if n := len(server.Requests()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	server, _ := start(t, subject, steps(Step{}), model.Options{})
	_, err := Ask(t.Context(), t, open(t, subject, server.URL, "a wrong key", model.Options{}), simple())
	wantError(t, err, "model_unauthorized", false, false)
}

func testProtocol(t *testing.T, subject Subject) {
	for fault, cut := range map[Fault]bool{BadJSON: true, HTML: false, EndlessHeaders: false} {
		_, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: fault, After: 1}), model.Options{})
		_, err := Ask(t.Context(), t, asked, simple())
		wantError(t, err, "model_protocol", cut, false)
	}
	noise := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(strings.Repeat("\x00\x01 noise \xff\n", 100)))
	})
	noisy := httptest.NewServer(noise)
	defer noisy.Close()
	_, err := Ask(t.Context(), t, open(t, subject, noisy.URL, key, model.Options{}), simple())
	wantError(t, err, "model_protocol", false, false)
	_, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Garbage, After: 1}), model.Options{})
	_, err = Ask(t.Context(), t, asked, simple())
	wantError(t, err, "model_unavailable", true, true) // noise behind a good beginning is an answer that was cut
}

func testEndlessLine(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: EndlessLine, After: 1}), model.Options{})
	_, err := Ask(t.Context(), t, asked, simple())
	wantError(t, err, "model_protocol", true, false)
	await(t, server.Aborted(), "the connection stayed open")
	if sent := server.Sent(); sent > 24<<20 { // 8 MiB and what the buffers of two sockets hold
		t.Errorf("%d bytes were taken", sent)
	}
}

func testFirstByte(t *testing.T, subject Subject) {
	for _, fault := range []Fault{SlowHeader, SlowBody} {
		_, asked := start(t, subject, steps(Step{Fault: fault}), model.Options{})
		request := simple()
		request.FirstByte = short
		_, err := Ask(t.Context(), t, asked, request)
		wantError(t, err, "model_unavailable", false, true)
	}
}

func testIdle(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{Idle: 4 * short})
	chunks, err := Ask(t.Context(), t, asked, simple())
	wantError(t, err, "model_unavailable", true, true)
	if TextOf(chunks) != "one" {
		t.Errorf("got %q", TextOf(chunks))
	}
	await(t, server.Aborted(), "the connection stayed open")
}

func testSlowReader(t *testing.T, subject Subject) {
	gate := make(chan struct{}, 1)
	_, asked := start(t, subject, steps(Step{Text: []string{"one", "two", "three"}, Gate: gate}), model.Options{Idle: short})
	err := asked.Stream(t.Context(), simple(), func(chunk actors.ModelChunk) error {
		if chunk.Kind != actors.ChunkText {
			return nil
		}
		gate <- struct{}{}
		if chunk.Text == "one" {
			<-time.After(2 * short) // the reader is what is slow here
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func testReuse(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{Text: []string{"one", "two"}, Late: 20 * time.Millisecond}), model.Options{})
	for range 5 {
		if _, err := Ask(t.Context(), t, asked, simple()); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.Connections(); n != 1 {
		t.Errorf("%d connections for one answer after the other", n)
	}
}

func testConcurrent(t *testing.T, subject Subject) {
	_, asked := start(t, subject, Script{React: func(request Request) Step {
		return Step{Text: []string{"You said ", request.Messages[0].Text}}
	}}, model.Options{})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			request := simple()
			request.Messages[0].Text = strings.Repeat("x", i+1)
			chunks, err := Ask(t.Context(), t, asked, request)
			if err != nil || TextOf(chunks) != "You said "+request.Messages[0].Text {
				t.Errorf("got %q, %v", TextOf(chunks), err)
			}
		})
	}
	group.Wait()
}

func testReady(t *testing.T, subject Subject) {
	server, asked := start(t, subject, steps(Step{}), model.Options{})
	if err := asked.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	err := open(t, subject, server.URL, "a wrong key", model.Options{}).Ready(t.Context())
	if failure := wantError(t, err, "model_unauthorized", false, false); !strings.Contains(failure.Error(), "API key") {
		t.Errorf("the key is not named: %v", failure)
	}
	server.SetScript(Script{Key: key, NoModels: true})
	if err := asked.Ready(t.Context()); err != nil {
		t.Errorf("without a list of models: %v", err)
	}
	server.Close()
	wantError(t, asked.Ready(t.Context()), "model_unavailable", false, true)
}
