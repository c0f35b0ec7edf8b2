package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/client"
	"turnstone/protocol/researchlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 20 * time.Second

// serving runs a server command until the test ends and returns the address that it announces.
func serving(t *testing.T, command func(ctx context.Context, p *console.Console) error) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- command(ctx, &console.Console{Stdout: write, Stderr: io.Discard}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, console.Announcement))
}

func upstreamForTest(t *testing.T) string {
	t.Helper()
	return serving(t, Upstream{Listen: "127.0.0.1:0"}.Run)
}

// Streams arrive complete and in order, from the model directly and through the proxy.
func TestTheModelStreamsEveryTokenDirectlyAndThroughTheProxy(t *testing.T) {
	model := upstreamForTest(t)
	proxy := serving(t, Proxy{To: "http://" + model, Listen: "127.0.0.1:0"}.Run)
	const n, tokens, interval = 20, 30, 2 * time.Millisecond
	for _, address := range []string{model, proxy} {
		rec := load.NewRecorder()
		rec.Open.Store(true)
		text := load.Script{Tokens: tokens, Interval: interval}.String()
		f, err := load.Launch(t.Context(), address, n, 10*time.Millisecond, rec, func(int) []byte { return load.CompletionRequest(address, text) })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.AwaitFirst(t.Context(), timeout), f.Await(t.Context(), timeout), f.Check()); err != nil {
			t.Fatal(err)
		}
		w := rec.Sum()
		if w.Tokens != n*tokens || w.Delay.N != n*tokens || w.First.N != n || w.Begin.N != n || f.Gaps() != 0 {
			t.Errorf("%+v, %d gaps", w, f.Gaps())
		}
	}
}

func TestTheModelEndsItsAnswersWhenItIsTold(t *testing.T) {
	model := upstreamForTest(t)
	text := load.Script{Tokens: load.Endless, Interval: time.Millisecond}.String()
	f, err := load.Launch(t.Context(), model, 3, 0, load.NewRecorder(), func(int) []byte { return load.CompletionRequest(model, text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AwaitFirst(t.Context(), timeout); err != nil {
		t.Fatal(err)
	}
	if _, err := load.Fetch(t.Context(), http.MethodPost, "http://"+model+"/end"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Await(t.Context(), timeout), f.Check()); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Streams {
		if s.Tally.Count != s.Tally.Tokens || s.Tally.Count < 1 {
			t.Errorf("%d of %d tokens arrived", s.Tally.Tokens, s.Tally.Count)
		}
	}
	load.Transport.CloseIdleConnections()
}

// A reader that does not read delays no other reader, and gets its complete stream later.
func TestASlowReaderOfTheModelDelaysNoOtherReader(t *testing.T) {
	model := upstreamForTest(t)
	conn, err := load.Dial(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 100_000 // more than a socket buffers
	slow := &load.Stream{Rec: load.NewRecorder(), Conn: conn, Request: load.CompletionRequest(model, load.Script{Tokens: tokens}.String())}
	if _, err := conn.Write(slow.Request); err != nil {
		t.Fatal(err)
	}
	text := load.Script{Tokens: 20, Interval: time.Millisecond}.String()
	f, err := load.Launch(t.Context(), model, 2, 0, load.NewRecorder(), func(int) []byte { return load.CompletionRequest(model, text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Await(t.Context(), timeout), f.Check()); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	slow.Tally = load.NewTally()
	if err := slow.Read(client.NewFrameReader(response.Body)); err != nil || slow.Tally.Tokens != tokens {
		t.Errorf("%d of %d tokens arrived: %v", slow.Tally.Tokens, tokens, err)
	}
	_ = conn.Close()
}

// The bare server's readers get every event after their cursor.
func TestTheBareServerResumes(t *testing.T) {
	address := serving(t, SSE{Listen: "127.0.0.1:0"}.Run)
	url := "http://" + address + "/events/0"
	if _, err := load.Fetch(t.Context(), http.MethodPost, url+"?interval=2ms"); err != nil {
		t.Fatal(err)
	}
	request := func(after int64) []byte {
		return fmt.Appendf(nil, "GET /events/0 HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: %d\r\n\r\n", address, after)
	}
	f, err := load.Launch(t.Context(), address, 5, 0, load.NewRecorder(), func(int) []byte { return request(0) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AwaitFirst(t.Context(), timeout); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, old := range f.Streams {
		s := &load.Stream{Rec: load.NewRecorder(), Request: request(old.Last), After: old.Last, Tally: old.Tally, Resumes: true}
		if err := s.Resume(t.Context(), address); err != nil || s.Gaps+s.Tally.Broken > 0 || s.Last <= old.Last {
			t.Errorf("after %d: %+v, %v", old.Last, s.Tally, err)
		}
		_ = s.Conn.Close()
	}
	if _, err := load.Fetch(t.Context(), http.MethodDelete, url); err != nil {
		t.Error(err)
	}
	load.Transport.CloseIdleConnections()
}

func TestTheModelAnswersTheStepsOfResearchTasks(t *testing.T) {
	model := upstreamForTest(t)
	answered := completion(t, model, researchlog.StepMarker+string(researchlog.StepPlan)+"\n\nWrite at most 3 questions.", "Question of the user:\nWhat are tides?\n")
	if !strings.Contains(answered, `"content":"`) || !strings.Contains(answered, "tides") || !strings.HasSuffix(answered, "data: [DONE]\n\n") {
		t.Errorf("the answer is %q", answered)
	}
}

func TestTheModelAsksForAnApprovalWhenItIsTold(t *testing.T) {
	answered := completion(t, upstreamForTest(t), "You are helpful.", load.Script{Tokens: 3, Approval: true}.String())
	if !strings.Contains(answered, `"name":"start_research"`) || !strings.Contains(answered, `"finish_reason":"tool_calls"`) || strings.Contains(answered, `"finish_reason":"stop"`) {
		t.Errorf("the answer is %q", answered)
	}
}

// completion sends a request to the model, and returns what it streams.
func completion(t *testing.T, model, system, input string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "load", "stream": true, "messages": []map[string]string{{"role": "system", "content": system}, {"role": "user", "content": input}}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+model+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answered, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	return string(answered)
}
