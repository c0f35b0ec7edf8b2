package limits_test

import (
	"testing"
	"time"

	"turnstone/persistence/limits"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
)

func TestADailyLimitCountsForAllNodesUntilTheEndOfTheDay(t *testing.T) {
	redis := embeddedtest.Redis(t)
	first, second := newLimiter(t, redis.URL()), newLimiter(t, redis.URL())
	account := protocol.NewAccountID().String()
	day := time.Now().UTC().Truncate(24 * time.Hour)
	for i, limiter := range []*limits.Limiter{first, second, first} {
		allowed, resets, err := limiter.TakeDaily(t.Context(), "searches", account, 2)
		if err != nil || allowed != (i < 2) || resets.Sub(day) < 24*time.Hour || resets.Sub(day) > 48*time.Hour {
			t.Errorf("%d: %t, %s, %v", i, allowed, resets, err)
		}
	}
	for name, key := range map[string]string{"pages": account, "searches": protocol.NewAccountID().String()} {
		if allowed, _, err := first.TakeDaily(t.Context(), name, key, 1); err != nil || !allowed {
			t.Errorf("%s: %t, %v", name, allowed, err)
		}
	}
	if expires, err := first.DailyExpiry(t.Context(), "searches", account); err != nil || expires <= 0 || expires > 25*time.Hour {
		t.Errorf("the counter expires in %s, %v", expires, err)
	}
}

func TestADailyLimitAllowsNothingWithoutRedis(t *testing.T) {
	limiter := newLimiter(t, "redis://127.0.0.1:1/0")
	if allowed, _, err := limiter.TakeDaily(t.Context(), "searches", "a", 1); allowed || protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("%t, %v", allowed, err)
	}
}
