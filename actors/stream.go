package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"turnstone/protocol"
)

// maxTail is how much of a live turn's log stays in memory for readers: more than a client misses while it reconnects.
// Older events are read from Postgres, logPage at a time.
const (
	maxTail = 64 << 10
	logPage = 256 << 10
)

// stream is the committed tail of one live turn. The turn's actor publishes; readers hold a cursor and are woken. Nothing
// is pushed, so nothing is dropped and a slow reader costs the turn nothing.
//
// Order: frames come in sequence, without gaps, exactly as committed. Resume: a cursor behind the tail is served from
// the durable log. Close: ended is set after the last frame; gone means that the turn lives elsewhere now, or nowhere,
// and the reader looks it up again. Concurrency: one publisher, any number of readers.
type stream struct {
	mu      sync.Mutex
	chunks  []*Chunk // guarded by mu; contiguous, the last one ends at last
	size    int      // guarded by mu; bytes of chunks
	last    int64    // guarded by mu; the last committed sequence
	ending  bool     // guarded by mu; the end is being stored
	ended   bool     // guarded by mu; last is turn.finished
	gone    bool     // guarded by mu
	waiting *Reader  // guarded by mu; the first of those that wait, linked by next and previous
}

// Chunk is a run of committed events. All readers of a turn get the same one, so what is made of it is made once.
type Chunk struct {
	first, last int64
	frames      []byte // immutable
	once        sync.Once
	rendered    []byte // set by once, then immutable
}

// Frames are the events, one a line. Nobody may change them.
func (c *Chunk) Frames() []byte { return c.frames }

// Rendered is what render makes of the frames: by the first reader who asks, for all of them. Nobody may change it.
func (c *Chunk) Rendered(render func(frames []byte) []byte) []byte {
	c.once.Do(func() { c.rendered = render(c.frames) })
	return c.rendered
}

func newStream(last int64) *stream { return &stream{last: last} }

// publish shows committed frames first..last.
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

// finishing hears that the end is about to be stored: from then on memory may be behind what is durable.
func (s *stream) finishing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
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

// wakeAll tells everybody who waits; with mu held.
func (s *stream) wakeAll() {
	for r := s.waiting; r != nil; {
		next := r.next
		r.next, r.previous, r.listed = nil, nil, false
		r.waker.Wake()
		r = next
	}
	s.waiting = nil
}

// list makes a reader one of those that wait, unlist takes it out; with mu held.
func (s *stream) list(r *Reader) {
	if r.listed {
		return
	}
	r.listed, r.previous, r.next = true, nil, s.waiting
	if s.waiting != nil {
		s.waiting.previous = r
	}
	s.waiting = r
}

