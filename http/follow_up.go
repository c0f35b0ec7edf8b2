package http

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// followUpHandlers handle the requests for the queues of conversations.
type followUpHandlers struct {
	store FollowUps
	turns Turns
	keys  *auth.Keys
	now   func() time.Time
}

func (h *followUpHandlers) routes() []route.Route {
	const queue = "/conversations/{conversation_id}/follow-ups"
	return []route.Route{
		route.Call("GET", queue, "listFollowUps",
			"List follow-ups", route.Reads, h.listFollowUps).
			DescribedAs("Lists the follow-ups of a conversation in the order of the queue: those that are queued, held, started or cancelled or, with `state=open`, only those that are queued or held."),
		route.Call("PATCH", queue+"/{follow_up_id}", "changeFollowUp",
			"Change a follow-up", route.Writes, h.changeFollowUp).
			DescribedAs("Edits, holds, releases or cancels a follow-up that is queued or held. Requires its current version in If-Match or in `version`. A follow-up that was started or cancelled cannot be changed. If a follow-up is released while no turn is live, the next turn of the queue starts immediately.").
			WithExample(route.Object{"state": "held", "version": 1}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict, protocol.CodeTooManyLiveTurns),
	}
}

type listFollowUpsInput struct {
	resource.InConversation
	resource.PageInput
	State string `query:"state" enum:"open,any" default:"any" doc:"open: only follow-ups that are queued or held."`
}

func (h *followUpHandlers) listFollowUps(ctx context.Context, in *listFollowUpsInput) (*resource.Body[protocol.List[protocol.FollowUp]], error) {
	scope := "follow-ups " + in.State + " " + in.ConversationID.String()
	after, err := resource.OpenCursor[conversations.FollowUpPosition](router.CallerOf(ctx), h.keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := h.store.ListFollowUps(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.State == "any", after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.Listed(router.CallerOf(ctx), h.keys, scope, page, next), nil
}

type changeFollowUpInput struct {
	resource.InConversation
	resource.IfMatch
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
	Body       struct {
		State   protocol.FollowUpState `json:"state" enum:"queued,held,cancelled"`
		Content *string                `json:"content,omitempty" doc:"The new text. Absent: unchanged."`
		Version *int64                 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. One of them is required."`
	}
}

func (h *followUpHandlers) changeFollowUp(ctx context.Context, in *changeFollowUpInput) (*resource.Versioned[protocol.FollowUp], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	if text := in.Body.Content; text != nil {
		if strings.TrimSpace(*text) == "" {
			return nil, protocol.Invalid("body.content", "must contain text")
		}
		if utf8.RuneCountInString(*text) > protocol.MaxInputRunes {
			return nil, protocol.Invalid("body.content", "is too long")
		}
	}
	item, err := h.turns.ChangeFollowUp(ctx, &turnlog.FollowUpChange{
		AccountID: router.CallerOf(ctx).AccountID, ConversationID: in.ConversationID, FollowUpID: in.FollowUpID,
		State: in.Body.State, Content: in.Body.Content, Version: version, At: h.now(),
	})
	if err != nil {
		return nil, err
	}
	return resource.WithETag(*item, item.Version), nil
}
