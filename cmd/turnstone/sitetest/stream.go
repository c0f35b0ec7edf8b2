package sitetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/verify"
)

// Follow resumes a turn after a sequence number; query is "" or, for a snapshot first, "?mode=snapshot".
func (u *User) Follow(ctx context.Context, turn string, after int64, query string) (*Stream, *Response, error) {
	return u.opened(u.API.OpenEvents(ctx, turn, after, query))
}

// FollowAgain is Follow, but repeats the request after an unplanned refusal, as RequestAgain does.
func (u *User) FollowAgain(ctx context.Context, turn string, after int64, query string) (*Stream, *Response, error) {
	return u.openAgain(ctx, func() (*Stream, *Response, error) { return u.Follow(ctx, turn, after, query) })
}

// OpenStream sends a request. It returns the response as a stream that starts after a sequence number or, if it is not
// a stream, as a complete response.
func (u *User) OpenStream(ctx context.Context, method, path string, body any, after int64, headers ...string) (*Stream, *Response, error) {
	return u.opened(u.API.OpenStream(ctx, request(method, path, body, headers), after))
}

func (u *User) opened(stream *client.Stream, response *client.Response, err error) (*Stream, *Response, error) {
	switch {
	case stream != nil:
		s := &Stream{Stream: stream}
		stream.Check = func(e client.Event) error { return s.check(u.Witness, Event{e}) }
		return s, nil, nil
	case response != nil:
		return nil, &Response{response}, err
	}
	return nil, nil, err
}

// Event is one event as it was received.
type Event struct{ client.Event }

// Payload decodes the event as package protocol defines it.
func (e Event) Payload() protocol.Payload {
	payload, err := e.Event.Payload()
	if err != nil {
		panic(err)
	}
	return payload
}

// Stream reads one response of server-sent events. It checks each event against the contract, and against the bytes
// that other readers got.
type Stream struct {
	*client.Stream
	Checks func(Event) error // called for every event, if set
}

// Next reads an event. It returns io.EOF if the body ends between two events.
func (s *Stream) Next() (Event, error) {
	e, err := s.Stream.Next()
	return Event{e}, err
}

func (s *Stream) check(w *verify.Witness, e Event) error {
	if s.Checks != nil {
		if err := s.Checks(e); err != nil {
			return err
		}
	}
	if e.Type == "turn.snapshot" {
		return nil
	}
	return w.Saw(s.Turn, e.Sequence, e.Data, time.Now())
}

// strictTransport ends event streams that have a line other than a comment, a field of the contract, or an empty one.
// A client has to ignore other lines, so only this check detects them.
type strictTransport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (s strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.Transport.RoundTrip(r)
	if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		response.Body = &strictLines{ReadCloser: response.Body}
	}
	return response, err
}

type strictLines struct {
	io.ReadCloser
	start []byte // the beginning of the current line, at most lineStart bytes
}

var allowedLine = regexp.MustCompile(`^(|:.*|id: [\w-]+|event: [a-z_.]+|data: \{.*|retry: \d+)$`)

// lineStart is the number of bytes of a line that are checked.
const lineStart = 64

// Read implements io.Reader.
func (l *strictLines) Read(into []byte) (int, error) {
	n, err := l.ReadCloser.Read(into)
	for _, b := range into[:n] {
		switch {
		case b != '\n' && len(l.start) < lineStart:
			l.start = append(l.start, b)
		case b == '\n' && !allowedLine.Match(l.start):
			return 0, client.Broken("line %q", l.start)
		case b == '\n':
			l.start = l.start[:0]
		}
	}
	return n, err
}

// ErrBroken means that a stream violates the contract, in contrast to a connection that was lost.
var ErrBroken = client.ErrBroken

// Await reads up to the first event for which wanted returns true.
func (s *Stream) Await(t *testing.T, what string, wanted func(Event) bool) Event {
	t.Helper()
	for {
		e, err := s.Next()
		if err != nil {
			t.Fatalf("%s: the stream of %s ends after %d: %v", what, s.Turn, s.After(), err)
		}
		if wanted(e) {
			return e
		}
	}
}

// AwaitKind reads up to the first event of a type.
func (s *Stream) AwaitKind(t *testing.T, kind string) Event {
	t.Helper()
	return s.Await(t, kind, func(e Event) bool { return string(e.Type) == kind })
}

// ReadToEnd reads to the end of the body, which must be turn.finished. It returns the events and how the turn ended.
func (s *Stream) ReadToEnd(t *testing.T) (events []Event, end *protocol.TurnFinished) {
	t.Helper()
	events, err := s.Rest()
	if err != nil {
		t.Fatalf("the stream of %s after %d: %v", s.Turn, s.After(), err)
	}
	return events, events[len(events)-1].Payload().(*protocol.TurnFinished)
}

