package http

import (
	"context"
	"fmt"
	stdhttp "net/http"

	"turnstone/protocol"
)

// A refusal is a response with 401 or 403. Anybody can cause one, as often as the network allows, so it has to stay
// cheap: one look at the session, no row (events are counted, see tallies), and a draw from the bucket of the caller's
// address. Requests that succeed never draw from that bucket, so nobody can use it up for others behind the same address.

// refused says whether a status is that of a refusal.
func refused(status int) bool {
	return status == stdhttp.StatusUnauthorized || status == stdhttp.StatusForbidden
}

// drawRefusal draws for a request that is being refused, once; over the limit it returns the 429 that takes the place of
// the refusal. The bucket is in the process, so it can always decide.
func (s *Server) drawRefusal(ctx context.Context, ex *exchange) error {
	if ex.refusalDrawn {
		return nil
	}
	ex.refusalDrawn = true
	decision, err := s.Limiter.Take(ctx, string(bucketRefusals), addressKey(ex.address))
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit of %s: %w", bucketRefusals, err)}
	}
	if decision.Allowed {
		return nil
	}
	limitHeaders(ex.header, bucketRefusals, decision)
	s.metrics.limited(bucketRefusals)
	return errLimited(decision)
}
