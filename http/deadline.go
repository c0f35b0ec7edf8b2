package http

import (
	"context"
	stdhttp "net/http"
	"time"
)

// requestTimeout limits what a request may wait for, a stream's until its first byte. Waiting for another request with the
// same Idempotency-Key is included; reading the body is not, because that depends on the client's connection and
// readStalling limits it. Sign-in may also have to wait for the hashing of passwords.
const (
	requestTimeout = 5 * time.Second
	publicTimeout  = 10 * time.Second
)

// withTimeout limits a request that is not a stream.
func withTimeout(r *stdhttp.Request, policy Policy) (*stdhttp.Request, context.CancelFunc) {
	limit := requestTimeout
	switch {
	case policy.Public:
		limit = publicTimeout
	case policy.Readiness:
		limit = sessionTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return r.WithContext(ctx), cancel
}

// untilAnswered limits what a stream's request waits for before its first byte.
func untilAnswered(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, exchangeOf(ctx).waitingSince().Add(requestTimeout))
}

// waitingSince is the time from which the deadlines of a request count: its start, moved by the time that its body took.
func (ex *exchange) waitingSince() time.Time { return ex.began.Add(ex.bodyTook) }

// afterBody moves the deadline of ctx, if it has one, by the time that reading the body took.
func afterBody(ctx context.Context, ex *exchange, took time.Duration) (context.Context, context.CancelFunc) {
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
