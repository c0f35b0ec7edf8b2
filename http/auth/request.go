package auth

import (
	"context"
	stdhttp "net/http"
	"net/netip"
	"time"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Request is the state of one request in this package. Only the goroutine of the request uses it.
type Request struct {
	ID      string
	Header  stdhttp.Header // of the response; cookies are set here
	Cookie  string         // the session token of the request; empty: none
	Passkey string         // the secret of the passkey request of this browser; empty: none
	Device  *device        // from a valid device cookie; nil: none
	Agent   string         // the User-Agent
	Address netip.Addr     // of the client; invalid: unknown
	Caller  *Caller        // nil: not signed in

	session      *accounts.Session // the caller's
	refusalDrawn bool              // see DrawRefusal
}

// Caller is the account and the session of a request. It is derived from the session token only; nothing else that a
// client sends changes it.
type Caller struct {
	protocol.Account
	SessionID       protocol.SessionID
	ExpiresAt       time.Time  // the absolute end of the session
	Reauthenticated *time.Time // until when the sign-in counts as recent; nil: it does not
	presentedHash   []byte     // hash of the token that the request presented
	tokenHash       []byte     // hash of the token that the client has after the response
}

// Read sets Cookie, Passkey, Device and Agent from a request.
func (s *Service) Read(req *Request, r *stdhttp.Request) {
	req.Cookie, req.Passkey, req.Device, req.Agent = s.cookies.of(r, sessionCookie), s.cookies.of(r, passkeyCookie), s.devices.of(r), r.UserAgent()
}

// Requester returns the data of the request that audit entries store.
func (req *Request) Requester() audit.Requester {
	return audit.Requester{RequestID: req.ID, Address: AddressKey(req.Address)}
}

// A refusal is a response with 401 or 403. Any client can cause refusals, as often as the network allows, so a refusal
// has to be cheap: one lookup of the session, no row (events are counted, see tallies), and one draw from the bucket of
// the address of the client. Requests that succeed never draw from that bucket, so an empty bucket does not affect
// them, even if many clients share the address.

// DrawRefusal draws once for a request that is being refused. Over the limit it returns the 429 that replaces the
// refusal.
func (s *Service) DrawRefusal(ctx context.Context, req *Request) error {
	if req.refusalDrawn {
		return nil
	}
	req.refusalDrawn = true
	return s.limits.DrawRefusal(ctx, AddressKey(req.Address))
}

// AddressKey returns the form of a client's address that limits and audit entries use: an IPv4 address, or the /64
// prefix of an IPv6 address.
func AddressKey(address netip.Addr) string {
	if !address.IsValid() {
		return "unknown"
	}
	if address.Is4() {
		return address.String()
	}
	const network = 64
	return netip.PrefixFrom(address, network).Masked().String()
}

// unsafe reports whether requests with a method may change something.
func unsafe(method string) bool {
	return method != stdhttp.MethodGet && method != stdhttp.MethodHead && method != stdhttp.MethodOptions
}
