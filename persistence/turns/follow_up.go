package turns

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	lockFollowUpSQL = `
	select ` + conversations.FollowUpColumns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation and follow_up_id = @follow_up
	for update`
	changeFollowUpSQL = `
	update follow_ups set state = @state, content = @content, version = version + 1
	where account_id = @account and follow_up_id = @follow_up`
)

// ChangeFollowUp changes an item of the queue if it still has the version that the account saw. It takes the lock that
// ending the live turn takes: either that end sees the change, or the change sees that no turn is live. In the second
// case, if the item is now queued, the first queued item is started in the same transaction.
func (t *Store) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (
	item *protocol.FollowUp, started *turnlog.Started, err error,
) {
	err = t.db.InTx(ctx, change.AccountID, func(ctx context.Context, tx *pg.Tx) (err error) {
		item, started, err = t.changeFollowUp(ctx, tx, change)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("changing a follow-up: %w", err)
	}
	return item, started, nil
}

func (t *Store) changeFollowUp(ctx context.Context, tx *pg.Tx, change *turnlog.FollowUpChange) (
	item *protocol.FollowUp, started *turnlog.Started, err error,
) {
	locked, err := conversations.LockConversation(ctx, tx, change.AccountID, change.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	args := pgx.NamedArgs{"account": change.AccountID, "conversation": change.ConversationID, "follow_up": change.FollowUpID}
	rows, err := tx.Query(ctx, lockFollowUpSQL, args)
	if err != nil {
		return nil, nil, err
	}
	if item, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.FollowUp]); err != nil {
		return nil, nil, err
	}
	if err := refuseFollowUpChange(item, change); err != nil {
		return nil, nil, err
	}
	before := *item
	item.State = change.State
	if change.Content != nil {
		item.Content = *change.Content
	}
	if item.State == before.State && item.Content == before.Content {
		return item, nil, nil
	}
	item.Version++
	args["state"], args["content"] = item.State, item.Content
	batch := &pgx.Batch{}
	batch.Queue(changeFollowUpSQL, args)
	batch.Queue(touchQueueSQL, change.AccountID, change.ConversationID)
	if err := tx.Run(ctx, batch); err != nil {
		return nil, nil, err
	}
	if item.State != protocol.FollowUpQueued || locked.LiveTurnID != nil || change.Begin == nil {
		return item, nil, nil
	}
	plan := turnPlan{account: change.AccountID, conversation: change.ConversationID, owner: change.Owner, at: millis(change.At)}
	started, batch, err = startNext(ctx, tx, plan, change.MaxLiveTurns, change.Begin, t.log)
	if err != nil || started == nil {
		return item, nil, err
	}
	if *started.Spec.FollowUpID == item.FollowUpID {
		item.State, item.TurnID, item.Version = protocol.FollowUpStarted, &started.Spec.TurnID, item.Version+1
	}
	return item, started, tx.CommitWith(ctx, batch)
}

// refuseFollowUpChange returns the conflict between a change and the stored item; nil if the change is allowed.
func refuseFollowUpChange(item *protocol.FollowUp, change *turnlog.FollowUpChange) error {
	same := item.State == change.State && (change.Content == nil || *change.Content == item.Content)
	switch {
	case change.Version == nil:
		return protocol.Conflict(protocol.CodeVersionRequired, item, "Send the version of the follow-up that you change in If-Match.")
	case *change.Version != item.Version:
		return protocol.Conflict(protocol.CodeStaleVersion, item, "The follow-up has changed since that version.")
	case !same && item.State.Terminal():
		return protocol.Conflict(protocol.CodeConflict, item, "The follow-up was already started or cancelled.")
	}
	return nil
}
