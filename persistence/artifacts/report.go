package artifacts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// CreateReport stores the report of a research task, in a conversation that is locked. The errors are those of CheckReport.
func (s *Store) CreateReport(ctx context.Context, tx *pg.Tx, account protocol.AccountID, locked *conversations.LockedConversation, report *researchlog.Report) (*protocol.Artifact, error) {
	a := &protocol.Artifact{ArtifactID: report.ArtifactID, ConversationID: report.ConversationID, Kind: protocol.ArtifactDocument}
	if err := s.checkRoom(ctx, tx, account, locked, a.ConversationID); err != nil {
		return nil, err
	}
	return s.create(ctx, tx, account, a, &draft{title: report.Title, content: report.Content, by: protocol.ByModel, message: &report.MessageID})
}

// CheckReport returns an error if a report of a size cannot be stored in a conversation: it has too many artifacts, its project
// is archived, or the quota of the account does not suffice.
func (s *Store) CheckReport(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, bytes int) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := conversations.LockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if err := s.checkRoom(ctx, tx, account, locked, conversation); err != nil {
			return err
		}
		return s.quota.CheckBytes(ctx, tx, account, bytes)
	})
}

// checkRoom returns an error if a conversation takes no further artifact.
func (s *Store) checkRoom(ctx context.Context, tx *pg.Tx, account protocol.AccountID, locked *conversations.LockedConversation, conversation protocol.ConversationID) error {
	if err := checkWritable(ctx, tx, account, locked.ProjectID); err != nil {
		return err
	}
	var count int
	args := pgx.NamedArgs{"account": account, "conversation": conversation, "most": protocol.MaxArtifacts}
	if err := tx.QueryRow(ctx, countSQL, args).Scan(&count); err != nil {
		return fmt.Errorf("counting artifacts: %w", err)
	}
	if count >= protocol.MaxArtifacts {
		return protocol.Errorf(protocol.CodeTooLarge, "The conversation has %d artifacts, which is the limit.", count)
	}
	return nil
}
