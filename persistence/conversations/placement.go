package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const setArchivedSQL = `
	update conversations
	set archived_at = case when @set then now() end, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

// SetArchived moves a conversation into the archive or back. A repetition of the stored value changes nothing.
func (s *Store) SetArchived(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	archived bool, version *int64,
) (*protocol.Conversation, error) {
	return s.setMark(ctx, account, id, setArchivedSQL, archived, version, func(locked *LockedConversation) bool { return locked.ArchivedAt != nil })
}

const setPinnedSQL = `
	update conversations
	set pinned_at = case when @set then now() end, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

// SetPinned pins a conversation, so that lists show it first, or removes the pin. A repetition of the stored
// value changes nothing.
func (s *Store) SetPinned(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	pinned bool, version *int64,
) (*protocol.Conversation, error) {
	return s.setMark(ctx, account, id, setPinnedSQL, pinned, version, func(locked *LockedConversation) bool { return locked.PinnedAt != nil })
}

// setMark runs a statement that sets or clears a mark of a conversation. isSet reports the stored value.
func (s *Store) setMark(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	sql string, set bool, version *int64, isSet func(*LockedConversation) bool,
) (conversation *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, version, true); err != nil {
			return err
		}
		if isSet(locked) != set {
			if _, err := tx.Exec(ctx, sql, pgx.NamedArgs{"account": account, "conversation": id, "set": set}); err != nil {
				return fmt.Errorf("marking a conversation: %w", err)
			}
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}
