package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/client"
)

// service is an API that calls the handlers of a script, one for each request, in order.
type service struct {
	t *testing.T

	mu       sync.Mutex
	script   []http.HandlerFunc // guarded by mu
	requests []string           // guarded by mu: method, path, body, key and token
}

func newService(t *testing.T, script ...http.HandlerFunc) (*service, string) {
	t.Helper()
	s := &service{t: t, script: script}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.Join([]string{
		r.Method, r.URL.String(), string(body), r.Header.Get("Idempotency-Key"), r.Header.Get("X-CSRF-Token"), r.Header.Get("Last-Event-ID"),
	}, " "))
	if len(s.script) == 0 {
		s.mu.Unlock()
		s.t.Errorf("an unexpected request: %s %s", r.Method, r.URL)
		return
	}
	next := s.script[0]
	s.script = s.script[1:]
	s.mu.Unlock()
	next(w, r)
}

func (s *service) wantRequests(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Join(s.requests, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("requests\n%s\nwant\n%s", strings.Join(s.requests, "\n"), strings.Join(want, "\n"))
	}
	if len(s.script) > 0 {
		s.t.Errorf("%d more requests were expected", len(s.script))
	}
}

func respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // after a failed write the client reports an incomplete body
	}
}

func problem(status int, code protocol.Code, headers ...string) http.HandlerFunc {
	return respond(status, fmt.Sprintf(`{"status":%d,"code":%q,"detail":"why"}`, status, code),
		append(headers, "Content-Type", "application/problem+json")...)
}

