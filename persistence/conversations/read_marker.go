package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const markReadSQL = `
	update conversations c
	set read_message_id = greatest(c.read_message_id, seen.message_id), read_at = now()
	from (
		select case when status = 'streaming' then parent_message_id else message_id end as message_id
		from messages
		where account_id = @account and conversation_id = @conversation and message_id = @message
	) seen
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

// MarkRead stores how far the account has read, for all of its devices. The mark never moves back. A message that is
// still streaming has not been read to its end; the mark is then the message before it.
func (s *Store) MarkRead(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	message protocol.MessageID,
) (conversation *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, markReadSQL, pgx.NamedArgs{"account": account, "conversation": id, "message": message})
		if err != nil {
			return fmt.Errorf("marking a conversation read: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("marking a conversation read: %w", pgx.ErrNoRows)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}
