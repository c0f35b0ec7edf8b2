package turn

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/retry"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

const (
	finishAttempts = 5 // refusals of a turn's end by the store, not counting outages, before the actor gives up
	// maxStoreSlots limits the number of turns that read from the store or end at the same time. They then use half of
	// the database connections that requests also use. When connections to a model break, or a node fails, hundreds of
	// turns read or end at the same moment, and a request waits only one second for a connection.
	maxStoreSlots = 8
)

// storeSlots is a semaphore with a slot for each turn that reads from the store or ends.
type storeSlots chan struct{}

// use runs do once a slot is free. It returns ctx's error when ctx ends first.
func (s storeSlots) use(ctx context.Context, do func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry is retry.OnStore for an operation of which every try takes a slot, and none has one during a pause.
func (s storeSlots) retry(ctx context.Context, judge func(error) retry.Verdict, failed func(error), try func() error) error {
	return retry.OnStore(ctx, judge, failed, func() error { return s.use(ctx, try) })
}

// finish stores the end of a turn, and calls done once: with the turn of the queue that the store has started, nil if there
// is none, or with the error. It retries until the end is stored, the turn is fenced, the node stops, or the store has
// refused the end finishAttempts times. It runs in a separate goroutine, because the end is a transaction.
func (h *Host) finish(m *machine.Machine, batch *turnlog.Append, end *machine.End, done func(next *turnlog.Started, err error)) {
	spec := m.Spec()
	f := &turnlog.Finish{
		Append: *batch, Spec: spec, StopReason: end.Reason, Usage: end.Usage, Error: end.Err,
		ModelID: m.Routing().ModelID, Parts: m.Parts(), Status: end.MessageStatus(), Returned: end.Returned,
		PauseQueue: end.State != protocol.TurnCompleted, DropQueue: end.CancelQueue, Repaired: end.Repaired,
		At: time.Now(),
	}
	if end.WithoutParts {
		f.Parts = nil
	}
	h.GoOr(func() {
		refusals := 0
		judge := func(err error) retry.Verdict {
			if err == nil || errors.Is(err, ownership.ErrFenced) || h.Context().Err() != nil {
				return retry.Stop
			}
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				refusals++ // not an outage: after finishAttempts the actor gives up, and the turn is claimed again
			}
			if refusals == finishAttempts {
				return retry.Stop
			}
			return retry.Again
		}
		failed := func(err error) {
			h.log.Warn("storing the end of a turn failed, will retry", zap.Stringer("turn", spec.TurnID), zap.Error(err))
		}
		var next *turnlog.Started
		err := h.slots.retry(h.Context(), judge, failed, func() (failed error) {
			next, failed = h.store.FinishTurn(h.Context(), f, h.runner())
			return failed
		})
		if err == nil {
			h.stats.finished.Add(1)
		}
		done(next, err)
	}, func() { done(nil, errNotHere) })
}
