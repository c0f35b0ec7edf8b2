package queues

import (
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Columns are the columns of protocol.FollowUp.
const Columns = `follow_up_id, state, content, attachments, profile, tools, position, version, turn_id, created_at`

// Position is a position between two items of a queue.
type Position struct {
	Position   int64               `json:"p"`
	FollowUpID protocol.FollowUpID `json:"f"`
}

// octet_length does not read a long text: its length is stored separately.
const (
	itemSize    = `octet_length(content)`
	itemOrder   = `position, follow_up_id`
	selectItems = `
	select ` + Columns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation
	  and (` + itemOrder + `) > (@after_position, @after)`
	inOrder = `
	order by ` + itemOrder + `
	limit @limit`
)

var (
	// ListSQL lists the items of a queue, with the arguments of PageArgs.
	ListSQL = pg.WithinPage(selectItems+inOrder, Columns, itemSize, itemOrder)
	// ListOpenSQL lists the waiting ones. Its condition is that of the index follow_ups_open.
	ListOpenSQL = pg.WithinPage(selectItems+` and `+open.FollowUps+inOrder, Columns, itemSize, itemOrder)
)

// PageArgs returns the arguments for a page that starts after a position; nil starts at the beginning.
func PageArgs(account protocol.AccountID, id protocol.ConversationID, after *Position, limit int) pgx.NamedArgs {
	if after == nil {
		after = &Position{Position: -1 << 63}
	}
	return pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1,
		"after_position": after.Position, "after": after.FollowUpID,
	}
}
