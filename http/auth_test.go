package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/jackc/pgx/v5"

	"turnstone/http/auth"
	"turnstone/http/ready"
	"turnstone/http/route"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestASignInHandsOutASessionAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	resp := c.expect(201, "POST", "/auth/register", route.Object{"email": " Ada@Example.com ", "password": testPassword, "display_name": "Ada"})
	c.storeSession(resp)
	cookie := resp.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-session=s1_", "Path=/", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=2592000"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("cookie %q lacks %s", cookie, part)
		}
	}
	if resp.header.Get("Cache-Control") != "no-store" || c.account.Email != "Ada@Example.com" {
		t.Errorf("%+v %v", c.account, resp.header)
	}
	if info := c.session(); info.Account != c.account || info.Reauthenticated == nil {
		t.Errorf("session %+v", info)
	}
	if stored := query[[]byte](w, `select token_hash from sessions`); len(stored) != 1 || bytes.Contains(stored[0], []byte(c.token())) {
		t.Error("the token itself is stored")
	}
	other := w.client()
	other.storeSession(other.expect(200, "POST", "/auth/login", route.Object{"email": "ada@example.COM", "password": testPassword}))
	if other.account != c.account {
		t.Errorf("signed in as %+v", other.account)
	}
	if events := w.events(c.account.AccountID); !slices.Equal(events, []string{
		string(audit.EventRegistered), string(audit.EventSessionCreated), string(audit.EventSignedIn), string(audit.EventSessionCreated),
	}) {
		t.Errorf("audit %v", events)
	}
}

// A sign-in that was checked against the old password is checked against the new one. Here both have the same text, as after
// two requests that set the same password.
func TestASignInWhileThePasswordIsSet(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		next   string
		status int
	}{
		"to the same text": {testPassword, 200},
		"to another text":  {"two calm tides at noon", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			owner := w.client().register("ada@example.com")
			hash, err := argon2id.CreateHash(test.next, &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), w.database.AdminURL)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(`begin; update accounts set password_hash = '%s' where account_id = '%s'`,
				hash, protocol.NodeID(owner.account.AccountID))); err != nil {
				t.Fatal(err)
			}
			signedIn := make(chan *reply)
			go func() {
				signedIn <- w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
			}()
			storetest.AwaitLocked(t, w.database, "select from accounts")
			if _, err := conn.Exec(t.Context(), `commit`); err != nil {
				t.Fatal(err)
			}
			if resp := <-signedIn; resp.status != test.status {
				t.Errorf("%d %s, want %d", resp.status, resp.body, test.status)
			}
		})
	}
}

func TestRegistrationRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client().register("ada@example.com")
	for _, test := range []struct {
		name, email, password, display string
		status                         int
		code                           protocol.Code
	}{
		{"a taken address", "ADA@example.com", testPassword, "A", 409, protocol.CodeEmailTaken},
		{"not an address", "ada", testPassword, "A", 422, protocol.CodeInvalid},
		{"a name around the address", "Ada <ada2@example.com>", testPassword, "A", 422, protocol.CodeInvalid},
		{"a short password", "b@example.com", "short12", "A", 422, protocol.CodeInvalid},
		{"a common password", "b@example.com", "Password123", "A", 422, protocol.CodeInvalid},
		{"one character only", "b@example.com", "zzzzzzzzzzzz", "A", 422, protocol.CodeInvalid},
		{"the address as password", "b2345678@example.com", "b2345678", "A", 422, protocol.CodeInvalid},
		{"a name that is too long", "b@example.com", testPassword, strings.Repeat("n", 101), 422, protocol.CodeInvalid},
		{"a name with a control character", "b@example.com", testPassword, "B\x07", 422, protocol.CodeInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp := w.client().do("POST", "/auth/register", route.Object{"email": test.email, "password": test.password, "display_name": test.display})
			if resp.status != test.status || resp.Code != test.code || resp.header.Get("Set-Cookie") != "" {
				t.Errorf("%d %s %v", resp.status, resp.body, resp.header)
			}
		})
	}
	closed := newWorld(t, func(c *testConfig) { c.RegistrationOpen = false })
	resp := closed.client().do("POST", "/auth/register", route.Object{"email": "b@example.com", "password": testPassword, "display_name": "B"})
	if resp.status != 403 || resp.Code != protocol.CodeRegistrationClosed {
		t.Errorf("closed registration: %d %s", resp.status, resp.body)
	}
}

