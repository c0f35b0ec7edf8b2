package conversations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const ownsConversationSQL = `
	select true from conversations c where c.account_id = $1 and c.conversation_id = $2 and ` + Visible

// OwnsConversation returns protocol.CodeNotFound unless the account has the conversation. It is called before a body is
// read.
func (s *Store) OwnsConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsConversationSQL, account, id)
	return err
}

const ownsBranchSQL = `select true from branches where account_id = $1 and branch_id = $2`

// OwnsBranch returns protocol.CodeNotFound unless the account has the branch, in any conversation.
func (s *Store) OwnsBranch(ctx context.Context, account protocol.AccountID, id protocol.BranchID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsBranchSQL, account, id)
	return err
}

const ownsFollowUpSQL = `select true from follow_ups where account_id = $1 and follow_up_id = $2`

// OwnsFollowUp returns protocol.CodeNotFound unless the account has the item, in any conversation.
func (s *Store) OwnsFollowUp(ctx context.Context, account protocol.AccountID, id protocol.FollowUpID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsFollowUpSQL, account, id)
	return err
}

const ownsProjectSQL = `select true from projects where account_id = $1 and project_id = $2`

// OwnsProject returns protocol.CodeNotFound unless the account has the project, in any state.
func (s *Store) OwnsProject(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsProjectSQL, account, id)
	return err
}
