package sse

import (
	"runtime"
	"sync"
	"syscall"

	"github.com/gammazero/deque"
)

// pump runs the streams that have something to write, in the order in which they were woken, on at most GOMAXPROCS
// goroutines, and on none while there is nothing to write. Its zero value is ready to use.
type pump struct {
	mu      sync.Mutex
	queue   deque.Deque[writable] // guarded by mu
	workers int                   // guarded by mu
	idle    []*streamWriter       // guarded by mu
}

// writable is a stream that has something to write.
type writable interface{ run(out *streamWriter) }

func (p *pump) push(l writable) {
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
func (p *pump) pop() writable {
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
