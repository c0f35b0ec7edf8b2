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

	"turnstone/actors"
	"turnstone/protocol"
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
		"retries end":                                  testRetriesEnd,
		"a cut answer is not retried":                  testCut,
		"Retry-After is waited for, within reason":     testRetryAfter,
		"refusals have codes":                          testRefusals,
		"what is not the wire format":                  testProtocol,
		"an endless line is not swallowed":             testEndlessLine,
		"silence before the first byte ends":           testFirstByte,
		"silence within the answer ends":               testIdle,
		"a slow reader is not the provider's silence":  testSlowReader,
		"a connection is used again":                   testReuse,
		"many at once":                                 testConcurrent,
		"ready":                                        testReady,
		"the operator's headers go with every request": testHeaders,
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

// testHeaders asks a gateway that refuses every request without its headers: answers, a retry, a title and the question
// whether the provider is there. One of them takes the place of the API key.
func testHeaders(t *testing.T, subject Subject) {
	wanted := http.Header{"X-Gateway-Team": {"blue"}, "Authorization": {"Basic YTpi"}, "User-Agent": {"turnstone-test"}}
	server := NewServer(subject.Wire, Script{
		Header: wanted, Steps: []Step{{Status: http.StatusServiceUnavailable}, {Text: []string{"A title"}}},
	})
	t.Cleanup(server.Close)
	made := open(t, subject, server.URL, "", model.Options{Headers: wanted})
	if err := made.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if chunks, err := Ask(t.Context(), t, made, simple()); err != nil || TextOf(chunks) != "A title" {
		t.Errorf("%q, %v", TextOf(chunks), err)
	}
	metered := &actors.MeteredModel{Model: made}
	if title, _, err := actors.WriteTitle(t.Context(), metered, protocol.NewAccountID(), actors.Route{Model: "some-model"}, "Hello", "Hi"); err != nil || title != "A title" {
		t.Errorf("title %q, %v", title, err)
	}
	if asked := len(server.Requests()); asked != 3 { // the refused one, its retry and the title
		t.Errorf("%d requests", asked)
	}
	without := open(t, subject, server.URL, key, model.Options{})
	_, err := Ask(t.Context(), t, without, simple())
	wantError(t, err, "model_unauthorized", false, false)
	if err := without.Ready(t.Context()); err == nil {
		t.Error("ready without the headers")
	}
}
