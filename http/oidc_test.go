package http

import (
	stdhttp "net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/http/oidctest"
	"turnstone/persistence"
	"turnstone/protocol"
)

// oidcWorld is a world with one provider.
func oidcWorld(t *testing.T, change ...func(*Config)) (*world, *oidctest.Provider) {
	t.Helper()
	clock := &testClock{at: time.Now().Truncate(time.Millisecond)}
	provider := oidctest.New(t, clock.now)
	w := newWorld(t, append([]func(*Config){func(c *Config) {
		c.Now = clock.now
		c.Providers = []OIDCProvider{{
			Name: "main", Issuer: provider.Issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Scopes: []string{"email", "profile"},
		}, {Name: "other", Issuer: "http://127.0.0.1:1", ClientID: "x"}}
	}}, change...)...)
	w.clock = clock
	t.Cleanup(w.Server.providers.client.CloseIdleConnections)
	return w, provider
}

// atProvider follows the redirect of the start as a browser does, up to the way back.
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
		c.t.Fatalf("the provider answers %d, sends to %q", response.StatusCode, back)
	}
	return strings.TrimPrefix(back, "https://turnstone.example")
}

func (c *client) oidc(query string) *reply {
	c.t.Helper()
	return c.do("GET", c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start"+query, nil)), nil)
}

var person = oidctest.Person{Subject: "person-1", Email: "ada@example.com", EmailVerified: true, Name: "Ada"}

func TestAProvidersIdentityMakesAnAccountAndFindsItAgain(t *testing.T) {
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	c := w.client()
	answer := c.oidc("?return_to=/c/new")
	if answer.status != 302 || answer.header.Get("Location") != "/c/new" || c.cookies["__Host-oidc"] != "" {
		t.Fatalf("%d %v %s", answer.status, answer.header, answer.body)
	}
	first := c.session().Account
	if first.Email != "ada@example.com" || first.DisplayName != "Ada" {
		t.Errorf("account %+v", first)
	}
	again := w.client()
	again.oidc("")
	if again.session().Account.AccountID != first.AccountID {
		t.Error("another account for the same identity")
	}
	if !contains(w.events(first.AccountID), persistence.EventIdentityLinked) {
		t.Error("the link is not in the audit")
	}
	// An account without a password sets its first one after a recent sign-in only.
	w.clock.advance(sudoLife)
	body := object{"new_password": "a first password"}
	again.expect(403, "POST", "/auth/password", body)
	again.oidc("")
	again.session()
	again.expect(200, "POST", "/auth/password", body)
	w.client().expect(200, "POST", "/auth/login", object{"email": "ada@example.com", "password": "a first password"})
}

func TestAnAddressThatMatchesNeverLinks(t *testing.T) {
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
	// The address signs the account with a password in, and only that one.
	if answer := owner.do("POST", "/auth/password", object{"new_password": "a first password"}); answer.status != 409 || answer.Code != protocol.CodeEmailTaken {
		t.Errorf("a second password with one address: %d %s", answer.status, answer.body)
	}
	owner.session()
	w.client().expect(401, "POST", "/auth/login", object{"email": person.Email, "password": "a first password"})
	if in := w.client().login(person.Email); in.account != squatter.account {
		t.Errorf("the password signs %+v in", in.account)
	}
	w.client().expect(409, "POST", "/auth/register", object{"email": person.Email, "password": testPassword, "display_name": "B"})
}

func TestAnAccountOfAProviderLeavesItsAddressToAPassword(t *testing.T) {
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	owner := w.client()
	owner.oidc("")
	other := w.client().register(person.Email)
	if owner.session().Account.AccountID == other.account.AccountID {
		t.Error("registering an address has taken an account over")
	}
}

func TestOnlyASignedInAccountLinks(t *testing.T) {
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{})
	w.client().expect(401, "GET", "/auth/oidc/main/start?link=true", nil)
	ada := w.client().register("ada@example.com")
	ada.expect(403, "GET", "/auth/oidc/main/start?link=true", nil, "Sec-Fetch-Site", "cross-site")
	w.clock.advance(sudoLife)
	ada.expect(403, "GET", "/auth/oidc/main/start?link=true", nil)
	ada.keep(ada.expect(200, "POST", "/auth/reauthenticate", object{"password": testPassword}))
	before := ada.token()
	if answer := ada.oidc("?link=true"); answer.status != 302 {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	if ada.session(); ada.token() == before {
		t.Error("the token was not replaced though the ways to sign in changed")
	}
	other := w.client()
	other.oidc("")
	if other.session().Account.AccountID != ada.account.AccountID {
		t.Error("the linked identity signs another account in")
	}
	eve := w.client().register("eve@example.com")
	if answer := eve.oidc("?link=true"); answer.status != 409 {
		t.Errorf("another account's identity: %d %s", answer.status, answer.body)
	}
	// The flow belongs to the account that began it.
	bob := w.client().register("bob@example.com")
	back := bob.atProvider(bob.expect(302, "GET", "/auth/oidc/main/start?link=true", nil))
	bob.cookies[bob.cookieName()] = eve.token()
	bob.expect(401, "GET", back, nil)
}

func TestASignInAtAProviderIsRefusedWhen(t *testing.T) {
	w, provider := oidcWorld(t)
	for name, faults := range map[string]oidctest.Faults{
		"the nonce is another":       {Nonce: "other"},
		"the token is for another":   {Audience: "other"},
		"the token is of another":    {Issuer: "https://other.example"},
		"the token is old":           {Expired: true},
		"the key is not published":   {WrongKey: true},
		"there is no identity token": {NoIDToken: true},
	} {
		t.Run(name, func(t *testing.T) {
			provider.SignIn(person, faults)
			c := w.client()
			if answer := c.oidc(""); answer.status != 401 || c.token() != "" {
				t.Errorf("%d %s", answer.status, answer.body)
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
	t.Run("the state is another", func(t *testing.T) {
		c, back := begin()
		c.expect(403, "GET", change(back, "state", "other"), nil)
	})
	t.Run("the browser is another", func(t *testing.T) {
		_, back := begin()
		w.client().expect(403, "GET", back, nil)
	})
	t.Run("the state comes twice", func(t *testing.T) {
		c, back := begin()
		cookie := c.cookies["__Host-oidc"]
		c.expect(302, "GET", back, nil)
		c.cookies["__Host-oidc"] = cookie
		c.expect(403, "GET", back, nil)
	})
	t.Run("it took too long", func(t *testing.T) {
		c, back := begin()
		w.clock.advance(flowLife)
		c.expect(403, "GET", back, nil)
	})
	t.Run("the verifier is another", func(t *testing.T) {
		c, back := begin()
		w.database.Admin(t, `update oidc_flows set verifier = 'another verifier of forty-three characters or more'`)
		c.expect(401, "GET", back, nil)
	})
	t.Run("another provider answers", func(t *testing.T) {
		c, back := begin()
		c.expect(401, "GET", change(back, "iss", "https://other.example"), nil)
	})
	t.Run("the person declined", func(t *testing.T) {
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

func TestABrowserThatIsTurnedAwayIsSentToTheAppWithTheReason(t *testing.T) {
	w, provider := oidcWorld(t)
	provider.SignIn(person, oidctest.Faults{NoIDToken: true})
	c := w.client()
	back := c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil, "Sec-Fetch-Mode", "navigate"))
	for _, one := range []struct{ path, told string }{
		{back, "unauthenticated"},
		{back, "csrf"}, // the state works once
		{"/auth/oidc/main/callback?state=other&error=access_denied", "csrf"},
		{"/auth/oidc/other/start", "unavailable"},
		{"/auth/oidc/unknown/start", "not_found"},
		{"/auth/oidc/main/start?link=true", "unauthenticated"},
	} {
		answer := c.expect(302, "GET", one.path, nil, "Sec-Fetch-Mode", "navigate")
		if answer.header.Get("Location") != "/?refused="+one.told || answer.header.Get("Retry-After") != "" || c.token() != "" || len(answer.body) > 0 {
			t.Errorf("%s: %v %s", one.path, answer.header, answer.body)
		}
	}
	again := c.atProvider(c.expect(302, "GET", "/auth/oidc/main/start", nil))
	if to := c.expect(302, "GET", again+"&error=access_denied", nil, "Sec-Fetch-Mode", "navigate").header.Get("Location"); to != "/?refused=unauthenticated" {
		t.Errorf("who declined is sent to %s", to)
	}
}

func TestClosedRegistrationHoldsForProvidersToo(t *testing.T) {
	w, provider := oidcWorld(t, func(c *Config) { c.RegistrationOpen = false })
	provider.SignIn(person, oidctest.Faults{})
	if answer := w.client().oidc(""); answer.status != 403 || answer.Code != protocol.CodeRegistrationClosed {
		t.Errorf("%d %s", answer.status, answer.body)
	}
}
