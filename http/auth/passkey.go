package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	webauthnproto "github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Passkeys are public keys of authenticators: docs/adr/0024. A ceremony has two requests. The first returns a challenge;
// the second brings the authenticator's signature of it. A challenge is valid for passkeyLifetime, once, for its purpose,
// for the account that asked for it, and in the browser that asked for it, which has a secret in a cookie.

const (
	passkeyLifetime    = 5 * time.Minute
	passkeyParty       = "Turnstone"
	defaultPasskeyName = "Passkey"
	localhost          = "localhost"
)

// PasskeyStore stores passkeys.
type PasskeyStore interface {
	ListPasskeys(ctx context.Context, account protocol.AccountID) ([]accounts.Passkey, error)
	AddPasskey(ctx context.Context, account protocol.AccountID, passkey *accounts.Passkey, by audit.Requester) error
	RenamePasskey(ctx context.Context, account protocol.AccountID, change *accounts.PasskeyChange, name string) (*protocol.Passkey, error)
	DeletePasskey(ctx context.Context, account protocol.AccountID, change *accounts.PasskeyChange, issuers []string, by audit.Requester) error
	CredentialsByPasskey(ctx context.Context, credentialID []byte) (*accounts.Credentials, *accounts.Passkey, error)
	UsePasskey(ctx context.Context, account protocol.AccountID, use *accounts.PasskeyUse, session *accounts.NewSession, by audit.Requester) (used bool, err error)
}

// PasskeyFlows stores requests to authenticators that have not ended yet.
type PasskeyFlows interface {
	BeginPasskeyFlow(ctx context.Context, flow *accounts.PasskeyFlow) error
	TakePasskeyFlow(ctx context.Context, challengeHash []byte) (*accounts.PasskeyFlow, error)
}

// Passkeys adds passkeys to accounts, and signs people in with them.
type Passkeys struct {
	service *Service
	store   PasskeyStore
	flows   PasskeyFlows
	host    string             // of the service
	party   *webauthn.WebAuthn // nil: browsers allow no passkeys for the host of the service
}

// newPasskeys returns the passkeys of a service with an address. Passkeys are bound to its host. Browsers refuse an IP
// address as a domain of passkeys, so for a loopback address the domain is localhost, and only pages at localhost can
// use passkeys.
func newPasskeys(s *Service, base *url.URL, store PasskeyStore, flows PasskeyFlows) (*Passkeys, error) {
	host := base.Hostname()
	p := &Passkeys{service: s, store: store, flows: flows, host: host}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = localhost
	}
	if webauthnproto.ValidateRPID(host) != nil {
		return p, nil
	}
	origin := base.Scheme + "://" + host
	if port := base.Port(); port != "" {
		origin += ":" + port
	}
	timeout := webauthn.TimeoutConfig{Timeout: passkeyLifetime, TimeoutUVD: passkeyLifetime}
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: passkeyParty, RPOrigins: []string{origin},
		AttestationPreference: webauthnproto.PreferNoAttestation,
		AuthenticatorSelection: webauthnproto.AuthenticatorSelection{
			ResidentKey: webauthnproto.ResidentKeyRequirementRequired, RequireResidentKey: webauthnproto.ResidentKeyRequired(),
			UserVerification: webauthnproto.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: timeout, Registration: timeout},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys for %s: %w", origin, err)
	}
	p.party = party
	return p, nil
}

// available returns an error if browsers allow no passkeys for the service.
func (p *Passkeys) available() error {
	if p.party == nil {
		return protocol.Conflict(protocol.CodeConflict, map[string]string{"host": p.host}, "The service is reached at an IP address, for which browsers allow no passkeys.")
	}
	return nil
}

// passkeyUser is an account with its passkeys, as package webauthn reads it.
type passkeyUser struct {
	account protocol.Account
	own     []accounts.Passkey
}

// WebAuthnID returns the identifier of the account, which authenticators store and return.
func (u passkeyUser) WebAuthnID() []byte { return u.account.AccountID[:] }

// WebAuthnName returns what distinguishes the account for its owner.
func (u passkeyUser) WebAuthnName() string { return cmp.Or(u.account.Email, u.account.DisplayName) }

// WebAuthnDisplayName returns the display name of the account.
func (u passkeyUser) WebAuthnDisplayName() string { return u.account.DisplayName }

