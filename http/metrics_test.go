package http

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"turnstone/http/route"
)

// TestMetricsOfRequestsHaveOnlyLabelsFromTheCode sends what a client could try to create series with.
func TestMetricsOfRequestsHaveOnlyLabelsFromTheCode(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	w := newWorld(t, func(c *testConfig) {
		c.Metrics = registry
		liveOn(t, c)
	})
	const canary = "canary9c2d"
	c := w.client().register("a@example.com")
	c.expect(200, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": canary}}})
	c.do("GET", "/conversations/"+canary, nil)
	c.do(canary, "/"+canary+"?"+canary, nil, canary, canary)
	c.do("POST", "/conversations", rawBody(canary))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if text := family.String(); strings.Contains(text, canary) || strings.Contains(text, c.account.AccountID.String()) {
			t.Errorf("a metric contains %s", text)
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP turnstone_http_problems_total Responses with an error, by its code and status.
		# TYPE turnstone_http_problems_total counter
		turnstone_http_problems_total{code="invalid_body",status="400"} 1
		turnstone_http_problems_total{code="method_not_allowed",status="405"} 1
		turnstone_http_problems_total{code="not_found",status="404"} 1
	`), "turnstone_http_problems_total"); err != nil {
		t.Error(err)
	}
	// The request of a stream is counted when it begins, its duration when it has ended.
	if n := testutil.CollectAndCount(registry, "turnstone_http_stream_seconds"); n != 1 {
		t.Errorf("%d routes have streams, want 1", n)
	}
	if open := w.AllStreams(); open != 0 {
		t.Errorf("%d streams are open", open)
	}
}
