// Package oidctest is an OpenID provider for tests: discovery, keys, authorization and token, with PKCE, over real HTTP.
// It can be told to misbehave in the ways that a relying party has to notice. Only tests import it.
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
	keyBits  = 2048
	tokenFor = 5 * time.Minute
)

// What the provider knows its one client by.
const (
	ClientID     = "turnstone-test"
	ClientSecret = "a secret of the test"
)

// Person is who is in front of the provider.
type Person struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
}

// Faults are what a dishonest or broken provider does. The zero value is an honest one.
type Faults struct {
	Nonce     string // put in place of the nonce that was asked for
	Audience  string // put in place of the client
	Issuer    string // put in place of the issuer, in the token
	Expired   bool
	WrongKey  bool // signs with a key that it does not publish
	Down      bool // answers 503 at the token endpoint
	NoIDToken bool
}

// Provider runs until the test ends.
type Provider struct {
	Issuer string

	key, other *rsa.PrivateKey
	now        func() time.Time

	mu     sync.Mutex
	person Person           // guarded by mu
	asks   bool             // guarded by mu
	faults Faults           // guarded by mu
	codes  map[string]grant // guarded by mu
}

// grant is what a code stands for: who signed in, and what it was asked for with.
type grant struct {
	person Person
	asked  url.Values
}

// New starts a provider whose clock is now.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{now: now, codes: map[string]grant{}, key: newKey(t), other: newKey(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("GET /answer", p.answered)
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

// SignIn says who signs in from now on, and what goes wrong.
func (p *Provider) SignIn(person Person, faults Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person, p.faults = person, faults
}

// Ask has it ask everybody who they are, on a page of its own, where they may also decline.
func (p *Provider) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asks = true
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"jwks_uri": p.Issuer + "/keys", "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize signs the person in without a word and sends the browser back with a code, or asks first.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" ||
		query.Get("state") == "" || query.Get("nonce") == "" || !strings.Contains(query.Get("scope"), "openid") {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	asks, person := p.asks, p.person
	p.mu.Unlock()
	if asks {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, r.URL.RawQuery) // a browser that is gone is its test's business
		return
	}
	p.sendBack(w, r, query, url.Values{"code": {p.codeFor(grant{person, query})}})
}

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<title>Harbour</title>
<h1>Harbour</h1>
<form action="/answer">
<input type="hidden" name="asked" value="{{.}}">
<p><label>Name <input name="name"></label>
<p><label>E-mail <input name="email"></label>
<p><button name="answer" value="allow">Allow</button> <button name="answer" value="decline">Decline</button>
</form>
</html>
`))

// answered takes what somebody wrote into the page. Who comes with the same address is the same person.
func (p *Provider) answered(w http.ResponseWriter, r *http.Request) {
	asked, err := url.ParseQuery(r.FormValue("asked"))
	if err != nil {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	if r.FormValue("answer") != "allow" {
		p.sendBack(w, r, asked, url.Values{"error": {"access_denied"}})
		return
	}
	email := r.FormValue("email")
	person := Person{Subject: "who has " + email, Email: email, EmailVerified: true, Name: r.FormValue("name")}
	p.sendBack(w, r, asked, url.Values{"code": {p.codeFor(grant{person, asked})}})
}

func (p *Provider) codeFor(g grant) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = g
	return code
}

func (p *Provider) sendBack(w http.ResponseWriter, r *http.Request, asked, with url.Values) {
	with.Set("state", asked.Get("state"))
	with.Set("iss", p.Issuer)
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+with.Encode(), http.StatusFound)
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
	case !known || given.asked.Get("code_challenge") != encode(challenge[:]) || given.asked.Get("redirect_uri") != r.PostFormValue("redirect_uri"):
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	body := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(tokenFor.Seconds())}
	if !p.faults.NoIDToken {
		body["id_token"] = p.identity(given)
	}
	answer(w, body)
}

// identity makes the signed token. Called under mu.
func (p *Provider) identity(given grant) string {
	now := p.now()
	claims := map[string]any{
		"iss": or(p.faults.Issuer, p.Issuer), "aud": or(p.faults.Audience, ClientID), "nonce": or(p.faults.Nonce, given.asked.Get("nonce")),
		"sub": given.person.Subject, "email": given.person.Email, "email_verified": given.person.EmailVerified, "name": given.person.Name,
		"iat": now.Unix(), "exp": now.Add(tokenFor).Unix(),
	}
	if p.faults.Expired {
		claims["exp"] = now.Add(-tokenFor).Unix()
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

func or(instead, honest string) string {
	if instead != "" {
		return instead
	}
	return honest
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone is its test's business
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
}
