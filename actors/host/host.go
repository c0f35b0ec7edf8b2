package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/retry"
	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

const (
	claimLimit = 20 // per claim, so that the remaining nodes share the work of a dead one
	// fullClaimLimit is the limit of a claim of a host without room for more, which claims once in each round.
	fullClaimLimit = 2
	// releaseWait is the time for the writes that are in flight when the grace of a drain is over.
	releaseWait = 5 * time.Second
)

// ErrGone means that an actor has ended without a reply: the outcome is in the store.
var ErrGone = &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: 1}

// Node is what a host needs of its node.
type Node struct {
	ID           protocol.NodeID
	Runtime      *shell.Runtime
	LeaseIsValid func() bool // no other node can own the work of this one
}

// Claim names a piece of work that a node has claimed, and the epoch of the claim.
type Claim[ID comparable] interface {
	Work() (id ID, epoch int32)
}

// Kind is what a host needs to know of its kind of work. C is a claim of it. StoreKind implements it on a store.
type Kind[C any] interface {
	// ClaimDue claims at most limit pieces of work that no running node owns.
	ClaimDue(ctx context.Context, limit int) ([]C, error)
	// Owned lists the unfinished work that this node owns, for comparison with its actors.
	Owned(ctx context.Context) ([]C, error)
	// ClaimLost claims work that this node owns already, because its actor is gone; ownership.ErrFenced when the work has
	// ended or has another owner or epoch.
	ClaimLost(ctx context.Context, claim C) (C, error)
	// Continue reads claimed work and starts its actor with Host.Spawn. It runs in a goroutine of its own; ctx ends with
	// Host.Stop. If it starts none, the work is claimed again later.
	Continue(ctx context.Context, claim C)
}

// Config is the configuration of a Host.
type Config struct {
	Node     Node
	Name     string // of the kind of work: the first part of the names of its actors
	Capacity int    // pieces of work up to which a claim of many is made; 0: no limit
	Release  any    // the message that makes an actor end its work, when the grace of a drain is over; nil: shell.Release
	Closing  func() // called when the host begins to drain, and when it stops; nil: nothing
	Broken   func() // called when an actor has panicked; nil: nothing
}

// Host runs the work of one kind on a node. ID identifies a piece of work, and W is what the kind keeps with its actor. Its
// methods may be called from any goroutine.
type Host[ID comparable, C Claim[ID], W any] struct {
	// Set by New.
	config Config
	kind   Kind[C]
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   sync.Once

	actors  actors[ID, W]
	missing map[ID]int32 // owned by Round: epochs of the own work that had no actor in the last round
}

