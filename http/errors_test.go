package http

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/auth"
	"turnstone/http/route"
)

// malformed is a request with one defect.
type malformed struct {
	what    string
	query   string
	headers []string
	body    any
}

// TestEvery400And422NamesTheWrongFields sends malformed input to every route: bodies, fields, queries and headers that
// huma, the guard or a handler refuses. Every 400 and 422 must be a problem document with errors.
func TestEvery400And422NamesTheWrongFields(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	seen := map[string]map[int]bool{}
	for _, r := range m.Routes() {
		seen[nameOf(r)] = map[int]bool{}
		e := examples[nameOf(r)]
		caller, of := m.callerOf(e), m.mine
		if e.identifiers != nil {
			of = e.identifiers(m)
		}
		var right route.Object
		if e.body != nil {
			right = e.body(m, of)
		}
		for _, try := range malformedRequests(route.OperationAt(m.OpenAPI(), r.Method, r.Path), right) {
			if e.raw != "" {
				try.headers = append([]string{"Content-Type", e.mediaType()}, try.headers...)
			}
			resp := caller.do(r.Method, fill(r.Path, of)+try.query, try.body, try.headers...)
			// An earlier request that succeeded may have changed the session.
			if (resp.status == 401 || resp.status == 403) && e.client != nil {
				caller = m.callerOf(e)
				resp = caller.do(r.Method, fill(r.Path, of)+try.query, try.body, try.headers...)
			}
			if resp.status >= 500 {
				t.Errorf("%s, %s: %d %s", nameOf(r), try.what, resp.status, resp.body)
			}
			if resp.status != 400 && resp.status != 422 {
				continue
			}
			seen[nameOf(r)][resp.status] = true
			named := len(resp.Errors) > 0
			for _, wrong := range resp.Errors {
				named = named && wrong.Field != "" && wrong.Message != ""
			}
			if !named || resp.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %s: %d %s", nameOf(r), try.what, resp.status, resp.body)
			}
		}
	}
	for _, r := range m.Routes() {
		op := route.OperationAt(m.OpenAPI(), r.Method, r.Path)
		if op.RequestBody != nil && (!seen[nameOf(r)][400] || !seen[nameOf(r)][422]) {
			t.Errorf("%s: statuses %v, want a 400 and a 422", nameOf(r), seen[nameOf(r)])
		}
		if slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Schema.Enum != nil }) && !seen[nameOf(r)][422] {
			t.Errorf("%s: no 422 for a wrong query", nameOf(r))
		}
	}
}

func (m *matrix) callerOf(e example) *client {
	if e.client != nil {
		return e.client(m)
	}
	return m.owner
}

// malformedRequests returns requests that differ from a valid one by one defect each.
func malformedRequests(op *huma.Operation, right route.Object) []malformed {
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
				if param.Name == keyField && value == "-1" { // a valid key, used again with another body
					again := maps.Clone(right)
					again["unknown"] = 1
					list = append(list, malformed{what: "a key", headers: []string{keyField, value}, body: asBody(right)},
						malformed{what: "a key again", headers: []string{keyField, value}, body: again})
				} else if param.Name != auth.CSRFHeader {
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
			for other, unchanged := range right {
				changed[other], _ = json.Marshal(unchanged)
			}
			changed[name] = json.RawMessage(value)
			list = append(list, malformed{what: "body." + name + " " + value, body: changed})
		}
	}
	return list
}

// asBody returns nil, not a nil map, for an absent body.
func asBody(right route.Object) any {
	if right == nil {
		return nil
	}
	return right
}
