package http

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestASignInHandsOutASessionAndNothingElseDoes(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	answer := c.expect(201, "POST", "/auth/register", object{"email": " Ada@Example.com ", "password": testPassword, "display_name": "Ada"})
	c.keep(answer)
	cookie := answer.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-session=s1_", "Path=/", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=2592000"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("cookie %q lacks %s", cookie, part)
		}
	}
	if answer.header.Get("Cache-Control") != "no-store" || c.account.Email != "Ada@Example.com" {
		t.Errorf("%+v %v", c.account, answer.header)
	}
	if info := c.session(); info.Account != c.account || info.Reauthenticated == nil {
		t.Errorf("session %+v", info)
	}
	if stored := query[[]byte](w, `select token_hash from sessions`); len(stored) != 1 || bytes.Contains(stored[0], []byte(c.token())) {
		t.Error("the token itself is stored")
	}
	other := w.client()
	other.keep(other.expect(200, "POST", "/auth/login", object{"email": "ada@example.COM", "password": testPassword}))
	if other.account != c.account {
		t.Errorf("signed in as %+v", other.account)
	}
	if events := w.events(c.account.AccountID); !slices.Equal(events, []string{
		string(persistence.EventRegistered), string(persistence.EventSessionCreated), string(persistence.EventSignedIn), string(persistence.EventSessionCreated),
	}) {
		t.Errorf("audit %v", events)
	}
}

func TestRegistrationRefuses(t *testing.T) {
	w := newWorld(t)
	w.client().register("ada@example.com")
	for _, test := range []struct {
		name, email, password, display string
		status                         int
		code                           protocol.Code
	}{
		{"a taken address", "ADA@example.com", testPassword, "A", 409, protocol.CodeEmailTaken},
		{"no address", "ada", testPassword, "A", 422, protocol.CodeInvalid},
		{"a name around the address", "Ada <ada2@example.com>", testPassword, "A", 422, protocol.CodeInvalid},
		{"a short password", "b@example.com", "short12", "A", 422, protocol.CodeInvalid},
		{"a common password", "b@example.com", "Password123", "A", 422, protocol.CodeInvalid},
		{"one character only", "b@example.com", "zzzzzzzzzzzz", "A", 422, protocol.CodeInvalid},
		{"the address as password", "b2345678@example.com", "b2345678", "A", 422, protocol.CodeInvalid},
		{"a name that is too long", "b@example.com", testPassword, strings.Repeat("n", 101), 422, protocol.CodeInvalid},
		{"a name with a control character", "b@example.com", testPassword, "B\x07", 422, protocol.CodeInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := w.client().do("POST", "/auth/register", object{"email": test.email, "password": test.password, "display_name": test.display})
			if answer.status != test.status || answer.Code != test.code || answer.header.Get("Set-Cookie") != "" {
				t.Errorf("%d %s %v", answer.status, answer.body, answer.header)
			}
		})
	}
	closed := newWorld(t, func(c *Config) { c.RegistrationOpen = false })
	answer := closed.client().do("POST", "/auth/register", object{"email": "b@example.com", "password": testPassword, "display_name": "B"})
	if answer.status != 403 || answer.Code != protocol.CodeRegistrationClosed {
		t.Errorf("closed: %d %s", answer.status, answer.body)
	}
}

func TestAnAccountWithoutANameGetsThePartOfItsAddressBeforeTheAt(t *testing.T) {
	w := newWorld(t)
	for email, body := range map[string]object{
		"ada@example.com":                         {},
		"grace@example.com":                       {"display_name": "   "},
		strings.Repeat("n", 110) + "@example.com": {"display_name": ""},
	} {
		body["email"], body["password"] = email, testPassword
		c := w.client()
		c.keep(c.expect(201, "POST", "/auth/register", body))
		name, _, _ := strings.Cut(email, "@")
		if want := name[:min(len(name), maxDisplayNameRunes)]; c.account.DisplayName != want {
			t.Errorf("%s is called %q, want %q", email, c.account.DisplayName, want)
		}
	}
}

