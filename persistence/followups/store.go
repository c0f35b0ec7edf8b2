// Package followups lists and changes the follow-up queues of conversations: it creates, edits, holds, releases,
// cancels, orders and promotes follow-ups. Every change takes the lock that the start and the end of a turn take (package turns): either
// the end of the live turn sees the change, or the change sees that no turn is live. In the second case, the transaction
// of a change that lets the queue continue also starts the next turn.
//
// It starts no other turns, except for queues that have stalled, which a sweep of each node continues as the engine. Package turns
// continues a queue when a turn ends. The statements that change a follow-up are in package queues, because other nouns use them too.
package followups

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store changes queues. Its methods may be called from any goroutine.
type Store struct {
	db  *pg.DB
	log *zap.Logger

	mu    sync.Mutex
	swept queuedItem // guarded by mu: the last queued item that a sweep examined; zero: start with the oldest
}

// New returns a store.
func New(db *pg.DB, log *zap.Logger) *Store {
	if log == nil {
		log = zap.NewNop()
	}
	return &Store{db: db, log: log}
}

const lockFollowUpSQL = `
	select ` + queues.Columns + `
	from follow_ups
	where account_id = @account and conversation_id = @conversation and follow_up_id = @follow_up
	for update`

// lockFollowUp locks the conversation of a queue and then one item of the queue.
func lockFollowUp(ctx context.Context, tx *pg.Tx, queue *turnlog.Queue, id protocol.FollowUpID) (
	locked *conversations.LockedConversation, item *protocol.FollowUp, err error,
) {
	locked, err = conversations.LockConversation(ctx, tx, queue.AccountID, queue.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	args := pgx.NamedArgs{"account": queue.AccountID, "conversation": queue.ConversationID, "follow_up": id}
	rows, err := tx.Query(ctx, lockFollowUpSQL, args)
	if err != nil {
		return nil, nil, err
	}
	item, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.FollowUp])
	return locked, item, err
}

// lockActiveProject locks the project of a conversation, so that an archive holds what the caller queues. It returns an error unless
// the queue may continue: there is no project, or it is active.
func lockActiveProject(ctx context.Context, tx *pg.Tx, queue *turnlog.Queue, locked *conversations.LockedConversation) error {
	if locked.ProjectID == nil {
		return nil
	}
	_, err := projects.LockActive(ctx, tx, queue.AccountID, *locked.ProjectID)
	return err
}

// startNext starts the next turn of a queue if the item is queued, no turn is live and the node runs turns. The returned
// batch, which may be nil, stores the turn. If the item itself becomes the turn, startNext updates it.
func (s *Store) startNext(ctx context.Context, tx *pg.Tx, queue *turnlog.Queue, on turnlog.Runner, live *protocol.TurnID, item *protocol.FollowUp) (
	*turnlog.Started, *pgx.Batch, error,
) {
	if item.State != protocol.FollowUpQueued || live != nil || on.Begin == nil {
		return nil, nil, nil
	}
	started, batch, err := turns.StartNext(ctx, tx, queue, on, s.log)
	if err == nil && started != nil && *started.Spec.FollowUpID == item.FollowUpID {
		item.State, item.TurnID, item.Version = protocol.FollowUpStarted, &started.Spec.TurnID, item.Version+1
	}
	return started, batch, err
}

// commitWith commits with a last batch, if there is one. Otherwise InTx commits.
func commitWith(ctx context.Context, tx *pg.Tx, batch *pgx.Batch) error {
	if batch == nil {
		return nil
	}
	return tx.CommitWith(ctx, batch)
}
