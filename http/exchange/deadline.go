package exchange

import (
	"context"
	"time"

	"turnstone/protocol/timelimit"
)

// RequestTimeout limits how long a request may take; for a stream, until its first byte. Waiting for another request
// with the same Idempotency-Key counts. Reading the body does not count: it depends on the client's connection, and
// package transfer limits it.
var RequestTimeout = timelimit.Of(5 * time.Second)

// UntilFirstByte limits the time until the first byte of a stream.
func UntilFirstByte(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, Of(ctx).waitingSince().Add(RequestTimeout))
}

// waitingSince returns the time from which the timeouts of a request count: its start plus the time that reading its
// body took.
func (ex *Exchange) waitingSince() time.Time { return ex.Started.Add(ex.BodyTook) }
