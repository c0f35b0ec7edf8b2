package sse

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"turnstone/actors/tail"
)

// source decides what a reader gets next, for both transports.
type source struct {
	reader  Reader
	chunked bool   // the source frames the body as HTTP/1.1 chunks; otherwise net/http frames it
	head    []byte // the first bytes; nil once they were taken
	render  func(b, frames []byte) []byte
	atEnd   func() // called before the client can see the end of the body; may be nil
}

// progress is the position of a source after next.
type progress int

const (
	progressMore     progress = iota // call next again
	progressCaughtUp                 // the waker is notified when more follows
	progressInLog                    // what follows is not in memory: call fromLog
	progressEnded                    // the body is complete
)

// buffers are the memory for writing one stream at a time.
type buffers struct {
	runs []tail.Run
	out  []byte
}

// next returns the bytes to write next. They are shared by all readers of a chunk, or are in the buffers. stop ends the
// body. beat adds a comment if there is nothing else to write.
func (s *source) next(waker tail.Waker, to *buffers, stop, beat bool) (b []byte, shared bool, p progress) {
	runs, taken := s.reader.Take(waker, to.runs[:0])
	to.runs = runs
	if stop {
		taken = tail.TakenEnd
	}
	if s.chunked && len(runs) == 1 && runs[0].Whole() && s.head == nil && taken == tail.TakenSome {
		return runs[0].Rendered(renderChunk), true, progressMore
	}
	b = append(to.out[:0], s.head...)
	s.head = nil
	for _, run := range runs {
		b = s.appendRun(b, run)
	}
	switch taken {
	case tail.TakenSome:
		p = progressMore
	case tail.TakenCaughtUp:
		p = progressCaughtUp
		if beat && len(b) == 0 {
			b = s.append(b, appendComment)
		}
	case tail.TakenNotInMemory:
		p = progressInLog
	case tail.TakenMoved:
		b, p = s.appendMoved(b), progressEnded
	case tail.TakenEnd:
		b, p = s.appendEnd(b), progressEnded
	}
	to.out = b
	return b, false, p
}

// fromLog reads events that are not in memory and returns the bytes to write; none if the reader has found no events and does
// not wait for them. If beat fires while it waits, it returns a comment.
func (s *source) fromLog(ctx context.Context, beat <-chan time.Time) (b []byte, p progress, err error) {
	frames, ended, err := s.reader.Next(ctx, beat)
	switch {
	case errors.Is(err, tail.ErrMoved):
		return s.appendMoved(nil), progressEnded, nil
	case errors.Is(err, tail.ErrNone):
		return nil, progressMore, nil
	case err != nil:
		return nil, progressEnded, err
	case ended:
		return s.appendEnd(s.appendFrames(nil, frames)), progressEnded, nil
	case len(frames) == 0:
		return s.append(nil, appendComment), progressMore, nil
	}
	return s.appendFrames(nil, frames), progressMore, nil
}

func (s *source) appendRun(b []byte, run tail.Run) []byte {
	if !run.Whole() {
		return s.appendFrames(b, run.Frames())
	}
	chunk := run.Rendered(renderChunk)
	if !s.chunked {
		chunk = unframed(chunk)
	}
	return append(b, chunk...)
}

func (s *source) appendFrames(b, frames []byte) []byte {
	return s.append(b, func(b []byte) []byte { return s.render(b, frames) })
}

// appendMoved appends a short reconnection time and the end of the body: another node continues the turn.
func (s *source) appendMoved(b []byte) []byte {
	return s.appendEnd(s.append(b, func(b []byte) []byte { return appendRetry(b, handoverRetryMillis()) }))
}

// appendEnd appends the end of the body.
func (s *source) appendEnd(b []byte) []byte {
	if s.atEnd != nil {
		s.atEnd()
	}
	if s.chunked {
		b = append(b, lastChunk...)
	}
	return b
}

// append appends what write appends, framed if the body is framed here.
func (s *source) append(b []byte, write func([]byte) []byte) []byte {
	if s.chunked {
		return appendChunk(b, write)
	}
	return write(b)
}

func (s *Stream) render() func(b, frames []byte) []byte {
	if s.Render == nil {
		return appendEvents
	}
	return s.Render
}

// handoverRetryMillis returns a random reconnection time. It spreads the reconnects of the readers when a node hands
// over its turns.
func handoverRetryMillis() int {
	return rand.IntN(maxHandoverRetryMillis) // only spreads reconnects
}
