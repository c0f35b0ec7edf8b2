package http

import (
	"context"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/protocol"
)

// turnHandlers handle the requests that list turns; chatHandlers those that run them.
type turnHandlers struct {
	store TurnStore
	keys  *auth.Keys
}

func (h *turnHandlers) routes() []route.Route {
	return []route.Route{
		route.Call("GET", "/conversations/{conversation_id}/turns", "listTurns", "List turns", route.Lists, h.listTurns).
			DescribedAs("Lists the turns of a conversation on all of its branches, newest first. At most one of them is live."),
	}
}

type listTurnsInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *turnHandlers) listTurns(ctx context.Context, in *listTurnsInput) (*resource.Body[protocol.List[protocol.Turn]], error) {
	scope, caller := "turns "+in.ConversationID.String(), router.CallerOf(ctx)
	after, err := resource.OpenCursor[protocol.TurnID](caller, h.keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := h.store.ListTurns(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.Listed(caller, h.keys, scope, page, next), nil
}
