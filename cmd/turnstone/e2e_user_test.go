package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/protocol"
)

const goodPassword = "a long enough pass phrase"

// user is somebody with an account and a browser. It is safe for concurrent use once it is signed in.
type user struct {
	base   string
	email  string
	client *http.Client
	csrf   string
	saw    *witness
}

func newBrowser(base string) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	return &http.Client{
		Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newUser makes an account and signs it in.
func newUser(t *testing.T, base string) *user {
	t.Helper()
	u := &user{base: base, email: uuid.NewString() + "@example.org", client: newBrowser(base), saw: newWitness(t)}
	t.Cleanup(u.client.CloseIdleConnections)
	var session protocol.SessionInfo
	u.do(t, http.MethodPost, "/auth/register", map[string]string{
		"email": u.email, "password": goodPassword, "display_name": "Somebody",
	}).want(t, http.StatusCreated, &session)
	u.csrf = session.CSRFToken
	return u
}

// device signs the same account in on another browser.
func (u *user) device(t *testing.T) *user {
	t.Helper()
	other := &user{base: u.base, email: u.email, client: newBrowser(u.base), saw: u.saw}
	t.Cleanup(other.client.CloseIdleConnections)
	var session protocol.SessionInfo
	other.do(t, http.MethodPost, "/auth/login", map[string]string{"email": u.email, "password": goodPassword}).
		want(t, http.StatusOK, &session)
	other.csrf = session.CSRFToken
	return other
}

// answer is a whole answer.
type answer struct {
	request string
	status  int
	header  http.Header
	body    []byte
	took    time.Duration
}

// open sends a request and leaves its answer open. headers are names and values in turn.
func (u *user) open(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, u.base+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if u.csrf != "" {
		request.Header.Set("X-CSRF-Token", u.csrf)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return u.client.Do(request)
}

func (u *user) ask(ctx context.Context, method, path string, body any, headers ...string) (*answer, error) {
	began := time.Now()
	response, err := u.open(ctx, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	return readAnswer(response, began)
}

func readAnswer(response *http.Response, began time.Time) (*answer, error) {
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &answer{
		request: response.Request.Method + " " + response.Request.URL.Path, status: response.StatusCode, header: response.Header,
		body: text, took: time.Since(began),
	}, nil
}

// do is ask for the goroutine of the test.
func (u *user) do(t *testing.T, method, path string, body any, headers ...string) *answer {
	t.Helper()
	a, err := u.ask(within(t, soon), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (u *user) get(t *testing.T, path string, into any) {
	t.Helper()
	u.do(t, http.MethodGet, path, nil).want(t, http.StatusOK, into)
}

// want fails the test unless the answer has the status; into may be nil.
func (a *answer) want(t *testing.T, status int, into any) *answer {
	t.Helper()
	if err := a.decode(status, into); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *answer) decode(status int, into any) error {
	if a.status != status {
		return fmt.Errorf("%s: %d, want %d: %s", a.request, a.status, status, a.body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%s: %w: %s", a.request, err, a.body)
	}
	return nil
}

// problem is what a test looks at in a problem document.
type problem struct {
	Code    protocol.Code   `json:"code"`
	Detail  string          `json:"detail"`
	Current json.RawMessage `json:"current"`
}

func (a *answer) wantProblem(t *testing.T, status int, code protocol.Code) problem {
	t.Helper()
	var p problem
	a.want(t, status, &p)
	if p.Code != code || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Fatalf("%s: %s as %s, want %s", a.request, a.body, a.header.Get("Content-Type"), code)
	}
	return p
}

// chatBody is the body of POST /chat.
type chatBody map[string]any

func saying(text string) chatBody {
	return chatBody{"input": []map[string]string{{"type": "text", "text": canary + " " + text}}}
}

func (b chatBody) in(conversation string) chatBody { return b.with("conversation_id", conversation) }

func (b chatBody) with(name string, value any) chatBody {
	b[name] = value
	return b
}

// chat begins a turn, or fails the test.
func (u *user) chat(t *testing.T, body chatBody, headers ...string) *stream {
	t.Helper()
	s, refused, err := u.tryChat(within(t, patience), body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	if refused != nil {
		t.Fatalf("POST /chat: %d %s", refused.status, refused.body)
	}
	t.Cleanup(s.close)
	return s
}

// tryChat begins a turn; what is no stream is answered as it came.
func (u *user) tryChat(ctx context.Context, body chatBody, headers ...string) (*stream, *answer, error) {
	return u.openStream(ctx, http.MethodPost, "/chat", body, 0, headers...)
}

// follow resumes a turn after a sequence; from the snapshot if query says so.
func (u *user) follow(ctx context.Context, turn string, after int64, query string) (*stream, *answer, error) {
	return u.openStream(ctx, http.MethodGet, "/chat/turns/"+turn+"/events"+query, nil, after, "Last-Event-ID", strconv.FormatInt(after, 10))
}

func (u *user) openStream(ctx context.Context, method, path string, body any, after int64, headers ...string) (*stream, *answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	response, err := u.open(ctx, method, path, body, headers...)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		defer cancel()
		a, err := readAnswer(response, began)
		return nil, a, err
	}
	return &stream{
		turn: response.Header.Get("X-Turn-Id"), header: response.Header, after: after, saw: u.saw,
		lines: bufio.NewReaderSize(response.Body, 64<<10),
		close: func() { cancel(); _ = response.Body.Close() },
	}, nil, nil
}

// event is one frame as it came.
type event struct {
	sequence int64
	kind     string
	data     string
}

// payload reads the event by the vocabulary.
func (e event) payload() protocol.Payload {
	_, payload, err := protocol.DecodeEvent([]byte(e.data))
	if err != nil {
		panic(err)
	}
	return payload
}

// stream reads one answer of server-sent events and holds it to the contract: contiguous sequences, id and event of the
// frame as in its data, one retry first, nothing behind turn.finished.
type stream struct {
	turn   string
	header http.Header
	saw    *witness
	checks func(event) error // of every event, if set
	lines  *bufio.Reader
	close  func()

	after    int64 // the last sequence
	retries  []int
	finished bool
	partial  bool // a frame has begun
}

// errBroken is a promise of streams that was not kept, as against a connection that was cut.
var errBroken = errors.New("the stream breaks the contract")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errBroken, fmt.Sprintf(format, args...))
}

// next reads an event; io.EOF is the end of a body that ends between two events.
func (s *stream) next() (event, error) {
	var e event
	var id, data string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) && (s.partial || line != "") {
				err = io.ErrUnexpectedEOF
			}
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n" && data != "":
			s.partial = false
			e.data = data
			return e, s.check(&e, id)
		case line == "\n": // behind retry
		case strings.HasPrefix(line, ":"): // a heartbeat
		case name == "retry":
			wait, err := strconv.Atoi(value)
			if err != nil {
				return e, broken("retry %q", value)
			}
			s.retries = append(s.retries, wait)
		case name == "id":
			id, s.partial = value, true
		case name == "event":
			e.kind, s.partial = value, true
		case name == "data" && data == "":
			data, s.partial = value, true
		default:
			return e, broken("line %q", line)
		}
	}
}

