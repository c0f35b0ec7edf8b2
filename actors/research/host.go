package research

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/follow"
	"turnstone/actors/host"
	"turnstone/actors/research/machine"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/timelimit"
)

// maxRetryPause is the longest pause before a command that was fenced is tried again.
const maxRetryPause = 40 * time.Millisecond

var commandWait = timelimit.Of(8 * time.Second) // for the reply to a command

// Config is the configuration and the dependencies of a Host.
type Config struct {
	Node     host.Node
	Store    Store
	Worker   Worker
	Capacity int // tasks that run on the node at the same time
	// Entered gets each state that a task of this node enters; nil: nothing.
	Entered func(protocol.ResearchState)
	Logger  *zap.Logger
}

// Host runs the research tasks of a node. Its methods may be called from any goroutine.
type Host struct {
	*host.Host[protocol.TaskID, Claimed, struct{}]

	// Set by New.
	config Config
	log    *zap.Logger
	logs   follow.Logs[protocol.TaskID]
	claims claimLocks
}

// Reader follows the events of one task.
type Reader = follow.Reader[protocol.TaskID]

// running is the entry of a task's actor.
type running = host.Actor[struct{}]

// New creates a host without tasks. It is called before the node starts.
func New(c Config) *Host {
	h := &Host{config: c, log: c.Logger.Named("research")}
	h.Host = host.New[protocol.TaskID, Claimed, struct{}](host.Config{
		Node: c.Node, Name: "research", Closing: h.logs.WakeAll,
	}, host.StoreKind[Claimed, *researchlog.Claim]{
		Node: c.Node.ID, Store: c.Store, Due: h.claimDue,
		Start: func(claim *researchlog.Claim) { h.spawn(claim, resume{}) },
		Unread: func(claim Claimed, err error) {
			h.log.Warn("a claimed research task could not be read", zap.Stringer("task", claim.TaskID), zap.Error(err))
		},
	})
	h.logs.Frames, h.logs.Ends, h.logs.Moved = c.Store.Frames, protocol.EndsResearch, h.Draining
	return h
}

// claimDue claims tasks whose owners have ended, and tasks that wait for a slot, while the node has one.
func (h *Host) claimDue(ctx context.Context, node protocol.NodeID, limit int) ([]Claimed, error) {
	live, adopting := h.Count()
	return h.config.Store.ClaimDue(ctx, node, limit, min(limit, max(0, h.config.Capacity-live-adopting)))
}

// spawn starts the actor of a claimed task with its first message. It returns nil, and starts nothing, if the host is stopped
// or already has an actor of this epoch or a later one.
func (h *Host) spawn(claim *researchlog.Claim, first any) *running {
	r := newTaskActor(h, claim)
	return h.Spawn(claim.TaskID, &running{Account: claim.AccountID, Epoch: claim.Epoch}, r.shell, first)
}

// Drain implements node.Host. A task runs for minutes, so its steps are not awaited: another node continues it at once.
func (h *Host) Drain(ctx context.Context, _ time.Duration) (released int, err error) {
	h.Host.Drain(ctx, 0)
	released, err = h.config.Store.Release(ctx, h.config.Node.ID)
	if err != nil {
		return 0, fmt.Errorf("releasing research tasks: %w", err)
	}
	return released, nil
}

// Create stores a new task. It starts at once if this node has a slot for it.
func (h *Host) Create(ctx context.Context, spec *researchlog.Spec) (*protocol.ResearchTask, error) {
	b := machine.New(spec).NewBatch()
	b.Start()
	begin := b.Append()
	frames, err := protocol.AppendResearchEvents(nil, spec.TaskID, begin.First, spec.CreatedAt, b.Events)
	if err != nil {
		return nil, err
	}
	begin.Frames, begin.At = frames, spec.CreatedAt
	created, err := h.config.Store.Create(ctx, spec, begin)
	if err != nil {
		return nil, err
	}
	h.entered(protocol.ResearchQueued)
	h.Go(func() {
		if _, err := h.Claim(h.Context(), 1); err != nil { // the next round of the node claims it
			h.log.Info("a new research task was not claimed", zap.Stringer("task", spec.TaskID), zap.Error(err))
		}
	})
	return created, nil
}

