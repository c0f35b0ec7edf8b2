package conversations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// FollowUpColumns are the columns of protocol.FollowUp.
const FollowUpColumns = `follow_up_id, state, content, attachments, profile, tools, position, version, turn_id, created_at`

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
	ListOpenFollowUpsSQL = pg.WithinPage(selectFollowUps+` and `+open.FollowUps+inFollowUpOrder, FollowUpColumns, followUpSize, followUpOrder)
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

const (
	queueLengthSQL = `
select (select count(*) from (
           select from follow_ups where account_id = $1 and conversation_id = $2 and ` + open.FollowUps + ` limit $3) waiting),
       (select coalesce(max(position), 0) from follow_ups where account_id = $1 and conversation_id = $2)`
	insertFollowUpSQL = `
insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, attachments, profile, tools, position, created_at)
values (@account, @follow_up, @conversation, 'queued', @content, @attachments, @profile, @tools, @position, @at)`
	// TouchQueueSQL raises the version of a queue. Every transaction that changes a queue runs it.
	TouchQueueSQL = `
update conversations set queue_version = queue_version + 1 where account_id = $1 and conversation_id = $2`
)

// Enqueue adds the statements to batch that store a follow-up at the end of its queue. The caller has locked the
// conversation. The error is protocol.CodeTooManyFollowUps if the queue is full, and that of CheckFiles.
func Enqueue(ctx context.Context, tx *pg.Tx, batch *pgx.Batch, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	if err := AttachFiles(ctx, tx, f.AccountID, f.ConversationID, f.Attachments); err != nil {
		return nil, err
	}
	var waiting int
	var last int64
	if err := tx.QueryRow(ctx, queueLengthSQL, f.AccountID, f.ConversationID, protocol.MaxFollowUps).Scan(&waiting, &last); err != nil {
		return nil, err
	}
	if waiting >= protocol.MaxFollowUps {
		return nil, protocol.Errorf(protocol.CodeTooManyFollowUps,
			"%d follow-ups wait in this conversation, which is the limit. Cancel one, or wait until one has started.", waiting)
	}
	item := &protocol.FollowUp{
		FollowUpID: protocol.NewFollowUpID(), State: protocol.FollowUpQueued, Content: f.Content, Attachments: append([]protocol.FileID{}, f.Attachments...),
		Tools: f.Tools, Position: last + 1, Version: 1, CreatedAt: protocol.Millis(f.At),
	}
	if f.Profile != "" {
		item.Profile = &f.Profile
	}
	batch.Queue(insertFollowUpSQL, pgx.NamedArgs{
		"account": f.AccountID, "conversation": f.ConversationID, "follow_up": item.FollowUpID, "content": item.Content, "attachments": item.Attachments,
		"profile": item.Profile, "tools": item.Tools, "position": item.Position, "at": item.CreatedAt,
	})
	batch.Queue(TouchQueueSQL, f.AccountID, f.ConversationID)
	return item, nil
}
