package shell

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/gammazero/deque"
)

// Dispatcher runs the actors that have messages, on one worker goroutine per processor. By default protoactor starts a
// new goroutine whenever an actor has messages; such a goroutine starts with a small stack, which the first decision
// has to grow. The workers keep their grown stacks. Actors are served in order: an actor that gets messages waits for
// those that got messages earlier. Sharing the workers is safe because no actor ever blocks (see Behavior).
type Dispatcher struct {
	limit int // maximum number of workers, set by NewDispatcher

	mu       sync.Mutex
	nonEmpty sync.Cond
	ready    deque.Deque[func()] // guarded by mu: the runs that wait
	idle     int                 // guarded by mu: number of waiting workers
	workers  int                 // guarded by mu
	closed   bool                // guarded by mu
	done     sync.WaitGroup
}

var _ actor.Dispatcher = (*Dispatcher)(nil)

// throughput is the number of messages that an actor may process before it lets others run.
const throughput = 300

// NewDispatcher returns a dispatcher with at most limit workers.
func NewDispatcher(limit int) *Dispatcher {
	d := &Dispatcher{limit: limit}
	d.nonEmpty.L = &d.mu
	return d
}

// Throughput implements actor.Dispatcher.
func (d *Dispatcher) Throughput() int { return throughput }

// Schedule implements actor.Dispatcher. It never blocks and may be called from within run.
func (d *Dispatcher) Schedule(run func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed: // after close, the remaining messages are for actors that have stopped
		go run()
		return
	case d.idle > 0:
		d.idle--
		d.nonEmpty.Signal()
	case d.workers < d.limit:
		d.workers++
		d.done.Go(d.work)
	}
	d.ready.PushBack(run)
}

func (d *Dispatcher) work() {
	for run := d.take(); run != nil; run = d.take() {
		run()
	}
}

// take waits for the next run of an actor that has messages. It returns nil after close, once none is left.
func (d *Dispatcher) take() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ready.Len() == 0 {
		if d.closed {
			return nil
		}
		d.idle++
		d.nonEmpty.Wait()
	}
	return d.ready.PopFront()
}

// Close stops the workers once ready is empty, and waits for them.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closed = true
	d.nonEmpty.Broadcast()
	d.mu.Unlock()
	d.done.Wait()
}
