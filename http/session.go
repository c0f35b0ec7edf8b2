package http

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/protocol"
)

// cookieName is prefixed so that browsers refuse to set it without Secure, for another host or another path. Plain http,
// on loopback only, has the short name.
func (s *Server) cookieName() string {
	if s.secure() {
		return "__Host-session"
	}
	return "session"
}

func (s *Server) clearCookie(header stdhttp.Header) {
	cookie := &stdhttp.Cookie{Name: s.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.secure(), SameSite: stdhttp.SameSiteLaxMode}
	header.Add("Set-Cookie", cookie.String())
}

func (c *Caller) recentlySignedIn(now time.Time) bool {
	return c.Reauthenticated != nil && now.Before(*c.Reauthenticated)
}

func (s *Server) authenticate(stdhttp.ResponseWriter, *stdhttp.Request, *exchange) error {
	return protocol.Errorf(protocol.CodeUnauthenticated, "Sign in first.")
}

type auditEvent string

const (
	auditOrigin auditEvent = "request.origin_refused"
	auditCSRF   auditEvent = "request.csrf_refused"
)

func (s *Server) audit(context.Context, *exchange, auditEvent, map[string]any) {}

func (s *Server) ownsConversation(context.Context, protocol.AccountID, string) error { return nil }
