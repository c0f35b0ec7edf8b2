package conversations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// PurgeConversationArgs is the job that erases the content of a deleted conversation.
type PurgeConversationArgs struct {
	AccountID      protocol.AccountID      `json:"account_id"`
	ConversationID protocol.ConversationID `json:"conversation_id"`
}

// Kind returns the name of the job.
func (PurgeConversationArgs) Kind() string { return "purge_conversation" }

// InsertOpts allows so many attempts that a purge is practically never given up: what was deleted must be erased.
func (PurgeConversationArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxPurgeAttempts}
}

const (
	maxPurgeAttempts = 1000 // at most ten minutes apart, so about a week
	purgeRows        = 2000 // rows that one transaction deletes
	purgeRun         = 40 * time.Second
	purgeBusy        = 5 * time.Second // delay while a turn of the conversation is still ending
)

// errNotDeleted stops the purge of a conversation that was not deleted: either a defect, or an operator restored the
// row by hand.
var errNotDeleted = errors.New("the conversation was not deleted")

// lockForPurgeSQL takes the lock that starting and ending turns take, and reports whether the conversation was deleted
// and whether one of its turns has not ended. Such a turn will still write.
const lockForPurgeSQL = `
	select deleted_at is not null, exists (
		select from turns t
		where t.account_id = c.account_id and t.conversation_id = c.conversation_id and t.` + open.Turns + `)
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation
	for update of c`

const (
	purgeTurns       = "turns" // the step that deletes the turns of a window
	purgeRowsPerTurn = 4       // approximate number of rows of a finished turn, including its own
)

// purgedTurns selects the oldest turns of a conversation, at most @window. The rows that belong to these turns are
// deleted before the turns themselves, so that no step visits turns whose rows are already gone.
const purgedTurns = `(
			select account_id, turn_id from turns
			where account_id = @account and conversation_id = @conversation
			order by turn_id limit @window) t`

// DeleteShareRows returns the statement that deletes rows of a table of the shares that meet a condition, at most limit, which is a
// parameter. column is the last one of the table's key.
func DeleteShareRows(table, column, condition, limit string) string {
	return `
	delete from ` + table + ` w using (
		select w.account_id, w.share_id, w.` + column + `
		from (select account_id, share_id from shares where ` + condition + `) s
		cross join lateral (
			select account_id, share_id, ` + column + ` from ` + table + ` where account_id = s.account_id and share_id = s.share_id limit ` + limit + `) w
		limit ` + limit + `) x
	where w.account_id = x.account_id and w.share_id = x.share_id and w.` + column + ` = x.` + column
}

func purgeShareRows(table, column string) string {
	return DeleteShareRows(table, column, "account_id = @account and conversation_id = @conversation", "@limit")
}

