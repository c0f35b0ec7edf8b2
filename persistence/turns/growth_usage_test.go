package turns_test

import (
	"testing"
	"time"

	"turnstone/persistence/usage"
)

// recordsSQL gives an account records on 400 days, and many conversations of which few were used in any month.
const recordsSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at)
	select $1, md5('use' || n)::uuid, 'server', 'turn', 1, 'turn', md5('conversation' || n / 50)::uuid, md5('turn' || n)::uuid,
		(array['auto', 'balanced', 'deep_reasoning', 'coding'])[1 + n % 4], '{"input_tokens": 10, "output_tokens": 5}',
		'2025-01-01'::timestamptz + n * interval '400 days' / $2::int
	from generate_series(0, $2::int - 1) n`

// countRecordsSQL counts them as the trigger does.
var countRecordsSQL = []string{`
	insert into usage_days select account_id, (occurred_at at time zone 'UTC')::date, profile, count(*), 10 * count(*), 5 * count(*), 0, 0
	from usage_records where account_id = $1 group by 1, 2, 3`, `
	insert into usage_conversation_days select account_id, conversation_id, (occurred_at at time zone 'UTC')::date, count(*), 10 * count(*), 5 * count(*), 0, 0
	from usage_records where account_id = $1 group by 1, 2, 3`}

func TestSumsOfUsageReadDaysAndNotRecords(t *testing.T) {
	metered(t, sumsOfUsageReadDaysAndNotRecords)
}

func sumsOfUsageReadDaysAndNotRecords(t *testing.T, w meteredWorld) {
	const records = 100_000
	w.Database.Fill(t, recordsSQL, w.Account, records)
	for _, sql := range countRecordsSQL {
		w.Database.Fill(t, sql, w.Account)
	}
	w.analyze()
	year := usage.Query{From: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Limit: 100}
	sum := func(query usage.Query, groups int) func() {
		return func() {
			page, _, err := w.DB.Usage.SumUsage(t.Context(), w.Account, &query)
			if err != nil || len(page) != groups {
				t.Errorf("%+v: %d groups, %v", query, len(page), err)
			}
		}
	}
	byDay, byProfile, byConversation := year, year, year
	byDay.Grouping, byProfile.Grouping, byConversation.Grouping = usage.ByDay, usage.ByProfile, usage.ByConversation
	unused := byConversation
	unused.From, unused.To = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, read := range []struct {
		name string
		most int
		call func()
	}{
		{"the usage of 100 days", 600, sum(byDay, 100)},
		{"the usage of the profiles in a year", 1_800, sum(byProfile, 4)},
		{"the usage of 100 conversations", 1_000, sum(byConversation, 100)},
		{"the usage of no conversation", 10_000, sum(unused, 0)},
	} {
		wantPages(w.World, read.name, read.most, read.call)
	}
	turn := w.Start(w.Request(nil, "hello"))
	wantPages(w.World, "ending turns", 900, func() {
		turn.End(nil)
		turn = w.Start(w.Request(&turn.Spec.ConversationID, "more"))
	})
}
