package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/providers/outbound"
	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

// Web is what the tools for the web use.
type Web struct {
	Searcher Searcher
	Pages    PageReader
	Limits   DailyLimits
	// What an account may do on a UTC day; 0: no limit.
	SearchesPerDay, PagesPerDay int
	// Unavailable is why these tools cannot be used, a sentence; empty: they can.
	Unavailable string
}

// Searcher searches the web. search.Engines implements it.
type Searcher interface {
	// Search returns the best results for a query, at most limit. progress reports each step. An error that users may see is
	// a *toolbox.Failure.
	Search(ctx context.Context, query string, limit int, progress func(label string)) (*search.Found, error)
}

// PageReader reads pages. page.Reader implements it.
type PageReader interface {
	// Read reads the page at an address. progress reports each step. An error that users may see is a *toolbox.Failure.
	Read(ctx context.Context, address string, progress func(label string)) (*page.Page, error)
}

// DailyLimits counts what accounts do on a UTC day. Package persistence/limits implements it.
type DailyLimits interface {
	// TakeDaily counts one use of a name, and reports whether it is within the limit. resets is when the day ends.
	TakeDaily(ctx context.Context, name, key string, limit int) (allowed bool, resets time.Time, err error)
}

// begin returns an error if the tools cannot be used, or if the account has used its limit of a day.
func (w *Web) begin(ctx context.Context, call *toolbox.Call, name, plural string, limit int) error {
	if w.Unavailable != "" {
		return &toolbox.Failure{Code: "unavailable", Detail: w.Unavailable}
	}
	if limit == 0 {
		return nil
	}
	allowed, resets, err := w.Limits.TakeDaily(ctx, name, call.AccountID.String(), limit)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &toolbox.Failure{Code: "unavailable", Detail: "The limit of " + plural + " cannot be checked at the moment. Try again later."}
	case !allowed:
		return &toolbox.Failure{Code: "daily_limit", Detail: fmt.Sprintf("The account has used its %d %s for today. The limit resets at %s.", limit, plural, resets.Format(time.RFC3339))}
	}
	return nil
}

// label returns a function that reports a step of a call.
func label(call *toolbox.Call) func(string) {
	return func(text string) { call.Report(text, 0, 0) }
}

// describeSearch returns what a call of web_search sends out.
func describeSearch(input json.RawMessage) policy.Description {
	query := field(input, "query")
	return policy.Description{Summary: "Searches the web for: " + query, Outward: query, Effects: []string{"A search engine gets this text: " + query}}
}

// describePage returns what a call of read_page sends out. Whatever it is, the text is taken for an address: the client that makes
// the request reads it in the same way, and refuses what is none.
func describePage(input json.RawMessage) policy.Description {
	text := strings.TrimSpace(field(input, "url"))
	about := policy.Description{Summary: "Reads the page " + text, Outward: text, Address: true, Effects: []string{"The server of the page gets the request, with its address."}}
	if address, err := outbound.Parse(text); err == nil {
		about.Resource = address.Hostname()
	}
	return about
}

// field returns a text in an input; a field that is missing is empty.
func field(input json.RawMessage, name string) string {
	var fields map[string]any
	_ = json.Unmarshal(input, &fields)
	text, _ := fields[name].(string)
	return text
}