// New returns a host that runs nothing.
func New[ID comparable, C Claim[ID], W any](c Config, kind Kind[C]) *Host[ID, C, W] {
	if c.Release == nil {
		c.Release = shell.Release{}
	}
	h := &Host[ID, C, W]{config: c, kind: kind}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Context returns a context that ends with Stop.
func (h *Host[ID, C, W]) Context() context.Context { return h.ctx }

// Go runs f in a goroutine that Stop waits for. Once the host is stopped, it does nothing: f is for an actor or for the
// host, and they end as well. Use GoOr if anybody else waits for f.
func (h *Host[ID, C, W]) Go(f func()) { h.GoOr(f, func() {}) }

// GoOr is Go for work that somebody waits for: once the host is stopped, it calls stopped instead of f.
func (h *Host[ID, C, W]) GoOr(f, stopped func()) {
	if !h.actors.unlessStopped(func() { h.wg.Go(f) }) {
		stopped()
	}
}

// Store runs an operation on the store of the work in a goroutine of its own, and repeats it while the store is unavailable. done
// gets its error: ErrGone once the host is stopped. failed logs the first failure of an outage.
func (h *Host[ID, C, W]) Store(try func(context.Context) error, failed, done func(error)) {
	h.GoOr(func() {
		err := retry.OnStore(h.ctx, retry.Unavailable, failed, func() error { return try(h.ctx) })
		if err != nil && h.ctx.Err() != nil {
			err = ErrGone
		}
		done(err)
	}, func() { done(ErrGone) })
}

// Shell returns the shell of an actor with a behavior, for Spawn.
func (h *Host[ID, C, W]) Shell(b shell.Behavior, id ID, epoch int32, log *zap.Logger) *shell.Shell {
	return shell.New(b, h.config.Node.Runtime.Send, log, owner[ID, C, W]{h, id, epoch})
}

// Spawn starts an actor with its first messages. It returns nil, and starts nothing, if the host is stopped or already has an
// actor of this epoch or a later one.
func (h *Host[ID, C, W]) Spawn(id ID, entry *Actor[W], s *shell.Shell, first ...any) *Actor[W] {
	entry.done = s.Stopped()
	if !h.actors.add(id, entry, func() {
		entry.pid = h.config.Node.Runtime.Spawn(fmt.Sprintf("%s/%v/%d/", h.config.Name, id, entry.Epoch), s)
		for _, message := range first { // before anybody finds the actor
			h.Send(entry, message)
		}
	}) {
		return nil
	}
	return entry
}

// Send sends a message to an actor.
func (h *Host[ID, C, W]) Send(to *Actor[W], message any) { h.config.Node.Runtime.Send(to.pid, message) }

// owner implements shell.Owner for an actor of a host.
type owner[ID comparable, C Claim[ID], W any] struct {
	host  *Host[ID, C, W]
	id    ID
	epoch int32
}

// Broken implements shell.Owner.
func (o owner[ID, C, W]) Broken() {
	if o.host.config.Broken != nil {
		o.host.config.Broken()
	}
}

// Ended implements shell.Owner.
func (o owner[ID, C, W]) Ended(status shell.Status) { o.host.actors.ended(o.id, o.epoch, status) }

// Gone implements shell.Owner.
func (o owner[ID, C, W]) Gone() { o.host.actors.remove(o.id, o.epoch) }

// Find returns the actor of a piece of work of an account: one that runs, or that has finished and lingers. It is nil if this
// host has none.
func (h *Host[ID, C, W]) Find(account protocol.AccountID, id ID) *Actor[W] {
	if entry := h.actors.find(id); entry != nil && entry.Account == account {
		return entry
	}
	return nil
}

// FindActive is Find without actors that have finished.
func (h *Host[ID, C, W]) FindActive(account protocol.AccountID, id ID) *Actor[W] {
	if entry := h.Find(account, id); entry != nil && h.actors.isActive(entry) {
		return entry
	}
	return nil
}

// Count returns the number of actors that run, without those that only linger, and of pieces of work that are being adopted.
func (h *Host[ID, C, W]) Count() (running, adopting int) { return h.actors.count() }

// Running returns the number of actors that run.
func (h *Host[ID, C, W]) Running() int {
	running, _ := h.actors.count()
	return running
}

// Draining reports whether the host refuses new work, because it drains or is stopped.
func (h *Host[ID, C, W]) Draining() bool { return h.actors.isClosing() }

// Room returns the number of pieces of work that the host may take over at once. A host takes over what its capacity leaves
// room for, so that the nodes with most room adopt most. A full one still takes over some: work that was accepted has to
// continue, even if all nodes are full.
func (h *Host[ID, C, W]) Room() int {
	if h.config.Capacity == 0 {
		return claimLimit
	}
	running, adopting := h.actors.count()
	return min(max(h.config.Capacity-running-adopting, fullClaimLimit), claimLimit)
}

// Adopt restores claimed work and continues it. Until that is done, the work does not count as missing.
func (h *Host[ID, C, W]) Adopt(claim C) {
	id, epoch := claim.Work()
	h.actors.beginAdoption(id, epoch)
	over := func() { h.actors.endAdoption(id, epoch) }
	h.GoOr(func() {
		defer over()
		h.kind.Continue(h.ctx, claim)
	}, over)
}

// Claim claims at most limit pieces of work that no running node owns, and adopts them. more reports that there may be others.
func (h *Host[ID, C, W]) Claim(ctx context.Context, limit int) (more bool, err error) {
	room := h.Room()
	claims, err := h.kind.ClaimDue(ctx, min(limit, room))
	if err != nil {
		return false, err
	}
	for _, claim := range claims {
		h.Adopt(claim)
	}
	return len(claims) >= room && room > fullClaimLimit, nil
}

// Round claims and adopts work that no running node owns, and own work that had no actor in two consecutive rounds. more reports
// that there may be other work to claim. The node calls it in every round, from one goroutine.
func (h *Host[ID, C, W]) Round(ctx context.Context) (more bool, err error) {
	if more, err = h.Claim(ctx, claimLimit); err != nil {
		return false, err
	}
	own, err := h.kind.Owned(ctx)
	if err != nil {
		return more, err
	}
	missing := map[ID]int32{}
	for _, claim := range own {
		id, epoch := claim.Work()
		if h.actors.runsOrAdopts(id, epoch) {
			continue
		}
		if last, twice := h.missing[id]; !twice || last != epoch {
			missing[id] = epoch
			continue
		}
		claim, err := h.kind.ClaimLost(ctx, claim)
		if errors.Is(err, ownership.ErrFenced) {
			continue // it ended or changed its owner in the meantime
		} else if err != nil {
			return more, err
		}
		h.Adopt(claim)
	}
	h.missing = missing
	return more, nil
}

// StartDrain makes the host refuse new work.
func (h *Host[ID, C, W]) StartDrain() {
	h.actors.drain()
	h.closing()
}

func (h *Host[ID, C, W]) closing() {
	if h.config.Closing != nil {
		h.config.Closing()
	}
}

// Drain gives the work in progress until grace to end, and makes the rest stop at a persisted boundary. StartDrain was called
// before.
func (h *Host[ID, C, W]) Drain(ctx context.Context, grace time.Duration) {
	idle := h.actors.whenIdle(func(*Actor[W]) {})
	for _, step := range []struct {
		wait time.Duration
		then any
	}{{grace, h.config.Release}, {releaseWait, shell.Release{}}} {
		wait, cancel := context.WithTimeout(ctx, step.wait)
		select {
		case <-idle:
			cancel()
			return
		case <-wait.Done(): // after releaseWait the store is unavailable: other nodes continue when the lease has expired
		}
		cancel()
		idle = h.actors.whenIdle(func(entry *Actor[W]) { h.Send(entry, step.then) })
	}
}

// Isolate implements node.Host. It does nothing: readers of most kinds of work read the store, and end when they cannot.
func (h *Host[ID, C, W]) Isolate(bool) {}

// Each calls f for the work of every actor that runs, except those that only linger. f must not block.
func (h *Host[ID, C, W]) Each(f func(work W)) {
	h.actors.each(func(entry *Actor[W]) { f(entry.Work) })
}

// Abandon ends all work at once without writing to the store, because the node was declared dead. Nothing starts any more.
func (h *Host[ID, C, W]) Abandon() {
	for _, entry := range h.actors.stop() {
		h.Send(entry, shell.Abandon{})
	}
	h.closing()
}

// Stop ends all work at once and waits for its end. Another node or the next process continues it.
func (h *Host[ID, C, W]) Stop() {
	h.stop.Do(func() {
		all := h.actors.stop()
		h.cancel()
		h.closing()
		for _, entry := range all {
			h.config.Node.Runtime.Stop(entry.pid)
		}
		for _, entry := range all {
			<-entry.done
		}
		h.wg.Wait()
	})
}
