package conversations

import (
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// FollowUpColumns are the columns of protocol.FollowUp.
const FollowUpColumns = `follow_up_id, state, content, attachments, profile, tools, position, version, turn_id, created_at`

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
	// ListFollowUpsSQL lists the items of a queue, with the arguments of FollowUpArgs.
	ListFollowUpsSQL = selectFollowUps + withinPage
	// ListOpenFollowUpsSQL lists the waiting ones. Its condition is that of the index follow_ups_open.
	ListOpenFollowUpsSQL = selectFollowUps + ` and state in ('queued', 'held')` + withinPage
)

// FollowUpArgs returns the arguments for a page that starts after a position; nil starts at the beginning.
func FollowUpArgs(account protocol.AccountID, id protocol.ConversationID, after *FollowUpPosition, limit int) pgx.NamedArgs {
	if after == nil {
		after = &FollowUpPosition{Position: -1 << 63}
	}
	return pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1, "page_bytes": pg.PageBytes,
		"after_position": after.Position, "after": after.FollowUpID,
	}
}
