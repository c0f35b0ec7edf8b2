package conversations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const expiryBatch = 100 // conversations that one query lists

const (
	// The oldest come first, by the index conversations_temporary. A conversation with a live turn is still active.
	expiredConversationsSQL = `
	select account_id, conversation_id from conversations
	where temporary and deleted_at is null and last_activity_at < now() - $1::interval and live_turn_id is null
	order by last_activity_at
	limit $2`
	stillExpiredSQL = `
	select last_activity_at < now() - $3::interval and live_turn_id is null
	from conversations where account_id = $1 and conversation_id = $2 and deleted_at is null`
)

// expireTemporary deletes the temporary conversations whose lifetime is over; the purge then erases their content. Each
// one is deleted in its own transaction, under the lock that starting a turn takes.
func (s *Store) expireTemporary(ctx context.Context) error {
	for {
		rows, err := s.db.Engine.Query(ctx, expiredConversationsSQL, TemporaryLifetime, expiryBatch)
		if err != nil {
			return fmt.Errorf("listing expired conversations: %w", pg.Classify(err))
		}
		expired, err := pgx.CollectRows(rows, pgx.RowToStructByPos[expiredConversation])
		if err != nil {
			return fmt.Errorf("listing expired conversations: %w", pg.Classify(err))
		}
		for _, c := range expired {
			if err := s.expireConversation(ctx, c); err != nil {
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

func (s *Store) expireConversation(ctx context.Context, c expiredConversation) error {
	err := s.db.InTx(ctx, c.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := LockConversation(ctx, tx, c.AccountID, c.ConversationID); err != nil {
			return err
		}
		var still bool
		if err := tx.QueryRow(ctx, stillExpiredSQL, c.AccountID, c.ConversationID, TemporaryLifetime).Scan(&still); err != nil || !still {
			return err
		}
		return s.leaveTombstone(ctx, tx, c.AccountID, &Deletion{ConversationID: c.ConversationID}, true)
	})
	if errors.Is(err, pgx.ErrNoRows) || protocol.CodeOf(err) == protocol.CodeNotFound { // deleted in the meantime
		return nil
	}
	return err
}
