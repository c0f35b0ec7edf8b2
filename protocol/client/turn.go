package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"turnstone/protocol"
)

// ChatRequest is the body of POST /chat, with its Idempotency-Key.
type ChatRequest struct {
	ConversationID *protocol.ConversationID `json:"conversation_id,omitempty"` // nil: a new conversation
	Input          []protocol.InputItem     `json:"input,omitempty"`
	Branch         *protocol.BranchRequest  `json:"branch,omitempty"`
	Profile        protocol.Profile         `json:"profile,omitempty"`
	IfBusy         string                   `json:"if_busy,omitempty"` // "reject", "queue" or "steer"
	Temporary      bool                     `json:"temporary,omitempty"`
	IdempotencyKey string                   `json:"-"` // "": a request whose response is lost must not be repeated
}

// Started is the result of Chat: exactly one of Turn, FollowUp and Receipt is set.
type Started struct {
	Turn     *TurnReader
	FollowUp *protocol.FollowUp        // if_busy was "queue", and a turn is live
	Receipt  *protocol.SteeringReceipt // if_busy was "steer", and a turn is live
	Replayed bool                      // an earlier request with the same Idempotency-Key had this result
}

// Chat starts a turn. With an Idempotency-Key it is repeated as Options.Retry allows.
func (c *Client) Chat(ctx context.Context, body ChatRequest) (*Started, error) {
	r := Request{Method: http.MethodPost, Path: "/chat", Body: body, IdempotencyKey: body.IdempotencyKey}
	for failed := 1; ; failed++ {
		stream, response, err := c.OpenStream(ctx, r, 0)
		var hint time.Duration
		switch {
		case stream != nil:
			return &Started{Turn: c.Resume(stream), Replayed: stream.Replayed}, nil
		case err == nil:
			problem := response.Problem()
			if problem == nil {
				return accepted(response)
			}
			if !repeatable(problem) {
				return nil, problem
			}
			err, hint = problem, problem.RetryAfter
		case ctx.Err() != nil:
			return nil, err
		}
		if failed >= c.retry.Attempts || !r.safe() {
			return nil, err
		}
		if waitErr := c.retry.wait(ctx, failed, hint); waitErr != nil {
			return nil, errors.Join(waitErr, err)
		}
	}
}

// accepted decodes a 202: a follow-up or a steering receipt.
func accepted(response *Response) (*Started, error) {
	var kind struct {
		FollowUpID *protocol.FollowUpID `json:"follow_up_id"`
	}
	if err := json.Unmarshal(response.Body, &kind); err != nil {
		return nil, fmt.Errorf("%s: decoding the response: %w", response.Request, err)
	}
	s := &Started{Replayed: response.Replayed()}
	if kind.FollowUpID != nil {
		s.FollowUp = new(protocol.FollowUp)
		return s, response.decode(s.FollowUp)
	}
	s.Receipt = new(protocol.SteeringReceipt)
	return s, response.decode(s.Receipt)
}

// Steer sends an input to a live turn. clientID makes repeating it safe.
func (c *Client) Steer(ctx context.Context, turn, clientID, text string, delivery protocol.Delivery) (*protocol.SteeringReceipt, error) {
	return c.command(ctx, map[string]any{
		"type": "input", "turn_id": turn, "client_steering_id": clientID, "delivery": delivery, "input": Text(text),
	})
}

// Cancel ends a live turn. A second cancel gets the receipt of the first.
func (c *Client) Cancel(ctx context.Context, turn string, scope protocol.CancelScope) (*protocol.SteeringReceipt, error) {
	return c.command(ctx, map[string]any{"type": "cancel", "turn_id": turn, "scope": scope})
}

func (c *Client) command(ctx context.Context, body any) (*protocol.SteeringReceipt, error) {
	receipt := new(protocol.SteeringReceipt)
	if err := c.Do(ctx, Request{Method: http.MethodPost, Path: "/chat/steering", Body: body}, receipt); err != nil {
		return nil, err
	}
	return receipt, nil
}

// Follow returns a reader of a turn that starts after a sequence number: 0 for the first event.
func (c *Client) Follow(turn string, after int64) *TurnReader {
	return &TurnReader{client: c, turn: turn, after: after}
}