// Cancel asks a task to end. The cancel is stored when it returns. The error is a conflict if the task has ended.
func (h *Host) Cancel(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error) {
	err := h.command(ctx, account, id, func(b *machine.Batch) error {
		if !b.Cancel() {
			return researchlog.ErrEnded
		}
		return nil
	})
	if err != nil && !errors.Is(err, researchlog.ErrEnded) {
		return nil, err
	}
	current, failed := h.config.Store.Task(context.WithoutCancel(ctx), account, id)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, researchlog.Conflict(current)
	}
	return current, nil
}

// Steer passes a command of the user to a task. The error is that of machine.Batch.Steer.
func (h *Host) Steer(ctx context.Context, account protocol.AccountID, id protocol.TaskID, command *researchlog.Steering) (receipt *protocol.ResearchReceipt, err error) {
	steer := func(b *machine.Batch) (err error) {
		receipt, err = b.Steer(command)
		return err
	}
	err = h.command(ctx, account, id, steer)
	if errors.Is(err, researchlog.ErrEnded) {
		err = h.steerEnded(context.WithoutCancel(ctx), account, id, steer)
	}
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// steerEnded passes a command to a task that has ended: it may be a repeat of one from before the end. The error for any other has the
// task as it is stored.
func (h *Host) steerEnded(ctx context.Context, account protocol.AccountID, id protocol.TaskID, steer func(*machine.Batch) error) error {
	ended, err := h.config.Store.Read(ctx, account, id)
	if err != nil {
		return err
	}
	err = steer(machine.Restore(ended).NewBatch())
	var known *protocol.Error
	if !errors.As(err, &known) || known.Current == nil {
		return err
	}
	current, failed := h.config.Store.Task(ctx, account, id)
	if failed != nil {
		return failed
	}
	known.Current = current
	return err
}

// command lets the actor of a task decide on a command, and returns when the decision is stored. The error is researchlog.ErrEnded
// if the task has ended.
func (h *Host) command(ctx context.Context, account protocol.AccountID, id protocol.TaskID, decide func(*machine.Batch) error) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		err := h.tryCommand(ctx, account, id, decide)
		if !errors.Is(err, ownership.ErrFenced) { // another owner has claimed the task since
			return err
		}
		if stopped := clock.Sleep(ctx, rand.N(maxRetryPause)); stopped != nil { // commands on several nodes do not fence one another again
			return host.ErrGone
		}
	}
}

func (h *Host) tryCommand(ctx context.Context, account protocol.AccountID, id protocol.TaskID, decide func(*machine.Batch) error) error {
	message := command{decide: decide, reply: make(chan error, 1)}
	actor := h.FindActive(account, id)
	if actor == nil {
		// Of several commands for one task, one at a time claims it: each claim ends the one before.
		unlock, err := h.claims.lock(ctx, ownedTask{account, id})
		if err != nil {
			return host.ErrGone
		}
		defer unlock()
		actor = h.FindActive(account, id)
	}
	if actor != nil {
		h.Send(actor, message)
	} else if err := h.startFor(ctx, account, id, message); err != nil {
		return err
	}
	select {
	case err := <-message.reply:
		return err
	case <-ctx.Done():
		return host.ErrGone
	}
}

// startFor claims a task that has no actor here, and starts one with a command. The actor of a task that waits for a slot decides on
// this command, and ends.
func (h *Host) startFor(ctx context.Context, account protocol.AccountID, id protocol.TaskID, message command) error {
	claim, err := h.config.Store.ClaimAny(ctx, account, id, h.config.Node.ID)
	if err != nil {
		return err
	}
	loaded, err := h.config.Store.Load(ctx, claim, h.config.Node.ID)
	if err != nil {
		return err
	}
	message.claimed = true
	switch {
	case h.spawn(loaded, message) != nil:
		return nil
	case h.Draining():
		return host.ErrGone
	}
	return ownership.ErrFenced // there is an actor of a later claim
}

// Follow returns a reader of a task that starts after a sequence. The caller must have checked that the account owns the task.
func (h *Host) Follow(account protocol.AccountID, id protocol.TaskID, after int64) *Reader {
	return h.logs.Follow(account, id, after)
}
