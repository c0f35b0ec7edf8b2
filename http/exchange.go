package http

import (
	"bufio"
	"context"
	"net"
	stdhttp "net/http"
	"net/netip"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// exchange is what is known about one request. It travels in the request's context and is touched by its goroutine only.
type exchange struct {
	server     *Server
	requestID  string
	began      time.Time
	header     stdhttp.Header // of the answer
	cookie     string         // the session token that came, for sign-ins
	device     *device        // that has signed in before; nil: none
	agent      string
	address    netip.Addr // of the client, by trusted proxies only; invalid when unknown
	pattern    string     // the route's, never the path: paths hold identifiers and tokens
	caller     *Caller    // nil on public routes
	body       []byte     // once it was read
	bodyRead   bool
	bodyTook   time.Duration   // reading the body
	unlimited  context.Context // of the request, without the timeout of its policy
	public     bool            // the route is
	counted    bool            // among the account's requests under way
	reserved   bool            // its slot is one that only a cancel may keep
	handedOver bool            // a stream goes on without its handler, and writes its own line in the log

	session      *persistence.Session // the caller's
	refusalDrawn bool                 // see drawRefusal
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*exchange)
	if ex == nil {
		panic("http: a request outside of the frame")
	}
	return ex
}

// requester is what the audit knows of a request.
func (ex *exchange) requester() persistence.Requester {
	return persistence.Requester{RequestID: ex.requestID, Address: addressKey(ex.address)}
}

// Caller is who asks, as the session says. Nothing that a client sends besides its token changes it.
type Caller struct {
	protocol.Account
	SessionID       protocol.SessionID
	ExpiresAt       time.Time  // the absolute end of the session
	Reauthenticated *time.Time // until when routes that need a recent sign-in pass
	presented       []byte     // the token that came
	tokenHash       []byte     // the token that the client has after the answer: another one when it was replaced
}

// callerOf tells who asks. Only routes with a session have one.
func callerOf(ctx context.Context) *Caller {
	caller := exchangeOf(ctx).caller
	if caller == nil {
		panic("http: a public route asks for its caller")
	}
	return caller
}

// requestIDOf names the request in logs, audit rows and messages to actors.
func requestIDOf(ctx context.Context) string { return exchangeOf(ctx).requestID }

// recorder remembers the status for the log and whether the answer has begun. Unwrap keeps http.ResponseController
// working.
type recorder struct {
	stdhttp.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= stdhttp.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = stdhttp.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Hijack lets a stream take the connection over. What it writes is an answer with 200.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := stdhttp.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = stdhttp.StatusOK
	}
	return conn, buffers, err
}

func (w *recorder) Unwrap() stdhttp.ResponseWriter { return w.ResponseWriter }
