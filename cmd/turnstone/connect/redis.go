package connect

import (
	"context"
	"errors"
	"time"

	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence/limits"
)

// Limiter creates the limiter with the buckets that package http uses. Reads, replays and refusals are counted
// in the process, so that they can always be decided; all others are counted in Redis, for all nodes together.
func Limiter(config *settings.Config) (*limits.Limiter, error) {
	rates := config.Limits
	return limits.NewLimiter(limits.LimiterConfig{
		URL: config.Stores.RedisURL,
		Shared: map[string]limits.Limit{
			"chat": limitOf(rates.Chat), "cancel": limits.CancelReserve, "writes": limitOf(rates.Writes), "search": limitOf(rates.Search),
			"uploads": limitOf(rates.Uploads), "shares": limitOf(rates.Shares), "shared": limitOf(rates.Shared),
			"signin": limitOf(rates.SignIn), "signin_account": limitOfAllNetworks(rates.SignIn), "signin_reserve": reserveOf(rates.SignIn),
		},
		Local: map[string]limits.Limit{"reads": limitOf(rates.Reads), "replays": limitOf(rates.Replays), "refusals": limitOf(rates.Refusals)},
	})
}

func limitOf(r settings.Rate) limits.Limit {
	return limits.Limit{Rate: r.Count, Period: r.Per, Burst: r.Burst}
}

// signInFactor derives the sign-in limit of one account over all networks from the limit of one network and account:
// four times as many attempts in four times the period.
const signInFactor = 4

// limitOfAllNetworks returns the limit of password attempts on one account from all networks together. Known devices
// are not counted in it.
func limitOfAllNetworks(r settings.Rate) limits.Limit {
	return limits.Limit{Rate: signInFactor * r.Count, Period: signInFactor * r.Per, Burst: signInFactor * r.Burst}
}

// reserveOf returns the limit of password attempts of one network on one account when the limit of all networks is used
// up. It lets the owner sign in from a new device without waiting for others.
func reserveOf(r settings.Rate) limits.Limit {
	return limits.Limit{Rate: 1, Period: signInFactor * r.Per, Burst: 1}
}

// ProbeRedis checks that Redis responds.
func ProbeRedis(ctx context.Context, config *settings.Config) error {
	limiter, err := Limiter(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return errors.Join(limiter.Ready(ctx), limiter.Close())
}
