package persistence

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// ConversationFilter narrows a list of conversations; a nil field does not.
type ConversationFilter struct {
	Archived  *bool
	Pinned    *bool
	ProjectID *protocol.ProjectID
}

// ConversationPosition is a place between two entries of the list.
type ConversationPosition struct {
	Pinned         bool                    `json:"p"`
	LastActivityAt time.Time               `json:"a"` // with Postgres' microseconds: cut to less, entries would be skipped
	ConversationID protocol.ConversationID `json:"c"`
}

// beforeAll is the place in front of every entry. It spares the statement a case of its own for the first page, which
// would cost the index.
var beforeAll = func() ConversationPosition {
	p := ConversationPosition{Pinned: true, LastActivityAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range p.ConversationID {
		p.ConversationID[i] = 0xff
	}
	return p
}()

const listConversationsSQL = `
	select ` + conversationColumns + conversationRows + `
	  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) < (@after_pinned, @after_activity, @after)
	  and (@archived::boolean is null or (c.archived_at is not null) = @archived)
	  and (@pinned::boolean is null or (c.pinned_at is not null) = @pinned)
	  and not c.temporary
	  and (@project::uuid is null or c.project_id = @project)
	order by (c.pinned_at is not null) desc, c.last_activity_at desc, c.conversation_id desc
	limit @limit`

// ListConversations reads a page of the list, after a position; nil is the beginning. next is nil at the end.
func (db *DB) ListConversations(ctx context.Context, account protocol.AccountID, filter *ConversationFilter,
	after *ConversationPosition, limit int,
) (page []protocol.Conversation, next *ConversationPosition, err error) {
	if after == nil {
		after = &beforeAll
	}
	page, err = Rows(ctx, db, account, pgx.RowToStructByName[protocol.Conversation], listConversationsSQL, pgx.NamedArgs{
		"account": account, "archived": filter.Archived, "pinned": filter.Pinned,
		"project": filter.ProjectID, "limit": limit + 1,
		"after_pinned": after.Pinned, "after_activity": after.LastActivityAt, "after": after.ConversationID,
	})
	if err != nil {
		return nil, nil, err
	}
	page, more, err := cutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	last := &page[len(page)-1]
	return page, &ConversationPosition{
		Pinned: last.PinnedAt != nil, LastActivityAt: last.LastActivityAt, ConversationID: last.ConversationID,
	}, nil
}
