package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// Event is one event of a turn.
type Event = verify.Event

// ErrBroken means that a stream violates the contract, in contrast to a connection that was lost.
var ErrBroken = errors.New("the stream violates the contract")

// Broken returns an error that wraps ErrBroken.
func Broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Stream reads the events of one response and checks them against the contract: contiguous sequence numbers, an id and
// a type equal to those in the data, a reconnection time before the first event, nothing after turn.finished.
//
// A Stream ends with its connection; a TurnReader continues on the next one. One goroutine reads; Close may be called
// from any.
type Stream struct {
	Turn     string // its identifier, from X-Turn-Id
	Header   http.Header
	Replayed bool // the stream is that of an earlier POST /chat with the same Idempotency-Key
	// Check is called for every event, if set. Its error ends the stream as broken.
	Check func(Event) error

	frames   *FrameReader
	close    func()
	position verify.Position
}

// OpenStream sends a request once. It returns the response as a stream whose first event follows the sequence number
// after or, if it is not a stream, as a complete response.
func (c *Client) OpenStream(ctx context.Context, r Request, after int64) (*Stream, *Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	response, err := c.Open(ctx, r)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		defer cancel()
		whole, err := readResponse(response, began)
		return nil, whole, err
	}
	return NewStream(response, after, func() { cancel(); _ = response.Body.Close() }), nil, nil
}

// NewStream returns the body of a response as a stream whose first event follows the sequence number after. close ends
// the connection.
func NewStream(response *http.Response, after int64, close func()) *Stream {
	return &Stream{
		Turn: response.Header.Get("X-Turn-Id"), Header: response.Header,
		Replayed: response.Header.Get("Idempotent-Replayed") == "true",
		frames:   NewFrameReader(response.Body), close: close, position: verify.Position{Last: after},
	}
}

// Close ends the connection. The turn continues.
func (s *Stream) Close() { s.close() }

// After returns the sequence number of the last event.
func (s *Stream) After() int64 { return s.position.Last }

// Finished reports whether the last event of the turn was returned.
func (s *Stream) Finished() bool { return s.position.Ended }

// Retry returns the reconnection time that the service requested last.
func (s *Stream) Retry() time.Duration { return s.frames.Retry() }

// Next returns the next event. It returns io.EOF when the response ends between two events; that is the end of the turn
// only if Finished.
func (s *Stream) Next() (Event, error) {
	frame, err := s.frames.Next()
	if err != nil {
		return Event{}, err
	}
	var data struct {
		Version  int                `json:"protocol_version"`
		Turn     string             `json:"turn_id"`
		Sequence int64              `json:"sequence"`
		Type     protocol.EventType `json:"type"`
	}
	switch err := json.Unmarshal(frame.Data, &data); {
	case err != nil:
		return Event{}, Broken("%v: %s", err, frame.Data)
	case data.Version != protocol.Version || data.Turn != s.Turn || string(frame.ID) != strconv.FormatInt(data.Sequence, 10) ||
		string(frame.Event) != string(data.Type):
		return Event{}, Broken("turn %s, id %s, event %s, data %s", s.Turn, frame.ID, frame.Event, frame.Data)
	}
	event := Event{Sequence: data.Sequence, Type: data.Type, Data: string(frame.Data)}
	return event, s.check(event)
}

const (
	snapshotType = protocol.EventType("turn.snapshot")
	finishedType = protocol.EventType("turn.finished")
)

// check checks an event and moves the position of the stream to it.
func (s *Stream) check(e Event) error {
	if s.frames.Retry() == 0 {
		return Broken("no reconnection time before the first event")
	}
	if s.Check != nil {
		if err := s.Check(e); err != nil {
			return fmt.Errorf("%w: %w: %s", ErrBroken, err, e.Data)
		}
	}
	before := s.position.Last
	if e.Type == snapshotType && !s.position.Ended {
		s.position.Last = e.Sequence
		return nil
	}
	if violated := s.position.Next(e.Sequence, e.Type == finishedType); violated != "" {
		return fmt.Errorf("%w: %w", ErrBroken, verify.Finding{Kind: violated, Text: fmt.Sprintf("event %d follows event %d: %s", e.Sequence, before, e.Data)})
	}
	return nil
}

// Rest reads to the end of the response, which must be the end of the turn.
func (s *Stream) Rest() (events []Event, err error) {
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) && s.Finished() {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}
