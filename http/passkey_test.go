package http

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"turnstone/http/route"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// credentialExample is a response of an authenticator that no test verifies.
var credentialExample = route.Object{
	"id": "kx7bW3Uq0mY", "rawId": "kx7bW3Uq0mY", "type": "public-key",
	"response": route.Object{"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0", "authenticatorData": "SZYN5YgO", "signature": "MEUCIQ", "userHandle": "AZYN5YgO"},
}

const passkeyLifetime = 5 * time.Minute

// authenticator is a virtual authenticator with one passkey, as a browser at an origin uses it.
type authenticator struct {
	t       *testing.T
	party   virtualwebauthn.RelyingParty
	device  virtualwebauthn.Authenticator
	passkey virtualwebauthn.Credential
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	return &authenticator{
		t: t, party: virtualwebauthn.RelyingParty{ID: "turnstone.example", Name: "Turnstone", Origin: "https://turnstone.example"},
		device: virtualwebauthn.NewAuthenticator(), passkey: newPasskeyCredential(),
	}
}

// newPasskeyCredential returns a new key pair. The library leaves out leading zeros of the coordinates of a public key,
// which is then invalid, so such a key is not used.
func newPasskeyCredential() virtualwebauthn.Credential {
	const encoded = 77 // bytes
	for {
		if one := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(one.Key.AttestationData()) == encoded {
			return one
		}
	}
}

func (a *authenticator) object(text string) (object route.Object) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		a.t.Fatal(err)
	}
	return object
}

// create returns the credential of a new passkey for the options of a start.
func (a *authenticator) create(start *reply) route.Object {
	a.t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(string(start.body))
	if err != nil {
		a.t.Fatal(err, string(start.body))
	}
	a.device.Options.UserHandle = []byte(options.UserID)
	return a.object(virtualwebauthn.CreateAttestationResponse(a.party, a.device, a.passkey, *options))
}

// sign returns the credential with the signature of a challenge, and counts it.
func (a *authenticator) sign(start *reply) route.Object {
	a.t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(string(start.body))
	if err != nil {
		a.t.Fatal(err, string(start.body))
	}
	a.passkey.Counter++
	return a.object(virtualwebauthn.CreateAssertionResponse(a.party, a.device, a.passkey, *options))
}

func credential(of route.Object) route.Object { return route.Object{"credential": of} }

// addPasskey adds the passkey of an authenticator to the account of the client.
func (c *client) addPasskey(a *authenticator, name string) *protocol.Passkey {
	c.t.Helper()
	body := credential(a.create(c.expect(200, "POST", "/auth/passkeys/register/start", nil)))
	body["name"] = name
	var added protocol.AddedPasskey
	c.expect(201, "POST", "/auth/passkeys/register/finish", body).into(c.t, &added)
	c.csrf = added.Session.CSRFToken
	return &added.Passkey
}

func (c *client) startPasskey() *reply {
	c.t.Helper()
	return c.expect(200, "POST", "/auth/passkeys/sign-in/start", nil)
}

func (c *client) finishPasskey(signed route.Object) *reply {
	c.t.Helper()
	return c.do("POST", "/auth/passkeys/sign-in/finish", credential(signed))
}

func (c *client) passkeys() []protocol.Passkey {
	c.t.Helper()
	var list struct{ Data []protocol.Passkey }
	c.expect(200, "GET", "/account/passkeys", nil).into(c.t, &list)
	return list.Data
}

func TestAPasskeySignsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
	before := ada.token()
	start := ada.expect(200, "POST", "/auth/passkeys/register/start", nil)
	var options protocol.PasskeyCreation
	start.into(t, &options)
	if options.RelyingParty.ID != "turnstone.example" || options.Selection.ResidentKey != "required" || !options.Selection.RequireResidentKey ||
		options.Selection.UserVerification != "required" || options.User.Name != "ada@example.com" || options.User.DisplayName != "Some Body" ||
		options.Timeout != int(passkeyLifetime.Milliseconds()) || len(options.ExcludeCredentials) != 0 || len(options.Parameters) == 0 {
		t.Errorf("%+v", options)
	}
	for _, part := range []string{"__Host-passkey=", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=300"} {
		if !strings.Contains(start.header.Get("Set-Cookie"), part) {
			t.Errorf("cookie %q lacks %s", start.header.Get("Set-Cookie"), part)
		}
	}
	added := ada.addPasskey(key, " Work laptop ")
	if added.Name != "Work laptop" || added.LastUsedAt != nil || ada.token() == before || ada.cookies["__Host-passkey"] != "" {
		t.Errorf("%+v, cookies %v", added, ada.cookies)
	}
	ada.expect(200, "PUT", "/account/name", route.Object{"display_name": "Ada"}) // with the new CSRF token
	w.clock.advance(time.Minute)

	c := w.client()
	resp := c.finishPasskey(key.sign(c.startPasskey()))
	if resp.status != 200 || !strings.HasPrefix(c.token(), tokenPrefix) || c.cookies["__Host-passkey"] != "" {
		t.Fatalf("%d %s %v", resp.status, resp.body, resp.header)
	}
	c.storeSession(resp)
	if info := c.session(); info.Account.AccountID != ada.account.AccountID || info.Reauthenticated == nil {
		t.Errorf("%+v", info)
	}
	list := c.passkeys()
	if len(list) != 1 || list[0].PasskeyID != added.PasskeyID || list[0].LastUsedAt == nil || !list[0].LastUsedAt.Equal(w.clock.now()) {
		t.Errorf("%+v", list)
	}
	if events := w.events(ada.account.AccountID); !slices.Equal(events, []string{
		string(audit.EventRegistered), string(audit.EventSessionCreated), string(audit.EventPasskeyAdded), string(audit.EventReauthenticated), string(audit.EventSessionRotated),
		string(audit.EventPasskeyUsed), string(audit.EventSignedIn), string(audit.EventSessionCreated),
	}) {
		t.Errorf("audit %v", events)
	}
	// An authenticator does not create a second passkey for the account.
	ada.expect(200, "POST", "/auth/passkeys/register/start", nil).into(t, &options)
	if len(options.ExcludeCredentials) != 1 || options.ExcludeCredentials[0].ID != encode(key.passkey.ID) {
		t.Errorf("%+v", options.ExcludeCredentials)
	}
}

func TestASignInWithAPasskeyEndsThePreviousSessionOfTheBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
	ada.addPasskey(key, "Key")
	eve := w.client().register("eve@example.com")
	before := eve.twin()
	if resp := eve.finishPasskey(key.sign(eve.startPasskey())); resp.status != 200 {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	before.expect(401, "GET", "/auth/session", nil)
	if info := eve.session(); info.Account.AccountID != ada.account.AccountID {
		t.Errorf("%+v", info)
	}
}

func TestAPasskeyConfirmsASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
	ada.expect(409, "POST", "/auth/passkeys/reauthenticate/start", nil)
	id := ada.addPasskey(key, "Key").PasskeyID
	w.clock.advance(sudoLifetime)
	for _, path := range []string{"/auth/passkeys/register/start", "/auth/passkeys/register/finish"} {
		if resp := ada.do("POST", path, credential(route.Object{})); resp.status != 403 || resp.Code != protocol.CodeReauthRequired {
			t.Errorf("%s without a recent sign-in: %d %s", path, resp.status, resp.body)
		}
	}
	ada.expect(403, "DELETE", "/account/passkeys/"+id.String(), nil)
	before := ada.token()
	start := ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
	var options protocol.PasskeyRequest
	start.into(t, &options)
	if len(options.AllowCredentials) != 1 || options.AllowCredentials[0].ID != encode(key.passkey.ID) || options.UserVerification != "required" {
		t.Errorf("%+v", options)
	}
	ada.storeSession(ada.expect(200, "POST", "/auth/passkeys/reauthenticate/finish", credential(key.sign(start))))
	if info := ada.session(); info.Reauthenticated == nil || ada.token() == before {
		t.Errorf("%+v", info)
	}
	ada.expect(204, "DELETE", "/account/passkeys/"+id.String(), nil)
	if list := ada.passkeys(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if resp := w.client(); resp.finishPasskey(key.sign(resp.startPasskey())).status != 401 {
		t.Error("a removed passkey signs in")
	}
	events := w.events(ada.account.AccountID)
	if !slices.Equal(events[len(events)-4:], []string{string(audit.EventPasskeyUsed), string(audit.EventReauthenticated), string(audit.EventSessionRotated), string(audit.EventPasskeyRemoved)}) {
		t.Errorf("audit %v", events)
	}
}

