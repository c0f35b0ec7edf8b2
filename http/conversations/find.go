package conversations

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

type findInput struct {
	resource.InConversation
	resource.PageInput
	Query    string            `query:"q" required:"true" doc:"1 to 160 code points, without spaces at the ends."`
	BranchID protocol.BranchID `query:"branch_id" doc:"The branch to search. Default: the active branch."`
}

// foundList is a page of the messages in which a text may occur.
type foundList struct {
	BranchID      protocol.BranchID   `json:"branch_id" doc:"The branch that was searched."`
	HeadMessageID *protocol.MessageID `json:"head_message_id" doc:"The last message of the branch; null if it has none."`
	HeadDepth     int                 `json:"head_depth" doc:"The number of messages of the branch."`
	protocol.List[protocol.FoundMessage]
}

// findPosition is a position in the search of a branch.
type findPosition struct {
	Branch protocol.BranchID `json:"b"`
	Depth  int               `json:"d"`
}

func (h *Handlers) findText(ctx context.Context, in *findInput) (*resource.Body[foundList], error) {
	caller := exchange.CallerOf(ctx)
	query := &conversations.FindQuery{ConversationID: in.ConversationID, Text: strings.TrimSpace(in.Query), Limit: in.Limit}
	if n := utf8.RuneCountInString(query.Text); n == 0 || n > protocol.MaxQueryRunes {
		return nil, protocol.Invalid("query.q", fmt.Sprintf("must have 1 to %d characters", protocol.MaxQueryRunes))
	}
	if !in.BranchID.IsZero() {
		query.BranchID = &in.BranchID
	}
	scope := "find " + in.ConversationID.String() + " " + query.Text
	after, err := resource.OpenCursor[findPosition](caller, h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	if after != nil {
		if query.BranchID != nil && in.BranchID != after.Branch {
			return nil, protocol.Invalid("query.branch_id", "is not the branch of the cursor")
		}
		query.BranchID, query.After = &after.Branch, after.Depth
	}
	page, err := h.Messages.FindText(ctx, caller.AccountID, query)
	if err != nil {
		return nil, err
	}
	var next *findPosition
	if page.Next > 0 {
		next = &findPosition{Branch: page.BranchID, Depth: page.Next}
	}
	list := resource.Listed(caller, h.Keys, scope, page.Messages, next).Body
	return resource.OK(foundList{BranchID: page.BranchID, HeadMessageID: page.Head, HeadDepth: page.Depth, List: list}), nil
}
