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

	"turnstone/persistence"
	"turnstone/protocol"
)

// slow is a route whose handler waits for the test, so that two requests meet.
type slow struct {
	began   chan struct{}
	proceed chan struct{}
	fail    bool
	ran     int
}

func (s *slow) handle(ctx context.Context, in *echoInput) (*created[echoOutput], error) {
	s.ran++
	if s.began != nil {
		close(s.began)
		s.began = nil
		<-s.proceed
	}
	if s.fail {
		return nil, protocol.Conflict(protocol.CodeConflict, nil, "no")
	}
	return &created[echoOutput]{Location: "/things/" + in.Body.Title, Body: echoOutput{Title: in.Body.Title}}, nil
}

// thingsWorld is a world with a creating route of the test's.
func thingsWorld(t *testing.T) (*world, *slow) {
	t.Helper()
	w, handler := newWorld(t), &slow{}
	server, err := newServer(w.Config, func(s *Server) []route {
		return append(s.table(), call("POST", "/things", "createThing", "", creates, handler.handle).answers(201))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	return w, handler
}

func TestAnIdempotentRequestWorksOnce(t *testing.T) {
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	ask := func(title, key string) *reply {
		return c.do("POST", "/things", object{"title": title}, keyHeader, key)
	}
	first := ask("one", "k1")
	w.limiter.refuse()
	again := ask("one", "k1")
	if first.status != 201 || again.status != 201 || string(first.body) != string(again.body) || handler.ran != 1 {
		t.Fatalf("%d %s, then %d %s; ran %d times", first.status, first.body, again.status, again.body, handler.ran)
	}
	if again.header.Get(replayedHeader) != "true" || again.header.Get("Location") != "/things/one" || first.header.Get(replayedHeader) != "" {
		t.Errorf("headers %v", again.header)
	}
	w.limiter.set(newTestLimiter().limit, nil)
	if other := ask("two", "k1"); other.status != 422 || other.Code != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %d %s", other.status, other.body)
	}
	for _, key := range []string{"with space", strings.Repeat("x", 129), "\u00e4"} {
		if answer := ask("one", key); answer.status != 422 {
			t.Errorf("key %q: %d", key, answer.status)
		}
	}
	stranger := w.client().register("eve@example.com")
	if answer := stranger.do("POST", "/things", object{"title": "one"}, keyHeader, "k1"); answer.status != 201 || answer.header.Get(replayedHeader) != "" {
		t.Errorf("another account's key: %d %v", answer.status, answer.header)
	}
}

func TestAKeyIsFreeAfterAnError(t *testing.T) {
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	handler.fail = true
	c.expect(409, "POST", "/things", object{"title": "one"}, keyHeader, "k1")
	handler.fail = false
	c.expect(422, "POST", "/things", object{"title": "too long"}, keyHeader, "k1")
	c.expect(201, "POST", "/things", object{"title": "one"}, keyHeader, "k1")
	if handler.ran != 2 {
		t.Errorf("ran %d times", handler.ran)
	}
}

func TestTheSecondOfTwoWithAKeyWaitsForTheFirst(t *testing.T) {
	w, handler := thingsWorld(t)
	c := w.client().register("ada@example.com")
	handler.began, handler.proceed = make(chan struct{}), make(chan struct{})
	began := handler.began
	var both sync.WaitGroup
	answers := make([]*reply, 2)
	for i := range answers {
		twin := c.twin()
		both.Go(func() { answers[i] = twin.do("POST", "/things", object{"title": "one"}, keyHeader, "k1") })
	}
	<-began
	close(handler.proceed)
	both.Wait()
	replayed := 0
	for _, answer := range answers {
		if answer.status != 201 {
			t.Errorf("%d %s", answer.status, answer.body)
		}
		if answer.header.Get(replayedHeader) == "true" {
			replayed++
		}
	}
	if handler.ran != 1 || replayed != 1 {
		t.Errorf("ran %d times, replayed %d", handler.ran, replayed)
	}
}

// asked is the context of a request of somebody.
func asked(s *Server, account protocol.AccountID, session protocol.SessionID) context.Context {
	caller := &Caller{Account: protocol.Account{AccountID: account}, SessionID: session}
	return context.WithValue(context.Background(), exchangeKey{}, &exchange{server: s, caller: caller})
}

func TestAConfirmationHoldsForWhatWasShownOnly(t *testing.T) {
	clock := &testClock{at: time.Now()}
	s := frameServer(t, Config{Now: clock.now})
	account, session := protocol.NewAccountID(), protocol.NewSessionID()
	mine := asked(s, account, session)
	counts := map[string]int{"messages": 3, "turns": 1}
	token := func(err error) string {
		t.Helper()
		p := problemOf(err)
		var current confirmationCurrent
		if p.Code != protocol.CodeConfirmation || jsonUnmarshal(p.Current, &current) != nil || current.Confirmation.WillDelete["messages"] == 0 {
			t.Fatalf("%+v %s", p, p.Current)
		}
		return current.Confirmation.Token
	}
	given := token(s.confirm(mine, "", "conv_1", 7, counts))
	if err := s.confirm(mine, given, "conv_1", 7, counts); err != nil {
		t.Errorf("its own token: %v", err)
	}
	token(s.confirm(mine, given+"A", "conv_1", 7, counts))
	token(s.confirm(mine, given, "conv_2", 7, counts))
	token(s.confirm(mine, given, "conv_1", 8, counts))
	token(s.confirm(mine, given, "conv_1", 7, map[string]int{"messages": 4, "turns": 1}))
	token(s.confirm(asked(s, account, protocol.NewSessionID()), given, "conv_1", 7, counts))
	token(s.confirm(asked(s, protocol.NewAccountID(), session), given, "conv_1", 7, counts))
	clock.advance(confirmationLife + time.Second)
	token(s.confirm(mine, given, "conv_1", 7, counts))
}

func TestACursorOpensForItsAccountAndListOnly(t *testing.T) {
	s := frameServer(t, Config{})
	type position struct{ N int }
	mine := asked(s, protocol.NewAccountID(), protocol.NewSessionID())
	text := sealCursor(mine, s, "list a", &position{7})
	if at, err := openCursor[position](mine, s, *text, "list a"); err != nil || at.N != 7 {
		t.Fatalf("%v %v", at, err)
	}
	if again := sealCursor(mine, s, "list a", &position{7}); *again == *text {
		t.Error("equal positions are told as equal")
	}
	for name, open := range map[string]func() (*position, error){
		"another list": func() (*position, error) { return openCursor[position](mine, s, *text, "list b") },
		"another account": func() (*position, error) {
			return openCursor[position](asked(s, protocol.NewAccountID(), protocol.SessionID{}), s, *text, "list a")
		},
		"cut":     func() (*position, error) { return openCursor[position](mine, s, (*text)[:20], "list a") },
		"garbage": func() (*position, error) { return openCursor[position](mine, s, "garbage", "list a") },
	} {
		if at, err := open(); protocol.CodeOf(err) != protocol.CodeInvalid || at != nil {
			t.Errorf("%s: %v %v", name, at, err)
		}
	}
}

func TestApprovedOriginsMayCallAndNoOthers(t *testing.T) {
	const app = "https://app.turnstone.example"
	w := newWorld(t, func(c *Config) { c.AllowedOrigins = []string{app} })
	c := w.client().register("ada@example.com")
	preflight := func(origin string) *reply {
		return w.client().do("OPTIONS", "/account/settings", nil, "Origin", origin, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type,x-csrf-token")
	}
	header := preflight(app).header
	if header.Get("Access-Control-Allow-Origin") != app || header.Get("Access-Control-Allow-Credentials") != "true" || header.Get("Access-Control-Max-Age") != "600" ||
		!slices.Contains(header.Values("Vary"), "Origin, Access-Control-Request-Method, Access-Control-Request-Headers") {
		t.Errorf("preflight %v", header)
	}
	if header := preflight("https://evil.example").header; header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another %v", header)
	}
	answer := c.expect(200, "GET", "/auth/session", nil, "Origin", app)
	if answer.header.Get("Access-Control-Allow-Origin") != app || !strings.Contains(answer.header.Get("Access-Control-Expose-Headers"), "X-Turn-Id") {
		t.Errorf("answer %v", answer.header)
	}
	c.expect(204, "DELETE", "/auth/sessions", nil, "Origin", app, "Sec-Fetch-Site", "same-site")
	c.expect(403, "DELETE", "/auth/sessions", nil, "Origin", "https://other.turnstone.example", "Sec-Fetch-Site", "same-site")
	for _, origin := range []string{"*", "null", "https://*.example", "https://a.example/", "a.example"} {
		config := w.Config
		config.AllowedOrigins = []string{origin}
		if _, err := New(config); err == nil {
			t.Errorf("%q is taken as an origin", origin)
		}
	}
}

func TestWhatIsFrequentIsCountedForTheAudit(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	for range 3 {
		c.expect(404, "DELETE", "/auth/sessions/"+protocol.NewSessionID().String(), nil)
		w.client().expect(403, "POST", "/auth/login", object{"email": "a@example.com", "password": "x"}, "Origin", "https://evil.example")
	}
	w.writeTallies(t.Context())
	w.writeTallies(t.Context())
	for account, event := range map[protocol.AccountID]persistence.SecurityEvent{c.account.AccountID: persistence.EventNotFound, persistence.Nobody: persistence.EventOriginRefused} {
		counts := query[int](w, `select (detail->>'count')::int from audit where account_id = $1 and event = $2`, account, string(event))
		if !slices.Equal(counts, []int{3}) {
			t.Errorf("%s: %v", event, counts)
		}
	}
	for _, account := range []protocol.AccountID{c.account.AccountID, persistence.Nobody} {
		if broken, err := w.DB.VerifyAudit(t.Context(), account); err != nil || broken != 0 {
			t.Errorf("the chain breaks at %d: %v", broken, err)
		}
	}
}

func TestALogoutEndsTheStreamOfAnotherTab(t *testing.T) {
	w := newWorld(t, func(c *Config) { liveOn(t, c) })
	server := httptest.NewServer(w)
	defer server.Close()
	c := w.client().register("ada@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	defer run.Wait()
	defer cancel()
	run.Go(func() { w.Run(ctx) })
	body := `{"input":[{"type":"text","text":"[[script tokens=100000 interval=50ms]]"}]}`
	request, err := stdhttp.NewRequestWithContext(t.Context(), "POST", server.URL+"/chat", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(csrfHeader, c.csrf)
	request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || response.StatusCode != 200 {
		t.Fatalf("no stream: %d", response.StatusCode)
	}
	c.expect(204, "POST", "/auth/logout", nil)
	began := time.Now()
	for lines.Scan() { // until the server ends it
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stream went on for %v", took)
	}
}
