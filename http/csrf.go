package http

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	stdhttp "net/http"
	"net/url"
	"slices"
	"strings"

	"turnstone/persistence"
	"turnstone/protocol"
)

const (
	csrfHeader = "X-CSRF-Token"
	csrfNonce  = 16
)

// originChecks refuses unsafe requests of other sites by Sec-Fetch-Site, else by Origin. It lets requests with neither
// header pass; the CSRF token is the second check.
func (s *Server) originChecks() (*stdhttp.CrossOriginProtection, error) {
	checks := stdhttp.NewCrossOriginProtection()
	if err := checks.AddTrustedOrigin(s.BaseURL.Scheme + "://" + s.BaseURL.Host); err != nil {
		return nil, err
	}
	for _, origin := range s.AllowedOrigins {
		parsed, err := url.Parse(origin)
		if err != nil || parsed.Scheme+"://"+parsed.Host != origin || parsed.Host == "" || strings.Contains(origin, "*") {
			return nil, fmt.Errorf("%q is not an exact origin as https://app.example.com", origin)
		}
		if err := checks.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return checks, nil
}

func (s *Server) checkOrigin(r *stdhttp.Request, ex *exchange) error {
	if s.origins.Check(r) != nil || !safe(r.Method) && !s.rightScheme(r.Header.Get("Origin")) {
		s.record(ex, persistence.EventOriginRefused)
		return protocol.Errorf(protocol.CodeOrigin, "Requests of other sites are refused.")
	}
	return nil
}

// rightScheme refuses what the checks above let pass: our own host over plain http, which anybody on the way can speak for.
func (s *Server) rightScheme(origin string) bool {
	return origin == "" || strings.HasPrefix(origin, s.BaseURL.Scheme+"://") || slices.Contains(s.AllowedOrigins, origin)
}

// csrfToken makes what an unsafe request has to bring in X-CSRF-Token. It is bound to the session and its present token,
// so it dies when either does.
func (s *Server) csrfToken(caller *Caller) string {
	nonce := make([]byte, csrfNonce)
	_, _ = rand.Read(nonce) // never fails
	return encode(nonce) + "." + encode(s.keys.csrf(0, caller.SessionID, caller.tokenHash, nonce))
}

func (s *Server) checkCSRF(r *stdhttp.Request, ex *exchange) error {
	nonceText, macText, _ := strings.Cut(r.Header.Get(csrfHeader), ".")
	nonce, errNonce := base64.RawURLEncoding.DecodeString(nonceText)
	mac, errMAC := base64.RawURLEncoding.DecodeString(macText)
	if errNonce == nil && errMAC == nil && len(nonce) == csrfNonce {
		for version := range s.keys.versions() {
			if hmac.Equal(mac, s.keys.csrf(version, ex.caller.SessionID, ex.caller.presented, nonce)) {
				return nil
			}
		}
	}
	s.record(ex, persistence.EventCSRFRefused)
	return protocol.Errorf(protocol.CodeCSRF, "X-CSRF-Token is missing or wrong. GET /auth/session gives one.")
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
