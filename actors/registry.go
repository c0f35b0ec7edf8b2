package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/protocol"
)

// registry lists the turns that run on this node, the turns that the node is adopting, and the wakers of readers and
// commands that wait for a turn to run here. It also decides whether a turn may start. Its zero value is ready to use,
// and any goroutine may call its methods.
type registry struct {
	mu       sync.Mutex
	turns    map[protocol.TurnID]*liveTurn               // guarded by mu: actors that run or linger
	adopting map[protocol.TurnID]int32                   // guarded by mu: epochs of claimed turns whose logs are being read
	wakers   map[protocol.TurnID]map[tail.Waker]struct{} // guarded by mu: woken when the turn starts to run
	draining bool                                        // guarded by mu
	stopped  bool                                        // guarded by mu
	idle     chan struct{}                               // guarded by mu: closed when no turn runs; nil: no caller waits
}

// liveTurn is the entry of an actor.
type liveTurn struct {
	account protocol.AccountID
	epoch   int32
	pid     *actor.PID
	stream  *tail.Stream
	done    <-chan struct{} // closed when the actor has stopped
	over    bool            // guarded by registry.mu: the actor only lingers
	// deleting is set when the conversation is being deleted: the store must decide whether the account may still read
	// it.
	deleting atomic.Bool
}

// find returns the entry of a turn's actor; nil when this node has none.
func (g *registry) find(turn protocol.TurnID) *liveTurn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns[turn]
}

// add starts an actor with spawn, registers it, and notifies the wakers of the turn. It returns false, and starts
// nothing, when the node is stopped or already has an actor of this epoch or a later one.
func (g *registry) add(turn protocol.TurnID, live *liveTurn, spawn func() *actor.PID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.turns[turn]; g.stopped || old != nil && old.epoch >= live.epoch {
		return false
	}
	live.pid = spawn()
	if g.turns == nil {
		g.turns = map[protocol.TurnID]*liveTurn{}
	}
	g.turns[turn] = live
	g.wakeLocked(turn)
	return true
}

// wake notifies the wakers of a turn, because it runs on another node now.
func (g *registry) wake(turn protocol.TurnID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wakeLocked(turn)
}

// wakeLocked notifies the wakers of a turn, and removes them. The caller holds mu.
func (g *registry) wakeLocked(turn protocol.TurnID) {
	for waker := range g.wakers[turn] {
		waker.Wake()
	}
	delete(g.wakers, turn)
}

// ended notes that an actor makes no more decisions. A finished actor is still found for commands while it lingers; a
// lost one is removed at once.
func (g *registry) ended(turn protocol.TurnID, epoch int32, status shell.Status) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if live := g.turns[turn]; live != nil && live.epoch == epoch {
		live.over = true
		if status == shell.Lost {
			delete(g.turns, turn)
		}
	}
	g.checkIdle()
}

// remove removes an actor that has finished lingering.
func (g *registry) remove(turn protocol.TurnID, epoch int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if live := g.turns[turn]; live != nil && live.epoch == epoch {
		delete(g.turns, turn)
	}
	g.checkIdle()
}

// checkIdle closes idle when no actor runs any more, except lingering ones. The caller holds mu.
func (g *registry) checkIdle() {
	if g.idle == nil {
		return
	}
	for _, live := range g.turns {
		if !live.over {
			return
		}
	}
	close(g.idle)
	g.idle = nil
}

// addWaker registers a waker that is woken when the turn starts to run on this node; removeWaker removes it. It returns
// false, without registering, when the turn already runs on this node with a stream other than known.
func (g *registry) addWaker(turn protocol.TurnID, known *tail.Stream, waker tail.Waker) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if live := g.turns[turn]; live != nil && live.stream != known {
		return false
	}
	if g.wakers == nil {
		g.wakers = map[protocol.TurnID]map[tail.Waker]struct{}{}
	}
	if g.wakers[turn] == nil {
		g.wakers[turn] = map[tail.Waker]struct{}{}
	}
	g.wakers[turn][waker] = struct{}{}
	return true
}

// removeWaker removes a waker that addWaker registered.
func (g *registry) removeWaker(turn protocol.TurnID, waker tail.Waker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.wakers[turn], waker)
	if len(g.wakers[turn]) == 0 {
		delete(g.wakers, turn)
	}
}

// waitUntilRunning waits until the turn runs on this node with a stream other than known, or until atMost has passed.
// It returns ctx's error when ctx ends first.
func (g *registry) waitUntilRunning(ctx context.Context, turn protocol.TurnID, known *tail.Stream, atMost time.Duration) error {
	running := make(tail.Signal, 1)
	if !g.addWaker(turn, known, running) {
		return nil
	}
	defer g.removeWaker(turn, running)
	timer := time.AfterFunc(atMost, running.Wake)
	defer timer.Stop()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginAdoption notes that the node is adopting a turn. Until endAdoption, the turn does not count as missing.
func (g *registry) beginAdoption(turn protocol.TurnID, epoch int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.adopting == nil {
		g.adopting = map[protocol.TurnID]int32{}
	}
	g.adopting[turn] = epoch
}

// endAdoption notes that an adoption is over: the turn has an actor, or the keeper may claim it again.
func (g *registry) endAdoption(turn protocol.TurnID, epoch int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.adopting[turn] == epoch {
		delete(g.adopting, turn)
	}
}

// runsOrAdopts reports whether this node runs the turn in this epoch, or is adopting it.
func (g *registry) runsOrAdopts(turn protocol.TurnID, epoch int32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if live := g.turns[turn]; live != nil && live.epoch == epoch {
		return true
	}
	return g.adopting[turn] == epoch // epochs start at 1, so a missing entry never matches
}

// running returns the number of turns that run on this node, without those that only linger.
func (g *registry) running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, live := range g.turns {
		if !live.over {
			count++
		}
	}
	return count
}

// load returns the number of turns that run on this node or are being adopted.
func (g *registry) load() int {
	running := g.running()
	g.mu.Lock()
	defer g.mu.Unlock()
	return running + len(g.adopting)
}

// acceptsTurns reports whether the node accepts new turns: it neither drains nor is stopped.
func (g *registry) acceptsTurns() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.draining && !g.stopped
}

func (g *registry) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// drain makes the node refuse new turns. The channel is closed when no turn runs.
func (g *registry) drain() <-chan struct{} {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	return g.whenIdle(func(*liveTurn) {})
}

// whenIdle calls each for every turn that runs. The channel is closed when no turn runs; a later call of whenIdle
// replaces it.
func (g *registry) whenIdle(each func(*liveTurn)) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	idle := make(chan struct{})
	g.idle = idle
	for _, live := range g.turns {
		if !live.over {
			each(live)
		}
	}
	g.checkIdle()
	return idle
}

// stop makes the node start nothing any more, and returns the actors that it has.
func (g *registry) stop() []*liveTurn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	turns := make([]*liveTurn, 0, len(g.turns))
	for _, live := range g.turns {
		turns = append(turns, live)
	}
	return turns
}

// unlessStopped calls start, which must not block, unless stop was called.
func (g *registry) unlessStopped(start func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		start()
	}
}
