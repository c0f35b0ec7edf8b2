package http

import (
	"context"
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

type registerInput struct {
	Body struct {
		Email       string `json:"email" maxLength:"254" format:"email"`
		Password    string `json:"password" maxLength:"1024" doc:"At least 8 characters; 15 or more are better."`
		DisplayName string `json:"display_name,omitempty" maxLength:"200" doc:"1 to 100 characters. Default: the part of the address before the @."`
	}
}

type loginInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" maxLength:"1024"`
	}
}

// signedIn is an answer that hands out a token, by the cookie that adopt set.
type signedIn struct {
	Body protocol.SessionInfo
}

// register makes an account and signs it in. An address that is taken is told, as the contract says, but only to one who
// keeps within the sign-in limit.
func (s *Server) register(ctx context.Context, in *registerInput) (*signedIn, error) {
	if !s.RegistrationOpen {
		return nil, protocol.Errorf(protocol.CodeRegistrationClosed, "New accounts are not taken here.")
	}
	email, name, err := CheckAccount(in.Body.Email, in.Body.DisplayName)
	if err != nil {
		return nil, err
	}
	if err := checkPassword("body.password", in.Body.Password, email); err != nil {
		return nil, err
	}
	if err := s.drawRegistration(ctx); err != nil {
		return nil, err
	}
	ex, account := exchangeOf(ctx), s.newAccount(email, name)
	hash, err := s.passwords.hash(ctx, hasher{key: networkKey(ex.address)}, in.Body.Password)
	if err != nil {
		return nil, err
	}
	account.PasswordHash = &hash
	token, session := s.newToken(ex.agent)
	if err := s.DB.Register(ctx, account, nil, session, ex.requester()); err != nil {
		return nil, err
	}
	answer := s.signIn(ctx, account.Account, token, session)
	s.remember(ex, account.EmailKey)
	return answer, nil
}

func (s *Server) newAccount(email, name string) *persistence.NewAccount {
	return &persistence.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: name},
		EmailKey: EmailKey(email), CreatedAt: s.now(),
	}
}

// login does not tell an unknown address from a wrong password, by its answer or by its time.
func (s *Server) login(ctx context.Context, in *loginInput) (*signedIn, error) {
	ex, name := exchangeOf(ctx), EmailKey(in.Body.Email)
	try := s.attemptOf(ex, name)
	if err := s.drawSignIn(ctx, try); err != nil {
		return nil, err
	}
	found, err := s.DB.CredentialsByEmail(ctx, name)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	if found == nil {
		found = &persistence.Credentials{}
	}
	matches, err := s.passwords.matches(ctx, try.hasher, in.Body.Password, found.PasswordHash)
	if err != nil {
		return nil, err
	}
	if !matches || found.Disabled {
		return nil, s.refuseSignIn(ex, found.AccountID)
	}
	token, session := s.newToken(ex.agent)
	if err := s.DB.CreateSession(ctx, found.AccountID, session, ex.requester()); err != nil {
		return nil, err
	}
	answer := s.signIn(ctx, found.Account, token, session)
	s.remember(ex, name)
	return answer, nil
}

// mayRefuse documents that a route which needs no session answers 401 all the same.
func mayRefuse(_ huma.API, op *huma.Operation) {
	op.Errors = append(op.Errors, stdhttp.StatusUnauthorized)
}

// refuseSignIn counts a failed sign-in, of an account or of nobody. It does as much for either: a row that only one of
// them gets could be seen in the time that the response takes.
func (s *Server) refuseSignIn(ex *exchange, account protocol.AccountID) error {
	address := addressKey(ex.address)
	if account == persistence.Nobody {
		address = ""
	}
	s.tallies.add(account, persistence.EventSignInFailed, address)
	return protocol.Errorf(protocol.CodeUnauthenticated, "The e-mail address or the password is wrong.")
}

// signIn tells the client who it is from now on, and ends what its browser was before: a token that somebody planted
// there is worth nothing afterwards.
func (s *Server) signIn(ctx context.Context, account protocol.Account, token string, session *persistence.NewSession) *signedIn {
	ex := exchangeOf(ctx)
	s.endReplaced(ctx, ex)
	ex.caller = &Caller{Account: account}
	s.adopt(ex, token, session)
	return &signedIn{Body: s.sessionInfo(ex.caller)}
}

// endReplaced ends the session whose cookie came with a sign-in. The new one stands whether or not that succeeds.
func (s *Server) endReplaced(ctx context.Context, ex *exchange) {
	before, err := s.presented(ctx, ex.cookie)
	if err != nil {
		return
	}
	err = s.DB.EndSession(ctx, before.AccountID, before.SessionID, persistence.EventSessionRevoked, s.now(), ex.requester())
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		s.log.Warn("the session before a sign-in was not ended", zap.String("request_id", ex.requestID), zap.Error(err))
	}
}

func (s *Server) sessionInfo(caller *Caller) protocol.SessionInfo {
	info := protocol.SessionInfo{Account: caller.Account, CSRFToken: s.csrfToken(caller), ExpiresAt: caller.ExpiresAt}
	if caller.recentlySignedIn(s.now()) {
		info.Reauthenticated = caller.Reauthenticated
	}
	return info
}

func (s *Server) getSession(ctx context.Context, _ *nothing) (*body[protocol.SessionInfo], error) {
	return ok(s.sessionInfo(callerOf(ctx))), nil
}