func TestAPasskeyOfAnotherAccountDoesNotConfirm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	key, other := newAuthenticator(t), newAuthenticator(t)
	ada.addPasskey(key, "Key")
	eve.addPasskey(other, "Key")
	start := ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
	if resp := ada.do("POST", "/auth/passkeys/reauthenticate/finish", credential(other.sign(start))); resp.status != 422 {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	// A challenge belongs to the account that asked for it, even in the same browser.
	start = ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
	eve.cookies["__Host-passkey"] = ada.cookies["__Host-passkey"]
	if resp := eve.do("POST", "/auth/passkeys/reauthenticate/finish", credential(other.sign(start))); resp.status != 422 {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	third := newAuthenticator(t)
	start = ada.expect(200, "POST", "/auth/passkeys/register/start", nil)
	eve.cookies["__Host-passkey"] = ada.cookies["__Host-passkey"]
	if resp := eve.do("POST", "/auth/passkeys/register/finish", credential(third.create(start))); resp.status != 422 || len(eve.passkeys()) != 1 {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	// A credential belongs to one account.
	start = eve.expect(200, "POST", "/auth/passkeys/register/start", nil)
	eve.expect(409, "POST", "/auth/passkeys/register/finish", credential(key.create(start)))
}

func TestAnInvalidSignInWithAPasskeyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
	ada.addPasskey(key, "Key")
	var refusals []*reply
	refuse := func(name string, attempt func(c *client, a *authenticator) *reply) {
		t.Run(name, func(t *testing.T) {
			one := *key
			c := w.client()
			resp := attempt(c, &one)
			if resp.status != 401 || c.token() != "" {
				t.Errorf("%d %s", resp.status, resp.body)
			}
			refusals = append(refusals, resp)
			key.passkey.Counter = one.passkey.Counter
		})
	}
	refuse("the origin differs", func(c *client, a *authenticator) *reply {
		a.party.Origin = "https://turnstone.example.evil.example"
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the port differs", func(c *client, a *authenticator) *reply {
		a.party.Origin = "https://turnstone.example:8443"
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the domain differs", func(c *client, a *authenticator) *reply {
		a.party.ID = "evil.example"
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the passkey is unknown", func(c *client, _ *authenticator) *reply {
		other := newAuthenticator(t)
		other.device.Options.UserHandle = key.device.Options.UserHandle
		return c.finishPasskey(other.sign(c.startPasskey()))
	})
	refuse("the key differs", func(c *client, a *authenticator) *reply {
		a.passkey.Key = newPasskeyCredential().Key
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the user was not verified", func(c *client, a *authenticator) *reply {
		a.device.Options.UserNotVerified = true
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the user was not present", func(c *client, a *authenticator) *reply {
		a.device.Options.UserNotPresent = true
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("another account is named", func(c *client, a *authenticator) *reply {
		other := protocol.NewAccountID()
		a.device.Options.UserHandle = other[:]
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("no account is named", func(c *client, a *authenticator) *reply {
		a.device.Options.UserHandle = nil
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	refuse("the challenge is another one", func(c *client, a *authenticator) *reply {
		c.startPasskey()
		return c.finishPasskey(a.object(virtualwebauthn.CreateAssertionResponse(a.party, a.device, a.passkey, virtualwebauthn.AssertionOptions{Challenge: []byte(strings.Repeat("c", 32))})))
	})
	refuse("the challenge is of another browser", func(c *client, a *authenticator) *reply {
		c.startPasskey()
		return c.finishPasskey(a.sign(w.client().startPasskey()))
	})
	refuse("the challenge is used twice", func(c *client, a *authenticator) *reply {
		other := w.client()
		start := other.startPasskey()
		c.cookies["__Host-passkey"] = other.cookies["__Host-passkey"]
		signed := a.sign(start)
		if resp := other.finishPasskey(signed); resp.status != 200 {
			t.Errorf("the first use: %d %s", resp.status, resp.body)
		}
		return c.finishPasskey(signed)
	})
	refuse("the challenge has expired", func(c *client, a *authenticator) *reply {
		start := c.startPasskey()
		w.clock.advance(passkeyLifetime)
		return c.finishPasskey(a.sign(start))
	})
	refuse("the challenge is for a confirmation", func(c *client, a *authenticator) *reply {
		ada.login("ada@example.com")
		start := ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
		c.cookies["__Host-passkey"] = ada.cookies["__Host-passkey"]
		return c.finishPasskey(a.sign(start))
	})
	refuse("the signature is none", func(c *client, a *authenticator) *reply {
		signed := a.sign(c.startPasskey())
		signed["response"].(map[string]any)["signature"] = "AAAA"
		return c.finishPasskey(signed)
	})
	refuse("the response is garbage", func(c *client, a *authenticator) *reply {
		signed := a.sign(c.startPasskey())
		signed["response"].(map[string]any)["authenticatorData"] = "????"
		return c.finishPasskey(signed)
	})
	refuse("the account is disabled", func(c *client, a *authenticator) *reply {
		w.database.Admin(t, `update accounts set disabled_at = now() where account_id = $1`, ada.account.AccountID)
		defer w.database.Admin(t, `update accounts set disabled_at = null`)
		return c.finishPasskey(a.sign(c.startPasskey()))
	})
	for _, one := range refusals[1:] {
		if !alike(one, refusals[0]) {
			t.Errorf("refusals differ: %s and %s", one.body, refusals[0].body)
		}
	}
	c := w.client()
	if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 200 {
		t.Errorf("the passkey itself: %d %s", resp.status, resp.body)
	}
}

func TestACopiedAuthenticatorIsRefusedAndAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
	ada.addPasskey(key, "Key")
	copied := *key
	c := w.client()
	if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 200 {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	c = w.client()
	if resp := c.finishPasskey(copied.sign(c.startPasskey())); resp.status != 401 || c.token() != "" {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	start := ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
	copied.passkey.Counter = 0
	ada.expect(422, "POST", "/auth/passkeys/reauthenticate/finish", credential(copied.sign(start)))
	w.auth.WriteTallies(t.Context())
	if events := w.events(ada.account.AccountID); !contains(events, audit.EventPasskeyCloned) || !contains(events, audit.EventSignInFailed) {
		t.Errorf("audit %v", events)
	}
}

func TestAnInvalidPasskeyIsNotAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	for name, attempt := range map[string]func(a *authenticator, body route.Object) route.Object{
		"the origin differs": func(a *authenticator, body route.Object) route.Object {
			a.party.Origin = "https://evil.example"
			return body
		},
		"the domain differs": func(a *authenticator, body route.Object) route.Object { a.party.ID = "evil.example"; return body },
		"the user was not verified": func(a *authenticator, body route.Object) route.Object {
			a.device.Options.UserNotVerified = true
			return body
		},
		"the name is too long": func(_ *authenticator, body route.Object) route.Object {
			body["name"] = strings.Repeat("n", 101)
			return body
		},
		"the name has a control character": func(_ *authenticator, body route.Object) route.Object {
			body["name"] = "a\nb"
			return body
		},
		"the challenge has expired": func(_ *authenticator, body route.Object) route.Object {
			w.clock.advance(passkeyLifetime)
			return body
		},
		"the challenge is for a sign-in": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ada.login("ada@example.com")
			key := newAuthenticator(t)
			body := route.Object{}
			if attempt == nil {
				options := virtualwebauthn.AttestationOptions{}
				parsed, err := virtualwebauthn.ParseAssertionOptions(string(ada.startPasskey().body))
				if err != nil {
					t.Fatal(err)
				}
				options.Challenge = parsed.Challenge
				body["credential"] = key.object(virtualwebauthn.CreateAttestationResponse(key.party, key.device, key.passkey, options))
			} else {
				start := ada.expect(200, "POST", "/auth/passkeys/register/start", nil)
				body = attempt(key, body)
				body["credential"] = key.create(start)
			}
			if resp := ada.do("POST", "/auth/passkeys/register/finish", body); resp.status != 422 || len(ada.passkeys()) != 0 {
				t.Errorf("%d %s", resp.status, resp.body)
			}
		})
	}
	key := newAuthenticator(t)
	start := ada.expect(200, "POST", "/auth/passkeys/register/start", nil)
	cookie := ada.cookies["__Host-passkey"]
	body := credential(key.create(start))
	var added protocol.AddedPasskey
	ada.expect(201, "POST", "/auth/passkeys/register/finish", body).into(t, &added)
	if added.Passkey.Name != "Passkey" {
		t.Errorf("the default name is %q", added.Passkey.Name)
	}
	ada.csrf, ada.cookies["__Host-passkey"] = added.Session.CSRFToken, cookie
	ada.expect(422, "POST", "/auth/passkeys/register/finish", body)
}

func TestPasskeysAreRenamedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve, key := w.client().register("ada@example.com"), w.client().register("eve@example.com"), newAuthenticator(t)
	path := "/account/passkeys/" + ada.addPasskey(key, "Key").PasskeyID.String()
	for _, name := range []string{"", " ", strings.Repeat("n", 101), "a\x07"} {
		ada.expect(422, "PATCH", path, route.Object{"name": name})
	}
	renamed := ada.expect(200, "PATCH", path, route.Object{"name": " Phone "}, "If-Match", `"v1"`)
	if renamed.header.Get("ETag") != `"v2"` {
		t.Errorf("%v", renamed.header)
	}
	ada.expect(200, "PATCH", path, route.Object{"name": "Phone", "version": 2}) // changes nothing
	for _, stale := range []*reply{
		ada.expect(409, "PATCH", path, route.Object{"name": "Tablet"}, "If-Match", `"v1"`),
		ada.expect(409, "DELETE", path, nil, "If-Match", `"v1"`),
	} {
		if stale.Code != protocol.CodeStaleVersion || !strings.Contains(string(stale.body), `"name":"Phone"`) || !strings.Contains(string(stale.body), `"version":2`) {
			t.Errorf("%s", stale.body)
		}
	}
	if list := ada.passkeys(); len(list) != 1 || list[0].Name != "Phone" {
		t.Errorf("%+v", list)
	}
	eve.expect(404, "PATCH", path, route.Object{"name": "Mine"})
	eve.expect(404, "DELETE", path, nil)
	w.database.Admin(t, `update accounts set password_hash = null where account_id = $1`, ada.account.AccountID)
	if resp := ada.do("DELETE", path, nil); resp.status != 409 || resp.Code != protocol.CodeConflict || !strings.Contains(string(resp.body), `"current":{"passkey_id"`) {
		t.Errorf("the last way to sign in: %d %s", resp.status, resp.body)
	}
	second := ada.addPasskey(newAuthenticator(t), "Second")
	ada.expect(204, "DELETE", path, nil)
	ada.expect(404, "DELETE", path, nil)
	if list := ada.passkeys(); len(list) != 1 || list[0].PasskeyID != second.PasskeyID {
		t.Errorf("%+v", list)
	}
}

func TestAnAccountHasTwentyPasskeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	late := newAuthenticator(t)
	start := ada.expect(200, "POST", "/auth/passkeys/register/start", nil)
	cookie := ada.cookies["__Host-passkey"]
	for i := range accounts.MaxPasskeys {
		ada.addPasskey(newAuthenticator(t), fmt.Sprint("Key ", i))
	}
	if resp := ada.expect(409, "POST", "/auth/passkeys/register/start", nil); !strings.Contains(string(resp.body), `"current":{"limit":20,"used":20}`) {
		t.Errorf("%s", resp.body)
	}
	ada.cookies["__Host-passkey"] = cookie
	ada.expect(409, "POST", "/auth/passkeys/register/finish", credential(late.create(start)))
}

func TestPasskeysAtALoopbackAddressAreThoseOfLocalhost(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1:8080", "[::1]:8080", "localhost:8080"} {
		w := newWorld(t, func(c *testConfig) { c.BaseURL = &url.URL{Scheme: "http", Host: host} })
		ada, key := w.client().register("ada@example.com"), newAuthenticator(t)
		key.party.ID, key.party.Origin = "localhost", "http://localhost:8080"
		ada.addPasskey(key, "Key")
		c := w.client()
		if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 200 {
			t.Errorf("%s: %d %s", host, resp.status, resp.body)
		}
		key.party.Origin = "http://localhost:8081"
		if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 401 {
			t.Errorf("%s, another port: %d %s", host, resp.status, resp.body)
		}
	}
	w := newWorld(t, func(c *testConfig) { c.BaseURL = &url.URL{Scheme: "https", Host: "192.0.2.7"} })
	ada := w.client().register("ada@example.com")
	ada.expect(409, "POST", "/auth/passkeys/register/start", nil)
	ada.expect(409, "POST", "/auth/passkeys/sign-in/start", nil)
	ada.expect(409, "POST", "/auth/passkeys/sign-in/finish", credential(credentialExample))
}

func TestSignInsWithAPasskeyAreLimited(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	ada, known, unknown := w.client().register("ada@example.com"), newAuthenticator(t), newAuthenticator(t)
	ada.addPasskey(known, "Key")
	unknown.device = known.device
	known.party.Origin = "https://evil.example"
	for _, key := range []*authenticator{known, unknown} { // the limit does not reveal whether the passkey exists
		for range 5 {
			c := w.client()
			if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 401 {
				t.Fatalf("%d %s", resp.status, resp.body)
			}
		}
		c := w.client()
		if resp := c.finishPasskey(key.sign(c.startPasskey())); resp.status != 429 || resp.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", resp.status, resp.body)
		}
	}
	// Another network, with the right origin.
	known.party.Origin = "https://turnstone.example"
	c := w.client().at("198.51.100.7")
	if resp := c.finishPasskey(known.sign(c.startPasskey())); resp.status != 200 {
		t.Errorf("%d %s", resp.status, resp.body)
	}
	// Confirmations share the limit of the password of the session.
	known.party.Origin = "https://evil.example"
	for i := range 6 {
		start := ada.expect(200, "POST", "/auth/passkeys/reauthenticate/start", nil)
		want := 422
		if i == 5 {
			want = 429
		}
		ada.expect(want, "POST", "/auth/passkeys/reauthenticate/finish", credential(known.sign(start)))
	}
	ada.expect(429, "POST", "/auth/reauthenticate", route.Object{"password": testPassword})
}
