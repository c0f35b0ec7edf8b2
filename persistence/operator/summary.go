package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/open"
	"turnstone/protocol"
)

// Summary says how much an account has, for operators. It has nothing that the account wrote.
type Summary struct {
	Conversations int64 `json:"conversations"`
	Messages      int64 `json:"messages"`
	Projects      int64 `json:"projects"` // in any state
	Shares        int64 `json:"shares"`
	Imports       int64 `json:"imports"`
	Sessions      int64 `json:"sessions"` // that have not ended
	LiveTurns     int64 `json:"live_turns"`
	Usage         Usage `json:"usage" db:"-"`
}

// Usage is the usage of an account since its creation, as the service has recorded it.
type Usage struct {
	Turns        int64 `json:"turns"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

const (
	summarySQL = `
	select
		(select count(*) from conversations c where c.account_id = @account and ` + conversations.Visible + `) as conversations,
		(select coalesce(sum(c.message_count), 0)::bigint from conversations c where c.account_id = @account and ` + conversations.Visible + `) as messages,
		(select count(*) from projects where account_id = @account) as projects,
		(select count(*) from shares where account_id = @account and expires_at > now()) as shares,
		(select count(*) from imports where account_id = @account) as imports,
		(select count(*) from (
			select from sessions where account_id = @account and revoked_at is null and expires_at > now()
			group by session_id having max(last_used_at) > @idle_since) s) as sessions,
		(select count(*) from turns where account_id = @account and ` + open.Turns + `) as live_turns`
	usageSQL = `
	select coalesce(sum(turns), 0)::bigint as turns, coalesce(sum(input_tokens), 0)::bigint as input_tokens,
		coalesce(sum(output_tokens), 0)::bigint as output_tokens
	from usage_days where account_id = @account`
)

// Summary counts what an account has. A session that was not used after idleSince has ended.
func (s *Store) Summary(ctx context.Context, account protocol.AccountID, idleSince time.Time) (*Summary, error) {
	var found Summary
	args := pgx.NamedArgs{"account": account, "idle_since": idleSince}
	batch := &pgx.Batch{}
	batch.Queue(summarySQL, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Summary])
		return err
	})
	var usage Usage
	batch.Queue(usageSQL, args).Query(func(rows pgx.Rows) (err error) {
		usage, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Usage])
		return err
	})
	if err := s.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("counting what an account has: %w", err)
	}
	found.Usage = usage
	return &found, nil
}
