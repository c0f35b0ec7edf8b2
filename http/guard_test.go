package http

import (
	"bufio"
	"context"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
)

// blockingHandler is the handler of a route. It can wait for the test, so that two requests are in flight at the same
// time.
type blockingHandler struct {
	began   chan struct{} // closed by the first call, which then waits for proceed; nil: no call waits
	proceed chan struct{}
	fail    bool // calls return a conflict
	ran     int  // the number of calls
}

func (s *blockingHandler) handle(ctx context.Context, in *echoInput) (*resource.Created[echoOutput], error) {
	s.ran++
	if s.began != nil {
		close(s.began)
		s.began = nil
		<-s.proceed
	}
	if s.fail {
		return nil, protocol.Conflict(protocol.CodeConflict, map[string]int{"version": 1}, "This never succeeds.")
	}
	return &resource.Created[echoOutput]{Location: "/things/" + in.Body.Title, Body: echoOutput{Title: in.Body.Title}}, nil
}

// thingsWorld returns a world with the additional route POST /things, and the handler of that route.
func thingsWorld(t *testing.T) (*world, *blockingHandler) {
	t.Helper()
	w, handler := newWorld(t), &blockingHandler{}
	server, err := newServer(w.Config, func(s *Server) route.Table {
		return s.table().With(route.Call("POST", "/things", "createThing", "", route.Creates, handler.handle).WithStatus(201))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	return w, handler
}

func TestAnIdempotentRequestWorksOnce(t *testing.T) {
	t.Parallel()
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	ask := func(title, key string) *reply {
		return c.do("POST", "/things", route.Object{"title": title}, keyField, key)
	}
	first := ask("one", "k1")
	w.limiter.Refuse()
	again := ask("one", "k1")
	if first.status != 201 || again.status != 201 || string(first.body) != string(again.body) || handler.ran != 1 {
		t.Fatalf("%d %s, then %d %s; the handler ran %d times", first.status, first.body, again.status, again.body, handler.ran)
	}
	if again.header.Get(replayedField) != "true" || again.header.Get("Location") != "/things/one" || first.header.Get(replayedField) != "" {
		t.Errorf("headers %v", again.header)
	}
	w.limiter.Allow()
	if other := ask("two", "k1"); other.status != 422 || other.Code != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %d %s", other.status, other.body)
	}
	for _, key := range []string{"with space", strings.Repeat("x", 129), "\u00e4"} {
		if resp := ask("one", key); resp.status != 422 {
			t.Errorf("key %q: %d", key, resp.status)
		}
	}
	stranger := w.client().register("eve@example.com")
	if resp := stranger.do("POST", "/things", route.Object{"title": "one"}, keyField, "k1"); resp.status != 201 || resp.header.Get(replayedField) != "" {
		t.Errorf("the same key of another account: %d %v", resp.status, resp.header)
	}
}

func TestAKeyIsFreeAfterAnError(t *testing.T) {
	t.Parallel()
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	handler.fail = true
	c.expect(409, "POST", "/things", route.Object{"title": "one"}, keyField, "k1")
	handler.fail = false
	c.expect(422, "POST", "/things", route.Object{"title": "too long"}, keyField, "k1")
	c.expect(201, "POST", "/things", route.Object{"title": "one"}, keyField, "k1")
	if handler.ran != 2 {
		t.Errorf("the handler ran %d times", handler.ran)
	}
}

func TestConcurrentRequestsWithOneKeyRunTheHandlerOnce(t *testing.T) {
	t.Parallel()
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	handler.began, handler.proceed = make(chan struct{}), make(chan struct{})
	began := handler.began
	var both sync.WaitGroup
	replies := make([]*reply, 2)
	for i := range replies {
		twin := c.twin()
		both.Go(func() { replies[i] = twin.do("POST", "/things", route.Object{"title": "one"}, keyField, "k1") })
	}
	<-began
	close(handler.proceed)
	both.Wait()
	replayed := 0
	for _, resp := range replies {
		if resp.status != 201 {
			t.Errorf("%d %s", resp.status, resp.body)
		}
		if resp.header.Get(replayedField) == "true" {
			replayed++
		}
	}
	if handler.ran != 1 || replayed != 1 {
		t.Errorf("the handler ran %d times, %d responses were replayed", handler.ran, replayed)
	}
}

func TestApprovedOriginsMayCallAndNoOthers(t *testing.T) {
	t.Parallel()
	const app = "https://app.turnstone.example"
	w := newWorld(t, func(c *testConfig) { c.AllowedOrigins = []string{app} })
	c := w.client().register("ada@example.com")
	preflight := func(origin string) *reply {
		return w.client().do("OPTIONS", "/account/settings", nil, "Origin", origin, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type,x-csrf-token")
	}
	header := preflight(app).header
	if header.Get("Access-Control-Allow-Origin") != app || header.Get("Access-Control-Allow-Credentials") != "true" || header.Get("Access-Control-Max-Age") != "600" ||
		!slices.Contains(header.Values("Vary"), "Origin, Access-Control-Request-Method, Access-Control-Request-Headers") {
		t.Errorf("headers of the preflight: %v", header)
	}
	if header := preflight("https://evil.example").header; header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers of the preflight of another origin: %v", header)
	}
	resp := c.expect(200, "GET", "/auth/session", nil, "Origin", app)
	if resp.header.Get("Access-Control-Allow-Origin") != app || !strings.Contains(resp.header.Get("Access-Control-Expose-Headers"), "X-Turn-Id") {
		t.Errorf("headers of the response: %v", resp.header)
	}
	c.expect(204, "DELETE", "/auth/sessions", nil, "Origin", app, "Sec-Fetch-Site", "same-site")
	c.expect(403, "DELETE", "/auth/sessions", nil, "Origin", "https://other.turnstone.example", "Sec-Fetch-Site", "same-site")
	for _, origin := range []string{"*", "null", "https://*.example", "https://a.example/", "a.example"} {
		config := w.Config
		config.AllowedOrigins = []string{origin}
		if _, err := New(config); err == nil {
			t.Errorf("New accepts %q as an origin", origin)
		}
	}
}

func TestFrequentSecurityEventsAreCountedInTheAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	for range 3 {
		c.expect(404, "DELETE", "/auth/sessions/"+protocol.NewSessionID().String(), nil)
		w.client().expect(403, "POST", "/auth/login", route.Object{"email": "a@example.com", "password": "x"}, "Origin", "https://evil.example")
	}
	w.auth.WriteTallies(t.Context())
	w.auth.WriteTallies(t.Context())
	for account, event := range map[protocol.AccountID]audit.SecurityEvent{c.account.AccountID: audit.EventNotFound, pg.NoAccount: audit.EventOriginRefused} {
		counts := query[int](w, `select (detail->>'count')::int from audit where account_id = $1 and event = $2`, account, string(event))
		if !slices.Equal(counts, []int{3}) {
			t.Errorf("%s: %v", event, counts)
		}
	}
	for _, account := range []protocol.AccountID{c.account.AccountID, pg.NoAccount} {
		if broken := pgtest.BrokenEntry(t, w.DB, account); broken != 0 {
			t.Errorf("the audit chain is broken at entry %d", broken)
		}
	}
}

