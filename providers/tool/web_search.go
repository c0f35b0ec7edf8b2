package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/providers/web/search"
)

//go:embed web_search.md
var webSearchDescription string

// WebSearch finds web pages.
type WebSearch struct{ Web *Web }

const (
	maxQuery       = 400 // characters; engines refuse longer ones
	defaultResults = 8
	maxResults     = 15
)

// Spec implements toolbox.Tool.
func (w WebSearch) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "web_search", Kind: "web_search", Title: "Search the web", Description: webSearchDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible,
		Untrusted: true, Describe: describeSearch, Unavailable: w.Web.Unavailable,
		Timeout: 40 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","minLength":1,"maxLength":400,"description":"The words to search for."},` +
			`"count":{"type":"integer","minimum":1,"maximum":15,"description":"The number of results. Default: 8."}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (w WebSearch) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		Query string `json:"query"`
		Count int    `json:"count"`
	}
	err := json.Unmarshal(call.Input, &in)
	query := strings.TrimSpace(foreign.Clean(in.Query))
	if err != nil || query == "" || utf8.RuneCountInString(query) > maxQuery || in.Count < 0 || in.Count > maxResults {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "A query of at most 400 characters is needed, and a number of results of at most 15."}
	}
	if in.Count == 0 {
		in.Count = defaultResults
	}
	if err := w.Web.begin(ctx, call, "web_searches", "web searches", w.Web.SearchesPerDay); err != nil {
		return toolbox.Result{}, err
	}
	found, err := w.Web.Searcher.Search(ctx, query, in.Count, label(call))
	if err != nil {
		return toolbox.Result{}, err
	}
	return framed(call, found), nil
}

// framed returns the results in frames, below a sentence that says from where they are.
func framed(call *toolbox.Call, found *search.Found) toolbox.Result {
	failed := strings.Join(append([]string{""}, found.Failed...), " ")
	if len(found.Results) == 0 {
		return toolbox.Result{Output: "Nothing was found by " + found.Engine + "." + failed, Framed: true, Empty: true}
	}
	result := toolbox.Result{Output: fmt.Sprintf("Results from %s: %d.%s", found.Engine, len(found.Results), failed), Framed: true}
	for i, r := range found.Results {
		number := call.FirstSource + i
		attributes := foreign.Attribute("number", strconv.Itoa(number)) + foreign.Attribute("title", r.Title) + foreign.Attribute("url", r.URL)
		if r.Date != "" {
			attributes += foreign.Attribute("published", r.Date)
		}
		result.Output += "\n\n" + foreign.Frame(foreign.WebPage, attributes, r.Snippet)
		result.Sources = append(result.Sources, protocol.Source{Number: number, URL: protocol.WebAddress(r.URL), Title: foreign.Clean(r.Title), Size: len(r.Snippet)})
	}
	return result
}
