package http

import (
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/protocol"
)

// TestEveryListHasTheShapeOfTheContract checks that every response to a GET that has data in an array is a page: with
// next_cursor and has_more, and with the parameters that request the next one.
func TestEveryListHasTheShapeOfTheContract(t *testing.T) {
	t.Parallel()
	unpaged := map[string]string{"GET /files/picker": "q narrows the list instead"}
	whole := map[string]string{"GET /profiles": "it always has three items", "GET /tools": "it always has all tools", "GET /memory-sources": "it always has five items"}
	s, lists := &requestSchemas{Server: documentServer(t), t: t}, 0
	for _, r := range s.Routes() {
		op := route.OperationAt(s.OpenAPI(), r.Method, r.Path)
		success := op.Responses["200"]
		if r.Method != "GET" || success == nil || success.Content["application/json"] == nil {
			continue
		}
		schema := s.resolve(success.Content["application/json"].Schema)
		if data := schema.Properties["data"]; data == nil || s.resolve(data).Type != huma.TypeArray {
			continue
		}
		lists++
		if schema.Properties["next_cursor"] == nil || schema.Properties["has_more"] == nil {
			t.Errorf("%s has data, but no next_cursor or has_more", nameOf(r))
		}
		if whole[nameOf(r)] != "" {
			continue
		}
		for _, name := range []string{"cursor", "limit"} {
			given := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name })
			if !given && (name == "limit" || unpaged[nameOf(r)] == "") {
				t.Errorf("%s has no parameter %s", nameOf(r), name)
			}
		}
	}
	if lists < 15 {
		t.Errorf("only %d lists were found", lists)
	}
}

func TestPasskeysAreListedInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	for _, name := range []string{"a", "b", "c"} {
		w.storePasskey(ada, name)
	}
	var names []string
	for path := "/account/passkeys?limit=2"; path != ""; {
		var list protocol.List[protocol.Passkey]
		ada.expect(200, "GET", path, nil).into(t, &list)
		for _, passkey := range list.Data {
			names = append(names, passkey.Name)
		}
		path = ""
		if list.HasMore {
			path = "/account/passkeys?limit=2&cursor=" + *list.NextCursor
			eve.expect(422, "GET", path, nil)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("the pages have %v", names)
	}
	ada.expect(422, "GET", "/account/passkeys?limit=0", nil)
}
