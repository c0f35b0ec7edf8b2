package followups

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// frontSQL reads the first waiting item, and whether the promoted item already interrupts the live turn.
const frontSQL = `
	select f.follow_up_id, f.position, (
		select p.interrupts_turn_id from follow_ups p where p.account_id = @account and p.follow_up_id = @follow_up)
	from follow_ups f
	where f.account_id = @account and f.conversation_id = @conversation and f.` + open.FollowUps + `
	order by f.position, f.follow_up_id limit 1`

// PromoteFollowUp moves an item to the front of its queue and releases it if it is held. If no turn is live, the
// transaction also starts the item. Otherwise it starts when the live turn completes or, with Interrupt, when that turn
// ends in any way; live then names the turn that the caller must cancel. A repeat changes nothing, also after the item
// has started. The error is protocol.CodeConflict if the item was cancelled, or the project of the conversation is
// archived.
func (s *Store) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion, on turnlog.Runner) (
	item *protocol.FollowUp, live *protocol.TurnID, started *turnlog.Started, err error,
) {
	err = s.db.InTx(ctx, promotion.AccountID, func(ctx context.Context, tx *pg.Tx) (err error) {
		item, live, started, err = s.promote(ctx, tx, promotion, on)
		return err
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("promoting a follow-up: %w", err)
	}
	return item, live, started, nil
}

func (s *Store) promote(ctx context.Context, tx *pg.Tx, promotion *turnlog.FollowUpPromotion, on turnlog.Runner) (
	item *protocol.FollowUp, live *protocol.TurnID, started *turnlog.Started, err error,
) {
	locked, item, err := lockFollowUp(ctx, tx, &promotion.Queue, promotion.FollowUpID)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case item.State == protocol.FollowUpStarted:
		return item, nil, nil, nil
	case item.State == protocol.FollowUpCancelled:
		return nil, nil, nil, protocol.Conflict(protocol.CodeConflict, item, "The queued message was canceled.")
	}
	if err := lockActiveProject(ctx, tx, &promotion.Queue, locked); err != nil {
		return nil, nil, nil, err
	}
	if promotion.Interrupt {
		live = locked.LiveTurnID
	}
	if err := moveToFront(ctx, tx, promotion, item, live); err != nil {
		return nil, nil, nil, err
	}
	started, batch, err := s.startNext(ctx, tx, &promotion.Queue, on, locked.LiveTurnID, item)
	if err != nil {
		return nil, nil, nil, err
	}
	return item, live, started, commitWith(ctx, tx, batch)
}

// moveToFront makes the item the first one of its queue, and queued. interrupts is the turn at whose end the item
// starts; nil: at the end of a turn that completes.
func moveToFront(ctx context.Context, tx *pg.Tx, promotion *turnlog.FollowUpPromotion, item *protocol.FollowUp, interrupts *protocol.TurnID) error {
	args := pgx.NamedArgs{
		"account": promotion.AccountID, "conversation": promotion.ConversationID, "follow_up": item.FollowUpID,
	}
	var first protocol.FollowUpID
	var position int64
	var interrupted *protocol.TurnID
	if err := tx.QueryRow(ctx, frontSQL, args).Scan(&first, &position, &interrupted); err != nil {
		return err
	}
	same := interrupts == nil || interrupted != nil && *interrupted == *interrupts
	if first == item.FollowUpID && item.State == protocol.FollowUpQueued && same {
		return nil
	}
	if first != item.FollowUpID {
		item.Position = position - 1
	}
	if item.State != protocol.FollowUpQueued {
		item.State, item.Version = protocol.FollowUpQueued, item.Version+1
	}
	batch := &pgx.Batch{}
	queues.Promote(batch, promotion.AccountID, promotion.ConversationID, item, interrupts)
	return tx.Run(ctx, batch)
}
