package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
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

// outward returns a function that describes a call which sends a field of its input to another service. verb is the beginning
// of the summary.
func outward(name, verb string) func(json.RawMessage) policy.Description {
	return func(input json.RawMessage) policy.Description {
		var fields map[string]any
		_ = json.Unmarshal(input, &fields) // a field that is missing is empty
		text, _ := fields[name].(string)
		about := policy.Description{Summary: verb + " " + text, Outward: text, Effects: []string{"Another service gets this text: " + text}}
		if address, err := url.Parse(text); err == nil && address.Host != "" {
			about.Address, about.Resource = true, address.Hostname()
			about.Effects = []string{address.Hostname() + " gets the request, with its address."}
		}
		return about
	}
}
