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
	person Person                // guarded by mu
	faults Faults                // guarded by mu
	codes  map[string]url.Values // guarded by mu: what each code was asked for with
}

// New starts a provider whose clock is now.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{now: now, codes: map[string]url.Values{}, key: newKey(t), other: newKey(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.Issuer = server.URL
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

// authorize signs the person in without a word and sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" ||
		query.Get("state") == "" || query.Get("nonce") == "" || !strings.Contains(query.Get("scope"), "openid") {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = query
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.Issuer}}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token redeems a code, once, for the client that has the verifier of its challenge.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.codes[r.PostFormValue("code")]
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
	case asked == nil || asked.Get("code_challenge") != encode(challenge[:]) || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri"):
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	body := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(tokenFor.Seconds())}
	if !p.faults.NoIDToken {
		body["id_token"] = p.identity(asked)
	}
	answer(w, body)
}

// identity makes the signed token. Called under mu.
func (p *Provider) identity(asked url.Values) string {
	now := p.now()
	claims := map[string]any{
		"iss": or(p.faults.Issuer, p.Issuer), "aud": or(p.faults.Audience, ClientID), "nonce": or(p.faults.Nonce, asked.Get("nonce")),
		"sub": p.person.Subject, "email": p.person.Email, "email_verified": p.person.EmailVerified, "name": p.person.Name,
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
