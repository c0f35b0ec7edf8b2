package persistence

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// gather collects what callers hand in at the same time, so that it shares a round trip. A quiet service waits for no
// company: what comes while nothing is under way is worked on at once. What comes while a group is under way waits for
// its end, so that groups grow with the load, but never longer than patience: then a further group begins.
//
// Order: none. Loss: everything handed in is given to work once. Slow work: at most atOnce groups are under way; the rest
// waits here, bounded by the callers. Concurrency: add may be called from any goroutine, work is called from the workers.
type gather[T any] struct {
	// Set when made.
	atOnce   int           // groups under way
	most     int           // in one group
	patience time.Duration // of what waits for the end of another group
	work     func(group []T)

	// Guarded by mu.
	mu      sync.Mutex
	queue   []waiting[T] // the oldest first
	workers int
	alarm   *time.Timer // set while something waits beside a worker and another one may begin
}

// waiting is one that waits for its group.
type waiting[T any] struct {
	item  T
	since time.Time
}

func (g *gather[T]) add(item T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, waiting[T]{item, time.Now()})
	g.staff()
}

// staff begins a further worker when there is none, when there is enough for a whole group, or when the oldest has waited
// long enough, and else sees to it that it is asked again in time; with mu held.
func (g *gather[T]) staff() {
	if len(g.queue) == 0 || g.workers == g.atOnce {
		return
	}
	left := g.patience - time.Since(g.queue[0].since)
	switch {
	case g.workers == 0 || len(g.queue) >= g.most || left <= 0:
		g.workers++
		go g.run()
	case g.alarm == nil:
		g.alarm = time.AfterFunc(left, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.alarm = nil
			g.staff()
		})
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
	group := make([]T, n)
	for i := range group {
		group[i] = g.queue[i].item
	}
	clear(g.queue[:n]) // their room lives on for a while
	g.queue = g.queue[n:]
	g.staff()
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
	// sharePatience is about what a trip takes on a busy machine.
	sharePatience = 5 * time.Millisecond
)

// lookups answers questions that come at the same time by one trip. Each is asked of the database after it came, so its
// answer is as fresh as that of a trip of its own.
type lookups[Q, A any] struct {
	gather[*question[Q, A]]
}

// newLookups makes look-ups. find answers a group or fails as a whole; see askTogether.
func newLookups[Q, A any](find func(ctx context.Context, group []*question[Q, A]) error) *lookups[Q, A] {
	l := &lookups[Q, A]{}
	l.atOnce, l.most, l.patience = lookupGroups, maxLookedUp, sharePatience
	l.work = func(group []*question[Q, A]) {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		askTogether(group, func(some []*question[Q, A]) error {
			return unbroken(func() error { return find(ctx, some) })
		})
		for _, q := range group {
			close(q.done)
		}
	}
	return l
}

// askTogether asks a group in one trip, and after a failure that may be the fault of one question asks each alone.
func askTogether[Q, A any](group []*question[Q, A], ask func(some []*question[Q, A]) error) {
	err := ask(group)
	if err != nil && len(group) > 1 && !isOutage(err) {
		askApart(group, ask)
		return
	}
	failAll(group, err)
}

// askApart asks each question alone until an outage, or a connection that breaks again. That is the result of all that
// are left: they are not asked.
func askApart[Q, A any](group []*question[Q, A], ask func(some []*question[Q, A]) error) {
	for i, q := range group {
		var none A
		q.answer = none // the failed trip may have set it
		if q.err = ask(group[i : i+1]); isOutage(q.err) || isBroken(q.err) {
			failAll(group[i:], q.err)
			return
		}
	}
}

func failAll[Q, A any](group []*question[Q, A], err error) {
	for _, q := range group {
		q.err = err
	}
}

// unbroken turns a panic of work into an error.
func unbroken(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a shared trip panicked with a %T: %s", p, debug.Stack())
		}
	}()
	return work()
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
