package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/modelinput"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/providers/model"
)

// Subject is the provider under test with one of its wire formats.
type Subject struct {
	Wire   string
	Family string
	New    func(baseURL, key string, options model.Options) (llm.Model, error)
	// SendsSealed is true if reasoning comes with a sealed part that must be sent back to the provider.
	SendsSealed bool
}

const (
	key          = "key-of-the-suite"
	waitLimit    = clocktest.HangGuard
	shortTimeout = 150 * time.Millisecond
)

// Run checks that a provider meets the contract of llm.Model, against a server with its wire format.
func Run(t *testing.T, subject Subject) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, test := range map[string]func(*testing.T, Subject){
		"text arrives in order and has one stop": testText,
		"no piece waits for the next":            testPromptly,
		"pieces that arrive together":            testTogether,
		"the request is encoded completely":      testRequest,
		"pictures come before their text":        testPictures,
		"reasoning comes before the text":        testReasoning,
		"sealed reasoning is sent back in order": testSealed,
		"tool calls and their results":           testTools,
		"usage is that of the provider":          testUsage,
		"missing usage is estimated":             testEstimated,
		"stop reasons":                           testStops,
		"tool calls that a limit may have cut":   testLimitedTools,
		"a cancel closes the connection":         testCancel,
		"nothing is emitted after a cancel":      testCancelled,
		"a failing emit ends the stream":         testFailingEmit,
		"a failure before any chunk is retried":  testRetry,
		"the number of retries is limited":       testRetriesEnd,
		"a cut answer is not retried":            testCut,
		"only a short Retry-After is awaited":    testRetryAfter,
		"refusals have codes":                    testRefusals,
		"a response in another format":           testProtocol,
		"an endless line ends the stream":        testEndlessLine,
		"the wait for the first byte is limited": testFirstByte,
		"a silence in the answer is limited":     testIdle,
		"a slow reader does not cause a timeout": testSlowReader,
		"a connection is reused":                 testReuse,
		"concurrent calls":                       testConcurrent,
		"readiness":                              testReady,
		"configured headers in every request":    testHeaders,
		"the rules of every model":               testRules,
	} {
		t.Run(name, func(t *testing.T) { test(t, subject) })
	}
}

func testRules(t *testing.T, subject Subject) {
	RunModel(t, "What is a turnstone?", func(t *testing.T) llm.Model {
		t.Helper()
		_, provider := start(t, subject, steps(Step{Text: []string{"A bird."}}), model.Options{})
		return provider
	})
}

// Collect streams an answer and checks the rules for every answer: chunks come from one goroutine (the race detector
// finds others), a successful answer has exactly one stop as its last chunk, after the usage, and a failed one has
// none.
func Collect(ctx context.Context, t *testing.T, provider llm.Model, request llm.Request) ([]llm.Chunk, error) {
	t.Helper()
	var chunks []llm.Chunk
	err := provider.Stream(ctx, request, func(chunk llm.Chunk) error {
		chunks = append(chunks, chunk)
		return nil
	})
	for i, chunk := range chunks {
		if last := i == len(chunks)-1; (chunk.Kind == llm.ChunkStop) != (last && err == nil) {
			t.Errorf("chunk %d of %d is of kind %d, with error %v", i, len(chunks), chunk.Kind, err)
		}
		if chunk.Kind == llm.ChunkToolCall && (chunk.ToolCall.ID == "" || !isObject(chunk.ToolCall.Input)) {
			t.Errorf("a tool call without identifier or input: %+v", chunk.ToolCall)
		}
	}
	if err == nil && (len(chunks) < 2 || !has(chunks, llm.ChunkUsage)) {
		t.Errorf("an answer without usage or stop: %v", chunks)
	}
	return chunks, err
}

func isObject(raw json.RawMessage) bool {
	var object map[string]any
	return json.Unmarshal(raw, &object) == nil && object != nil
}

func has(chunks []llm.Chunk, kind llm.ChunkKind) bool { return len(only(chunks, kind)) > 0 }

