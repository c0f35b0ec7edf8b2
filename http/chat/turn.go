package chat

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/protocol"
)

type listTurnsInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listTurns(ctx context.Context, in *listTurnsInput) (*resource.Body[protocol.List[protocol.Turn]], error) {
	scope, caller := "turns "+in.ConversationID.String(), router.CallerOf(ctx)
	after, err := resource.OpenCursor[protocol.TurnID](caller, h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := h.Store.ListTurns(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.Listed(caller, h.Keys, scope, page, next), nil
}
