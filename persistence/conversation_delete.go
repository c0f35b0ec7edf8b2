package persistence

import (
	"context"
	"encoding/json"
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

// EventConversationDeleted is in the audit, with the identifier.
const EventConversationDeleted SecurityEvent = "conversation.deleted"

// Deletion asks for the end of a conversation.
type Deletion struct {
	ConversationID protocol.ConversationID
	Version        *int64           // nil: whatever it is
	Cancelled      *protocol.TurnID // the live turn, once its cancel is durable: it may end after the deletion
	SessionID      *protocol.SessionID
	By             Requester
}

// DeleteConversation hides a conversation from every read, at once and for good; a job erases what it held. While a turn
// is live whose cancel is not durable, or is not the one that deletion names, nothing happens and the live work is
// returned. The turn of a deleted conversation ends as cancelled, after its node's death too; the purge waits for that.
func (db *DB) DeleteConversation(ctx context.Context, account protocol.AccountID, deletion *Deletion) (live *LiveWork, err error) {
	id := deletion.ConversationID
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		live = nil
		locked, err := lockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, deletion.Version, false); err != nil {
			return err
		}
		ending, err := deletion.ends(ctx, tx, account, locked.LiveTurnID)
		if err != nil {
			return err
		}
		if !ending {
			live, err = countLiveWork(ctx, tx, account, id, locked)
			return err
		}
		return db.buryConversation(ctx, tx, account, deletion)
	})
	return live, err
}

const cancelStoredSQL = `
	select exists (select from turn_records where account_id = $1 and turn_id = $2 and kind = '` + protocol.RecordCancel + `')`

// ends reports whether no turn is live, or only the one that was cancelled.
func (d *Deletion) ends(ctx context.Context, tx *Tx, account protocol.AccountID, live *protocol.TurnID) (ends bool, err error) {
	switch {
	case live == nil:
		return true, nil
	case d.Cancelled == nil || *d.Cancelled != *live:
		return false, nil
	}
	if err := tx.QueryRow(ctx, cancelStoredSQL, account, *live).Scan(&ends); err != nil {
		return false, fmt.Errorf("looking for the cancel of a turn: %w", err)
	}
	return ends, nil
}

// maxCounted is where counting stops, so that it costs the same in every conversation. A confirmation shows no more.
const maxCounted = 1000

const countConversationSQL = `
	select c.message_count,
		(select count(*) from (
			select from branches where account_id = @account and conversation_id = @conversation limit @most) b),
		(select count(*) from (
			select from follow_ups
			where account_id = @account and conversation_id = @conversation and state in ('queued', 'held') limit @most) f)
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation`

func countLiveWork(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID, locked *lockedConversation) (*LiveWork, error) {
	var messages, branches, followUps int
	err := tx.QueryRow(ctx, countConversationSQL, pgx.NamedArgs{"account": account, "conversation": id, "most": maxCounted}).
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

func (db *DB) buryConversation(ctx context.Context, tx *Tx, account protocol.AccountID, deletion *Deletion) error {
	id := deletion.ConversationID
	detail, err := json.Marshal(map[string]protocol.ConversationID{"conversation_id": id})
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(buryConversationSQL, pgx.NamedArgs{"account": account, "conversation": id})
	batch.Queue(appendAuditSQL, account, string(EventConversationDeleted), deletion.SessionID, deletion.By.RequestID, deletion.By.Address, detail)
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("deleting a conversation: %w", err)
	}
	return db.enqueue(ctx, tx, PurgeConversationArgs{AccountID: account, ConversationID: id})
}
