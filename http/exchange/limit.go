package exchange

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"strconv"
	"time"

	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// Limiter decides whether a request is within a limit. An error means that it could not decide; the request is then
// refused.
type Limiter interface {
	// Take draws one request from the bucket of a key. The key names an account or, if there is none, an address or the known
	// devices at an address.
	Take(ctx context.Context, bucket, key string) (limits.Decision, error)
}

var _ Limiter = (*limits.Limiter)(nil)

// Limits draws requests from the buckets of a Limiter, and counts those over a limit. It implements auth.Limits.
type Limits struct {
	limiter Limiter
	over    func(bucket string)
}

// NewLimits returns the limits that a limiter decides. over counts a request that is over a limit.
func NewLimits(limiter Limiter, over func(bucket string)) *Limits { return &Limits{limiter, over} }

// DrawRefusal implements auth.Limits. The bucket is in the process, so it can always decide.
func (l *Limits) DrawRefusal(ctx context.Context, key string) error {
	decision, err := l.limiter.Take(ctx, string(route.BucketRefusals), key)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit %s: %w", route.BucketRefusals, err)}
	}
	if decision.Allowed {
		return nil
	}
	limitHeaders(Of(ctx).Header, route.BucketRefusals, decision)
	return l.refuse(route.BucketRefusals, decision)
}

// Draw draws the request of ctx from the bucket of a key, and reports the state of the limit in the headers of the response.
func (l *Limits) Draw(ctx context.Context, from route.Bucket, key string) error {
	ex := Of(ctx)
	ctx, cancel := context.WithDeadline(ctx, limiterDeadline(ex.waitingSince(), time.Now()))
	defer cancel()
	decision, err := l.limiter.Take(ctx, string(from), key)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit %s: %w", from, err)}
	}
	limitHeaders(ex.Header, from, decision)
	if !decision.Allowed {
		return l.refuse(from, decision)
	}
	return nil
}

// refuse counts a request that is over a limit, and returns its error.
func (l *Limits) refuse(from route.Bucket, decision limits.Decision) error {
	l.over(string(from))
	return &protocol.Error{Code: protocol.CodeRateLimited, Detail: "Too many requests. Try again later.", RetryAfter: wholeSeconds(decision.RetryAfter)}
}

// A request whose limiter does not respond must be refused within 300 ms. So the earlier steps, the lookups of the
// session and of the key, shorten the wait for the limiter, but not below limiterMinTimeout: the limiter needs enough
// time on a busy host computer.
var (
	limiterTimeout    = timelimit.OfShort(250 * time.Millisecond) // from the start of the request
	limiterMinTimeout = timelimit.OfShort(100 * time.Millisecond)
)

// limiterDeadline returns the time until which a request that started at began waits for the limiter.
func limiterDeadline(began, now time.Time) time.Time {
	deadline, least := began.Add(limiterTimeout), now.Add(limiterMinTimeout)
	if deadline.Before(least) {
		return least
	}
	return deadline
}

const (
	limitField       = "RateLimit"
	limitPolicyField = "RateLimit-Policy"
)

// limitHeaders sets the headers of draft-ietf-httpapi-ratelimit-headers-11.
func limitHeaders(header stdhttp.Header, from route.Bucket, decision limits.Decision) {
	name := strconv.Quote(string(from))
	header.Set(limitPolicyField, fmt.Sprintf("%s;q=%d;w=%d", name, decision.Limit.Rate, wholeSeconds(decision.Limit.Period)))
	header.Set(limitField, fmt.Sprintf("%s;r=%d;t=%d", name, decision.Remaining, wholeSeconds(decision.ResetAfter)))
}

// HideLimit removes the headers of a limit from a response that has not started.
func HideLimit(w stdhttp.ResponseWriter) {
	w.Header().Del(limitField)
	w.Header().Del(limitPolicyField)
}

// wholeSeconds rounds up, to at least 1: a client that waits 0 s repeats the request too early.
func wholeSeconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}
