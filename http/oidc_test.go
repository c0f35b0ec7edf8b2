package http

import (
	stdhttp "net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/oidctest"
	"turnstone/http/route"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// oidcWorld returns a world with the provider "main", which the test controls, and "other", which is unreachable.
func oidcWorld(t *testing.T, change ...func(*testConfig)) (*world, *oidctest.Provider) {
	t.Helper()
	clock := &testClock{at: time.Now().Truncate(time.Millisecond)}
	provider := oidctest.New(t, clock.now)
	w := newWorld(t, append([]func(*testConfig){func(c *testConfig) {
		c.Now = clock.now
		c.Providers = []auth.Provider{{
			Name: "main", Issuer: provider.Issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Scopes: []string{"email", "profile"},
		}, {Name: "other", Issuer: "http://127.0.0.1:1", ClientID: "x"}}
	}}, change...)...)
	w.clock = clock
	t.Cleanup(w.auth.Close)
	return w, provider
}

// atProvider follows the redirect of the start to the provider, as a browser does, and returns the path and the query
// of the callback to which the provider redirects.
func (c *client) atProvider(start *reply) string {
	c.t.Helper()
	browser := &stdhttp.Client{CheckRedirect: func(*stdhttp.Request, []*stdhttp.Request) error { return stdhttp.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	response, err := browser.Get(start.header.Get("Location"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	back := response.Header.Get("Location")
	if response.StatusCode != stdhttp.StatusFound || !strings.HasPrefix(back, "https://turnstone.example/auth/oidc/main/callback?") {
		c.t.Fatalf("the provider returns %d and redirects to %q", response.StatusCode, back)
	}
	return strings.TrimPrefix(back, "https://turnstone.example")
}

// oidc signs in at the provider and returns the response of the callback.
func (c *client) oidc(query string) *reply {
	c.t.Helper()
	return c.do("GET", c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start"+query, nil)), nil)
}

var person = oidctest.Person{Subject: "person-1", Email: "ada@example.com", EmailVerified: true, Name: "Ada"}

// Programs that preview links, and some browsers, send HEAD before GET.
func TestHEADOfASignInHasNoEffect(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	c := w.client()
	head := c.do("HEAD", "/auth/oidc/main/start", nil)
	if head.status != 302 || head.header.Get("Location") == "" || strings.Contains(head.header.Get("Location"), "state=") || head.header.Get("Set-Cookie") != "" {
		t.Errorf("start: %d %v", head.status, head.header)
	}
	if missing := c.do("HEAD", "/auth/oidc/none/start", nil); missing.status != 404 {
		t.Errorf("an unknown provider: %d", missing.status)
	}
	callback := c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil))
	if head := c.do("HEAD", callback, nil); head.status != 302 || head.header.Get("Location") != "/" || head.header.Get("Set-Cookie") != "" {
		t.Errorf("callback: %d %v", head.status, head.header)
	}
	if resp := c.do("GET", callback, nil); resp.status != 302 {
		t.Errorf("the sign-in after HEAD: %d %s", resp.status, resp.body)
	}
	if c.session().Account.Email != person.Email {
		t.Error("the sign-in was not completed")
	}
}

func TestAProvidersIdentityMakesAnAccountAndFindsItAgain(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	c := w.client()
	resp := c.oidc("?return_to=/c/new")
	if resp.status != 302 || resp.header.Get("Location") != "/c/new" || c.cookies["__Host-oidc"] != "" {
		t.Fatalf("%d %v %s", resp.status, resp.header, resp.body)
	}
	first := c.session().Account
	if first.Email != "ada@example.com" || first.DisplayName != "Ada" {
		t.Errorf("account %+v", first)
	}
	again := w.client()
	again.oidc("")
	if again.session().Account.AccountID != first.AccountID {
		t.Error("the second sign-in with the identity created another account")
	}
	if !contains(w.events(first.AccountID), audit.EventIdentityLinked) {
		t.Error("the audit does not contain the link")
	}
	// An account without a password may set its first one only after a recent sign-in.
	w.clock.advance(sudoLifetime)
	body := route.Object{"new_password": "a first password"}
	again.expect(403, "POST", "/auth/password", body)
	again.oidc("")
	again.session()
	again.expect(200, "POST", "/auth/password", body)
	w.client().expect(200, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "a first password"})
}

func TestAnAddressThatMatchesNeverLinks(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	ada := w.client().register("ada@example.com")
	provider.SignIn(person, oidctest.Faults{})
	c := w.client()
	c.oidc("")
	if info := c.session(); info.Account.AccountID == ada.account.AccountID || info.Account.Email != person.Email {
		t.Errorf("%+v", info.Account)
	}
	if linked := query[protocol.AccountID](w, `select account_id from account_identities`); !slices.Equal(linked, []protocol.AccountID{c.account.AccountID}) {
		t.Errorf("linked to %v", linked)
	}
	c = w.client()
	unverified := person
	unverified.EmailVerified = false
	unverified.Subject = "person-2"
	provider.SignIn(unverified, oidctest.Faults{})
	c.oidc("")
	if info := c.session(); info.Account.AccountID == ada.account.AccountID || info.Account.Email != "" {
		t.Errorf("%+v", info.Account)
	}
}

func TestAnAddressThatSomebodyElseRegisteredDoesNotKeepItsOwnerOut(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	squatter := w.client().register(person.Email)
	provider.SignIn(person, oidctest.Faults{})
	owner := w.client()
	owner.oidc("")
	mine := owner.session().Account
	owner.oidc("")
	if again := owner.session().Account; again != mine || again.AccountID == squatter.account.AccountID {
		t.Errorf("%+v, then %+v", mine, again)
	}
	// The password of the address signs in to the account that registered with it, and to no other.
	if resp := owner.do("POST", "/auth/password", route.Object{"new_password": "a first password"}); resp.status != 409 || resp.Code != protocol.CodeEmailTaken || !strings.Contains(string(resp.body), mine.AccountID.String()) {
		t.Errorf("a second account with a password for one address: %d %s", resp.status, resp.body)
	}
	owner.session()
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": person.Email, "password": "a first password"})
	if in := w.client().login(person.Email); in.account != squatter.account {
		t.Errorf("the password signs in to %+v", in.account)
	}
	w.client().expect(409, "POST", "/auth/register", route.Object{"email": person.Email, "password": testPassword, "display_name": "B"})
}

func TestAnAccountOfAProviderLeavesItsAddressToAPassword(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	owner := w.client()
	owner.oidc("")
	other := w.client().register(person.Email)
	if owner.session().Account.AccountID == other.account.AccountID {
		t.Error("registering an address took over an account")
	}
}

func TestOnlyASignedInAccountLinks(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	w.client().expect(401, "GET", "/auth/oidc/main/start?link=true", nil)
	ada := w.client().register("ada@example.com")
	ada.expect(403, "GET", "/auth/oidc/main/start?link=true", nil, "Sec-Fetch-Site", "cross-site")
	w.clock.advance(sudoLifetime)
	ada.expect(403, "GET", "/auth/oidc/main/start?link=true", nil)
	ada.storeSession(ada.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword}))
	before := ada.token()
	if resp := ada.oidc("?link=true"); resp.status != 302 {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	if ada.session(); ada.token() == before {
		t.Error("the token was not replaced although an identity was linked")
	}
	other := w.client()
	other.oidc("")
	if other.session().Account.AccountID != ada.account.AccountID {
		t.Error("the linked identity signs in to another account")
	}
	eve := w.client().register("eve@example.com")
	if resp := eve.oidc("?link=true"); resp.status != 409 {
		t.Errorf("another account's identity: %d %s", resp.status, resp.body)
	}
	// The flow belongs to the account that started it.
	bob := w.client().register("bob@example.com")
	back := bob.atProvider(bob.expect(302, "GET", "/auth/oidc/main/start?link=true", nil))
	bob.cookies[bob.cookieName()] = eve.token()
	bob.expect(401, "GET", back, nil)
}

func TestAnInvalidSignInAtAProviderIsRefused(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	for name, faults := range map[string]oidctest.Faults{
		"the nonce differs":          {Nonce: "other"},
		"the audience differs":       {Audience: "other"},
		"the issuer differs":         {Issuer: "https://other.example"},
		"the token has expired":      {Expired: true},
		"the key is not published":   {WrongKey: true},
		"there is no identity token": {NoIDToken: true},
	} {
		t.Run(name, func(t *testing.T) {
			provider.SignIn(person, faults)
			c := w.client()
			if resp := c.oidc(""); resp.status != 401 || c.token() != "" {
				t.Errorf("%d %s", resp.status, resp.body)
			}
		})
	}
	provider.SignIn(person, oidctest.Faults{})
	begin := func() (*client, string) {
		c := w.client()
		return c, c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil))
	}
	change := func(back, name, value string) string {
		parsed, _ := url.Parse(back)
		query := parsed.Query()
		query.Set(name, value)
		return parsed.Path + "?" + query.Encode()
	}
	t.Run("the state is unknown", func(t *testing.T) {
		c, back := begin()
		c.expect(403, "GET", change(back, "state", "other"), nil)
	})
	t.Run("another browser returns", func(t *testing.T) {
		_, back := begin()
		w.client().expect(403, "GET", back, nil)
	})
	t.Run("the state is used twice", func(t *testing.T) {
		c, back := begin()
		cookie := c.cookies["__Host-oidc"]
		c.expect(302, "GET", back, nil)
		c.cookies["__Host-oidc"] = cookie
		c.expect(403, "GET", back, nil)
	})
	t.Run("the flow has expired", func(t *testing.T) {
		c, back := begin()
		w.clock.advance(flowLifetime)
		c.expect(403, "GET", back, nil)
	})
	t.Run("the verifier differs", func(t *testing.T) {
		c, back := begin()
		w.database.Admin(t, `update oidc_flows set verifier = 'another verifier of forty-three characters or more'`)
		c.expect(401, "GET", back, nil)
	})
	t.Run("the response names another issuer", func(t *testing.T) {
		c, back := begin()
		c.expect(401, "GET", change(back, "iss", "https://other.example"), nil)
	})
	t.Run("the user declined", func(t *testing.T) {
		c, back := begin()
		c.expect(401, "GET", change(back, "error", "access_denied"), nil)
	})
	t.Run("the provider is down", func(t *testing.T) {
		c, back := begin()
		provider.SignIn(person, oidctest.Faults{Down: true})
		c.expect(503, "GET", back, nil)
		w.client().expect(503, "GET", "/auth/oidc/other/start", nil)
	})
	w.client().expect(404, "GET", "/auth/oidc/unknown/start", nil)
	for _, path := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "c/new"} {
		w.client().expect(422, "GET", "/auth/oidc/main/start?return_to="+url.QueryEscape(path), nil)
	}
}

