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

	"turnstone/actors"
)

// While an answer is waited for, what was asked is not held any more.
func TestABodyIsLetGoOfOnceItIsSent(t *testing.T) {
	const asked = "what was asked"
	goOn := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || !strings.HasPrefix(string(body), asked) {
			t.Errorf("the server read %.20q, %v", body, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-goOn
	}))
	defer server.Close()
	defer close(goOn)
	client, err := NewClient("test", server.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := newCall(t.Context(), client, actors.ModelRequest{}, nil)
	defer call.end()
	gone := make(chan struct{})
	if err := call.Send(func() error {
		body := append(make([]byte, 0, 1<<20), asked...)
		runtime.AddCleanup(&body[0], func(c chan struct{}) { close(c) }, gone)
		request, err := http.NewRequestWithContext(call.ctx, http.MethodPost, server.URL, bytes.NewReader(body[:cap(body)]))
		if err != nil {
			return err
		}
		_, err = call.HTTP().Do(request) // call.end closes its answer
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("the body is still held")
			}
		}
	}
}

func TestABodyIsSentAgainUntilThereIsAnAnswer(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	sent := newPayload(request)
	lean := sent.request(t.Context(), request)
	again, err := lean.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.ReadCloser{lean.Body, again} {
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
	sent.letGo()
	if _, err := lean.GetBody(); !errors.Is(err, errLetGo) {
		t.Errorf("got %v", err)
	}
}
