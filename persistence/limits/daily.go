package limits

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// TakeDaily counts one use of a name by a key on this UTC day, for all nodes together, and reports whether it is within the
// limit. resets is when the day ends. A use that is not within the limit counts too, which changes nothing. If Redis cannot
// count, the error is protocol.CodeUnavailable.
func (l *Limiter) TakeDaily(ctx context.Context, name, key string, limit int) (allowed bool, resets time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	resets = nextDay(time.Now())
	counter := dailyCounter(name, key, resets)
	var count *redis.IntCmd
	_, err = l.redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		count = pipe.Incr(ctx, counter)
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