// WebAuthnCredentials returns the passkeys of the account.
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential {
	credentials := make([]webauthn.Credential, len(u.own))
	for i := range u.own {
		one := &u.own[i]
		credentials[i] = webauthn.Credential{
			ID: one.CredentialID, PublicKey: one.PublicKey,
			Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: one.BackupEligible, BackupState: one.BackedUp},
			Authenticator: webauthn.Authenticator{AAGUID: one.AAGUID[:], SignCount: one.SignCount},
		}
		for _, transport := range one.Transports {
			credentials[i].Transport = append(credentials[i].Transport, webauthnproto.AuthenticatorTransport(transport))
		}
	}
	return credentials
}

func (u passkeyUser) descriptors() []webauthnproto.CredentialDescriptor {
	return webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()
}

// userOf returns the caller with its passkeys.
func (p *Passkeys) userOf(ctx context.Context, req *Request) (passkeyUser, error) {
	if err := p.available(); err != nil {
		return passkeyUser{}, err
	}
	own, err := p.store.ListPasskeys(ctx, req.Caller.AccountID)
	return passkeyUser{req.Caller.Account, own}, err
}

// begin stores a challenge, and sends the secret that binds it to the browser.
func (p *Passkeys) begin(ctx context.Context, req *Request, purpose accounts.PasskeyPurpose, challenge string) error {
	keys, browser := p.service.keys, secretText()
	flow := &accounts.PasskeyFlow{
		ChallengeHash: keys.bound(0, "passkey", challenge), BrowserHash: keys.bound(0, "passkey browser", browser),
		Purpose: purpose, ExpiresAt: p.service.now().Add(passkeyLifetime),
	}
	if purpose != accounts.PasskeySignIn {
		flow.ForAccount = &req.Caller.AccountID
	}
	if err := p.flows.BeginPasskeyFlow(ctx, flow); err != nil {
		return err
	}
	p.service.cookies.set(req.Header, passkeyCookie, browser, int(passkeyLifetime.Seconds()))
	return nil
}

var errPasskeyChallenge = errors.New("the challenge is unknown, used or expired, or was issued for another purpose, account or browser")

// take deletes the challenge that an authenticator has signed, and checks that it was issued for this purpose, account
// and browser. Otherwise it returns errPasskeyChallenge.
func (p *Passkeys) take(ctx context.Context, req *Request, purpose accounts.PasskeyPurpose, challenge string) error {
	keys := p.service.keys
	for version := range keys.Versions() {
		flow, err := p.flows.TakePasskeyFlow(ctx, keys.bound(version, "passkey", challenge))
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		p.service.cookies.set(req.Header, passkeyCookie, "", -1)
		browser := subtle.ConstantTimeCompare(flow.BrowserHash, keys.bound(version, "passkey browser", req.Passkey)) == 1
		account := flow.ForAccount == nil || req.Caller != nil && *flow.ForAccount == req.Caller.AccountID
		if browser && account && flow.Purpose == purpose && p.service.now().Before(flow.ExpiresAt) {
			return nil
		}
	}
	return errPasskeyChallenge
}

// List returns the passkeys of the caller, in the order of their creation.
func (p *Passkeys) List(ctx context.Context, req *Request) ([]protocol.Passkey, error) {
	own, err := p.store.ListPasskeys(ctx, req.Caller.AccountID)
	list := make([]protocol.Passkey, len(own))
	for i := range own {
		list[i] = own[i].Passkey
	}
	return list, err
}

// Rename stores another name of a passkey of the caller.
func (p *Passkeys) Rename(ctx context.Context, req *Request, change *accounts.PasskeyChange, name string) (*protocol.Passkey, error) {
	name, err := checkPasskeyName(name)
	if err != nil {
		return nil, err
	}
	return p.store.RenamePasskey(ctx, req.Caller.AccountID, change, name)
}

// Delete deletes a passkey of the caller. Sessions that it has signed in to continue.
func (p *Passkeys) Delete(ctx context.Context, req *Request, change *accounts.PasskeyChange) error {
	return p.store.DeletePasskey(ctx, req.Caller.AccountID, change, p.service.OIDC.providers.issuers(), req.Requester())
}

