package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"
	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/mails"
	"turnstone/protocol"
)

// Sessions stores sessions. Package persistence implements it, and the interfaces below.
type Sessions interface {
	CreateSession(ctx context.Context, account protocol.AccountID, session *accounts.NewSession, by audit.Requester) error
	FindSession(ctx context.Context, hashes [][]byte) (*accounts.Session, error)
	TouchSession(ctx context.Context, session *accounts.Session, now time.Time) error
	RotateSession(ctx context.Context, account protocol.AccountID, old []byte, next *accounts.NewSession, overlap time.Duration, by audit.Requester) (bool, error)
	EndSession(ctx context.Context, account protocol.AccountID, session protocol.SessionID, event audit.SecurityEvent, now time.Time, by audit.Requester) error
	EndOtherSessions(ctx context.Context, account protocol.AccountID, session protocol.SessionID, now time.Time, by audit.Requester) error
}

// Credentials stores accounts with their passwords.
type Credentials interface {
	Register(ctx context.Context, account *accounts.NewAccount, identity *accounts.Identity, session *accounts.NewSession, by audit.Requester) error
	CredentialsByEmail(ctx context.Context, key string) (*accounts.Credentials, error)
	CredentialsOf(ctx context.Context, account protocol.AccountID) (*accounts.Credentials, error)
	ChangePassword(ctx context.Context, account protocol.AccountID, hash string, next *accounts.NewSession, by audit.Requester) (*protocol.Account, error)
}

// Identities stores the identities at OpenID providers with which people sign in.
type Identities interface {
	CredentialsByIdentity(ctx context.Context, identity accounts.Identity) (*accounts.Credentials, error)
	LinkIdentity(ctx context.Context, account protocol.AccountID, identity accounts.Identity, by audit.Requester) error
	ListIdentities(ctx context.Context, account protocol.AccountID, after *accounts.IdentityPosition, limit int) (page []protocol.Identity, next *accounts.IdentityPosition, err error)
	UnlinkIdentity(ctx context.Context, account protocol.AccountID, id protocol.IdentityID, issuers []string, by audit.Requester) error
}

// Profiles stores the addresses and the display names of accounts.
type Profiles interface {
	ChangeEmail(ctx context.Context, account protocol.AccountID, email, emailKey string, version *int64, by audit.Requester) (changed *protocol.Account, err error)
	ChangeName(ctx context.Context, account protocol.AccountID, name string, version *int64) (changed *protocol.Account, err error)
}

// RecoveryStore stores what the owners of accounts do by mail.
type RecoveryStore interface {
	RequestReset(ctx context.Context, emailKey string, now time.Time, by audit.Requester) error
	FindReset(ctx context.Context, link mails.Ref, now time.Time) (*protocol.Account, error)
	ResetPassword(ctx context.Context, link mails.Ref, hash string, now time.Time, by audit.Requester) error
	RequestEmail(ctx context.Context, account protocol.AccountID, email, emailKey string, version *int64, now time.Time, by audit.Requester) (changed *protocol.Account, err error)
	ResendEmail(ctx context.Context, account protocol.AccountID, keyOf func(email string) string, now time.Time, by audit.Requester) (changed *protocol.Account, err error)
	CancelEmail(ctx context.Context, account protocol.AccountID, version *int64, now time.Time, by audit.Requester) error
	ConfirmEmail(ctx context.Context, link mails.Ref, keyOf func(email string) string, now time.Time, by audit.Requester) (email string, err error)
}

// Flows stores sign-ins with a provider that have not ended yet.
type Flows interface {
	BeginOIDCFlow(ctx context.Context, flow *accounts.OIDCFlow) error
	TakeOIDCFlow(ctx context.Context, stateHash []byte) (*accounts.OIDCFlow, error)
}

// Audit stores security events.
type Audit interface {
	Record(ctx context.Context, account protocol.AccountID, event audit.SecurityEvent, session *protocol.SessionID, detail map[string]any, by audit.Requester) error
}

