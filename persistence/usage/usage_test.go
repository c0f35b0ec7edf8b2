package usage_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/persistence/usage"
	"turnstone/protocol"
)

func TestUsageIsListedAndOnlyTheServersIsSummed(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	one, two := storetest.NewConversation(t, db, account, "").ConversationID, storetest.NewConversation(t, db, account, "").ConversationID
	day := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	for i, row := range []struct {
		conversation protocol.ConversationID
		profile      protocol.Profile
		at           time.Time
	}{
		{one, protocol.ProfileCoding, day}, {one, protocol.ProfileBalanced, day.Add(time.Hour)}, {two, protocol.ProfileCoding, day.Add(time.Hour)},
	} {
		_, err := db.Exec(t.Context(), account, `insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at)
			values ($1, $2, 'server', 'turn', 1, 'turn', $3, $4, $5, $6, $7)`, account, protocol.NewUsageID(), row.conversation, protocol.NewTurnID(),
			row.profile, protocol.Usage{InputTokens: 10, OutputTokens: i, CachedInputTokens: 2}, row.at)
		if err != nil {
			t.Fatal(err)
		}
	}
	at := day.Add(2 * time.Hour)
	record, err := db.Usage.RecordUsage(t.Context(), account, one, "speech", 2.5, "seconds", &at)
	if err != nil || record.Source != "client" || record.Quantity != 2.5 || *record.ConversationID != one || !record.OccurredAt.Equal(at) {
		t.Fatalf("%+v (%v)", record, err)
	}

	var kinds []string
	var after *usage.Position
	for {
		page, next, err := db.Usage.ListUsage(t.Context(), account, one, after, 1)
		if err != nil || len(page) != 1 {
			t.Fatalf("%+v (%v)", page, err)
		}
		kinds = append(kinds, page[0].Kind)
		if after = next; next == nil {
			break
		}
	}
	if !slices.Equal(kinds, []string{"speech", "turn", "turn"}) {
		t.Errorf("listed %v", kinds)
	}

	for _, c := range []struct {
		by   usage.Grouping
		want []protocol.UsageGroup
	}{
		{usage.ByDay, []protocol.UsageGroup{
			{Key: "2026-03-01", Turns: 1, InputTokens: 10, CachedInputTokens: 2},
			{Key: "2026-03-02", Turns: 2, InputTokens: 20, OutputTokens: 3, CachedInputTokens: 4},
		}},
		{usage.ByProfile, []protocol.UsageGroup{
			{Key: "balanced", Turns: 1, InputTokens: 10, OutputTokens: 1, CachedInputTokens: 2},
			{Key: "coding", Turns: 2, InputTokens: 20, OutputTokens: 2, CachedInputTokens: 4},
		}},
		{usage.ByConversation, []protocol.UsageGroup{
			{Key: one.String(), Turns: 2, InputTokens: 20, OutputTokens: 1, CachedInputTokens: 4},
			{Key: two.String(), Turns: 1, InputTokens: 10, OutputTokens: 2, CachedInputTokens: 2},
		}},
	} {
		var got []protocol.UsageGroup
		query := &usage.Query{From: day.Truncate(24 * time.Hour), To: day.Truncate(24*time.Hour).AddDate(0, 0, 2), Grouping: c.by, Limit: 1}
		for {
			page, next, err := db.Usage.SumUsage(t.Context(), account, query)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
			if query.After = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("by %s: %+v, want %+v", c.by, got, c.want)
		}
	}
	if none, _, err := db.Usage.SumUsage(t.Context(), pgtest.Account(t, db), &usage.Query{From: day, To: at, Grouping: usage.ByDay, Limit: 5}); err != nil || len(none) != 0 {
		t.Errorf("another account reads %+v (%v)", none, err)
	}
}

