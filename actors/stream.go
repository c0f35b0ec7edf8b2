package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"turnstone/protocol"
)

// maxTail is the number of bytes of a live turn's log that stay in memory for readers: more than a client misses while
// it reconnects. Older events are read from Postgres, about logPage bytes at a time.
const (
	maxTail = 64 << 10
	logPage = 256 << 10
)

// stream is the committed tail of one live turn's log. The turn's actor publishes; each reader has a cursor, is woken,
// and takes what follows the cursor.
//
// Order: frames come in sequence, without gaps, exactly as committed. Resume: a cursor behind the tail is served from
// the durable log. Loss: nothing is pushed to readers, so nothing is dropped. Slow reader: it does not delay the turn.
// Close: ended is set after the last frame; gone means that the stream's actor no longer runs the turn, and the reader
// must look the turn up again. Concurrency: one publisher, any number of readers.
type stream struct {
	mu      sync.Mutex
	chunks  []*Chunk // guarded by mu; contiguous, the last one ends at last
	size    int      // guarded by mu; bytes of chunks
	last    int64    // guarded by mu; the last committed sequence
	ending  bool     // guarded by mu; the end is being stored
	ended   bool     // guarded by mu; last is turn.finished
	gone    bool     // guarded by mu
	waiting *Reader  // guarded by mu; the first of the waiting readers, linked by next and previous
}

// Chunk is a sequence of consecutive committed events. All readers of a turn share it, so its rendered form is computed
// once.
type Chunk struct {
	first, last int64
	frames      []byte // immutable
	once        sync.Once
	rendered    []byte // set by once, then immutable
}

// Frames returns the events, one per line. Callers must not change them.
func (c *Chunk) Frames() []byte { return c.frames }

// Rendered returns the result of render for the frames. The first call computes it for all readers. Callers must not
// change it.
func (c *Chunk) Rendered(render func(frames []byte) []byte) []byte {
	c.once.Do(func() { c.rendered = render(c.frames) })
	return c.rendered
}

func newStream(last int64) *stream { return &stream{last: last} }

// publish makes the committed frames first..last visible to readers.
func (s *stream) publish(first, last int64, frames []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks = append(s.chunks, &Chunk{first: first, last: last, frames: frames})
	s.size += len(frames)
	for s.size > maxTail && len(s.chunks) > 1 {
		s.size -= len(s.chunks[0].frames)
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	}
	s.last, s.ended = last, ended
	s.wakeAll()
}

// finishing notes that the end of the turn is about to be stored: from now on memory may be behind the durable log.
func (s *stream) finishing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
}

// abandon notifies readers that this stream gets no more events.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.gone = true
	}
	s.wakeAll()
}

// wakeAll wakes all waiting readers and empties their list. The caller holds mu.
func (s *stream) wakeAll() {
	for r := s.waiting; r != nil; {
		next := r.next
		r.next, r.previous, r.listed = nil, nil, false
		r.waker.Wake()
		r = next
	}
	s.waiting = nil
}

// addWaiting adds a reader to the list of waiting readers. The caller holds mu.
func (s *stream) addWaiting(r *Reader) {
	if r.listed {
		return
	}
	r.listed, r.previous, r.next = true, nil, s.waiting
	if s.waiting != nil {
		s.waiting.previous = r
	}
	s.waiting = r
}

// removeWaiting removes a reader from the list of waiting readers. The caller holds mu.
func (s *stream) removeWaiting(r *Reader) {
	if !r.listed {
		return
	}
	if r.previous != nil {
		r.previous.next = r.next
	} else {
		s.waiting = r.next
	}
	if r.next != nil {
		r.next.previous = r.previous
	}
	r.next, r.previous, r.listed = nil, nil, false
}