func TestSessionsAreListedInPages(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	for range 4 {
		w.clock.advance(time.Minute)
		w.client().login("ada@example.com")
	}
	var seen []protocol.SessionID
	var last time.Time
	for path, pages := "/auth/sessions?limit=2", 1; ; pages++ {
		var list protocol.List[protocol.Device]
		c.expect(200, "GET", path, nil).into(t, &list)
		if list.HasMore != (pages < 3) || (list.NextCursor != nil) != list.HasMore || pages > 3 {
			t.Fatalf("page %d: %+v", pages, list)
		}
		for _, device := range list.Data {
			if len(seen) > 0 && device.LastUsedAt.After(last) {
				t.Errorf("%v was used after the one before it", device)
			}
			seen, last = append(seen, device.SessionID), device.LastUsedAt
		}
		if !list.HasMore {
			break
		}
		path = "/auth/sessions?limit=2&cursor=" + *list.NextCursor
	}
	slices.SortFunc(seen, func(a, b protocol.SessionID) int { return strings.Compare(a.String(), b.String()) })
	if len(slices.Compact(seen)) != 5 {
		t.Errorf("%d sessions are listed, want 5", len(seen))
	}
}

func TestAFailedSignInDoesNotTellWhy(t *testing.T) {
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	wrong := w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": "wrong wrong wrong"})
	unknown := w.client().do("POST", "/auth/login", object{"email": "nobody@example.com", "password": "wrong wrong wrong"})
	if err := w.DB.DisableAccount(t.Context(), ada.account.AccountID, w.clock.now(), persistence.Requester{}); err != nil {
		t.Fatal(err)
	}
	disabled := w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": testPassword})
	if wrong.status != 401 || !alike(wrong, unknown) || !alike(wrong, disabled) {
		t.Errorf("%s\n%s\n%s", wrong.body, unknown.body, disabled.body)
	}
	ada.expect(401, "GET", "/auth/session", nil)
	w.writeTallies(t.Context())
	if !contains(w.events(ada.account.AccountID), persistence.EventSignInFailed) || !contains(w.events(persistence.Nobody), persistence.EventSignInFailed) {
		t.Error("a failed sign-in is not in the audit")
	}
}

func TestSignInsAreLimitedByAccountAndAddress(t *testing.T) {
	w := newWorld(t)
	w.limiter.refuse()
	answer := w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": "x"})
	if answer.status != 429 || answer.header.Get("Retry-After") != "2" || answer.header.Get("RateLimit") == "" || answer.header.Get("RateLimit-Policy") != `"writes";q=60;w=60` {
		t.Errorf("%d %v", answer.status, answer.header)
	}
	w.limiter.breakDown()
	if answer := w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": "x"}); answer.status != 503 || answer.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", answer.status, answer.header)
	}
	w.limiter.set(newTestLimiter().limit, nil)
	w.limiter.drawn = nil
	w.client().do("POST", "/auth/login", object{"email": "ada@example.com", "password": "x"})
	if len(w.limiter.drawn) != 4 || !strings.HasPrefix(w.limiter.drawn[2], "signin_account ") || w.limiter.drawn[0] != "writes 192.0.2.1" || !strings.HasPrefix(w.limiter.drawn[1], "signin 192.0.2.1:") || strings.Contains(w.limiter.drawn[1], "ada") {
		t.Errorf("drawn %v", w.limiter.drawn)
	}
}

func TestASessionEnds(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name string
		end  func(*client)
	}{
		{"unused for a week", func(*client) { w.clock.advance(sessionIdle) }},
		{"thirty days old", func(c *client) {
			for range 6 {
				w.clock.advance(6 * 24 * time.Hour)
				c.do("GET", "/auth/session", nil)
			}
		}},
		{"logged out", func(c *client) {
			token := c.token()
			answer := c.expect(204, "POST", "/auth/logout", nil)
			if c.token() != "" || answer.header.Get("Clear-Site-Data") != `"cache","storage"` {
				t.Errorf("logout leaves %v", answer.header)
			}
			c.cookies[c.cookieName()] = token
		}},
		{"garbage", func(c *client) { c.cookies[c.cookieName()] = "garbage" }},
		{"another token", func(c *client) { c.cookies[c.cookieName()] = tokenPrefix + encode(bytes.Repeat([]byte{7}, tokenBytes)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.client().register(strings.ReplaceAll(test.name, " ", "") + "@example.com")
			c.session()
			test.end(c)
			answer := c.expect(401, "GET", "/auth/session", nil)
			if !strings.Contains(answer.header.Get("Set-Cookie"), "Max-Age=0") {
				t.Errorf("the cookie stays: %v", answer.header)
			}
		})
	}
}

