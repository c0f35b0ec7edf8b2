package limits

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"turnstone/persistence/sharetest"
)

// TakeTogether takes one token from a bucket for each key, all in one pipeline.
func (l *Limiter) TakeTogether(ctx context.Context, bucket string, keys ...string) []error {
	scripts := newPipelined(l.redis)
	sharetest.CollectGroups(&scripts.scripts.Work, len(keys))
	together := &Limiter{redis: l.redis, gcra: redis_rate.NewLimiter(scripts), config: l.config, local: l.local}
	failures := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { _, failures[i] = together.Take(ctx, bucket, key) })
	}
	all.Wait()
	return failures
}

// Corrupt stores a value that is not a counter under the Redis key of a bucket's counter.
func (l *Limiter) Corrupt(ctx context.Context, bucket, key string) error {
	return l.redis.LPush(ctx, "rate:rl:{"+key+"}:"+bucket, "not a counter").Err()
}

// DialWith replaces the function that connects to Redis.
func (l *Limiter) DialWith(dial func(context.Context, string, string) (net.Conn, error)) {
	l.redis.Options().Dialer = dial
}

// DailyExpiry returns when the counter of this day is deleted.
func (l *Limiter) DailyExpiry(ctx context.Context, name, key string) (time.Duration, error) {
	return l.redis.TTL(ctx, dailyCounter(name, key, nextDay(time.Now()))).Result()
}
