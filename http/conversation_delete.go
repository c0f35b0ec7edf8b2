package http

import (
	"context"

	"turnstone/persistence"
	"turnstone/protocol"
)

// deleteAttempts bounds how often a deletion cancels a turn that another one, which the confirmation covers too, replaced
// before the conversation was deleted.
const deleteAttempts = 3

type deleteConversationInput struct {
	InConversation
	IfMatch
	Confirm string `header:"X-Confirm" doc:"While a turn is live: the token of the 409 confirmation_required before."`
}

// deleteConversation answers as soon as the cancel of the live turn, if there is one, and the deletion are durable. The
// purge waits for the end of the turn.
func (s *Server) deleteConversation(ctx context.Context, in *deleteConversationInput) (*nothing, error) {
	version, err := in.version(nil)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	deletion := &persistence.Deletion{
		ConversationID: in.ConversationID, Version: version, SessionID: &caller.SessionID, By: exchangeOf(ctx).requester(),
	}
	for range deleteAttempts {
		live, err := s.DB.DeleteConversation(ctx, caller.AccountID, deletion)
		if err != nil || live == nil {
			return nil, err
		}
		if err := s.confirmDeletion(ctx, in, live); err != nil {
			return nil, err
		}
		// Durable before the deletion: a crash in between leaves a conversation whose turn was stopped, and the client repeats.
		if err := s.Turns.CancelTurn(ctx, caller.AccountID, live.TurnID, protocol.CancelledByDeletion); err != nil {
			return nil, err
		}
		deletion.Cancelled = &live.TurnID
	}
	return nil, protocol.Errorf(protocol.CodeUnavailable, "The live turn was cancelled but the conversation is not deleted yet. Try again.")
}

func (s *Server) confirmDeletion(ctx context.Context, in *deleteConversationInput, live *persistence.LiveWork) error {
	return s.confirm(ctx, in.Confirm, in.ConversationID.String(), live.Version, live.WillDelete)
}
