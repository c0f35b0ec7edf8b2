package turn

import (
	"context"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// CreateFollowUp adds a follow-up to a queue. If no turn of the conversation is live, it starts one on this node.
func (h *Host) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	on, err := queueRunner(ctx, h, f.AccountID, true)
	if err != nil {
		return nil, err
	}
	item, started, err := h.followUps.CreateFollowUp(ctx, f, on)
	return continueQueue(ctx, h, item, started, err)
}

// ChangeFollowUp changes a follow-up. If that lets the queue continue, it starts the next turn on this node.
func (h *Host) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error) {
	on, err := queueRunner(ctx, h, change.AccountID, change.State == protocol.FollowUpQueued)
	if err != nil {
		return nil, err
	}
	item, started, err := h.followUps.ChangeFollowUp(ctx, change, on)
	return continueQueue(ctx, h, item, started, err)
}

// PromoteFollowUp makes a follow-up the next turn of its conversation. If it interrupts the live turn, the promotion is
// stored before that turn is cancelled; a repeat continues after a failure in between. An error of the cancel means
// that the outcome is unknown.
func (h *Host) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error) {
	on, err := queueRunner(ctx, h, promotion.AccountID, true)
	if err != nil {
		return nil, err
	}
	item, live, started, err := h.followUps.PromoteFollowUp(ctx, promotion, on)
	if item, err = continueQueue(ctx, h, item, started, err); err != nil || live == nil {
		return item, err
	}
	if err := failpoint.Before(failpoint.PromoteAfterCommit); err != nil {
		return nil, err
	}
	return item, failpoint.After(failpoint.PromoteAfterCommit, h.CancelTurn(ctx, promotion.AccountID, *live, protocol.CancelledByUser, protocol.CancelTurn))
}

// queueRunner returns this node as the one that runs the next turn of a queue, unless it drains: then another node, or
// the next process, continues the queue. A change that can start a turn is refused when the token budget is used up.
func queueRunner(ctx context.Context, h *Host, account protocol.AccountID, starts bool) (turnlog.Runner, error) {
	if budget := h.calls.metered.Budget; budget != nil && starts {
		if err := budget.Check(ctx, account); err != nil {
			return turnlog.Runner{}, err
		}
	}
	if h.Draining() {
		return turnlog.Runner{}, nil
	}
	return h.runner(), nil
}

// continueQueue runs the turn that a change of a queue has started, if there is one.
func continueQueue(ctx context.Context, h *Host, item *protocol.FollowUp, started *turnlog.Started, err error) (*protocol.FollowUp, error) {
	if err != nil {
		return nil, err
	}
	if started != nil {
		h.begin(ctx, *started)
	}
	return item, nil
}