func TestARefusedBrowserIsRedirectedToTheAppWithTheReason(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{NoIDToken: true})
	c := w.client()
	back := c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil, "Sec-Fetch-Mode", "navigate"))
	for _, one := range []struct{ path, reason string }{
		{back, "unauthenticated"},
		{back, "csrf"}, // a state is valid once
		{"/auth/oidc/main/callback?state=other&error=access_denied", "csrf"},
		{"/auth/oidc/other/start", "unavailable"},
		{"/auth/oidc/unknown/start", "not_found"},
		{"/auth/oidc/main/start?link=true", "unauthenticated"},
	} {
		resp := c.expect(302, "GET", one.path, nil, "Sec-Fetch-Mode", "navigate")
		if resp.header.Get("Location") != "/?refused="+one.reason || resp.header.Get("Retry-After") != "" || c.token() != "" || len(resp.body) > 0 {
			t.Errorf("%s: %v %s", one.path, resp.header, resp.body)
		}
	}
	again := c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil))
	if to := c.expect(302, "GET", again+"&error=access_denied", nil, "Sec-Fetch-Mode", "navigate").header.Get("Location"); to != "/?refused=unauthenticated" {
		t.Errorf("a user who declined is redirected to %s", to)
	}
}

func TestClosedRegistrationHoldsForProvidersToo(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t, func(c *testConfig) { c.RegistrationOpen = false })
	provider.SignIn(person, oidctest.Faults{})
	if resp := w.client().oidc(""); resp.status != 403 || resp.Code != protocol.CodeRegistrationClosed {
		t.Errorf("%d %s", resp.status, resp.body)
	}
}

