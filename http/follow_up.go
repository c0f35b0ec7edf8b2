package http

import (
	"context"

	"turnstone/persistence"
	"turnstone/protocol"
)

func (s *Server) followUpRoutes() []route {
	return []route{
		call("GET", "/conversations/{conversation_id}/follow-ups", "listFollowUps",
			"Lists the queue of a conversation in its order, with what was started or cancelled.", reads, s.listFollowUps),
	}
}

type listFollowUpsInput struct {
	InConversation
	PageInput
}

func (s *Server) listFollowUps(ctx context.Context, in *listFollowUpsInput) (*body[protocol.List[protocol.FollowUp]], error) {
	scope := "follow-ups " + in.ConversationID.String()
	after, err := openCursor[persistence.FollowUpPosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := s.DB.ListFollowUps(ctx, callerOf(ctx).AccountID, in.ConversationID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}
