package http

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	stdhttp "net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"turnstone/persistence"
	"turnstone/protocol"
)

// OIDCProvider is an OpenID provider that people may sign in with, by configuration.
type OIDCProvider struct {
	Name         string // as in the path: /auth/oidc/{name}/start
	Issuer       string
	ClientID     string
	ClientSecret string
	Scopes       []string // openid is always asked for
}

const (
	flowLife        = 10 * time.Minute
	flowSecret      = 32
	providerTimeout = 10 * time.Second
	maxProviderBody = 1 << 20
	maxClaim        = 255
)

// boundedTransport reads at most maxProviderBody of an answer.
type boundedTransport struct{ next *stdhttp.Transport }

func (t boundedTransport) RoundTrip(r *stdhttp.Request) (*stdhttp.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxProviderBody), response.Body}
	}
	return response, err
}

func (p *providers) config(one *provider, found *oidc.Provider) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID}
	for _, scope := range one.Scopes {
		if scope != oidc.ScopeOpenID {
			scopes = append(scopes, scope)
		}
	}
	return &oauth2.Config{
		ClientID: one.ClientID, ClientSecret: one.ClientSecret, Endpoint: found.Endpoint(), Scopes: scopes,
		RedirectURL: p.redirect + "/auth/oidc/" + one.Name + "/callback",
	}
}

type oidcStartInput struct {
	Provider string `path:"provider" maxLength:"64"`
	ReturnTo string `query:"return_to" maxLength:"2048" default:"/" doc:"A path of this service to go to afterwards."`
	Link     bool   `query:"link" doc:"Links the identity to the signed-in account; needs a recent sign-in."`
}

// oidcStart sends the browser to the provider. What comes back is held against the state, the browser and the PKCE
// verifier of this one flow.
func (s *Server) oidcStart(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcStartInput) error {
	ctx := r.Context()
	one, found, err := s.providers.discover(ctx, in.Provider)
	if err != nil {
		return err
	}
	if !localPath(in.ReturnTo) {
		return protocol.Invalid("query.return_to", "must be a path of this service")
	}
	link, err := s.linkingAccount(r, in.Link)
	if err != nil {
		return err
	}
	state, browser, nonce, verifier := secretText(), secretText(), secretText(), oauth2.GenerateVerifier()
	err = s.DB.BeginOIDCFlow(ctx, &persistence.OIDCFlow{
		StateHash: s.bind("state", state), BrowserHash: s.bind("browser", browser), Provider: in.Provider,
		Verifier: verifier, Nonce: nonce, LinkAccount: link, ReturnTo: in.ReturnTo, ExpiresAt: s.now().Add(flowLife),
	})
	if err != nil {
		return err
	}
	setCookie(w.Header(), s.flowCookieName(), s.flowCookie(browser, int(flowLife.Seconds())))
	target := s.providers.config(one, found).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier))
	redirect(w, target)
	return nil
}

// linkingAccount is the account that another identity is to be linked to: the signed-in one, asked for by our own pages.
func (s *Server) linkingAccount(r *stdhttp.Request, link bool) (*protocol.AccountID, error) {
	if !link {
		return nil, nil //nolint:nilnil // a plain sign-in
	}
	ex := exchangeOf(r.Context())
	if err := s.authenticate(r.Context(), ex); err != nil {
		return nil, err
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		s.record(ex, persistence.EventOriginRefused)
		return nil, protocol.Errorf(protocol.CodeOrigin, "Requests of other sites are refused.")
	}
	if !ex.caller.recentlySignedIn(s.now()) {
		return nil, errReauthRequired()
	}
	s.keepYoung(r.Context(), ex)
	return &ex.caller.AccountID, nil
}

type oidcCallbackInput struct {
	Provider string `path:"provider" maxLength:"64"`
	State    string `query:"state" maxLength:"512"`
	Code     string `query:"code" maxLength:"4096"`
	Issuer   string `query:"iss" maxLength:"2048"`
	Failure  string `query:"error" maxLength:"256"`
}

