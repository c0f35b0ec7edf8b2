// Package usage stores and sums usage records: those of turns and titles, and those that clients report, which are
// shown and never counted. The packages turns and research store their records (Queue) in the transaction that ends a turn
// or a task.
package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store stores usage records. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

const usageColumns = `usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at`

const insertUsageSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, occurred_at)
	select account_id, @usage, 'client', @kind, @quantity, @unit, conversation_id, coalesce(@occurred_at, now())
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `
	returning ` + usageColumns

// RecordUsage stores usage that a client reports for a conversation. Such rows are shown and never counted.
func (s *Store) RecordUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	kind string, quantity float64, unit string, occurredAt *time.Time,
) (record *protocol.UsageRecord, err error) {
	args := pgx.NamedArgs{
		"account": account, "usage": protocol.NewUsageID(), "conversation": id,
		"kind": kind, "quantity": quantity, "unit": unit, "occurred_at": occurredAt,
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		rows, err := tx.Query(ctx, insertUsageSQL, args)
		if err != nil {
			return fmt.Errorf("recording usage: %w", err)
		}
		if record, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.UsageRecord]); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, record)
	})
	return record, err
}

// Store stores a record of the service.
func (s *Store) Store(ctx context.Context, r *Record) error {
	batch := &pgx.Batch{}
	if err := Queue(batch, r); err != nil {
		return err
	}
	err := s.db.InTx(ctx, r.AccountID, func(ctx context.Context, tx *pg.Tx) error { return tx.CommitWith(ctx, batch) })
	if err != nil {
		return fmt.Errorf("storing a usage record of kind %s: %w", r.Kind, err)
	}
	return nil
}

// Position is a position between two records.
type Position struct {
	OccurredAt time.Time        `json:"t"`
	UsageID    protocol.UsageID `json:"u"`
}

const listUsageSQL = `
	select ` + usageColumns + `
	from usage_records
	where account_id = @account and conversation_id = @conversation
	  and (occurred_at, usage_id) < (@after_time, @after)
	order by occurred_at desc, usage_id desc
	limit @limit`

// ListUsage returns a page of the usage records of a conversation, newest first. next is nil at the end.
func (s *Store) ListUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	after *Position, limit int,
) (page []protocol.UsageRecord, next *Position, err error) {
	if after == nil {
		after = &Position{OccurredAt: pg.Latest, UsageID: pg.HighestID}
	}
	page, err = conversations.RowsOfConversation[protocol.UsageRecord](ctx, s.db, account, listUsageSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1,
		"after_time": after.OccurredAt, "after": after.UsageID,
	})
	if err != nil {
		return nil, nil, err
	}
	return pg.NextPage(page, limit, func(last *protocol.UsageRecord) Position {
		return Position{OccurredAt: last.OccurredAt, UsageID: last.UsageID}
	})
}

const getUsageSQL = `
	select ` + usageColumns + `
	from usage_records u
	where u.account_id = @account and u.usage_id = @usage and u.conversation_id = @conversation and exists (
		select from conversations c where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `)`

// GetUsage reads one usage record of a conversation.
func (s *Store) GetUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, record protocol.UsageID) (*protocol.UsageRecord, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.UsageRecord], getUsageSQL,
		pgx.NamedArgs{"account": account, "conversation": id, "usage": record})
}
