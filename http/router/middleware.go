package router

import (
	"fmt"
	stdhttp "net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/rs/cors"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/protocol"
)

const contentSecurityPolicy = "default-src 'none'; frame-ancestors 'none'"

// frameRequest is the outermost middleware. It creates the exchange with the identifier of the request, sets the
// headers that every response has, and logs and counts the request at its end. If a handler panics before the response
// has started, the response is a 500.
func (rt *Router) frameRequest(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		sender := &auth.Request{ID: response.NewRequestID(), Header: w.Header(), Address: proxies(rt.TrustedProxies).clientAddress(r)}
		ex := &requestState{
			Exchange: exchange.Exchange{Request: sender, Started: time.Now()},
			router:   rt, method: knownMethod(r.Method), pattern: unknownPattern,
		}
		rt.Auth.Read(ex.Request, r)
		rt.commonHeaders(w.Header(), ex.ID)
		rec := &recorder{ResponseWriter: w, ex: ex}
		ctx, span := startTrace(r.Context(), rt.Tracer, r)
		ex.span = span
		r = r.WithContext(exchange.With(ctx, ex))
		defer rt.finishRequest(rec, r, ex)
		defer rt.recover(rec, r)
		next.ServeHTTP(rec, r)
	})
}

func (rt *Router) commonHeaders(header stdhttp.Header, requestID string) {
	header.Set("X-Request-Id", requestID)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Robots-Tag", response.NoRobots)
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store") // the policy of a route may override it
	if rt.BaseURL.Scheme == "https" {
		header.Set("Strict-Transport-Security", "max-age=63072000; includeSubDomains")
	}
}

// recover turns a panic of a handler into a 500, or ends the connection if the response has started.
func (rt *Router) recover(w *recorder, r *stdhttp.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == stdhttp.ErrAbortHandler { //nolint:errorlint // the panic value is never wrapped
		panic(cause)
	}
	rt.Log.Error("a handler panicked", zap.String("request_id", exchange.RequestIDOf(r.Context())),
		zap.String("kind", fmt.Sprintf("%T", cause)), zap.String("stack", string(debug.Stack())))
	if w.status != 0 {
		panic(stdhttp.ErrAbortHandler) // the client must not take a partial response for a complete one
	}
	rt.Fail(w, r, protocol.Errorf(protocol.CodeInternal, "a handler panicked"))
}

// finishRequest logs and counts a request, unless a stream that took over the connection does so later. The only logged
// value from the client is the method, and only if it is a known one.
func (rt *Router) finishRequest(w *recorder, r *stdhttp.Request, ex *requestState) {
	if ex.TakenOver {
		return
	}
	rt.logRequest(ex.finished(w.status))
}

// finished returns the data of a request that ends with status.
func (ex *requestState) finished(status int) *finishedRequest {
	e := &finishedRequest{ex.ID, ex.method, ex.pattern, status, ex.Started, nil, ex.span, ex.streams}
	if ex.Caller != nil {
		account := ex.Caller.AccountID // a stream must not keep all of the caller in memory
		e.account = &account
	}
	return e
}

// finishedRequest has the data of a request that are logged and counted.
type finishedRequest struct {
	requestID, method, pattern string
	status                     int
	began                      time.Time
	account                    *protocol.AccountID // nil: not signed in
	span                       trace.Span          // nil: not sampled
	stream                     bool                // the request was counted when the stream began
}

// logRequest counts a request, writes its one line in the log, and ends its span.
func (rt *Router) logRequest(e *finishedRequest) {
	took := time.Since(e.began)
	if e.stream {
		rt.Metrics.stream(e.pattern, took)
	} else {
		rt.Metrics.request(e.method, e.pattern, e.status, took)
	}
	e.endTrace(rt.Keys)
	fields := []zap.Field{
		zap.String("request_id", e.requestID), zap.String("method", e.method), zap.String("route", e.pattern),
		zap.Int("status", e.status), zap.Float64("ms", float64(took.Microseconds())/1000),
	}
	if e.account != nil {
		fields = append(fields, zap.String("account", rt.Keys.Pseudonym(*e.account)))
	}
	if e.span != nil {
		fields = append(fields, zap.Stringer("trace_id", e.span.SpanContext().TraceID()))
	}
	rt.Log.Info("request", fields...)
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// knownMethod returns the method as a constant, or other. The string in the request is a part of the request line, all
// of which it would keep in memory for as long as a stream is open.
func knownMethod(method string) string {
	for _, known := range methods {
		if method == known {
			return known
		}
	}
	return "other"
}

// cors returns the middleware that lets the allowed origins call with credentials. Without allowed origins there are no
// CORS headers at all.
func (rt *Router) cors() func(stdhttp.Handler) stdhttp.Handler {
	if len(rt.AllowedOrigins) == 0 {
		return func(next stdhttp.Handler) stdhttp.Handler { return next }
	}
	const maxAge = 600
	return cors.New(cors.Options{
		AllowedOrigins:   rt.AllowedOrigins,
		AllowedMethods:   []string{"GET", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders:   []string{"Content-Type", "X-CSRF-Token", "X-Confirm", "Idempotency-Key", "If-Match", "Last-Event-ID"},
		ExposedHeaders:   []string{"ETag", "Idempotent-Replayed", "Location", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "X-Turn-Id"},
		AllowCredentials: true,
		MaxAge:           maxAge,
	}).Handler
}

// unknownPattern is the route, in logs and metrics, of requests that match no route.
const unknownPattern = "none"

// unknownPath handles requests that match no route.
func (rt *Router) unknownPath(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	rt.refuseUnknown(w, r, &protocol.Error{Code: protocol.CodeNotFound})
}

// navigates reports whether a browser requests a document to display, by the headers that only browsers send.
func navigates(r *stdhttp.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode") // absent in older browsers
	return (r.Method == stdhttp.MethodGet || r.Method == stdhttp.MethodHead) &&
		(mode == "navigate" || mode == "") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// unknownMethod handles requests whose path has routes, but none of their method.
func (rt *Router) unknownMethod(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	var has []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if pattern := rt.mux.Find(chi.NewRouteContext(), method, r.URL.Path); pattern != "" && !rt.hidden[method+" "+pattern] {
			has = append(has, method)
		}
	}
	if slices.Contains(has, "GET") {
		has = slices.Insert(has, 1, "HEAD")
	}
	w.Header().Set("Allow", strings.Join(has, ", "))
	rt.refuseUnknown(w, r, protocol.Errorf(protocol.CodeMethodNotAllowed, "This path does not support this method."))
}

// refuseUnknown requires a session, as every route does that is not public, so that a caller without one cannot find out
// which paths exist. A browser that navigates gets a page without user data.
func (rt *Router) refuseUnknown(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	ex := stateOf(r.Context())
	if rt.UnknownPage != nil && navigates(r) {
		w.Header().Del("Allow")
		ex.public = true
		rt.UnknownPage(w, r)
		return
	}
	if denied := rt.Auth.Authenticate(r.Context(), ex.Request); denied != nil {
		err = denied
		w.Header().Del("Allow")
	} else {
		rt.Auth.Refresh(r.Context(), ex.Request)
	}
	rt.Fail(w, r, err)
}

func (rt *Router) checkHost(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if err := rt.hosts.Check(r); err != nil {
			rt.Fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