// Rest reads to the end of the body, which must be turn.finished.
func (s *Stream) Rest() ([]Event, error) {
	events, err := s.Stream.Rest()
	return eventsOf(events), err
}

// Watch follows a turn as an EventSource does, through any number of broken connections, until it has seen
// turn.finished. first is a stream that is already open, or nil.
func (u *User) Watch(ctx context.Context, turn string, first *Stream, seen func(Event)) error {
	reader := u.API.Follow(turn, 0)
	if first != nil {
		reader = u.API.Resume(first.Stream)
	} else {
		reader.Check = func(e client.Event) error { return u.Witness.Saw(turn, e.Sequence, e.Data, time.Now()) }
	}
	defer reader.Close()
	for {
		e, err := reader.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("following %s after event %d: %w", turn, reader.After(), err)
		case seen != nil:
			seen(Event{e})
		}
	}
}

// Drain reads until the connection ends. It returns an error only if the stream violates the contract.
func (s *Stream) Drain(seen func(Event)) error {
	for {
		e, err := s.Next()
		if errors.Is(err, ErrBroken) {
			return err
		}
		if err != nil {
			return nil // the connection was cut: the caller reconnects
		}
		if seen != nil {
			seen(e)
		}
	}
}

// ReadTurn reads the log of a turn from its first event to its end and checks it.
func (u *User) ReadTurn(t *testing.T, turn string) *verify.Turn {
	t.Helper()
	s, refused, err := u.FollowAgain(Within(t, HangGuard), turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("following %s: %v %+v", turn, err, refused)
	}
	defer s.Close()
	events, err := s.Stream.Rest()
	if err != nil {
		t.Fatalf("the stream of %s after %d: %v", turn, s.After(), err)
	}
	read := verify.ReadTurn(turn, events)
	Report(t, turn, read.Findings)
	return read
}

// WholeLog is ReadTurn for tests that look at single events.
func (u *User) WholeLog(t *testing.T, turn string) ([]Event, *protocol.TurnFinished) {
	t.Helper()
	read := u.ReadTurn(t, turn)
	return eventsOf(read.Events), read.End
}

func eventsOf(of []client.Event) []Event {
	events := make([]Event, len(of))
	for i, e := range of {
		events[i] = Event{e}
	}
	return events
}

// CheckTurn reads the log of a turn and compares it with what its readers saw, with what its clients received about
// commands, and with its message.
func (u *User) CheckTurn(t *testing.T, turn string, commands ...verify.Command) *verify.Turn {
	t.Helper()
	read := u.ReadTurn(t, turn)
	Report(t, turn, u.Witness.CheckAll(turn, read.Events), read.CheckCommands(commands))
	shown, conversation := 0, read.ConversationID.String()
	for _, m := range u.Messages(t, conversation) {
		if m.Role == protocol.RoleAssistant && m.TurnID != nil && m.TurnID.String() == turn {
			shown++
			Report(t, conversation, read.CheckMessage("the conversation", m.CoversSequence, verify.PartsJSON(m.Parts)))
		}
	}
	if shown != 1 {
		t.Errorf("%s has %d answers in %s", turn, shown, conversation)
	}
	return read
}

// ReadUpload reads and checks the log of an upload that no node works on.
func (u *User) ReadUpload(t *testing.T, upload *protocol.Upload) *verify.Upload {
	t.Helper()
	body := u.Do(t, http.MethodGet, upload.Path()+"/events", nil).Want(t, http.StatusOK, nil).Body
	events, err := ReadFrames(body)
	if err != nil {
		t.Fatal(err)
	}
	read := verify.ReadUpload(upload.UploadID.String(), events)
	Report(t, read.ID, read.Findings)
	return read
}

// Report fails the test for each finding about something.
func Report(t testing.TB, about string, found ...verify.Findings) {
	t.Helper()
	for _, one := range slices.Concat(found...) {
		t.Errorf("%s: %v", about, one)
	}
}

// NewWitness returns a witness that fails the test at its end if an event changed between two readers.
func NewWitness(t *testing.T) *verify.Witness {
	w := verify.NewWitness()
	t.Cleanup(func() { Report(t, "two readers", w.Findings()) })
	return w
}

// Fold returns the parts of the message that the events of a turn produce.
func Fold(events []Event) []protocol.Part {
	var f protocol.Fold
	for _, e := range events {
		f.Apply(e.Payload())
	}
	return f.Parts()
}

// CountKind returns the number of events of a type.
func CountKind(events []Event, kind string) int {
	n := 0
	for _, e := range events {
		if string(e.Type) == kind {
			n++
		}
	}
	return n
}

// Texts returns the texts of a message's text parts, in order.
func Texts(parts []protocol.Part) []string {
	var found []string
	for _, part := range parts {
		if part.Type == protocol.PartText {
			found = append(found, part.Text)
		}
	}
	return found
}