func (s *stream) check(e *event, id string) error {
	var head struct {
		Version  int    `json:"protocol_version"`
		Turn     string `json:"turn_id"`
		Sequence int64  `json:"sequence"`
		Type     string `json:"type"`
	}
	if err := json.Unmarshal([]byte(e.data), &head); err != nil {
		return broken("data: %v: %s", err, e.data)
	}
	e.sequence = head.Sequence
	switch {
	case head.Version != 1 || head.Type != e.kind || strconv.FormatInt(head.Sequence, 10) != id || head.Turn != s.turn:
		return broken("id %s, event %s, data %s", id, e.kind, e.data)
	case s.finished:
		return broken("%s follows turn.finished", e.data)
	case len(s.retries) == 0:
		return broken("no retry before the first event")
	}
	if s.checks != nil {
		if err := s.checks(*e); err != nil {
			return broken("%v: %s", err, e.data)
		}
	}
	switch {
	case e.kind == "turn.snapshot":
		s.after = e.sequence
		return nil
	case e.sequence != s.after+1:
		return broken("after %d comes %d", s.after, e.sequence)
	}
	s.after, s.finished = e.sequence, e.kind == "turn.finished"
	return s.saw.see(s.turn, *e)
}

// await reads up to the first event that is wanted.
func (s *stream) await(t *testing.T, what string, wanted func(event) bool) event {
	t.Helper()
	for {
		e, err := s.next()
		if err != nil {
			t.Fatalf("%s: the stream of %s ends after %d: %v", what, s.turn, s.after, err)
		}
		if wanted(e) {
			return e
		}
	}
}

func (s *stream) awaitKind(t *testing.T, kind string) event {
	t.Helper()
	return s.await(t, kind, func(e event) bool { return e.kind == kind })
}

// toTheEnd reads all that comes and how the turn ended; the body has to end with turn.finished.
func (s *stream) toTheEnd(t *testing.T) (events []event, end *protocol.TurnFinished) {
	t.Helper()
	events, err := s.rest()
	if err != nil {
		t.Fatalf("the stream of %s after %d: %v", s.turn, s.after, err)
	}
	return events, events[len(events)-1].payload().(*protocol.TurnFinished)
}

// rest reads to the end of the body, which has to be turn.finished.
func (s *stream) rest() (events []event, err error) {
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) && s.finished {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// watch follows a turn as an EventSource does, through any number of broken connections, until it has seen
// turn.finished. first is a stream that is open already, or nil.
func (u *user) watch(ctx context.Context, turn string, first *stream, seen func(event)) error {
	after := int64(0)
	for s := first; ; s = nil {
		if s == nil {
			var refused *answer
			var err error
			s, refused, err = u.follow(ctx, turn, after, "")
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("following %s, which stands at %d: %w", turn, after, ctx.Err())
			case refused != nil && refused.status != http.StatusServiceUnavailable && refused.status != http.StatusTooManyRequests:
				return broken("following %s after %d: %d %s", turn, after, refused.status, refused.body)
			case err != nil || refused != nil: // down, or not up again yet
				if err := pause(ctx, pollEvery); err != nil {
					return err
				}
				continue
			}
		}
		err := s.drain(seen)
		after = s.after
		s.close()
		if s.finished || errors.Is(err, errBroken) {
			return err
		}
	}
}