// take appends what follows the reader's cursor to into and moves the cursor, or lists the reader as waiting.
func (s *stream) take(r *Reader, waker Waker, into []Run) ([]Run, Taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.cursor >= s.last {
		switch {
		case s.ended:
			r.ended = true
			return into, TakenEnd
		case s.gone:
			return into, TakenNotInMemory
		}
		r.waker = waker
		s.addWaiting(r)
		return into, TakenCaughtUp
	}
	if len(s.chunks) == 0 || r.cursor+1 < s.chunks[0].first {
		return into, TakenNotInMemory
	}
	i := len(s.chunks) - 1
	for s.chunks[i].first > r.cursor+1 {
		i--
	}
	skip := r.cursor + 1 - s.chunks[i].first
	for _, c := range s.chunks[i:] {
		into, skip = append(into, Run{c, skip}), 0
	}
	r.cursor, r.ended = s.last, s.ended
	if s.ended {
		return into, TakenEnd
	}
	return into, TakenSome
}

// Waker is notified when a reader has something to take. The turn's actor calls Wake, so Wake must not block and must
// not call the reader.
type Waker interface{ Wake() }

// Run is a chunk without its first skip events.
type Run struct {
	*Chunk
	skip int64
}

// Whole reports whether the run is the complete chunk.
func (r Run) Whole() bool { return r.skip == 0 }

// Frames returns the events of the run, one per line. Callers must not change them.
func (r Run) Frames() []byte { return protocol.SkipFrames(r.frames, r.skip) }

// Taken is the position of a reader after Take.
type Taken int

const (
	// TakenSome means that runs were appended and that more events may follow at once.
	TakenSome Taken = iota
	// TakenCaughtUp means that the reader has caught up. The waker is notified when more events follow.
	TakenCaughtUp
	// TakenNotInMemory means that the next events are not in memory: Next reads them.
	TakenNotInMemory
	// TakenEnd means that the reader has reached the end of the turn: no event follows.
	TakenEnd
	// TakenMoved corresponds to ErrMoved of Next.
	TakenMoved
)

// Reader follows one turn from a sequence to its end, whichever node runs the turn. It is used by one goroutine at a
// time, which must call Leave at the end.
type Reader struct {
	node     *Node
	account  protocol.AccountID
	turn     protocol.TurnID
	cursor   int64
	ended    bool
	caughtUp bool    // the reader had caught up with the log at the last lookup
	stream   *stream // the last stream that was read; nil before
	signal   Signal  // of Next; nil before its first call

	// Guarded by stream.mu.
	waker          Waker
	next, previous *Reader
	listed         bool
}

// ErrMoved ends a reader on a node that drains or stops: another node continues the turn, and the client should
// reconnect to it.
var ErrMoved = errors.New("another node continues the turn")

// Signal is a Waker for a goroutine that receives from it. It has a capacity of 1.
type Signal chan struct{}

// Wake implements Waker.
func (s Signal) Wake() {
	select {
	case s <- struct{}{}:
	default: // a signal is already pending
	}
}

// Take appends the events that follow the cursor and are in memory, without waiting. When there are none, the result
// gives the reason. For TakenCaughtUp, the waker is notified once when that changes.
func (r *Reader) Take(waker Waker, into []Run) ([]Run, Taken) {
	if r.ended {
		return into, TakenEnd
	}
	if r.stream != nil {
		if runs, taken := r.stream.take(r, waker, into); taken != TakenNotInMemory {
			return runs, taken
		}
	}
	live := r.node.locate(r.account, r.turn)
	if live == nil {
		if r.node.Draining() {
			return into, TakenMoved
		}
		return into, TakenNotInMemory
	}
	if live.stream == r.stream {
		return into, TakenNotInMemory
	}
	r.stream = live.stream
	return r.stream.take(r, waker, into)
}

// Leave ends the reading: the waker is not notified any more.
func (r *Reader) Leave() {
	if r.stream == nil {
		return
	}
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	r.stream.removeWaiting(r)
}