// Resume returns a reader that continues a stream when its connection ends.
func (c *Client) Resume(s *Stream) *TurnReader {
	return &TurnReader{Check: s.Check, client: c, turn: s.Turn, after: s.After(), stream: s, opened: time.Now()}
}

// OpenEvents opens one stream of a turn that starts after a sequence number. query is "" or, for a snapshot first,
// "?mode=snapshot".
func (c *Client) OpenEvents(ctx context.Context, turn string, after int64, query string) (*Stream, *Response, error) {
	return c.OpenStream(ctx, Request{
		Method: http.MethodGet, Path: "/chat/turns/" + turn + "/events" + query,
		Header: http.Header{"Last-Event-Id": {strconv.FormatInt(after, 10)}},
	}, after)
}

// TurnReader reads the events of a turn, over as many connections as needed.
//
// Order: by sequence, each event once: a connection that is lost is replaced by one that resumes after the last event, and events
// that arrive again are left out. End: io.EOF after the last event of the turn. Errors: those of Check and of ctx, refusals that a
// repetition does not change, and a gap are final. Close: closes the connection. Concurrency: one goroutine reads and closes.
type TurnReader struct {
	// Check is called for every event, if set. Its error ends the reader.
	Check func(Event) error

	client   *Client
	turn     string
	after    int64
	stream   *Stream // nil: not connected
	opened   time.Time
	hint     time.Duration // the reconnection time that the service requested last
	failed   int           // attempts to connect since the last event
	finished bool
}

// Turn returns the turn's identifier.
func (r *TurnReader) Turn() string { return r.turn }

// After returns the sequence number of the last event.
func (r *TurnReader) After() int64 { return r.after }

// Close ends the connection. The turn continues.
func (r *TurnReader) Close() {
	if r.stream != nil {
		r.stream.Close()
		r.stream = nil
	}
}

// Next returns the next event. It returns io.EOF after the last event of the turn, an error that wraps ErrBroken for a
// stream that violates the contract, a *Problem for an error response that a repetition cannot change, and ctx's error
// when ctx ends.
func (r *TurnReader) Next(ctx context.Context) (Event, error) {
	for !r.finished {
		if r.stream == nil {
			if err := r.connect(ctx); err != nil {
				return Event{}, err
			}
			continue
		}
		stop := context.AfterFunc(ctx, r.stream.Close)
		event, err := r.stream.Next()
		stop()
		if err == nil {
			r.after, r.finished, r.failed = event.Sequence, r.stream.Finished(), 0
			return event, nil
		}
		r.hint = r.stream.Retry()
		r.Close()
		switch {
		case errors.Is(err, ErrBroken):
			return Event{}, err
		case ctx.Err() != nil:
			return Event{}, ctx.Err()
		}
		r.client.report(Attempt{
			Request: "the stream of " + r.turn, Began: r.opened, Err: fmt.Errorf("%w after event %d", io.ErrUnexpectedEOF, r.after),
		})
	}
	r.Close()
	return Event{}, io.EOF
}

// connect opens the next connection, after a wait if the last attempt failed. If this attempt fails too, stream stays
// nil.
func (r *TurnReader) connect(ctx context.Context) error {
	if r.failed > 0 || r.hint > 0 {
		if err := r.client.retry.wait(ctx, max(r.failed, 1), r.hint); err != nil {
			return err
		}
	}
	r.hint, r.opened = 0, time.Now()
	r.failed++
	stream, refused, err := r.client.OpenEvents(ctx, r.turn, r.after, "")
	switch {
	case stream != nil:
		stream.Check = r.Check
		r.stream = stream
	case refused == nil:
		return contextError(ctx, err)
	case refused.Status == http.StatusNoContent: // the turn ended, and its last event was returned already
		r.finished = true
	default:
		problem := refused.Problem()
		if problem == nil || !repeatable(problem) {
			return fmt.Errorf("following %s after event %d: %w", r.turn, r.after, orBroken(problem, refused))
		}
		r.hint = problem.RetryAfter
	}
	return nil
}

// contextError returns ctx's error if it has ended; a lost connection alone is not an error.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

func orBroken(problem *Problem, response *Response) error {
	if problem == nil {
		return Broken("%d %s", response.Status, response.Body)
	}
	return problem
}
