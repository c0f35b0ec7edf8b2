package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"strconv"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// Limiter decides whether a request may go on. An error means that it could not decide: the request is refused.
type Limiter interface {
	// Take draws one from the bucket of a key: an account, or an address where there is none.
	Take(ctx context.Context, bucket, key string) (persistence.Decision, error)
}

var _ Limiter = (*persistence.Limiter)(nil)

// limit draws from the bucket of the caller and tells the client where it stands.
func (s *Server) limit(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, from bucket) error {
	if from == noBucket {
		return nil
	}
	key := addressKey(ex.address)
	switch {
	case ex.caller != nil:
		key = ex.caller.AccountID.String()
	case ex.device != nil: // signs in; a crowd behind the same address must not keep it from that
		key = ex.device.key()
	}
	return s.draw(w, r, from, key)
}

// draw takes one from a bucket, for handlers that know better than their policy which one it is.
func (s *Server) draw(w stdhttp.ResponseWriter, r *stdhttp.Request, from bucket, key string) error {
	return s.take(r.Context(), w.Header(), from, key)
}

func (s *Server) take(ctx context.Context, header stdhttp.Header, from bucket, key string) error {
	ctx, cancel := context.WithDeadline(ctx, limiterDeadline(exchangeOf(ctx).waitingSince(), time.Now()))
	defer cancel()
	decision, err := s.Limiter.Take(ctx, string(from), key)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit of %s: %w", from, err)}
	}
	limitHeaders(header, from, decision)
	if !decision.Allowed {
		s.metrics.limited(from)
		return errLimited(decision)
	}
	return nil
}

// A request whose limiter does not answer is refused within 300 ms. So what came before, the look-ups of the session and
// the key, shortens the wait for the limiter, which still gets enough time to answer on a busy machine.
const (
	limiterPatience = 250 * time.Millisecond // from the beginning of the request
	limiterLeast    = 100 * time.Millisecond
)

// limiterDeadline returns until when a request that began at some time waits for the limiter.
func limiterDeadline(began, now time.Time) time.Time {
	deadline, least := began.Add(limiterPatience), now.Add(limiterLeast)
	if deadline.Before(least) {
		return least
	}
	return deadline
}

func errLimited(decision persistence.Decision) error {
	return &protocol.Error{Code: protocol.CodeRateLimited, Detail: "Too many requests. Try again later.", RetryAfter: wholeSeconds(decision.RetryAfter)}
}

// limitHeaders follow draft-ietf-httpapi-ratelimit-headers-11.
func limitHeaders(header stdhttp.Header, from bucket, decision persistence.Decision) {
	name := strconv.Quote(string(from))
	header.Set("RateLimit-Policy", fmt.Sprintf("%s;q=%d;w=%d", name, decision.Limit.Rate, wholeSeconds(decision.Limit.Period)))
	header.Set("RateLimit", fmt.Sprintf("%s;r=%d;t=%d", name, decision.Remaining, wholeSeconds(decision.ResetAfter)))
}

// wholeSeconds rounds up and never says 0: a client that waits 0 s is back too early.
func wholeSeconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}
