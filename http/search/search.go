package search

import (
	"context"
	"strings"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/search"
	"turnstone/protocol"
)

// Store finds texts. Its method is documented in persistence/search.
type Store interface {
	Find(ctx context.Context, account protocol.AccountID, query *search.Query) (page []protocol.SearchResult, next *search.Position, err error)
}

// Handlers handle searches.
type Handlers struct {
	store Store
	keys  *auth.Keys
}

// New returns the handlers of searches in a store.
func New(store Store, keys *auth.Keys) *Handlers { return &Handlers{store, keys} }

// Routes returns the routes of searches.
func (h *Handlers) Routes() []route.Route {
	return []route.Route{
		route.Call("GET", "/search", "search", "Search the account", route.Searches, h.search).
			DescribedAs("Finds conversations by their titles and messages by their text, on all branches. " +
				"Text is found as soon as it is stored; the text of an answer, when its turn has ended. " +
				"Case, accents and forms of characters do not matter. In q, words are separated by spaces, and all of them must occur; " +
				"the last word also matches words that begin with it. Quotation marks make a phrase, and a hyphen before a word or a phrase excludes it. " +
				"Languages without spaces between words, and Korean, match by any part of a text. " +
				"A query without a word that is not excluded finds nothing. " +
				"Titles come first, then matches whose words stand together, then whole words; newer ones first among equals. " +
				"The newest matches are ranked in groups of some hundred. A page may have fewer results than limit, or none, and still a next_cursor, with which the search continues. " +
				"Temporary conversations are never found. Searches have a limit of their own (search)."),
	}
}

type input struct {
	Query          string                  `query:"q" required:"true" doc:"1 to 160 code points, without spaces at the ends."`
	ConversationID protocol.ConversationID `query:"conversation_id" doc:"Search in this conversation only. A conversation that does not exist contains nothing."`
	Cursor         string                  `query:"cursor" maxLength:"1024" doc:"The next_cursor of an earlier page of the same search."`
	Limit          int                     `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"The maximum number of results in the page."`
}

func (h *Handlers) search(ctx context.Context, in *input) (*resource.Body[protocol.List[protocol.SearchResult]], error) {
	text, err := queryText(in.Query)
	if err != nil {
		return nil, err
	}
	caller := router.CallerOf(ctx)
	query := &search.Query{Text: text, Limit: in.Limit}
	scope := "search " + text
	if !in.ConversationID.IsZero() {
		query.ConversationID = &in.ConversationID
		scope = "search " + in.ConversationID.String() + " " + text
	}
	if query.After, err = resource.OpenCursor[search.Position](caller, h.keys, in.Cursor, scope); err != nil {
		return nil, err
	}
	page, next, err := h.store.Find(ctx, caller.AccountID, query)
	if err != nil {
		return nil, err
	}
	return resource.Listed(caller, h.keys, scope, page, next), nil
}

// queryText returns a query without the spaces around it.
func queryText(q string) (string, error) {
	text := strings.TrimSpace(q)
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", protocol.Invalid("query.q", "must contain text")
	case n > protocol.MaxQueryRunes:
		return "", protocol.Invalid("query.q", "must have at most 160 characters")
	}
	return text, nil
}
