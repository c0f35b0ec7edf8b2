package main

import (
	"context"
	"errors"
	"time"

	"turnstone/persistence"
)

// newLimiter makes the buckets by the names that http draws from. Reads, replays and refusals are counted in the process,
// so that they can always be decided; all others in Redis, for all nodes together.
func newLimiter(config *Config) (*persistence.Limiter, error) {
	limits := config.Limits
	return persistence.NewLimiter(persistence.LimiterConfig{
		URL: config.Stores.RedisURL,
		Shared: map[string]persistence.Limit{
			"chat": limits.Chat.limit(), "cancel": persistence.CancelReserve, "writes": limits.Writes.limit(),
			"signin": limits.SignIn.limit(), "signin_account": limits.SignIn.ofAllNetworks(), "signin_reserve": limits.SignIn.reserve(),
		},
		Local: map[string]persistence.Limit{"reads": limits.Reads.limit(), "replays": limits.Replays.limit(), "refusals": limits.Refusals.limit()},
	})
}

func (r rate) limit() persistence.Limit {
	return persistence.Limit{Rate: r.Count, Period: r.Per, Burst: r.Burst}
}

// signInFactor makes the limits of an account of that of a network and account: four times as many attempts, in four times
// as long.
const signInFactor = 4

// ofAllNetworks is how often all networks together, known devices excepted, may try the password of one account.
func (r rate) ofAllNetworks() persistence.Limit {
	return persistence.Limit{Rate: signInFactor * r.Count, Period: signInFactor * r.Per, Burst: signInFactor * r.Burst}
}

// reserve is how often a network may try it when they have used that up: the owner on a new device waits no longer.
func (r rate) reserve() persistence.Limit {
	return persistence.Limit{Rate: 1, Period: signInFactor * r.Per, Burst: 1}
}

// openRedis needs no answer of Redis: without it the service starts, and refuses what is limited.
func (s *service) openRedis(context.Context) error {
	limiter, err := newLimiter(s.config)
	if err != nil {
		return err
	}
	s.limiter = limiter
	s.onClose("Redis", func(context.Context) error { return limiter.Close() })
	s.probes["cache"] = limiter.Ready
	return nil
}

// probeRedis is the doctor's look at it.
func probeRedis(ctx context.Context, config *Config) error {
	limiter, err := newLimiter(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return errors.Join(limiter.Ready(ctx), limiter.Close())
}
