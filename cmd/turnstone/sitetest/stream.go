package sitetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/protocol"
)

// Follow resumes a turn after a sequence; from the snapshot if query says so.
func (u *User) Follow(ctx context.Context, turn string, after int64, query string) (*Stream, *Answer, error) {
	return u.OpenStream(ctx, http.MethodGet, "/chat/turns/"+turn+"/events"+query, nil, after, "Last-Event-ID", strconv.FormatInt(after, 10))
}

// OpenStream sends a request; what comes is a stream after a sequence, or a whole answer.
func (u *User) OpenStream(ctx context.Context, method, path string, body any, after int64, headers ...string) (*Stream, *Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	response, err := u.Open(ctx, method, path, body, headers...)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		defer cancel()
		a, err := ReadAnswer(response, began)
		return nil, a, err
	}
	return &Stream{
		Turn: response.Header.Get("X-Turn-Id"), Header: response.Header, After: after, saw: u.Saw,
		lines: bufio.NewReaderSize(response.Body, 64<<10),
		Close: func() { cancel(); _ = response.Body.Close() },
	}, nil, nil
}

// Event is one frame as it came.
type Event struct {
	Sequence int64
	Kind     string
	Data     string
}

// Payload reads the event by the vocabulary.
func (e Event) Payload() protocol.Payload {
	_, payload, err := protocol.DecodeEvent([]byte(e.Data))
	if err != nil {
		panic(err)
	}
	return payload
}

// Stream reads one answer of server-sent events and holds it to the contract: contiguous sequences, id and event of the
// frame as in its data, one retry first, nothing behind turn.finished.
type Stream struct {
	Turn   string
	Header http.Header
	saw    *Witness
	Checks func(Event) error // of every event, if set
	lines  *bufio.Reader
	Close  func()

	After    int64 // the last sequence
	Retries  []int
	Finished bool
	partial  bool // a frame has begun
}

// ErrBroken is a promise of streams that was not kept, as against a connection that was cut.
var ErrBroken = errors.New("the stream breaks the contract")

// Broken makes an error of a promise that was not kept.
func Broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Next reads an event; io.EOF is the end of a body that ends between two events.
func (s *Stream) Next() (Event, error) {
	var e Event
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
			e.Data = data
			return e, s.Check(&e, id)
		case line == "\n": // behind retry
		case strings.HasPrefix(line, ":"): // a heartbeat
		case name == "retry":
			wait, err := strconv.Atoi(value)
			if err != nil {
				return e, Broken("retry %q", value)
			}
			s.Retries = append(s.Retries, wait)
		case name == "id":
			id, s.partial = value, true
		case name == "event":
			e.Kind, s.partial = value, true
		case name == "data" && data == "":
			data, s.partial = value, true
		default:
			return e, Broken("line %q", line)
		}
	}
}

// Check holds an event against the contract, and against what others saw of it.
func (s *Stream) Check(e *Event, id string) error {
	var head struct {
		Version  int    `json:"protocol_version"`
		Turn     string `json:"turn_id"`
		Sequence int64  `json:"sequence"`
		Type     string `json:"type"`
	}
	if err := json.Unmarshal([]byte(e.Data), &head); err != nil {
		return Broken("data: %v: %s", err, e.Data)
	}
	e.Sequence = head.Sequence
	switch {
	case head.Version != 1 || head.Type != e.Kind || strconv.FormatInt(head.Sequence, 10) != id || head.Turn != s.Turn:
		return Broken("id %s, event %s, data %s", id, e.Kind, e.Data)
	case s.Finished:
		return Broken("%s follows turn.finished", e.Data)
	case len(s.Retries) == 0:
		return Broken("no retry before the first event")
	}
	if s.Checks != nil {
		if err := s.Checks(*e); err != nil {
			return Broken("%v: %s", err, e.Data)
		}
	}
	switch {
	case e.Kind == "turn.snapshot":
		s.After = e.Sequence
		return nil
	case e.Sequence != s.After+1:
		return Broken("after %d comes %d", s.After, e.Sequence)
	}
	s.After, s.Finished = e.Sequence, e.Kind == "turn.finished"
	return s.saw.See(s.Turn, *e)
}

// Await reads up to the first event that is wanted.
func (s *Stream) Await(t *testing.T, what string, wanted func(Event) bool) Event {
	t.Helper()
	for {
		e, err := s.Next()
		if err != nil {
			t.Fatalf("%s: the stream of %s ends after %d: %v", what, s.Turn, s.After, err)
		}
		if wanted(e) {
			return e
		}
	}
}

