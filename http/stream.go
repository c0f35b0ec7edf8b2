package http

import (
	"context"
	"errors"
	"fmt"
	stdhttp "net/http"
	"strconv"
	"sync"
	"time"

	"turnstone/actors"
	"turnstone/protocol"
)

const (
	heartbeat       = 10 * time.Second // of silence at most, then a comment shows that the stream lives
	flushDeadline   = 10 * time.Second // for one flush; a reader who takes longer is let go, and resumes
	deadlineLeft    = 7 * time.Second  // a flush gets at least: moving the deadline each time costs as much as the rest
	retryMillis     = 2000             // what an EventSource waits before it resumes
	defaultStreams  = 50               // open streams of one account on one node, where Config is silent
	retryStreams    = 5                // seconds until an account with too many streams may have closed one
	defaultRequests = 32               // requests of one account under way on one node, where Config is silent
	cancelSlots     = 2                // more, for cancels only: Stop works for an account whose other requests hang
	eventStreamType = "text/event-stream"
	maxHandOnMillis = 1000 // the spread of reconnects when a node hands its turns on
)

// perAccount counts what each account has open.
type perAccount struct {
	mu   sync.Mutex
	open map[protocol.AccountID]int // guarded by mu
}

// take counts one more of an account, unless it has most; the caller leaves when that is over.
func (c *perAccount) take(account protocol.AccountID, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[protocol.AccountID]int{}
	}
	if c.open[account] >= most {
		return false
	}
	c.open[account]++
	return true
}

func (c *perAccount) leave(account protocol.AccountID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[account]--; c.open[account] <= 0 {
		delete(c.open, account)
	}
}

// streams counts the open streams of each account.
type streams struct{ perAccount }

// enter takes one of an account's slots for a stream, before anything is begun for it; the caller leaves when the stream has ended.
func (s *streams) enter(account protocol.AccountID, most int) error {
	if !s.take(account, most) {
		return &protocol.Error{Code: protocol.CodeTooManyStreams, Detail: fmt.Sprintf("At most %d streams may be open.", most), RetryAfter: retryStreams}
	}
	return nil
}

// enterRequest takes one of the account's slots for requests; leaveRequest gives it back, once. A request that may be a
// cancel may take a reserved slot, which keepSlot then lets only a cancel keep.
func (s *Server) enterRequest(ex *exchange, policy Policy) error {
	if ex.caller == nil {
		return nil
	}
	account := ex.caller.AccountID
	if ex.counted = s.requests.take(account, s.MaxRequests); !ex.counted && policy.Cancels {
		ex.counted = s.requests.take(account, s.MaxRequests+cancelSlots)
		ex.reserved = ex.counted
	}
	if !ex.counted {
		return s.tooManyRequests()
	}
	return nil
}

// keepSlot refuses a request in a reserved slot that turned out to be no cancel.
func (s *Server) keepSlot(ex *exchange, cancels bool) error {
	if ex.reserved && !cancels {
		return s.tooManyRequests()
	}
	return nil
}

func (s *Server) tooManyRequests() error {
	return &protocol.Error{Code: protocol.CodeTooManyRequests, Detail: fmt.Sprintf("At most %d requests may be under way at once.", s.MaxRequests)}
}

func (s *Server) leaveRequest(ex *exchange) {
	if ex.counted {
		ex.counted = false
		s.requests.leave(ex.caller.AccountID)
	}
}

// sendEvents answers with a stream of server-sent events: what first holds, then what the reader yields, until the end of
// the log, the client's leaving, or the end of the session.
//
// Order: as the log. Resume: every event carries its sequence as id. Slow reader: a flush that takes longer than
// flushDeadline ends this stream only; nothing is dropped, the reader resumes. Close: the body ends after the last event;
// when the node hands its turns on, after a retry of less than a second. An error after the first byte ends the
// connection: an event is never made up.
//
// An HTTP/1.1 connection is taken over (liveStream) and the handler returns at once; on others, this goroutine writes.
func (s *Server) sendEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, first []byte, reader *actors.Reader) error {
	s.leaveRequest(exchangeOf(r.Context())) // from here on it is a stream, which has its own limit
	header := w.Header()
	header.Set("Content-Type", eventStreamType)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	opening := appendEvents(appendRetry(nil, retryMillis), first)
	if taken, err := s.takeOver(w, r, opening, reader); taken || err != nil {
		return err
	}
	defer reader.Leave()
	ctx, cancel := s.untilRevoked(r.Context())
	defer cancel()
	w.WriteHeader(stdhttp.StatusOK)
	out := &sseWriter{w: w, control: stdhttp.NewResponseController(w)}
	out.write(opening)
	if err := out.flush(); err != nil {
		return err
	}
	return out.follow(ctx, reader)
}

