package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// deleteAttempts limits how often one deletion cancels a turn. It cancels again if another turn, which the confirmation
// also covers, has become live before the conversation was deleted.
const deleteAttempts = 3

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
	for range deleteAttempts {
		live, err := h.Store.DeleteConversation(ctx, caller.AccountID, deletion)
		if err != nil || live == nil {
			return nil, err
		}
		if err := h.confirmDeletion(ctx, in, live); err != nil {
			return nil, err
		}
		if deletion.Tasks = live.WillDelete["live_tasks"]; live.TurnID == nil {
			continue
		}
		// The cancel is durable before the deletion: a crash in between leaves a conversation whose turn was cancelled,
		// and the client repeats the request.
		if err := h.Turns.CancelTurn(ctx, caller.AccountID, *live.TurnID, protocol.CancelledByDeletion, protocol.CancelTurnAndFollowUps); err != nil {
			return nil, err
		}
		deletion.Cancelled = live.TurnID
	}
	return nil, protocol.Errorf(protocol.CodeUnavailable, "The live turn was cancelled but the conversation is not deleted yet. Try again.")
}

func (h *Handlers) confirmDeletion(ctx context.Context, in *deleteConversationInput, live *conversations.LiveWork) error {
	return h.Confirmations.Confirm(exchange.CallerOf(ctx), in.Confirm, in.ConversationID.String(), live.Version, live.WillDelete, resource.Irreversible)
}