func (c *client) identities() []protocol.Identity {
	c.t.Helper()
	var list protocol.List[protocol.Identity]
	c.expect(200, "GET", "/account/identities", nil).into(c.t, &list)
	return list.Data
}

func TestAnUnlinkedIdentityDoesNotSignIn(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	if list := ada.identities(); len(list) != 0 {
		t.Errorf("before the link: %+v", list)
	}
	if resp := ada.oidc("?link=true"); resp.status != 302 {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	ada.session()
	unconfigured := w.storeIdentity(ada, "person-7")
	list := ada.identities()
	if len(list) != 2 || list[0].Provider == nil || *list[0].Provider != "main" || list[0].Issuer != provider.Issuer || list[0].Subject != person.Subject || list[0].LinkedAt.IsZero() ||
		list[1].IdentityID != unconfigured || list[1].Provider != nil || list[1].Issuer != "https://issuer.example" {
		t.Fatalf("%+v", list)
	}
	path := "/account/identities/" + list[0].IdentityID.String()
	eve.expect(404, "DELETE", path, nil)
	w.clock.advance(sudoLifetime)
	if resp := ada.do("DELETE", path, nil); resp.status != 403 || resp.Code != protocol.CodeReauthRequired {
		t.Errorf("without a recent sign-in: %d %s", resp.status, resp.body)
	}
	ada.storeSession(ada.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword}))
	ada.expect(204, "DELETE", path, nil)
	ada.expect(404, "DELETE", path, nil)
	if list := ada.identities(); len(list) != 1 || list[0].IdentityID != unconfigured {
		t.Errorf("after the removal: %+v", list)
	}
	if events := w.events(ada.account.AccountID); events[len(events)-1] != string(audit.EventIdentityUnlinked) {
		t.Errorf("audit %v", events)
	}
	other := w.client()
	if other.oidc(""); other.session().Account.AccountID == ada.account.AccountID {
		t.Error("the unlinked identity still signs in to the account")
	}
}

