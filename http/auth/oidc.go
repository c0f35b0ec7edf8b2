package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	stdhttp "net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Provider configures an OpenID provider with which people can sign in.
type Provider struct {
	Name         string // in the path: /auth/oidc/{name}/start
	Issuer       string
	ClientID     string
	ClientSecret string
	Scopes       []string // in addition to openid, which is always requested
}

const (
	flowLifetime    = 10 * time.Minute
	flowSecret      = 32
	providerTimeout = 10 * time.Second
	maxProviderBody = 1 << 20
	maxClaim        = 255
)

// boundedTransport reads at most maxProviderBody bytes of a response.
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

func (p *providers) config(idp *provider, metadata *oidc.Provider) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID}
	for _, scope := range idp.Scopes {
		if scope != oidc.ScopeOpenID {
			scopes = append(scopes, scope)
		}
	}
	return &oauth2.Config{
		ClientID: idp.ClientID, ClientSecret: idp.ClientSecret, Endpoint: metadata.Endpoint(), Scopes: scopes,
		RedirectURL: p.redirect + "/auth/oidc/" + idp.Name + "/callback",
	}
}

// OIDC signs people in with OpenID providers.
type OIDC struct {
	service     *Service
	providers   *providers
	flows       Flows
	credentials Credentials
	identities  Identities
}

// Page returns the address of a provider's page for sign-ins, without a sign-in. Its errors are those of Start.
func (o *OIDC) Page(ctx context.Context, name, returnTo string) (target string, err error) {
	_, metadata, err := o.discover(ctx, name, returnTo)
	if err != nil {
		return "", err
	}
	return metadata.Endpoint().AuthURL, nil
}

func (o *OIDC) discover(ctx context.Context, name, returnTo string) (*provider, *oidc.Provider, error) {
	idp, metadata, err := o.providers.discover(ctx, name)
	if err == nil && !localPath(returnTo) {
		err = protocol.Invalid("query.return_to", "must be a path of this service")
	}
	return idp, metadata, err
}

