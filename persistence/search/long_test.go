package search_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// seedLong adds n messages of about 4 MiB to a new conversation. Each text has words at its beginning, and others at its end.
func seedLong(w *storetest.World, n int, begin, end string) {
	w.Helper()
	conversation := storetest.NewConversation(w.T, w.DB, w.Account, "long texts")
	_, err := w.DB.Exec(w.Context(), w.Account, `
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts, created_at)
		select $1, gen_random_uuid(), $2, $3, n, 'assistant', 'complete',
			json_build_array(json_build_object('type', 'text', 'text', $5 || repeat(' many other words', 250000)), json_build_object('type', 'code', 'code', ''),
				json_build_object('type', 'tool', 'output', 'unseen'), json_build_object('type', 'code', 'code', $6::text)),
			'2026-01-01'::timestamptz + n * interval '1 second'
		from generate_series(1, $4::int) n`, w.Account, conversation.ConversationID, conversation.ActiveBranchID, n, begin, end)
	w.Must(err)
}

// allocated returns how many bytes a function allocates, those that it frees included.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc) // it is small
}

func TestLongTextsAreFoundInBoundedMemory(t *testing.T) {
	w := storetest.NewWorld(t)
	seedLong(w, 2, "early bird", "late owl")
	const text = 4 << 20
	bothWays(w, func(w *storetest.World) {
		for _, c := range []struct {
			query, snippet string
			most           int // bytes for each text; whole tokens would need 40 times as many as it has
		}{
			{"bird", "early bird many other", 6 << 20}, // slices of the first MiB
			{"owl", "words late owl", 6 * text},        // each slice once, or twice while the text is pending
			{"other -owl", "", 6 * text},
			{"unseen", "", 6 * text},
		} {
			var got []protocol.SearchResult
			used := allocated(func() { got = find(w, w.Account, c.query, 10) })
			if c.snippet == "" && len(got) == 0 && used < 2*c.most {
				continue
			}
			if used > 2*c.most || len(got) != 2 || !strings.Contains(got[0].Snippet.Text, c.snippet) || len(got[0].Snippet.Highlights) != 1 {
				w.Errorf("%s: found %d texts, %d bytes were allocated: %+v", c.query, len(got), used, got)
			}
		}
	})
	again := allocated(func() {
		_, err := w.DB.Exec(t.Context(), w.Account, `update messages set parts = (parts::text || ' ')::json`)
		w.Must(err)
		w.Must(w.DB.Search.Index(t.Context()))
	})
	if again > 2*6*text {
		t.Errorf("%d bytes were allocated to index", again)
	}
}

func TestALongTextWithNULIsFound(t *testing.T) {
	w := storetest.NewWorld(t)
	say(w, nil, "short", textPart("early\x00bird "+strings.Repeat("many words ", 7000)+`\u0000 late owl`))
	bothWays(w, func(w *storetest.World) {
		for _, query := range []string{"bird", `"early bird"`, `"late owl"`} {
			if got := find(w, w.Account, query, 10); len(got) != 1 || len(got[0].Snippet.Highlights) != 1 {
				w.Errorf("%s: %+v", query, got)
			}
		}
	})
}

// TestATextWithManyPositionsIsIndexed has 17,576 words, each a hundred times. Postgres stores equal positions once, so they
// fit into a tsvector.
func TestATextWithManyPositionsIsIndexed(t *testing.T) {
	w := storetest.NewWorld(t)
	var text strings.Builder
	for range 100 {
		for n := range 26 * 26 * 26 {
			text.WriteString(string([]byte{byte('a' + n/676), byte('a' + n/26%26), byte('a' + n%26), ' '}))
		}
	}
	say(w, nil, "short", textPart(text.String()))
	bothWays(w, func(w *storetest.World) {
		if got := find(w, w.Account, "aaa zzz", 10); len(got) != 1 {
			w.Errorf("found %+v", got)
		}
	})
}

func TestASearchOfLongTextsEndsWithItsContext(t *testing.T) {
	w := storetest.NewWorld(t)
	seedLong(w, 1, "early bird", "late owl")
	taken, release := w.DB.Search.TakeLongSlot()
	if !taken {
		t.Fatal("the slot is not free")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.DB.Search.Find(ctx, w.Account, &search.Query{Text: "absent", Limit: 10})
		ended <- err
	}()
	if got := find(w, w.OtherAccount(), "absent", 10); len(got) != 0 { // another account does not wait
		t.Errorf("found %+v", got)
	}
	cancel()
	storetest.WantCode(t, <-ended, protocol.CodeUnavailable)
	release()
	began := time.Now()
	find(w, w.Account, "absent", 10)
	t.Logf("%v for a text of 4 MiB", time.Since(began))
}
