package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// say stores a turn with these texts and returns its specification.
func say(w *storetest.World, conversation *protocol.ConversationID, question string, answer ...protocol.Part) *turnlog.Spec {
	w.Helper()
	turn := w.Start(w.Request(conversation, question))
	turn.End(func(f *turnlog.Finish) {
		if answer != nil {
			f.Parts = answer
		}
	})
	return turn.Spec
}

func textPart(text string) protocol.Part {
	return protocol.Part{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: text}
}

// find returns all results of a query, page by page.
func find(w *storetest.World, account protocol.AccountID, query string, limit int) []protocol.SearchResult {
	w.Helper()
	return findIn(w, account, query, nil, limit)
}

func findIn(w *storetest.World, account protocol.AccountID, query string, in *protocol.ConversationID, limit int) (all []protocol.SearchResult) {
	w.Helper()
	request := &search.Query{Text: query, ConversationID: in, Limit: limit}
	for {
		page, next, err := w.DB.Search.Find(w.Context(), account, request)
		w.Must(err)
		if all = append(all, page...); next == nil {
			return all
		}
		request.After = next
	}
}

// found returns what a query finds, as the excerpts of its results.
func found(w *storetest.World, query string) []string {
	w.Helper()
	texts := []string{}
	for _, r := range find(w, w.Account, query, 100) {
		texts = append(texts, string(r.Kind[:1])+": "+r.Snippet.Text)
	}
	return texts
}

func want(w *storetest.World, query string, texts ...string) {
	w.Helper()
	if got := found(w, query); !slices.Equal(got, texts) {
		w.Errorf("%s found %q, want %q", query, got, texts)
	}
}

// bothWays runs a check with pending texts, and again when they are in the index.
func bothWays(w *storetest.World, check func(w *storetest.World)) {
	w.Helper()
	check(w)
	w.Must(w.DB.Search.Index(w.Context()))
	if n := w.Count(`select count(*) from search_pending`); n != 0 {
		w.Fatalf("%d rows are pending after they were indexed", n)
	}
	check(w)
}

func TestNamesWithSignsPartsOfNamesAndWordsOfManyScriptsAreFound(t *testing.T) {
	w := storetest.NewWorld(t)
	for _, text := range []string{
		"We write C++ and Go.", "We write C# here.", "F# is functional.", "The .NET runtime", "config of cats", "Start the HttpServer first", "call user_name_of(x)",
		"مدرسة ابتدائية", "हिन्दी में", "کتاب ۱۲۳", "party 🎉 tonight", "Die Straße ist nass",
	} {
		say(w, nil, text)
	}
	bothWays(w, func(w *storetest.World) {
		for query, most := range map[string]int{
			"C++": 1, "c#": 1, "F#": 1, ".net": 1, "net": 1, "C++ go": 1, "server": 1, "httpserver": 1, "HttpServer": 1, "name_of": 1, "user": 1, "مدرسه": 1, "हिंदी": 1, "كتاب": 1, "123": 1, "🎉": 1,
			"STRASSE": 1, "c": 2, "co": 1, "D++": 0, "-c++ we": 1,
		} {
			if got := find(w, w.Account, query, 50); len(messagesOf(got)) != most {
				w.Errorf("%s: %d messages, want %d", query, len(messagesOf(got)), most)
			}
		}
	})
}

// messagesOf returns the results that are messages of the user.
func messagesOf(all []protocol.SearchResult) (messages []protocol.SearchResult) {
	for _, one := range all {
		if one.Kind == protocol.SearchMessage {
			messages = append(messages, one)
		}
	}
	return messages
}

