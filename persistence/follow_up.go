package persistence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const followUpColumns = `follow_up_id, state, content, attachments, profile, position, version, turn_id, created_at`

// FollowUpPosition is a place between two items of a queue.
type FollowUpPosition struct {
	Position   int64               `json:"p"`
	FollowUpID protocol.FollowUpID `json:"f"`
}

// selectFollowUps and withinPage enclose a condition. Rows behind the first one that does not fit into @page_bytes are not
// sent. octet_length does not read a long text, whose length is known without it.
const (
	selectFollowUps = `
	select ` + followUpColumns + `
	from (
		select ` + followUpColumns + `, row_number() over in_order as n, sum(octet_length(content)) over in_order as bytes
		from (
			select ` + followUpColumns + `
			from follow_ups
			where account_id = @account and conversation_id = @conversation
			  and (position, follow_up_id) > (@after_position, @after)`
	withinPage = `
			order by position, follow_up_id
			limit @limit
		) page
		window in_order as (order by position, follow_up_id)
	) sized
	where n <= 2 or bytes - octet_length(content) <= @page_bytes
	order by position, follow_up_id`
	listFollowUpsSQL = selectFollowUps + withinPage
	// Its condition is that of the index follow_ups_open.
	listOpenFollowUpsSQL = selectFollowUps + ` and state in ('queued', 'held')` + withinPage
)

// followUpArgs ask for a page after a position; nil is the beginning.
func followUpArgs(account protocol.AccountID, id protocol.ConversationID, after *FollowUpPosition, limit int) pgx.NamedArgs {
	if after == nil {
		after = &FollowUpPosition{Position: -1 << 63}
	}
	return pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1, "page_bytes": PageBytes,
		"after_position": after.Position, "after": after.FollowUpID,
	}
}

// ListFollowUps reads a page of a conversation's follow-ups in their order: those that wait, or with all also those that
// were started or cancelled.
func (db *DB) ListFollowUps(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, all bool,
	after *FollowUpPosition, limit int,
) (page []protocol.FollowUp, next *FollowUpPosition, err error) {
	sql := listOpenFollowUpsSQL
	if all {
		sql = listFollowUpsSQL
	}
	page, err = rowsWithin[protocol.FollowUp](ctx, db, account, sql, followUpArgs(account, id, after, limit))
	if err != nil {
		return nil, nil, err
	}
	page, more, err := cutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	last := &page[len(page)-1]
	return page, &FollowUpPosition{Position: last.Position, FollowUpID: last.FollowUpID}, nil
}

const (
	lockFollowUpSQL = `
	select ` + followUpColumns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation and follow_up_id = @follow_up
	for update`
	changeFollowUpSQL = `
	update follow_ups set state = @state, content = @content, version = version + 1
	where account_id = @account and follow_up_id = @follow_up`
)

// ChangeFollowUp changes an item that the account saw at a version, under the lock that ending the live turn takes: that
// end sees the change, or the change sees that nothing is live. Then, if something is queued, it begins in the same
// transaction.
func (t *Turns) ChangeFollowUp(ctx context.Context, change *protocol.FollowUpChange) (
	item *protocol.FollowUp, started *protocol.StartedTurn, err error,
) {
	err = t.db.InTx(ctx, change.AccountID, func(ctx context.Context, tx *Tx) (err error) {
		item, started, err = t.changeFollowUp(ctx, tx, change)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("changing a follow-up: %w", err)
	}
	return item, started, nil
}

func (t *Turns) changeFollowUp(ctx context.Context, tx *Tx, change *protocol.FollowUpChange) (
	item *protocol.FollowUp, started *protocol.StartedTurn, err error,
) {
	locked, err := lockConversation(ctx, tx, change.AccountID, change.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	args := pgx.NamedArgs{"account": change.AccountID, "conversation": change.ConversationID, "follow_up": change.FollowUpID}
	rows, err := tx.Query(ctx, lockFollowUpSQL, args)
	if err != nil {
		return nil, nil, err
	}
	if item, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.FollowUp]); err != nil {
		return nil, nil, err
	}
	if err := refuseFollowUpChange(item, change); err != nil {
		return nil, nil, err
	}
	before := *item
	item.State = change.State
	if change.Content != nil {
		item.Content = *change.Content
	}
	if item.State == before.State && item.Content == before.Content {
		return item, nil, nil
	}
	item.Version++
	args["state"], args["content"] = item.State, item.Content
	batch := &pgx.Batch{}
	batch.Queue(changeFollowUpSQL, args)
	batch.Queue(touchQueueSQL, change.AccountID, change.ConversationID)
	if err := tx.Run(ctx, batch); err != nil {
		return nil, nil, err
	}
	if item.State != protocol.FollowUpQueued || locked.LiveTurnID != nil || change.Begin == nil {
		return item, nil, nil
	}
	plan := turnPlan{account: change.AccountID, conversation: change.ConversationID, owner: change.Owner, at: millis(change.At)}
	started, batch, err = startNext(ctx, tx, plan, change.MaxLiveTurns, change.Begin, t.log)
	if err != nil || started == nil {
		return item, nil, err
	}
	if *started.Spec.FollowUpID == item.FollowUpID {
		item.State, item.TurnID, item.Version = protocol.FollowUpStarted, &started.Spec.TurnID, item.Version+1
	}
	return item, started, tx.CommitWith(ctx, batch)
}

// refuseFollowUpChange holds a change against the item as it stands.
func refuseFollowUpChange(item *protocol.FollowUp, change *protocol.FollowUpChange) error {
	same := item.State == change.State && (change.Content == nil || *change.Content == item.Content)
	switch {
	case change.Version == nil:
		return protocol.Conflict(protocol.CodeVersionRequired, item, "Say in If-Match which version of the follow-up you change.")
	case *change.Version != item.Version:
		return protocol.Conflict(protocol.CodeStaleVersion, item, "The follow-up has changed since that version.")
	case !same && item.State != protocol.FollowUpQueued && item.State != protocol.FollowUpHeld:
		return protocol.Conflict(protocol.CodeConflict, item, "The follow-up was started or cancelled already.")
	}
	return nil
}
