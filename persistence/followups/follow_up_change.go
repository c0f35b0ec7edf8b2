package followups

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// ChangeFollowUp changes an item of the queue if it still has the version that the account saw. If the item is now
// queued and no turn is live, the transaction also starts the first queued item. started is nil if it started none.
func (s *Store) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange, on turnlog.Runner) (
	item *protocol.FollowUp, started *turnlog.Started, err error,
) {
	err = s.db.InTx(ctx, change.AccountID, func(ctx context.Context, tx *pg.Tx) (err error) {
		item, started, err = s.change(ctx, tx, change, on)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("changing a follow-up: %w", err)
	}
	return item, started, nil
}

func (s *Store) change(ctx context.Context, tx *pg.Tx, change *turnlog.FollowUpChange, on turnlog.Runner) (
	item *protocol.FollowUp, started *turnlog.Started, err error,
) {
	locked, item, err := lockFollowUp(ctx, tx, &change.Queue, change.FollowUpID)
	if err != nil {
		return nil, nil, err
	}
	if err := change.Check(item); err != nil {
		return nil, nil, err
	}
	if change.State == protocol.FollowUpQueued {
		if err := lockActiveProject(ctx, tx, &change.Queue, locked); err != nil {
			return nil, nil, err
		}
	}
	if !change.Differs(item) {
		return item, nil, nil
	}
	if err := apply(ctx, tx, item, change); err != nil {
		return nil, nil, err
	}
	item.Version++
	batch := &pgx.Batch{}
	queues.Change(batch, change.AccountID, change.ConversationID, item)
	if err := tx.Run(ctx, batch); err != nil {
		return nil, nil, err
	}
	started, batch, err = s.startNext(ctx, tx, &change.Queue, on, locked.LiveTurnID, item)
	if err != nil {
		return nil, nil, err
	}
	return item, started, commitWith(ctx, tx, batch)
}

// apply changes the item. The account must have the files that the item gets. Those that it has already may have been
// deleted since: they stay until the item has started.
func apply(ctx context.Context, tx *pg.Tx, item *protocol.FollowUp, change *turnlog.FollowUpChange) error {
	item.State = change.State
	if change.Content != nil {
		item.Content = *change.Content
	}
	if change.Attachments != nil {
		added := slices.DeleteFunc(slices.Clone(*change.Attachments), func(id protocol.FileID) bool { return slices.Contains(item.Attachments, id) })
		if err := conversations.AttachFiles(ctx, tx, change.AccountID, change.ConversationID, added); err != nil {
			return err
		}
		item.Attachments = append([]protocol.FileID{}, *change.Attachments...)
	}
	if change.Content != nil || change.Attachments != nil {
		return protocol.CheckFollowUp(item.Content, len(item.Attachments))
	}
	return nil
}