func only(chunks []llm.Chunk, kind llm.ChunkKind) []llm.Chunk {
	var found []llm.Chunk
	for _, chunk := range chunks {
		if chunk.Kind == kind {
			found = append(found, chunk)
		}
	}
	return found
}

// TextOf joins the text of an answer.
func TextOf(chunks []llm.Chunk) string { return joined(chunks, llm.ChunkText) }

func joined(chunks []llm.Chunk, kind llm.ChunkKind) string {
	var all strings.Builder
	for _, chunk := range only(chunks, kind) {
		all.WriteString(chunk.Text)
	}
	return all.String()
}

// StopOf returns the stop reason of an answer, or "" if there is none.
func StopOf(chunks []llm.Chunk) llm.Stop {
	if len(chunks) == 0 {
		return ""
	}
	return chunks[len(chunks)-1].Stop
}

// simple returns a request with one message.
func simple() llm.Request {
	return llm.Request{
		Model: "some-model", System: "Be brief.", MaxOutputTokens: 4096, Step: 1,
		Messages: []llm.Message{{Role: "user", Text: "What is a turnstone?"}},
	}
}

func start(t *testing.T, subject Subject, script Script, options model.Options) (*Server, llm.Model) {
	t.Helper()
	script.Key = key
	server := NewServer(subject.Wire, script)
	t.Cleanup(server.Close)
	return server, open(t, subject, server.URL, key, options)
}

func open(t *testing.T, subject Subject, url, key string, options model.Options) llm.Model {
	t.Helper()
	if options.Backoff == 0 {
		options.Backoff = time.Millisecond
	}
	provider, err := subject.New(url, key, options)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func steps(steps ...Step) Script { return Script{Steps: steps} }

// wantError checks code, Cut and Retryable of a failed answer.
func wantError(t *testing.T, err error, code protocol.TurnErrorCode, cut, retryable bool) *llm.Error {
	t.Helper()
	var failure *llm.Error
	if !errors.As(err, &failure) {
		t.Fatalf("want %s, got %v", code, err)
	}
	if failure.Code != code || failure.Cut != cut || failure.Retryable != retryable {
		t.Errorf("want %s cut=%v retryable=%v, got %+v", code, cut, retryable, *failure)
	}
	if failure.Err == nil || strings.Contains(failure.Error(), "turnstone?") {
		t.Errorf("the error is empty or contains the user's text: %v", failure)
	}
	return failure
}

// testHeaders uses a gateway that refuses every request without its headers. It tests answers, a retry, a title and
// readiness. One of the headers replaces the API key.
func testHeaders(t *testing.T, subject Subject) {
	wanted := http.Header{"X-Gateway-Team": {"blue"}, "Authorization": {"Basic YTpi"}, "User-Agent": {"turnstone-test"}}
	server := NewServer(subject.Wire, Script{
		Header: wanted, Steps: []Step{{Status: http.StatusServiceUnavailable}, {Text: []string{"A title"}}},
	})
	t.Cleanup(server.Close)
	provider := open(t, subject, server.URL, "", model.Options{Headers: wanted})
	if err := provider.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if chunks, err := Collect(t.Context(), t, provider, simple()); err != nil || TextOf(chunks) != "A title" {
		t.Errorf("%q, %v", TextOf(chunks), err)
	}
	metered := &metering.Model{Model: provider}
	if title, _, err := modelinput.WriteTitle(t.Context(), metered, protocol.NewAccountID(), routing.Route{Model: "some-model"}, "Hello", "Hi"); err != nil || title != "A title" {
		t.Errorf("title %q, %v", title, err)
	}
	if n := len(server.Requests()); n != 3 { // the refused one, its retry and the title
		t.Errorf("%d requests", n)
	}
	without := open(t, subject, server.URL, key, model.Options{})
	_, err := Collect(t.Context(), t, without, simple())
	wantError(t, err, "model_unauthorized", false, false)
	if err := without.Ready(t.Context()); err == nil {
		t.Error("ready without the headers")
	}
}
