package usage_test

import (
	"slices"
	"testing"
	"time"

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
		query := &usage.Query{From: day.Add(-time.Hour), To: day.Add(24 * time.Hour), Grouping: c.by, Limit: 1}
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
