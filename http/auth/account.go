package auth

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Register creates an account and signs it in. As the contract states, it reports that an address is taken, but only to
// a client that is within the sign-in limit.
func (s *Service) Register(ctx context.Context, req *Request, email, password, displayName string) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	if !s.config.RegistrationOpen {
		return none, protocol.Errorf(protocol.CodeRegistrationClosed, "Registration is closed.")
	}
	email, name, err := CheckAccount(email, displayName)
	if err != nil {
		return none, err
	}
	if err := checkPassword("body.password", password, email); err != nil {
		return none, err
	}
	if err := s.signIns.drawAddress(ctx, req); err != nil {
		return none, err
	}
	account := s.newAccount(email, name)
	hash, err := s.passwords.hash(ctx, hashCaller{key: networkKey(req.Address)}, password)
	if err != nil {
		return none, err
	}
	account.PasswordHash = &hash
	token, session := s.newToken(req.Agent)
	if err := s.credentials.Register(ctx, account, nil, session, req.Requester()); err != nil {
		return none, err
	}
	info := s.signIn(ctx, req, account.Account, token, session)
	s.devices.add(req, account.EmailKey)
	return info, nil
}

func (s *Service) newAccount(email, name string) *accounts.NewAccount {
	return &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: name, Version: 1},
		EmailKey: EmailKey(email), CreatedAt: s.now(),
	}
}

// maxPasswordChanges limits how often a sign-in begins anew because the password was changed while it was checked.
const maxPasswordChanges = 3

// SignIn signs in with a password. It does not reveal, by its result or by its duration, whether the address is unknown
// or the password is wrong.
func (s *Service) SignIn(ctx context.Context, req *Request, email, password string) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	name := EmailKey(email)
	try := s.signIns.attemptOf(req, name)
	if err := s.signIns.draw(ctx, req, try); err != nil {
		return none, err
	}
	for changes := 0; ; changes++ {
		found, matches, err := s.matchingAccount(ctx, try, name, password)
		if err != nil {
			return none, err
		}
		if !matches || found.Disabled || changes == maxPasswordChanges {
			return none, s.refuseSignIn(req, found.AccountID)
		}
		token, session := s.newToken(req.Agent)
		session.Checked = found.PasswordHash
		err = s.sessions.CreateSession(ctx, found.AccountID, session, req.Requester())
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			continue // the password was changed since it was checked; it may be changed to the one of this request
		}
		if err != nil {
			return none, err
		}
		info := s.signIn(ctx, req, found.Account, token, session)
		s.devices.add(req, name)
		return info, nil
	}
}

// matchingAccount returns the account that signs in with an address, and whether this is its password. Without such an
// account, it takes the same time and returns empty credentials.
func (s *Service) matchingAccount(ctx context.Context, try attempt, name, password string) (*accounts.Credentials, bool, error) {
	found, err := s.credentials.CredentialsByEmail(ctx, name)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, false, err
	}
	if found == nil {
		found = &accounts.Credentials{}
	}
	matches, err := s.passwords.matches(ctx, try.hashCaller, password, found.PasswordHash)
	return found, matches, err
}

// refuseSignIn counts a failed sign-in, with or without an account. It does the same work in both cases: if it wrote a
// row in only one of them, the duration of the response would reveal whether the account exists.
func (s *Service) refuseSignIn(req *Request, account protocol.AccountID) error {
	address := AddressKey(req.Address)
	if account == pg.NoAccount {
		address = ""
	}
	s.tallies.add(account, audit.EventSignInFailed, address)
	return protocol.Errorf(protocol.CodeUnauthenticated, "The email address or the password is wrong.")
}

// signIn sends the new token to the client and ends the previous session of its browser, so that a token that an
// attacker has set there becomes invalid.
func (s *Service) signIn(ctx context.Context, req *Request, account protocol.Account, token string, session *accounts.NewSession) protocol.SessionInfo {
	s.endReplaced(ctx, req)
	req.Caller = &Caller{Account: account}
	s.setSessionToken(req, token, session)
	return s.SessionInfo(req.Caller)
}

// endReplaced ends the session whose cookie the sign-in request has. The new session is valid whether or not that
// succeeds.
func (s *Service) endReplaced(ctx context.Context, req *Request) {
	before, err := s.findSession(ctx, req.Cookie)
	if err != nil {
		return
	}
	err = s.sessions.EndSession(ctx, before.AccountID, before.SessionID, audit.EventSessionRevoked, s.now(), req.Requester())
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		s.log.Warn("the previous session could not be ended at a sign-in", zap.String("request_id", req.ID), zap.Error(err))
	}
}

// SessionInfo describes the session of a caller, with a CSRF token.
func (s *Service) SessionInfo(caller *Caller) protocol.SessionInfo {
	info := protocol.SessionInfo{Account: caller.Account, CSRFToken: s.keys.csrfToken(caller), ExpiresAt: caller.ExpiresAt}
	if caller.RecentlySignedIn(s.now()) {
		info.Reauthenticated = caller.Reauthenticated
	}
	return info
}

// SignOut ends the caller's session. The response must set ExpiredCookie.
func (s *Service) SignOut(ctx context.Context, req *Request) error {
	err := s.sessions.EndSession(ctx, req.Caller.AccountID, req.Caller.SessionID, audit.EventSignedOut, s.now(), req.Requester())
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound { // not found: the session has already ended
		return err
	}
	return nil
}

// ExpiredCookie returns the cookie that removes the session cookie from the browser.
func (s *Service) ExpiredCookie() string { return s.cookies.render(sessionCookie, "", -1) }

