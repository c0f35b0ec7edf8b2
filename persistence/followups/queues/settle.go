package queues

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const holdSQL = `
update follow_ups set state = 'held', version = version + 1
where account_id = @account and conversation_id = @conversation and state = 'queued' and interrupts_turn_id is distinct from @turn`

// Hold adds the statement that sets the queued items of a conversation to held, except those that interrupt the turn. The caller
// adds Touch.
func Hold(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) {
	batch.Queue(holdSQL, pgx.NamedArgs{"account": account, "conversation": conversation, "turn": turn})
}

const cancelSQL = `
update follow_ups set state = 'cancelled', version = version + 1
where account_id = @account and conversation_id = @conversation and state = 'queued'`

// Cancel adds the statement that cancels the queued items of a conversation. The caller adds Touch.
func Cancel(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID) {
	batch.Queue(cancelSQL, pgx.NamedArgs{"account": account, "conversation": conversation})
}

const cancelOpenSQL = `
	update follow_ups
	set state = 'cancelled', version = version + 1
	where account_id = @account and conversation_id = @conversation and ` + open.FollowUps

// CancelOpen adds the statement that cancels the queued and the held items of a conversation that is deleted.
func CancelOpen(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID) {
	batch.Queue(cancelOpenSQL, pgx.NamedArgs{"account": account, "conversation": conversation})
}

const (
	lockOfProjectSQL = `
	select from conversations c
	where c.account_id = @account and c.project_id = @project and c.conversation_id in (
		select conversation_id from follow_ups where account_id = @account and state = 'queued')
	order by c.conversation_id for update`
	holdOfProjectSQL = `
	with held as (
		update follow_ups f set state = 'held', version = f.version + 1, interrupts_turn_id = null
		from conversations c
		where c.account_id = @account and c.project_id = @project
		  and f.account_id = @account and f.conversation_id = c.conversation_id and f.state = 'queued'
		returning f.conversation_id)
	update conversations set queue_version = queue_version + 1
	where account_id = @account and conversation_id in (select conversation_id from held)`
)

// LockOfProject locks the conversations of a project that have queued items. They are locked before the project, as by everything
// that changes a queue.
func LockOfProject(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID) error {
	_, err := tx.Exec(ctx, lockOfProjectSQL, pgx.NamedArgs{"account": account, "project": project})
	return err
}

// HoldOfProject adds the statement that sets the queued items of a project to held and raises the versions of their queues. The
// caller has called LockOfProject.
func HoldOfProject(batch *pgx.Batch, account protocol.AccountID, project protocol.ProjectID) {
	batch.Queue(holdOfProjectSQL, pgx.NamedArgs{"account": account, "project": project})
}

// The conversations are locked before the account, in the same order as by a start of a turn.
const (
	lockOfAccountSQL = `
	select from (
		select distinct conversation_id from follow_ups where account_id = @account and state = 'queued' order by conversation_id
	) waiting cross join lateral (
		select from conversations where account_id = @account and conversation_id = waiting.conversation_id
		limit 1 for no key update) c`
	holdOfAccountSQL = `
	with held as (
		update follow_ups set state = 'held', version = version + 1
		where account_id = @account and state = 'queued'
		returning conversation_id
	)
	update conversations c set queue_version = queue_version + 1
	where c.account_id = @account and c.conversation_id = any (array(select conversation_id from held))`
)

// HoldOfAccount adds the statements that lock the conversations of an account that have queued items, set these to held and raise
// the versions of their queues.
func HoldOfAccount(batch *pgx.Batch, account protocol.AccountID) {
	args := pgx.NamedArgs{"account": account}
	batch.Queue(lockOfAccountSQL, args)
	batch.Queue(holdOfAccountSQL, args)
}

// EraseSQL deletes at most @limit follow-ups of a deleted conversation: a step of its purge, which counts the rows of all steps.
const EraseSQL = `
		delete from follow_ups f using (
			select follow_up_id from follow_ups
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where f.account_id = @account and f.follow_up_id = x.follow_up_id`