// StartRegistration returns the request to an authenticator for a passkey of the caller.
func (p *Passkeys) StartRegistration(ctx context.Context, req *Request) (*protocol.PasskeyCreation, error) {
	user, err := p.userOf(ctx, req)
	if err != nil {
		return nil, err
	}
	if len(user.own) >= accounts.MaxPasskeys {
		return nil, accounts.ErrTooManyPasskeys()
	}
	creation, session, err := p.party.BeginRegistration(user, webauthn.WithExclusions(user.descriptors()))
	if err != nil {
		return nil, fmt.Errorf("creating a request for a passkey: %w", err)
	}
	if err := p.begin(ctx, req, accounts.PasskeyRegister, session.Challenge); err != nil {
		return nil, err
	}
	options := &creation.Response
	result := &protocol.PasskeyCreation{
		RelyingParty:       protocol.PasskeyParty{ID: options.RelyingParty.ID, Name: options.RelyingParty.Name},
		User:               protocol.PasskeyUser{ID: encode(user.WebAuthnID()), Name: options.User.Name, DisplayName: options.User.DisplayName},
		Challenge:          session.Challenge,
		Timeout:            options.Timeout,
		ExcludeCredentials: referencesTo(options.CredentialExcludeList),
		Selection: protocol.PasskeySelection{
			ResidentKey: string(options.AuthenticatorSelection.ResidentKey), RequireResidentKey: true,
			UserVerification: string(options.AuthenticatorSelection.UserVerification),
		},
		Attestation: string(options.Attestation),
	}
	for _, algorithm := range options.Parameters {
		result.Parameters = append(result.Parameters, protocol.PasskeyAlgorithm{Type: string(algorithm.Type), Algorithm: int(algorithm.Algorithm)})
	}
	return result, nil
}

func referencesTo(descriptors []webauthnproto.CredentialDescriptor) []protocol.PasskeyReference {
	references := make([]protocol.PasskeyReference, len(descriptors))
	for i, one := range descriptors {
		references[i] = protocol.PasskeyReference{Type: string(one.Type), ID: encode(one.CredentialID), Transports: []string{}}
		for _, transport := range one.Transport {
			references[i].Transports = append(references[i].Transports, string(transport))
		}
	}
	return references
}

// FinishRegistration stores the passkey that an authenticator has created, and replaces the token of the session,
// because there is now another way to sign in to the account.
func (p *Passkeys) FinishRegistration(ctx context.Context, req *Request, name string, credential *protocol.PasskeyAttestation) (*protocol.AddedPasskey, error) {
	name, err := checkPasskeyName(cmp.Or(name, defaultPasskeyName))
	if err != nil {
		return nil, err
	}
	if err := p.available(); err != nil {
		return nil, err
	}
	created, err := p.verifyCreation(ctx, req, credential)
	if err != nil {
		return nil, refusedCredential(err)
	}
	passkey := &accounts.Passkey{
		Passkey:      protocol.Passkey{PasskeyID: protocol.NewPasskeyID(), Name: name, CreatedAt: p.service.now(), BackedUp: created.Flags.BackupState, Version: 1},
		CredentialID: created.ID, PublicKey: created.PublicKey, SignCount: created.Authenticator.SignCount, BackupEligible: created.Flags.BackupEligible,
		Transports: []string{},
	}
	copy(passkey.AAGUID[:], created.Authenticator.AAGUID)
	for _, transport := range created.Transport {
		passkey.Transports = append(passkey.Transports, string(transport))
	}
	if err := p.store.AddPasskey(ctx, req.Caller.AccountID, passkey, req.Requester()); err != nil {
		return nil, err
	}
	now := p.service.now()
	if _, err := p.service.rotate(ctx, req, &now); err != nil {
		return nil, err
	}
	return &protocol.AddedPasskey{Passkey: passkey.Passkey, Session: p.service.SessionInfo(req.Caller)}, nil
}

