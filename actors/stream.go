package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"turnstone/protocol"
)

// maxTail is how much of a live turn's log stays in memory for readers; older events are read from Postgres.
const maxTail = 256 << 10

// stream is the committed tail of one live turn. The turn's actor publishes; readers hold a cursor and are woken. Nothing
// is pushed, so nothing is dropped and a slow reader costs the turn nothing.
//
// Order: frames come in sequence, without gaps, exactly as committed. Resume: a cursor behind the tail is served from
// the durable log. Close: ended is set after the last frame; gone means that the turn lives elsewhere now, or nowhere,
// and the reader looks it up again. Concurrency: one publisher, any number of readers.
type stream struct {
	mu     sync.Mutex
	chunks []chunk       // guarded by mu; contiguous, the last one ends at last
	size   int           // guarded by mu; bytes of chunks
	last   int64         // guarded by mu; the last committed sequence
	ended  bool          // guarded by mu; last is turn.finished
	gone   bool          // guarded by mu
	wake   chan struct{} // guarded by mu; non-nil while somebody waits; closed to wake all
}

type chunk struct {
	first, last int64
	frames      []byte // immutable
}

func newStream(last int64) *stream { return &stream{last: last} }

// publish shows committed frames first..last.
func (s *stream) publish(first, last int64, frames []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = append(s.chunks, chunk{first, last, frames})
	s.size += len(frames)
	for s.size > maxTail && len(s.chunks) > 1 {
		s.size -= len(s.chunks[0].frames)
		s.chunks[0].frames = nil
		s.chunks = s.chunks[1:]
	}
	s.last, s.ended = last, ended
	s.wakeAll()
}

// abandon tells readers that nothing more comes from here.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.gone = true
	}
	s.wakeAll()
}

func (s *stream) wakeAll() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// tail is what a reader at a cursor gets without waiting.
type tail struct {
	frames []byte // events after the cursor
	last   int64
	behind bool // the cursor is older than the tail: read the durable log
	ended  bool // nothing follows last
	gone   bool
	wake   <-chan struct{} // closed when there is more; nil unless frames is empty
}

// after reads the tail behind a cursor.
func (s *stream) after(cursor int64) tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tail{last: s.last, ended: s.ended, gone: s.gone}
	if cursor >= s.last {
		if !s.ended && !s.gone {
			if s.wake == nil {
				s.wake = make(chan struct{})
			}
			t.wake = s.wake
		}
		return t
	}
	if len(s.chunks) == 0 || cursor+1 < s.chunks[0].first {
		t.behind = true
		return t
	}
	i := len(s.chunks) - 1
	for s.chunks[i].first > cursor+1 {
		i--
	}
	head := protocol.SkipFrames(s.chunks[i].frames, cursor+1-s.chunks[i].first)
	if i == len(s.chunks)-1 { // the usual reader has all but the newest chunk: no copy
		t.frames = head
		return t
	}
	size := len(head)
	for _, c := range s.chunks[i+1:] {
		size += len(c.frames)
	}
	t.frames = append(make([]byte, 0, size), head...)
	for _, c := range s.chunks[i+1:] {
		t.frames = append(t.frames, c.frames...)
	}
	return t
}

// Reader follows one turn from a sequence to its end, wherever the turn lives. It is used by one goroutine.
type Reader struct {
	node    *Node
	account protocol.AccountID
	turn    protocol.TurnID
	cursor  int64
	ended   bool
}

// ErrMoved ends a reader on a node that drains or stops: the turn goes on elsewhere, and so should its reader.
var ErrMoved = errors.New("the turn is handed on to another node")

// Next waits for events after the cursor and returns them, one a line, and whether the last of them ends the turn. When
// beat fires first it returns nothing, so that the caller can show that it lives. It returns ctx's error when ctx is
// done, and ErrMoved when the reader should connect again. After the end it returns no frames and true.
func (r *Reader) Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error) {
	for !r.ended {
		if live := r.node.live(r.turn); live != nil && live.account == r.account {
			frames, err = r.fromStream(ctx, live.stream, beat)
		} else if r.node.Draining() {
			return nil, false, ErrMoved
		} else {
			frames, err = r.fromLog(ctx, beat)
		}
		if err != nil || len(frames) > 0 {
			if errors.Is(err, errBeat) {
				err = nil
			}
			return frames, r.ended, err
		}
	}
	return nil, true, nil
}

var errBeat = errors.New("the heartbeat came first")

// Cursor is the sequence of the last event that was returned.
func (r *Reader) Cursor() int64 { return r.cursor }

func (r *Reader) fromStream(ctx context.Context, s *stream, beat <-chan time.Time) ([]byte, error) {
	t := s.after(r.cursor)
	switch {
	case t.behind || t.gone && len(t.frames) == 0:
		return r.fromLog(ctx, beat)
	case len(t.frames) > 0:
		r.cursor, r.ended = t.last, t.ended
		return t.frames, nil
	case t.ended:
		r.ended = true
		return nil, nil
	}
	select {
	case <-t.wake:
		return nil, nil
	case <-beat:
		return nil, errBeat
	case <-r.node.ctx.Done():
		return nil, ErrMoved
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fromLog reads the durable log; at its present end it waits a little before it looks again, because a turn without a
// living owner is about to get one.
func (r *Reader) fromLog(ctx context.Context, beat <-chan time.Time) ([]byte, error) {
	frames, last, err := r.node.turnLog.TurnFrames(ctx, r.account, r.turn, r.cursor, maxTail)
	if err != nil {
		return nil, err
	}
	if len(frames) == 0 {
		head, err := r.node.turnLog.TurnHead(ctx, r.account, r.turn)
		if err != nil {
			return nil, err
		}
		if head.State.Terminal() && head.LastSequence <= r.cursor {
			r.ended = true
			return nil, nil
		}
		if head.LastSequence > r.cursor {
			return nil, nil
		}
		return nil, r.pause(ctx, beat)
	}
	r.cursor = last
	if protocol.EndsTurn(frames) {
		r.ended = true
	}
	return frames, nil
}

func (r *Reader) pause(ctx context.Context, beat <-chan time.Time) error {
	timer := time.NewTimer(tailPoll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-beat:
		return errBeat
	case <-r.node.ctx.Done():
		return ErrMoved
	case <-ctx.Done():
		return ctx.Err()
	}
}
