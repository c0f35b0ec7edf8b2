package conversations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// deleteAttempts limits how often one deletion cancels a turn. It cancels again if another turn, which the confirmation
// also covers, has become live before the conversation was deleted.
const deleteAttempts = 3

// LiveWork describes what a deletion would interrupt.
type LiveWork struct {
	TurnID     *protocol.TurnID // nil: only research tasks have not ended
	Version    int64
	WillDelete map[string]int // number of objects that the deletion removes, by kind
}

// EventConversationDeleted is the audit event of a deletion; its detail holds the identifier of the conversation.
const EventConversationDeleted audit.SecurityEvent = "conversation.deleted"

// Deletion is a request to delete a conversation.
type Deletion struct {
	ConversationID protocol.ConversationID
	Version        *int64           // nil: any version
	Tasks          int              // research tasks that may end with the conversation
	Cancelled      *protocol.TurnID // the live turn, once its cancel is durable; the turn may end after the deletion
	SessionID      *protocol.SessionID
	By             audit.Requester
}

// Interruption interrupts the live work of a conversation that is deleted.
type Interruption struct {
	// Confirm decides whether the account has confirmed what the deletion interrupts; its error ends the deletion.
	Confirm func(live *LiveWork) error
	// Cancel stores the cancel of the live turn.
	Cancel func(ctx context.Context, turn protocol.TurnID) error
}

// DeleteWithLiveWork is DeleteConversation for a conversation with live work, which it interrupts first. It returns as soon as the
// deletion and the cancel of the live turn are durable; the error is protocol.CodeUnavailable if turns become live faster than
// they are cancelled. A crash in between leaves a conversation whose turn was cancelled, and the client repeats the request.
func (s *Store) DeleteWithLiveWork(ctx context.Context, account protocol.AccountID, deletion *Deletion, interrupt Interruption) error {
	for range deleteAttempts {
		live, err := s.DeleteConversation(ctx, account, deletion)
		if err != nil || live == nil {
			return err
		}
		if err := interrupt.Confirm(live); err != nil {
			return err
		}
		if deletion.Tasks = live.WillDelete["live_tasks"]; live.TurnID == nil {
			continue
		}
		if err := interrupt.Cancel(ctx, *live.TurnID); err != nil {
			return err
		}
		deletion.Cancelled = live.TurnID
	}
	return protocol.Errorf(protocol.CodeUnavailable, "The answer in progress was canceled, but the conversation is not deleted yet. Try again.")
}

// DeleteConversation hides a conversation from every read, immediately and permanently, and enqueues a job that erases
// its content. If a turn is live, and deletion does not name it or its cancel is not durable, nothing happens and the
// live work is returned. The turn of a deleted conversation still ends as cancelled, even if its node fails; the purge
// waits for that.
func (s *Store) DeleteConversation(ctx context.Context, account protocol.AccountID, deletion *Deletion) (live *LiveWork, err error) {
	id := deletion.ConversationID
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		live = nil
		locked, err := LockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, deletion.Version, false); err != nil {
			return err
		}
		var tasks int
		if err := tx.QueryRow(ctx, countTasksSQL, account, id).Scan(&tasks); err != nil {
			return fmt.Errorf("counting the research tasks of a conversation: %w", err)
		}
		proceed, err := deletion.mayProceed(ctx, tx, account, locked.LiveTurnID)
		if err != nil {
			return err
		}
		if !proceed || tasks > deletion.Tasks {
			live, err = countLiveWork(ctx, tx, account, id, locked, tasks)
			return err
		}
		if locked.ProjectID != nil {
			work := &pgx.Batch{}
			projects.Work{Kind: protocol.WorkConversationDeleted, SessionID: deletion.SessionID, ConversationID: &id}.Queue(work, account, *locked.ProjectID)
			if err := tx.Run(ctx, work); err != nil {
				return fmt.Errorf("recording a deletion: %w", err)
			}
		}
		return s.leaveTombstone(ctx, tx, account, deletion, locked.Temporary)
	})
	return live, err
}