func TestUseIsWrittenAtMostEveryFiveMinutes(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	used := func() time.Time { return query[time.Time](w, `select last_used_at from sessions`)[0] }
	first := used()
	w.clock.advance(sessionTouch - time.Second)
	c.session()
	if !used().Equal(first) {
		t.Error("written too early")
	}
	w.clock.advance(time.Second)
	c.session()
	if !used().Equal(w.clock.now()) {
		t.Errorf("last used %v, want %v", used(), w.clock.now())
	}
}

func TestATokenIsReplacedAfterADayOfUse(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sessionRotation)
	late := c.twin()
	old := c.csrf
	c.session()
	if c.token() == late.token() || c.token() == "" {
		t.Fatal("the token was not replaced")
	}
	if late.expect(200, "GET", "/auth/session", nil); late.token() == c.token() {
		t.Error("a request under way was given another token at once")
	}
	c.session() // the new token's first use
	if answer := c.do("POST", "/auth/logout", nil, csrfHeader, old); answer.status != 403 || answer.Code != protocol.CodeCSRF {
		t.Errorf("the CSRF token of the old one still holds: %d", answer.status)
	}
	w.clock.advance(sessionOverlap)
	late.expect(200, "GET", "/auth/session", nil)
	w.clock.advance(time.Millisecond)
	late.expect(401, "GET", "/auth/session", nil)
	c.expect(401, "GET", "/auth/session", nil) // one of the two is a thief
	if !contains(w.events(c.account.AccountID), persistence.EventSessionReused) {
		t.Error("the reuse is not in the audit")
	}
}

func TestASuccessorThatWasLostOnItsWayIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sessionRotation)
	lost := c.twin()
	lost.session()
	w.clock.advance(sessionOverlap)
	c.session()
	if c.token() == "" || c.token() == lost.token() {
		t.Fatal("no other successor")
	}
	c.session()
	lost.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestSimultaneousRequestsReplaceATokenOnce(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sessionRotation)
	var all sync.WaitGroup
	twins := make([]*client, 8)
	for i := range twins {
		twins[i] = c.twin()
		all.Go(func() { twins[i].do("GET", "/auth/session", nil) })
	}
	all.Wait()
	tokens := map[string]bool{}
	for _, twin := range twins {
		tokens[twin.token()] = true
	}
	if len(tokens) != 2 || len(query[int](w, `select 1 from sessions`)) != 2 {
		t.Errorf("%d tokens", len(tokens))
	}
}

func TestTheTwentyFirstSessionEndsTheOldest(t *testing.T) {
	w := newWorld(t)
	first := w.client().register("ada@example.com")
	var clients []*client
	for range persistence.MaxSessions {
		w.clock.advance(time.Second)
		clients = append(clients, w.client().login("ada@example.com"))
	}
	first.expect(401, "GET", "/auth/session", nil)
	for _, c := range clients {
		c.session()
	}
}