// drain reads until the connection ends; an error only if the contract was broken.
func (s *stream) drain(seen func(event)) error {
	for {
		e, err := s.next()
		if errors.Is(err, errBroken) {
			return err
		}
		if err != nil {
			return nil //nolint:nilerr // cut: whoever follows comes again
		}
		if seen != nil {
			seen(e)
		}
	}
}

// wholeLog reads a turn from its first event to its end.
func (u *user) wholeLog(t *testing.T, turn string) ([]event, *protocol.TurnFinished) {
	t.Helper()
	s, refused, err := u.follow(within(t, patience), turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("following %s: %v %+v", turn, err, refused)
	}
	defer s.close()
	return s.toTheEnd(t)
}

// witness remembers the bytes of every event that anybody saw.
type witness struct {
	mu     sync.Mutex
	events map[string]map[int64]string // guarded by mu: by turn and sequence
	broken []string                    // guarded by mu
}

func newWitness(t *testing.T) *witness {
	w := &witness{events: map[string]map[int64]string{}}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, line := range w.broken {
			t.Error(line)
		}
	})
	return w
}

// see compares an event with what others saw under its number.
func (w *witness) see(turn string, e event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events[turn] == nil {
		w.events[turn] = map[int64]string{}
	}
	before, known := w.events[turn][e.sequence]
	if known && before != e.data {
		line := fmt.Sprintf("event %d of %s was seen as\n%s\nand as\n%s", e.sequence, turn, before, e.data)
		w.broken = append(w.broken, line)
		return broken("%s", line)
	}
	w.events[turn][e.sequence] = e.data
	return nil
}

// count is how many events of a turn were seen by anybody.
func (w *witness) count(turn string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events[turn])
}

// fold makes the message of a turn's events.
func fold(events []event) []protocol.Part {
	var f protocol.Fold
	for _, e := range events {
		f.Apply(e.payload())
	}
	return f.Parts()
}

// countKind counts events of a type.
func countKind(events []event, kind string) int {
	n := 0
	for _, e := range events {
		if e.kind == kind {
			n++
		}
	}
	return n
}

// texts are the text parts of a message, in order.
func texts(parts []protocol.Part) []string {
	var found []string
	for _, part := range parts {
		if part.Type == protocol.PartText {
			found = append(found, part.Text)
		}
	}
	return found
}

// messages reads the active branch, oldest first.
func (u *user) messages(t *testing.T, conversation string) []protocol.Message {
	t.Helper()
	var page protocol.List[protocol.Message]
	u.get(t, "/conversations/"+conversation+"/messages?limit=100", &page)
	return page.Data
}

func (u *user) page(t *testing.T, conversation string) protocol.ConversationPage {
	t.Helper()
	var page protocol.ConversationPage
	u.get(t, "/conversations/"+conversation, &page)
	return page
}

// newConversation is one with a title, so that no automatic one is made.
func (u *user) newConversation(t *testing.T) string {
	t.Helper()
	var made protocol.Conversation
	u.do(t, http.MethodPost, "/conversations", map[string]string{"title": "About " + canary}).want(t, http.StatusCreated, &made)
	return made.ConversationID.String()
}

// steering is the body of POST /chat/steering for an input.
func steering(turn, clientID, text, delivery string) map[string]any {
	return map[string]any{
		"type": "input", "turn_id": turn, "client_steering_id": clientID, "delivery": delivery,
		"input": []map[string]string{{"type": "text", "text": canary + " " + text}},
	}
}

func cancelling(turn string) map[string]any { return map[string]any{"type": "cancel", "turn_id": turn} }

// receipt is what came of a command.
type receipt struct {
	sent     bool
	status   int // 202 or 409
	sequence int64
}

// insist sends a command until it is decided: 202 or 409 steering_closed.
func insist(ctx context.Context, u *user, body map[string]any) (receipt, error) {
	for {
		a, err := u.ask(ctx, http.MethodPost, "/chat/steering", body)
		if err == nil && a.status != http.StatusServiceUnavailable {
			return readReceipt(a)
		}
		if waited := pause(ctx, pollEvery); waited != nil {
			return receipt{}, errors.Join(waited, err)
		}
	}
}

func readReceipt(a *answer) (receipt, error) {
	r := receipt{sent: true, status: a.status}
	if a.status == http.StatusAccepted {
		var accepted protocol.SteeringReceipt
		err := a.decode(a.status, &accepted)
		r.sequence = accepted.Sequence
		return r, err
	}
	var p problem
	if err := a.decode(http.StatusConflict, &p); err != nil {
		return r, err
	}
	if p.Code != protocol.CodeSteeringClosed {
		return r, fmt.Errorf("%s: %s", a.request, a.body)
	}
	return r, nil
}
