package followups

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// CreateFollowUp adds a follow-up to the end of a queue. In an archived project, the error is a conflict with the project.
// If no turn is live, the transaction also starts the first
// queued item, which is the new one unless the queue was stalled. started is nil if it started none.
func (s *Store) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp, on turnlog.Runner) (item *protocol.FollowUp, started *turnlog.Started, err error) {
	err = s.db.InTx(ctx, f.AccountID, func(ctx context.Context, tx *pg.Tx) (err error) {
		item, started, err = s.create(ctx, tx, f, on)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("creating a follow-up: %w", err)
	}
	return item, started, nil
}

func (s *Store) create(ctx context.Context, tx *pg.Tx, f *turnlog.NewFollowUp, on turnlog.Runner) (item *protocol.FollowUp, started *turnlog.Started, err error) {
	locked, err := conversations.LockConversation(ctx, tx, f.AccountID, f.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	if err := lockActiveProject(ctx, tx, &f.Queue, locked); err != nil {
		return nil, nil, err
	}
	batch := &pgx.Batch{}
	if err := conversations.AttachFiles(ctx, tx, f.AccountID, f.ConversationID, f.Attachments); err != nil {
		return nil, nil, err
	}
	if item, err = queues.Append(ctx, tx, batch, f); err != nil {
		return nil, nil, err
	}
	if err := tx.Run(ctx, batch); err != nil {
		return nil, nil, err
	}
	if started, batch, err = s.startNext(ctx, tx, &f.Queue, on, locked.LiveTurnID, item); err != nil {
		return nil, nil, err
	}
	if err := idempotency.StoreResponseIn(ctx, tx, item); err != nil {
		return nil, nil, err
	}
	return item, started, commitWith(ctx, tx, batch)
}
