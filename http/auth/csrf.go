package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	stdhttp "net/http"
	"net/url"
	"slices"
	"strings"

	"turnstone/persistence/audit"
	"turnstone/protocol"
)

const (
	// CSRFHeader is the header of the CSRF token.
	CSRFHeader = "X-CSRF-Token"
	csrfNonce  = 16
)

// origins checks the origin of requests.
type origins struct {
	scheme  string   // of the service
	allowed []string // other origins that may call with credentials
	checks  *stdhttp.CrossOriginProtection
}

// newOrigins returns the checks that refuse unsafe requests from other sites by Sec-Fetch-Site or, without that header,
// by Origin. Requests with neither header pass; the CSRF token is the second check.
func newOrigins(base *url.URL, allowed []string) (*origins, error) {
	checks := stdhttp.NewCrossOriginProtection()
	if err := checks.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, err
	}
	for _, origin := range allowed {
		parsed, err := url.Parse(origin)
		if err != nil || parsed.Scheme+"://"+parsed.Host != origin || parsed.Host == "" || strings.Contains(origin, "*") {
			return nil, fmt.Errorf("invalid origin %q (want an exact origin, for example https://app.example.com)", origin)
		}
		if err := checks.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return &origins{base.Scheme, allowed, checks}, nil
}

// CheckOrigin refuses a request from another site.
func (s *Service) CheckOrigin(r *stdhttp.Request, req *Request) error {
	if !s.origins.allow(r) {
		s.Record(req, audit.EventOriginRefused)
		return protocol.Errorf(protocol.CodeOrigin, "Requests from other sites are refused.")
	}
	return nil
}

// allow reports whether a request is not from another site. An Origin must have the scheme of the service or be allowed
// explicitly: checks also accepts the service's host over plain http, which anybody on the network path can
// impersonate.
func (o *origins) allow(r *stdhttp.Request) bool {
	if o.checks.Check(r) != nil {
		return false
	}
	origin := r.Header.Get("Origin")
	return !unsafe(r.Method) || origin == "" || strings.HasPrefix(origin, o.scheme+"://") || slices.Contains(o.allowed, origin)
}

// csrfToken returns a token that an unsafe request must have in X-CSRF-Token. It is bound to the session and to its
// current session token, and is invalid once either has ended.
func (k *Keys) csrfToken(caller *Caller) string {
	nonce := make([]byte, csrfNonce)
	_, _ = rand.Read(nonce) // never fails
	return encode(nonce) + "." + encode(k.csrf(0, caller.SessionID, caller.tokenHash, nonce))
}

// CheckCSRF refuses a request whose X-CSRF-Token is not that of the session.
func (s *Service) CheckCSRF(r *stdhttp.Request, req *Request) error {
	nonceText, macText, _ := strings.Cut(r.Header.Get(CSRFHeader), ".")
	nonce, errNonce := base64.RawURLEncoding.DecodeString(nonceText)
	mac, errMAC := base64.RawURLEncoding.DecodeString(macText)
	if errNonce == nil && errMAC == nil && len(nonce) == csrfNonce {
		for version := range s.keys.Versions() {
			if hmac.Equal(mac, s.keys.csrf(version, req.Caller.SessionID, req.Caller.presentedHash, nonce)) {
				return nil
			}
		}
	}
	s.Record(req, audit.EventCSRFRefused)
	return protocol.Errorf(protocol.CodeCSRF, "X-CSRF-Token is missing or invalid. Get a token from GET /auth/session.")
}