// FollowsLocally reports whether the turn runs on this node, belongs to the reader's account, and has reached the
// cursor: the caller can then follow it without a lookup in the store. When it returns false, the caller must look the
// turn up.
func (r *Reader) FollowsLocally() bool {
	live := r.node.locate(r.account, r.turn)
	if live == nil || live.deleting.Load() || !r.node.leaseIsValid() {
		return false
	}
	live.stream.mu.Lock()
	defer live.stream.mu.Unlock()
	s := live.stream
	return !s.gone && !s.ending && !s.ended && r.cursor <= s.last
}

// Next waits for events after the cursor and returns them, one per line, and whether the last of them ends the turn.
// When beat fires first, it returns no frames, so that the caller can send a heartbeat. It returns ctx's error when ctx
// is done, and ErrMoved when the client should reconnect. After the end it returns no frames and true.
func (r *Reader) Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error) {
	if r.signal == nil {
		r.signal = make(Signal, 1)
	}
	for {
		runs, taken := r.Take(r.signal, nil)
		if len(runs) > 0 {
			return joined(runs), r.ended, nil
		}
		switch taken {
		case TakenEnd:
			return nil, true, nil
		case TakenMoved:
			return nil, false, ErrMoved
		case TakenNotInMemory:
			frames, err = r.fromLog(ctx, beat)
		case TakenCaughtUp, TakenSome:
			err = wait(ctx, r, beat)
		}
		if err != nil || len(frames) > 0 {
			if errors.Is(err, errBeat) {
				err = nil
			}
			return frames, r.ended, err
		}
	}
}

func joined(runs []Run) []byte {
	if len(runs) == 1 { // most readers lack only the newest chunk: no copy
		return runs[0].Frames()
	}
	var frames []byte
	for _, run := range runs {
		frames = append(frames, run.Frames()...)
	}
	return frames
}

var errBeat = errors.New("the heartbeat came first")

// Cursor returns the sequence of the last event that was returned.
func (r *Reader) Cursor() int64 { return r.cursor }

// The intervals at which a reader polls the end of a log that this node does not write: tailPoll while another running
// node owns the turn, orphanPoll otherwise. A reader is also woken when the turn starts to run on this node. orphanPoll
// is long because after a crash all readers of the node poll until the turns have an owner.
const (
	tailPoll   = 250 * time.Millisecond
	orphanPoll = time.Second
)

// fromLog reads the durable log. At the current end of the log it waits.
func (r *Reader) fromLog(ctx context.Context, beat <-chan time.Time) ([]byte, error) {
	if !r.caughtUp {
		frames, last, err := r.node.turnLog.TurnFrames(ctx, r.account, r.turn, r.cursor, logPage)
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 {
			r.cursor, r.ended = last, protocol.EndsTurn(frames)
			return frames, nil
		}
	}
	head, elsewhere, err := r.node.locateOwner(ctx, r.account, r.turn)
	if err != nil {
		return nil, err
	}
	if r.caughtUp = head.LastSequence <= r.cursor; !r.caughtUp {
		return nil, nil
	}
	if head.State.Terminal() {
		r.ended = true
		return nil, nil
	}
	pause := orphanPoll
	if elsewhere {
		pause = tailPoll
	}
	if !r.node.registry.addWaker(r.turn, r.stream, r.signal) {
		return nil, nil
	}
	defer r.node.registry.removeWaker(r.turn, r.signal)
	timer := time.AfterFunc(pause, r.signal.Wake)
	defer timer.Stop()
	return nil, wait(ctx, r, beat)
}

// wait waits until the reader is signalled. It returns errBeat when beat fires first, ErrMoved when the node stops, and
// ctx's error when ctx is done.
func wait(ctx context.Context, r *Reader, beat <-chan time.Time) error {
	select {
	case <-r.signal:
		return nil
	case <-beat:
		return errBeat
	case <-r.node.ctx.Done():
		return ErrMoved
	case <-ctx.Done():
		return ctx.Err()
	}
}