// oidcCallback ends a flow. It changes state though it is a GET: the state works once, for the browser that began.
func (s *Server) oidcCallback(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcCallbackInput) error {
	ctx := r.Context()
	one, found, err := s.providers.discover(ctx, in.Provider)
	if err != nil {
		return err
	}
	flow, err := s.takeFlow(r, in)
	if err != nil {
		return err
	}
	setCookie(w.Header(), s.flowCookieName(), s.flowCookie("", -1))
	if in.Failure != "" || in.Code == "" || in.Issuer != "" && in.Issuer != one.Issuer {
		return s.refuseIdentity(ctx, errors.New("the provider refused, or another one answered"))
	}
	claims, err := s.redeem(ctx, one, found, flow, in.Code)
	if err != nil {
		return err
	}
	if flow.LinkAccount != nil {
		err = s.linkIdentity(ctx, *flow.LinkAccount, claims)
	} else {
		err = s.signInByIdentity(ctx, claims)
	}
	if err != nil {
		return err
	}
	redirect(w, flow.ReturnTo)
	return nil
}

// takeFlow finds the flow of a state and ends it. A state that is unknown, old, another provider's or another browser's
// is told alike.
func (s *Server) takeFlow(r *stdhttp.Request, in *oidcCallbackInput) (*persistence.OIDCFlow, error) {
	ex := exchangeOf(r.Context())
	var browser string
	if cookie, err := r.Cookie(s.flowCookieName()); err == nil {
		browser = cookie.Value
	}
	for version := range s.keys.versions() {
		flow, err := s.DB.TakeOIDCFlow(r.Context(), s.keys.bound(version, "state", in.State))
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		same := subtle.ConstantTimeCompare(flow.BrowserHash, s.keys.bound(version, "browser", browser)) == 1
		if same && flow.Provider == in.Provider && s.now().Before(flow.ExpiresAt) {
			return flow, nil
		}
	}
	s.record(ex, persistence.EventCSRFRefused)
	return nil, protocol.Errorf(protocol.CodeCSRF, "This sign-in was not begun here, or has ended. Begin again.")
}

// oidcClaims are what is taken from an identity token. The address is for display, and for a new account; it never
// finds an account.
type oidcClaims struct {
	persistence.Identity `json:"-"`

	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"` // a boolean; some providers send its text
	Name          string `json:"name"`
}

// redeem exchanges the code, under the verifier of the flow, for a token that says who it is, to us and for this flow.
func (s *Server) redeem(ctx context.Context, one *provider, found *oidc.Provider, flow *persistence.OIDCFlow, code string) (*oidcClaims, error) {
	ctx = oidc.ClientContext(ctx, s.providers.client)
	token, err := s.providers.config(one, found).Exchange(ctx, code, oauth2.VerifierOption(flow.Verifier))
	var answered *oauth2.RetrieveError
	switch {
	case errors.As(err, &answered) && answered.Response.StatusCode < stdhttp.StatusInternalServerError:
		return nil, s.refuseIdentity(ctx, err)
	case err != nil:
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("redeeming a code: %w", err)}
	}
	raw, _ := token.Extra("id_token").(string)
	identity, err := found.Verifier(&oidc.Config{ClientID: one.ClientID, Now: s.now}).Verify(ctx, raw)
	if err != nil {
		return nil, s.refuseIdentity(ctx, err)
	}
	claims := &oidcClaims{Identity: persistence.Identity{Issuer: identity.Issuer, Subject: identity.Subject}}
	if subtle.ConstantTimeCompare([]byte(identity.Nonce), []byte(flow.Nonce)) != 1 || len(identity.Subject) > maxClaim || identity.Subject == "" {
		return nil, s.refuseIdentity(ctx, errors.New("the token is not of this flow"))
	}
	if err := identity.Claims(claims); err != nil {
		return nil, s.refuseIdentity(ctx, err)
	}
	return claims, nil
}

func (s *Server) refuseIdentity(ctx context.Context, cause error) error {
	s.record(exchangeOf(ctx), persistence.EventSignInFailed)
	return &protocol.Error{Code: protocol.CodeUnauthenticated, Detail: "The provider did not sign you in.", Err: cause}
}

