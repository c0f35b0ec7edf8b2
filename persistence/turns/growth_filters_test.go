package turns_test

import (
	"testing"
	"time"

	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// manyConversationsSQL gives an account $2 conversations. Conversation n was created and changed in minute n and has the
// external_id n; all of them have the same app.
var manyConversationsSQL = []string{
	`
	insert into conversations (account_id, conversation_id, active_branch_id, created_at, updated_at, last_activity_at, metadata)
	select $1, md5('many' || n)::uuid, md5('many' || n)::uuid, '2026-01-01'::timestamptz + n * interval '1 minute', '2026-01-01'::timestamptz + n * interval '1 minute',
	       '2026-01-01'::timestamptz + ($2 - n) * interval '1 minute', jsonb_build_object('app', 'notes', 'external_id', n::text)
	from generate_series(1, $2::int) n`, `
	insert into branches (account_id, branch_id, conversation_id)
	select account_id, active_branch_id, conversation_id from conversations where account_id = $1 and $2::int > 0`, `
	insert into conversation_metadata (account_id, entry, conversation_id)
	select c.account_id, metadata_entry(e.key, e.value), c.conversation_id
	from conversations c, jsonb_each_text(c.metadata) e where c.account_id = $1 and $2::int > 0`,
}

// TestANarrowedListReadsABoundedPart measures lists that are narrowed by metadata and times, of an account with 40,000
// conversations. What few conversations have is found at once by its index, whatever its place in the list. What many have
// is looked for in a bounded part of the list.
func TestANarrowedListReadsABoundedPart(t *testing.T) {
	metered(t, func(t *testing.T, w meteredWorld) {
		const size, few, bounded = 40_000, 400, 12_000 // the account has 160,000 rows
		for _, sql := range manyConversationsSQL {
			w.Database.Fill(t, sql, w.Account, size)
		}
		w.analyze()
		day := time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)
		ten := conversations.Span{From: day, To: day.Add(10 * time.Minute)}
		no := false
		for _, list := range []struct {
			name       string
			filter     conversations.ConversationFilter
			most, want int
			more       bool
		}{
			{"one by its metadata", conversations.ConversationFilter{Archived: &no, Metadata: map[string]string{"external_id": "37777"}}, few, 1, false},
			{"one by two entries", conversations.ConversationFilter{Metadata: map[string]string{"external_id": "37777", "app": "notes"}}, few, 1, false},
			{"none", conversations.ConversationFilter{Metadata: map[string]string{"external_id": "none"}}, few, 0, false},
			{"ten by their creation", conversations.ConversationFilter{Created: ten}, few, 10, false},
			{"ten by their change", conversations.ConversationFilter{Updated: ten, Metadata: map[string]string{"app": "notes"}}, few, 10, false},
			{"many by their metadata", conversations.ConversationFilter{Archived: &no, Metadata: map[string]string{"app": "notes"}}, bounded, 20, true},
			{"many by their creation", conversations.ConversationFilter{Created: conversations.Span{To: day}}, bounded, 20, true},
			{"many that are far down", conversations.ConversationFilter{Created: conversations.Span{From: day}}, bounded, 0, true},
		} {
			wantPages(w.World, list.name, list.most, func() {
				page, next, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &list.filter, nil, 20)
				if err != nil || len(page) != list.want || (next != nil) != list.more {
					t.Errorf("%s: %d conversations, next %v, %v", list.name, len(page), next, err)
				}
			})
		}
		var after *conversations.ConversationPosition
		found := map[protocol.ConversationID]bool{}
		for pages := 0; ; pages++ {
			page, next, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &conversations.ConversationFilter{
				Created: conversations.Span{From: day, To: day.Add(3000 * time.Minute)},
			}, after, 100)
			if err != nil || pages > size {
				t.Fatal(err)
			}
			for i := range page {
				found[page[i].ConversationID] = true
			}
			if after = next; next == nil {
				break
			}
		}
		if len(found) != 3000 {
			t.Errorf("the pages have %d conversations", len(found))
		}
	})
}
