package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

type deleteConversationInput struct {
	resource.InConversation
	resource.IfMatch
	Confirm string `header:"X-Confirm" doc:"Required while a turn or a research task is live: the token of the preceding 409 confirmation_required."`
}

// deleteConversation returns as soon as the deletion and the cancel of the live turn, if there is one, are durable. The
// purge waits until the turn has ended.
func (h *Handlers) deleteConversation(ctx context.Context, in *deleteConversationInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	deletion := &conversations.Deletion{
		ConversationID: in.ConversationID, Version: version, SessionID: &caller.SessionID, By: exchange.Of(ctx).Requester(),
	}
	return nil, h.Store.DeleteWithLiveWork(ctx, caller.AccountID, deletion, conversations.Interruption{
		Confirm: func(live *conversations.LiveWork) error {
			return h.Confirmations.Confirm(caller, in.Confirm, in.ConversationID.String(), live.Version, live.WillDelete, resource.Irreversible)
		},
		Cancel: func(ctx context.Context, turn protocol.TurnID) error {
			return h.Turns.CancelTurn(ctx, caller.AccountID, turn, protocol.CancelledByDeletion, protocol.CancelTurnAndFollowUps)
		},
	})
}
