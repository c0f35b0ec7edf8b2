package http

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/actors"
)

// pump runs the streams that have something to write, first come first served, on as many goroutines as there are
// processors, and on none while there is nothing to do. Its zero value is ready.
type pump struct {
	mu      sync.Mutex
	queue   []*liveStream // guarded by mu
	next    int           // guarded by mu; the first one in queue that waits
	workers int           // guarded by mu
	idle    []*writer     // guarded by mu
}

func (p *pump) push(l *liveStream) {
	p.mu.Lock()
	p.queue = append(p.queue, l)
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

// pop takes the next one; nil when the worker is to end.
func (p *pump) pop() *liveStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.queue) {
		p.workers--
		p.queue, p.next = p.queue[:0], 0
		return nil
	}
	l := p.queue[p.next]
	p.queue[p.next] = nil
	p.next++
	if p.next >= poppedMost && p.next > len(p.queue)/2 { // a pump that never stands still must not keep their places
		p.queue, p.next = slices.Delete(p.queue, 0, p.next), 0
	}
	return l
}

// poppedMost is from how many popped places on they are given back.
const poppedMost = 1024

// writer is what writing needs, for one stream at a time.
type writer struct {
	runs  []actors.Run
	room  []byte
	bytes []byte // that are tried
	n     int
	err   error
	write func(fd uintptr) bool
}

// maxRoom is how much of a writer's room stays with it.
const maxRoom = 64 << 10

func (p *pump) writer() *writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		out := p.idle[last]
		p.idle = p.idle[:last]
		return out
	}
	out := &writer{}
	out.write = func(fd uintptr) bool {
		out.n, out.err = syscall.Write(int(fd), out.bytes)
		return out.err != syscall.EINTR //nolint:errorlint // a number of the system
	}
	return out
}

func (p *pump) done(out *writer) {
	clear(out.runs[:cap(out.runs)])
	out.bytes = nil
	if cap(out.room) > maxRoom {
		out.room = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < 2*runtime.GOMAXPROCS(0) {
		p.idle = append(p.idle, out)
	}
}

// try writes what fits into the connection's buffer. With less than all of it goes no error, or EAGAIN.
func (w *writer) try(raw syscall.RawConn, b []byte) (int, error) {
	w.bytes, w.n, w.err = b, 0, nil
	if err := raw.Write(w.write); err != nil {
		return 0, err
	}
	return max(0, w.n), w.err
}

// sweepEvery is how often it is looked whose silence has to be broken.
const sweepEvery = time.Second

// liveStreams are the connections that were taken over: net/http knows nothing of them any more. Its zero value is ready.
type liveStreams struct {
	mu      sync.Mutex
	places  []*liveStream // guarded by mu; nil: free
	free    []int32       // guarded by mu; of places
	open    int           // guarded by mu
	times   int32         // guarded by mu; counts up, so that a place that was given anew is told from before
	hangups *hangups      // guarded by mu; nil while none is open, or where the system has none
	stop    chan struct{} // guarded by mu; ends the sweep
	empty   chan struct{} // guarded by mu; closed when the last one ends; nil while nobody waits
}

// place is where a stream is kept.
type place struct{ at, time int32 }

func (s *liveStreams) add(l *liveStream, log *zap.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == 0 {
		s.begin(log)
	}
	s.open++
	s.times++
	if last := len(s.free) - 1; last >= 0 {
		l.place.at = s.free[last]
		s.free = s.free[:last]
	} else {
		l.place.at = int32(len(s.places)) //nolint:gosec // there are never so many connections
		s.places = append(s.places, nil)
	}
	l.place.time = s.times
	s.places[l.place.at] = l
	if err := s.hangups.add(l.conn, l.place); err != nil {
		log.Warn("a client that leaves is only found by writing to it", zap.Error(err))
	}
}

// begin starts what runs while streams are open; with mu held.
func (s *liveStreams) begin(log *zap.Logger) {
	var err error
	if s.hangups, err = newHangups(s.hungUp); err != nil {
		log.Error("clients that leave are only found by writing to them", zap.Error(err))
	}
	s.stop = make(chan struct{})
	go s.sweep(s.stop)
}

func (s *liveStreams) remove(l *liveStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[l.place.at] = nil
	s.free = append(s.free, l.place.at)
	if s.open--; s.open > 0 {
		return
	}
	s.places, s.free = nil, nil
	close(s.stop)
	s.hangups.close()
	s.hangups = nil
	if s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// hungUp hears that a client closed its side.
func (s *liveStreams) hungUp(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(p.at) >= len(s.places) {
		return
	}
	if l := s.places[p.at]; l != nil && l.place == p {
		l.end(left)
	}
}

func (s *liveStreams) sweep(stop <-chan struct{}) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.each(time.Since(start), (*liveStream).beat)
		}
	}
}

func (s *liveStreams) each(now time.Duration, do func(*liveStream, time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.places {
		if l != nil {
			do(l, now)
		}
	}
}

// CloseStreams waits for the streams whose connections were taken over to end by themselves, until ctx is done, and
// then ends them. http.Server.Shutdown does not know them; call this after it.
func (s *Server) CloseStreams(ctx context.Context) {
	select {
	case <-s.live.ended():
		return
	case <-ctx.Done():
	}
	s.live.each(0, func(l *liveStream, _ time.Duration) { l.end(closing) })
	<-s.live.ended()
}

// ended is closed when no stream is open.
func (s *liveStreams) ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	if s.open == 0 {
		close(s.empty)
		s.empty = nil
	}
	return empty
}