// lost ends the connection without a response.
func lost(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func connect(t *testing.T, base string, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(base, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fastRetry repeats a request without a delay.
var fastRetry = client.Retry{Attempts: 4, Wait: time.Nanosecond, MaxWait: time.Nanosecond}

func TestOnlyWhatIsSafeIsRepeated(t *testing.T) {
	unavailable := problem(503, protocol.CodeUnavailable, "Retry-After", "1")
	for name, test := range map[string]struct {
		request client.Request
		retry   client.Retry
		script  []http.HandlerFunc
		code    protocol.Code // of the result; "": success
	}{
		"a read":                     {client.Request{Method: "GET", Path: "/x"}, fastRetry, []http.HandlerFunc{unavailable, lost, respond(200, "{}")}, ""},
		"a creation with a key":      {client.Request{Method: "POST", Path: "/x", IdempotencyKey: "k"}, fastRetry, []http.HandlerFunc{lost, unavailable, respond(201, "{}")}, ""},
		"a key that is still in use": {client.Request{Method: "POST", Path: "/x", IdempotencyKey: "k"}, fastRetry, []http.HandlerFunc{problem(409, protocol.CodeIdempotencyBusy), respond(201, "{}")}, ""},
		"a creation without a key":   {client.Request{Method: "POST", Path: "/x"}, fastRetry, []http.HandlerFunc{unavailable}, protocol.CodeUnavailable},
		"a change":                   {client.Request{Method: "PUT", Path: "/x"}, fastRetry, []http.HandlerFunc{unavailable}, protocol.CodeUnavailable},
		"a client without retries":   {client.Request{Method: "GET", Path: "/x"}, client.Retry{}, []http.HandlerFunc{unavailable}, protocol.CodeUnavailable},
		"a permanent error":          {client.Request{Method: "GET", Path: "/x"}, fastRetry, []http.HandlerFunc{problem(404, protocol.CodeNotFound)}, protocol.CodeNotFound},
		"more errors than attempts":  {client.Request{Method: "GET", Path: "/x"}, fastRetry, []http.HandlerFunc{unavailable, unavailable, unavailable, unavailable}, protocol.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s, base := newService(t, test.script...)
			attempts := 0
			// Without keep-alive, because net/http itself repeats a read whose reused connection breaks.
			c := connect(t, base, client.Options{
				HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Retry: test.retry, Observe: func(client.Attempt) { attempts++ },
			})
			err := c.Do(t.Context(), test.request, nil)
			var refused *client.Problem
			if test.code == "" && err != nil || test.code != "" && (!errors.As(err, &refused) || refused.Code != test.code) {
				t.Errorf("%v, want %q", err, test.code)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.script) > 0 || attempts != len(test.script) {
				t.Errorf("%d attempts were reported, and %d more expected", attempts, len(s.script))
			}
		})
	}
}

func TestASessionSendsItsTokenWithUnsafeRequestsOnly(t *testing.T) {
	s, base := newService(t, respond(201, `{"csrf_token":"token"}`), respond(200, "{}"), respond(200, "{}"), respond(204, ""))
	c := connect(t, base+"/", client.Options{})
	session, err := c.Register(t.Context(), "ada@example.org", "secret", "Ada")
	if err != nil || session.CSRFToken != "token" {
		t.Fatal(session, err)
	}
	for _, r := range []client.Request{{Method: "GET", Path: "/a"}, {Method: "PUT", Path: "/b", Body: map[string]int{"n": 1}}} {
		if err := c.Do(t.Context(), r, nil); err != nil {
			t.Error(err)
		}
	}
	if err := c.SignOut(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantRequests(`POST /auth/register {"display_name":"Ada","email":"ada@example.org","password":"secret"}   `,
		"GET /a    ", `PUT /b {"n":1}  token `, "POST /auth/logout   token ")
}

func TestAProblemNamesTheWrongFieldsAndTheCurrentState(t *testing.T) {
	_, base := newService(t,
		respond(422, `{"status":422,"code":"invalid","detail":"no","errors":[{"field":"body.title","message":"is empty"}],"current":{"version":7}}`,
			"Content-Type", "application/problem+json", "Retry-After", "3"),
		respond(502, "<html>bad gateway</html>", "Content-Type", "text/html"))
	c := connect(t, base, client.Options{})
	var p *client.Problem
	err := c.Do(t.Context(), client.Request{Method: "PUT", Path: "/x"}, nil)
	if !errors.As(err, &p) || p.Errors[0].Field != "body.title" || string(p.Current) != `{"version":7}` || p.RetryAfter != 3*time.Second ||
		err.Error() != "PUT /x: 422 invalid: no; body.title: is empty" {
		t.Errorf("%v, %+v", err, p)
	}
	if err = c.Do(t.Context(), client.Request{Method: "GET", Path: "/x"}, nil); !errors.As(err, &p) || p.Status != 502 || !strings.Contains(p.Detail, "bad gateway") {
		t.Errorf("%v", err)
	}
}

func TestAnAddressThatIsNotOneIsRefused(t *testing.T) {
	for _, base := range []string{"", "chat.example.org", "ftp://chat.example.org", "http://", "http://[::1"} {
		if _, err := client.New(base, client.Options{}); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
}

const turnID = "turn_01jdc8m3tqe8w9r7yhvbq2k4n5"

// data returns an event as JSON.
func data(sequence int, kind string) string {
	return fmt.Sprintf(`{"protocol_version":1,"turn_id":%q,"sequence":%d,"type":%q}`, turnID, sequence, kind)
}

// frame returns an event in the form in which it is sent.
func frame(id int, event, data string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, event, data)
}

// events returns a handler that writes deltas from one sequence to another and then calls then. If last is true, the
// last event ends the turn.
func events(from, to int, last bool, then func(http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Turn-Id", turnID)
		_, _ = io.WriteString(w, "retry: 1\n\n")
		for n := from; n <= to; n++ {
			kind := "answer.delta"
			if last && n == to {
				kind = "turn.finished"
			}
			_, _ = io.WriteString(w, frame(n, kind, data(n, kind)))
		}
		w.(http.Flusher).Flush()
		if then != nil {
			then(w, r)
		}
	}
}

func readAll(t *testing.T, r *client.TurnReader) (sequences []int64, err error) {
	t.Helper()
	for {
		event, err := r.Next(t.Context())
		if err != nil {
			return sequences, err
		}
		sequences = append(sequences, event.Sequence)
	}
}

func TestATurnIsReadOverBrokenConnectionsWithoutAGap(t *testing.T) {
	s, base := newService(t,
		lost, events(1, 2, false, lost), problem(503, protocol.CodeUnavailable), lost, events(3, 3, false, nil), events(4, 5, true, nil))
	cuts := 0
	c := connect(t, base, client.Options{Retry: fastRetry, Observe: func(a client.Attempt) {
		if strings.HasPrefix(a.Request, "the stream of") {
			cuts++
		}
	}})
	started, err := c.Chat(t.Context(), client.ChatRequest{Input: client.Text("hello"), IdempotencyKey: "k"})
	if err != nil || started.Turn == nil || started.Turn.Turn() != turnID {
		t.Fatal(started, err)
	}
	read, err := readAll(t, started.Turn)
	if fmt.Sprint(read) != "[1 2 3 4 5]" || !errors.Is(err, io.EOF) || cuts != 2 || started.Turn.After() != 5 {
		t.Errorf("%v, %v, %d cuts", read, err, cuts)
	}
	chat := `POST /chat {"input":[{"type":"text","text":"hello"}]} k  `
	resume := "GET /chat/turns/" + turnID + "/events    "
	s.wantRequests(chat, chat, resume+"2", resume+"2", resume+"2", resume+"3")
}

func TestATurnWhoseEndWasReadEndsWithoutAnEvent(t *testing.T) {
	_, base := newService(t, respond(204, ""))
	if read, err := readAll(t, connect(t, base, client.Options{}).Follow(turnID, 9)); len(read) > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", read, err)
	}
}

func TestARefusalThatWillNotPassEndsAReader(t *testing.T) {
	_, base := newService(t, problem(409, protocol.CodeSequenceAhead))
	var p *client.Problem
	if _, err := readAll(t, connect(t, base, client.Options{}).Follow(turnID, 9)); !errors.As(err, &p) || p.Code != protocol.CodeSequenceAhead {
		t.Error(err)
	}
}

func TestAStreamThatViolatesTheContractIsBroken(t *testing.T) {
	const hint = "retry: 1\n\n"
	for name, text := range map[string]string{
		"a gap":                   hint + frame(2, "e", data(2, "e")),
		"a repetition":            hint + frame(1, "e", data(1, "e")) + frame(1, "e", data(1, "e")),
		"another id":              hint + frame(2, "e", data(1, "e")),
		"another type":            hint + frame(1, "f", data(1, "e")),
		"another turn":            hint + frame(1, "e", strings.Replace(data(1, "e"), turnID, "turn_other", 1)),
		"another version":         hint + frame(1, "e", strings.Replace(data(1, "e"), `version":1`, `version":2`, 1)),
		"no reconnection time":    frame(1, "e", data(1, "e")),
		"no JSON":                 hint + frame(1, "e", "{"),
		"an event after the last": hint + frame(1, "turn.finished", data(1, "turn.finished")) + frame(2, "e", data(2, "e")),
	} {
		_, base := newService(t, respond(200, text, "Content-Type", "text/event-stream", "X-Turn-Id", turnID))
		stream, refused, err := connect(t, base, client.Options{}).OpenEvents(t.Context(), turnID, 0, "")
		if err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		if _, err = stream.Rest(); !errors.Is(err, client.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
		stream.Close()
	}
}

func TestASnapshotMovesTheStreamToItsSequence(t *testing.T) {
	_, base := newService(t, respond(200, "retry: 1\n\n"+frame(7, "turn.snapshot", data(7, "turn.snapshot"))+frame(8, "turn.finished", data(8, "turn.finished")),
		"Content-Type", "text/event-stream", "X-Turn-Id", turnID))
	stream, _, err := connect(t, base, client.Options{}).OpenEvents(t.Context(), turnID, 0, "?mode=snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if read, err := stream.Rest(); err != nil || len(read) != 2 || !stream.Finished() || stream.After() != 8 {
		t.Error(read, err)
	}
}

func TestAQueuedOrSteeringStartReturnsItsReceipt(t *testing.T) {
	_, base := newService(t,
		respond(202, `{"follow_up_id":"fu_01jdc8m3tqe8w9r7yhvbq2k4n5","state":"queued"}`, "Idempotent-Replayed", "true"),
		respond(202, `{"steering_id":"st_01jdc8m3tqe8w9r7yhvbq2k4n5","turn_id":"`+turnID+`","state":"accepted","sequence":4}`))
	c := connect(t, base, client.Options{})
	queued, err := c.Chat(t.Context(), client.ChatRequest{Input: client.Text("next"), IfBusy: "queue"})
	if err != nil || queued.FollowUp == nil || queued.Receipt != nil || !queued.Replayed {
		t.Errorf("%+v, %v", queued, err)
	}
	steered, err := c.Chat(t.Context(), client.ChatRequest{Input: client.Text("now"), IfBusy: "steer"})
	if err != nil || steered.Receipt == nil || steered.FollowUp != nil || steered.Receipt.Sequence != 4 {
		t.Errorf("%+v, %v", steered, err)
	}
}

func TestAReaderStopsWithItsContext(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, script := range map[string]http.HandlerFunc{"within a stream": events(1, 1, false, hang), "while it connects": hang} {
		_, base := newService(t, script)
		ctx, cancel := context.WithCancel(t.Context())
		reader := connect(t, base, client.Options{Observe: func(a client.Attempt) { t.Errorf("%s: %+v", name, a) }}).Follow(turnID, 0)
		if name == "within a stream" {
			reader = connect(t, base, client.Options{}).Follow(turnID, 0)
			if _, err := reader.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := reader.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		reader.Close()
		cancel()
	}
}

func TestKeysDiffer(t *testing.T) {
	if a, b := client.NewKey(), client.NewKey(); a == b || len(a) < 20 || strconv.Quote(a) != `"`+a+`"` {
		t.Error(a, b)
	}
}