func TestCommittedTextIsFoundAtOnceAndTheSameAfterItIsIndexed(t *testing.T) {
	w := storetest.NewWorld(t)
	first := say(w, nil, "Where do zebras sleep?", textPart("Zebras sleep standing."), protocol.Part{
		Type: protocol.PartCode, PartID: protocol.NewPartID(), Language: "go", Code: "func zebra() {}",
	}, protocol.Part{Type: protocol.PartTool, PartID: protocol.NewPartID(), Title: "zebra tool", Input: []byte(`{"q":"zebra input"}`), Output: "zebra output"},
		protocol.Part{Type: protocol.PartReasoning, PartID: protocol.NewPartID(), Text: "zebra reasoning"})
	_, err := w.DB.Conversations.SetTitle(t.Context(), w.Account, first.ConversationID, "Crème brûlée", nil)
	w.Must(err)
	bothWays(w, func(w *storetest.World) {
		want(w, "zebra", "m: Zebras sleep standing. func zebra() {}", "m: Where do zebras sleep?")
		want(w, "zebras", "m: Zebras sleep standing. func zebra() {}", "m: Where do zebras sleep?")
		want(w, "sleep -standing", "m: Where do zebras sleep?")
		want(w, `"sleep standing"`, "m: Zebras sleep standing. func zebra() {}")
		want(w, `"standing func"`) // in two parts
		want(w, "creme BRÛ", "c: Crème brûlée")
		want(w, "reasoning")
		want(w, "output")
	})
	result := find(w, w.Account, "standing", 1)[0]
	if *result.ConversationID != first.ConversationID || *result.MessageID != first.AssistantMessageID || *result.BranchID != first.BranchID ||
		result.Role == nil || *result.Role != "assistant" || result.Title != "Crème brûlée" || result.FileID != nil || result.ProjectID != nil || result.At.IsZero() ||
		!slices.Equal(result.Snippet.Highlights, []protocol.Highlight{{Start: 13, End: 21}}) {
		t.Errorf("the result is %+v", result)
	}
	page, err := w.DB.Conversations.Messages(t.Context(), w.Account, &conversations.MessageQuery{
		ConversationID: *result.ConversationID, BranchID: result.BranchID, Around: result.MessageID, Limit: 1,
	})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].MessageID != *result.MessageID {
		t.Errorf("the page around the result: %+v, %v", page, err)
	}
}

func TestASearchIsNarrowedByRoleAndTime(t *testing.T) {
	w := storetest.NewWorld(t)
	say(w, nil, "Do zebras sleep?", textPart("Zebras sleep standing."))
	w.Database.Admin(t, `update messages set created_at = case role when 'user' then '2026-03-01T10:00:00Z'::timestamptz else '2026-03-01T11:00:00Z' end`)
	at := func(hour int) time.Time { return time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC) }
	question, answer := "Do zebras sleep?", "Zebras sleep standing."
	bothWays(w, func(w *storetest.World) {
		for _, c := range []struct {
			query search.Query
			want  []string
		}{
			{search.Query{Role: protocol.RoleUser}, []string{question}},
			{search.Query{Role: protocol.RoleAssistant}, []string{answer}},
			{search.Query{Kind: protocol.SearchMessage, From: at(11)}, []string{answer}},
			{search.Query{Kind: protocol.SearchMessage, To: at(11)}, []string{question}},
			{search.Query{Kind: protocol.SearchMessage, From: at(10), To: at(12)}, []string{answer, question}},
			{search.Query{Role: protocol.RoleUser, From: at(11)}, nil},
			{search.Query{To: at(10)}, nil},
		} {
			c.query.Text, c.query.Limit = "zebras", 10
			page, next, err := w.DB.Search.Find(t.Context(), w.Account, &c.query)
			var texts []string
			for i := range page {
				texts = append(texts, page[i].Snippet.Text)
			}
			if err != nil || next != nil || !slices.Equal(texts, c.want) {
				t.Errorf("%+v finds %q, want %q, next %v, %v", c.query, texts, c.want, next, err)
			}
		}
	})
}

func TestANewTitleReplacesTheOldOneAtOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "first name")
	w.Must(w.DB.Search.Index(t.Context()))
	_, err := w.DB.Conversations.SetTitle(t.Context(), w.Account, conversation.ConversationID, "second name", nil)
	w.Must(err)
	bothWays(w, func(w *storetest.World) {
		want(w, "first")
		want(w, "second", "c: second name")
	})
}

