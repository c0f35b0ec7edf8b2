package persistence

import (
	"context"
	"sync"
)

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

// question is one look-up that waits for its group.
type question[Q, A any] struct {
	asked  Q
	answer A
	err    error
	done   chan struct{} // closed when answer or err is set
}

const (
	// lookupGroups are under way at once, so that one connection that hangs does not hold up everybody.
	lookupGroups  = 4
	maxLookedUp   = 128
	lookupTimeout = requestTimeout
)

// lookups answers questions that come at the same time by one trip. Each is asked of the database after it came, so its
// answer is as fresh as that of a trip of its own.
type lookups[Q, A any] struct {
	gather[*question[Q, A]]
}

// newLookups makes look-ups; find answers a group, or fails as a whole.
func newLookups[Q, A any](find func(ctx context.Context, group []*question[Q, A]) error) *lookups[Q, A] {
	l := &lookups[Q, A]{}
	l.atOnce, l.most = lookupGroups, maxLookedUp
	l.work = func(group []*question[Q, A]) {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		err := find(ctx, group)
		for _, q := range group {
			q.err = err
			close(q.done)
		}
	}
	return l
}

func (l *lookups[Q, A]) find(ctx context.Context, asked Q) (answer A, err error) {
	q := &question[Q, A]{asked: asked, done: make(chan struct{})}
	l.add(q)
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		return answer, unavailable(ctx.Err())
	}
}
