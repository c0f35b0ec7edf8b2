package http

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// forgedToken is a token of the right form that the service never made.
func forgedToken(n byte) string { return tokenPrefix + encode(bytes.Repeat([]byte{n}, tokenBytes)) }

func TestARefusalWritesNoRowOfItsOwn(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	rows := func() int { return len(query[int64](w, `select n from audit`)) }
	before := rows()
	const tries = 20
	for range tries {
		c.expect(403, "DELETE", "/auth/sessions", nil, csrfHeader, "")
		c.expect(403, "DELETE", "/auth/sessions", nil, "Origin", "https://evil.example")
		w.client().expect(401, "POST", "/auth/login", object{"email": "ada@example.com", "password": "wrong wrong"})
		w.client().expect(401, "POST", "/auth/login", object{"email": "nobody@example.com", "password": "wrong wrong"})
	}
	if n := rows(); n != before {
		t.Errorf("%d refusals wrote %d rows", 4*tries, n-before)
	}
	w.writeTallies(t.Context())
	for _, one := range []struct {
		account protocol.AccountID
		event   persistence.SecurityEvent
		address string
	}{
		{c.account.AccountID, persistence.EventCSRFRefused, "192.0.2.1"},
		{c.account.AccountID, persistence.EventOriginRefused, "192.0.2.1"},
		{c.account.AccountID, persistence.EventSignInFailed, "192.0.2.1"},
		{persistence.Nobody, persistence.EventSignInFailed, ""},
	} {
		counts := query[int](w, `select (detail->>'count')::int from audit where account_id = $1 and event = $2 and address = $3`,
			one.account, string(one.event), one.address)
		if !slices.Equal(counts, []int{tries}) {
			t.Errorf("%s is counted %v", one.event, counts)
		}
	}
}

func TestARefusedRequestLeavesTheSessionAsItWas(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	used := func() time.Time { return query[time.Time](w, `select max(last_used_at) from sessions`)[0] }
	before, token := used(), c.token()
	w.clock.advance(sessionRotation)
	c.expect(403, "POST", "/auth/logout", nil, csrfHeader, "")
	c.expect(403, "DELETE", "/auth/sessions", nil) // needs a recent sign-in
	if !used().Equal(before) || c.token() != token {
		t.Error("a refused request has written to its session")
	}
	if c.session(); c.token() == token {
		t.Error("an admitted one has not replaced the token")
	}
}

// refusalsWorld has a bucket of refusals for real, and passes all else.
func refusalsWorld(t *testing.T, burst int) *world {
	t.Helper()
	w := newWorld(t)
	limiter, err := persistence.NewLimiter(persistence.LimiterConfig{
		URL: "unix:///nowhere", Local: map[string]persistence.Limit{string(bucketRefusals): {Rate: 1, Period: time.Hour, Burst: burst}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	w.limiter.real, w.limiter.buckets = limiter, []string{string(bucketRefusals)}
	return w
}

func TestRefusalsDrawFromTheBucketOfTheirAddress(t *testing.T) {
	const burst = 4
	w := refusalsWorld(t, burst)
	ada := w.client().register("ada@example.com")
	ask := func(c *client, method, path string, headers ...string) *reply {
		return c.do(method, path, nil, headers...)
	}
	for n := range burst { // each kind of refusal draws one
		switch n {
		case 0:
			ask(w.client(), "GET", "/auth/session")
		case 1:
			c := w.client()
			c.cookies[c.cookieName()] = forgedToken(1)
			ask(c, "GET", "/conversations")
		case 2:
			ask(ada, "POST", "/auth/logout", csrfHeader, "")
		default:
			ask(w.client(), "GET", "/no/such/path")
		}
	}
	for name, answer := range map[string]*reply{
		"no session":    ask(w.client(), "GET", "/auth/session"),
		"an odd path":   ask(w.client(), "GET", "/no/such/path"),
		"no CSRF token": ask(ada, "POST", "/auth/logout", csrfHeader, ""),
		"a login":       w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": "wrong wrong"}),
	} {
		retry, _ := strconv.Atoi(answer.header.Get("Retry-After"))
		if answer.status != 429 || answer.Code != protocol.CodeRateLimited || retry < 1 || answer.header.Get("RateLimit-Policy") != `"refusals";q=1;w=3600` {
			t.Errorf("%s: %d %s %v", name, answer.status, answer.body, answer.header)
		}
	}
	for range 2 * burst { // who is signed in behind the same address goes on
		ada.session()
		ada.expect(204, "DELETE", "/auth/sessions", nil)
	}
	w.client().login("ada@example.com")
	elsewhere := w.client()
	if answer := elsewhere.at("198.51.100.7").do("GET", "/auth/session", nil); answer.status != 401 {
		t.Errorf("another address: %d", answer.status)
	}
}

func TestAStolenTokenEndsItsSessionEvenOverTheLimitOfRefusals(t *testing.T) {
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
	if !contains(w.events(c.account.AccountID), persistence.EventSessionReused) {
		t.Error("the reuse is not in the audit")
	}
}