// Start begins a sign-in with a provider and returns the address of the provider to which the browser is redirected.
// Finish accepts only a response with the state, from the browser and for the PKCE verifier of this one flow.
func (o *OIDC) Start(ctx context.Context, r *stdhttp.Request, req *Request, name, returnTo string, linking bool) (target string, err error) {
	idp, metadata, err := o.discover(ctx, name, returnTo)
	if err != nil {
		return "", err
	}
	link, err := o.linkingAccount(ctx, r, req, linking)
	if err != nil {
		return "", err
	}
	state, browser, nonce, verifier := secretText(), secretText(), secretText(), oauth2.GenerateVerifier()
	err = o.flows.BeginOIDCFlow(ctx, &accounts.OIDCFlow{
		StateHash: o.service.keys.bound(0, "state", state), BrowserHash: o.service.keys.bound(0, "browser", browser), Provider: name,
		Verifier: verifier, Nonce: nonce, LinkAccount: link, ReturnTo: returnTo, ExpiresAt: o.service.now().Add(flowLifetime),
	})
	if err != nil {
		return "", err
	}
	o.service.cookies.set(req.Header, flowCookie, browser, int(flowLifetime.Seconds()))
	return o.providers.config(idp, metadata).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// linkingAccount returns the account to which another identity is to be linked: the signed-in one, if a page of this
// service requests it. It returns nil for a plain sign-in.
func (o *OIDC) linkingAccount(ctx context.Context, r *stdhttp.Request, req *Request, link bool) (*protocol.AccountID, error) {
	if !link {
		return nil, nil // a plain sign-in
	}
	if err := o.service.Authenticate(ctx, req); err != nil {
		return nil, err
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		o.service.Record(req, audit.EventOriginRefused)
		return nil, protocol.Errorf(protocol.CodeOrigin, "Requests from other sites are refused.")
	}
	if !req.Caller.RecentlySignedIn(o.service.now()) {
		return nil, ErrReauthRequired()
	}
	o.service.Refresh(ctx, req)
	return &req.Caller.AccountID, nil
}

// Callback is the response of a provider to a flow, from the query of the callback.
type Callback struct{ Provider, State, Code, Issuer, Failure string }

// Finish completes a flow and returns the path of this service to which the browser is redirected. It changes state
// although the request is a GET; the state works once, and only for the browser that started the flow.
func (o *OIDC) Finish(ctx context.Context, r *stdhttp.Request, req *Request, in *Callback) (returnTo string, err error) {
	idp, metadata, err := o.providers.discover(ctx, in.Provider)
	if err != nil {
		return "", err
	}
	flow, err := o.takeFlow(ctx, r, req, in)
	if err != nil {
		return "", err
	}
	o.service.cookies.set(req.Header, flowCookie, "", -1)
	if in.Failure != "" || in.Code == "" || in.Issuer != "" && in.Issuer != idp.Issuer {
		return "", o.refuseIdentity(req, errProviderRefused)
	}
	claims, err := o.redeem(ctx, req, idp, metadata, flow, in.Code)
	if err != nil {
		return "", err
	}
	if flow.LinkAccount != nil {
		err = o.linkIdentity(ctx, req, *flow.LinkAccount, claims)
	} else {
		err = o.signInByIdentity(ctx, req, claims)
	}
	return flow.ReturnTo, err
}

// takeFlow returns the flow of a state and deletes it. A state that is unknown or expired, or belongs to another
// provider or browser, always gets the same error.
func (o *OIDC) takeFlow(ctx context.Context, r *stdhttp.Request, req *Request, in *Callback) (*accounts.OIDCFlow, error) {
	browser := o.service.cookies.of(r, flowCookie)
	for version := range o.service.keys.Versions() {
		flow, err := o.flows.TakeOIDCFlow(ctx, o.service.keys.bound(version, "state", in.State))
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		same := subtle.ConstantTimeCompare(flow.BrowserHash, o.service.keys.bound(version, "browser", browser)) == 1
		if same && flow.Provider == in.Provider && o.service.now().Before(flow.ExpiresAt) {
			return flow, nil
		}
	}
	o.service.Record(req, audit.EventCSRFRefused)
	return nil, protocol.Errorf(protocol.CodeCSRF, "This sign-in was not started in this browser, or has expired. Start again.")
}

// oidcClaims are the claims of an identity token that are used. The address is displayed, and stored with a new
// account; no account is looked up by it.
type oidcClaims struct {
	accounts.Identity `json:"-"`

	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"` // a boolean; some providers send a string
	Name          string `json:"name"`
}

// redeem exchanges the code, with the verifier of the flow, for an identity token, and checks that the token was issued
// to this client and for this flow.
func (o *OIDC) redeem(ctx context.Context, req *Request, idp *provider, metadata *oidc.Provider, flow *accounts.OIDCFlow, code string) (*oidcClaims, error) {
	ctx = oidc.ClientContext(ctx, o.providers.client)
	token, err := o.providers.config(idp, metadata).Exchange(ctx, code, oauth2.VerifierOption(flow.Verifier))
	var refusal *oauth2.RetrieveError
	switch {
	case errors.As(err, &refusal) && refusal.Response.StatusCode < stdhttp.StatusInternalServerError:
		return nil, o.refuseIdentity(req, err)
	case err != nil:
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("redeeming a code: %w", err)}
	}
	raw, _ := token.Extra("id_token").(string)
	identity, err := metadata.Verifier(&oidc.Config{ClientID: idp.ClientID, Now: o.service.now}).Verify(ctx, raw)
	if err != nil {
		return nil, o.refuseIdentity(req, err)
	}
	claims := &oidcClaims{Identity: accounts.Identity{Issuer: identity.Issuer, Subject: identity.Subject}}
	if subtle.ConstantTimeCompare([]byte(identity.Nonce), []byte(flow.Nonce)) != 1 || len(identity.Subject) > maxClaim || identity.Subject == "" {
		return nil, o.refuseIdentity(req, errors.New("the token belongs to another flow"))
	}
	if err := identity.Claims(claims); err != nil {
		return nil, o.refuseIdentity(req, err)
	}
	return claims, nil
}

