package search

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"turnstone/actors/toolbox"
)

// Result is a page that an engine found.
type Result struct {
	Title   string
	URL     string // http or https
	Snippet string
	Date    string // when the page was published, as 2026-05-01; "": unknown
}

// Engine searches the web. All implementations pass the suite in engine_test.go.
type Engine interface {
	// Name is the name of the engine in sentences.
	Name() string
	// Search returns the best results for a query, at most limit. Nothing found is no error. An error other than that of ctx
	// is an *Error.
	Search(ctx context.Context, query string, limit int) ([]Result, error)
}

// Error is a search that failed. Its text is a sentence without secrets.
type Error struct {
	Detail string
	Err    error // nil: none
}

func (e *Error) Error() string { return e.Detail }

func (e *Error) Unwrap() error { return e.Err }

// Found is the answer of the first engine that gave one.
type Found struct {
	Results []Result
	Engine  string
	// Failed says in sentences why the engines before it gave none.
	Failed []string
}

// Engines are asked in their order.
type Engines []Engine

// Search asks the engines until one answers. progress reports which one is asked. If all fail, the error says why each did.
func (e Engines) Search(ctx context.Context, query string, limit int, progress func(label string)) (*Found, error) {
	found := &Found{}
	for _, engine := range e {
		progress("Searching with " + engine.Name())
		results, err := engine.Search(ctx, query, limit)
		if err == nil {
			found.Results, found.Engine = cleaned(results, limit), engine.Name()
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		detail := engine.Name() + " failed."
		if known := (*Error)(nil); errors.As(err, &known) {
			detail = known.Detail
		}
		found.Failed = append(found.Failed, detail)
	}
	return nil, &toolbox.Failure{Code: "search_failed", Detail: fmt.Sprintf("The web cannot be searched at the moment. %s", strings.Join(found.Failed, " "))}
}
