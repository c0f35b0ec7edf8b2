package search

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// Brave is the Brave Search API.
type Brave struct {
	caller
	key string
}

// NewBrave returns a client with a key.
func NewBrave(key string, options Options) *Brave {
	return &Brave{newCaller("Brave", "https://api.search.brave.com", options), key}
}

const braveMost = 20 // results of one request

// Search implements Engine.
func (b *Brave) Search(ctx context.Context, query string, limit int) ([]Result, error) {
	values := url.Values{"q": {query}, "count": {strconv.Itoa(min(limit, braveMost))}, "text_decorations": {"false"}}
	request, err := http.NewRequest(http.MethodGet, b.base+"/res/v1/web/search?"+values.Encode(), nil)
	if err != nil {
		return nil, b.failed(" has an address that is not valid.", err)
	}
	request.Header.Set("X-Subscription-Token", b.key)
	var answer struct {
		Query json.RawMessage `json:"query"`
		Web   *struct {
			Results []json.RawMessage `json:"results"`
		} `json:"web"`
	}
	if err := b.call(ctx, request, &answer); err != nil {
		return nil, err
	}
	if answer.Web == nil {
		if answer.Query == nil { // not an answer without findings, which has the query
			return nil, b.failed(" sent an answer without results.", nil)
		}
		return nil, nil
	}
	type result struct {
		Title, URL, Description string
		PageAge                 string `json:"page_age"`
	}
	return objects(answer.Web.Results, func(r *result) Result {
		return Result{Title: r.Title, URL: r.URL, Snippet: r.Description, Date: r.PageAge}
	}), nil
}