func TestABranchThatIsNotActiveIsFoundAndOpens(t *testing.T) {
	w := storetest.NewWorld(t)
	first := say(w, nil, "ask about walruses")
	start := w.Request(&first.ConversationID, "ask about seals")
	start.Branch = &protocol.BranchRequest{MessageID: first.UserMessageID, Mode: protocol.BranchEdit}
	w.Start(start).End(nil)
	bothWays(w, func(w *storetest.World) {
		results := find(w, w.Account, "walruses", 10)
		if len(results) != 2 || *results[1].BranchID != first.BranchID {
			w.Fatalf("%+v", results)
		}
		page, err := w.DB.Conversations.Messages(w.Context(), w.Account, &conversations.MessageQuery{
			ConversationID: first.ConversationID, BranchID: results[1].BranchID, Around: results[1].MessageID, Limit: 2,
		})
		if err != nil || !slices.ContainsFunc(page.Messages, func(m protocol.Message) bool { return m.MessageID == first.UserMessageID }) {
			w.Errorf("%+v, %v", page, err)
		}
	})
}

func TestTemporaryAndDeletedConversationsAreNeverFound(t *testing.T) {
	w := storetest.NewWorld(t)
	start := w.Request(nil, "canary in a temporary conversation")
	start.Temporary = true
	w.Start(start).End(nil)
	bothWays(w, func(w *storetest.World) { want(w, "canary") })

	spec := say(w, nil, "canary that is deleted")
	remove := func() {
		_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: spec.ConversationID})
		w.Must(err)
	}
	w.Must(w.DB.Search.Index(t.Context()))
	if n := len(found(w, "canary")); n != 2 {
		t.Fatalf("%d results before the deletion", n)
	}
	remove()
	bothWays(w, func(w *storetest.World) { want(w, "canary") })
	spec = say(w, nil, "canary that is deleted before it is indexed")
	remove()
	bothWays(w, func(w *storetest.World) { want(w, "canary") })
}

func TestAPurgeErasesTheRowsOfASearch(t *testing.T) {
	w := storetest.NewWorld(t)
	indexed, pending := say(w, nil, "canary one"), say(w, nil, "unrelated")
	w.Must(w.DB.Search.Index(t.Context()))
	say(w, &pending.ConversationID, "canary two")
	for _, id := range []protocol.ConversationID{indexed.ConversationID, pending.ConversationID} {
		_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
		w.Must(err)
		for done := false; !done; {
			done, err = w.DB.Conversations.PurgeConversation(t.Context(), w.Account, id, 3)
			w.Must(err)
		}
	}
	if rows, waiting := w.Count(`select count(*) from search_rows`), w.Count(`select count(*) from search_pending`); rows+waiting != 0 {
		t.Errorf("%d rows and %d pending rows are left", rows, waiting)
	}
}

func TestTitlesComeFirstThenBetterMatchesThenNewerOnes(t *testing.T) {
	w := storetest.NewWorld(t)
	say(w, nil, "blue whales, one", textPart("x"))
	say(w, nil, "whales and blue, two", textPart("x"))
	say(w, nil, "blue whalesong, three", textPart("x"))
	say(w, nil, "blue whales, four", textPart("x"))
	w.Database.Admin(t, `update conversations set provisional_title = ''`)
	storetest.NewConversation(t, w.DB, w.Account, "whales in blue")
	bothWays(w, func(w *storetest.World) {
		want(w, "blue whales", "c: whales in blue", "m: blue whales, four", "m: blue whales, one", "m: blue whalesong, three", "m: whales and blue, two")
	})
}

