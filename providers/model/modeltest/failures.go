package modeltest

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/providers/model"
)

func testRetry(t *testing.T, subject Subject) {
	for name, first := range map[string]Step{
		"500":                   {Status: http.StatusInternalServerError},
		"503":                   {Status: http.StatusServiceUnavailable, RetryAfter: "0.01"},
		"cut before any text":   {Fault: Cut, Text: []string{"never"}},
		"ended before any text": {Fault: NoMarker, Text: []string{"never"}},
		"an error event":        {Fault: ErrorEvent, Text: []string{"never"}, Error: Error{Type: "overloaded_error", Code: "server_error"}},
	} {
		server, provider := start(t, subject, steps(first, Step{Text: []string{"at last"}}), model.Options{})
		chunks, err := Collect(t.Context(), t, provider, simple())
		if err != nil || TextOf(chunks) != "at last" || len(server.Requests()) != 2 {
			t.Errorf("%s: %q after %d requests, %v", name, TextOf(chunks), len(server.Requests()), err)
		}
	}
}

func testRetriesEnd(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Status: http.StatusBadGateway}), model.Options{})
	chunks, err := Collect(t.Context(), t, provider, simple())
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
	_, err = Collect(t.Context(), t, open(t, subject, refused, key, model.Options{}), simple())
	wantError(t, err, "model_unavailable", false, true)
}

func testCut(t *testing.T, subject Subject) {
	for _, fault := range []Fault{Cut, NoMarker} {
		server, provider := start(t, subject, steps(Step{Text: []string{"one ", "two ", "three"}, Fault: fault, After: 2}), model.Options{})
		chunks, err := Collect(t.Context(), t, provider, simple())
		wantError(t, err, "model_unavailable", true, true)
		if TextOf(chunks) != "one two " || len(server.Requests()) != 1 {
			t.Errorf("fault %d: %q after %d requests", fault, TextOf(chunks), len(server.Requests()))
		}
	}
	_, provider := start(t, subject, steps(Step{
		Text: []string{"one"}, Fault: ErrorEvent, After: 1, Error: Error{Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	}), model.Options{})
	_, err := Collect(t.Context(), t, provider, simple())
	wantError(t, err, "model_rate_limited", true, true)
}

func testRetryAfter(t *testing.T, subject Subject) {
	limited := Step{Status: http.StatusTooManyRequests, Error: Error{Type: "rate_limit_error"}}
	limited.RetryAfter = "0.05"
	_, provider := start(t, subject, steps(limited, Step{Text: []string{"now"}}), model.Options{})
	begin := time.Now()
	if chunks, err := Collect(t.Context(), t, provider, simple()); err != nil || TextOf(chunks) != "now" {
		t.Errorf("got %q, %v", TextOf(chunks), err)
	}
	if waited := time.Since(begin); waited < 50*time.Millisecond {
		t.Errorf("retried after %s", waited)
	}
	limited.RetryAfter = "3600"
	server, provider := start(t, subject, steps(limited), model.Options{})
	_, err := Collect(t.Context(), t, provider, simple())
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
		code protocol.TurnErrorCode
	}{
		"invalid request": {Step{Status: 400, Error: Error{Type: "invalid_request_error", Message: "no: What is a turnstone?"}}, "model_rejected"},
		"unknown model":   {Step{Status: 404, Error: Error{Type: "not_found_error", Message: "model: some-model"}}, "model_rejected"},
		"too long":        {Step{Status: 400, Error: tooLong}, "model_context_exceeded"},
		"too large":       {Step{Status: 413, Error: Error{Type: "request_too_large"}}, "model_context_exceeded"},
		"forbidden":       {Step{Status: 403, Error: Error{Type: "permission_error"}}, "model_unauthorized"},
		"a redirect":      {Step{Status: 307, Location: "http://127.0.0.1:1/"}, "model_protocol"},
		"too long, event": {Step{Text: []string{"never"}, Fault: ErrorEvent, Error: tooLong}, "model_context_exceeded"},
	} {
		server, provider := start(t, subject, steps(refusal.step), model.Options{})
		_, err := Collect(t.Context(), t, provider, simple())
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Code != refusal.code || failure.Retryable {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), "What is a turnstone") {
			t.Errorf("%s: the error contains the user's text", name)
		}
		if n := len(server.Requests()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	server, _ := start(t, subject, steps(Step{}), model.Options{})
	_, err := Collect(t.Context(), t, open(t, subject, server.URL, "a wrong key", model.Options{}), simple())
	wantError(t, err, "model_unauthorized", false, false)
}

func testProtocol(t *testing.T, subject Subject) {
	for fault, cut := range map[Fault]bool{BadJSON: true, HTML: false, EndlessHeaders: false} {
		_, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: fault, After: 1}), model.Options{})
		_, err := Collect(t.Context(), t, provider, simple())
		wantError(t, err, "model_protocol", cut, false)
	}
	noise := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(strings.Repeat("\x00\x01 noise \xff\n", 100)))
	})
	noisy := httptest.NewServer(noise)
	defer noisy.Close()
	_, err := Collect(t.Context(), t, open(t, subject, noisy.URL, key, model.Options{}), simple())
	wantError(t, err, "model_protocol", false, false)
	_, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Garbage, After: 1}), model.Options{})
	_, err = Collect(t.Context(), t, provider, simple())
	wantError(t, err, "model_unavailable", true, true) // noise after a valid start counts as a cut answer
}

