package search

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

// Tavily is the Tavily Search API.
type Tavily struct {
	caller
	key string
}

// NewTavily returns a client with a key.
func NewTavily(key string, options Options) *Tavily {
	return &Tavily{newCaller("Tavily", "https://api.tavily.com", options), key}
}

// Search implements Engine.
func (t *Tavily) Search(ctx context.Context, query string, limit int) ([]Result, error) {
	body, err := json.Marshal(map[string]any{"query": query, "max_results": limit, "search_depth": "basic"})
	if err != nil {
		return nil, t.failed(" did not get the query.", err)
	}
	request, err := http.NewRequest(http.MethodPost, t.base+"/search", bytes.NewReader(body))
	if err != nil {
		return nil, t.failed(" has an address that is not valid.", err)
	}
	request.Header.Set("Authorization", "Bearer "+t.key)
	request.Header.Set("Content-Type", "application/json")
	var answer struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := t.call(ctx, request, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, t.failed(" sent an answer without results.", nil)
	}
	type result struct {
		Title, URL, Content string
		PublishedDate       string `json:"published_date"`
	}
	return objects(answer.Results, func(r *result) Result {
		return Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Date: r.PublishedDate}
	}), nil
}
