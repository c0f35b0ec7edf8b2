package persistence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const followUpColumns = `follow_up_id, state, content, attachments, profile, position, version, turn_id, created_at`

// selectStandingFollowUps reads what still waits: the queue as a page shows it.
const selectStandingFollowUps = `
	select ` + followUpColumns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation and state in ('queued', 'held')
	order by position, follow_up_id
	limit @limit`

// FollowUpPosition is a place between two items of a queue.
type FollowUpPosition struct {
	Position   int64               `json:"p"`
	FollowUpID protocol.FollowUpID `json:"f"`
}

const listFollowUpsSQL = `
	select ` + followUpColumns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation
	  and (position, follow_up_id) > (@after_position, @after)
	order by position, follow_up_id
	limit @limit`

// ListFollowUps reads the items of a conversation's queue in their order, those that were started or cancelled included.
func (db *DB) ListFollowUps(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	after *FollowUpPosition, limit int,
) (page []protocol.FollowUp, next *FollowUpPosition, err error) {
	if after == nil {
		after = &FollowUpPosition{Position: -1 << 63}
	}
	page, err = rowsWithin[protocol.FollowUp](ctx, db, account, listFollowUpsSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1,
		"after_position": after.Position, "after": after.FollowUpID,
	})
	if err != nil || len(page) <= limit {
		return page, nil, err
	}
	page = page[:limit]
	last := &page[limit-1]
	return page, &FollowUpPosition{Position: last.Position, FollowUpID: last.FollowUpID}, nil
}
