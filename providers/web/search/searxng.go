package search

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// SearXNG is an engine that an operator runs. Its settings must allow the format json.
type SearXNG struct{ caller }

// NewSearXNG returns a client of the server at an address.
func NewSearXNG(address string, options Options) *SearXNG {
	return &SearXNG{newCaller("SearXNG", strings.TrimSuffix(address, "/"), options)}
}

// Search implements Engine.
func (s *SearXNG) Search(ctx context.Context, query string, limit int) ([]Result, error) {
	request, err := http.NewRequest(http.MethodGet, s.base+"/search?"+url.Values{"q": {query}, "format": {"json"}, "safesearch": {"1"}}.Encode(), nil)
	if err != nil {
		return nil, s.failed(" has an address that is not valid.", err)
	}
	var answer struct {
		Results      []json.RawMessage `json:"results"`
		Unresponsive []json.RawMessage `json:"unresponsive_engines"`
	}
	if err := s.call(ctx, request, &answer); err != nil {
		return nil, err
	}
	switch {
	case answer.Results == nil:
		return nil, s.failed(" sent an answer without results.", nil)
	case len(answer.Results) == 0 && len(answer.Unresponsive) > 0:
		return nil, s.failed(" got no answer of the engines that it asks.", nil)
	}
	type result struct {
		Title, URL, Content string
		PublishedDate       *string `json:"publishedDate"`
	}
	return objects(answer.Results, func(r *result) Result {
		one := Result{Title: r.Title, URL: r.URL, Snippet: r.Content}
		if r.PublishedDate != nil {
			one.Date = *r.PublishedDate
		}
		return one
	}), nil
}
