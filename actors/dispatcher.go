package actors

import (
	"runtime"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// dispatcher runs the actors that have messages, on as many goroutines as there are processors. A goroutine for every
// message, which is protoactor's way, begins with a small stack that the first decision has to grow; these have grown
// theirs. Actors take turns: one that has messages waits for those that had some before. This is sound because no actor
// ever blocks (turn_actor.go).
type dispatcher struct {
	limit int // of workers; set by newDispatcher; 0: a goroutine for every message

	mu      sync.Mutex
	some    sync.Cond
	ready   []func() // guarded by mu; from next on
	next    int      // guarded by mu
	idle    int      // guarded by mu: workers that wait
	workers int      // guarded by mu
	closed  bool     // guarded by mu
	done    sync.WaitGroup
}

var _ actor.Dispatcher = (*dispatcher)(nil)

const (
	// actorThroughput is how many messages an actor may take before it lets others run.
	actorThroughput = 300
	// takenMost is from how many taken places on they are given back.
	takenMost = 1024
)

func newDispatcher() *dispatcher {
	d := &dispatcher{limit: runtime.GOMAXPROCS(0)}
	d.some.L = &d.mu
	return d
}

// Throughput implements actor.Dispatcher.
func (d *dispatcher) Throughput() int { return actorThroughput }

// Schedule implements actor.Dispatcher. It never blocks and may be called from within run.
func (d *dispatcher) Schedule(run func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed, d.limit == 0: // closed: what still comes is for actors that have stopped
		go run()
		return
	case d.idle > 0:
		d.idle--
		d.some.Signal()
	case d.workers < d.limit:
		d.workers++
		d.done.Go(d.work)
	}
	d.ready = append(d.ready, run)
}

func (d *dispatcher) work() {
	for run := d.take(); run != nil; run = d.take() {
		run()
	}
}

// take waits for an actor that has messages; nil after close, when there is none.
func (d *dispatcher) take() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.next == len(d.ready) {
		d.ready, d.next = d.ready[:0], 0
		if d.closed {
			return nil
		}
		d.idle++
		d.some.Wait()
	}
	run := d.ready[d.next]
	d.ready[d.next] = nil
	d.next++
	if d.next >= takenMost && d.next > len(d.ready)/2 { // a node that is never idle must not keep the places of what it ran
		d.ready, d.next = slices.Delete(d.ready, 0, d.next), 0
	}
	return run
}

// close ends the workers once nothing is ready, and waits for them.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	d.some.Broadcast()
	d.mu.Unlock()
	d.done.Wait()
}
