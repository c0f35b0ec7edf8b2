package queues

import (
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/protocol"
)

const touchSQL = `
update conversations set queue_version = queue_version + 1 where account_id = $1 and conversation_id = $2`

// Touch adds the statement that raises the version of a queue. Every transaction that changes a queue runs it.
func Touch(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID) {
	batch.Queue(touchSQL, account, conversation)
}

// changeSQL ends a promotion when the item is no longer queued.
const changeSQL = `
	update follow_ups
	set state = @state, content = @content, attachments = @attachments, version = version + 1,
		interrupts_turn_id = case when @state = 'queued' then interrupts_turn_id end
	where account_id = @account and follow_up_id = @follow_up`

// Change adds the statements that store the state, the content and the attachments of an item, and raise its version.
func Change(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, item *protocol.FollowUp) {
	batch.Queue(changeSQL, pgx.NamedArgs{
		"account": account, "follow_up": item.FollowUpID, "state": item.State, "content": item.Content, "attachments": item.Attachments,
	})
	Touch(batch, account, conversation)
}

const promoteSQL = `
	update follow_ups
	set state = 'queued', position = @position, version = @version, interrupts_turn_id = coalesce(@interrupts, interrupts_turn_id)
	where account_id = @account and follow_up_id = @follow_up`

// Promote adds the statements that release an item and store its position and version. interrupts is the turn at whose end the item
// starts; nil leaves this as it is.
func Promote(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, item *protocol.FollowUp, interrupts *protocol.TurnID) {
	batch.Queue(promoteSQL, pgx.NamedArgs{
		"account": account, "follow_up": item.FollowUpID, "position": item.Position, "version": item.Version, "interrupts": interrupts,
	})
	Touch(batch, account, conversation)
}

// The items exchange the positions that they have, so that items which were created or returned in the meantime keep
// their place behind them.
const reorderSQL = `
	with positions as (
		select position, row_number() over (order by position, follow_up_id) as n
		from follow_ups
		where account_id = $1 and conversation_id = $2 and ` + open.FollowUps + `
	)
	update follow_ups f set position = p.position
	from unnest($3::uuid[]) with ordinality as wanted (follow_up_id, n)
	join positions p on p.n = wanted.n
	where f.account_id = $1 and f.conversation_id = $2 and f.follow_up_id = wanted.follow_up_id and f.position <> p.position`

// Reorder adds the statements that put the waiting items into an order, which names each of them once.
func Reorder(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, wanted []protocol.FollowUpID) {
	batch.Queue(reorderSQL, account, conversation, wanted)
	Touch(batch, account, conversation)
}

const startSQL = `
update follow_ups set state = 'started', turn_id = $4, version = version + 1
where account_id = $1 and conversation_id = $2 and follow_up_id = $3`

// Start adds the statements that mark an item as started. The same transaction stores its turn.
func Start(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, id protocol.FollowUpID, turn protocol.TurnID) {
	batch.Queue(startSQL, account, conversation, id, turn)
	Touch(batch, account, conversation)
}