func TestASignInEndsTheSessionThatTheBrowserHad(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	planted := c.twin()
	c.login("ada@example.com")
	planted.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestDevicesAreListedAndEnded(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	other := w.client().login("ada@example.com")
	stranger := w.client().register("eve@example.com")
	list := func(c *client) []protocol.Device {
		var list protocol.List[protocol.Device]
		c.expect(200, "GET", "/auth/sessions", nil).into(t, &list)
		return list.Data
	}
	devices := list(c)
	if len(devices) != 2 || len(list(stranger)) != 1 {
		t.Fatalf("devices %+v", devices)
	}
	var theirs protocol.SessionID
	for _, device := range devices {
		if !device.Current {
			theirs = device.SessionID
		}
	}
	foreign := stranger.do("DELETE", "/auth/sessions/"+theirs.String(), nil)
	missing := stranger.do("DELETE", "/auth/sessions/"+protocol.NewSessionID().String(), nil)
	malformed := stranger.do("DELETE", "/auth/sessions/sess_x", nil)
	if foreign.status != 404 || !alike(foreign, missing) || !alike(foreign, malformed) {
		t.Errorf("%s\n%s\n%s", foreign.body, missing.body, malformed.body)
	}
	other.session()
	c.expect(204, "DELETE", "/auth/sessions/"+theirs.String(), nil)
	other.expect(401, "GET", "/auth/session", nil)
	third := w.client().login("ada@example.com")
	w.clock.advance(sudoLife)
	if answer := c.do("DELETE", "/auth/sessions", nil); answer.status != 403 || answer.Code != protocol.CodeReauthRequired {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	c.keep(c.expect(200, "POST", "/auth/reauthenticate", object{"password": testPassword}))
	c.expect(204, "DELETE", "/auth/sessions", nil)
	third.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestARecentSignInIsOfTheNewTokenOnly(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sudoLife)
	before := c.twin()
	if answer := c.do("POST", "/auth/reauthenticate", object{"password": "wrong wrong"}); answer.status != 422 || c.token() != before.token() {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	answer := c.expect(200, "POST", "/auth/reauthenticate", object{"password": testPassword})
	c.keep(answer)
	if c.token() == before.token() || c.session().Reauthenticated == nil {
		t.Error("no new token, or not signed in recently")
	}
	if events := w.events(c.account.AccountID); !slices.Equal(events, []string{
		string(persistence.EventRegistered), string(persistence.EventSessionCreated), string(persistence.EventReauthenticated), string(persistence.EventSessionRotated),
	}) {
		t.Errorf("audit %v", events)
	}
	before.expect(403, "DELETE", "/auth/sessions", nil)
	c.expect(204, "DELETE", "/auth/sessions", nil)
	w.clock.advance(sudoLife)
	c.expect(403, "DELETE", "/auth/sessions", nil)
}

func TestANewPasswordEndsEverythingButTheOneWhoMadeIt(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	before, other := c.twin(), w.client().login("ada@example.com")
	const fresh = "a much better secret"
	if answer := c.do("POST", "/auth/password", object{"current_password": "wrong wrong", "new_password": fresh}); answer.status != 422 {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	c.keep(c.expect(200, "POST", "/auth/password", object{"current_password": testPassword, "new_password": fresh}))
	before.expect(401, "GET", "/auth/session", nil)
	other.expect(401, "GET", "/auth/session", nil)
	c.session()
	w.client().expect(401, "POST", "/auth/login", object{"email": "ada@example.com", "password": testPassword})
	w.client().expect(200, "POST", "/auth/login", object{"email": "ada@example.com", "password": fresh})
}

func TestUnsafeRequestsNeedTheTokenOfTheirOwnSession(t *testing.T) {
	w := newWorld(t)
	c, other := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	for name, headers := range map[string][]string{
		"none":             {csrfHeader, ""},
		"garbage":          {csrfHeader, "x.y"},
		"another session":  {csrfHeader, other.csrf},
		"another site":     {"Sec-Fetch-Site", "cross-site"},
		"a subdomain":      {"Sec-Fetch-Site", "same-site"},
		"a foreign origin": {"Origin", "https://evil.example"},
		"null origin":      {"Origin", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.do("DELETE", "/auth/sessions", nil, headers...)
			if answer.status != 403 || answer.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%d %s", answer.status, answer.body)
			}
		})
	}
	c.expect(204, "DELETE", "/auth/sessions", nil, "Origin", "https://turnstone.example", "Sec-Fetch-Site", "same-origin")
	w.writeTallies(t.Context())
	events := w.events(c.account.AccountID)
	if !contains(events, persistence.EventCSRFRefused) || !contains(events, persistence.EventOriginRefused) {
		t.Errorf("audit %v", events)
	}
}

func TestTheSecretBeforeStaysGood(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	old := bytes.Repeat([]byte("k"), minSecret)
	fresh := bytes.Repeat([]byte("n"), minSecret)
	turned := worldOn(t, w.database, func(config *Config) { config.Secrets = [][]byte{fresh, old} })
	both := turned.client()
	both.cookies, both.csrf = c.cookies, c.csrf
	both.expect(204, "DELETE", "/auth/sessions", nil)
	gone := worldOn(t, w.database, func(config *Config) { config.Secrets = [][]byte{fresh} }).client()
	gone.cookies = c.cookies
	gone.expect(401, "GET", "/auth/session", nil)
}

func TestOverPlainHTTPOnLoopbackTheCookieHasItsShortName(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BaseURL.Scheme, c.BaseURL.Host = "http", "localhost:8080" })
	answer := w.client().expect(201, "POST", "/auth/register", object{"email": "a@example.com", "password": testPassword, "display_name": "A"})
	if cookie := answer.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "session=s1_") || strings.Contains(cookie, "Secure") {
		t.Errorf("cookie %q", cookie)
	}
	if answer.header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS over plain http")
	}
}

