package http

import (
	"context"
	"crypto/rand"
	"errors"
	stdhttp "net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
)

// The life of a session. NIST SP 800-63B's AAL1 lets both be this long.
const (
	sessionIdle     = 7 * 24 * time.Hour
	sessionLife     = 30 * 24 * time.Hour
	sessionTouch    = 5 * time.Minute  // last_used_at is written at most this often
	sessionRotation = 24 * time.Hour   // of use, after which the token is replaced
	sessionOverlap  = 60 * time.Second // that a replaced token stays good after its successor was first used
	sudoLife        = 10 * time.Minute // that a sign-in counts as recent
)

const (
	tokenPrefix  = "s1_"
	tokenBytes   = 32
	maxUserAgent = 200
)

// cookieName is prefixed so that browsers refuse to set it without Secure, for another host or another path. Plain http,
// on loopback only, has the short name.
func (s *Server) cookieName() string {
	if s.secure() {
		return "__Host-session"
	}
	return "session"
}

func (s *Server) sessionCookie(value string, maxAge int) string {
	cookie := &stdhttp.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(), SameSite: stdhttp.SameSiteLaxMode,
	}
	return cookie.String()
}

func (s *Server) clearCookie(header stdhttp.Header) {
	setCookie(header, s.cookieName(), s.sessionCookie("", -1))
}

// setCookie puts a cookie into an answer, in place of one of the same name.
func setCookie(header stdhttp.Header, name, cookie string) {
	header["Set-Cookie"] = append(slices.DeleteFunc(header["Set-Cookie"], func(other string) bool {
		return strings.HasPrefix(other, name+"=")
	}), cookie)
}

// newToken makes a token and what is stored of it.
func (s *Server) newToken(userAgent string) (string, *persistence.NewSession) {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails
	token := tokenPrefix + encode(secret)
	now := s.now()
	return token, &persistence.NewSession{
		SessionID: protocol.NewSessionID(), TokenHash: s.keys.tokenHash(0, token), KeyVersion: s.keys.live[0].version,
		UserAgent: cleanUserAgent(userAgent), At: now, ExpiresAt: now.Add(sessionLife), ReauthenticatedAt: &now,
	}
}

// cleanUserAgent makes a label of a User-Agent: UTF-8 without control characters. What is not UTF-8 is read as Latin-1.
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

func errUnauthenticated() error {
	return protocol.Errorf(protocol.CodeUnauthenticated, "There is no valid session. Sign in first.")
}

// authenticate finds out who asks, from the cookie alone. Whatever is wrong with it, the answer is the same. It writes
// nothing, but for the end of a stolen session; keepYoung follows once the request is admitted.
func (s *Server) authenticate(ctx context.Context, ex *exchange) error {
	session, err := s.presented(ctx, ex.cookie)
	if err != nil {
		return err
	}
	now := s.now()
	if !s.good(session, now) {
		over := s.drawRefusal(ctx, ex)
		if replacedLongAgo(session, now) && session.RevokedAt == nil { // at most once a session, so whatever the bucket says
			s.endStolen(ctx, ex, session)
		}
		if over != nil {
			return over
		}
		return errUnauthenticated()
	}
	ex.setCaller(session)
	return nil
}

// cookieOf reads the token that a request brings; empty when none.
func (s *Server) cookieOf(r *stdhttp.Request) string {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return ""
	}
	return cookie.Value
}

// presented looks a token up.
func (s *Server) presented(ctx context.Context, token string) (*persistence.Session, error) {
	if !strings.HasPrefix(token, tokenPrefix) || len(token) > 2*tokenBytes {
		return nil, errUnauthenticated()
	}
	hashes := make([][]byte, s.keys.versions())
	for version := range hashes {
		hashes[version] = s.keys.tokenHash(version, token)
	}
	session, err := s.DB.FindSession(ctx, hashes)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil, errUnauthenticated()
	}
	return session, err
}