// insertServerUsageSQL stores a record as the end of a turn does.
const insertServerUsageSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at)
	values ($1, $2, 'server', $3, 1, 'call', $4, $5, $6, $7, $8)`

// TestSumsAgreeWithTheRecords compares every sum, page by page, with the records themselves.
func TestSumsAgreeWithTheRecords(t *testing.T) {
	db := pgtest.New(t)
	rapid.Check(t, func(r *rapid.T) {
		account, stranger := pgtest.Account(t, db), pgtest.Account(t, db)
		first := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var conversations []protocol.ConversationID
		for range rapid.IntRange(1, 5).Draw(r, "conversations") {
			conversations = append(conversations, protocol.NewConversationID())
		}
		want := map[usage.Grouping]map[string]protocol.UsageGroup{usage.ByDay: {}, usage.ByProfile: {}, usage.ByConversation: {}}
		from := first.AddDate(0, 0, rapid.IntRange(0, 4).Draw(r, "from"))
		to := from.AddDate(0, 0, rapid.IntRange(1, 4).Draw(r, "days"))
		for range rapid.IntRange(0, 40).Draw(r, "records") {
			at := first.Add(time.Duration(rapid.IntRange(0, 8*24*3600).Draw(r, "at")) * time.Second)
			conversation, profile, kind := rapid.SampledFrom(conversations).Draw(r, "conversation"), rapid.SampledFrom([]string{"coding", "balanced", ""}).Draw(r, "profile"), "turn"
			tokens := protocol.Usage{InputTokens: rapid.IntRange(0, 9).Draw(r, "input"), OutputTokens: 1, ReasoningTokens: 2, CachedInputTokens: 3}
			args := []any{account, protocol.NewUsageID(), kind, conversation, protocol.NewTurnID(), &profile, tokens, at}
			turns := int64(1)
			if profile == "" {
				kind, turns = "title", 0
				args[2], args[4], args[5] = kind, nil, nil
				profile = "none"
			}
			for _, owner := range []protocol.AccountID{account, stranger} {
				args[0], args[1] = owner, protocol.NewUsageID()
				if _, err := db.Exec(t.Context(), owner, insertServerUsageSQL, args...); err != nil {
					t.Fatal(err)
				}
			}
			if at.Before(from) || !at.Before(to) {
				continue
			}
			for grouping, key := range map[usage.Grouping]string{usage.ByDay: at.Format(time.DateOnly), usage.ByProfile: profile, usage.ByConversation: conversation.String()} {
				sum := want[grouping][key]
				sum.Key, sum.Turns, sum.InputTokens, sum.OutputTokens = key, sum.Turns+turns, sum.InputTokens+int64(tokens.InputTokens), sum.OutputTokens+1
				sum.ReasoningTokens, sum.CachedInputTokens = sum.ReasoningTokens+2, sum.CachedInputTokens+3
				want[grouping][key] = sum
			}
		}
		for grouping, sums := range want {
			found, after := map[string]protocol.UsageGroup{}, ""
			var keys []string
			for {
				page, next, err := db.Usage.SumUsage(t.Context(), account, &usage.Query{From: from, To: to, Grouping: grouping, After: after, Limit: 2})
				if err != nil {
					t.Fatal(err)
				}
				for _, sum := range page {
					found[sum.Key] = sum
					keys = append(keys, sum.Key)
				}
				if after = next; next == "" {
					break
				}
			}
			if !maps.Equal(found, sums) || len(keys) != len(found) || grouping != usage.ByConversation && !slices.IsSorted(keys) {
				t.Fatalf("by %s: %v, want %v", grouping, found, sums)
			}
		}
	})
}

func TestUsageThatClientsReportIsNotSummed(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	if _, err := db.Usage.RecordUsage(t.Context(), account, id, "turn", 7, "turn", nil); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(24 * time.Hour)
	for _, grouping := range []usage.Grouping{usage.ByDay, usage.ByProfile, usage.ByConversation} {
		page, next, err := db.Usage.SumUsage(t.Context(), account, &usage.Query{From: now.AddDate(0, 0, -1), To: now.AddDate(0, 0, 2), Grouping: grouping, Limit: 20})
		if err != nil || len(page) != 0 || next != "" {
			t.Errorf("by %s: %+v %q (%v)", grouping, page, next, err)
		}
	}
}

// Concurrent ends of turns add to the same row.
func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	const callers, each = 4, 20
	for _, err := range storetest.Together(callers, func(int) error {
		for range each {
			_, err := db.Exec(t.Context(), account, insertServerUsageSQL, account, protocol.NewUsageID(), "turn", protocol.NewConversationID(), protocol.NewTurnID(),
				"coding", protocol.Usage{InputTokens: 2}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	page, _, err := db.Usage.SumUsage(t.Context(), account, &usage.Query{From: day, To: day.AddDate(0, 0, 1), Grouping: usage.ByProfile, Limit: 20})
	if want := []protocol.UsageGroup{{Key: "coding", Turns: callers * each, InputTokens: 2 * callers * each}}; err != nil || !slices.Equal(page, want) {
		t.Errorf("%+v (%v), want %+v", page, err, want)
	}
}
