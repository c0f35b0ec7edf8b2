package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/rs/cors"
	"go.uber.org/zap"

	"turnstone/protocol"
)

const contentSecurityPolicy = "default-src 'none'; frame-ancestors 'none'"

// begin is the outermost layer: it names the request, sets what every answer carries, and logs and counts the end. A
// panic of a handler becomes a 500, if nothing was sent yet.
func (s *Server) begin(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		ex := &exchange{
			server: s, requestID: "req_" + uuid.Must(uuid.NewV7()).String(), pattern: unknownPattern, began: time.Now(), header: w.Header(),
			address: s.clientAddress(r), cookie: s.cookieOf(r), device: s.deviceOf(r), agent: r.UserAgent(),
		}
		s.commonHeaders(w.Header(), ex.requestID)
		rec := &recorder{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, ex))
		defer s.end(rec, r, ex)
		defer s.recover(rec, r)
		next.ServeHTTP(rec, r)
	})
}

func (s *Server) commonHeaders(header stdhttp.Header, requestID string) {
	header.Set("X-Request-Id", requestID)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store") // a route's policy may say otherwise
	if s.secure() {
		header.Set("Strict-Transport-Security", "max-age=63072000; includeSubDomains")
	}
}

// secure says whether browsers reach the service over TLS.
func (s *Server) secure() bool { return s.BaseURL.Scheme == "https" }

func (s *Server) recover(w *recorder, r *stdhttp.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == stdhttp.ErrAbortHandler { //nolint:errorlint // the value itself is what is panicked with
		panic(cause)
	}
	s.log.Error("a handler panicked", zap.String("request_id", requestIDOf(r.Context())),
		zap.String("kind", fmt.Sprintf("%T", cause)), zap.String("stack", string(debug.Stack())))
	if w.status != 0 {
		panic(stdhttp.ErrAbortHandler) // the client must not take half an answer for a whole one
	}
	s.fail(w, r, protocol.Errorf(protocol.CodeInternal, "a handler panicked"))
}

// end writes the one log line of a request. Nothing in it comes from the client but the method, and that only if known.
func (s *Server) end(w *recorder, r *stdhttp.Request, ex *exchange) {
	if ex.handedOver {
		return
	}
	var account *protocol.AccountID
	if ex.caller != nil {
		account = &ex.caller.AccountID
	}
	s.ended(&ended{ex.requestID, knownMethod(r.Method), ex.pattern, w.status, ex.began, account})
}

// ended is what is told of a request.
type ended struct {
	requestID, method, pattern string
	status                     int
	began                      time.Time
	account                    *protocol.AccountID // nil: nobody's
}

func (s *Server) ended(e *ended) {
	took := time.Since(e.began)
	s.metrics.request(e.pattern, e.status, took)
	fields := []zap.Field{
		zap.String("request_id", e.requestID), zap.String("method", e.method), zap.String("route", e.pattern),
		zap.Int("status", e.status), zap.Float64("ms", float64(took.Microseconds())/1000),
	}
	if e.account != nil {
		fields = append(fields, zap.String("account", s.keys.pseudonym(*e.account)))
	}
	s.log.Info("request", fields...)
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// knownMethod gives a text of its own: the request's is a piece of all that came with it.
func knownMethod(method string) string {
	for _, known := range methods {
		if method == known {
			return known
		}
	}
	return "other"
}

// cors lets approved origins call with credentials. Without any there are no CORS headers at all.
func (s *Server) cors() func(stdhttp.Handler) stdhttp.Handler {
	if len(s.AllowedOrigins) == 0 {
		return func(next stdhttp.Handler) stdhttp.Handler { return next }
	}
	const maxAge = 600
	return cors.New(cors.Options{
		AllowedOrigins:   s.AllowedOrigins,
		AllowedMethods:   []string{"GET", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders:   []string{"Content-Type", "X-CSRF-Token", "X-Confirm", "Idempotency-Key", "If-Match", "Last-Event-ID"},
		ExposedHeaders:   []string{"ETag", "Idempotent-Replayed", "Location", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "X-Turn-Id"},
		AllowCredentials: true,
		MaxAge:           maxAge,
	}).Handler
}

// clientAddress is the peer's, or what trusted proxies say in X-Forwarded-For: the rightmost address that is none of
// theirs. A list that cannot be read names nobody.
func (s *Server) clientAddress(r *stdhttp.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(address); i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" {
			break
		}
		next, err := netip.ParseAddr(hop)
		if err != nil {
			return netip.Addr{}
		}
		address = next.Unmap().WithZone("")
	}
	return address
}

func (s *Server) trusts(address netip.Addr) bool {
	for _, proxy := range s.TrustedProxies {
		if proxy.Contains(address) {
			return true
		}
	}
	return false
}

// addressKey is what limits and audit rows know of a client's address: an IPv4 address, or the /64 of an IPv6 one.
func addressKey(address netip.Addr) string {
	if !address.IsValid() {
		return "unknown"
	}
	if address.Is4() {
		return address.String()
	}
	const network = 64
	return netip.PrefixFrom(address, network).Masked().String()
}

// unknownPattern is the route of requests that have none, in logs and metrics.
const unknownPattern = "none"

// unknownPath answers for what no route is registered for. It needs a session, as every route does that is not listed
// as public, so that a stranger learns nothing of the paths that exist.
func (s *Server) unknownPath(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	s.refuseUnknown(w, r, &protocol.Error{Code: protocol.CodeNotFound})
}

func (s *Server) unknownMethod(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if s.router.Match(chi.NewRouteContext(), method, r.URL.Path) {
			w.Header().Add("Allow", method)
		}
	}
	s.refuseUnknown(w, r, protocol.Errorf(protocol.CodeMethodNotAllowed, "This path does not take this method."))
}

func (s *Server) refuseUnknown(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	ex := exchangeOf(r.Context())
	if denied := s.authenticate(r.Context(), ex); denied != nil {
		err = denied
		w.Header().Del("Allow")
	} else {
		s.keepYoung(r.Context(), ex)
	}
	s.fail(w, r, err)
}