// seed adds n messages with the text to a new conversation of an account. In the text, {n} is the number of the message.
func seed(w *storetest.World, account protocol.AccountID, n int, text string) protocol.ConversationID {
	w.Helper()
	conversation := storetest.NewConversation(w.T, w.DB, account, "seeded")
	_, err := w.DB.Exec(w.Context(), account, `
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts, created_at)
		select $1, gen_random_uuid(), $2, $3, n, 'user', 'complete', json_build_array(json_build_object('type', 'text', 'text', replace($5::text, '{n}', n::text))),
			'2026-01-01'::timestamptz + n * interval '1 second'
		from generate_series(1, $4::int) n`, account, conversation.ConversationID, conversation.ActiveBranchID, n, text)
	w.Must(err)
	return conversation.ConversationID
}

// fewOf returns a limit with which results take about twenty pages.
func fewOf(results int) int { return max(7, results/20) }

func TestEveryMatchIsOnOnePage(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := seed(w, w.Account, 900, "common word number{n} odd")
	rare := seed(w, w.Account, 700, "nothing here")
	_, err := w.DB.Exec(t.Context(), w.Account, `update messages set parts = '[{"type":"text","text":"common rare"}]' where conversation_id = $1 and depth % 20 = 0`, rare)
	w.Must(err)
	bothWays(w, func(w *storetest.World) {
		for _, c := range []struct {
			query string
			in    *protocol.ConversationID
			want  int
		}{{"common", nil, 935}, {"common", &conversation, 900}, {"rare", nil, 35}, {"rare", &conversation, 0}, {"rare", &rare, 35}, {"number77", nil, 11}, {"com odd", nil, 0}, {"odd com", nil, 900}, {"common -odd", nil, 35}, {`"odd common"`, nil, 0}} {
			for _, limit := range []int{100, fewOf(c.want)} {
				results := findIn(w, w.Account, c.query, c.in, limit)
				distinct := map[protocol.MessageID]bool{}
				for i, r := range results {
					distinct[*r.MessageID] = true
					if i > 0 && c.query == "common" && r.At.After(results[i-1].At) {
						w.Errorf("%s: result %d is newer than the one before it", c.query, i)
					}
				}
				if len(results) != c.want || len(distinct) != c.want {
					w.Errorf("%s, pages of %d: %d results, %d of them distinct, want %d", c.query, limit, len(results), len(distinct), c.want)
				}
			}
		}
	})
}

func TestAnotherAccountsTextIsNeverFound(t *testing.T) {
	w := storetest.NewWorld(t)
	other := w.OtherAccount()
	foreign := seed(w, other, 50, "canary of another account")
	own := seed(w, w.Account, 50, "something of this account")
	bothWays(w, func(w *storetest.World) {
		want(w, "canary")
		want(w, "can")
		want(w, "-something canary")
		if got := findIn(w, w.Account, "canary", &foreign, 10); len(got) != 0 {
			w.Errorf("in a conversation of the other account: %+v", got)
		}
		if got := findIn(w, w.Account, "something", &own, 100); len(got) != 50 {
			w.Errorf("%d of the own messages were found", len(got))
		}
	})
	// The function filters by the account of the transaction, whatever query it gets.
	other26 := other.String()
	for _, account := range []protocol.AccountID{w.Account, {}} {
		rows, err := pg.Rows(t.Context(), w.DB.DB, account, pgx.RowTo[int], `
			select score from search_window('message', $1::tsquery, null, null, null, $2, now(), 'ffffffff-ffff-ffff-ffff-ffffffffffff', 100)`,
			"'m"+other26[len(other26)-6:]+"canary'", nil)
		w.Must(err)
		if len(rows) != 0 {
			t.Errorf("the function returned %d rows of another account", len(rows))
		}
	}
}

