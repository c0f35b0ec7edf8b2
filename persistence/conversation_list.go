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

// beforeAll and afterAll are before and after every entry. They spare the statement a case of its own for the first page
// and for the filter of pins, which would cost the index.
var beforeAll, afterAll = func() (first, last ConversationPosition) {
	first = ConversationPosition{Pinned: true, LastActivityAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range first.ConversationID {
		first.ConversationID[i] = 0xff
	}
	return first, ConversationPosition{LastActivityAt: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}
}()

// Each list has an index whose condition it repeats, so that it reads no entry that it does not return.
const (
	conversationKeys = `
		select c.conversation_id, c.pinned_at is not null as pinned, c.last_activity_at
		from conversations c
		where c.account_id = @account and c.deleted_at is null and not c.temporary
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) < (@after_pinned, @after_activity, @after)
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) >= (@until_pinned, @until_activity, @until)`
	conversationOrder = `
		order by (c.pinned_at is not null) desc, c.last_activity_at desc, c.conversation_id desc
		limit @limit`
	openConversations     = conversationKeys + ` and c.archived_at is null`
	archivedConversations = conversationKeys + ` and c.archived_at is not null`
	inProject             = ` and c.project_id = @project`

	listConversationsHead = `
	select ` + conversationColumns + `
	from (select conversation_id, pinned, last_activity_at from (`
	listConversationsTail = `) keys order by pinned desc, last_activity_at desc, conversation_id desc limit @limit) keys
	cross join lateral (
		select ` + conversationFields + `
		from conversations where account_id = @account and conversation_id = keys.conversation_id limit 1) c
	cross join lateral (select head_message_id from branches where account_id = @account and branch_id = c.active_branch_id limit 1) b
	order by keys.pinned desc, keys.last_activity_at desc, keys.conversation_id desc`

	listOpenSQL            = listConversationsHead + openConversations + conversationOrder + listConversationsTail
	listArchivedSQL        = listConversationsHead + archivedConversations + conversationOrder + listConversationsTail
	listAllSQL             = listConversationsHead + `(` + openConversations + conversationOrder + `) union all (` + archivedConversations + conversationOrder + `)` + listConversationsTail
	listProjectOpenSQL     = listConversationsHead + openConversations + inProject + conversationOrder + listConversationsTail
	listProjectArchivedSQL = listConversationsHead + archivedConversations + inProject + conversationOrder + listConversationsTail
	listProjectAllSQL      = listConversationsHead + `(` + openConversations + inProject + conversationOrder + `) union all (` + archivedConversations + inProject + conversationOrder + `)` + listConversationsTail
)

func (f *ConversationFilter) sql() string {
	inProject := f.ProjectID != nil
	switch {
	case f.Archived == nil && inProject:
		return listProjectAllSQL
	case f.Archived == nil:
		return listAllSQL
	case *f.Archived && inProject:
		return listProjectArchivedSQL
	case *f.Archived:
		return listArchivedSQL
	case inProject:
		return listProjectOpenSQL
	default:
		return listOpenSQL
	}
}

// span is what is listed after a position: pins come first.
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

// ListConversations reads a page of the list, after a position; nil is the beginning. next is nil at the end.
func (db *DB) ListConversations(ctx context.Context, account protocol.AccountID, filter *ConversationFilter,
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
	page, err = Rows(ctx, db, account, pgx.RowToStructByName[protocol.Conversation], filter.sql(), args)
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