// leaveStream gives an account's place back, unless the stream goes on without its handler.
func (s *Server) leaveStream(ctx context.Context, account protocol.AccountID) {
	if !exchangeOf(ctx).handedOver {
		s.streams.leave(account)
	}
}

// sseWriter writes a stream from its handler.
type sseWriter struct {
	w        stdhttp.ResponseWriter
	control  *stdhttp.ResponseController
	deadline time.Time // that is on the connection
	said     time.Time
	pending  bool
	err      error // the first one
}

// follow writes what the reader yields, until the end.
func (o *sseWriter) follow(ctx context.Context, reader *actors.Reader) error {
	beat := time.NewTicker(heartbeat / 2)
	defer beat.Stop()
	more := make(waker, 1)
	var room []actors.Run
	for {
		runs, taken := reader.Take(more, room[:0])
		for _, run := range runs {
			if run.Whole() {
				o.write(unframed(run.Rendered(renderChunk)))
			} else {
				o.write(appendEvents(nil, run.Frames()))
			}
		}
		clear(runs)
		room = runs
		var err error
		switch taken {
		case actors.TakenSome, actors.TakenAll:
		case actors.TakenMoved:
			err = actors.ErrMoved
		case actors.TakenLive:
			select {
			case <-more:
			case <-beat.C:
				o.beat()
			case <-ctx.Done():
				return ctx.Err()
			}
		case actors.TakenElsewhere:
			var frames []byte
			var ended bool
			frames, ended, err = reader.Next(ctx, beat.C)
			o.write(appendEvents(nil, frames))
			if err == nil && len(frames) == 0 && !ended {
				o.beat()
			}
		}
		if errors.Is(err, actors.ErrMoved) {
			o.write(appendRetry(nil, handOnMillis()))
			return o.flush()
		}
		if err != nil {
			return err
		}
		if err := o.flush(); err != nil || taken == actors.TakenAll {
			return err
		}
	}
}

func (o *sseWriter) beat() {
	if time.Since(o.said) >= heartbeat/2 {
		o.write([]byte(comment))
	}
}

func (o *sseWriter) write(b []byte) {
	if len(b) == 0 || o.err != nil {
		return
	}
	o.pending = true
	if now := time.Now(); o.deadline.Sub(now) < deadlineLeft {
		o.deadline = now.Add(flushDeadline)
		if err := o.control.SetWriteDeadline(o.deadline); err != nil && !errors.Is(err, stdhttp.ErrNotSupported) {
			o.err = err
			return
		}
	}
	_, o.err = o.w.Write(b)
}

func (o *sseWriter) flush() error {
	if o.err != nil || !o.pending {
		return o.err
	}
	o.pending, o.said = false, time.Now()
	o.err = o.control.Flush()
	return o.err
}

// waker wakes a goroutine that waits for events.
type waker chan struct{}

// Wake implements actors.Waker.
func (w waker) Wake() {
	select {
	case w <- struct{}{}:
	default: // told already
	}
}

// ResumeInput is embedded by inputs of streams that can be resumed.
type ResumeInput struct {
	LastEventID string `header:"Last-Event-ID" doc:"The last sequence that was seen; wins over after."`
	After       string `query:"after" doc:"The last sequence that was seen; 0 for all of it."`
}

// cursor reads where to go on.
func (in *ResumeInput) cursor() (int64, error) {
	text, field := in.After, "query.after"
	if in.LastEventID != "" {
		text, field = in.LastEventID, "header.Last-Event-ID"
	}
	if text == "" {
		return 0, nil
	}
	cursor, err := strconv.ParseInt(text, 10, 64)
	if err != nil || cursor < 0 || strconv.FormatInt(cursor, 10) != text {
		return 0, protocol.Invalid(field, "must be a sequence: a whole number from 0")
	}
	return cursor, nil
}
