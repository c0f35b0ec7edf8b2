package persistence

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const usageColumns = `usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at`

const insertUsageSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, occurred_at)
	select account_id, @usage, 'client', @kind, @quantity, @unit, conversation_id, coalesce(@occurred_at, now())
	from conversations
	where account_id = @account and conversation_id = @conversation and deleted_at is null
	returning ` + usageColumns

// RecordUsage keeps what a client says it used in a conversation. Such rows are shown and never counted.
func (db *DB) RecordUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	kind string, quantity float64, unit string, occurredAt *time.Time,
) (record *protocol.UsageRecord, err error) {
	args := pgx.NamedArgs{
		"account": account, "usage": protocol.NewUsageID(), "conversation": id,
		"kind": kind, "quantity": quantity, "unit": unit, "occurred_at": occurredAt,
	}
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		rows, err := tx.Query(ctx, insertUsageSQL, args)
		if err != nil {
			return fmt.Errorf("recording usage: %w", err)
		}
		if record, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.UsageRecord]); err != nil {
			return err
		}
		return keepIn(ctx, tx, record)
	})
	return record, err
}

const insertTitleUsageSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, model_id, usage)
	values (@account, @usage_id, 'server', 'title', 1, 'call', @conversation, @model, @usage)`

// RecordTitleUsage keeps what the model used to write a title. The record is of no turn: that has its own.
func (db *DB) RecordTitleUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, model string, usage protocol.Usage) error {
	text, err := jsonText(usage)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, account, insertTitleUsageSQL, pgx.NamedArgs{
		"account": account, "usage_id": protocol.NewUsageID(), "conversation": id, "model": model, "usage": text,
	})
	if err != nil {
		return fmt.Errorf("recording the usage of a title: %w", err)
	}
	return nil
}

// UsagePosition is a place between two records.
type UsagePosition struct {
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

// ListUsage reads what was used in a conversation, newest first.
func (db *DB) ListUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	after *UsagePosition, limit int,
) (page []protocol.UsageRecord, next *UsagePosition, err error) {
	if after == nil {
		after = &UsagePosition{OccurredAt: beforeAll.LastActivityAt, UsageID: protocol.UsageID(beforeAll.ConversationID)}
	}
	page, err = rowsWithin[protocol.UsageRecord](ctx, db, account, listUsageSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "limit": limit + 1,
		"after_time": after.OccurredAt, "after": after.UsageID,
	})
	if err != nil {
		return nil, nil, err
	}
	page, more, err := cutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	last := &page[len(page)-1]
	return page, &UsagePosition{OccurredAt: last.OccurredAt, UsageID: last.UsageID}, nil
}

// UsageGrouping says what usage is summed by.
type UsageGrouping string

// The groupings.
const (
	UsageByDay          UsageGrouping = "day" // in UTC
	UsageByProfile      UsageGrouping = "profile"
	UsageByConversation UsageGrouping = "conversation"
)

// sumUsageSQL sums what the server counted. The key is text in every grouping, and the page goes on after one.
const sumUsageSQL = `
	select key, count(*) filter (where kind = 'turn') as turns,
		coalesce(sum((usage ->> 'input_tokens')::bigint), 0)::bigint as input_tokens,
		coalesce(sum((usage ->> 'output_tokens')::bigint), 0)::bigint as output_tokens,
		coalesce(sum((usage ->> 'reasoning_tokens')::bigint), 0)::bigint as reasoning_tokens,
		coalesce(sum((usage ->> 'cached_input_tokens')::bigint), 0)::bigint as cached_input_tokens
	from (
		select usage, kind, (case @grouping::text
			when 'day' then to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD')
			when 'profile' then coalesce(profile, 'none')
			else coalesce(conversation_id::text, 'none')
		end) collate "C" as key
		from usage_records
		where account_id = @account and source = 'server' and occurred_at >= @from and occurred_at < @to
	) records
	where key > @after
	group by key
	order by key
	limit @limit`

// UsageQuery asks for sums of an account's usage.
type UsageQuery struct {
	From, To time.Time // [From, To)
	Grouping UsageGrouping
	After    string // the key that the page goes on after; empty: the beginning
	Limit    int
}

// SumUsage adds up what the account's turns used, in the order of the keys. next is empty at the end. The key of a
// conversation is its identifier.
func (db *DB) SumUsage(ctx context.Context, account protocol.AccountID, query *UsageQuery) (page []protocol.UsageGroup, next string, err error) {
	page, err = Rows(ctx, db, account, pgx.RowToStructByName[protocol.UsageGroup], sumUsageSQL, pgx.NamedArgs{
		"account": account, "from": query.From, "to": query.To, "grouping": string(query.Grouping),
		"after": query.After, "limit": query.Limit + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("summing usage: %w", err)
	}
	page, more, err := cutPage(page, query.Limit)
	if err != nil {
		return nil, "", err
	}
	if more {
		next = page[len(page)-1].Key
	}
	if query.Grouping == UsageByConversation {
		for i := range page {
			page[i].Key = conversationKey(page[i].Key)
		}
	}
	return page, next, nil
}

// conversationKey spells a uuid of Postgres as the identifier of a conversation.
func conversationKey(key string) string {
	id, err := uuid.Parse(key)
	if err != nil {
		return key
	}
	return protocol.ConversationID(id).String()
}
