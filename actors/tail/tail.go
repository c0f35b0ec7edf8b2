// Package tail has the committed end of the log of a live turn in memory, for any number of readers.
//
// It knows neither turns nor nodes: package turn publishes to it what a turn of this node has committed, and package
// cluster what a turn of another node has. It reads nothing from a store.
package tail

import (
	"errors"
	"sync"
	"time"

	"turnstone/protocol"
)

// MaxBytes is the number of bytes of a live turn's log that stay in memory for readers: more than a client misses while
// it reconnects. Older events are read from Postgres.
const MaxBytes = 64 << 10

// Stream is the committed tail of one live turn's log. The turn's actor publishes, or a relay if the turn runs on
// another node; each reader has a cursor, is woken, and takes what follows the cursor.
//
// Order: frames come in sequence, without gaps, exactly as committed. Resume: a cursor behind the tail is served from
// the durable log. Loss: nothing is pushed to readers, so nothing is dropped. Slow reader: it does not delay the turn.
// Close: after the last frame the turn has ended; an abandoned stream gets no more frames, and the reader must look the
// turn up again. Concurrency: one publisher, any number of readers.
type Stream struct {
	delay func(time.Duration) // set before the first publication; see Measure

	mu      sync.Mutex
	chunks  []*Chunk // guarded by mu; contiguous, the last one ends at last
	size    int      // guarded by mu; bytes of chunks
	last    int64    // guarded by mu; the last committed sequence
	ending  bool     // guarded by mu; the end is being stored
	ended   bool     // guarded by mu; last is turn.finished
	gone    bool     // guarded by mu
	waiting *Cursor  // guarded by mu; the first of the waiting cursors, linked by next and previous
}

// Measure sets the function that gets the time from the publication of a chunk until its first reader has rendered it. It
// is called before anything is published; nil: nothing is measured.
func (s *Stream) Measure(delay func(time.Duration)) { s.delay = delay }

// Chunk is a sequence of consecutive committed events. All readers of a turn share it, so its rendered form is computed
// once.
type Chunk struct {
	first, last int64
	frames      []byte // immutable
	once        sync.Once
	rendered    []byte              // set by once, then immutable
	delay       func(time.Duration) // gets the delay of the first reader; nil: not measured
	shown       time.Duration       // of the publication, if delay is set
}

// processStart is the origin of the times in chunks. The clock that only counts from there is read faster than the time of
// day.
var processStart = time.Now()

// ErrNone is the error of a reader that has found no events after its cursor in the log, and that does not wait for them: Take
// says what follows.
var ErrNone = errors.New("there are no further events")

// ErrMoved ends a reader on a node that drains or stops: another node continues the turn, and the client should
// reconnect to it.
var ErrMoved = errors.New("another node continues the turn")

// Frames returns the events, one per line. Callers must not change them.
func (c *Chunk) Frames() []byte { return c.frames }

// Rendered returns the result of render for the frames. The first call computes it for all readers. Callers must not
// change it.
func (c *Chunk) Rendered(render func(frames []byte) []byte) []byte {
	c.once.Do(func() {
		c.rendered = render(c.frames)
		if c.delay != nil {
			c.delay(time.Since(processStart) - c.shown)
		}
	})
	return c.rendered
}

// New returns a stream whose last committed event has the sequence last.
func New(last int64) *Stream { return &Stream{last: last} }

// Publish makes the committed frames first..last visible to readers.
func (s *Stream) Publish(first, last int64, frames []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunk := &Chunk{first: first, last: last, frames: frames}
	if s.delay != nil && s.waiting != nil {
		chunk.delay, chunk.shown = s.delay, time.Since(processStart)
	}
	s.chunks = append(s.chunks, chunk)
	s.size += len(frames)
	for s.size > MaxBytes && len(s.chunks) > 1 {
		s.size -= len(s.chunks[0].frames)
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	}
	s.last, s.ended = last, ended
	s.wakeAll()
}

// Finishing notes that the end of the turn is about to be stored: from now on memory may be behind the durable log.
func (s *Stream) Finishing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
}

// Abandon notifies readers that this stream gets no more events.
func (s *Stream) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.gone = true
	}
	s.wakeAll()
}

// Wake wakes all waiting readers, so that they look whether they may wait here any longer.
func (s *Stream) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAll()
}