func (p *Passkeys) verifyCreation(ctx context.Context, req *Request, credential *protocol.PasskeyAttestation) (*webauthn.Credential, error) {
	text, err := json.Marshal(credential)
	if err != nil {
		return nil, err
	}
	parsed, err := webauthnproto.ParseCredentialCreationResponseBytes(text)
	if err != nil {
		return nil, errPasskeyRefused{err}
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	if err := p.take(ctx, req, accounts.PasskeyRegister, challenge); err != nil {
		return nil, err
	}
	user := passkeyUser{account: req.Caller.Account}
	created, err := p.party.CreateCredential(user, webauthn.SessionData{
		Challenge: challenge, RelyingPartyID: p.party.Config.RPID, UserID: user.WebAuthnID(), UserVerification: webauthnproto.VerificationRequired,
		CredParams: webauthn.CredentialParametersDefault(),
	}, parsed)
	if err != nil {
		return nil, errPasskeyRefused{err}
	}
	return created, nil
}

// errPasskeyRefused is the reason why a response of an authenticator was refused. Clients do not get it.
type errPasskeyRefused struct{ cause error }

func (e errPasskeyRefused) Error() string {
	return "the response of the authenticator is refused: " + e.cause.Error()
}
func (e errPasskeyRefused) Unwrap() error { return e.cause }

// isPasskeyRefusal reports whether an error is about the response of an authenticator, and not about the service.
func isPasskeyRefusal(err error) bool {
	return errors.Is(err, errPasskeyChallenge) || errors.As(err, new(errPasskeyRefused))
}

// refusedCredential converts a refusal to the error for a signed-in caller. Other errors pass unchanged.
func refusedCredential(err error) error {
	switch {
	case errors.Is(err, errPasskeyChallenge):
		return protocol.Invalid("body.credential", "was not requested in this browser, has been used or has expired; start again")
	case isPasskeyRefusal(err):
		return protocol.Invalid("body.credential", "is not valid for this service")
	}
	return err
}

// StartSignIn returns the request for a signature of any passkey for this service. It is the same for everybody.
func (p *Passkeys) StartSignIn(ctx context.Context, req *Request) (*protocol.PasskeyRequest, error) {
	if err := p.available(); err != nil {
		return nil, err
	}
	assertion, session, err := p.party.BeginDiscoverableLogin(webauthn.WithUserVerification(webauthnproto.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("creating a request for a signature: %w", err)
	}
	return p.requested(ctx, req, accounts.PasskeySignIn, assertion, session)
}

// StartReauthentication returns the request for a signature of a passkey of the caller.
func (p *Passkeys) StartReauthentication(ctx context.Context, req *Request) (*protocol.PasskeyRequest, error) {
	user, err := p.userOf(ctx, req)
	if err != nil {
		return nil, err
	}
	if len(user.own) == 0 {
		return nil, protocol.Conflict(protocol.CodeConflict, map[string][]protocol.Passkey{"passkeys": {}}, "The account has no passkey.")
	}
	assertion, session, err := p.party.BeginLogin(user, webauthn.WithUserVerification(webauthnproto.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("creating a request for a signature: %w", err)
	}
	return p.requested(ctx, req, accounts.PasskeyReauthenticate, assertion, session)
}

func (p *Passkeys) requested(
	ctx context.Context, req *Request, purpose accounts.PasskeyPurpose, assertion *webauthnproto.CredentialAssertion, session *webauthn.SessionData,
) (*protocol.PasskeyRequest, error) {
	if err := p.begin(ctx, req, purpose, session.Challenge); err != nil {
		return nil, err
	}
	options := &assertion.Response
	return &protocol.PasskeyRequest{
		Challenge: session.Challenge, Timeout: options.Timeout, RelyingPartyID: options.RelyingPartyID,
		AllowCredentials: referencesTo(options.AllowedCredentials), UserVerification: string(options.UserVerification),
	}, nil
}

// FinishSignIn signs in the account of the passkey that has signed. Every refusal gets the same error, whether or not
// the passkey exists and its account can sign in.
func (p *Passkeys) FinishSignIn(ctx context.Context, req *Request, credential *protocol.PasskeyAssertion) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	if err := p.available(); err != nil {
		return none, err
	}
	if err := p.service.signIns.draw(ctx, req, p.service.signIns.attemptOf(req, "passkey "+credential.RawID)); err != nil {
		return none, err
	}
	found, use, err := p.verifyAssertion(ctx, req, accounts.PasskeySignIn, credential)
	if err != nil {
		return none, p.refuseSignIn(req, found, err)
	}
	token, session := p.service.newToken(req.Agent)
	used, err := p.store.UsePasskey(ctx, found.AccountID, use, session, req.Requester())
	if err != nil {
		return none, err
	}
	if !used {
		return none, p.refuseSignIn(req, found, errPasskeyRefused{errors.New("another request has just used the passkey or ended it")})
	}
	info := p.service.signIn(ctx, req, found.Account, token, session)
	if found.PasswordHash != nil { // without a password, the address is not a sign-in name
		p.service.devices.addOwn(req)
	}
	return info, nil
}

// refuseSignIn counts a refused sign-in, and converts the refusal. Other errors pass unchanged. account may be nil.
func (p *Passkeys) refuseSignIn(req *Request, account *accounts.Credentials, cause error) error {
	if !isPasskeyRefusal(cause) {
		return cause
	}
	if account == nil {
		account = &accounts.Credentials{}
	}
	_ = p.service.refuseSignIn(req, account.AccountID)
	return &protocol.Error{Code: protocol.CodeUnauthenticated, Detail: "The passkey was not accepted. Start again, or use another way to sign in.", Err: cause}
}

// verifyAssertion checks the signature of a passkey. It returns the account of the passkey, which is nil if there is
// none, also with a refusal.
func (p *Passkeys) verifyAssertion(ctx context.Context, req *Request, purpose accounts.PasskeyPurpose, credential *protocol.PasskeyAssertion) (*accounts.Credentials, *accounts.PasskeyUse, error) {
	text, err := json.Marshal(credential)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := webauthnproto.ParseCredentialRequestResponseBytes(text)
	if err != nil {
		return nil, nil, errPasskeyRefused{err}
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	if err := p.take(ctx, req, purpose, challenge); err != nil {
		return nil, nil, err
	}
	found, passkey, err := p.store.CredentialsByPasskey(ctx, parsed.RawID)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		return nil, nil, errPasskeyRefused{err}
	case err != nil:
		return nil, nil, err
	case found.Disabled:
		return found, nil, errPasskeyRefused{errors.New("the account is disabled")}
	case purpose == accounts.PasskeyReauthenticate && found.AccountID != req.Caller.AccountID:
		return nil, nil, errPasskeyRefused{errors.New("the passkey belongs to another account")}
	}
	if purpose == accounts.PasskeySignIn && len(parsed.Response.UserHandle) == 0 {
		return found, nil, errPasskeyRefused{errors.New("the response names no account")}
	}
	user := passkeyUser{found.Account, []accounts.Passkey{*passkey}}
	verified, err := p.party.ValidateLogin(user, webauthn.SessionData{
		Challenge: challenge, RelyingPartyID: p.party.Config.RPID, UserID: user.WebAuthnID(), UserVerification: webauthnproto.VerificationRequired,
	}, parsed)
	if err != nil {
		return found, nil, errPasskeyRefused{err}
	}
	if verified.Authenticator.CloneWarning {
		p.service.tallies.add(found.AccountID, audit.EventPasskeyCloned, AddressKey(req.Address))
		return found, nil, errPasskeyRefused{errors.New("the count of signatures is not above the last one: the authenticator may have been copied")}
	}
	return found, &accounts.PasskeyUse{
		PasskeyID: passkey.PasskeyID, SignCount: parsed.Response.AuthenticatorData.Counter,
		BackedUp: parsed.Response.AuthenticatorData.Flags.HasBackupState(), At: p.service.now(),
	}, nil
}

// FinishReauthentication is Service.Reauthenticate with a passkey of the caller instead of the password.
func (p *Passkeys) FinishReauthentication(ctx context.Context, req *Request, credential *protocol.PasskeyAssertion) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	if err := p.available(); err != nil {
		return none, err
	}
	if err := p.service.signIns.draw(ctx, req, ownAttempt(req.Caller)); err != nil {
		return none, err
	}
	_, use, err := p.verifyAssertion(ctx, req, accounts.PasskeyReauthenticate, credential)
	if err == nil {
		var used bool
		used, err = p.store.UsePasskey(ctx, req.Caller.AccountID, use, nil, req.Requester())
		if err == nil && !used {
			err = errPasskeyRefused{errors.New("another request has just used the passkey or ended it")}
		}
	}
	if err != nil {
		if isPasskeyRefusal(err) {
			p.service.Record(req, audit.EventSignInFailed)
		}
		return none, refusedCredential(err)
	}
	if err := confirm(ctx, p.service, req); err != nil {
		return none, err
	}
	return p.service.SessionInfo(req.Caller), nil
}

// checkPasskeyName returns a name without surrounding spaces.
func checkPasskeyName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > protocol.MaxPasskeyName || strings.ContainsFunc(name, unicode.IsControl) {
		return "", protocol.Invalid("body.name", "must have 1 to 100 characters, without control characters")
	}
	return name, nil
}
