// Package oidctest provides an OpenID provider for tests: discovery, keys, authorization and token endpoints, with
// PKCE, over real HTTP. It can be set to misbehave in the ways that a relying party has to detect. Only tests import
// it.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	keyBits       = 2048
	tokenLifetime = 5 * time.Minute
)

// Credentials of the only client of the provider.
const (
	ClientID     = "turnstone-test"
	ClientSecret = "a secret of the test"
)

// Person is the user who signs in at the provider.
type Person struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
}

// Faults makes a provider misbehave. With the zero value it behaves correctly.
type Faults struct {
	Nonce     string // replaces the requested nonce
	Audience  string // replaces the client
	Issuer    string // replaces the issuer in the token
	Expired   bool
	WrongKey  bool // signs with a key that it does not publish
	Down      bool // the token endpoint responds 503
	NoIDToken bool
}

// Provider is an OpenID provider that runs until the test ends.
type Provider struct {
	Issuer string

	key, other *rsa.PrivateKey
	now        func() time.Time

	mu              sync.Mutex
	person          Person           // guarded by mu
	requiresConsent bool             // guarded by mu
	faults          Faults           // guarded by mu
	codes           map[string]grant // guarded by mu
}

// grant is stored for an authorization code: the person who signed in, and the parameters of the authorization request.
type grant struct {
	person  Person
	request url.Values
}

// New starts a provider that takes the time from now.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{now: now, codes: map[string]grant{}, key: newKey(t), other: newKey(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("GET /answer", p.consentGiven)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewUnstartedServer(mux)
	p.Issuer = "http://" + server.Listener.Addr().String()
	server.Start()
	t.Cleanup(server.Close)
	return p
}

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// SignIn sets the person who signs in from now on, and the faults of the provider.
func (p *Provider) SignIn(person Person, faults Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person, p.faults = person, faults
}

// RequireConsent makes the provider show a page from now on, on which the user enters name and address, or declines.
func (p *Provider) RequireConsent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requiresConsent = true
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"jwks_uri": p.Issuer + "/keys", "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize signs the person in without interaction, and redirects the browser back with a code. After RequireConsent
// it shows the page instead.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" ||
		query.Get("state") == "" || query.Get("nonce") == "" || !strings.Contains(query.Get("scope"), "openid") {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	requiresConsent, person := p.requiresConsent, p.person
	p.mu.Unlock()
	if requiresConsent {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, r.URL.RawQuery) // the test fails if the browser has disconnected
		return
	}
	p.sendBack(w, r, query, url.Values{"code": {p.codeFor(grant{person, query})}})
}

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<title>Harbour</title>
<h1>Harbour</h1>
<form action="/answer">
<input type="hidden" name="request" value="{{.}}">
<p><label>Name <input name="name"></label>
<p><label>E-mail <input name="email"></label>
<p><button name="answer" value="allow">Allow</button> <button name="answer" value="decline">Decline</button>
</form>
</html>
`))

// consentGiven handles the form of the page. The email address identifies the person.
func (p *Provider) consentGiven(w http.ResponseWriter, r *http.Request) {
	request, err := url.ParseQuery(r.FormValue("request"))
	if err != nil {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	if r.FormValue("answer") != "allow" {
		p.sendBack(w, r, request, url.Values{"error": {"access_denied"}})
		return
	}
	email := r.FormValue("email")
	person := Person{Subject: "owner of " + email, Email: email, EmailVerified: true, Name: r.FormValue("name")}
	p.sendBack(w, r, request, url.Values{"code": {p.codeFor(grant{person, request})}})
}

func (p *Provider) codeFor(g grant) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = g
	return code
}

func (p *Provider) sendBack(w http.ResponseWriter, r *http.Request, request, with url.Values) {
	with.Set("state", request.Get("state"))
	with.Set("iss", p.Issuer)
	http.Redirect(w, r, request.Get("redirect_uri")+"?"+with.Encode(), http.StatusFound)
}

// token redeems a code, once, for the client that has the verifier of its challenge.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	given, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	switch {
	case p.faults.Down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case id != ClientID || secret != url.QueryEscape(ClientSecret):
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	case !known || given.request.Get("code_challenge") != encode(challenge[:]) || given.request.Get("redirect_uri") != r.PostFormValue("redirect_uri"):
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	body := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(tokenLifetime.Seconds())}
	if !p.faults.NoIDToken {
		body["id_token"] = p.identity(given)
	}
	writeJSON(w, body)
}

// identity returns the signed identity token. mu must be held.
func (p *Provider) identity(given grant) string {
	now := p.now()
	claims := map[string]any{
		"iss": or(p.faults.Issuer, p.Issuer), "aud": or(p.faults.Audience, ClientID), "nonce": or(p.faults.Nonce, given.request.Get("nonce")),
		"sub": given.person.Subject, "email": given.person.Email, "email_verified": given.person.EmailVerified, "name": given.person.Name,
		"iat": now.Unix(), "exp": now.Add(tokenLifetime).Unix(),
	}
	if p.faults.Expired {
		claims["exp"] = now.Add(-tokenLifetime).Unix()
	}
	key := p.key
	if p.faults.WrongKey {
		key = p.other
	}
	header, _ := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": "1"}) // plain maps always encode
	payload, _ := json.Marshal(claims)
	signed := encode(header) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		panic("oidctest: signing: " + err.Error())
	}
	return signed + "." + encode(signature)
}

func or(faulty, correct string) string {
	if faulty != "" {
		return faulty
	}
	return correct
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the test fails if the client has disconnected
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
}
