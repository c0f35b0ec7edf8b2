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

// PurgeConversationArgs asks that what a deleted conversation held be erased.
type PurgeConversationArgs struct {
	AccountID      protocol.AccountID      `json:"account_id"`
	ConversationID protocol.ConversationID `json:"conversation_id"`
}

// Kind names the job.
func (PurgeConversationArgs) Kind() string { return "purge_conversation" }

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

const maxTitleAttempts = 3

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