func (s *stream) unlist(r *Reader) {
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

// take gives a reader what follows its cursor, or lists it.
func (s *stream) take(r *Reader, waker Waker, into []Run) ([]Run, Taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.cursor >= s.last {
		switch {
		case s.ended:
			r.ended = true
			return into, TakenAll
		case s.gone:
			return into, TakenElsewhere
		}
		r.waker = waker
		s.list(r)
		return into, TakenLive
	}
	if len(s.chunks) == 0 || r.cursor+1 < s.chunks[0].first {
		return into, TakenElsewhere
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
		return into, TakenAll
	}
	return into, TakenSome
}

// Waker is told that a reader has something to take. Wake is called by the turn's actor, so it must not block and not
// call the reader.
type Waker interface{ Wake() }

// Run is a chunk, or what follows its first skipped events.
type Run struct {
	*Chunk
	skip int64
}

// Whole says whether the run is all of its chunk.
func (r Run) Whole() bool { return r.skip == 0 }

// Frames are the events of the run, one a line. Nobody may change them.
func (r Run) Frames() []byte { return protocol.SkipFrames(r.frames, r.skip) }

// Taken is where a reader stands after Take.
type Taken int

const (
	// TakenSome means that there may be more at once.
	TakenSome Taken = iota
	// TakenLive means that there was nothing, and that the waker will be told.
	TakenLive
	// TakenElsewhere means that what follows is not in memory: Next gets it.
	TakenElsewhere
	// TakenAll means that nothing follows, ever.
	TakenAll
	// TakenMoved is Next's ErrMoved.
	TakenMoved
)

// Reader follows one turn from a sequence to its end, wherever the turn lives. It is used by one goroutine at a time,
// which calls Leave at the end.
type Reader struct {
	node    *Node
	account protocol.AccountID
	turn    protocol.TurnID
	cursor  int64
	ended   bool
	level   bool    // nothing followed the cursor when the log was last looked at
	stream  *stream // the last one that was read; nil before
	signal  signal  // of Next; nil before it waits

	// Guarded by stream.mu.
	waker          Waker
	next, previous *Reader
	listed         bool
}

// ErrMoved ends a reader on a node that drains or stops: the turn goes on elsewhere, and so should its reader.
var ErrMoved = errors.New("the turn is handed on to another node")

// signal wakes a goroutine that waits in Next.
type signal chan struct{}

// Wake implements Waker.
func (s signal) Wake() {
	select {
	case s <- struct{}{}:
	default: // told already
	}
}

// Take appends what follows the cursor and is in memory, without waiting. When there is nothing it says why; the waker
// is told once when that changes, if it is TakenLive.
func (r *Reader) Take(waker Waker, into []Run) ([]Run, Taken) {
	if r.ended {
		return into, TakenAll
	}
	if r.stream != nil {
		if runs, taken := r.stream.take(r, waker, into); taken != TakenElsewhere {
			return runs, taken
		}
	}
	live := r.node.live(r.turn)
	if live == nil || live.account != r.account {
		if r.node.Draining() {
			return into, TakenMoved
		}
		return into, TakenElsewhere
	}
	if live.stream == r.stream {
		return into, TakenElsewhere
	}
	r.stream = live.stream
	return r.stream.take(r, waker, into)
}

// Leave ends the reading: nobody is told any more.
func (r *Reader) Leave() {
	if r.stream == nil {
		return
	}
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	r.stream.unlist(r)
}

// Reaches says whether the turn lives here, belongs to the reader's account, and has come as far as the cursor: then
// nothing needs to be looked up to follow it. When it says no, nothing is known.
func (r *Reader) Reaches() bool {
	live := r.node.live(r.turn)
	if live == nil || live.account != r.account || live.deleting.Load() || !r.node.leased() {
		return false
	}
	live.stream.mu.Lock()
	defer live.stream.mu.Unlock()
	s := live.stream
	return !s.gone && !s.ending && !s.ended && r.cursor <= s.last
}

// Next waits for events after the cursor and returns them, one a line, and whether the last of them ends the turn. When
// beat fires first it returns nothing, so that the caller can show that it lives. It returns ctx's error when ctx is
// done, and ErrMoved when the reader should connect again. After the end it returns no frames and true.
func (r *Reader) Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error) {
	if r.signal == nil {
		r.signal = make(signal, 1)
	}
	for {
		runs, taken := r.Take(r.signal, nil)
		if len(runs) > 0 {
			return joined(runs), r.ended, nil
		}
		switch taken {
		case TakenAll:
			return nil, true, nil
		case TakenMoved:
			return nil, false, ErrMoved
		case TakenElsewhere:
			frames, err = r.fromLog(ctx, beat)
		case TakenLive, TakenSome:
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
	if len(runs) == 1 { // the usual reader has all but the newest chunk: no copy
		return runs[0].Frames()
	}
	var frames []byte
	for _, run := range runs {
		frames = append(frames, run.Frames()...)
	}
	return frames
}

var errBeat = errors.New("the heartbeat came first")

// Cursor is the sequence of the last event that was returned.
func (r *Reader) Cursor() int64 { return r.cursor }

// How often a reader looks at the end of a log that is not written here: while a node elsewhere writes it, and while
// nobody does. When the turn comes to life here it is told. After a crash every reader of the node waits for an owner.
const (
	tailPoll   = 250 * time.Millisecond
	orphanPoll = time.Second
)

// fromLog reads the durable log, and waits at its present end.
func (r *Reader) fromLog(ctx context.Context, beat <-chan time.Time) ([]byte, error) {
	if !r.level {
		frames, last, err := r.node.turnLog.TurnFrames(ctx, r.account, r.turn, r.cursor, logPage)
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 {
			r.cursor, r.ended = last, protocol.EndsTurn(frames)
			return frames, nil
		}
	}
	head, err := r.node.turnLog.TurnHead(ctx, r.account, r.turn)
	if err != nil {
		return nil, err
	}
	if r.level = head.LastSequence <= r.cursor; !r.level {
		return nil, nil
	}
	if head.State.Terminal() {
		r.ended = true
		return nil, nil
	}
	pause := orphanPoll
	if head.Owner != nil && !head.OwnerDead && *head.Owner != r.node.id {
		pause = tailPoll
	}
	if !r.node.await(r.turn, r.stream, r.signal) {
		return nil, nil
	}
	defer r.node.forsake(r.turn, r.signal)
	timer := time.AfterFunc(pause, r.signal.Wake)
	defer timer.Stop()
	return nil, wait(ctx, r, beat)
}

// wait waits until somebody says something.
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
