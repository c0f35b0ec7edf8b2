package router

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"strconv"
	"time"

	"turnstone/http/auth"
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
	metrics *Metrics
}

// NewLimits returns the limits that a limiter decides.
func NewLimits(limiter Limiter, metrics *Metrics) *Limits { return &Limits{limiter, metrics} }

// Draw implements auth.Limits.
func (l *Limits) Draw(ctx context.Context, header stdhttp.Header, from auth.Bucket, key string) error {
	return l.draw(ctx, header, route.Bucket(from), key)
}

// DrawRefusal implements auth.Limits. The bucket is in the process, so it can always decide.
func (l *Limits) DrawRefusal(ctx context.Context, header stdhttp.Header, key string) error {
	decision, err := l.limiter.Take(ctx, string(route.BucketRefusals), key)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit %s: %w", route.BucketRefusals, err)}
	}
	if decision.Allowed {
		return nil
	}
	limitHeaders(header, route.BucketRefusals, decision)
	return l.over(route.BucketRefusals, decision)
}

// draw draws one request from a bucket, and reports the state of the limit in the headers of the response.
func (l *Limits) draw(ctx context.Context, header stdhttp.Header, from route.Bucket, key string) error {
	ctx, cancel := context.WithDeadline(ctx, limiterDeadline(ExchangeOf(ctx).waitingSince(), time.Now()))
	defer cancel()
	decision, err := l.limiter.Take(ctx, string(from), key)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("drawing from the limit %s: %w", from, err)}
	}
	limitHeaders(header, from, decision)
	if !decision.Allowed {
		return l.over(from, decision)
	}
	return nil
}

// over counts a request that is over a limit, and returns its error.
func (l *Limits) over(from route.Bucket, decision limits.Decision) error {
	l.metrics.limit(string(from))
	return &protocol.Error{Code: protocol.CodeRateLimited, Detail: "Too many requests. Try again later.", RetryAfter: wholeSeconds(decision.RetryAfter)}
}

// knownDevices is the beginning of the key of the devices behind an address that have signed in before.
const knownDevices = "devices at "

// limit draws from the bucket of the caller's account or, without a session, of the address. An address has two buckets, so
// that strangers behind it do not prevent the sign-in on a known device. All known devices share one: every sign-in returns
// another device cookie, so a client could have any number of buckets otherwise.
func (rt *Router) limit(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *Exchange, from route.Bucket) error {
	if from == route.NoBucket {
		return nil
	}
	key := auth.AddressKey(ex.Address)
	switch {
	case ex.Caller != nil:
		key = ex.Caller.AccountID.String()
	case ex.Device != nil && from != route.BucketShared:
		key = knownDevices + key
	}
	return rt.Limits.draw(r.Context(), w.Header(), from, key)
}

// DrawAlso draws from a further bucket of the caller's account, for handlers that learn from the body what a request does.
func (l *Limits) DrawAlso(ctx context.Context, from route.Bucket) error {
	ex := ExchangeOf(ctx)
	return l.draw(ctx, ex.Header, from, ex.Caller.AccountID.String())
}

// DrawBucket draws from a bucket, for handlers that choose the bucket themselves.
func DrawBucket(w stdhttp.ResponseWriter, r *stdhttp.Request, from route.Bucket, key string) error {
	return ExchangeOf(r.Context()).router.Limits.draw(r.Context(), w.Header(), from, key)
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
