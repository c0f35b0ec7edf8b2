package sse

import (
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gammazero/deque"
	"go.uber.org/zap"
)

// pump runs the streams that have something to write, in the order in which they were woken, on at most GOMAXPROCS
// goroutines, and on none while there is nothing to write. Its zero value is ready to use.
type pump struct {
	mu      sync.Mutex
	queue   deque.Deque[*liveStream] // guarded by mu
	workers int                      // guarded by mu
	idle    []*streamWriter          // guarded by mu
}

func (p *pump) push(l *liveStream) {
	p.mu.Lock()
	p.queue.PushBack(l)
	another := p.workers < runtime.GOMAXPROCS(0)
	if another {
		p.workers++
	}
	p.mu.Unlock()
	if another {
		go p.work()
	}
}

func (p *pump) work() {
	out := p.writer()
	defer p.done(out)
	for l := p.pop(); l != nil; l = p.pop() {
		l.run(out)
	}
}

// pop returns the next stream; nil when the worker must end.
func (p *pump) pop() *liveStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.Len() == 0 {
		p.workers--
		return nil
	}
	return p.queue.PopFront()
}

// streamWriter has the buffers for writing one stream at a time.
type streamWriter struct {
	buffers
	bytes []byte // to write
	n     int
	err   error
	write func(fd uintptr) bool
}

// maxIdleBuffer limits the memory, in bytes, that an idle writer retains.
const maxIdleBuffer = 64 << 10

func (p *pump) writer() *streamWriter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		out := p.idle[last]
		p.idle = p.idle[:last]
		return out
	}
	out := &streamWriter{}
	out.write = func(fd uintptr) bool {
		out.n, out.err = syscall.Write(int(fd), out.bytes)
		return out.err != syscall.EINTR //nolint:errorlint // an errno, never wrapped
	}
	return out
}

func (p *pump) done(out *streamWriter) {
	clear(out.runs[:cap(out.runs)])
	out.bytes = nil
	if cap(out.out) > maxIdleBuffer {
		out.out = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < 2*runtime.GOMAXPROCS(0) {
		p.idle = append(p.idle, out)
	}
}

// try writes as much as fits into the connection's send buffer. If that is not all of b, the error is nil or EAGAIN.
func (w *streamWriter) try(raw syscall.RawConn, b []byte) (int, error) {
	w.bytes, w.n, w.err = b, 0, nil
	if err := raw.Write(w.write); err != nil {
		return 0, err
	}
	return max(0, w.n), w.err
}

// sweepInterval is the interval at which the streams are checked for a due heartbeat comment.
const sweepInterval = time.Second

// liveStreams are the streams whose connections were taken over; net/http no longer tracks these connections. Its zero
// value is ready to use.
type liveStreams struct {
	mu             sync.Mutex
	slots          []*liveStream // guarded by mu; nil: free
	free           []int32       // guarded by mu; the free indexes of slots
	open           int           // guarded by mu
	lastGeneration int32         // guarded by mu; counts up, and so distinguishes the successive streams in one slot
	disconnects    *disconnects  // guarded by mu; nil while no stream is open, or if it could not be created
	stop           chan struct{} // guarded by mu; ends the sweep
	drained        chan struct{} // guarded by mu; closed when the last stream ends; nil: no waiter
}

// streamSlot identifies a stream in liveStreams: its index in slots, and the value of lastGeneration when it was added.
type streamSlot struct{ index, generation int32 }

func (s *liveStreams) add(l *liveStream, log *zap.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == 0 {
		s.begin(log)
	}
	s.open++
	s.lastGeneration++
	if last := len(s.free) - 1; last >= 0 {
		l.slot.index = s.free[last]
		s.free = s.free[:last]
	} else {
		l.slot.index = int32(len(s.slots)) // there are never that many connections
		s.slots = append(s.slots, nil)
	}
	l.slot.generation = s.lastGeneration
	s.slots[l.slot.index] = l
	if err := s.disconnects.add(l.conn, l.slot); err != nil {
		log.Warn("a connection cannot be watched; only a write to it detects a disconnect", zap.Error(err))
	}
}

// begin starts the watch for disconnects and the sweep. mu must be held.
func (s *liveStreams) begin(log *zap.Logger) {
	var err error
	if s.disconnects, err = newDisconnects(s.clientDisconnected); err != nil {
		log.Error("connections cannot be watched; only a write to a connection detects a disconnect", zap.Error(err))
	}
	s.stop = make(chan struct{})
	go s.sweep(s.stop)
}

func (s *liveStreams) remove(l *liveStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[l.slot.index] = nil
	s.free = append(s.free, l.slot.index)
	if s.open--; s.open > 0 {
		return
	}
	s.slots, s.free = nil, nil
	close(s.stop)
	s.disconnects.close()
	s.disconnects = nil
	if s.drained != nil {
		close(s.drained)
		s.drained = nil
	}
}

// clientDisconnected ends the stream whose client closed its side of the connection.
func (s *liveStreams) clientDisconnected(slot streamSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(slot.index) >= len(s.slots) {
		return
	}
	if l := s.slots[slot.index]; l != nil && l.slot == slot {
		l.end(causeDisconnected)
	}
}

// sweep requests the heartbeat comments that are due, until stop is closed.
func (s *liveStreams) sweep(stop <-chan struct{}) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.each(time.Since(processStart), (*liveStream).checkHeartbeat)
		}
	}
}

func (s *liveStreams) each(now time.Duration, do func(*liveStream, time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.slots {
		if l != nil {
			do(l, now)
		}
	}
}

// whenDrained returns a channel that is closed when no stream is open.
func (s *liveStreams) whenDrained() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	empty := s.drained
	if s.open == 0 {
		close(s.drained)
		s.drained = nil
	}
	return empty
}
