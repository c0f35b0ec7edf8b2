package http

import (
	"context"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// cancelPoll is how often a deletion looks whether the turn that it cancelled has ended.
const cancelPoll = 50 * time.Millisecond

type deleteConversationInput struct {
	InConversation
	IfMatch
	Confirm string `header:"X-Confirm" doc:"While a turn is live: the token of the 409 confirmation_required before."`
}

func (s *Server) deleteConversation(ctx context.Context, in *deleteConversationInput) (*nothing, error) {
	version, err := in.version(nil)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	deletion := &persistence.Deletion{
		ConversationID: in.ConversationID, Version: version, SessionID: &caller.SessionID, By: exchangeOf(ctx).requester(),
	}
	live, err := s.DB.DeleteConversation(ctx, caller.AccountID, deletion)
	if err != nil || live == nil {
		return nil, err
	}
	if err := s.confirmDeletion(ctx, in, live); err != nil {
		return nil, err
	}
	if err := s.Turns.CancelTurn(ctx, caller.AccountID, live.TurnID, protocol.CancelledByDeletion); err != nil {
		return nil, err
	}
	return nil, s.deleteAfter(ctx, in, deletion, live.TurnID)
}

// deleteAfter deletes as soon as a cancelled turn has ended. It gives up with the request; a turn that began meanwhile
// needs a confirmation of its own.
func (s *Server) deleteAfter(ctx context.Context, in *deleteConversationInput, deletion *persistence.Deletion, cancelled protocol.TurnID) error {
	ticker := time.NewTicker(cancelPoll)
	defer ticker.Stop()
	for {
		live, err := s.DB.DeleteConversation(ctx, callerOf(ctx).AccountID, deletion)
		if err != nil || live == nil {
			return err
		}
		if live.TurnID != cancelled {
			return s.confirmDeletion(ctx, in, live)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return protocol.Errorf(protocol.CodeUnavailable, "The live turn was cancelled but has not ended yet. Try again.")
		}
	}
}

func (s *Server) confirmDeletion(ctx context.Context, in *deleteConversationInput, live *persistence.LiveWork) error {
	return s.confirm(ctx, in.Confirm, in.ConversationID.String(), live.Version, live.WillDelete)
}
