package persistence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const ownsConversationSQL = `
	select true from conversations where account_id = $1 and conversation_id = $2 and deleted_at is null`

// OwnsConversation says protocol.CodeNotFound unless the account has the conversation. It is asked before a body is read.
func (db *DB) OwnsConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) error {
	_, err := Row(ctx, db, account, pgx.RowTo[bool], ownsConversationSQL, account, id)
	return err
}

const ownsFollowUpSQL = `select true from follow_ups where account_id = $1 and follow_up_id = $2`

// OwnsFollowUp says protocol.CodeNotFound unless the account has the item, in whatever conversation.
func (db *DB) OwnsFollowUp(ctx context.Context, account protocol.AccountID, id protocol.FollowUpID) error {
	_, err := Row(ctx, db, account, pgx.RowTo[bool], ownsFollowUpSQL, account, id)
	return err
}
