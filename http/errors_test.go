package http

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// malformed is a request with one thing wrong.
type malformed struct {
	what    string
	query   string
	headers []string
	body    any
}

// TestEvery400And422NamesTheWrongFields walks every route with malformed input: bodies, fields, queries and headers,
// refused by huma, by the guard or by a handler. Every 400 and 422 is a problem document with errors.
func TestEvery400And422NamesTheWrongFields(t *testing.T) {
	m := newMatrix(t)
	seen := map[string]map[int]bool{}
	for _, r := range m.routes {
		seen[r.name()] = map[int]bool{}
		e := examples[r.name()]
		caller, of := m.callerOf(e), m.mine
		if e.of != nil {
			of = e.of(m)
		}
		var right object
		if e.body != nil {
			right = e.body(m, of)
		}
		for _, try := range malformedRequests(operationAt(m.api.OpenAPI(), r.method, r.path), right) {
			answer := caller.do(r.method, fill(r.path, of)+try.query, try.body, try.headers...)
			if (answer.status == 401 || answer.status == 403) && e.as != nil { // a request that was not refused changed the session
				caller = m.callerOf(e)
				answer = caller.do(r.method, fill(r.path, of)+try.query, try.body, try.headers...)
			}
			if answer.status >= 500 {
				t.Errorf("%s, %s: %d %s", r.name(), try.what, answer.status, answer.body)
			}
			if answer.status != 400 && answer.status != 422 {
				continue
			}
			seen[r.name()][answer.status] = true
			named := len(answer.Errors) > 0
			for _, wrong := range answer.Errors {
				named = named && wrong.Field != "" && wrong.Message != ""
			}
			if !named || answer.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %s: %d %s", r.name(), try.what, answer.status, answer.body)
			}
		}
	}
	for _, r := range m.routes {
		op := operationAt(m.api.OpenAPI(), r.method, r.path)
		if op.RequestBody != nil && (!seen[r.name()][400] || !seen[r.name()][422]) {
			t.Errorf("%s: statuses %v, want a 400 and a 422", r.name(), seen[r.name()])
		}
		if slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Schema.Enum != nil }) && !seen[r.name()][422] {
			t.Errorf("%s: no 422 for a wrong query", r.name())
		}
	}
}

func (m *matrix) callerOf(e example) *client {
	if e.as != nil {
		return e.as(m)
	}
	return m.owner
}

// malformedRequests makes requests of a right one, each with one thing wrong.
func malformedRequests(op *huma.Operation, right object) []malformed {
	list := []malformed{
		{what: "NUL in the query", query: "?x=%00"},
		{what: "a query that is not UTF-8", query: "?x=%ff"},
		{what: "a query that cannot be decoded", query: "?x=%zz"},
	}
	for i := range list {
		list[i].body = asBody(right)
	}
	for _, param := range op.Parameters {
		for _, value := range []string{"nonsense ", "-1", "\x00", "\xff"} {
			switch param.In {
			case "query":
				list = append(list, malformed{what: "query " + param.Name, query: "?" + param.Name + "=" + url.QueryEscape(value), body: asBody(right)})
			case "header":
				if param.Name == keyHeader && value == "-1" { // a good key, for another body
					again := maps.Clone(right)
					again["unknown"] = 1
					list = append(list, malformed{what: "a key", headers: []string{keyHeader, value}, body: asBody(right)},
						malformed{what: "a key again", headers: []string{keyHeader, value}, body: again})
				} else if param.Name != csrfHeader {
					list = append(list, malformed{what: "header " + param.Name, headers: []string{param.Name, value}, body: asBody(right)})
				}
			}
		}
	}
	if op.RequestBody == nil {
		return list
	}
	for _, text := range []string{"", "{", "null", "[]", `"text"`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{} {}`} {
		list = append(list, malformed{what: "body " + text, body: rawBody(text)})
	}
	for name := range right {
		for _, value := range []string{"null", "true", "-1", "1e400", `""`, `"\u0000"`, `"nonsense"`, "[null]", `{"x":{}}`} {
			changed := map[string]json.RawMessage{}
			for other, kept := range right {
				changed[other], _ = json.Marshal(kept)
			}
			changed[name] = json.RawMessage(value)
			list = append(list, malformed{what: "body." + name + " " + value, body: changed})
		}
	}
	return list
}

// asBody keeps an absent body absent.
func asBody(right object) any {
	if right == nil {
		return nil
	}
	return right
}