func (s *Server) good(session *persistence.Session, now time.Time) bool {
	return session.RevokedAt == nil && !session.Disabled && now.Before(session.ExpiresAt) &&
		now.Before(session.LastUsedAt.Add(sessionIdle)) && !replacedLongAgo(session, now)
}

// replacedLongAgo says that the token should not be around any more: its successor has been in use for a while. Whoever
// still brings it has copied it, or has been copied from.
func replacedLongAgo(session *persistence.Session, now time.Time) bool {
	return session.SuccessorUsedAt != nil && now.After(session.SuccessorUsedAt.Add(sessionOverlap))
}

// endStolen revokes all tokens of a session of which an old one came back, the thief's and the owner's.
func (s *Server) endStolen(ctx context.Context, ex *exchange, session *persistence.Session) {
	err := s.DB.EndSession(ctx, session.AccountID, session.SessionID, persistence.EventSessionReused, s.now(), ex.requester())
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		s.log.Error("a stolen session could not be ended", zap.String("request_id", ex.requestID), zap.Error(err))
	}
}

func (ex *exchange) setCaller(session *persistence.Session) {
	ex.session = session
	ex.caller = &Caller{
		Account: session.Account, SessionID: session.SessionID, ExpiresAt: session.ExpiresAt, presented: session.TokenHash, tokenHash: session.TokenHash,
	}
	if session.ReauthenticatedAt != nil {
		until := session.ReauthenticatedAt.Add(sudoLife)
		ex.caller.Reauthenticated = &until
	}
}

func (c *Caller) recentlySignedIn(now time.Time) bool {
	return c.Reauthenticated != nil && now.Before(*c.Reauthenticated)
}

// keepYoung notes that the caller's token was used and replaces one that has been in use for a day. Neither may fail the
// request: the session is good either way.
func (s *Server) keepYoung(ctx context.Context, ex *exchange) {
	now, session := s.now(), ex.session
	var err error
	if session.Fresh() || now.Sub(session.LastUsedAt) >= sessionTouch {
		err = s.DB.TouchSession(ctx, session, now)
	}
	if err == nil && session.SuccessorUsedAt == nil && now.Sub(session.RotatedAt) >= sessionRotation {
		_, err = s.rotate(ctx, ex, nil)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("a session was not refreshed", zap.String("request_id", ex.requestID), zap.Error(err))
	}
}

// rotate replaces the caller's token by a new one, which the answer carries. The old one stays good until a minute after
// the new one was first used, so that requests under way with it do not fail. With reauthenticated, only the new one
// counts as recently signed in.
func (s *Server) rotate(ctx context.Context, ex *exchange, reauthenticated *time.Time) (rotated bool, err error) {
	token, next := s.newToken(ex.agent)
	next.SessionID, next.ExpiresAt, next.ReauthenticatedAt = ex.caller.SessionID, ex.caller.ExpiresAt, reauthenticated
	patience := sessionOverlap
	if reauthenticated != nil {
		patience = 0 // this successor is more than the one that is under way
	}
	rotated, err = s.DB.RotateSession(ctx, ex.caller.AccountID, ex.caller.tokenHash, next, patience, ex.requester())
	if rotated {
		s.adopt(ex, token, next)
	}
	return rotated, err
}

// adopt makes a stored token the one that the client has after this answer.
func (s *Server) adopt(ex *exchange, token string, session *persistence.NewSession) {
	maxAge := max(1, int(session.ExpiresAt.Sub(s.now())/time.Second))
	setCookie(ex.header, s.cookieName(), s.sessionCookie(token, maxAge))
	ex.caller.SessionID, ex.caller.ExpiresAt, ex.caller.tokenHash = session.SessionID, session.ExpiresAt, session.TokenHash
	if session.ReauthenticatedAt != nil {
		until := session.ReauthenticatedAt.Add(sudoLife)
		ex.caller.Reauthenticated = &until
	}
}