func (o *OIDC) refuseIdentity(req *Request, cause error) error {
	o.service.Record(req, audit.EventSignInFailed)
	return &protocol.Error{Code: protocol.CodeUnauthenticated, Detail: "The provider did not sign you in.", Err: cause}
}

// signInByIdentity signs in the account of an identity, or creates one. Another account with the same address is never
// changed, and does not prevent the sign-in: docs/adr/0013.
func (o *OIDC) signInByIdentity(ctx context.Context, req *Request, claims *oidcClaims) error {
	token, session := o.service.newToken(req.Agent)
	known, err := o.identities.CredentialsByIdentity(ctx, claims.Identity)
	switch {
	case err == nil && known.Disabled:
		return o.refuseIdentity(req, errors.New("the account is disabled"))
	case err == nil:
		err = o.service.sessions.CreateSession(ctx, known.AccountID, session, req.Requester())
	case protocol.CodeOf(err) == protocol.CodeNotFound && !o.service.config.RegistrationOpen:
		return protocol.Errorf(protocol.CodeRegistrationClosed, "Registration is closed.")
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		account := o.accountOf(claims)
		known = &accounts.Credentials{Account: account.Account}
		err = o.credentials.Register(ctx, account, &claims.Identity, session, req.Requester())
	}
	if err != nil {
		return err
	}
	o.service.signIn(ctx, req, known.Account, token, session)
	if known.PasswordHash != nil { // without a password, the address is not a sign-in name
		o.service.devices.addOwn(req)
	}
	return nil
}

// accountOf returns a new account with the claims of the provider. Without an address that the provider has verified,
// the account has no address, and its EmailKey is one that no sign-in can have.
func (o *OIDC) accountOf(claims *oidcClaims) *accounts.NewAccount {
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
	account := o.service.newAccount(email, name)
	if email == "" {
		account.EmailKey = "oidc " + claims.Issuer + " " + claims.Subject
	}
	return account
}

// linkIdentity adds an identity to the account that started the flow, if this browser still has a session of the
// account.
func (o *OIDC) linkIdentity(ctx context.Context, req *Request, account protocol.AccountID, claims *oidcClaims) error {
	if err := o.service.Authenticate(ctx, req); err != nil {
		return err
	}
	if req.Caller.AccountID != account {
		return ErrUnauthenticated()
	}
	if err := o.identities.LinkIdentity(ctx, account, claims.Identity, req.Requester()); err != nil {
		return err
	}
	now := o.service.now()
	_, err := o.service.rotate(ctx, req, &now) // because there is now another way to sign in to the account
	return err
}

// List returns a page of the identities of the caller, with the names of their providers.
func (o *OIDC) List(ctx context.Context, req *Request, after *accounts.IdentityPosition, limit int) ([]protocol.Identity, *accounts.IdentityPosition, error) {
	page, next, err := o.identities.ListIdentities(ctx, req.Caller.AccountID, after, limit)
	for i := range page {
		page[i].Provider = o.providers.nameOf(page[i].Issuer)
	}
	return page, next, err
}

// Unlink removes an identity from the account of the caller. Sessions that it has signed in to continue.
func (o *OIDC) Unlink(ctx context.Context, req *Request, id protocol.IdentityID) error {
	err := o.identities.UnlinkIdentity(ctx, req.Caller.AccountID, id, o.providers.issuers(), req.Requester())
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		if identity, has := refusal.Current.(*protocol.Identity); has {
			identity.Provider = o.providers.nameOf(identity.Issuer)
		}
	}
	return err
}

// bound returns the HMAC that is stored of a secret. The browser or the provider later sends back the secret itself.
func (k *Keys) bound(version int, what, secret string) []byte {
	return hmacSum(k.live[version].binding, []byte(what+" "), []byte(secret))
}

func secretText() string {
	b := make([]byte, flowSecret)
	_, _ = rand.Read(b) // never fails
	return encode(b)
}

// localPath reports whether a browser cannot interpret a path as the address of another host.
func localPath(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.ContainsAny(path, "\\\r\n\t") && !strings.HasPrefix(path, "/\\")
}
