package followups

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Page is a page of a queue.
type Page struct {
	Items        []protocol.FollowUp
	Next         *queues.Position // after which the next page starts; nil at the end
	QueueVersion int64
}

const queueVersionSQL = `
	select queue_version from conversations c
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible

// ListFollowUps returns a page of the follow-ups of a conversation in queue order: the waiting ones or, if all is set,
// also those that were started or cancelled. The items are at least as new as the version of the queue, so a change that
// is based on that version never overwrites a change that the items lack.
func (s *Store) ListFollowUps(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, all bool,
	after *queues.Position, limit int,
) (*Page, error) {
	sql := queues.ListOpenSQL
	if all {
		sql = queues.ListSQL
	}
	page, args, batch := &Page{}, queues.PageArgs(account, id, after, limit), &pgx.Batch{}
	batch.Queue(queueVersionSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&page.QueueVersion) })
	batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		page.Items, err = pgx.CollectRows(rows, pgx.RowToStructByName[protocol.FollowUp])
		return err
	})
	if err := s.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("reading a queue: %w", err)
	}
	items, more, err := pg.CutPage(page.Items, limit)
	if page.Items = items; err != nil || !more {
		return page, err
	}
	last := &items[len(items)-1]
	page.Next = &queues.Position{Position: last.Position, FollowUpID: last.FollowUpID}
	return page, nil
}

const getFollowUpSQL = `
	select ` + queues.Columns + `
	from follow_ups f
	where f.account_id = @account and f.conversation_id = @conversation and f.follow_up_id = @follow_up and exists (
		select from conversations c where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `)`

// GetFollowUp reads one follow-up of a conversation.
func (s *Store) GetFollowUp(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, followUp protocol.FollowUpID) (*protocol.FollowUp, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.FollowUp], getFollowUpSQL,
		pgx.NamedArgs{"account": account, "conversation": id, "follow_up": followUp})
}
