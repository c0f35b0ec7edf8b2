package router

import (
	"bufio"
	"context"
	"net"
	stdhttp "net/http"

	"go.opentelemetry.io/otel/trace"

	"turnstone/http/exchange"
)

// requestState is the state of one request: what its handler needs, and what only the router does.
type requestState struct {
	exchange.Exchange

	router     *Router
	method     string // a known one, or other
	pattern    string // of the route; never the path, which can contain identifiers and tokens
	maxBody    int64  // limit of a JSON body, in bytes
	bodyRead   bool
	unlimited  context.Context                     // the context of the request, without the timeout of its policy
	public     bool                                // the route needs no session
	success    int                                 // the status of a successful response
	restore    func(stored []byte) ([]byte, error) // see route.Route.Restoring
	leaveQueue func()                              // of heavy requests; nil: the request is in none
	span       trace.Span                          // nil: not sampled
	streams    bool                                // the request has become a stream, and is counted
}

// stateOf returns the state of the request whose context ctx is. It panics for any other context.
func stateOf(ctx context.Context) *requestState { return exchange.CarrierOf(ctx).(*requestState) }

// recorder records the status for the log, and whether the response has started. When it starts, the request leaves the queue
// of heavy requests: a reader that is slow delays no other request. Unwrap keeps http.ResponseController working.
type recorder struct {
	stdhttp.ResponseWriter
	ex     *requestState
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= stdhttp.StatusOK {
		w.status = status
		if w.ex.leaveQueue != nil {
			w.ex.leaveQueue()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(stdhttp.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Hijack lets a stream take over the connection. The stream writes a response with status 200.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := stdhttp.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = stdhttp.StatusOK
	}
	return conn, buffers, err
}

func (w *recorder) Unwrap() stdhttp.ResponseWriter { return w.ResponseWriter }
