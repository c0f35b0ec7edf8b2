package http

import (
	"context"
	"strings"
	"unicode/utf8"

	"turnstone/persistence"
	"turnstone/protocol"
)

func (s *Server) followUpRoutes() []route {
	const queue = "/conversations/{conversation_id}/follow-ups"
	return []route{
		call("GET", queue, "listFollowUps",
			"Lists the follow-ups of a conversation in their order: those that wait, were started or were cancelled, or with state=open only those that wait.", reads, s.listFollowUps).
			about("In the order of the queue."),
		call("PATCH", queue+"/{follow_up_id}", "changeFollowUp",
			"Edits, holds, releases or cancels what waits. Released while nothing is live, the queue goes on at once.", writes, s.changeFollowUp).
			about("The version is required (If-Match or version). An item that has started or was cancelled cannot be changed.").
			sends(object{"state": "held", "version": 1}).
			refuses(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeConflict, protocol.CodeTooManyLiveTurns),
	}
}

type listFollowUpsInput struct {
	InConversation
	PageInput
	State string `query:"state" enum:"open,any" default:"any" doc:"open: only queued and held."`
}

func (s *Server) listFollowUps(ctx context.Context, in *listFollowUpsInput) (*body[protocol.List[protocol.FollowUp]], error) {
	scope := "follow-ups " + in.State + " " + in.ConversationID.String()
	after, err := openCursor[persistence.FollowUpPosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := s.DB.ListFollowUps(ctx, callerOf(ctx).AccountID, in.ConversationID, in.State == "any", after, in.Limit)
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}

type changeFollowUpInput struct {
	InConversation
	IfMatch
	FollowUpID protocol.FollowUpID `path:"follow_up_id"`
	Body       struct {
		State   string  `json:"state" enum:"queued,held,cancelled"`
		Content *string `json:"content,omitempty" doc:"What it says from now on; absent: as it is."`
		Version *int64  `json:"version,omitempty" doc:"In place of If-Match; one of them is required."`
	}
}

func (s *Server) changeFollowUp(ctx context.Context, in *changeFollowUpInput) (*versioned[protocol.FollowUp], error) {
	version, err := in.version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	if text := in.Body.Content; text != nil {
		if strings.TrimSpace(*text) == "" {
			return nil, protocol.Invalid("body.content", "must hold text")
		}
		if utf8.RuneCountInString(*text) > protocol.MaxInputRunes {
			return nil, protocol.Invalid("body.content", "is too long")
		}
	}
	item, err := s.Turns.ChangeFollowUp(ctx, &protocol.FollowUpChange{
		AccountID: callerOf(ctx).AccountID, ConversationID: in.ConversationID, FollowUpID: in.FollowUpID,
		State: in.Body.State, Content: in.Body.Content, Version: version, At: s.now(),
	})
	if err != nil {
		return nil, err
	}
	return withETag(*item, item.Version), nil
}