// AwaitKind reads up to the first event of a type.
func (s *Stream) AwaitKind(t *testing.T, kind string) Event {
	t.Helper()
	return s.Await(t, kind, func(e Event) bool { return e.Kind == kind })
}

// ToTheEnd reads all that comes and how the turn ended; the body has to end with turn.finished.
func (s *Stream) ToTheEnd(t *testing.T) (events []Event, end *protocol.TurnFinished) {
	t.Helper()
	events, err := s.Rest()
	if err != nil {
		t.Fatalf("the stream of %s after %d: %v", s.Turn, s.After, err)
	}
	return events, events[len(events)-1].Payload().(*protocol.TurnFinished)
}

// Rest reads to the end of the body, which has to be turn.finished.
func (s *Stream) Rest() (events []Event, err error) {
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) && s.Finished {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// Watch follows a turn as an EventSource does, through any number of broken connections, until it has seen
// turn.finished. first is a stream that is open already, or nil.
func (u *User) Watch(ctx context.Context, turn string, first *Stream, seen func(Event)) error {
	after := int64(0)
	for s := first; ; s = nil {
		if s == nil {
			var refused *Answer
			var err error
			s, refused, err = u.Follow(ctx, turn, after, "")
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("following %s, which stands at %d: %w", turn, after, ctx.Err())
			case refused != nil && refused.Status != http.StatusServiceUnavailable && refused.Status != http.StatusTooManyRequests:
				return Broken("following %s after %d: %d %s", turn, after, refused.Status, refused.Body)
			case err != nil || refused != nil: // down, or not up again yet
				if err := Pause(ctx, PollEvery); err != nil {
					return err
				}
				continue
			}
		}
		began := time.Now()
		err := s.Drain(seen)
		after = s.After
		s.Close()
		if s.Finished || errors.Is(err, ErrBroken) {
			return err
		}
		if ctx.Err() == nil {
			u.Ledger.Count("the stream of "+turn, began, 0, fmt.Errorf("%w after event %d", io.ErrUnexpectedEOF, after))
		}
	}
}

// Drain reads until the connection ends; an error only if the contract was broken.
func (s *Stream) Drain(seen func(Event)) error {
	for {
		e, err := s.Next()
		if errors.Is(err, ErrBroken) {
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

// WholeLog reads a turn from its first event to its end.
func (u *User) WholeLog(t *testing.T, turn string) ([]Event, *protocol.TurnFinished) {
	t.Helper()
	s, refused, err := u.Follow(Within(t, Patience), turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("following %s: %v %+v", turn, err, refused)
	}
	defer s.Close()
	return s.ToTheEnd(t)
}

// Witness remembers the bytes of every event that anybody saw.
type Witness struct {
	mu     sync.Mutex
	events map[string]map[int64]string // guarded by mu: by turn and sequence
	broken []string                    // guarded by mu
}

// NewWitness reports what it saw changed when the test ends.
func NewWitness(t *testing.T) *Witness {
	w := &Witness{events: map[string]map[int64]string{}}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, line := range w.broken {
			t.Error(line)
		}
	})
	return w
}

// See compares an event with what others saw under its number.
func (w *Witness) See(turn string, e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events[turn] == nil {
		w.events[turn] = map[int64]string{}
	}
	before, known := w.events[turn][e.Sequence]
	if known && before != e.Data {
		line := fmt.Sprintf("event %d of %s was seen as\n%s\nand as\n%s", e.Sequence, turn, before, e.Data)
		w.broken = append(w.broken, line)
		return Broken("%s", line)
	}
	w.events[turn][e.Sequence] = e.Data
	return nil
}

// Forget frees what a long test does not need any more.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.events)
}

// Count is how many events of a turn were seen by anybody.
func (w *Witness) Count(turn string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events[turn])
}

// Fold makes the message of a turn's events.
func Fold(events []Event) []protocol.Part {
	var f protocol.Fold
	for _, e := range events {
		f.Apply(e.Payload())
	}
	return f.Parts()
}

// CountKind counts events of a type.
func CountKind(events []Event, kind string) int {
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Texts are the text parts of a message, in order.
func Texts(parts []protocol.Part) []string {
	var found []string
	for _, part := range parts {
		if part.Type == protocol.PartText {
			found = append(found, part.Text)
		}
	}
	return found
}