// signInByIdentity signs the account of an identity in, or makes one. An account with the same address is never touched, and
// does not stand in the way: docs/adr/0013.
func (s *Server) signInByIdentity(ctx context.Context, claims *oidcClaims) error {
	ex := exchangeOf(ctx)
	token, session := s.newToken(ex.agent)
	known, err := s.DB.CredentialsByIdentity(ctx, claims.Identity)
	switch {
	case err == nil && known.Disabled:
		return s.refuseIdentity(ctx, errors.New("the account is disabled"))
	case err == nil:
		err = s.DB.CreateSession(ctx, known.AccountID, session, ex.requester())
	case protocol.CodeOf(err) == protocol.CodeNotFound && !s.RegistrationOpen:
		return protocol.Errorf(protocol.CodeRegistrationClosed, "New accounts are not taken here.")
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		account := s.accountOf(claims)
		known = &persistence.Credentials{Account: account.Account}
		err = s.DB.Register(ctx, account, &claims.Identity, session, ex.requester())
	}
	if err != nil {
		return err
	}
	s.signIn(ctx, known.Account, token, session)
	if known.PasswordHash != nil { // only then the address is the account's sign-in name
		s.rememberOwn(ex)
	}
	return nil
}

// accountOf makes an account of what the provider says. Without an address that it has verified the account has none,
// and a key that no sign-in can spell.
func (s *Server) accountOf(claims *oidcClaims) *persistence.NewAccount {
	email := strings.TrimSpace(claims.Email)
	if claims.EmailVerified != true && claims.EmailVerified != "true" || checkEmail("", email) != nil {
		email = ""
	}
	name := strings.TrimSpace(claims.Name)
	switch _, trimmed, err := CheckAccount("name@example.com", name); {
	case err == nil && name != "":
		name = trimmed
	case email != "":
		name = defaultName(email)
	default:
		name = "New account"
	}
	account := s.newAccount(email, name)
	if email == "" {
		account.EmailKey = "oidc " + claims.Issuer + " " + claims.Subject
	}
	return account
}

// linkIdentity adds an identity to the account that began the flow, if its session still stands in this browser.
func (s *Server) linkIdentity(ctx context.Context, account protocol.AccountID, claims *oidcClaims) error {
	ex := exchangeOf(ctx)
	if err := s.authenticate(ctx, ex); err != nil {
		return err
	}
	if ex.caller.AccountID != account {
		return errUnauthenticated()
	}
	if err := s.DB.LinkIdentity(ctx, account, claims.Identity, ex.requester()); err != nil {
		return err
	}
	now := s.now()
	_, err := s.rotate(ctx, ex, &now) // the ways to sign in have changed
	return err
}

// bind is what is stored of a secret that the browser or the provider brings back.
func (s *Server) bind(what, secret string) []byte { return s.keys.bound(0, what, secret) }

func (k *keys) bound(version int, what, secret string) []byte {
	return sum(k.live[version].binding, []byte(what+" "), []byte(secret))
}

func secretText() string {
	b := make([]byte, flowSecret)
	_, _ = rand.Read(b) // never fails
	return encode(b)
}

func (s *Server) flowCookieName() string {
	if s.secure() {
		return "__Host-oidc"
	}
	return "oidc"
}

func (s *Server) flowCookie(value string, maxAge int) string {
	cookie := &stdhttp.Cookie{
		Name: s.flowCookieName(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(), SameSite: stdhttp.SameSiteLaxMode,
	}
	return cookie.String()
}

// turnsAway says that it is a person's browser, on its way to a provider or back, that is refused. Nobody reads a problem
// document there.
func turnsAway(r *stdhttp.Request) bool {
	return strings.HasPrefix(exchangeOf(r.Context()).pattern, "/auth/oidc/") && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// redirectToApp has the app tell in words what was refused.
func redirectToApp(w stdhttp.ResponseWriter, p *Problem) {
	w.Header().Del("Retry-After") // of a redirect it would mean to wait before following it
	redirect(w, "/?refused="+url.QueryEscape(string(p.Code)))
}

// localPath accepts only what a browser cannot take for another host.
func localPath(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.ContainsAny(path, "\\\r\n\t") && !strings.HasPrefix(path, "/\\")
}

func redirect(w stdhttp.ResponseWriter, target string) {
	w.Header().Set("Location", target)
	w.WriteHeader(stdhttp.StatusFound)
}
