package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// LiveWork is what a deletion would break off.
type LiveWork struct {
	TurnID     protocol.TurnID
	Version    int64
	WillDelete map[string]int // what goes with the conversation, by kind
}

// DeleteConversation makes a conversation vanish from every read, at once and for good; a job erases what it held.
// While a turn is live nothing happens and the live work is returned: the turn has to end first. Without a version any
// is deleted.
func (db *DB) DeleteConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, version *int64) (live *LiveWork, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		live = nil
		locked, err := lockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, version, false); err != nil {
			return err
		}
		if locked.LiveTurnID != nil {
			live, err = countLiveWork(ctx, tx, account, id, locked)
			return err
		}
		return db.buryConversation(ctx, tx, account, id)
	})
	return live, err
}

const countConversationSQL = `
	select c.message_count,
		(select count(*) from branches b where b.account_id = c.account_id and b.conversation_id = c.conversation_id),
		(select count(*) from follow_ups f where f.account_id = c.account_id and f.conversation_id = c.conversation_id
			and f.state in ('queued', 'held'))
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation`

func countLiveWork(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID, locked *lockedConversation) (*LiveWork, error) {
	var messages, branches, followUps int
	err := tx.QueryRow(ctx, countConversationSQL, pgx.NamedArgs{"account": account, "conversation": id}).
		Scan(&messages, &branches, &followUps)
	if err != nil {
		return nil, fmt.Errorf("counting what a conversation holds: %w", err)
	}
	return &LiveWork{
		TurnID: *locked.LiveTurnID, Version: locked.Version,
		WillDelete: map[string]int{
			"conversations": 1, "messages": messages, "branches": branches, "follow_ups": followUps, "live_turns": 1,
		},
	}, nil
}

// buryConversationSQL leaves a stone without content, so that the identifier stays taken. It also ends the queue, so
// that no sweep starts a turn from it.
const buryConversationSQL = `
	with queue as (
		update follow_ups
		set state = 'cancelled', version = version + 1
		where account_id = @account and conversation_id = @conversation and state in ('queued', 'held')
	)
	update conversations
	set deleted_at = now(), title = '', metadata = '{}', draft = '', draft_attachments = '{}', draft_updated_at = null,
		profile = null, project_id = null, pinned_at = null, archived_at = null, read_message_id = null, read_at = null,
		message_count = 0, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

func (db *DB) buryConversation(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID) error {
	if _, err := tx.Exec(ctx, buryConversationSQL, pgx.NamedArgs{"account": account, "conversation": id}); err != nil {
		return fmt.Errorf("deleting a conversation: %w", err)
	}
	return db.enqueue(ctx, tx, PurgeConversationArgs{AccountID: account, ConversationID: id})
}

// errStillLive stops a purge of what was not deleted. It is a defect, or an operator who restored a row by hand.
var errStillLive = errors.New("the conversation was not deleted")

// purgeGateSQL takes the lock that starting and ending turns take. A turn that is not over yet will write once more.
const purgeGateSQL = `
	select deleted_at is not null, exists (
		select from turns t
		where t.account_id = c.account_id and t.conversation_id = c.conversation_id and not t.terminal)
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation
	for update of c`

// purgeSteps erase what a deleted conversation held, children before what they hang on. Each erases at most @limit rows,
// so that no transaction grows with the conversation. Usage stays: it is the account's, and holds no content.
var purgeSteps = []struct{ what, sql string }{
	{"events", `
		delete from turn_events e using (
			select e.turn_id, e.first_sequence
			from turns t join turn_events e on e.account_id = t.account_id and e.turn_id = t.turn_id
			where t.account_id = @account and t.conversation_id = @conversation
			limit @limit) x
		where e.account_id = @account and e.turn_id = x.turn_id and e.first_sequence = x.first_sequence`},
	{"records", `
		delete from turn_records r using (
			select r.turn_id, r.kind, r.key
			from turns t join turn_records r on r.account_id = t.account_id and r.turn_id = t.turn_id
			where t.account_id = @account and t.conversation_id = @conversation
			limit @limit) x
		where r.account_id = @account and r.turn_id = x.turn_id and r.kind = x.kind and r.key = x.key`},
	{"replays", `
		delete from turn_replays r using (
			select r.turn_id
			from turns t join turn_replays r on r.account_id = t.account_id and r.turn_id = t.turn_id
			where t.account_id = @account and t.conversation_id = @conversation
			limit @limit) x
		where r.account_id = @account and r.turn_id = x.turn_id`},
	{"kept answers of turns", `
		delete from idempotency i using (
			select i.method, i.path, i.key
			from turns t join idempotency i on i.account_id = t.account_id and i.resource_id = t.turn_id
			where t.account_id = @account and t.conversation_id = @conversation
			limit @limit) x
		where i.account_id = @account and i.method = x.method and i.path = x.path and i.key = x.key`},
	{"turns", `
		delete from turns t using (
			select turn_id from turns
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where t.account_id = @account and t.turn_id = x.turn_id`},
	{"messages", `
		delete from messages m using (
			select message_id from messages
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where m.account_id = @account and m.message_id = x.message_id`},
	{"segments", `
		delete from branch_segments g using (
			select g.branch_id, g.from_depth
			from branches b join branch_segments g on g.account_id = b.account_id and g.branch_id = b.branch_id
			where b.account_id = @account and b.conversation_id = @conversation
			limit @limit) x
		where g.account_id = @account and g.branch_id = x.branch_id and g.from_depth = x.from_depth`},
	{"branches", `
		delete from branches b using (
			select branch_id from branches
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where b.account_id = @account and b.branch_id = x.branch_id`},
	{"follow-ups", `
		delete from follow_ups f using (
			select follow_up_id from follow_ups
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where f.account_id = @account and f.follow_up_id = x.follow_up_id`},
	{"kept answers", `
		delete from idempotency i using (
			select method, path, key from idempotency
			where account_id = @account
			  and (resource_id = @conversation or path = @path or starts_with(path, @path || '/'))
			limit @limit) x
		where i.account_id = @account and i.method = x.method and i.path = x.path and i.key = x.key`},
}

// PurgeConversation erases at most limit rows of what a deleted conversation held and says whether nothing is left. It
// is repeated until then, by whatever process, in whatever state an earlier one left it; nothing is remembered between.
func (db *DB) PurgeConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, limit int) (done bool, err error) {
	args := pgx.NamedArgs{
		"account": account, "conversation": id, "path": "/conversations/" + id.String(),
	}
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		var deleted, busy bool
		err := tx.QueryRow(ctx, purgeGateSQL, args).Scan(&deleted, &busy)
		switch {
		case errors.Is(err, pgx.ErrNoRows): // the account itself is gone
			done = true
			return nil
		case err != nil:
			return fmt.Errorf("beginning a purge: %w", err)
		case !deleted:
			return errStillLive
		case busy:
			return protocol.Errorf(protocol.CodeTurnInProgress, "a turn of the conversation is not over")
		}
		done, err = purgeSome(ctx, tx, args, limit)
		return err
	})
	return done, err
}

func purgeSome(ctx context.Context, tx *Tx, args pgx.NamedArgs, limit int) (done bool, err error) {
	left := int64(limit)
	for _, step := range purgeSteps {
		args["limit"] = left
		tag, err := tx.Exec(ctx, step.sql, args)
		if err != nil {
			return false, fmt.Errorf("purging %s: %w", step.what, err)
		}
		if left -= tag.RowsAffected(); left <= 0 {
			return false, nil // the next call goes on
		}
	}
	return true, nil
}
