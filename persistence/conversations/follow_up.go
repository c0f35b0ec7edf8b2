package conversations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// FollowUpColumns are the columns of protocol.FollowUp.
const FollowUpColumns = `follow_up_id, state, content, attachments, profile, position, version, turn_id, created_at`

// FollowUpPosition is a position between two items of a queue.
type FollowUpPosition struct {
	Position   int64               `json:"p"`
	FollowUpID protocol.FollowUpID `json:"f"`
}

// selectFollowUps and withinPage enclose a condition. Rows after the first one that does not fit into @page_bytes are
// not sent. octet_length does not read a long text: its length is stored separately.
const (
	selectFollowUps = `
	select ` + FollowUpColumns + `
	from (
		select ` + FollowUpColumns + `, row_number() over in_order as n, sum(octet_length(content)) over in_order as bytes
		from (
			select ` + FollowUpColumns + `
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
	// The condition is that of the index follow_ups_open.
	listOpenFollowUpsSQL = selectFollowUps + ` and state in ('queued', 'held')` + withinPage
)

// followUpArgs returns the arguments for a page that starts after a position; nil starts at the beginning.
func followUpArgs(account protocol.AccountID, id protocol.ConversationID, after *FollowUpPosition, limit int) pgx.NamedArgs {
	if after == nil {
		after = &FollowUpPosition{Position: -1 << 63}
	}
	return pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1, "page_bytes": pg.PageBytes,
		"after_position": after.Position, "after": after.FollowUpID,
	}
}

// ListFollowUps returns a page of the follow-ups of a conversation in queue order: the waiting ones or, if all is set,
// also those that were started or cancelled.
func (s *Store) ListFollowUps(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, all bool,
	after *FollowUpPosition, limit int,
) (page []protocol.FollowUp, next *FollowUpPosition, err error) {
	sql := listOpenFollowUpsSQL
	if all {
		sql = listFollowUpsSQL
	}
	page, err = RowsOfConversation[protocol.FollowUp](ctx, s.db, account, sql, followUpArgs(account, id, after, limit))
	if err != nil {
		return nil, nil, err
	}
	page, more, err := pg.CutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	last := &page[len(page)-1]
	return page, &FollowUpPosition{Position: last.Position, FollowUpID: last.FollowUpID}, nil
}
