package host

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/shell"
	"turnstone/protocol"
)

// Actor is the entry of an actor. W is what else the kind of work keeps with it.
type Actor[W any] struct {
	Account protocol.AccountID
	Epoch   int32
	Work    W

	pid  *actor.PID
	done <-chan struct{}
	over bool // guarded by actors.mu: the actor only lingers
}

// Done returns a channel that is closed when the actor has stopped.
func (a *Actor[W]) Done() <-chan struct{} { return a.done }

// actors lists the actors of a host, and the work that the host is adopting. It also decides whether an actor may start. Its
// zero value is ready to use, and any goroutine may call its methods.
type actors[ID comparable, W any] struct {
	mu       sync.Mutex
	running  map[ID]*Actor[W] // guarded by mu: actors that run or linger
	adopting map[ID]int32     // guarded by mu: epochs of claimed work that is being read
	draining bool             // guarded by mu
	stopped  bool             // guarded by mu
	idle     chan struct{}    // guarded by mu: closed when no actor runs; nil: no caller waits
}

// find returns the entry of an actor; nil if there is none.
func (a *actors[ID, W]) find(id ID) *Actor[W] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running[id]
}

// isActive reports whether an actor still decides.
func (a *actors[ID, W]) isActive(entry *Actor[W]) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !entry.over
}

// add starts an actor with spawn, which must not block, and lists it. It returns false, and starts nothing, when the host is stopped or already has
// an actor of this epoch or a later one.
func (a *actors[ID, W]) add(id ID, entry *Actor[W], spawn func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.running[id]; a.stopped || old != nil && old.Epoch >= entry.Epoch {
		return false
	}
	spawn()
	if a.running == nil {
		a.running = map[ID]*Actor[W]{}
	}
	a.running[id] = entry
	return true
}

// ended notes that an actor makes no more decisions. A finished actor is still found for commands while it lingers; a
// lost one is removed at once.
func (a *actors[ID, W]) ended(id ID, epoch int32, status shell.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.running[id]; entry != nil && entry.Epoch == epoch {
		entry.over = true
		if status == shell.Lost {
			delete(a.running, id)
		}
	}
	a.checkIdle()
}

// remove removes an actor that has finished lingering.
func (a *actors[ID, W]) remove(id ID, epoch int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.running[id]; entry != nil && entry.Epoch == epoch {
		delete(a.running, id)
	}
	a.checkIdle()
}

// checkIdle closes idle when no actor runs any more, except lingering ones. The caller holds mu.
func (a *actors[ID, W]) checkIdle() {
	if a.idle == nil {
		return
	}
	for _, entry := range a.running {
		if !entry.over {
			return
		}
	}
	close(a.idle)
	a.idle = nil
}

// beginAdoption notes that the host is adopting a piece of work. Until endAdoption, the work does not count as missing.
func (a *actors[ID, W]) beginAdoption(id ID, epoch int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.adopting == nil {
		a.adopting = map[ID]int32{}
	}
	a.adopting[id] = epoch
}

// endAdoption notes that an adoption is over: the work has an actor, or may be claimed again.
func (a *actors[ID, W]) endAdoption(id ID, epoch int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.adopting[id] == epoch {
		delete(a.adopting, id)
	}
}

// runsOrAdopts reports whether the host runs the work in this epoch, or is adopting it.
func (a *actors[ID, W]) runsOrAdopts(id ID, epoch int32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.running[id]; entry != nil && entry.Epoch == epoch {
		return true
	}
	return a.adopting[id] == epoch // epochs start at 1, so a missing entry never matches
}

// count returns the number of actors that run, without those that only linger, and of pieces of work that are being adopted.
func (a *actors[ID, W]) count() (running, adopting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, entry := range a.running {
		if !entry.over {
			running++
		}
	}
	return running, len(a.adopting)
}

// isClosing reports whether the host drains or is stopped.
func (a *actors[ID, W]) isClosing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.draining || a.stopped
}

// drain makes the host refuse new work.
func (a *actors[ID, W]) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
}

// each calls f for every actor that runs, except lingering ones.
func (a *actors[ID, W]) each(f func(*Actor[W])) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, entry := range a.running {
		if !entry.over {
			f(entry)
		}
	}
}

// whenIdle calls each for every actor that runs. The channel is closed when none runs; a later call replaces it.
func (a *actors[ID, W]) whenIdle(each func(*Actor[W])) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	idle := make(chan struct{})
	a.idle = idle
	for _, entry := range a.running {
		if !entry.over {
			each(entry)
		}
	}
	a.checkIdle()
	return idle
}

// stop makes the host start nothing any more, and returns the actors that it has.
func (a *actors[ID, W]) stop() []*Actor[W] {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	all := make([]*Actor[W], 0, len(a.running))
	for _, entry := range a.running {
		all = append(all, entry)
	}
	return all
}

// unlessStopped calls start, which must not block, unless stop was called. It reports whether it has.
func (a *actors[ID, W]) unlessStopped(start func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return false
	}
	start()
	return true
}
