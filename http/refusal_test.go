package http

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence/audit"
	"turnstone/persistence/limits"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// forgedToken returns a well-formed session token that the service did not issue.
func forgedToken(n byte) string { return tokenPrefix + encode(bytes.Repeat([]byte{n}, tokenBytes)) }

func TestARefusalWritesNoRowOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	rows := func() int { return len(query[int64](w, `select n from audit`)) }
	before := rows()
	const tries = 20
	for range tries {
		c.expect(403, "DELETE", "/auth/sessions", nil, auth.CSRFHeader, "")
		c.expect(403, "DELETE", "/auth/sessions", nil, "Origin", "https://evil.example")
		w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "wrong wrong"})
		w.client().expect(401, "POST", "/auth/login", route.Object{"email": "nobody@example.com", "password": "wrong wrong"})
	}
	if n := rows(); n != before {
		t.Errorf("%d refusals wrote %d rows", 4*tries, n-before)
	}
	w.auth.WriteTallies(t.Context())
	for _, one := range []struct {
		account protocol.AccountID
		event   audit.SecurityEvent
		address string
	}{
		{c.account.AccountID, audit.EventCSRFRefused, "192.0.2.1"},
		{c.account.AccountID, audit.EventOriginRefused, "192.0.2.1"},
		{c.account.AccountID, audit.EventSignInFailed, "192.0.2.1"},
		{pg.NoAccount, audit.EventSignInFailed, ""},
	} {
		counts := query[int](w, `select (detail->>'count')::int from audit where account_id = $1 and event = $2 and address = $3`,
			one.account, string(one.event), one.address)
		if !slices.Equal(counts, []int{tries}) {
			t.Errorf("the counts of %s are %v", one.event, counts)
		}
	}
}

func TestARefusedRequestLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	used := func() time.Time { return query[time.Time](w, `select max(last_used_at) from sessions`)[0] }
	before, token := used(), c.token()
	w.clock.advance(sessionRotation)
	c.expect(403, "POST", "/auth/logout", nil, auth.CSRFHeader, "")
	c.expect(403, "DELETE", "/auth/sessions", nil) // needs a recent sign-in
	if !used().Equal(before) || c.token() != token {
		t.Error("a refused request changed its session")
	}
	if c.session(); c.token() == token {
		t.Error("an admitted request did not replace the token")
	}
}

// refusalsWorld returns a world with a real limit of refusals. No other limit refuses a request.
func refusalsWorld(t *testing.T, burst int) *world {
	t.Helper()
	w := newWorld(t)
	limiter, err := limits.NewLimiter(limits.LimiterConfig{
		URL: "unix:///nowhere", Local: map[string]limits.Limit{string(route.BucketRefusals): {Rate: 1, Period: time.Hour, Burst: burst}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	w.limiter.real, w.limiter.buckets = limiter, []string{string(route.BucketRefusals)}
	return w
}

func TestRefusalsDrawFromTheBucketOfTheirAddress(t *testing.T) {
	t.Parallel()
	const burst = 4
	w := refusalsWorld(t, burst)
	ada := w.client().register("ada@example.com")
	ask := func(c *client, method, path string, headers ...string) *reply {
		return c.do(method, path, nil, headers...)
	}
	for n := range burst { // each kind of refusal draws one token
		switch n {
		case 0:
			ask(w.client(), "GET", "/auth/session")
		case 1:
			c := w.client()
			c.cookies[c.cookieName()] = forgedToken(1)
			ask(c, "GET", "/conversations")
		case 2:
			ask(ada, "POST", "/auth/logout", auth.CSRFHeader, "")
		default:
			ask(w.client(), "GET", "/no/such/path")
		}
	}
	for name, resp := range map[string]*reply{
		"no session":    ask(w.client(), "GET", "/auth/session"),
		"unknown path":  ask(w.client(), "GET", "/no/such/path"),
		"no CSRF token": ask(ada, "POST", "/auth/logout", auth.CSRFHeader, ""),
		"a login":       w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "wrong wrong"}),
	} {
		retry, _ := strconv.Atoi(resp.header.Get("Retry-After"))
		if resp.status != 429 || resp.Code != protocol.CodeRateLimited || retry < 1 || resp.header.Get("RateLimit-Policy") != `"refusals";q=1;w=3600` {
			t.Errorf("%s: %d %s %v", name, resp.status, resp.body, resp.header)
		}
	}
	for range 2 * burst { // a signed-in client behind the same address is not limited
		ada.session()
		ada.expect(204, "DELETE", "/auth/sessions", nil)
	}
	w.client().login("ada@example.com")
	elsewhere := w.client()
	if resp := elsewhere.at("198.51.100.7").do("GET", "/auth/session", nil); resp.status != 401 {
		t.Errorf("another address: %d", resp.status)
	}
}

func TestAStolenTokenEndsItsSessionEvenOverTheLimitOfRefusals(t *testing.T) {
	t.Parallel()
	w := refusalsWorld(t, 1)
	c := w.client().register("ada@example.com")
	thief := c.twin()
	w.clock.advance(sessionRotation)
	c.session()
	c.session()
	w.clock.advance(sessionOverlap + time.Millisecond)
	w.client().expect(401, "GET", "/auth/session", nil)
	thief.expect(429, "GET", "/auth/session", nil)
	c.at("198.51.100.7").expect(401, "GET", "/auth/session", nil)
	if !contains(w.events(c.account.AccountID), audit.EventSessionReused) {
		t.Error("the audit does not contain the reuse")
	}
}
