package turn

import (
	"context"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// CreateFollowUp adds a follow-up to a queue. If no turn of the conversation is live, it starts one on this node.
func (h *Host) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	if err := prepareQueue(ctx, h, &f.Queue, true); err != nil {
		return nil, err
	}
	item, started, err := h.followUps.CreateFollowUp(ctx, f)
	return continueQueue(ctx, h, item, started, err)
}

// ChangeFollowUp changes a follow-up. If that lets the queue continue, it starts the next turn on this node.
func (h *Host) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error) {
	if err := prepareQueue(ctx, h, &change.Queue, change.State == protocol.FollowUpQueued); err != nil {
		return nil, err
	}
	item, started, err := h.followUps.ChangeFollowUp(ctx, change)
	return continueQueue(ctx, h, item, started, err)
}

// PromoteFollowUp makes a follow-up the next turn of its conversation. If it interrupts the live turn, the promotion is
// stored before that turn is cancelled; a repeat continues after a failure in between. An error of the cancel means
// that the outcome is unknown.
func (h *Host) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error) {
	if err := prepareQueue(ctx, h, &promotion.Queue, true); err != nil {
		return nil, err
	}
	item, live, started, err := h.followUps.PromoteFollowUp(ctx, promotion)
	if item, err = continueQueue(ctx, h, item, started, err); err != nil || live == nil {
		return item, err
	}
	if err := failpoint.Before(failpoint.PromoteAfterCommit); err != nil {
		return nil, err
	}
	return item, failpoint.After(failpoint.PromoteAfterCommit, h.CancelTurn(ctx, promotion.AccountID, *live, protocol.CancelledByUser, protocol.CancelTurn))
}

// prepareQueue makes the node run the next turn of a queue, unless it drains: then another node, or the next process,
// continues the queue. A change that can start a turn is refused when the token budget is used up.
func prepareQueue(ctx context.Context, h *Host, queue *turnlog.Queue, starts bool) error {
	if budget := h.calls.metered.Budget; budget != nil && starts {
		if err := budget.Check(ctx, queue.AccountID); err != nil {
			return err
		}
	}
	if !h.Draining() {
		queue.Owner, queue.Begin, queue.MaxLiveTurns = h.node.ID, h.Begin, h.maxLiveTurns
	}
	return nil
}

// continueQueue runs the turn that a change of a queue has started, if there is one.
func continueQueue(ctx context.Context, h *Host, item *protocol.FollowUp, started *turnlog.Started, err error) (*protocol.FollowUp, error) {
	if err != nil {
		return nil, err
	}
	if started != nil {
		h.run(ctx, *started)
	}
	return item, nil
}
