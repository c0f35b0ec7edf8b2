package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const expiryBatch = 100 // conversations that are listed together

const (
	// Oldest first, by the index conversations_temporary. A live turn is an activity that has not ended.
	expiredConversationsSQL = `
	select account_id, conversation_id from conversations
	where temporary and deleted_at is null and last_activity_at < now() - $1::interval and live_turn_id is null
	order by last_activity_at
	limit $2`
	stillExpiredSQL = `
	select last_activity_at < now() - $3::interval and live_turn_id is null
	from conversations where account_id = $1 and conversation_id = $2 and deleted_at is null`
)

// expireTemporary deletes the temporary conversations whose time is over; the purge then erases what they held. Each is
// deleted in a transaction of its own, under the lock that starting a turn takes.
func (db *DB) expireTemporary(ctx context.Context) error {
	for {
		rows, err := db.engine.Query(ctx, expiredConversationsSQL, temporaryLifetime, expiryBatch)
		if err != nil {
			return fmt.Errorf("listing expired conversations: %w", classify(err))
		}
		expired, err := pgx.CollectRows(rows, pgx.RowToStructByPos[expiredConversation])
		if err != nil {
			return fmt.Errorf("listing expired conversations: %w", classify(err))
		}
		for _, c := range expired {
			if err := db.expireConversation(ctx, c); err != nil {
				return fmt.Errorf("deleting an expired conversation: %w", err)
			}
		}
		if len(expired) < expiryBatch {
			return nil
		}
	}
}

type expiredConversation struct {
	AccountID      protocol.AccountID
	ConversationID protocol.ConversationID
}

func (db *DB) expireConversation(ctx context.Context, c expiredConversation) error {
	err := db.InTx(ctx, c.AccountID, func(ctx context.Context, tx *Tx) error {
		if _, err := lockConversation(ctx, tx, c.AccountID, c.ConversationID); err != nil {
			return err
		}
		var still bool
		if err := tx.QueryRow(ctx, stillExpiredSQL, c.AccountID, c.ConversationID, temporaryLifetime).Scan(&still); err != nil || !still {
			return err
		}
		return db.buryConversation(ctx, tx, c.AccountID, &Deletion{ConversationID: c.ConversationID})
	})
	if errors.Is(err, pgx.ErrNoRows) || protocol.CodeOf(err) == protocol.CodeNotFound { // deleted meanwhile
		return nil
	}
	return err
}
