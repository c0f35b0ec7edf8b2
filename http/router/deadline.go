package router

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/http/ready"
	"turnstone/http/route"
	"turnstone/protocol/timelimit"
)

// requestTimeout limits how long a request may take; for a stream, until its first byte. Waiting for another request
// with the same Idempotency-Key counts. Reading the body does not count: it depends on the client's connection, and
// readStalling limits it. A sign-in may also have to wait until other passwords are hashed.
var (
	requestTimeout = timelimit.Of(5 * time.Second)
	publicTimeout  = timelimit.Of(10 * time.Second)
)

// withTimeout limits a request that is not a stream.
func withTimeout(r *stdhttp.Request, policy route.Policy) (*stdhttp.Request, context.CancelFunc) {
	limit := requestTimeout
	switch {
	case policy.Public:
		limit = publicTimeout
	case policy.Readiness:
		limit = ready.SessionTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return r.WithContext(ctx), cancel
}

// UntilFirstByte limits the time until the first byte of a stream.
func UntilFirstByte(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, ExchangeOf(ctx).waitingSince().Add(requestTimeout))
}

// waitingSince returns the time from which the timeouts of a request count: its start plus the time that reading its
// body took.
func (ex *Exchange) waitingSince() time.Time { return ex.started.Add(ex.bodyTook) }

// afterBody postpones the deadline of ctx, if it has one, by the time that reading the body took.
func afterBody(ctx context.Context, ex *Exchange, took time.Duration) (context.Context, context.CancelFunc) {
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
