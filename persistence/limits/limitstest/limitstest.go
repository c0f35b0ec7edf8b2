// Package limitstest has a limiter whose decisions a test chooses, and the suite that it and the real one pass.
package limitstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"turnstone/persistence/limits"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Quota is the limit of every bucket of a Chosen.
var Quota = limits.Limit{Rate: 30, Period: time.Minute, Burst: 60}

// Chosen allows every request, until the test chooses another decision. Its methods may be called from any goroutine.
type Chosen struct {
	mu       sync.Mutex
	decision func() (limits.Decision, error) // guarded by mu; nil: Allow
	drawn    []string                        // guarded by mu
	waits    []time.Duration                 // guarded by mu
}

func (l *Chosen) choose(decision func() (limits.Decision, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decision = decision
}

func allow() (limits.Decision, error) {
	return limits.Decision{Allowed: true, Limit: Quota, Remaining: Quota.Burst - 1, ResetAfter: 2 * time.Second}, nil
}

// Allow allows requests again.
func (l *Chosen) Allow() { l.choose(allow) }

// Refuse refuses requests: the next one would be allowed after 1.2 s.
func (l *Chosen) Refuse() {
	l.choose(func() (limits.Decision, error) {
		return limits.Decision{Limit: Quota, ResetAfter: 119_200 * time.Millisecond, RetryAfter: 1200 * time.Millisecond}, nil
	})
}

// BreakDown makes the limiter unable to decide, as without Redis.
func (l *Chosen) BreakDown() {
	l.choose(func() (limits.Decision, error) {
		return limits.Decision{}, &protocol.Error{
			Code: protocol.CodeUnavailable, Detail: "the limiter is not available", RetryAfter: pg.RetrySeconds, Err: errors.New("connection refused"),
		}
	})
}

// Take returns the chosen decision.
func (l *Chosen) Take(ctx context.Context, bucket, key string) (limits.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = append(l.drawn, bucket+" "+key)
	if deadline, bounded := ctx.Deadline(); bounded {
		l.waits = append(l.waits, time.Until(deadline))
	}
	if l.decision == nil {
		return allow()
	}
	return l.decision()
}

// Drawn returns the bucket and the key of each draw since the last call, with a blank between them.
func (l *Chosen) Drawn() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	drawn := slices.Clone(l.drawn)
	l.drawn = nil
	return drawn
}

// Waits returns how much time each draw since the last call had until its deadline.
func (l *Chosen) Waits() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := slices.Clone(l.waits)
	l.waits = nil
	return waits
}

// Limiter is what the suite tests, with a bucket in each of its states. Each function may change the state for the next one.
type Limiter struct {
	Take      func(context.Context) (limits.Decision, error) // draws one request, always from the same bucket and key
	Refuse    func()                                         // the next request is over the limit
	BreakDown func()                                         // the limiter cannot decide
}

// Suite tests what callers rely on: which decisions are possible, and how a limiter says that it cannot decide. The bucket of l is full.
func Suite(t *testing.T, l Limiter) {
	t.Helper()
	first, err := l.Take(t.Context())
	limit := first.Limit
	switch {
	case err != nil || !first.Allowed:
		t.Fatalf("the first decision: %+v, %v", first, err)
	case limit.Rate < 1 || limit.Period <= 0 || limit.Burst < 1:
		t.Errorf("the limit is %+v", limit)
	case first.Remaining < 0 || first.Remaining >= limit.Burst:
		t.Errorf("%d of a burst of %d remain after a request", first.Remaining, limit.Burst)
	case first.RetryAfter != 0:
		t.Errorf("an allowed request has to wait for %v", first.RetryAfter)
	}
	interval := limit.Period / time.Duration(limit.Rate)
	filled := interval * time.Duration(limit.Burst)
	if first.ResetAfter <= 0 || first.ResetAfter > filled {
		t.Errorf("the bucket is full after %v, want at most %v", first.ResetAfter, filled)
	}

	l.Refuse()
	refused, err := l.Take(t.Context())
	switch {
	case err != nil || refused.Allowed || refused.Remaining != 0 || refused.Limit != limit:
		t.Errorf("over the limit: %+v, %v", refused, err)
	case refused.RetryAfter <= 0 || refused.RetryAfter > interval:
		t.Errorf("the next request is allowed after %v, want at most %v", refused.RetryAfter, interval)
	case refused.ResetAfter < refused.RetryAfter || refused.ResetAfter > filled:
		t.Errorf("the bucket is full after %v", refused.ResetAfter)
	}

	l.BreakDown()
	broken, err := l.Take(t.Context())
	var failure *protocol.Error
	if !errors.As(err, &failure) || failure.Code != protocol.CodeUnavailable || failure.RetryAfter <= 0 || broken != (limits.Decision{}) {
		t.Errorf("without a decision: %+v, %v", broken, err)
	}
}
