package limits_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/persistence/limits"
	"turnstone/persistence/limits/limitstest"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
	"turnstone/providers/embedded/embeddedtest"
)

func newLimiter(t *testing.T, url string) *limits.Limiter {
	t.Helper()
	limiter, err := limits.NewLimiter(limits.LimiterConfig{
		URL:    url,
		Shared: map[string]limits.Limit{"chat": {Rate: 60, Period: time.Minute, Burst: 3}, "cancel": limits.CancelReserve},
		Local:  map[string]limits.Limit{"reads": {Rate: 600, Period: time.Minute, Burst: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	return limiter
}

func TestLimiterAllowsTheBurstAndThenReturnsRetryAfter(t *testing.T) {
	limiter := newLimiter(t, embeddedtest.Redis(t).URL())
	if err := limiter.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	account := protocol.NewAccountID().String()
	for bucket, burst := range map[string]int{"chat": 3, "reads": 2} {
		for i := range burst {
			decision, err := limiter.Take(t.Context(), bucket, account)
			if err != nil || !decision.Allowed || decision.Remaining != burst-1-i || decision.Limit.Burst != burst {
				t.Fatalf("%s %d: %+v, %v", bucket, i, decision, err)
			}
		}
		decision, err := limiter.Take(t.Context(), bucket, account)
		if err != nil || decision.Allowed || decision.Remaining != 0 || decision.RetryAfter <= 0 || decision.RetryAfter > time.Second || decision.ResetAfter <= 0 {
			t.Errorf("%s over the limit: %+v, %v", bucket, decision, err)
		}
	}
	if decision, err := limiter.Take(t.Context(), "cancel", account); err != nil || !decision.Allowed {
		t.Errorf("a cancel of an account over its limit: %+v, %v", decision, err)
	}
	if decision, err := limiter.Take(t.Context(), "chat", protocol.NewAccountID().String()); err != nil || !decision.Allowed {
		t.Errorf("another account: %+v, %v", decision, err)
	}
	if _, err := limiter.Take(t.Context(), "nothing", account); err == nil {
		t.Error("an unknown bucket allows requests")
	}
}

func TestTheFirstDecisionAfterConnectNeedsNoNewConnection(t *testing.T) {
	limiter := newLimiter(t, embeddedtest.Redis(t).URL())
	if err := limiter.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var dials atomic.Int64
	limiter.DialWith(func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	})
	if decision, err := limiter.Take(t.Context(), "chat", protocol.NewAccountID().String()); err != nil || !decision.Allowed || dials.Load() != 0 {
		t.Errorf("%+v, %v, %d new connections", decision, err, dials.Load())
	}
}

func TestLimiterPassesTheSuite(t *testing.T) {
	server := embeddedtest.Redis(t)
	for _, bucket := range []string{"chat", "reads"} {
		limiter := newLimiter(t, server.URL())
		take := func(ctx context.Context) (limits.Decision, error) { return limiter.Take(ctx, bucket, t.Name()) }
		limitstest.Suite(t, limitstest.Limiter{
			Take: take,
			Refuse: func() {
				for {
					if decision, err := take(t.Context()); err != nil || !decision.Allowed {
						return
					}
				}
			},
			BreakDown: func() {
				bucket, limiter = "chat", newLimiter(t, "unix:///nowhere") // a bucket in the process can always decide
			},
		})
	}
}

func TestLimiterThatCannotDecideRefusesInTime(t *testing.T) {
	inTime := timelimit.OfShort(200 * time.Millisecond) // of the 300 ms that a refused request may take
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"down":        func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
		"unreachable": func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"hanging":     func(context.Context) (net.Conn, error) { conn, _ := net.Pipe(); return conn, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := newLimiter(t, "redis://redis.test")
			limiter.DialWith(func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) })
			for range 3 {
				began := time.Now()
				_, err := limiter.Take(t.Context(), "chat", "somebody")
				if took := time.Since(began); protocol.CodeOf(err) != protocol.CodeUnavailable || took > inTime {
					t.Errorf("%s: %v after %v", name, err, took)
				}
			}
			began := time.Now()
			err := limiter.Ready(t.Context())
			if took := time.Since(began); protocol.CodeOf(err) != protocol.CodeUnavailable || took > inTime {
				t.Errorf("%s: Ready returned %v after %v", name, err, took)
			}
			if decision, err := limiter.Take(t.Context(), "reads", "somebody"); err != nil || !decision.Allowed {
				t.Errorf("%s: reads do not depend on Redis: %+v, %v", name, decision, err)
			}
		})
	}
}

func TestKeysOfOneBucketEvictNoKeyOfAnother(t *testing.T) {
	limiter, err := limits.NewLimiter(limits.LimiterConfig{URL: "unix:///nowhere", Local: map[string]limits.Limit{
		"reads": {Rate: 1, Period: time.Hour, Burst: 1}, "refusals": {Rate: 1, Period: time.Hour, Burst: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	take := func(bucket, key string) bool {
		decision, err := limiter.Take(t.Context(), bucket, key)
		if err != nil {
			t.Fatal(err)
		}
		return decision.Allowed
	}
	if !take("reads", "account") || take("reads", "account") {
		t.Fatal("the bucket does not have exactly one token")
	}
	for n := range 20_000 { // addresses, more keys than a bucket can store
		take("refusals", strconv.Itoa(n))
	}
	if take("reads", "account") {
		t.Error("the account's bucket is full again")
	}
}

// A stored value that is not a counter fails only its own decision in a pipeline. A key that is not valid text fails
// none.
func TestAHostileAccountFailsOnlyItsOwnLimit(t *testing.T) {
	limiter := newLimiter(t, embeddedtest.Redis(t).URL())
	spoiled, odd, honest := protocol.NewAccountID().String(), "\xff\x00\r\n*1\r\n", protocol.NewAccountID().String()
	if err := limiter.Corrupt(t.Context(), "chat", spoiled); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.Take(t.Context(), "cancel", honest); err != nil { // loads the script
		t.Fatal(err)
	}
	for i, err := range limiter.TakeTogether(t.Context(), "chat", spoiled, honest, odd, honest) {
		if (err != nil) != (i == 0) {
			t.Errorf("the decision of %d is %v", i, err)
		}
	}
}
