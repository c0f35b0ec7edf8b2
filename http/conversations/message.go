package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

type messagePath struct {
	resource.InConversation
	MessageID protocol.MessageID `path:"message_id"`
}

func (h *Handlers) getMessage(ctx context.Context, in *messagePath) (*resource.Body[*protocol.Message], error) {
	message, err := h.Messages.GetMessage(ctx, exchange.CallerOf(ctx).AccountID, in.MessageID)
	if err != nil {
		return nil, err
	}
	if message.ConversationID != in.ConversationID {
		return nil, &protocol.Error{Code: protocol.CodeNotFound}
	}
	return resource.OK(message), nil
}

const (
	older = "older"
	newer = "newer"
)

type listMessagesInput struct {
	resource.InConversation
	resource.PageInput
	BranchID  protocol.BranchID  `query:"branch_id" doc:"The branch to list. Default: the active branch or, with around, a branch that contains the message."`
	Direction string             `query:"direction" enum:"older,newer" doc:"The order of the pages: older (default) goes from the head of the branch to its first message, newer goes the other way. A cursor has a direction of its own."`
	Around    protocol.MessageID `query:"around" doc:"Return the page with this message in the middle. Cannot be combined with a cursor."`
}

// messageList is a page of the messages of a branch.
type messageList struct {
	BranchID    protocol.BranchID  `json:"branch_id" doc:"The branch of the messages."`
	Data        []protocol.Message `json:"data" doc:"The messages, oldest first in both directions."`
	NextCursor  *string            `json:"next_cursor" doc:"The cursor of the next page in the direction of this one; null if there is none."`
	HasMore     bool               `json:"has_more"`
	OlderCursor *string            `json:"older_cursor" doc:"The cursor of the page with older messages; null if there are none."`
	NewerCursor *string            `json:"newer_cursor" doc:"The cursor of the page with newer messages; null if there are none."`
}

// messagePosition is a position in a branch: the page ends before Depth or, with Newer, starts after it.
type messagePosition struct {
	Branch protocol.BranchID `json:"b"`
	Depth  int               `json:"d"`
	Newer  bool              `json:"n"`
}

func (h *Handlers) listMessages(ctx context.Context, in *listMessagesInput) (*resource.Body[messageList], error) {
	query, err := h.messageQuery(ctx, in)
	if err != nil {
		return nil, err
	}
	page, err := h.Messages.Messages(ctx, exchange.CallerOf(ctx).AccountID, query)
	if err != nil {
		return nil, err
	}
	list := messageList{BranchID: page.BranchID, Data: page.Messages}
	if page.Older {
		list.OlderCursor = h.messageCursor(ctx, in, messagePosition{Branch: page.BranchID, Depth: page.First})
	}
	if page.Newer {
		list.NewerCursor = h.messageCursor(ctx, in, messagePosition{Branch: page.BranchID, Depth: page.Last, Newer: true})
	}
	list.NextCursor = list.OlderCursor
	if query.Newer {
		list.NextCursor = list.NewerCursor
	}
	list.HasMore = list.NextCursor != nil
	return resource.OK(list), nil
}

// messageQuery returns the query of a request. A cursor determines the branch, the direction and the position; other
// parameters must not contradict it.
func (h *Handlers) messageQuery(ctx context.Context, in *listMessagesInput) (*conversations.MessageQuery, error) {
	query := &conversations.MessageQuery{ConversationID: in.ConversationID, Limit: in.Limit, Newer: in.Direction == newer}
	if !in.BranchID.IsZero() {
		query.BranchID = &in.BranchID
	}
	if !in.Around.IsZero() {
		query.Around = &in.Around
	}
	at, err := resource.OpenCursor[messagePosition](exchange.CallerOf(ctx), h.Keys, in.Cursor, in.scope())
	if err != nil || at == nil {
		return query, err
	}
	switch {
	case query.Around != nil:
		return nil, protocol.Invalid("query.around", "cannot be combined with a cursor")
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

func (h *Handlers) messageCursor(ctx context.Context, in *listMessagesInput, at messagePosition) *string {
	return resource.SealCursor(exchange.CallerOf(ctx), h.Keys, in.scope(), &at)
}
