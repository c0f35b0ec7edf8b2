package conversations

import (
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// FollowUpColumns are the columns of protocol.FollowUp.
const FollowUpColumns = `follow_up_id, state, content, attachments, profile, tools, position, version, turn_id, created_at`

// WaitingItems selects follow-ups that are neither started nor cancelled. It is exactly the condition of the index follow_ups_open.
const WaitingItems = `state in ('queued', 'held')`

// FollowUpPosition is a position between two items of a queue.
type FollowUpPosition struct {
	Position   int64               `json:"p"`
	FollowUpID protocol.FollowUpID `json:"f"`
}

// octet_length does not read a long text: its length is stored separately.
const (
	followUpSize    = `octet_length(content)`
	followUpOrder   = `position, follow_up_id`
	selectFollowUps = `
	select ` + FollowUpColumns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation
	  and (` + followUpOrder + `) > (@after_position, @after)`
	inFollowUpOrder = `
	order by ` + followUpOrder + `
	limit @limit`
)

var (
	// ListFollowUpsSQL lists the items of a queue, with the arguments of FollowUpArgs.
	ListFollowUpsSQL = pg.WithinPage(selectFollowUps+inFollowUpOrder, FollowUpColumns, followUpSize, followUpOrder)
	// ListOpenFollowUpsSQL lists the waiting ones. Its condition is that of the index follow_ups_open.
	ListOpenFollowUpsSQL = pg.WithinPage(selectFollowUps+` and `+WaitingItems+inFollowUpOrder, FollowUpColumns, followUpSize, followUpOrder)
)

// FollowUpArgs returns the arguments for a page that starts after a position; nil starts at the beginning.
func FollowUpArgs(account protocol.AccountID, id protocol.ConversationID, after *FollowUpPosition, limit int) pgx.NamedArgs {
	if after == nil {
		after = &FollowUpPosition{Position: -1 << 63}
	}
	return pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1,
		"after_position": after.Position, "after": after.FollowUpID,
	}
}
