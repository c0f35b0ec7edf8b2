package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

//go:embed search_conversations.md
var searchConversationsDescription string

// Past searches the other conversations of an account. Package persistence/search implements it.
type Past interface {
	// FindPast returns a page of results. The error is a *turnlog.Refusal if the conversation may not read others.
	FindPast(ctx context.Context, query *turnlog.PastQuery) (*turnlog.PastPage, error)
}

// SearchConversations finds other conversations of the account.
type SearchConversations struct{ Past Past }

const maxPast = 10 // results of one call

// Spec implements toolbox.Tool.
func (SearchConversations) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "search_conversations", Kind: "account_search", Title: "Search your conversations", Description: searchConversationsDescription,
		Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true, Private: true, Untrusted: true, Consent: protocol.SourceConversations,
		Timeout: 30 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","minLength":1,"maxLength":160,"description":"Words that the title or the message has."},` +
			`"from":{"type":"string","maxLength":10,"description":"The first day, as 2026-01-31."},` +
			`"to":{"type":"string","maxLength":10,"description":"The last day, as 2026-01-31."},` +
			`"cursor":{"type":"string","maxLength":500,"description":"next_cursor of the page before."}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (s SearchConversations) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	query, failure := pastQuery(call)
	if failure != nil {
		return toolbox.Result{}, failure
	}
	page, err := s.Past.FindPast(ctx, query)
	if err != nil {
		return toolbox.Result{}, refused(err)
	}
	var out strings.Builder
	for i := range page.Found {
		f := &page.Found[i]
		out.WriteString(foreign.Frame(foreign.Result, foreign.Attribute("conversation_id", f.ConversationID.String())+foreign.Attribute("title", f.Title)+
			foreign.Attribute("date", f.At.UTC().Format(time.DateOnly)), f.Snippet.Text) + "\n\n")
	}
	empty := len(page.Found) == 0
	switch {
	case page.Next != "":
		out.WriteString("[There may be more. next_cursor: " + page.Next + "]")
	case empty:
		out.WriteString("No other conversation matches.")
	}
	return toolbox.Result{Output: strings.TrimSpace(out.String()), Framed: true, Empty: empty && page.Next == ""}, nil
}

// pastQuery returns the query of a call.
func pastQuery(call *toolbox.Call) (*turnlog.PastQuery, *toolbox.Failure) {
	var in struct{ Query, From, To, Cursor string }
	err := json.Unmarshal(call.Input, &in)
	q := &turnlog.PastQuery{Scope: call.Scope, Text: strings.TrimSpace(in.Query), After: in.Cursor, Limit: maxPast}
	if err != nil || q.Text == "" || utf8.RuneCountInString(q.Text) > protocol.MaxQueryRunes {
		return nil, &toolbox.Failure{Code: turnlog.RefusedInput, Detail: "A query of 1 to 160 characters is needed."}
	}
	for text, at := range map[*string]*time.Time{&in.From: &q.From, &in.To: &q.To} {
		if *text == "" {
			continue
		}
		if *at, err = time.Parse(time.DateOnly, *text); err != nil {
			return nil, &toolbox.Failure{Code: turnlog.RefusedInput, Detail: "A day has the form 2026-01-31."}
		}
	}
	if !q.To.IsZero() {
		q.To = q.To.AddDate(0, 0, 1) // the last day is included
	}
	return q, nil
}
