package conversations

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// ConversationFilter narrows a list of conversations; a nil field does not filter.
type ConversationFilter struct {
	Archived  *bool
	Pinned    *bool
	ProjectID *protocol.ProjectID
	Metadata  map[string]string // entries that a conversation has; empty: any
	Created   Span
	Updated   Span
}

// ConversationPosition is a position between two entries of the list.
type ConversationPosition struct {
	Pinned         bool                    `json:"p"`
	LastActivityAt time.Time               `json:"a"` // in microseconds, as in Postgres: a truncated time would skip entries
	ConversationID protocol.ConversationID `json:"c"`
}

// beforeAll and afterAll are the positions before and after every entry. With them, the first page and the pin filter
// need no special case in the statement; such a case would prevent the use of the index.
var beforeAll, afterAll = func() (first, last ConversationPosition) {
	first = ConversationPosition{Pinned: true, LastActivityAt: pg.Latest, ConversationID: pg.HighestID}
	return first, ConversationPosition{LastActivityAt: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}
}()

// span returns the range of the list that follows a position. Pinned conversations come first in the list.
func (f *ConversationFilter) span(after *ConversationPosition) (from, until ConversationPosition) {
	from, until = beforeAll, afterAll
	if after != nil {
		from = *after
	}
	switch {
	case f.Pinned == nil:
	case *f.Pinned:
		until.Pinned = true
	case from.Pinned:
		from = beforeAll
		from.Pinned = false
	}
	return from, until
}

// ListConversations returns a page of the list that starts after a position; nil starts at the beginning. next is nil
// at the end. A page of a list that is narrowed by metadata or times can be short, or empty, although others follow.
func (s *Store) ListConversations(ctx context.Context, account protocol.AccountID, filter *ConversationFilter,
	after *ConversationPosition, limit int,
) (page []protocol.Conversation, next *ConversationPosition, err error) {
	from, until := filter.span(after)
	args := pgx.NamedArgs{
		"account": account, "limit": limit + 1,
		"after_pinned": from.Pinned, "after_activity": from.LastActivityAt, "after": from.ConversationID,
		"until_pinned": until.Pinned, "until_activity": until.LastActivityAt, "until": until.ConversationID,
	}
	if filter.ProjectID != nil {
		args["project"] = filter.ProjectID
	}
	var end *ConversationPosition
	if filter.narrows() {
		page, end, err = listNarrowed(ctx, s.db, account, filter, args)
	} else {
		page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Conversation], filter.statements().list, args)
	}
	if err != nil {
		return nil, nil, err
	}
	page, next, err = pg.NextPage(page, limit, func(last *protocol.Conversation) ConversationPosition {
		return ConversationPosition{Pinned: last.PinnedAt != nil, LastActivityAt: last.LastActivityAt, ConversationID: last.ConversationID}
	})
	if next == nil {
		next = end
	}
	return page, next, err
}
