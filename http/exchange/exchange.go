package exchange

import (
	"context"
	"time"

	"turnstone/http/auth"
	"turnstone/protocol"
)

// ReplayedHeader marks a stored response.
const ReplayedHeader = "Idempotent-Replayed"

// Exchange is the state of one request, as far as its handler needs it. It is stored in the context of the request, and only the
// goroutine of the request uses it.
type Exchange struct {
	*auth.Request // the sender of the request

	Started   time.Time
	Body      []byte        // of JSON, once it was read
	BodyTook  time.Duration // the time that reading the body took
	TakenOver bool          // a stream owns the connection, and logs the request itself

	slot     *RequestSlots // of which the request has a slot; nil: none
	reserved bool          // the slot is reserved for cancels
}

// Carrier is a struct that embeds an Exchange.
type Carrier interface {
	exchange() *Exchange
	// BeginStream is called when the request becomes a stream, and ended when the stream has ended.
	BeginStream() (ended func())
}

func (ex *Exchange) exchange() *Exchange { return ex } //nolint:unused // promoted to each Carrier

type key struct{}

// With returns a context with the state of a request.
func With(ctx context.Context, state Carrier) context.Context {
	return context.WithValue(ctx, key{}, state)
}

// CarrierOf returns what With has stored. It panics for a context of no request.
func CarrierOf(ctx context.Context) Carrier {
	state, _ := ctx.Value(key{}).(Carrier)
	if state == nil {
		panic("http: the request did not pass through Router.frameRequest")
	}
	return state
}

// Of returns the state of the request whose context ctx is. It panics for any other context.
func Of(ctx context.Context) *Exchange { return CarrierOf(ctx).exchange() }

// AuthOf returns the state of the request in package auth.
func AuthOf(ctx context.Context) *auth.Request { return Of(ctx).Request }

// CallerOf returns the signed-in caller. It panics on a route without a session.
func CallerOf(ctx context.Context) *auth.Caller {
	caller := Of(ctx).Caller
	if caller == nil {
		panic("http: CallerOf on a public route")
	}
	return caller
}

// RequestIDOf returns the identifier of the request for logs, audit rows and messages to actors.
func RequestIDOf(ctx context.Context) string { return Of(ctx).ID }

// Sessions ends transfers with their sessions.
type Sessions interface {
	// Watch calls end when the session ends, until stop is called. end must not block.
	Watch(account protocol.AccountID, session protocol.SessionID, end func()) (stop func())
}

// ErrSessionEnded returns the error of a request whose session ended before the response began.
func ErrSessionEnded() error {
	return protocol.Errorf(protocol.CodeUnauthenticated, "The session has ended. Sign in again.")
}