func TestNoMorePasswordsAreHashedAtOnceThanThereIsRoomFor(t *testing.T) {
	p, err := newPasswords()
	if err != nil {
		t.Fatal(err)
	}
	for n := range hashesAtOnce {
		release, err := p.slots.acquire(t.Context(), hasher{key: strconv.Itoa(n)})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.hash(ctx, hasher{key: "another"}, testPassword); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("%v", err)
	}
}

func TestRevocationEndsOpenStreams(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	caller := &Caller{Account: c.account}
	caller.SessionID = query[protocol.SessionID](w, `select session_id from sessions`)[0]
	follow := func() (context.Context, context.CancelFunc) {
		return w.untilRevoked(context.WithValue(t.Context(), exchangeKey{}, &exchange{caller: caller}))
	}
	t.Run("by asking again", func(t *testing.T) {
		stream, stop := follow()
		defer stop()
		w.recheck(t.Context())
		if stream.Err() != nil {
			t.Fatal("a live session's stream was ended")
		}
		elsewhere := worldOn(t, w.database).client()
		elsewhere.clock.advance(w.clock.now().Sub(elsewhere.clock.now()))
		elsewhere.cookies, elsewhere.csrf = c.cookies, c.csrf
		elsewhere.expect(204, "POST", "/auth/logout", nil)
		w.recheck(t.Context())
		if stream.Err() == nil {
			t.Fatal("the stream goes on")
		}
	})
	t.Run("by being told", func(t *testing.T) {
		c.login("ada@example.com")
		caller.SessionID = query[protocol.SessionID](w, `select session_id from sessions where revoked_at is null`)[0]
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		defer run.Wait()
		defer cancel()
		run.Go(func() { w.Run(ctx) })
		stream, stop := follow()
		defer stop()
		c.expect(204, "POST", "/auth/logout", nil)
		select {
		case <-stream.Done():
		case <-time.After(5 * time.Second):
			t.Error("the stream goes on after five seconds")
		}
	})
}

func TestSettingsAreReplacedUnderTheirVersion(t *testing.T) {
	w := newWorld(t)
	c, other := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	answer := c.expect(200, "GET", "/account/settings", nil)
	if answer.header.Get("ETag") != `"v0"` {
		t.Errorf("ETag %s", answer.header.Get("ETag"))
	}
	settings := object{"language": "AR-eg", "theme": "dark", "send_key": "mod_enter", "busy_action": "steer", "default_profile": "coding"}
	c.expect(200, "PUT", "/account/settings", settings, "If-Match", `"v0"`)
	stale := c.expect(409, "PUT", "/account/settings", settings, "If-Match", `"v0"`)
	var current protocol.Settings
	if err := jsonUnmarshal(stale.Current, &current); err != nil || stale.Code != protocol.CodeStaleVersion || current.Version != 1 || current.Language != "ar-EG" {
		t.Errorf("%s", stale.body)
	}
	c.expect(422, "PUT", "/account/settings", settings, "If-Match", `v1`)
	c.expect(200, "PUT", "/account/settings", settings)
	settings["version"] = 1
	c.expect(422, "PUT", "/account/settings", settings, "If-Match", `"v2"`)
	c.expect(409, "PUT", "/account/settings", settings)
	settings["version"] = 2
	if answer := c.expect(200, "PUT", "/account/settings", settings); answer.header.Get("ETag") != `"v3"` {
		t.Errorf("ETag %s", answer.header.Get("ETag"))
	}
	settings["theme"] = "pink"
	c.expect(422, "PUT", "/account/settings", settings)
	settings["theme"], settings["language"] = "dark", "no such language"
	c.expect(422, "PUT", "/account/settings", settings)
	if answer := other.expect(200, "GET", "/account/settings", nil); answer.header.Get("ETag") != `"v0"` {
		t.Error("another account's settings")
	}
}

