package persistence

import "sync"

// gather collects what callers hand in at the same time, so that it shares a round trip. Nothing waits for company: a
// worker takes what is there, so that a quiet service handles one at a time and a busy one larger groups.
//
// Order: none. Loss: everything handed in is given to work once. Slow work: at most atOnce groups are under way; the rest
// waits here, bounded by the callers. Concurrency: add may be called from any goroutine, work is called from the workers.
type gather[T any] struct {
	// Set when made.
	atOnce int // groups under way
	most   int // in one group
	work   func(group []T)

	// Guarded by mu.
	mu      sync.Mutex
	queue   []T
	workers int
}

func (g *gather[T]) add(item T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, item)
	if g.workers < g.atOnce {
		g.workers++
		go g.run()
	}
}

func (g *gather[T]) run() {
	for group := g.take(); group != nil; group = g.take() {
		g.work(group)
	}
}

// take returns nil when there is nothing left, and the worker counts as gone.
func (g *gather[T]) take() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.workers--
		g.queue = nil
		return nil
	}
	n := min(len(g.queue), g.most)
	group := g.queue[:n:n]
	g.queue = g.queue[n:]
	return group
}