// signedOut is an answer after which the browser keeps nothing of the account.
type signedOut struct {
	Cookie string `header:"Set-Cookie"`
	Clear  string `header:"Clear-Site-Data"`
}

func (s *Server) logout(ctx context.Context, _ *nothing) (*signedOut, error) {
	ex := exchangeOf(ctx)
	err := s.DB.EndSession(ctx, ex.caller.AccountID, ex.caller.SessionID, persistence.EventSignedOut, s.now(), ex.requester())
	err = failpoint.Answer(failpoint.SessionAfterRevoke, err)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound { // gone already: what was asked for
		return nil, err
	}
	return &signedOut{Cookie: s.sessionCookie("", -1), Clear: `"cache","storage"`}, nil
}

type listSessionsInput struct{ PageInput }

func (s *Server) listSessions(ctx context.Context, in *listSessionsInput) (*body[protocol.List[protocol.Device]], error) {
	const scope = "sessions"
	after, err := openCursor[persistence.SessionPosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	caller, now := callerOf(ctx), s.now()
	page, next, err := s.DB.ListSessions(ctx, caller.AccountID, &persistence.SessionQuery{
		Current: caller.SessionID, Now: now, IdleSince: now.Add(-sessionIdle), After: after, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}

type sessionPath struct {
	SessionID protocol.SessionID `path:"session_id"`
}

func (s *Server) endSession(ctx context.Context, in *sessionPath) (*nothing, error) {
	caller := callerOf(ctx)
	err := s.DB.EndSession(ctx, caller.AccountID, in.SessionID, persistence.EventSessionRevoked, s.now(), exchangeOf(ctx).requester())
	return nil, failpoint.Answer(failpoint.SessionAfterRevoke, err)
}

func (s *Server) endOtherSessions(ctx context.Context, _ *nothing) (*nothing, error) {
	caller := callerOf(ctx)
	return nil, s.DB.EndOtherSessions(ctx, caller.AccountID, caller.SessionID, s.now(), exchangeOf(ctx).requester())
}

type reauthenticateInput struct {
	Body struct {
		Password string `json:"password" maxLength:"1024"`
	}
}

// reauthenticate opens ten minutes in which routes that need a recent sign-in pass, for a new token only.
func (s *Server) reauthenticate(ctx context.Context, in *reauthenticateInput) (*signedIn, error) {
	if err := s.provePassword(ctx, "body.password", in.Body.Password); err != nil {
		return nil, err
	}
	ex, now := exchangeOf(ctx), s.now()
	rotated, err := s.rotate(ctx, ex, &now)
	if err != nil {
		return nil, err
	}
	if !rotated {
		return nil, protocol.Conflict(protocol.CodeConflict, nil, "Another request has just replaced the session's token. Try again.")
	}
	s.rememberOwn(ex)
	return &signedIn{Body: s.sessionInfo(ex.caller)}, nil
}

// provePassword holds a password against the caller's own.
func (s *Server) provePassword(ctx context.Context, field, password string) error {
	caller := callerOf(ctx)
	try := ownAttempt(caller)
	if err := s.drawSignIn(ctx, try); err != nil {
		return err
	}
	own, err := s.DB.CredentialsOf(ctx, caller.AccountID)
	if err != nil {
		return err
	}
	matches, err := s.passwords.matches(ctx, try.hasher, password, own.PasswordHash)
	if err != nil {
		return err
	}
	if !matches {
		s.record(exchangeOf(ctx), persistence.EventSignInFailed)
		return protocol.Invalid(field, "is wrong")
	}
	return nil
}

type passwordInput struct {
	Body struct {
		CurrentPassword string `json:"current_password,omitempty" maxLength:"1024" doc:"Left out by an account that has none and has signed in within ten minutes."`
		NewPassword     string `json:"new_password" maxLength:"1024"`
	}
}

// changePassword ends every other session, and every token of this one but the new one that the answer carries.
func (s *Server) changePassword(ctx context.Context, in *passwordInput) (*signedIn, error) {
	ex := exchangeOf(ctx)
	if err := checkPassword("body.new_password", in.Body.NewPassword, ex.caller.Email); err != nil {
		return nil, err
	}
	if err := s.mayChangePassword(ctx, in.Body.CurrentPassword); err != nil {
		return nil, err
	}
	hash, err := s.passwords.hash(ctx, ownAttempt(ex.caller).hasher, in.Body.NewPassword)
	if err != nil {
		return nil, err
	}
	token, next := s.newToken(ex.agent)
	next.SessionID, next.ExpiresAt = ex.caller.SessionID, ex.caller.ExpiresAt
	if err := s.DB.ChangePassword(ctx, ex.caller.AccountID, hash, next, ex.requester()); err != nil {
		return nil, err
	}
	s.adopt(ex, token, next)
	s.rememberOwn(ex)
	return &signedIn{Body: s.sessionInfo(ex.caller)}, nil
}

// mayChangePassword asks for the old password, or, of an account that signs in by a provider only, for a recent sign-in.
func (s *Server) mayChangePassword(ctx context.Context, current string) error {
	caller := callerOf(ctx)
	own, err := s.DB.CredentialsOf(ctx, caller.AccountID)
	if err != nil {
		return err
	}
	if own.PasswordHash != nil {
		return s.provePassword(ctx, "body.current_password", current)
	}
	if !caller.recentlySignedIn(s.now()) {
		return errReauthRequired()
	}
	return nil
}
