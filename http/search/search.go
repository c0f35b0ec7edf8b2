package search

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/search"
	"turnstone/protocol"
)

// Store finds texts. Its methods are documented in persistence/search.
type Store interface {
	Find(ctx context.Context, account protocol.AccountID, query *search.Query) (page []protocol.SearchResult, next *search.Position, err error)
	Suggest(ctx context.Context, account protocol.AccountID, query *search.Query) (text string, err error)
}

// Projects reads projects. Its methods are documented in persistence/projects.
type Projects interface {
	Project(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error)
	Named(ctx context.Context, account protocol.AccountID, name string) (*protocol.ProjectID, error)
}

// Handlers handle searches.
type Handlers struct {
	store    Store
	projects Projects
	keys     *auth.Keys
}

// New returns the handlers of searches in a store.
func New(store Store, projects Projects, keys *auth.Keys) *Handlers {
	return &Handlers{store, projects, keys}
}

// Input is embedded by the inputs of all searches.
type Input struct {
	Query  string `query:"q" required:"true" doc:"1 to 160 code points, without spaces at the ends."`
	Cursor string `query:"cursor" maxLength:"1024" doc:"The next_cursor of an earlier page of the same search."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"The maximum number of results in the page."`
	Role   string `query:"role" enum:"user,assistant" doc:"Find messages of this role only, and no other kinds. Default: any role."`
	From   string `query:"from" maxLength:"40" doc:"Find only what was created at this time or later: a time, for example 2026-01-31T08:00:00Z, or a day (UTC)."`
	To     string `query:"to" maxLength:"40" doc:"Find only what was created before this time, or before this day (UTC)."`
}

type accountInput struct {
	Input
	ConversationID protocol.ConversationID `query:"conversation_id" doc:"Search in this conversation only. A conversation that does not exist contains nothing."`
	Kind           string                  `query:"kind" enum:"conversation,message,file,artifact,task" doc:"Find objects of this kind only. Default: all kinds."`
}

func (h *Handlers) search(ctx context.Context, in *accountInput) (*resource.Body[protocol.SearchPage], error) {
	query, scope := &search.Query{Kind: protocol.SearchKind(in.Kind)}, "search "+in.Kind+" "
	if !in.ConversationID.IsZero() {
		query.ConversationID = &in.ConversationID
		scope += in.ConversationID.String() + " "
	}
	return h.find(ctx, &in.Input, query, scope)
}

type projectInput struct {
	Input
	ProjectID protocol.ProjectID `path:"project_id"`
	Kind      string             `query:"kind" enum:"conversation,message,file,artifact,task" doc:"Find objects of this kind only. Default: all kinds."`
}

func (h *Handlers) searchProject(ctx context.Context, in *projectInput) (*resource.Body[protocol.SearchPage], error) {
	if _, err := h.projects.Project(ctx, exchange.CallerOf(ctx).AccountID, in.ProjectID); err != nil {
		return nil, err
	}
	query := &search.Query{ProjectID: &in.ProjectID, Kind: protocol.SearchKind(in.Kind)}
	return h.find(ctx, &in.Input, query, "project search "+in.ProjectID.String()+" "+in.Kind+" ")
}

// find returns a page of results. Its cursors belong to the scope with the text of the query.
func (h *Handlers) find(ctx context.Context, in *Input, query *search.Query, scope string) (*resource.Body[protocol.SearchPage], error) {
	text, err := queryText(in.Query)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	if in.Role != "" && query.Kind != "" && query.Kind != protocol.SearchMessage {
		return nil, protocol.Invalid("query.kind", "must be message when role is set")
	}
	if query.From, err = resource.TimeOr("query.from", in.From, time.Time{}); err != nil {
		return nil, err
	}
	if query.To, err = resource.TimeOr("query.to", in.To, time.Time{}); err != nil {
		return nil, err
	}
	query.Text, query.Limit, query.Role = text, in.Limit, in.Role
	scope += fmt.Sprintf("%s %q %q ", in.Role, in.From, in.To) + text
	if query.After, err = resource.OpenCursor[search.Position](caller, h.keys, in.Cursor, scope); err != nil {
		return nil, err
	}
	var filters []string
	var nothing bool
	if query.Text, filters, nothing, err = h.takeFilters(ctx, caller.AccountID, query, text); err != nil {
		return nil, err
	}
	page := protocol.SearchPage{List: protocol.List[protocol.SearchResult]{Data: []protocol.SearchResult{}}}
	if nothing {
		return resource.OK(page), nil
	}
	found, next, err := h.store.Find(ctx, caller.AccountID, query)
	if err != nil {
		return nil, err
	}
	page.List = resource.Listed(caller, h.keys, scope, found, next).Body
	if len(found) == 0 && next == nil && query.After == nil {
		page.DidYouMean, err = h.suggest(ctx, caller.AccountID, query, filters)
	}
	return resource.OK(page), err
}

// suggest returns a query that finds something, with the filters of one that finds nothing.
func (h *Handlers) suggest(ctx context.Context, account protocol.AccountID, query *search.Query, filters []string) (*string, error) {
	text, err := h.store.Suggest(ctx, account, query)
	if err != nil || text == "" {
		return nil, err
	}
	text = strings.Join(append([]string{text}, filters...), " ")
	return &text, nil
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