// Limits draws from the rate limits.
type Limits interface {
	// Draw draws the request of ctx from the bucket of a key, and sets the headers of the limit in its response.
	Draw(ctx context.Context, bucket Bucket, key string) error
	// DrawRefusal draws for the request of ctx, which is being refused; an error replaces the refusal.
	DrawRefusal(ctx context.Context, key string) error
}

// Bucket names a limit of requests. Those of sign-ins are here; see attempt. Package route has the others.
type Bucket string

// The buckets of sign-ins.
const (
	BucketSignIn        Bucket = "signin"
	BucketSignInAccount Bucket = "signin_account"
	BucketSignInReserve Bucket = "signin_reserve"
)

// Config has the dependencies and settings of a Service. It must not change after New.
type Config struct {
	Sessions     Sessions
	Credentials  Credentials
	Identities   Identities
	Profiles     Profiles
	Recovery     RecoveryStore
	Flows        Flows
	Passkeys     PasskeyStore
	PasskeyFlows PasskeyFlows
	Audit        Audit
	Limits       Limits
	Keys         *Keys
	Log          *zap.Logger
	Now          func() time.Time

	BaseURL          *url.URL // the address at which browsers reach the service; cookies are Secure if it is https
	AllowedOrigins   []string // other origins that may call with credentials
	Providers        []Provider
	RegistrationOpen bool
	MailConfigured   bool             // mails of Recovery are sent
	PasswordCost     *argon2id.Params // of a password hash; nil: the cost that OWASP recommends
}

// Service authenticates requests. Its methods may be called from any goroutine, one of them per Request.
type Service struct {
	Recorder
	OIDC     *OIDC
	Passkeys *Passkeys
	Recovery *Recovery

	config      Config
	sessions    Sessions
	credentials Credentials
	profiles    Profiles
	limits      Limits
	signIns     signInLimits
	keys        *Keys
	log         *zap.Logger
	now         func() time.Time
	passwords   *passwords
	origins     *origins
	cookies     cookies
	devices     *devices
}

// New returns a service.
func New(c Config) (*Service, error) {
	s := &Service{
		config: c, sessions: c.Sessions, credentials: c.Credentials, profiles: c.Profiles, limits: c.Limits, signIns: signInLimits{c.Limits, c.Keys}, keys: c.Keys, log: c.Log, now: c.Now,
		Recorder: Recorder{audit: c.Audit, log: c.Log}, cookies: cookies{secure: c.BaseURL.Scheme == "https"},
	}
	s.devices = &devices{c.Keys, s.cookies, c.Now}
	s.OIDC = &OIDC{s, newProviders(c.Providers, strings.TrimSuffix(c.BaseURL.String(), "/"), c.Now), c.Flows, c.Credentials, c.Identities}
	s.Recovery = &Recovery{s, c.Recovery}
	var err error
	if s.passwords, err = newPasswords(cmp.Or(c.PasswordCost, defaultCost)); err != nil {
		return nil, err
	}
	if s.Passkeys, err = newPasskeys(s, c.BaseURL, c.Passkeys, c.PasskeyFlows); err != nil {
		return nil, err
	}
	if s.origins, err = newOrigins(c.BaseURL, c.AllowedOrigins); err != nil {
		return nil, fmt.Errorf("allowed origins: %w", err)
	}
	return s, nil
}

// ProviderNames returns the names of the configured OpenID providers, sorted.
func (s *Service) ProviderNames() []string { return s.OIDC.providers.names() }

// Close waits for the requests to OpenID providers that are in progress, each of which ends within discoveryTimeout,
// and closes the connections to the providers.
func (s *Service) Close() {
	s.OIDC.providers.refreshes.Wait()
	s.OIDC.providers.client.CloseIdleConnections()
}

var errProviderRefused = errors.New("the provider refused, or the response has another issuer")