func TestAnAccountWithoutANameGetsThePartOfItsAddressBeforeTheAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for email, body := range map[string]route.Object{
		"ada@example.com":                         {},
		"grace@example.com":                       {"display_name": "   "},
		strings.Repeat("n", 110) + "@example.com": {"display_name": ""},
	} {
		body["email"], body["password"] = email, testPassword
		c := w.client()
		c.storeSession(c.expect(201, "POST", "/auth/register", body))
		name, _, _ := strings.Cut(email, "@")
		if want := name[:min(len(name), 100)]; c.account.DisplayName != want {
			t.Errorf("%s has the display name %q, want %q", email, c.account.DisplayName, want)
		}
	}
}

func TestSessionsAreListedInPages(t *testing.T) {
	t.Parallel()
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
				t.Errorf("%v was used later than the session before it in the list", device)
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

func TestAFailedSignInDoesNotRevealTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	wrong := w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "wrong wrong wrong"})
	unknown := w.client().do("POST", "/auth/login", route.Object{"email": "nobody@example.com", "password": "wrong wrong wrong"})
	if err := w.DB.Operator.DisableAccount(t.Context(), ada.account.AccountID, w.clock.now(), audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	disabled := w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	if wrong.status != 401 || !alike(wrong, unknown) || !alike(wrong, disabled) {
		t.Errorf("%s\n%s\n%s", wrong.body, unknown.body, disabled.body)
	}
	ada.expect(401, "GET", "/auth/session", nil)
	w.auth.WriteTallies(t.Context())
	if !contains(w.events(ada.account.AccountID), audit.EventSignInFailed) || !contains(w.events(pg.NoAccount), audit.EventSignInFailed) {
		t.Error("the audit does not contain a failed sign-in")
	}
}

func TestSignInsAreLimitedByAccountAndAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limiter.Refuse()
	resp := w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "x"})
	if resp.status != 429 || resp.header.Get("Retry-After") != "2" || resp.header.Get("RateLimit") == "" || resp.header.Get("RateLimit-Policy") != `"writes";q=30;w=60` {
		t.Errorf("%d %v", resp.status, resp.header)
	}
	w.limiter.BreakDown()
	if resp := w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "x"}); resp.status != 503 || resp.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", resp.status, resp.header)
	}
	w.limiter.Allow()
	w.limiter.Drawn()
	w.client().do("POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "x"})
	drawn := w.limiter.Drawn()
	if len(drawn) != 4 || !strings.HasPrefix(drawn[2], "signin_account ") || drawn[0] != "writes 192.0.2.1" || !strings.HasPrefix(drawn[1], "signin 192.0.2.1:") || strings.Contains(drawn[1], "ada") {
		t.Errorf("drew from %v", drawn)
	}
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct {
		name string
		end  func(*client)
	}{
		{"unused for a week", func(*client) { w.clock.advance(auth.SessionIdle) }},
		{"thirty days old", func(c *client) {
			for range 6 {
				w.clock.advance(6 * 24 * time.Hour)
				c.do("GET", "/auth/session", nil)
			}
		}},
		{"logged out", func(c *client) {
			token := c.token()
			resp := c.expect(204, "POST", "/auth/logout", nil)
			if c.token() != "" || resp.header.Get("Clear-Site-Data") != `"cache","storage"` {
				t.Errorf("headers of the logout: %v", resp.header)
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
			resp := c.expect(401, "GET", "/auth/session", nil)
			if !strings.Contains(resp.header.Get("Set-Cookie"), "Max-Age=0") {
				t.Errorf("the cookie was not cleared: %v", resp.header)
			}
		})
	}
}

func TestUseIsWrittenAtMostEveryFiveMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	used := func() time.Time { return query[time.Time](w, `select last_used_at from sessions`)[0] }
	first := used()
	w.clock.advance(sessionTouch - time.Second)
	c.session()
	if !used().Equal(first) {
		t.Error("the use was written too early")
	}
	w.clock.advance(time.Second)
	c.session()
	if !used().Equal(w.clock.now()) {
		t.Errorf("last used %v, want %v", used(), w.clock.now())
	}
}