func TestReadinessTellsWhichDependencyIsDown(t *testing.T) {
	var down error
	var draining atomic.Bool
	w := newWorld(t, func(c *Config) {
		c.Draining, c.Scanner = draining.Load, "test-signatures"
		c.Ready = map[string]Probe{
			"persistence": func(context.Context) error { return nil },
			"cache":       func(context.Context) error { return down },
		}
	})
	c := w.client().register("ada@example.com")
	c.expect(200, "GET", "/ready", nil)
	down = fmt.Errorf("refused")
	c.expect(200, "GET", "/ready", nil) // the answer of a moment ago
	w.clock.advance(readyFor)
	answer := c.expect(503, "GET", "/ready", nil)
	if got := string(answer.body); got != `{"status":"not_ready","scanner":"test-signatures","checks":{"cache":"down","persistence":"ok"}}`+"\n" {
		t.Errorf("%s", got)
	}
	down = nil
	w.clock.advance(readyFor)
	c.expect(200, "GET", "/ready", nil)
	draining.Store(true)
	if answer := c.expect(503, "GET", "/ready", nil); !strings.Contains(string(answer.body), `"draining":true`) {
		t.Errorf("while draining: %s", answer.body)
	}
	w.client().expect(401, "GET", "/ready", nil)
	w.client().expect(200, "GET", "/health", nil)
	version := c.expect(200, "GET", "/version", nil)
	if got := string(version.body); got != `{"service":"turnstone","environment":"test","build_sha":"abc","model_provider_family":"scripted"}`+"\n" || version.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", got, version.header)
	}
}

// TestReadinessReportsToEveryCallerThatPersistenceIsDown takes Postgres away and asks on the public listener: no session
// can be checked, so a caller with one, one without one and one with a wrong one get the checks.
func TestReadinessReportsToEveryCallerThatPersistenceIsDown(t *testing.T) {
	for _, test := range []struct {
		name    string
		cookie  func(signedIn *client) string // empty: none
		healthy int
		after   time.Duration // the outage shows. A caller who asks Postgres nothing gets the answer of a moment ago until then.
	}{
		{"signed in", func(c *client) string { return c.cookies[c.cookieName()] }, 200, 0},
		{"a wrong token", func(*client) string { return tokenPrefix + encode(make([]byte, tokenBytes)) }, 401, 0},
		{"no cookie", func(*client) string { return "" }, 401, readyFor},
		{"no token", func(*client) string { return "garbage" }, 401, readyFor},
	} {
		t.Run(test.name, func(t *testing.T) {
			database := pgtest.NewDatabase(t)
			postgres := newWire(t, database)
			database.URL = postgres.URL
			w := worldOn(t, database, func(c *Config) {
				c.Ready = map[string]Probe{"persistence": c.DB.Ready, "cache": func(context.Context) error { return nil }}
			})
			signedIn := w.client().register("ada@example.com")
			cookie := test.cookie(signedIn)
			ask := func(status int) *reply { // as a new client each time: a 401 takes the cookie away
				c := w.client()
				if cookie != "" {
					c.cookies[c.cookieName()] = cookie
				}
				return c.expect(status, "GET", "/ready", nil)
			}
			signedIn.expect(200, "GET", "/ready", nil)
			ask(test.healthy)

			postgres.close()
			w.clock.advance(test.after)
			answer := ask(503)
			if got := string(answer.body); got != `{"status":"not_ready","checks":{"cache":"ok","persistence":"down"}}`+"\n" || answer.header.Get("Content-Type") != "application/json" || answer.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %v", got, answer.header)
			}
			if answer := signedIn.expect(503, "GET", "/version", nil); answer.Code != protocol.CodeUnavailable {
				t.Errorf("another route: %s", answer.body)
			}
		})
	}
}
