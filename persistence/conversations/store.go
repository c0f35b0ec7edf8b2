package conversations

import (
	"context"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store stores conversations with their branches, messages, drafts and follow-ups. Its methods may be called from any
// goroutine.
type Store struct {
	db        *pg.DB
	queue     *jobs.Queue
	streaming streamingMessages
}

// New returns a store that enqueues its jobs in queue.
func New(db *pg.DB, queue *jobs.Queue) *Store {
	return &Store{db: db, queue: queue}
}

// ForgetStreaming drops what is cached of the message of a turn that has ended.
func (s *Store) ForgetStreaming(account protocol.AccountID, turn protocol.TurnID) {
	s.streaming.forget(account, turn)
}

// PurgeJob returns the job that erases deleted conversations.
func (s *Store) PurgeJob() jobs.Job { return jobs.New(s.purge) }

// Expire deletes the temporary conversations whose lifetime is over.
func (s *Store) Expire(ctx context.Context) error { return s.expireTemporary(ctx) }