func TestATokenIsReplacedAfterADayOfUse(t *testing.T) {
	t.Parallel()
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
		t.Error("a request with the old token received the new one")
	}
	c.session() // the new token's first use
	if resp := c.do("POST", "/auth/logout", nil, auth.CSRFHeader, old); resp.status != 403 || resp.Code != protocol.CodeCSRF {
		t.Errorf("the CSRF token of the old session token is still accepted: %d", resp.status)
	}
	w.clock.advance(sessionOverlap)
	late.expect(200, "GET", "/auth/session", nil)
	w.clock.advance(time.Millisecond)
	late.expect(401, "GET", "/auth/session", nil)
	c.expect(401, "GET", "/auth/session", nil) // the old token was reused, so one of the two may be stolen
	if !contains(w.events(c.account.AccountID), audit.EventSessionReused) {
		t.Error("the audit does not contain the reuse")
	}
}

func TestATokenWhoseSuccessorWasLostIsReplacedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sessionRotation)
	lost := c.twin()
	lost.session()
	w.clock.advance(sessionOverlap)
	c.session()
	if c.token() == "" || c.token() == lost.token() {
		t.Fatal("the token was not replaced again")
	}
	c.session()
	lost.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestSimultaneousRequestsReplaceATokenOnce(t *testing.T) {
	t.Parallel()
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
		t.Errorf("the clients have %d different tokens", len(tokens))
	}
}

func TestTheTwentyFirstSessionEndsTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.client().register("ada@example.com")
	var clients []*client
	for range accounts.MaxSessions {
		w.clock.advance(time.Second)
		clients = append(clients, w.client().login("ada@example.com"))
	}
	first.expect(401, "GET", "/auth/session", nil)
	for _, c := range clients {
		c.session()
	}
}

func TestASignInEndsTheSessionThatTheBrowserHad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	planted := c.twin()
	c.login("ada@example.com")
	planted.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestDevicesAreListedAndEnded(t *testing.T) {
	t.Parallel()
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
	w.clock.advance(sudoLifetime)
	if resp := c.do("DELETE", "/auth/sessions", nil); resp.status != 403 || resp.Code != protocol.CodeReauthRequired {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	c.storeSession(c.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword}))
	c.expect(204, "DELETE", "/auth/sessions", nil)
	third.expect(401, "GET", "/auth/session", nil)
	c.session()
}

func TestARecentSignInIsOfTheNewTokenOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.clock.advance(sudoLifetime)
	before := c.twin()
	if resp := c.do("POST", "/auth/reauthenticate", route.Object{"password": "wrong wrong"}); resp.status != 422 || c.token() != before.token() {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	resp := c.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword})
	c.storeSession(resp)
	if c.token() == before.token() || c.session().Reauthenticated == nil {
		t.Error("the token was not replaced, or the sign-in does not count as recent")
	}
	if events := w.events(c.account.AccountID); !slices.Equal(events, []string{
		string(audit.EventRegistered), string(audit.EventSessionCreated), string(audit.EventReauthenticated), string(audit.EventSessionRotated),
	}) {
		t.Errorf("audit %v", events)
	}
	before.expect(403, "DELETE", "/auth/sessions", nil)
	c.expect(204, "DELETE", "/auth/sessions", nil)
	w.clock.advance(sudoLifetime)
	c.expect(403, "DELETE", "/auth/sessions", nil)
}

func TestAPasswordChangeEndsAllOtherTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	before, other := c.twin(), w.client().login("ada@example.com")
	const fresh = "a much better secret"
	if resp := c.do("POST", "/auth/password", route.Object{"current_password": "wrong wrong", "new_password": fresh}); resp.status != 422 {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	c.storeSession(c.expect(200, "POST", "/auth/password", route.Object{"current_password": testPassword, "new_password": fresh}))
	before.expect(401, "GET", "/auth/session", nil)
	other.expect(401, "GET", "/auth/session", nil)
	c.session()
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	w.client().expect(200, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": fresh})
}

func TestUnsafeRequestsNeedTheTokenOfTheirOwnSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, other := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	for name, headers := range map[string][]string{
		"none":             {auth.CSRFHeader, ""},
		"garbage":          {auth.CSRFHeader, "x.y"},
		"another session":  {auth.CSRFHeader, other.csrf},
		"another site":     {"Sec-Fetch-Site", "cross-site"},
		"a subdomain":      {"Sec-Fetch-Site", "same-site"},
		"a foreign origin": {"Origin", "https://evil.example"},
		"null origin":      {"Origin", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := c.do("DELETE", "/auth/sessions", nil, headers...)
			if resp.status != 403 || resp.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%d %s", resp.status, resp.body)
			}
		})
	}
	c.expect(204, "DELETE", "/auth/sessions", nil, "Origin", "https://turnstone.example", "Sec-Fetch-Site", "same-origin")
	w.auth.WriteTallies(t.Context())
	events := w.events(c.account.AccountID)
	if !contains(events, audit.EventCSRFRefused) || !contains(events, audit.EventOriginRefused) {
		t.Errorf("audit %v", events)
	}
}

func TestThePreviousSecretRemainsValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.session()
	old := bytes.Repeat([]byte("k"), minSecret)
	fresh := bytes.Repeat([]byte("n"), minSecret)
	rotated := worldOn(t, w.database, func(config *testConfig) { config.Secrets = [][]byte{fresh, old} })
	both := rotated.client()
	both.cookies, both.csrf = c.cookies, c.csrf
	both.expect(204, "DELETE", "/auth/sessions", nil)
	onlyNew := worldOn(t, w.database, func(config *testConfig) { config.Secrets = [][]byte{fresh} }).client()
	onlyNew.cookies = c.cookies
	onlyNew.expect(401, "GET", "/auth/session", nil)
}

func TestOverPlainHTTPOnLoopbackTheCookieHasItsShortName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { c.BaseURL.Scheme, c.BaseURL.Host = "http", "localhost:8080" })
	resp := w.client().expect(201, "POST", "/auth/register", route.Object{"email": "a@example.com", "password": testPassword, "display_name": "A"})
	if cookie := resp.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "session=s1_") || strings.Contains(cookie, "Secure") {
		t.Errorf("cookie %q", cookie)
	}
	if resp.header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS over plain http")
	}
}

func TestSettingsAreReplacedUnderTheirVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, other := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	resp := c.expect(200, "GET", "/account/settings", nil)
	if resp.header.Get("ETag") != `"v0"` {
		t.Errorf("ETag %s", resp.header.Get("ETag"))
	}
	settings := route.Object{"language": "AR-eg", "theme": "dark", "send_key": "mod_enter", "busy_action": "steer", "default_profile": "coding"}
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
	if resp := c.expect(200, "PUT", "/account/settings", settings); resp.header.Get("ETag") != `"v3"` {
		t.Errorf("ETag %s", resp.header.Get("ETag"))
	}
	delivery := func(resp *reply) protocol.Delivery {
		var stored protocol.Settings
		resp.into(t, &stored)
		return stored.SteeringDelivery
	}
	if got := delivery(c.expect(200, "GET", "/account/settings", nil)); got != protocol.DeliverNextStep { // absent from the requests
		t.Errorf("the default delivery is %q", got)
	}
	settings["steering_delivery"], settings["version"] = "interrupt", 3
	if got := delivery(c.expect(200, "PUT", "/account/settings", settings)); got != protocol.DeliverInterrupt {
		t.Errorf("the stored delivery is %q", got)
	}
	settings["steering_delivery"] = "later"
	c.expect(422, "PUT", "/account/settings", settings)
	settings["steering_delivery"], settings["version"] = "interrupt", 4
	settings["theme"] = "pink"
	c.expect(422, "PUT", "/account/settings", settings)
	settings["theme"], settings["language"] = "dark", "no such language"
	c.expect(422, "PUT", "/account/settings", settings)
	if resp := other.expect(200, "GET", "/account/settings", nil); resp.header.Get("ETag") != `"v0"` {
		t.Error("the settings of another account changed")
	}
}