func TestHostileQueriesFindNothingUnexpected(t *testing.T) {
	w := storetest.NewWorld(t)
	seed(w, w.Account, 500, "the of and a to in {n}")
	bothWays(w, func(w *storetest.World) {
		for _, query := range []string{
			strings.Repeat("\"", 160), strings.Repeat("-", 160), strings.Repeat("a ", 80), strings.Repeat("-a ", 53), strings.Repeat("'", 160),
			"a' | 'b", "'; drop table messages; --", ":* & ! |", `\`, strings.Repeat(`"a `, 53), "a:*B", "<->", strings.Repeat("𝔞", 160), "a -a", "\x00\ufffd",
			strings.Repeat("the of ", 22), `"` + strings.Repeat("of the ", 22) + `"`,
		} {
			began := time.Now()
			request := &search.Query{Text: query, Limit: 100}
			if _, _, err := w.DB.Search.Find(w.Context(), w.Account, request); err != nil {
				w.Errorf("%q: %v", query, err)
			}
			w.Logf("%.20q: %v", query, time.Since(began))
		}
		if got := find(w, w.Account, "a -a", 10); len(got) != 0 {
			w.Errorf("a word that is excluded was found: %+v", got)
		}
	})
}

func TestAHugeTextIsFoundByAllItsEarlyWords(t *testing.T) {
	w := storetest.NewWorld(t)
	var text strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&text, "word%d ", n)
	}
	say(w, nil, "short", textPart("early phrase "+text.String()))
	bothWays(w, func(w *storetest.World) {
		for _, query := range []string{"word12345", `"early phrase word0"`, "word0 word9999"} {
			if got := find(w, w.Account, query, 10); len(got) != 1 {
				w.Errorf("%s: %d results", query, len(got))
			}
		}
	})
}

func TestTextsFromBeforeTheIndexAreAddedInBatches(t *testing.T) {
	w := storetest.NewWorld(t)
	other := w.OtherAccount()
	seed(w, w.Account, 2500, "old text {n}")
	seed(w, other, 10, "old text")
	w.Must(w.DB.Search.Index(t.Context()))
	w.Database.Admin(t, `delete from search_rows`)
	w.Database.Admin(t, `insert into search_backfill select kind, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
		from unnest(array['conversation', 'message']) kind`)
	want(w, "seeded")
	w.Must(w.DB.Search.Index(t.Context()))
	want(w, "seeded", "c: seeded")
	if n := w.Count(`select count(*) from search_rows`); n != 2501 {
		t.Errorf("%d rows of the account", n)
	}
	if got := find(w, other, "old", 100); len(got) != 10 {
		t.Errorf("%d results of the other account", len(got))
	}
}

func TestASearchFailsWhenPostgresDoes(t *testing.T) {
	w := storetest.NewWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := w.DB.Search.Find(ctx, w.Account, &search.Query{Text: "x", Limit: 1})
	storetest.WantCode(t, err, protocol.CodeUnavailable)
}

// TestASearchReadsOnlyConversationsThatMatch compares the pages that Postgres reads in an account without and with many other
// conversations. It must look up those of the matches, and never read all of them.
func TestASearchReadsOnlyConversationsThatMatch(t *testing.T) {
	w := storetest.NewWorld(t)
	seed(w, w.Account, 10_000, "common number{n}")
	indexed := func() {
		w.Must(w.DB.Search.Index(t.Context()))
		w.Database.Admin(t, `vacuum analyze search_rows, conversations`)
	}
	pagesOf := func(query string) int {
		_, pages, err := w.DB.Search.Explain(t.Context(), w.Account, nil, query, false)
		w.Must(err)
		return pages
	}
	indexed()
	queries, before := []string{"common", "number7", "absent"}, map[string]int{}
	for _, query := range queries {
		before[query] = pagesOf(query)
	}
	w.Database.Admin(t, `
		insert into conversations (account_id, conversation_id, active_branch_id)
		select account_id, gen_random_uuid(), active_branch_id from conversations, generate_series(1, 30000) where account_id = $1`, w.Account)
	indexed()
	all := w.Count(`select relpages from pg_class where relname = 'conversations'`)
	for _, query := range queries {
		if more := pagesOf(query) - before[query]; more > all*3/4 { // a deeper index takes some pages for each match
			t.Errorf("%s: %d pages more with 30,000 other conversations, which have %d", query, more, all)
		}
	}
}
