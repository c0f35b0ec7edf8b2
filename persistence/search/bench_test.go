package search_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
)

// prose returns the words of the documentation, of which the benchmark makes messages.
func prose(b *testing.B) []string {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		b.Fatal("no pages", err)
	}
	var all []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// BenchmarkLargeAccount indexes an account of 100,000 messages of real prose (20,000 with -short) and measures searches of it.
func BenchmarkLargeAccount(b *testing.B) {
	database := pgtest.NewDatabase(b)
	db := database.Open(b)
	account := pgtest.Account(b, db)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	count := func(sql string) int {
		n, err := pg.Row(b.Context(), db.DB, account, pgx.RowTo[int], sql)
		must(err)
		return n
	}
	find := func(query string) {
		_, _, err := db.Search.Find(b.Context(), account, &search.Query{Text: query, Limit: 25})
		must(err)
	}
	suggest := func(query string) {
		_, err := db.Search.Suggest(b.Context(), account, &search.Query{Text: query})
		must(err)
	}
	random, words := rand.New(rand.NewPCG(1, 2)), prose(b)
	messages := 100_000
	if testing.Short() {
		messages = 20_000
	}
	conversation := storetest.NewConversation(b, db, account, "large")
	for n := 0; n < messages; n += 5000 {
		texts := make([]string, 5000)
		for i := range texts {
			from := random.IntN(len(words) - 60)
			text, _ := json.Marshal([]map[string]string{{"type": "text", "text": strings.Join(words[from:from+60], " ")}})
			texts[i] = string(text)
		}
		_, err := db.DB.Exec(b.Context(), account, `
			insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts, created_at)
			select $1, gen_random_uuid(), $2, $3, $5 + n, 'user', 'complete', t::json, '2026-01-01'::timestamptz + ($5 + n) * interval '1 second'
			from unnest($4::text[]) with ordinality u (t, n)`, account, conversation.ConversationID, conversation.ActiveBranchID, texts, n)
		must(err)
	}
	figures := map[string]float64{} // reported at the end, because the loop removes them
	begun := time.Now()
	for count(`select count(*) from search_pending`) > 0 {
		must(db.Search.Index(b.Context()))
	}
	figures["µs/text"] = float64(time.Since(begun).Milliseconds()) / float64(messages) * 1000
	database.Admin(b, `vacuum analyze search_rows`)
	figures["MiB-index"] = float64(count(`select pg_relation_size('search_rows_tokens') >> 10`)) / 1024
	figures["MiB-rows"] = float64(count(`select pg_table_size('search_rows') >> 10`)) / 1024
	for class, queries := range map[string][]string{
		"common": {"the", "message", "file"}, "medium": {"searches", "approval", "encoding"}, "rare": {"hijacked", "virama", "goleak"},
		"form": {"hijacking", "measuring", "encodes"}, "absent": {"zzyzxw", "qwrtpx"}, "misspelled": {"mesages", "encodign", "messsage encodign"}, "two-words": {"message encoding", "file searches"},
	} {
		took := []float64{}
		for range 40 {
			for _, query := range queries {
				begun := time.Now()
				if find(query); class == "misspelled" || class == "absent" {
					suggest(query)
				}
				took = append(took, float64(time.Since(begun).Microseconds())/1000)
			}
		}
		slices.Sort(took)
		figures["p50-ms-"+class], figures["p95-ms-"+class] = took[len(took)/2], took[len(took)*95/100]
	}
	for b.Loop() {
		find("message encoding")
	}
	for unit, figure := range figures {
		b.ReportMetric(figure, unit)
	}
}