// wakeAll wakes all waiting readers and empties their list. The caller holds mu.
func (s *Stream) wakeAll() {
	for c := s.waiting; c != nil; {
		next := c.next
		c.next, c.previous, c.listed = nil, nil, false
		c.waker.Wake()
		c = next
	}
	s.waiting = nil
}

// addWaiting adds a cursor to the list of waiting cursors. The caller holds mu.
func (s *Stream) addWaiting(c *Cursor) {
	if c.listed {
		return
	}
	c.listed, c.previous, c.next = true, nil, s.waiting
	if s.waiting != nil {
		s.waiting.previous = c
	}
	s.waiting = c
}

// removeWaiting removes a cursor from the list of waiting cursors. The caller holds mu.
func (s *Stream) removeWaiting(c *Cursor) {
	if !c.listed {
		return
	}
	if c.previous != nil {
		c.previous.next = c.next
	} else {
		s.waiting = c.next
	}
	if c.next != nil {
		c.next.previous = c.previous
	}
	c.next, c.previous, c.listed = nil, nil, false
}

// Take appends what follows a cursor to into and moves the cursor, or lists the cursor as waiting.
func (s *Stream) Take(c *Cursor, waker Waker, into []Run) ([]Run, Taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.After >= s.last {
		switch {
		case s.ended:
			c.Ended = true
			return into, TakenEnd
		case s.gone:
			return into, TakenNotInMemory
		}
		c.waker = waker
		s.addWaiting(c)
		return into, TakenCaughtUp
	}
	if len(s.chunks) == 0 || c.After+1 < s.chunks[0].first {
		return into, TakenNotInMemory
	}
	i := len(s.chunks) - 1
	for s.chunks[i].first > c.After+1 {
		i--
	}
	skip := c.After + 1 - s.chunks[i].first
	for _, chunk := range s.chunks[i:] {
		into, skip = append(into, Run{chunk, skip}), 0
	}
	c.After, c.Ended = s.last, s.ended
	if s.ended {
		return into, TakenEnd
	}
	return into, TakenSome
}

// Waker is notified when a reader has something to take. The publisher calls Wake, so Wake must not block and must
// not call the reader.
type Waker interface{ Wake() }

// Run is a chunk without its first skip events.
type Run struct {
	*Chunk
	skip int64
}

// Whole reports whether the run is the complete chunk.
func (r Run) Whole() bool { return r.skip == 0 }

// First returns the sequence of the first event of the run.
func (r Run) First() int64 { return r.first + r.skip }

// Frames returns the events of the run, one per line. Callers must not change them.
func (r Run) Frames() []byte { return protocol.SkipFrames(r.frames, r.skip) }

// Taken is the position of a reader after Take.
type Taken int

const (
	// TakenSome means that runs were appended and that more events may follow at once.
	TakenSome Taken = iota
	// TakenCaughtUp means that the reader has caught up. The waker is notified when more events follow.
	TakenCaughtUp
	// TakenNotInMemory means that the next events are not in memory: the reader must read them from the log.
	TakenNotInMemory
	// TakenEnd means that the reader has reached the end of the turn: no event follows.
	TakenEnd
	// TakenMoved means that the reader gets no more events on this node; see ErrMoved.
	TakenMoved
)

// Cursor is the position of one reader in a stream, or in the streams of a turn that follow one another. It is used by
// one goroutine at a time.
type Cursor struct {
	After int64 // sequence of the last event that was taken
	Ended bool  // that event ends the turn

	// Guarded by Stream.mu.
	waker          Waker
	next, previous *Cursor
	listed         bool
}

// Leave makes sure that the cursor's waker is not called any more.
func (s *Stream) Leave(c *Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeWaiting(c)
}

// Follows reports whether the stream certainly has everything after a sequence, up to the end of the durable log: it is
// not ended, not about to end and not abandoned.
func (s *Stream) Follows(after int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone && !s.ending && !s.ended && after <= s.last
}

// Signal is a Waker for a goroutine that receives from it. It has a capacity of 1.
type Signal chan struct{}

// Wake implements Waker.
func (s Signal) Wake() {
	select {
	case s <- struct{}{}:
	default: // a signal is already pending
	}
}

// Joined returns the events of all runs, one per line. Callers must not change them.
func Joined(runs []Run) []byte {
	if len(runs) == 1 { // most readers lack only the newest chunk: no copy
		return runs[0].Frames()
	}
	var frames []byte
	for _, run := range runs {
		frames = append(frames, run.Frames()...)
	}
	return frames
}
