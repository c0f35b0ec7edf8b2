package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Grouping is the key by which usage is summed.
type Grouping string

// The groupings.
const (
	ByDay          Grouping = "day" // in UTC
	ByProfile      Grouping = "profile"
	ByConversation Grouping = "conversation"
)

// Query selects sums of an account's usage.
type Query struct {
	From, To time.Time // UTC days: [From, To)
	Grouping Grouping
	After    string // the page starts after this key; empty: at the beginning
	Limit    int
}

// The usage of the server is counted by day when it is recorded (see migration usage_days), so a sum reads days and not
// records: at most a year of them, with a row for each profile.
const (
	sumColumns = `sum(turns)::int as turns, sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens,
		sum(reasoning_tokens)::bigint as reasoning_tokens, sum(cached_input_tokens)::bigint as cached_input_tokens`

	sumByDaySQL = `
	select to_char(day, 'YYYY-MM-DD') as key, ` + sumColumns + `
	from usage_days
	where account_id = @account and day >= @from::date and day < @to::date and day > @after_day::date
	group by day
	order by day
	limit @limit`
	sumByProfileSQL = `
	select profile as key, ` + sumColumns + `
	from usage_days
	where account_id = @account and day >= @from::date and day < @to::date and profile collate "C" > @after
	group by profile
	order by profile collate "C"
	limit @limit`

	// sumByConversationSQL looks at one conversation after the other, in the order of their identifiers, until it has
	// found @limit that have usage in the period, or has looked at @most. The last row is the last conversation that it
	// looked at.
	sumByConversationSQL = `
	with recursive walk (n, found, conversation_id, turns, input_tokens, output_tokens, reasoning_tokens, cached_input_tokens) as (
		select 0, 0, @after_conversation::uuid, null::int, null::bigint, null::bigint, null::bigint, null::bigint
		union all
		select w.n + 1, w.found + (sums.turns is not null)::int, next.conversation_id,
			sums.turns, sums.input_tokens, sums.output_tokens, sums.reasoning_tokens, sums.cached_input_tokens
		from walk w
		cross join lateral (
			select conversation_id from usage_conversation_days
			where account_id = @account and conversation_id > w.conversation_id
			order by conversation_id limit 1) next
		cross join lateral (
			select ` + sumColumns + `
			from usage_conversation_days
			where account_id = @account and conversation_id = next.conversation_id and day >= @from::date and day < @to::date) sums
		where w.n < @most and w.found < @limit
	)
	select n, conversation_id, turns is not null as used, coalesce(turns, 0) as turns, coalesce(input_tokens, 0) as input_tokens,
		coalesce(output_tokens, 0) as output_tokens, coalesce(reasoning_tokens, 0) as reasoning_tokens, coalesce(cached_input_tokens, 0) as cached_input_tokens
	from walk
	where n > 0 and (turns is not null or n = @most)`

	// walkedConversations limits the conversations that one page looks at. Without usage in the period, they give a page
	// that is short, or empty.
	walkedConversations = 2000
)

// SumUsage returns sums of the usage that the server counted for an account, in the order of the keys. The key of a
// conversation is its identifier. next is empty at the end; otherwise more groups may follow, even if the page has fewer
// than the limit.
func (s *Store) SumUsage(ctx context.Context, account protocol.AccountID, query *Query) (page []protocol.UsageGroup, next string, err error) {
	if query.Grouping == ByConversation {
		return s.sumByConversation(ctx, account, query)
	}
	args := query.args(account)
	sql := sumByProfileSQL
	if query.Grouping == ByDay {
		sql, args["after_day"] = sumByDaySQL, query.From.AddDate(0, 0, -1)
		if day, err := time.Parse(time.DateOnly, query.After); err == nil {
			args["after_day"] = day
		}
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.UsageGroup], sql, args)
	if err != nil {
		return nil, "", fmt.Errorf("summing usage: %w", err)
	}
	if len(page) > query.Limit {
		page = page[:query.Limit]
		next = page[query.Limit-1].Key
	}
	return page, next, nil
}

func (q *Query) args(account protocol.AccountID) pgx.NamedArgs {
	return pgx.NamedArgs{"account": account, "from": q.From, "to": q.To, "after": q.After, "limit": q.Limit + 1}
}

type conversationSum struct {
	N              int
	ConversationID uuid.UUID
	Used           bool
	protocol.UsageGroup
}

func (s *Store) sumByConversation(ctx context.Context, account protocol.AccountID, query *Query) (page []protocol.UsageGroup, next string, err error) {
	args := query.args(account)
	args["most"] = walkedConversations
	args["after_conversation"], _ = uuid.Parse(query.After) // the zero identifier precedes all others
	rows, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByNameLax[conversationSum], sumByConversationSQL, args)
	if err != nil {
		return nil, "", fmt.Errorf("summing usage: %w", err)
	}
	page = []protocol.UsageGroup{}
	for i := range rows {
		row := &rows[i]
		if len(page) == query.Limit {
			return page, next, nil
		}
		if row.Used {
			row.Key = protocol.ConversationID(row.ConversationID).String()
			page = append(page, row.UsageGroup)
		}
		next = row.ConversationID.String()
	}
	if len(rows) == 0 || rows[len(rows)-1].N < walkedConversations {
		next = ""
	}
	return page, next, nil
}
