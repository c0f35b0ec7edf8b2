package http

import (
	"context"

	"turnstone/persistence"
	"turnstone/protocol"
)

func (s *Server) messageRoutes() []route {
	return []route{
		call("GET", "/conversations/{conversation_id}/messages", "listMessages",
			"Pages the messages of a branch, both ways or around one. A page is oldest first whatever its direction.", reads, s.listMessages).
			about("Without a cursor: the newest messages of the active branch. A streaming message has covers_sequence: continue with GET /chat/turns/{turn_id}/events?after= it."),
	}
}

const (
	older = "older"
	newer = "newer"
)

type listMessagesInput struct {
	InConversation
	PageInput
	BranchID  protocol.BranchID  `query:"branch_id" doc:"Default: the active branch; with around, one that shows the message."`
	Direction string             `query:"direction" enum:"older,newer" doc:"Where the pages lead: older (default) from the head to the beginning, newer the other way. A cursor knows its own."`
	Around    protocol.MessageID `query:"around" doc:"Puts this message into the middle of the page. Not with a cursor."`
}

// messageList is a page of a branch.
type messageList struct {
	BranchID    protocol.BranchID  `json:"branch_id" doc:"The branch that is paged."`
	Data        []protocol.Message `json:"data" doc:"Oldest first, in both directions."`
	NextCursor  *string            `json:"next_cursor" doc:"Goes on in the direction of this page."`
	HasMore     bool               `json:"has_more"`
	OlderCursor *string            `json:"older_cursor" doc:"Goes on towards the beginning; null at the beginning."`
	NewerCursor *string            `json:"newer_cursor" doc:"Goes on towards the head; null at the head."`
}

// messagePosition is a place in a branch: the page ends before Depth, or, with Newer, begins after it.
type messagePosition struct {
	Branch protocol.BranchID `json:"b"`
	Depth  int               `json:"d"`
	Newer  bool              `json:"n"`
}

func (s *Server) listMessages(ctx context.Context, in *listMessagesInput) (*body[messageList], error) {
	query, err := s.messageQuery(ctx, in)
	if err != nil {
		return nil, err
	}
	page, err := s.DB.Messages(ctx, callerOf(ctx).AccountID, query)
	if err != nil {
		return nil, err
	}
	list := messageList{BranchID: page.BranchID, Data: page.Messages}
	if page.Older {
		list.OlderCursor = s.messageCursor(ctx, in, messagePosition{Branch: page.BranchID, Depth: page.First})
	}
	if page.Newer {
		list.NewerCursor = s.messageCursor(ctx, in, messagePosition{Branch: page.BranchID, Depth: page.Last, Newer: true})
	}
	list.NextCursor = list.OlderCursor
	if query.Newer {
		list.NextCursor = list.NewerCursor
	}
	list.HasMore = list.NextCursor != nil
	return ok(list), nil
}

// messageQuery reads what is asked for. A cursor says all of it; what stands beside it must not contradict.
func (s *Server) messageQuery(ctx context.Context, in *listMessagesInput) (*persistence.MessageQuery, error) {
	query := &persistence.MessageQuery{ConversationID: in.ConversationID, Limit: in.Limit, Newer: in.Direction == newer}
	if !in.BranchID.IsZero() {
		query.BranchID = &in.BranchID
	}
	if !in.Around.IsZero() {
		query.Around = &in.Around
	}
	at, err := openCursor[messagePosition](ctx, s, in.Cursor, in.scope())
	if err != nil || at == nil {
		return query, err
	}
	switch {
	case query.Around != nil:
		return nil, protocol.Invalid("query.around", "does not go with a cursor")
	case query.BranchID != nil && in.BranchID != at.Branch:
		return nil, protocol.Invalid("query.branch_id", "is not the branch of the cursor")
	case in.Direction != "" && query.Newer != at.Newer:
		return nil, protocol.Invalid("query.direction", "is not the direction of the cursor")
	}
	query.BranchID, query.Newer = &at.Branch, at.Newer
	if at.Newer {
		query.After = at.Depth
	} else {
		query.Before = at.Depth
	}
	return query, nil
}

func (in *listMessagesInput) scope() string { return "messages " + in.ConversationID.String() }

func (s *Server) messageCursor(ctx context.Context, in *listMessagesInput, at messagePosition) *string {
	return sealCursor(ctx, s, in.scope(), &at)
}
