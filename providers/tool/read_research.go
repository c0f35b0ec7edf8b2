package tool

import (
	"cmp"
	"context"
	_ "embed" // the description
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/words"
)

//go:embed read_research.md
var readResearchDescription string

// KeptSources reads what research tasks have kept. Package persistence/research implements it.
type KeptSources interface {
	// Kept returns sources that tasks of a conversation keep, those of newer tasks first, at most limit.
	Kept(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, limit int) ([]protocol.ResearchKeptSource, error)
}

// ReadResearch finds passages of the sources that research tasks of the conversation have kept.
type ReadResearch struct{ Sources KeptSources }

const (
	maxKept     = 400 // sources that one call looks at
	maxPassages = 12  // that one call returns
)

// Spec implements toolbox.Tool.
func (ReadResearch) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "read_research", Kind: "research", Title: "Read sources of earlier research", Description: readResearchDescription,
		Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true, Private: true, Untrusted: true,
		Timeout: 30 * time.Second,
		Schema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":400,"description":"Words that the passage has."}},"required":["query"],"additionalProperties":false}`),
	}
}

// keptPassage is an excerpt with the number of words of the query that it has.
type keptPassage struct {
	source *protocol.ResearchKeptSource
	of     *protocol.ResearchExcerpt
	score  int
}

// Run implements toolbox.Tool.
func (r ReadResearch) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.Query) == "" {
		return toolbox.Result{}, &toolbox.Failure{Code: protocol.ToolCallInvalid, Detail: "A query is needed."}
	}
	kept, err := r.Sources.Kept(ctx, call.AccountID, call.ConversationID, maxKept)
	if err != nil {
		return toolbox.Result{}, err
	}
	found := ranked(kept, in.Query)
	if len(found) == 0 {
		return toolbox.Result{Output: "No source that research in this conversation has kept matches.", Empty: true}, nil
	}
	result := toolbox.Result{Framed: true}
	numbers := map[string]int{} // of the sources, by their hash and title
	for _, p := range found {
		key := p.source.SHA256 + p.source.Title
		number, cited := numbers[key]
		if !cited && p.source.ConversationID == nil { // a message of a conversation is no source that can be cited
			number = call.FirstSource + len(result.Sources)
			numbers[key] = number
			result.Sources = append(result.Sources, citable(p.source, number))
		}
		result.Output += foreign.Frame(foreign.WebPage, passageAttributes(&p, number), p.of.Text) + "\n\n"
	}
	result.Output = strings.TrimSpace(result.Output)
	return result, nil
}

func citable(kept *protocol.ResearchKeptSource, number int) protocol.Source {
	source := protocol.Source{Number: number, Title: kept.Title}
	if kept.URL != nil {
		source.URL = protocol.WebAddress(*kept.URL)
	}
	if kept.FileID != nil {
		source.FileID = *kept.FileID
	}
	for i := range kept.Excerpts {
		source.Size += len(kept.Excerpts[i].Text)
	}
	return source
}

func passageAttributes(p *keptPassage, number int) string {
	var attributes string
	if number > 0 {
		attributes = foreign.Attribute("number", strconv.Itoa(number))
	}
	attributes += foreign.Attribute("title", p.source.Title)
	if p.source.URL != nil {
		attributes += foreign.Attribute("url", *p.source.URL)
	}
	return attributes + foreign.Attribute("read", p.source.AccessedAt.UTC().Format(time.DateOnly)) + foreign.Attribute("at", p.of.Locator)
}

// ranked returns the passages that have words of a query, those with most of them first, otherwise in their order.
func ranked(kept []protocol.ResearchKeptSource, query string) (found []keptPassage) {
	wanted := wordSet(query)
	for i := range kept {
		inTitle := wordSet(kept[i].Title)
		for k := range kept[i].Excerpts {
			has := wordSet(kept[i].Excerpts[k].Text)
			p := keptPassage{source: &kept[i], of: &kept[i].Excerpts[k]}
			for word := range wanted {
				if has[word] {
					p.score += 2
				} else if inTitle[word] {
					p.score++
				}
			}
			if p.score > 0 {
				found = append(found, p)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b keptPassage) int { return cmp.Compare(b.score, a.score) })
	return found[:min(len(found), maxPassages)]
}

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, token := range words.Tokenize(text) {
		set[token.Text] = true
	}
	return set
}
