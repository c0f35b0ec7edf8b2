package sse

import (
	"bufio"
	"context"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idleReader reads a turn that has no events.
type idleReader struct{}

func (idleReader) Take(_ tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken) {
	return into, tail.TakenCaughtUp
}

func (idleReader) Next(ctx context.Context, _ <-chan time.Time) ([]byte, bool, error) {
	<-ctx.Done()
	return nil, false, ctx.Err()
}

func (idleReader) Leave() {}

// TestAnIdleStreamGetsAHeartbeat calls checkHeartbeat as the periodic sweep does: a stream that was idle for a long
// time gets a comment.
func TestAnIdleStreamGetsAHeartbeat(t *testing.T) {
	s := NewServer(zaptest.NewLogger(t))
	service := httptest.NewServer(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if _, err := s.Serve(w, r, &Stream{Reader: idleReader{}, Session: protocol.NewSessionID(), Ended: func() {}}); err != nil {
			t.Error(err)
		}
	}))
	defer service.Close()
	request, err := stdhttp.NewRequestWithContext(t.Context(), stdhttp.MethodGet, service.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := service.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	next := func() string {
		for lines.Scan() {
			if text := lines.Text(); text != "" {
				return text
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if first := next(); !strings.HasPrefix(first, "retry: ") {
		t.Errorf("the stream begins with %q", first)
	}
	s.live.each(func(open watchedStream) { open.checkHeartbeat(time.Since(processStart) + heartbeat) })
	if beat := next(); !strings.HasPrefix(beat, ":") {
		t.Errorf("after the heartbeat: %q", beat)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	s.Close(stopped)
	if lines.Scan() && strings.TrimSpace(lines.Text()) != "" {
		t.Errorf("after the end: %q", lines.Text())
	}
}
