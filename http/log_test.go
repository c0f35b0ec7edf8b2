package http

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/http/route"
)

func TestLogsHoldNothingOfAccounts(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	w := newWorld(t, func(c *testConfig) {
		c.Log = zap.New(core)
		liveOn(t, c)
	})
	const canary = "canary7f3a"
	c := w.client().register(canary + "@example.com")
	c.expect(200, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": canary}}})
	c.expect(201, "POST", "/conversations", route.Object{"title": canary}, keyField, canary)
	c.do("GET", "/conversations/"+canary+"?cursor="+canary, nil, "X-Forwarded-For", canary, "User-Agent", canary)
	c.do("POST", "/conversations", route.Object{"title": canary + "\x00"})
	w.client().do("POST", "/auth/login", route.Object{"email": canary + "@example.com", "password": canary})
	c.do(canary, "/"+canary, nil)
	requests := 0
	for _, entry := range logs.All() {
		line := entry.Message + fmt.Sprint(entry.ContextMap())
		if strings.Contains(line, canary) || strings.Contains(line, tokenPrefix) || strings.Contains(line, c.account.AccountID.String()) {
			t.Errorf("the log contains %s", line)
		}
		if entry.Message == "request" {
			requests++
			for _, field := range []string{"request_id", "method", "route", "status", "ms"} {
				if entry.ContextMap()[field] == nil {
					t.Errorf("the log line of a request lacks %s: %s", field, line)
				}
			}
		}
	}
	if requests != 7 {
		t.Errorf("the log has lines of %d requests, want 7", requests)
	}
}
