package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// indexWithin limits how long the index may take for the whole corpus.
const indexWithin = time.Hour

// searchClass is a class of queries: each has so many words of ranks in [from, to). Word n occurs about 1/n as often as
// the most frequent one.
type searchClass struct {
	name            string
	words, from, to int
	unfinished      bool            // the query is the beginning of a word
	large, small    figures.Samples // p95 by round
}

func searchClasses() []*searchClass {
	return []*searchClass{
		{name: "common", words: 1, from: 1, to: 20},
		{name: "medium", words: 1, from: 100, to: 400},
		{name: "rare", words: 1, from: 4000, to: 8000},
		{name: "two words", words: 2, from: 5, to: 100},
		{name: "prefix", words: 1, from: 100, to: 4000, unfinished: true},
	}
}

// query returns a random query of the class.
func (c *searchClass) query(random *rand.Rand) string {
	words := make([]string, c.words)
	for i := range words {
		words[i] = load.Word(c.from + random.IntN(c.to-c.from))
	}
	text := strings.Join(words, " ")
	if c.unfinished {
		return text[:min(len(text), 2)]
	}
	return `"` + strings.Join(words, `" "`) + `"`
}

// manyRows measures P11: searches, lists and pages of an account of 100,000 messages and as many conversations among
// 1,000,000 messages, and of an account of 1,000.
func (b *bench) manyRows(ctx context.Context) error {
	accounts, err := b.site.EnsureAccounts(ctx, 2)
	if err != nil {
		return err
	}
	large := b.pickCount(100_000, 2000)
	corpus := &load.Corpus{Messages: b.pickCount(1_000_000, 20_000), Others: b.pickCount(3000, 50), Named: []load.CorpusShare{
		{Account: accountUUID(accounts[0]), Conversations: large, Messages: large},
		{Account: accountUUID(accounts[1]), Conversations: 1000, Messages: 1000},
	}}
	if err := fillRows(ctx, b, corpus); err != nil {
		return err
	}
	targets := [2]*rowTarget{}
	for i, depth := range []int{large * 9 / 10, 900} {
		if targets[i], err = findPages(ctx, accounts[i], corpus.Conversation(i), depth); err != nil {
			return err
		}
	}
	note := fmt.Sprintf("measured with %d messages of %d accounts, %d of them in the account", corpus.Messages, corpus.Others+len(corpus.Named), large)
	return errors.Join(measureSearches(ctx, b, targets, note), measurePages(ctx, b, targets, note))
}

func accountUUID(a *load.Account) uuid.UUID {
	var id protocol.AccountID
	if id.UnmarshalText([]byte(a.ID)) != nil {
		return uuid.Nil
	}
	return uuid.UUID(id)
}

// fillRows inserts the corpus and waits until the service has indexed it.
func fillRows(ctx context.Context, b *bench, corpus *load.Corpus) error {
	begun := time.Now()
	if err := b.site.SQLWith(ctx, corpus.Write); err != nil {
		return err
	}
	b.Say("  %d messages inserted in %s", corpus.Messages, time.Since(begun).Round(time.Second))
	begun = time.Now()
	err := load.Until(ctx, indexWithin, func() (bool, error) {
		left, err := b.site.QueryNumbers(ctx, `select (select count(*) from search_backfill) + (select count(*) from (select from search_pending limit 1) p)`)
		return err == nil && left[0] == 0, err
	})
	if err != nil {
		return err
	}
	b.Say("  indexed in %s", time.Since(begun).Round(time.Second))
	_, err = b.site.SQL(ctx, "vacuum analyze messages; vacuum analyze conversations; vacuum analyze search_rows; vacuum analyze search_pending; checkpoint;")
	return err
}

// rowTarget is an account with the addresses of its pages.
type rowTarget struct {
	account             *load.Account
	list, listDeep      string
	messages, pagesDeep string
}

// findPages reads a list of conversations and a list of messages up to a depth.
func findPages(ctx context.Context, a *load.Account, conversation uuid.UUID, depth int) (*rowTarget, error) {
	t := &rowTarget{account: a, list: "/conversations?", messages: "/conversations/" + protocol.ConversationID(conversation).String() + "/messages?"}
	var err error
	if t.listDeep, err = pageAt(ctx, a, t.list, depth); err != nil {
		return nil, err
	}
	t.pagesDeep, err = pageAt(ctx, a, t.messages, depth)
	return t, err
}

