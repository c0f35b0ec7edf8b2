package limits

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// TakeDaily counts one use of a name by a key on this UTC day; see AddDaily.
func (l *Limiter) TakeDaily(ctx context.Context, name, key string, limit int) (allowed bool, resets time.Time, err error) {
	return l.AddDaily(ctx, name, key, 1, limit)
}

// AddDaily counts n uses of a name by a key on this UTC day, for all nodes together, and reports whether they are within the
// limit. resets is when the day ends. Uses that are not within the limit count too. If Redis cannot count, the error is
// protocol.CodeUnavailable.
func (l *Limiter) AddDaily(ctx context.Context, name, key string, n, limit int) (allowed bool, resets time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	resets = nextDay(time.Now())
	counter := dailyCounter(name, key, resets)
	var count *redis.IntCmd
	_, err = l.redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		count = pipe.IncrBy(ctx, counter, int64(n))
		pipe.ExpireAt(ctx, counter, resets.Add(time.Hour)) // clocks of nodes differ
		return nil
	})
	if err != nil {
		return false, resets, limiterDown(err)
	}
	return count.Val() <= int64(limit), resets, nil
}

// dailyCounter returns the Redis key of the counter of a day, which is named after its end.
func dailyCounter(name, key string, resets time.Time) string {
	return "rate:day:{" + key + "}:" + name + ":" + resets.Format(time.DateOnly)
}