// EndSession ends one of the caller's sessions.
func (s *Service) EndSession(ctx context.Context, req *Request, session protocol.SessionID) error {
	return s.sessions.EndSession(ctx, req.Caller.AccountID, session, audit.EventSessionRevoked, s.now(), req.Requester())
}

// EndOtherSessions ends all sessions of the caller but the one of the request.
func (s *Service) EndOtherSessions(ctx context.Context, req *Request) error {
	return s.sessions.EndOtherSessions(ctx, req.Caller.AccountID, req.Caller.SessionID, s.now(), req.Requester())
}

// Reauthenticate replaces the token. For ten minutes, routes that need a recent sign-in accept the new token, and only
// that one.
func (s *Service) Reauthenticate(ctx context.Context, req *Request, password string) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	if _, err := s.provePassword(ctx, req, "body.password", password); err != nil {
		return none, err
	}
	if err := confirm(ctx, s, req); err != nil {
		return none, err
	}
	s.devices.addOwn(req)
	return s.SessionInfo(req.Caller), nil
}

// confirm replaces the token of a caller who has just proved who they are with one that is recently signed in.
func confirm(ctx context.Context, s *Service, req *Request) error {
	now := s.now()
	rotated, err := s.rotate(ctx, req, &now)
	if err != nil {
		return err
	}
	if !rotated {
		return protocol.Conflict(protocol.CodeConflict, map[string]protocol.SessionID{"session_id": req.Caller.SessionID}, "Another request has just replaced the session's token. Try again.")
	}
	return nil
}

// provePassword checks a password against the caller's own, and returns the hash of that one.
func (s *Service) provePassword(ctx context.Context, req *Request, field, password string) (hash *string, err error) {
	try := ownAttempt(req.Caller)
	if err := s.signIns.draw(ctx, req, try); err != nil {
		return nil, err
	}
	own, err := s.credentials.CredentialsOf(ctx, req.Caller.AccountID)
	if err != nil {
		return nil, err
	}
	matches, err := s.passwords.matches(ctx, try.hashCaller, password, own.PasswordHash)
	if err != nil {
		return nil, err
	}
	if !matches {
		s.Record(req, audit.EventSignInFailed)
		return nil, protocol.Invalid(field, "is wrong")
	}
	return own.PasswordHash, nil
}

// ChangePassword ends every other session, and every token of this session but the new one in the response.
func (s *Service) ChangePassword(ctx context.Context, req *Request, current, next string) (protocol.SessionInfo, error) {
	var none protocol.SessionInfo
	if err := checkPassword("body.new_password", next, req.Caller.Email); err != nil {
		return none, err
	}
	checked, err := s.mayChangePassword(ctx, req, current)
	if err != nil {
		return none, err
	}
	hash, err := s.passwords.hash(ctx, ownAttempt(req.Caller).hashCaller, next)
	if err != nil {
		return none, err
	}
	token, session := s.newToken(req.Agent)
	session.SessionID, session.ExpiresAt, session.Checked = req.Caller.SessionID, req.Caller.ExpiresAt, checked
	changed, err := s.credentials.ChangePassword(ctx, req.Caller.AccountID, hash, session, req.Requester())
	switch protocol.CodeOf(err) {
	case protocol.CodeEmailTaken:
		return none, protocol.Conflict(protocol.CodeEmailTaken, req.Caller.Account, "Another account signs in with the address of this account. Change the address first.")
	case protocol.CodeNotFound: // the password was changed meanwhile, or the session has ended
		return none, protocol.Errorf(protocol.CodeUnauthenticated, "The password was changed in the meantime. Sign in again.")
	}
	if err != nil {
		return none, err
	}
	req.Caller.Account = *changed
	s.setSessionToken(req, token, session)
	s.devices.addOwn(req)
	return s.SessionInfo(req.Caller), nil
}

// mayChangePassword requires the current password or, for an account that only signs in with a provider, a recent
// sign-in. It returns the hash of the current password; nil if there is none.
func (s *Service) mayChangePassword(ctx context.Context, req *Request, current string) (hash *string, err error) {
	own, err := s.credentials.CredentialsOf(ctx, req.Caller.AccountID)
	if err != nil {
		return nil, err
	}
	if own.PasswordHash != nil {
		return s.provePassword(ctx, req, "body.current_password", current)
	}
	if !req.Caller.RecentlySignedIn(s.now()) {
		return nil, ErrReauthRequired()
	}
	return nil, nil
}

// ChangeEmail changes the address of the caller's account; if mails are sent, once the new address is confirmed. It reports that
// an address is taken, but, like a registration, only to a client that is within the sign-in limit. version is the one that the
// change is based on; nil: any. Other sessions continue: their devices have proved the password, which stays the same.
func (s *Service) ChangeEmail(ctx context.Context, req *Request, email string, version *int64) (*protocol.Account, error) {
	email = strings.TrimSpace(email)
	if err := checkEmail("body.email", email); err != nil {
		return nil, err
	}
	if err := s.signIns.drawAddress(ctx, req); err != nil {
		return nil, err
	}
	if s.config.MailConfigured {
		return s.Recovery.requestEmail(ctx, req, email, version)
	}
	return s.profiles.ChangeEmail(ctx, req.Caller.AccountID, email, EmailKey(email), version, req.Requester())
}

// ChangeName changes the display name of the caller's account. version is the one that the change is based on; nil: any.
func (s *Service) ChangeName(ctx context.Context, req *Request, name string, version *int64) (*protocol.Account, error) {
	name = strings.TrimSpace(name)
	if err := checkName(name); err != nil {
		return nil, err
	}
	return s.profiles.ChangeName(ctx, req.Caller.AccountID, name, version)
}