func TestANodeIsReadyIfOnlyExcludedChecksFail(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	w := newWorld(t, func(c *testConfig) {
		c.Draining = draining.Load
		c.Ready = map[string]ready.Probe{
			"persistence":      func(context.Context) error { return nil },
			"cache":            func(context.Context) error { return errors.New("refused") },
			"malware_scanning": func(context.Context) error { return errors.New("refused") },
		}
	})
	internal := w.InternalHandler()
	expect := func(status int, path, body string) {
		t.Helper()
		got := httptest.NewRecorder()
		internal.ServeHTTP(got, httptest.NewRequest("GET", path, nil))
		if got.Code != status || !strings.Contains(got.Body.String(), body) {
			t.Errorf("%s: %d %s, want %d and %s", path, got.Code, got.Body, status, body)
		}
	}
	const checks = `"checks":{"cache":"down","malware_scanning":"down","persistence":"ok"}`
	expect(503, "/ready", `"status":"not_ready",`+checks)
	expect(503, "/ready?exclude=malware_scanning", checks)
	expect(200, "/ready?exclude=malware_scanning&exclude=cache", `"status":"ready",`+checks)
	expect(422, "/ready?exclude=malware", `"code":"invalid"`)
	draining.Store(true)
	expect(503, "/ready?exclude=malware_scanning&exclude=cache", `"status":"not_ready","draining":true`)
}

func TestTheInternalListenerServesThePublishedDocuments(t *testing.T) {
	t.Parallel()
	internal := newWorld(t).InternalHandler()
	for path := range published {
		ask := func(method, tag string) *httptest.ResponseRecorder {
			got, request := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
			request.Header.Set("If-None-Match", tag)
			internal.ServeHTTP(got, request)
			return got
		}
		stored, err := os.ReadFile("../protocol" + path)
		if err != nil {
			t.Fatal(err)
		}
		get := ask("GET", `"of another version"`)
		tag := get.Header().Get("ETag")
		if get.Code != 200 || get.Body.String() != string(stored) || get.Header().Get("Content-Type") != "application/json" || tag == "" {
			t.Errorf("%s: %d %v", path, get.Code, get.Header())
		}
		if head := ask("HEAD", ""); head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("ETag") != tag || head.Header().Get("Content-Length") != strconv.Itoa(len(stored)) {
			t.Errorf("HEAD %s: %d %v", path, head.Code, head.Header())
		}
		if same := ask("GET", tag); same.Code != 304 || same.Body.Len() > 0 {
			t.Errorf("%s again: %d", path, same.Code)
		}
		if other := ask("POST", ""); other.Code != 405 {
			t.Errorf("POST %s: %d", path, other.Code)
		}
	}
}

func TestReadinessTellsWhichDependencyIsDown(t *testing.T) {
	t.Parallel()
	var down error
	var draining atomic.Bool
	w := newWorld(t, func(c *testConfig) {
		c.Draining, c.Scanner = draining.Load, "test-signatures"
		c.Ready = map[string]ready.Probe{
			"persistence": func(context.Context) error { return nil },
			"cache":       func(context.Context) error { return down },
		}
	})
	c := w.client().register("ada@example.com")
	c.expect(200, "GET", "/ready", nil)
	down = fmt.Errorf("refused")
	c.expect(200, "GET", "/ready", nil) // the cached result
	w.clock.advance(reportAge)
	resp := c.expect(503, "GET", "/ready", nil)
	if got := string(resp.body); got != `{"status":"not_ready","scanner":"test-signatures","checks":{"cache":"down","persistence":"ok"}}`+"\n" {
		t.Errorf("%s", got)
	}
	down = nil
	w.clock.advance(reportAge)
	c.expect(200, "GET", "/ready", nil)
	draining.Store(true)
	if resp := c.expect(503, "GET", "/ready", nil); !strings.Contains(string(resp.body), `"draining":true`) {
		t.Errorf("while draining: %s", resp.body)
	}
	w.client().expect(401, "GET", "/ready", nil)
	w.client().expect(200, "GET", "/health", nil)
	version := c.expect(200, "GET", "/version", nil)
	if got := string(version.body); got != `{"service":"turnstone","environment":"test","build_sha":"abc","model_provider_family":"scripted"}`+"\n" || version.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", got, version.header)
	}
}

func TestProfilesPublishWhatTheyCanDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client().expect(401, "GET", "/profiles", nil)
	var list protocol.List[protocol.ProfileAbilities]
	w.client().register("ada@example.com").expect(200, "GET", "/profiles", nil).into(t, &list)
	high := "high"
	want := protocol.ProfileAbilities{Profile: protocol.ProfileDeepReasoning, ModelID: "b", Tools: true, ContextTokens: 128_000, MaxOutputTokens: 32_768, Effort: &high}
	if len(list.Data) != 3 || list.HasMore || list.Data[0].Profile != protocol.ProfileBalanced || list.Data[0].Effort != nil || !reflect.DeepEqual(list.Data[1], want) {
		t.Errorf("%+v", list)
	}
}

// TestReadinessReportsToEveryCallerThatPersistenceIsDown disconnects Postgres and requests GET /ready of the public
// listener. No session can be checked then, so every caller gets the checks: with a valid session token, with a wrong
// one, and with none.
func TestReadinessReportsToEveryCallerThatPersistenceIsDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		cookie  func(signedIn *client) string // the session cookie; empty: none
		healthy int
		after   time.Duration // until the outage shows: a request that needs no query gets the cached result
	}{
		{"signed in", func(c *client) string { return c.cookies[c.cookieName()] }, 200, 0},
		{"a wrong token", func(*client) string { return tokenPrefix + encode(make([]byte, tokenBytes)) }, 401, 0},
		{"no cookie", func(*client) string { return "" }, 401, reportAge},
		{"no token", func(*client) string { return "garbage" }, 401, reportAge},
	} {
		t.Run(test.name, func(t *testing.T) {
			database := pgtest.NewDatabase(t)
			postgres := newRecordingProxy(t, database)
			database.URL = postgres.URL
			w := worldOn(t, database, func(c *testConfig) {
				c.Ready = map[string]ready.Probe{"persistence": c.DB.Ready, "cache": func(context.Context) error { return nil }}
			})
			signedIn := w.client().register("ada@example.com")
			cookie := test.cookie(signedIn)
			ask := func(status int) *reply { // with a new client each time, because a 401 clears the cookie
				c := w.client()
				if cookie != "" {
					c.cookies[c.cookieName()] = cookie
				}
				return c.expect(status, "GET", "/ready", nil)
			}
			signedIn.expect(200, "GET", "/ready", nil)
			ask(test.healthy)

			postgres.Stop()
			w.clock.advance(test.after)
			resp := ask(503)
			if got := string(resp.body); got != `{"status":"not_ready","checks":{"cache":"ok","persistence":"down"}}`+"\n" || resp.header.Get("Content-Type") != "application/json" || resp.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %v", got, resp.header)
			}
			if resp := signedIn.expect(503, "GET", "/version", nil); resp.Code != protocol.CodeUnavailable {
				t.Errorf("another route: %s", resp.body)
			}
		})
	}
}

func TestTheInstructionsOfAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	const path = "/account/instructions"
	wantField(t, u.do(200, "GET", path, nil), "content", "")
	longest := strings.Repeat("ü", protocol.MaxInstructions)
	u.do(422, "PUT", path, route.Object{"content": longest + "x", "version": 0})
	wantField(t, u.do(409, "PUT", path, route.Object{"content": "x"}), "code", "version_required")
	wantField(t, u.do(200, "PUT", path, route.Object{"content": longest, "version": 0}), "version", 1.0)
	u.do(200, "PUT", path, route.Object{"content": "Be brief."}, "If-Match", `"v1"`)
	wantField(t, u.do(409, "PUT", path, route.Object{"content": "x", "version": 1}), "current.content", "Be brief.")
	if resp := u.expect(200, "GET", path, nil); resp.header.Get("ETag") != `"v2"` {
		t.Errorf("the ETag is %q", resp.header.Get("ETag"))
	}
	wantField(t, signUp(t, w).do(200, "GET", path, nil), "content", "")
}