func TestTheOnlyWayToSignInIsNotUnlinked(t *testing.T) {
	t.Parallel()
	w, provider := oidcWorld(t)
	unverified := person
	unverified.EmailVerified = false
	provider.SignIn(unverified, oidctest.Faults{})
	c := w.client()
	c.oidc("")
	c.session()
	only := c.identities()[0]
	path := "/account/identities/" + only.IdentityID.String()
	refuse := func(why string) {
		t.Helper()
		var problem struct{ Current protocol.Identity }
		resp := c.expect(409, "DELETE", path, nil)
		resp.into(t, &problem)
		if resp.Code != protocol.CodeConflict || problem.Current.IdentityID != only.IdentityID || problem.Current.Provider == nil || *problem.Current.Provider != "main" {
			t.Errorf("%s: %s", why, resp.body)
		}
	}
	refuse("nothing else signs in")
	w.storeIdentity(c, "person-7")
	refuse("the provider of the other identity is not configured")
	c.expect(200, "POST", "/auth/password", route.Object{"new_password": testPassword})
	c.session()
	refuse("a password without an address signs in to nothing")
	c.expect(200, "PUT", "/account/email", route.Object{"email": "ada@example.net"})
	c.expect(204, "DELETE", path, nil)
	w.client().login("ada@example.net")
}

func TestIdentitiesAreListedInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	var stored, listed []protocol.IdentityID
	for _, subject := range []string{"a", "b", "c"} {
		stored = append(stored, w.storeIdentity(ada, subject))
	}
	for path := "/account/identities?limit=2"; path != ""; {
		var list protocol.List[protocol.Identity]
		ada.expect(200, "GET", path, nil).into(t, &list)
		for _, identity := range list.Data {
			listed = append(listed, identity.IdentityID)
		}
		path = ""
		if list.HasMore {
			path = "/account/identities?limit=2&cursor=" + *list.NextCursor
			eve.expect(422, "GET", path, nil)
		}
	}
	if !slices.Equal(listed, stored) {
		t.Errorf("the pages have %v, want %v", listed, stored)
	}
}
