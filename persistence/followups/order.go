package followups

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	// The condition is that of the index follow_ups_open.
	orderSQL = `
	select follow_up_id from follow_ups
	where account_id = $1 and conversation_id = $2 and ` + open.FollowUps + `
	order by position, follow_up_id limit $3`
	knownFollowUpsSQL = `
	select count(*) from unnest($3::uuid[]) as wanted (follow_up_id)
	cross join lateral (
		select from follow_ups f
		where f.account_id = $1 and f.follow_up_id = wanted.follow_up_id and f.conversation_id = $2 limit 1) found`
)

// OrderFollowUps puts the waiting items of a queue into an order, if the queue still has the version that the account
// saw. The order names every waiting item once. The errors: protocol.CodeNotFound if it names an item that the
// conversation does not have; protocol.CodeStaleVersion or CodeVersionRequired, with the current order;
// protocol.CodeInvalid if it is not complete. The items keep their versions: an order is a change of the queue.
func (s *Store) OrderFollowUps(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	order []protocol.FollowUpID, version *int64,
) (queue *protocol.FollowUpOrder, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := conversations.LockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if queue, err = readOrder(ctx, tx, account, conversation, locked.QueueVersion); err != nil {
			return err
		}
		if err := checkKnown(ctx, tx, account, conversation, order); err != nil {
			return err
		}
		if err := refuseOrder(queue, order, version); err != nil || slices.Equal(queue.Order, order) {
			return err
		}
		batch := &pgx.Batch{}
		queues.Reorder(batch, account, conversation, order)
		queue.Order, queue.QueueVersion = order, queue.QueueVersion+1
		return tx.CommitWith(ctx, batch)
	})
	if err != nil {
		return nil, fmt.Errorf("ordering follow-ups: %w", err)
	}
	return queue, nil
}

// readOrder reads the order of the waiting items: at most one more than an order can name.
func readOrder(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID, version int64) (
	*protocol.FollowUpOrder, error,
) {
	rows, err := tx.Query(ctx, orderSQL, account, conversation, protocol.MaxFollowUpOrder+1)
	if err != nil {
		return nil, err
	}
	order, err := pgx.CollectRows(rows, pgx.RowTo[protocol.FollowUpID])
	return &protocol.FollowUpOrder{Order: order, QueueVersion: version}, err
}

// checkKnown returns protocol.CodeNotFound unless the conversation has every item of an order.
func checkKnown(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID, order []protocol.FollowUpID) error {
	var known int
	if err := tx.QueryRow(ctx, knownFollowUpsSQL, account, conversation, order).Scan(&known); err != nil {
		return err
	}
	if known != len(order) {
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	return nil
}

// refuseOrder returns the reason why a queue cannot get an order; nil if it can.
func refuseOrder(queue *protocol.FollowUpOrder, order []protocol.FollowUpID, version *int64) error {
	switch {
	case version == nil:
		return protocol.Conflict(protocol.CodeVersionRequired, queue, "Send the queue_version of the queue that you order.")
	case *version != queue.QueueVersion:
		return protocol.Conflict(protocol.CodeStaleVersion, queue, "The queue has changed since that version.")
	}
	waiting := make(map[protocol.FollowUpID]bool, len(queue.Order))
	for _, id := range queue.Order {
		waiting[id] = true
	}
	for _, id := range order {
		if !waiting[id] { // started, cancelled, or named twice
			return protocol.Invalid("body.order", "must name each follow-up that waits once, and no other")
		}
		delete(waiting, id)
	}
	if len(waiting) > 0 {
		return protocol.Invalid("body.order", fmt.Sprintf("must name all %d follow-ups that wait", len(queue.Order)))
	}
	return nil
}