const countTasksSQL = `
	select count(*) from research_tasks where account_id = $1 and conversation_id = $2 and not hidden and ` + open.Tasks

const cancelStoredSQL = `
	select exists (select from turn_records where account_id = $1 and turn_id = $2 and kind = '` + turnlog.RecordCancel + `')`

// mayProceed reports whether no turn is live, or only the turn that deletion names and whose cancel is stored.
func (d *Deletion) mayProceed(ctx context.Context, tx *pg.Tx, account protocol.AccountID, live *protocol.TurnID) (proceed bool, err error) {
	switch {
	case live == nil:
		return true, nil
	case d.Cancelled == nil || *d.Cancelled != *live:
		return false, nil
	}
	if err := tx.QueryRow(ctx, cancelStoredSQL, account, *live).Scan(&proceed); err != nil {
		return false, fmt.Errorf("reading the cancel record of a turn: %w", err)
	}
	return proceed, nil
}

// maxCounted is the number at which counting stops, so that it costs the same in every conversation. A confirmation
// shows no larger number.
const maxCounted = 1000

const countConversationSQL = `
	select c.message_count,
		(select count(*) from (
			select from branches where account_id = @account and conversation_id = @conversation limit @most) b),
		(select count(*) from (
			select from follow_ups
			where account_id = @account and conversation_id = @conversation and ` + open.FollowUps + ` limit @most) f)
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation`

func countLiveWork(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID, locked *LockedConversation, tasks int) (*LiveWork, error) {
	var messages, branches, followUps int
	err := tx.QueryRow(ctx, countConversationSQL, pgx.NamedArgs{"account": account, "conversation": id, "most": maxCounted}).
		Scan(&messages, &branches, &followUps)
	if err != nil {
		return nil, fmt.Errorf("counting the content of a conversation: %w", err)
	}
	turns := 0
	if locked.LiveTurnID != nil {
		turns = 1
	}
	return &LiveWork{
		TurnID: locked.LiveTurnID, Version: locked.Version,
		WillDelete: map[string]int{
			"conversations": 1, "messages": messages, "branches": branches, "follow_ups": followUps, "live_turns": turns, "live_tasks": tasks,
		},
	}, nil
}

// leaveTombstoneSQL leaves a tombstone without content, so that the identifier stays in use. It also ends the research tasks.
const leaveTombstoneSQL = `
	with tasks as (
		` + open.HideTasks + ` where t.account_id = @account and t.conversation_id = @conversation and t.` + open.Tasks + `
	)
	update conversations
	set deleted_at = now(), title = '', provisional_title = '', metadata = '{}', draft = '', draft_attachments = '{}', draft_updated_at = null,
		profile = null, project_id = null, pinned_at = null, archived_at = null, read_message_id = null, read_at = null,
		message_count = 0, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

// leaveTombstone replaces a conversation by its tombstone, appends the audit entry and enqueues the purge. It cancels the queue, so
// that no sweep starts a turn from it. The files of a temporary one are deleted with it.
func (s *Store) leaveTombstone(ctx context.Context, tx *pg.Tx, account protocol.AccountID, deletion *Deletion, temporary bool) error {
	id := deletion.ConversationID
	detail, err := json.Marshal(map[string]protocol.ConversationID{"conversation_id": id})
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	args := pgx.NamedArgs{"account": account, "conversation": id}
	if temporary {
		if err := endFiles(ctx, tx, args); err != nil {
			return err
		}
	}
	batch.Queue(leaveTombstoneSQL, args)
	queues.CancelOpen(batch, account, id)
	batch.Queue(audit.AppendAuditSQL, account, string(EventConversationDeleted), deletion.SessionID, deletion.By.RequestID, deletion.By.Address, detail)
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("deleting a conversation: %w", err)
	}
	return s.queue.Insert(ctx, tx, PurgeConversationArgs{AccountID: account, ConversationID: id})
}
