package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	stdhttp "net/http"
	"strconv"
	"sync"
	"time"

	"turnstone/actors"
	"turnstone/protocol"
)

const (
	heartbeat       = 10 * time.Second // of silence, then a comment shows that the stream lives
	flushDeadline   = 10 * time.Second // for one flush; a reader who takes longer is let go, and resumes
	retryMillis     = 2000             // what an EventSource waits before it resumes
	defaultStreams  = 50               // open streams of one account on one node, where Config is silent
	retryStreams    = 5                // seconds until an account with too many streams may have closed one
	maxHandOnMillis = 1000             // the spread of reconnects when a node hands its turns on
)

// eventReader follows one log of events.
type eventReader interface {
	// Next returns committed events, one a line; nothing when beat fired; ended with the last of them.
	Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error)
}

// streams counts the open streams of each account.
type streams struct {
	mu   sync.Mutex
	open map[protocol.AccountID]int // guarded by mu
}

// enter takes one of an account's places for a stream, before anything is begun for it; the caller leaves when the stream has ended.
func (s *streams) enter(account protocol.AccountID, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[protocol.AccountID]int{}
	}
	if s.open[account] >= most {
		return &protocol.Error{Code: protocol.CodeTooManyStreams, Detail: fmt.Sprintf("At most %d streams may be open.", most), RetryAfter: retryStreams}
	}
	s.open[account]++
	return nil
}

func (s *streams) leave(account protocol.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[account]--; s.open[account] <= 0 {
		delete(s.open, account)
	}
}

// sendEvents writes a stream of server-sent events: what first holds, then what the reader yields, until the end of the
// log, the client's leaving, or the end of the session. It is the one writer of events.
//
// Order: as the log. Resume: every event carries its sequence as id. Slow reader: a flush that takes longer than
// flushDeadline ends this stream only; nothing is dropped, the reader resumes. Close: the body ends after the last event;
// when the node hands its turns on, after a retry of less than a second. An error after the first byte ends the
// connection: an event is never made up.
func (s *Server) sendEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, first []byte, reader eventReader) error {
	ctx, cancel := s.untilRevoked(r.Context())
	defer cancel()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(stdhttp.StatusOK)
	out := sseWriter{w: w, control: stdhttp.NewResponseController(w)}
	out.retry(retryMillis)
	out.events(first)
	if err := out.flush(); err != nil {
		return err
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		frames, ended, err := reader.Next(ctx, ticker.C)
		switch {
		case errors.Is(err, actors.ErrMoved):
			out.retry(rand.IntN(maxHandOnMillis)) //nolint:gosec // only spreads reconnects
			return out.flush()
		case err != nil:
			return err
		case len(frames) > 0:
			out.events(frames)
			ticker.Reset(heartbeat)
		case !ended:
			out.comment()
		}
		if err := out.flush(); err != nil || ended {
			return err
		}
	}
}

// sseWriter gathers frames and writes them in one flush.
type sseWriter struct {
	w       stdhttp.ResponseWriter
	control *stdhttp.ResponseController
	buffer  bytes.Buffer
}

func (o *sseWriter) retry(millis int) {
	o.buffer.WriteString("retry: " + strconv.Itoa(millis) + "\n\n")
}

func (o *sseWriter) comment() { o.buffer.WriteString(": \n\n") }

// events writes one frame an event: id, event and one line of data. The data are the log's bytes.
func (o *sseWriter) events(frames []byte) {
	for line := range protocol.FrameLines(frames) {
		sequence, kind, ok := protocol.FrameHead(line)
		if !ok {
			continue
		}
		o.buffer.WriteString("id: ")
		o.buffer.Write(strconv.AppendInt(o.buffer.AvailableBuffer(), sequence, 10))
		o.buffer.WriteString("\nevent: ")
		o.buffer.WriteString(kind)
		o.buffer.WriteString("\ndata: ")
		o.buffer.Write(line)
		o.buffer.WriteString("\n\n")
	}
}

func (o *sseWriter) flush() error {
	if o.buffer.Len() == 0 {
		return nil
	}
	if err := o.control.SetWriteDeadline(time.Now().Add(flushDeadline)); err != nil && !errors.Is(err, stdhttp.ErrNotSupported) {
		return err
	}
	_, err := o.w.Write(o.buffer.Bytes())
	o.buffer.Reset()
	if err != nil {
		return err
	}
	return o.control.Flush()
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