// pageAt returns the address of the page that starts after depth items.
func pageAt(ctx context.Context, a *load.Account, path string, depth int) (string, error) {
	const step = 100
	at := path
	for read := 0; read < depth; read += step {
		var page struct {
			Next *string `json:"next_cursor"`
		}
		if err := a.API.Do(ctx, client.Request{Method: http.MethodGet, Path: fmt.Sprintf("%slimit=%d", at, step)}, &page); err != nil {
			return "", err
		}
		if page.Next == nil {
			return "", fmt.Errorf("%s ends after %d items", path, read+step)
		}
		at = path + "cursor=" + url.QueryEscape(*page.Next) + "&"
	}
	return at, nil
}

// timed returns how long n requests take, one after the other. The first one is not counted.
func timed(ctx context.Context, a *load.Account, n int, path func(i int) string) (load.Spread, error) {
	took := load.NewHistogram()
	for i := range n + 1 {
		begun := time.Now()
		if err := a.API.Do(ctx, client.Request{Method: http.MethodGet, Path: path(i)}, nil); err != nil {
			return load.Spread{}, err
		}
		if i > 0 {
			load.Record(took, time.Since(begun).Nanoseconds())
		}
	}
	return load.SpreadOf(took), nil
}

// measureSearches measures each class of queries in both accounts.
func measureSearches(ctx context.Context, b *bench, targets [2]*rowTarget, note string) error {
	n := b.pickCount(200, 20)
	classes := searchClasses()
	table := figures.NewTable("round", "queries", "account", "p50 ms", "p95", "p99", "max")
	for round := range b.rounds {
		random := rand.New(rand.NewPCG(uint64(round), 11))
		for _, c := range classes {
			for _, isLarge := range alternate(round) {
				side, name := 1, "1,000 messages"
				if isLarge {
					side, name = 0, "large"
				}
				spread, err := timed(ctx, targets[side].account, n, func(int) string { return "/search?q=" + url.QueryEscape(c.query(random)) })
				if err != nil {
					return err
				}
				if isLarge {
					c.large = append(c.large, spread.P95)
				} else {
					c.small = append(c.small, spread.P95)
				}
				table.Add(round+1, c.name, name, spread.P50, spread.P95, spread.P99, spread.Max)
				b.Say("  %s", table.Last())
			}
		}
	}
	for _, c := range classes {
		b.report.Add(goals.Figure{Goal: "P11 " + c.name, Ours: c.large, Baseline: c.small, Unit: "ms", Score: c.large, Note: note})
	}
	b.report.Detail("P11", fmt.Sprintf("%d searches of each class, one after the other", n), table)
	return nil
}

// measurePages compares the first page and a deep one of each list, and the first page of both accounts.
func measurePages(ctx context.Context, b *bench, targets [2]*rowTarget, note string) error {
	n := b.pickCount(200, 20)
	lists := []struct {
		goal, name, first, deep, small string
	}{
		{"P11 list", "conversations", targets[0].list, targets[0].listDeep, targets[1].list},
		{"P11 page", "messages", targets[0].messages, targets[0].pagesDeep, targets[1].messages},
	}
	table := figures.NewTable("round", "list", "page", "p50 ms", "p95", "p99", "max")
	for _, l := range lists {
		var first, deep, small figures.Samples
		for round := range b.rounds {
			order := []struct {
				name    string
				account *load.Account
				path    string
				samples *figures.Samples
			}{{"first", targets[0].account, l.first, &first}, {"deep", targets[0].account, l.deep, &deep}, {"first of 1,000", targets[1].account, l.small, &small}}
			for i := range order {
				o := order[(i+round)%len(order)]
				spread, err := timed(ctx, o.account, n, func(int) string { return o.path + "limit=20" })
				if err != nil {
					return err
				}
				*o.samples = append(*o.samples, spread.P50)
				table.Add(round+1, l.name, o.name, spread.P50, spread.P95, spread.P99, spread.Max)
				b.Say("  %s", table.Last())
			}
		}
		b.report.Add(goals.Figure{Goal: l.goal + " deep", Ours: deep, Baseline: first, Unit: "ms", Score: deep.DividedBy(first), Note: note})
		b.report.Add(goals.Figure{Goal: l.goal, Ours: first, Baseline: small, Unit: "ms", Score: first.DividedBy(small), Note: note})
	}
	b.report.Detail("P11", fmt.Sprintf("%d pages of 20 items, one after the other; the deep page starts after nine tenths of the items", n), table)
	return nil
}
