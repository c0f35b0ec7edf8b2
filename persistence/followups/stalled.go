package followups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// stalledAge is the minimum age of a queued item that the sweep considers, so that the sweep does not interfere with
// turns that are just ending.
const stalledAge = 2 * time.Second

// stalledScanLimit is the number of queued items that one sweep examines. Most of them rightly wait behind a live turn,
// so a sweep continues where the last one ended, and starts again with the oldest item after the newest.
const stalledScanLimit = 1000

var stalledQueuesSQL = `
select f.account_id, f.conversation_id, f.created_at, f.follow_up_id,
       c.live_turn_id is null and ` + conversations.Visible + `
       and coalesce((select p.state from projects p where p.account_id = c.account_id and p.project_id = c.project_id), 'active') = 'active'
       and ` + conversations.LiveTurnsOf("f.account_id") + ` < $2
from (
    select account_id, conversation_id, created_at, follow_up_id from follow_ups
    where state = 'queued' and created_at < now() - $1::interval and (created_at, follow_up_id) > ($3, $4)
    order by created_at, follow_up_id limit $5
) f
join conversations c on c.account_id = f.account_id and c.conversation_id = f.conversation_id
order by f.created_at, f.follow_up_id`

// queuedItem is a queued follow-up that a sweep examines, oldest first.
type queuedItem struct {
	Account      protocol.AccountID
	Conversation protocol.ConversationID
	CreatedAt    time.Time
	FollowUp     protocol.FollowUpID
	Stalled      bool // nothing prevents its start
}

// StartStalledQueues starts turns for stalled queues: queues that the end of a turn should have continued but could
// not.
func (s *Store) StartStalledQueues(ctx context.Context, on turnlog.Runner, limit int) ([]turnlog.Started, error) {
	found, err := s.stalledQueues(ctx, on.MaxLiveTurns, limit)
	if err != nil {
		return nil, err
	}
	var started []turnlog.Started
	for _, queue := range found {
		turn, err := s.startQueue(ctx, queue, on)
		if err != nil {
			return started, fmt.Errorf("starting a turn for a stalled queue: %w", err)
		}
		if turn != nil {
			started = append(started, *turn)
		}
	}
	return started, nil
}

// stalledQueues returns at most limit conversations whose queue is stalled. It continues where the last sweep ended.
func (s *Store) stalledQueues(ctx context.Context, maxLive, limit int) (found []ownedConversation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, err := pg.EngineRows[queuedItem](ctx, s.db, "finding stalled queues", stalledQueuesSQL,
		stalledAge, maxLive, s.swept.CreatedAt, s.swept.FollowUp, stalledScanLimit)
	if err != nil {
		return nil, err
	}
	seen := map[ownedConversation]bool{}
	for _, item := range items {
		if len(found) == limit {
			return found, nil
		}
		s.swept = item
		queue := ownedConversation{item.Account, item.Conversation}
		if item.Stalled && !seen[queue] {
			found, seen[queue] = append(found, queue), true
		}
	}
	if len(items) < stalledScanLimit {
		s.swept = queuedItem{}
	}
	return found, nil
}

type ownedConversation struct {
	account protocol.AccountID
	id      protocol.ConversationID
}

// startQueue checks again under the lock of the conversation, as its account, and starts the next turn of the queue;
// nil if nothing is to be started.
func (s *Store) startQueue(ctx context.Context, queue ownedConversation, on turnlog.Runner) (started *turnlog.Started, err error) {
	err = s.db.InTx(ctx, queue.account, func(ctx context.Context, tx *pg.Tx) error {
		started = nil
		locked, err := conversations.LockConversation(ctx, tx, queue.account, queue.id)
		if err != nil || locked.LiveTurnID != nil {
			return err
		}
		var batch *pgx.Batch
		next := turnlog.Queue{AccountID: queue.account, ConversationID: queue.id, At: time.Now()}
		if started, batch, err = turns.StartNext(ctx, tx, &next, on, s.log); err != nil || started == nil {
			return err
		}
		return tx.CommitWith(ctx, batch)
	})
	if err != nil {
		started = nil
	}
	if errors.Is(err, pgx.ErrNoRows) { // deleted in the meantime
		return nil, nil
	}
	return started, err
}
