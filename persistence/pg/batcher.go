package pg

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Batcher groups items that callers submit concurrently, so that a group shares one round trip. An item that arrives
// while no group is in flight is processed at once. Items that arrive while a group is in flight wait until it ends, so
// groups grow with the load. When the oldest item has waited for MaxWait, another group starts in parallel.
//
// Order: none. Loss: every item is passed to Work once. Slow work: at most MaxInFlight groups are in flight; the other
// items wait in the queue, whose length the callers bound. Concurrency: Add may be called from any goroutine; the
// workers call Work.
type Batcher[T any] struct {
	// Set by the creator.
	MaxInFlight int           // maximum number of groups in flight
	MaxGroup    int           // maximum number of items in one group
	MaxWait     time.Duration // maximum wait for the end of another group
	Work        func(group []T)

	// Guarded by mu.
	mu      sync.Mutex
	queue   []waiting[T] // oldest first
	workers int
	timer   *time.Timer // set while items wait for a group in flight and another worker may start
}

// waiting is an item that waits for its group.
type waiting[T any] struct {
	item  T
	since time.Time
}

// Add queues an item for the next group. It does not block.
func (g *Batcher[T]) Add(item T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, waiting[T]{item, time.Now()})
	g.startWorker()
}

// startWorker starts another worker if none is running, if the queue holds a whole group, or if the oldest item has
// waited long enough. Otherwise it sets the timer, which calls startWorker again. The caller holds mu.
func (g *Batcher[T]) startWorker() {
	if len(g.queue) == 0 || g.workers == g.MaxInFlight {
		return
	}
	left := g.MaxWait - time.Since(g.queue[0].since)
	switch {
	case g.workers == 0 || len(g.queue) >= g.MaxGroup || left <= 0:
		g.workers++
		go g.run()
	case g.timer == nil:
		g.timer = time.AfterFunc(left, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.timer = nil
			g.startWorker()
		})
	}
}

func (g *Batcher[T]) run() {
	for group := g.take(); group != nil; group = g.take() {
		g.Work(group)
	}
}

// take returns the next group. If the queue is empty, it returns nil and counts the calling worker as ended.
func (g *Batcher[T]) take() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.workers--
		g.queue = nil
		return nil
	}
	n := min(len(g.queue), g.MaxGroup)
	group := make([]T, n)
	for i := range group {
		group[i] = g.queue[i].item
	}
	clear(g.queue[:n]) // the array outlives the slice for a while
	g.queue = g.queue[n:]
	g.startWorker()
	return group
}

// Lookup is one lookup that waits for its group.
type Lookup[Q, A any] struct {
	Key    Q
	Result A
	err    error
	done   chan struct{} // closed when Result or err is set
}

const (
	// lookupGroups limits the groups in flight. It is more than one, so that a connection that hangs does not block all
	// lookups.
	lookupGroups = 4
	maxLookedUp  = 128
	// MaxShareWait is about the time of a round trip on a busy host computer.
	MaxShareWait = 5 * time.Millisecond
)

// Lookups runs concurrent lookups in one shared round trip. The statement of a lookup starts after the lookup was
// submitted, so its result is as fresh as that of a separate round trip.
type Lookups[Q, A any] struct {
	Batcher[*Lookup[Q, A]]
}

// NewLookups returns lookups. find sets the results of a whole group or returns an error for all of it; see
// runTogether.
func NewLookups[Q, A any](find func(ctx context.Context, group []*Lookup[Q, A]) error) *Lookups[Q, A] {
	l := &Lookups[Q, A]{}
	l.MaxInFlight, l.MaxGroup, l.MaxWait = lookupGroups, maxLookedUp, MaxShareWait
	l.Work = func(group []*Lookup[Q, A]) {
		ctx, cancel := context.WithTimeout(context.Background(), RequestTimeout)
		defer cancel()
		runTogether(group, func(some []*Lookup[Q, A]) error {
			return recoverPanic(func() error { return find(ctx, some) })
		})
		for _, q := range group {
			close(q.done)
		}
	}
	return l
}

// runTogether runs a group in one round trip. After a failure that one lookup may have caused, it runs each lookup
// alone.
func runTogether[Q, A any](group []*Lookup[Q, A], find func(some []*Lookup[Q, A]) error) {
	err := find(group)
	if err != nil && len(group) > 1 && !IsOutage(err) {
		runSeparately(group, find)
		return
	}
	failAll(group, err)
}

// runSeparately runs each lookup alone until an outage or a broken connection. That error is the result of all
// remaining lookups, which are not run.
func runSeparately[Q, A any](group []*Lookup[Q, A], find func(some []*Lookup[Q, A]) error) {
	for i, q := range group {
		var none A
		q.Result = none // the failed round trip may have set it
		if q.err = find(group[i : i+1]); IsOutage(q.err) || isBroken(q.err) {
			failAll(group[i:], q.err)
			return
		}
	}
}

// failAll sets the error of a whole group.
func failAll[Q, A any](group []*Lookup[Q, A], err error) {
	for _, q := range group {
		q.err = err
	}
}

// recoverPanic converts a panic of work to an error.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a shared round trip panicked with a %T: %s", p, debug.Stack())
		}
	}()
	return work()
}

// Find submits a lookup and waits for its result. The error is protocol.CodeUnavailable if ctx ends first.
func (l *Lookups[Q, A]) Find(ctx context.Context, key Q) (result A, err error) {
	q := &Lookup[Q, A]{Key: key, done: make(chan struct{})}
	l.Add(q)
	select {
	case <-q.done:
		return q.Result, q.err
	case <-ctx.Done():
		return result, Unavailable(ctx.Err())
	}
}
