package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// errStillLive stops a purge of what was not deleted. It is a defect, or an operator who restored a row by hand.
var errStillLive = errors.New("the conversation was not deleted")

// purgeGateSQL takes the lock that starting and ending turns take. A turn that is not over yet will write once more.
const purgeGateSQL = `
	select deleted_at is not null, exists (
		select from turns t
		where t.account_id = c.account_id and t.conversation_id = c.conversation_id and t.` + liveStates + `)
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation
	for update of c`

const (
	purgeTurns       = "turns" // the step that ends a window
	purgeRowsPerTurn = 4       // about what hangs on a turn that has ended, and the turn
)

// purgedTurns are the oldest turns of a conversation. What hangs on turns is erased for these before they are themselves, so
// that no step looks at turns whose rows are gone already.
const purgedTurns = `(
			select account_id, turn_id from turns
			where account_id = @account and conversation_id = @conversation
			order by turn_id limit @window) t`

// purgeSteps erase what a deleted conversation held, children before what they hang on. Each erases at most @limit rows,
// so that no transaction grows with the conversation. Usage stays: it is the account's, and holds no content.
var purgeSteps = []struct{ what, sql string }{
	{"events", `
		delete from turn_events e using (
			select e.turn_id, e.first_sequence
			from ` + purgedTurns + ` cross join lateral (
				select turn_id, first_sequence from turn_events where account_id = @account and turn_id = t.turn_id limit @limit) e
			limit @limit) x
		where e.account_id = @account and e.turn_id = x.turn_id and e.first_sequence = x.first_sequence`},
	{"records", `
		delete from turn_records r using (
			select r.turn_id, r.kind, r.key
			from ` + purgedTurns + ` cross join lateral (
				select turn_id, kind, key from turn_records where account_id = @account and turn_id = t.turn_id limit @limit) r
			limit @limit) x
		where r.account_id = @account and r.turn_id = x.turn_id and r.kind = x.kind and r.key = x.key`},
	{"replays", `
		delete from turn_replays r using (
			select r.turn_id
			from ` + purgedTurns + ` cross join lateral (
				select turn_id from turn_replays where account_id = @account and turn_id = t.turn_id limit 1) r
			limit @limit) x
		where r.account_id = @account and r.turn_id = x.turn_id`},
	{"kept answers of turns", `
		delete from idempotency i using (
			select key_hash from idempotency
			where account_id = @account and resource_id = any (array(select turn_id from ` + purgedTurns + `))
			limit @limit) x
		where i.account_id = @account and i.key_hash = x.key_hash`},
	{purgeTurns, `
		delete from turns t using (
			select turn_id from turns
			where account_id = @account and conversation_id = @conversation
			order by turn_id limit least(@limit::bigint, @window::bigint)) x
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
			from branches b cross join lateral (
				select branch_id, from_depth from branch_segments where account_id = @account and branch_id = b.branch_id limit @limit) g
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
			select key_hash from idempotency
			where account_id = @account
			  and (path = @path or starts_with(path, @path || '/')
			       or headers ->> 'Location' = @path or starts_with(headers ->> 'Location', @path || '/'))
			limit @limit) x
		where i.account_id = @account and i.key_hash = x.key_hash`},
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
	window := max(1, int64(limit/purgeRowsPerTurn))
	args["window"] = window
	for _, step := range purgeSteps {
		args["limit"] = left
		tag, err := tx.Exec(ctx, step.sql, args)
		if err != nil {
			return false, fmt.Errorf("purging %s: %w", step.what, err)
		}
		erased := tag.RowsAffected()
		if left -= erased; left <= 0 || erased == window && step.what == purgeTurns {
			return false, nil // the next call goes on, with the turns that follow
		}
	}
	return true, nil
}
