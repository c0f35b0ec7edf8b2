package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Lifetimes of a session and its tokens. NIST SP 800-63B allows SessionIdle and sessionLifetime at AAL1.
const (
	// SessionIdle is the time after its last use at which a session ends.
	SessionIdle     = 7 * 24 * time.Hour
	sessionLifetime = 30 * 24 * time.Hour
	sessionTouch    = 5 * time.Minute  // last_used_at is written at most this often
	sessionRotation = 24 * time.Hour   // the age at which a token is replaced
	sessionOverlap  = 60 * time.Second // a replaced token stays valid this long after the first use of its successor
	sudoLifetime    = 10 * time.Minute // a sign-in counts as recent this long
)

const (
	tokenPrefix  = "s1_"
	tokenBytes   = 32
	maxUserAgent = 200
)

// newToken returns a new session token, and the row to store for it.
func (s *Service) newToken(userAgent string) (string, *accounts.NewSession) {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails
	token := tokenPrefix + encode(secret)
	now := s.now()
	return token, &accounts.NewSession{
		SessionID: protocol.NewSessionID(), TokenHash: s.keys.tokenHash(0, token), KeyVersion: s.keys.live[0].version,
		UserAgent: cleanUserAgent(userAgent), At: now, ExpiresAt: now.Add(sessionLifetime), ReauthenticatedAt: &now,
	}
}

// cleanUserAgent converts a User-Agent to a label: UTF-8 without control characters, of at most maxUserAgent bytes.
// Text that is not UTF-8 is read as Latin-1.
func cleanUserAgent(text string) string {
	if !utf8.ValidString(text) {
		latin := make([]rune, len(text))
		for i := range len(text) {
			latin[i] = rune(text[i])
		}
		text = string(latin)
	}
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, text)
	for len(text) > maxUserAgent {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// ErrUnauthenticated returns the error for a request without a valid session.
func ErrUnauthenticated() error {
	return protocol.Errorf(protocol.CodeUnauthenticated, "There is no valid session. Sign in first.")
}

// Authenticate determines the caller from the session cookie only. All invalid cookies get the same error. It writes
// nothing, except the end of a stolen session; Refresh updates the session once the request is admitted.
func (s *Service) Authenticate(ctx context.Context, req *Request) error {
	session, err := s.findSession(ctx, req.Cookie)
	if err != nil {
		return err
	}
	now := s.now()
	if !s.sessionValid(session, now) {
		over := s.DrawRefusal(ctx, req)
		if replacedLongAgo(session, now) && session.RevokedAt == nil { // once per session at most, so it needs no limit
			s.endStolen(ctx, req, session)
		}
		if over != nil {
			return over
		}
		return ErrUnauthenticated()
	}
	req.setCaller(session)
	return nil
}

// findSession looks up a session by its token.
func (s *Service) findSession(ctx context.Context, token string) (*accounts.Session, error) {
	if !strings.HasPrefix(token, tokenPrefix) || len(token) > 2*tokenBytes {
		return nil, ErrUnauthenticated()
	}
	hashes := make([][]byte, s.keys.Versions())
	for version := range hashes {
		hashes[version] = s.keys.tokenHash(version, token)
	}
	session, err := s.sessions.FindSession(ctx, hashes)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil, ErrUnauthenticated()
	}
	return session, err
}

// sessionValid reports whether the token of a session is valid.
func (s *Service) sessionValid(session *accounts.Session, now time.Time) bool {
	return session.RevokedAt == nil && !session.Disabled && now.Before(session.ExpiresAt) &&
		now.Before(session.LastUsedAt.Add(SessionIdle)) && !replacedLongAgo(session, now)
}

// replacedLongAgo reports whether the successor of the token has been in use for so long that no client should present
// the token any more. A client that does so has copied the token, or the token was copied from it.
func replacedLongAgo(session *accounts.Session, now time.Time) bool {
	return session.SuccessorUsedAt != nil && now.After(session.SuccessorUsedAt.Add(sessionOverlap))
}

// endStolen revokes all tokens of a session if a token that was replaced long ago is presented: the thief's token and
// the owner's.
func (s *Service) endStolen(ctx context.Context, req *Request, session *accounts.Session) {
	err := s.sessions.EndSession(ctx, session.AccountID, session.SessionID, audit.EventSessionReused, s.now(), req.Requester())
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		s.log.Error("a stolen session could not be ended", zap.String("request_id", req.ID), zap.Error(err))
	}
}

func (req *Request) setCaller(session *accounts.Session) {
	req.session = session
	req.Caller = &Caller{
		Account: session.Account, SessionID: session.SessionID, ExpiresAt: session.ExpiresAt, presentedHash: session.TokenHash, tokenHash: session.TokenHash,
	}
	if session.ReauthenticatedAt != nil {
		until := session.ReauthenticatedAt.Add(sudoLifetime)
		req.Caller.Reauthenticated = &until
	}
}

// RecentlySignedIn reports whether the caller may use routes that need a recent sign-in.
func (c *Caller) RecentlySignedIn(now time.Time) bool {
	return c.Reauthenticated != nil && now.Before(*c.Reauthenticated)
}

// Refresh stores that the caller's token was used, and replaces a token that is a day old. An error does not fail the
// request, because the session stays valid.
func (s *Service) Refresh(ctx context.Context, req *Request) {
	now, session := s.now(), req.session
	var err error
	if session.Fresh() || now.Sub(session.LastUsedAt) >= sessionTouch {
		err = s.sessions.TouchSession(ctx, session, now)
	}
	if err == nil && session.SuccessorUsedAt == nil && now.Sub(session.RotatedAt) >= sessionRotation {
		_, err = s.rotate(ctx, req, nil)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("a session could not be refreshed", zap.String("request_id", req.ID), zap.Error(err))
	}
}

// rotate replaces the caller's token with a new one, which the response sets. The old token stays valid until a
// minute after the first use of the new one, so that concurrent requests with it do not fail. With reauthenticated,
// only the new token counts as recently signed in. rotated is false if another request has just replaced the token.
func (s *Service) rotate(ctx context.Context, req *Request, reauthenticated *time.Time) (rotated bool, err error) {
	token, next := s.newToken(req.Agent)
	next.SessionID, next.ExpiresAt, next.ReauthenticatedAt = req.Caller.SessionID, req.Caller.ExpiresAt, reauthenticated
	overlap := sessionOverlap
	if reauthenticated != nil {
		overlap = 0 // unlike the successor of another request, this one is recently signed in
	}
	rotated, err = s.sessions.RotateSession(ctx, req.Caller.AccountID, req.Caller.tokenHash, next, overlap, req.Requester())
	if rotated {
		s.setSessionToken(req, token, next)
	}
	return rotated, err
}

// setSessionToken makes a stored token that of the caller, and sends it to the client as a cookie.
func (s *Service) setSessionToken(req *Request, token string, session *accounts.NewSession) {
	maxAge := max(1, int(session.ExpiresAt.Sub(s.now())/time.Second))
	s.cookies.set(req.Header, sessionCookie, token, maxAge)
	req.Caller.SessionID, req.Caller.ExpiresAt, req.Caller.tokenHash = session.SessionID, session.ExpiresAt, session.TokenHash
	if session.ReauthenticatedAt != nil {
		until := session.ReauthenticatedAt.Add(sudoLifetime)
		req.Caller.Reauthenticated = &until
	}
}

// ErrReauthRequired returns the error for a request that needs a recent sign-in.
func ErrReauthRequired() error {
	return protocol.Errorf(protocol.CodeReauthRequired, "This needs a recent sign-in: POST /auth/reauthenticate first.")
}