// startEndlessTurn starts a turn that does not end by itself. The channel is closed when the service ends its stream.
func (c *client) startEndlessTurn() (ended <-chan struct{}) {
	c.t.Helper()
	server := httptest.NewServer(c.world)
	c.t.Cleanup(server.Close)
	body := `{"input":[{"type":"text","text":"[[script tokens=100000 interval=50ms]]"}]}`
	request, err := stdhttp.NewRequestWithContext(c.t.Context(), "POST", server.URL+"/chat", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(auth.CSRFHeader, c.csrf)
	request.AddCookie(&stdhttp.Cookie{Name: c.cookieName(), Value: c.token()})
	response, err := server.Client().Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || response.StatusCode != 200 {
		c.t.Fatalf("no stream: %d", response.StatusCode)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for lines.Scan() {
		}
	}()
	c.t.Cleanup(func() {
		_ = response.Body.Close()
		<-closed
	})
	return closed
}

// wantEnded fails the test if a stream does not end within five seconds.
func wantEnded(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(clocktest.HangGuard):
		t.Error("the stream goes on after five seconds")
	}
}

func TestALogoutEndsTheStreamOfAnotherTab(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	c := w.client().register("ada@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	defer run.Wait()
	defer cancel()
	run.Go(func() { w.Run(ctx) })
	ended := c.startEndlessTurn()
	c.expect(204, "POST", "/auth/logout", nil)
	wantEnded(t, ended)
}

// TestALogoutOnAnotherNodeEndsTheStreamWithoutANotification runs no listener for notifications: the recheck alone ends
// the stream.
func TestALogoutOnAnotherNodeEndsTheStreamWithoutANotification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	c := w.client().register("ada@example.com")
	ended := c.startEndlessTurn()
	w.recheck(t.Context())
	if len(w.sse.Sessions()) != 1 {
		t.Fatal("the stream of a live session was ended")
	}
	elsewhere := worldOn(t, w.database).client()
	elsewhere.clock.advance(w.clock.now().Sub(elsewhere.clock.now()))
	elsewhere.cookies, elsewhere.csrf = c.cookies, c.csrf
	elsewhere.expect(204, "POST", "/auth/logout", nil)
	w.recheck(t.Context())
	wantEnded(t, ended)
}
