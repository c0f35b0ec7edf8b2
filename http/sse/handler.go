package sse

import (
	"context"
	"errors"
	stdhttp "net/http"
	"time"

	"turnstone/actors/tail"
)

// serveHandler writes a stream in the goroutine of its handler.
func (s *Server) serveHandler(w stdhttp.ResponseWriter, r *stdhttp.Request, stream *Stream) error {
	defer stream.Reader.Leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	h := &handlerStream{w: w, control: stdhttp.NewResponseController(w), cancel: cancel}
	s.sessions.add(stream.Account, stream.Session, h)
	defer s.sessions.remove(stream.Session, h)
	w.WriteHeader(stdhttp.StatusOK)
	return h.follow(ctx, &source{reader: stream.Reader, render: stream.render(), head: stream.render()(appendRetry(nil, retryMillis), stream.First)})
}

// handlerStream writes a stream through net/http.
type handlerStream struct {
	w         stdhttp.ResponseWriter
	control   *stdhttp.ResponseController
	cancel    context.CancelFunc
	deadline  time.Time // set on the connection
	lastFlush time.Time // when the last flush started
}

func (h *handlerStream) sessionEnded() { h.cancel() }

// follow writes the events of a source until the log ends, ctx ends, or writing fails.
func (h *handlerStream) follow(ctx context.Context, from *source) error {
	ticker := time.NewTicker(heartbeat / 2)
	defer ticker.Stop()
	more := make(tail.Signal, 1)
	var to buffers
	for beat := false; ; {
		b, _, p := from.next(more, &to, false, beat)
		clear(to.runs)
		beat = false
		err := h.write(b)
		if err == nil && p == progressInLog {
			if b, p, err = from.fromLog(ctx, ticker.C); err == nil {
				err = h.write(b)
			}
		}
		if err != nil || p == progressEnded {
			return err
		}
		if p != progressCaughtUp {
			continue
		}
		select {
		case <-more:
		case <-ticker.C:
			beat = time.Since(h.lastFlush) >= heartbeat/2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write writes and flushes b.
func (h *handlerStream) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	now := time.Now()
	if h.deadline.Sub(now) < minFlushTime {
		h.deadline = now.Add(flushDeadline)
		if err := h.control.SetWriteDeadline(h.deadline); err != nil && !errors.Is(err, stdhttp.ErrNotSupported) {
			return err
		}
	}
	if _, err := h.w.Write(b); err != nil {
		return err
	}
	h.lastFlush = now
	return h.control.Flush()
}