// purgeSteps delete the content of a deleted conversation, children before their parents. Each deletes at most @limit
// rows, so that no transaction grows with the conversation. Usage records stay: they belong to the account and hold no
// content.
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
	{"stored responses of turns", `
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
	{"rows of the search", `
		delete from search_rows r using (
			select kind, id from search_rows
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where r.account_id = @account and r.kind = x.kind and r.id = x.id`},
	{"pending rows of the search", `
		delete from search_pending p using (
			select n from search_pending
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where p.account_id = @account and p.n = x.n`},
	{"pages of shares", purgeShareRows("share_pages", "page")},
	{"files of shares", purgeShareRows("share_files", "n")},
	{"artifacts of shares", purgeShareRows("share_artifacts", "n")},
	{"shares", `
		delete from shares s using (
			select share_id from shares
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where s.account_id = @account and s.share_id = x.share_id`},
	{"versions of artifacts", `
		delete from artifact_versions v using (
			select v.artifact_id, v.version
			from (select artifact_id from artifacts where account_id = @account and conversation_id = @conversation) a
			cross join lateral (
				select artifact_id, version from artifact_versions where account_id = @account and artifact_id = a.artifact_id limit @limit) v
			limit @limit) x
		where v.account_id = @account and v.artifact_id = x.artifact_id and v.version = x.version`},
	{"artifacts", `
		delete from artifacts a using (
			select artifact_id from artifacts
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where a.account_id = @account and a.artifact_id = x.artifact_id`},
	{"entries of research tasks", `
		delete from research_entries e using (
			select e.task_id, e.number
			from (select task_id from research_tasks where account_id = @account and conversation_id = @conversation) t
			cross join lateral (
				select task_id, number from research_entries where account_id = @account and task_id = t.task_id limit @limit) e
			limit @limit) x
		where e.account_id = @account and e.task_id = x.task_id and e.number = x.number`},
	{"events of research tasks", `
		delete from research_events e using (
			select e.task_id, e.first_sequence
			from (select task_id from research_tasks where account_id = @account and conversation_id = @conversation) t
			cross join lateral (
				select task_id, first_sequence from research_events where account_id = @account and task_id = t.task_id limit @limit) e
			limit @limit) x
		where e.account_id = @account and e.task_id = x.task_id and e.first_sequence = x.first_sequence`},
	{"sources of research tasks", `
		delete from research_sources e using (
			select e.task_id, e.ordinal
			from (select task_id from research_tasks where account_id = @account and conversation_id = @conversation) t
			cross join lateral (
				select task_id, ordinal from research_sources where account_id = @account and task_id = t.task_id limit @limit) e
			limit @limit) x
		where e.account_id = @account and e.task_id = x.task_id and e.ordinal = x.ordinal`},
	{"research tasks", `
		delete from research_tasks t using (
			select task_id from research_tasks
			where account_id = @account and conversation_id = @conversation
			limit @limit) x
		where t.account_id = @account and t.task_id = x.task_id`},
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
	{"follow-ups", queues.EraseSQL},
	{"the location", `delete from location_contexts where account_id = @account and conversation_id = @conversation`},
	{"stored responses", `
		delete from idempotency i using (
			select key_hash from idempotency
			where account_id = @account
			  and (path = @path or starts_with(path, @path || '/')
			       or headers ->> 'Location' = @path or starts_with(headers ->> 'Location', @path || '/'))
			limit @limit) x
		where i.account_id = @account and i.key_hash = x.key_hash`},
}

// PurgeConversation erases at most limit rows of a deleted conversation and reports whether nothing is left. Callers
// repeat it until then. Any process may continue, whatever state an earlier call left; the process keeps no state
// between calls.
func (s *Store) PurgeConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, limit int) (done bool, err error) {
	args := pgx.NamedArgs{
		"account": account, "conversation": id, "path": protocol.ConversationPath(id),
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var deleted, busy bool
		err := tx.QueryRow(ctx, lockForPurgeSQL, args).Scan(&deleted, &busy)
		switch {
		case errors.Is(err, pgx.ErrNoRows): // the account itself was deleted
			done = true
			return nil
		case err != nil:
			return fmt.Errorf("starting a purge: %w", err)
		case !deleted:
			return errNotDeleted
		case busy:
			return protocol.Errorf(protocol.CodeTurnInProgress, "a turn of the conversation is not over")
		}
		done, err = purgeSome(ctx, tx, args, limit)
		return err
	})
	return done, err
}

func purgeSome(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, limit int) (done bool, err error) {
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
			return false, nil // the next call continues, with the turns that follow
		}
	}
	return true, nil
}

// purge erases a deleted conversation in steps until nothing is left. When purgeRun is over, the next run continues.
func (s *Store) purge(ctx context.Context, args PurgeConversationArgs) error {
	if err := failpoint.Before(failpoint.DeleteAfterRow); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < purgeRun; {
		done, err := s.PurgeConversation(ctx, args.AccountID, args.ConversationID, purgeRows)
		switch {
		case errors.Is(err, errNotDeleted):
			return river.JobCancel(err)
		case protocol.CodeOf(err) == protocol.CodeTurnInProgress:
			return river.JobSnooze(purgeBusy)
		case err != nil:
			return fmt.Errorf("purging a conversation: %w", err)
		case done:
			return failpoint.After(failpoint.DeleteAfterRow, nil)
		}
	}
	return river.JobSnooze(0)
}
