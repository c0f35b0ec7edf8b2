package model

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
)

// While the client reads the response, the body of the request is no longer in memory.
func TestARequestBodyIsReleasedOnceItIsSent(t *testing.T) {
	const content = "the request"
	proceed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || !strings.HasPrefix(string(body), content) {
			t.Errorf("the server read %.20q, %v", body, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-proceed
	}))
	defer server.Close()
	defer close(proceed)
	client, err := NewClient("test", server.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := newCall(t.Context(), client, llm.Request{}, nil)
	defer call.end()
	freed := make(chan struct{})
	if err := func() error {
		body := append(make([]byte, 0, 1<<20), content...)
		runtime.AddCleanup(&body[0], func(c chan struct{}) { close(c) }, freed)
		request, err := http.NewRequestWithContext(call.ctx, http.MethodPost, server.URL, bytes.NewReader(body[:cap(body)]))
		if err != nil {
			return err
		}
		return call.send(request) // call.end closes the response
	}(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("the body is still in memory")
			}
		}
	}
}

func TestARequestBodyCanBeSentAgainUntilThereIsAResponse(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	sent := newPayload(request)
	outgoing := sent.request(t.Context(), request)
	again, err := outgoing.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.ReadCloser{outgoing.Body, again} {
		if text, err := io.ReadAll(body); err != nil || string(text) != "body" {
			t.Errorf("read %q, %v", text, err)
		}
		if err := errors.Join(body.Close(), body.Close()); err != nil {
			t.Error(err)
		}
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("a closed body was read: %v", err)
		}
	}
	sent.release()
	if _, err := outgoing.GetBody(); !errors.Is(err, errBodyReleased) {
		t.Errorf("got %v", err)
	}
}
