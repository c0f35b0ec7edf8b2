package router

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/ready"
	"turnstone/http/route"
	"turnstone/protocol/timelimit"
)

// publicTimeout is exchange.RequestTimeout of a request without a session: a sign-in may also have to wait until other passwords
// are hashed.
var publicTimeout = timelimit.Of(10 * time.Second)

// withTimeout limits a request that is not a stream.
func withTimeout(r *stdhttp.Request, policy route.Policy) (*stdhttp.Request, context.CancelFunc) {
	limit := exchange.RequestTimeout
	switch {
	case policy.Public:
		limit = publicTimeout
	case policy.Readiness:
		limit = ready.SessionTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return r.WithContext(ctx), cancel
}

// afterBody postpones the deadline of ctx, if it has one, by the time that reading the body took.
func afterBody(ctx context.Context, ex *requestState, took time.Duration) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited || took == 0 {
		return ctx, func() {}
	}
	return context.WithDeadline(valueContext{ex.unlimited, ctx}, deadline.Add(took))
}

// valueContext ends with Context and has the values of both.
type valueContext struct {
	context.Context
	values context.Context
}

func (c valueContext) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.values.Value(key)
}