func testEndlessLine(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: EndlessLine, After: 1}), model.Options{})
	_, err := Collect(t.Context(), t, provider, simple())
	wantError(t, err, "model_protocol", true, false)
	await(t, server.Aborted(), "the connection stayed open")
	if sent := server.Sent(); sent > 24<<20 { // 8 MiB and the buffers of two sockets
		t.Errorf("%d bytes were sent", sent)
	}
}

func testFirstByte(t *testing.T, subject Subject) {
	for _, fault := range []Fault{SlowHeader, SlowBody} {
		server, provider := start(t, subject, steps(Step{Fault: fault}), model.Options{FirstData: shortTimeout})
		request := simple()
		request.FirstByte = shortTimeout
		_, err := Collect(t.Context(), t, provider, request)
		wantError(t, err, "model_unavailable", false, true)
		if n := len(server.Requests()); n != 1 {
			t.Errorf("%d requests: the provider may still be working on the first", n)
		}
	}
}

func testIdle(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, Fault: Stall, After: 1}), model.Options{Idle: 4 * shortTimeout})
	chunks, err := Collect(t.Context(), t, provider, simple())
	wantError(t, err, "model_unavailable", true, true)
	if TextOf(chunks) != "one" {
		t.Errorf("got %q", TextOf(chunks))
	}
	await(t, server.Aborted(), "the connection stayed open")
}

func testSlowReader(t *testing.T, subject Subject) {
	gate := make(chan struct{}, 1)
	_, provider := start(t, subject, steps(Step{Text: []string{"one", "two", "three"}, Gate: gate}), model.Options{Idle: shortTimeout})
	err := provider.Stream(t.Context(), simple(), func(chunk llm.Chunk) error {
		if chunk.Kind != llm.ChunkText {
			return nil
		}
		gate <- struct{}{}
		if chunk.Text == "one" {
			<-time.After(2 * shortTimeout) // here the reader is slow, not the provider
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func testReuse(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{Text: []string{"one", "two"}, EndDelay: 20 * time.Millisecond}), model.Options{})
	for range 5 {
		if _, err := Collect(t.Context(), t, provider, simple()); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.Connections(); n != 1 {
		t.Errorf("%d connections for sequential requests", n)
	}
}

func testConcurrent(t *testing.T, subject Subject) {
	_, provider := start(t, subject, Script{Respond: func(request Request) Step {
		return Step{Text: []string{"You wrote ", request.Messages[0].Text}}
	}}, model.Options{})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			request := simple()
			request.Messages[0].Text = strings.Repeat("x", i+1)
			chunks, err := Collect(t.Context(), t, provider, request)
			if err != nil || TextOf(chunks) != "You wrote "+request.Messages[0].Text {
				t.Errorf("got %q, %v", TextOf(chunks), err)
			}
		})
	}
	group.Wait()
}

func testReady(t *testing.T, subject Subject) {
	server, provider := start(t, subject, steps(Step{}), model.Options{})
	if err := provider.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	err := open(t, subject, server.URL, "a wrong key", model.Options{}).Ready(t.Context())
	if failure := wantError(t, err, "model_unauthorized", false, false); !strings.Contains(failure.Error(), "API key") {
		t.Errorf("the error does not mention the API key: %v", failure)
	}
	server.SetScript(Script{Key: key, NoModels: true})
	if err := provider.Ready(t.Context()); err != nil {
		t.Errorf("without a list of models: %v", err)
	}
	server.Close()
	wantError(t, provider.Ready(t.Context()), "model_unavailable", false, true)
}
