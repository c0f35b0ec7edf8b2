package http

import (
	"bytes"
	"testing"

	"turnstone/protocol"
)

// TestAReplayHasTheHeadersOfTheFirstResponse repeats the example of every creating route with its key. The repeat has
// the same status, body, Location and ETag, and so has the Location that the document promises.
func TestAReplayHasTheHeadersOfTheFirstResponse(t *testing.T) {
	t.Parallel()
	m, replayed := newMatrix(t), 0
	for _, r := range m.Routes() {
		if !r.Policy.Idempotent {
			continue
		}
		replayed++
		c, of, e := m.owner, m.mine, examples[nameOf(r)]
		if e.client != nil {
			c = e.client(m)
		}
		if e.identifiers != nil {
			of = e.identifiers(m)
		}
		content, key := e.body(m, of), protocol.NewTurnID().String()
		first, again := m.send(c, r, of, content, keyField, key), m.send(c, r, of, content, keyField, key)
		if first.status >= 300 || first.status != again.status || !bytes.Equal(first.body, again.body) || again.header.Get(replayedField) != "true" {
			t.Errorf("%s: first %d %s, then %d %s", nameOf(r), first.status, first.body, again.status, again.body)
		}
		for _, name := range []string{"Content-Type", "Location", "ETag"} {
			if first.header.Get(name) != again.header.Get(name) {
				t.Errorf("%s: %s is first %q, then %q", nameOf(r), name, first.header.Get(name), again.header.Get(name))
			}
		}
		if first.status == 201 && first.header.Get("Location") == "" {
			t.Errorf("%s: no Location", nameOf(r))
		}
	}
	if replayed < 6 {
		t.Errorf("only %d routes were repeated", replayed)
	}
}
