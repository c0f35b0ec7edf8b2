package http

import (
	"encoding/json"
	"testing"

	"turnstone/http/route"
)

// TestAPostWithAnOptionalBodyAcceptsNone sends each POST whose members are all optional without a body and without a
// Content-Type. The response is that to an empty object.
func TestAPostWithAnOptionalBodyAcceptsNone(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	s, sent := &requestSchemas{Server: m.Server, t: t}, 0
	for _, r := range m.Routes() {
		body := s.bodyOf(r)
		if r.Method != "POST" || body == nil {
			continue
		}
		op := route.OperationAt(m.OpenAPI(), r.Method, r.Path)
		if optional := len(s.resolve(body).Required) == 0; op.RequestBody.Required == optional {
			t.Errorf("%s: the document says required: %v", nameOf(r), op.RequestBody.Required)
		}
		if op.RequestBody.Required {
			continue
		}
		sent++
		of := m.mine
		if e := examples[nameOf(r)]; e.identifiers != nil {
			of = e.identifiers(m)
		}
		empty, none := m.send(m.owner, r, of, rawBody("{}")), m.send(m.owner, r, of, nil)
		var fields, wanted map[string]any
		if err := json.Unmarshal(none.body, &fields); err != nil {
			t.Fatalf("%s: %s", nameOf(r), none.body)
		}
		_ = json.Unmarshal(empty.body, &wanted) // the first request shows that it is an object
		if none.status != empty.status || none.Code != empty.Code || len(fields) != len(wanted) {
			t.Errorf("%s: without a body %d %s, with an empty object %d %s", nameOf(r), none.status, none.body, empty.status, empty.body)
		}
	}
	if sent < 4 {
		t.Errorf("only %d routes have an optional body", sent)
	}
	m.owner.expect(415, "POST", "/conversations", rawBody("{}"), "Content-Type", "")
}
