package http

import (
	"slices"
	"strings"
	"testing"

	"turnstone/http/route"
)

// methodsByPath returns the methods of each path of the table of routes, as an Allow header lists them.
func methodsByPath(routes []route.Route) map[string][]string {
	methods := map[string][]string{}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		for _, r := range routes {
			if r.Method == method || method == "HEAD" && r.Method == "GET" {
				methods[r.Path] = append(methods[r.Path], method)
			}
		}
	}
	return methods
}

// TestAPathWithAFixedSegmentIsNoCaseOfAParameter sends, to every path whose fixed segment a parameter of another path
// matches too, the methods that only the other path has.
func TestAPathWithAFixedSegmentIsNoCaseOfAParameter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	conversation := c.expect(201, "POST", "/conversations", route.Object{})
	methods := methodsByPath(w.Server.Routes())
	sent := 0
	for path, has := range methods {
		if !slices.ContainsFunc(w.Server.Routes(), func(other route.Route) bool { return overlaps(path, other.Path) }) {
			continue
		}
		target := strings.ReplaceAll(path, "{conversation_id}", strings.TrimPrefix(conversation.header.Get("Location"), "/conversations/"))
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if slices.Contains(has, method) {
				continue
			}
			sent++
			resp := c.do(method, target, route.Object{})
			if allow := strings.Join(has, ", "); resp.status != 405 || resp.header.Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q, want 405 and %q", method, target, resp.status, resp.header.Get("Allow"), allow)
			}
		}
	}
	if sent < 5 {
		t.Errorf("only %d requests", sent)
	}
}

// overlaps reports whether a parameter of other matches a fixed segment of path, and the rest is the same.
func overlaps(path, other string) bool {
	return path != other && slices.EqualFunc(strings.Split(path, "/"), strings.Split(other, "/"), func(a, b string) bool {
		return a == b || strings.HasPrefix(b, "{")
	})
}
