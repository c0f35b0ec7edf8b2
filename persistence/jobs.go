package persistence

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"turnstone/protocol"
)

// Jobs are rows that are inserted in the transaction that causes them, so that both are stored or neither. They carry
// identifiers of accounts and objects, nothing else: whoever reads the queue learns nothing. A new job is its Args here, a
// worker in job_worker.go and a line in JobWorkers.register.

// PurgeConversationArgs asks that what a deleted conversation held be erased.
type PurgeConversationArgs struct {
	AccountID      protocol.AccountID      `json:"account_id"`
	ConversationID protocol.ConversationID `json:"conversation_id"`
}

// Kind names the job.
func (PurgeConversationArgs) Kind() string { return "purge_conversation" }

// InsertOpts never give a purge up: what was deleted must go.
func (PurgeConversationArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxPurgeAttempts}
}

// TitleArgs asks for an automatic title of a conversation.
type TitleArgs struct {
	AccountID      protocol.AccountID      `json:"account_id" river:"unique"`
	ConversationID protocol.ConversationID `json:"conversation_id" river:"unique"`
	TurnID         protocol.TurnID         `json:"turn_id"` // whose end asked
}

// Kind names the job.
func (TitleArgs) Kind() string { return "title" }

// InsertOpts keep a conversation from being asked about twice at once.
func (TitleArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxTitleAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

const (
	maxTitleAttempts = 3
	maxPurgeAttempts = 1000 // at most ten minutes apart: a week
)

// expireArgs asks that what has expired be removed.
type expireArgs struct{}

func (expireArgs) Kind() string { return "expire" }

// newInserter is a client that only inserts: it starts nothing.
func newInserter(db *DB) (*river.Client[pgx.Tx], error) {
	client, err := river.NewClient(riverpgxv5.New(db.app), &river.Config{Schema: riverSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	return client, nil
}

// enqueue inserts a job in the transaction that causes it: both are stored or neither.
func (db *DB) enqueue(ctx context.Context, tx *Tx, args river.JobArgs) error {
	if _, err := db.jobs.InsertTx(ctx, tx, args, nil); err != nil {
		return fmt.Errorf("enqueueing %s: %w", args.Kind(), err)
	}
	return nil
}
