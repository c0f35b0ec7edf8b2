package limits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/time/rate"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/recent"
	"turnstone/protocol/timelimit"
)

var (
	redisDialTimeout = timelimit.OfShort(200 * time.Millisecond)
	redisTimeout     = timelimit.OfShort(150 * time.Millisecond) // limit of one read or write
	redisPoolTimeout = timelimit.OfShort(100 * time.Millisecond)
	// limiterTimeout limits a decision as a whole: a Redis that hangs counts as down. A refused request gets its
	// response within 300 ms, and it also needs lookups of its session and its key.
	limiterTimeout = timelimit.OfShort(200 * time.Millisecond)
)

const (
	redisPoolSize = 32
	// maxLocalBuckets limits the keys of an in-process bucket. The least recently used keys are evicted; when they
	// return, their bucket is full again.
	maxLocalBuckets = 16_384
)

// Limit allows Rate requests in every Period, evenly spaced, and Burst requests at once.
type Limit struct {
	Rate   int
	Period time.Duration
	Burst  int
}

// CancelReserve is the limit of the bucket that only cancels use, so that an account over its quota can still cancel a
// turn.
var CancelReserve = Limit{Rate: 10, Period: time.Minute, Burst: 10}

// Decision is the decision of a bucket about one request.
type Decision struct {
	Allowed    bool
	Limit      Limit
	Remaining  int
	ResetAfter time.Duration // until the bucket is full again
	RetryAfter time.Duration // until the next request is allowed; 0 if this one was
}

// LimiterConfig defines the buckets. Shared buckets are in Redis. Local buckets are in this process, so that they can
// always decide.
type LimiterConfig struct {
	URL    string // redis://, rediss:// or unix://
	Shared map[string]Limit
	Local  map[string]Limit
}

// Limiter counts requests. Redis holds counters under rate:rl:{key}:bucket and rate:day:{key}:name:day, and nothing else. A failed decision is not
// retried; if Redis does not reply, the request is refused. The methods may be called from any goroutine.
type Limiter struct {
	redis  *redis.Client
	gcra   *redis_rate.Limiter
	config LimiterConfig
	local  map[string]*localBuckets // by bucket, so that unknown callers who fill one bucket evict no account from another
}

// NewLimiter returns a limiter. It connects to Redis with the first decision, or in Connect.
func NewLimiter(config LimiterConfig) (*Limiter, error) {
	options, err := redis.ParseURL(config.URL)
	if err != nil { // the text of the error may contain the password
		return nil, errors.New("invalid Redis URL (want for example redis://localhost:6379/0 or unix:///run/redis.sock)")
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisDialTimeout, redisTimeout, redisTimeout
	options.PoolTimeout, options.PoolSize = redisPoolTimeout, redisPoolSize
	options.MaxRetries, options.DialerRetries = -1, 1
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	disableRedisLog()
	client := redis.NewClient(options)
	limiter := &Limiter{
		redis: client, gcra: redis_rate.NewLimiter(newPipelined(client)), config: config, local: map[string]*localBuckets{},
	}
	for name := range config.Local {
		limiter.local[name] = newLocalBuckets(maxLocalBuckets)
	}
	return limiter, nil
}

const (
	limiterPipelines = 4 // in flight at once, so that one that hangs does not block all decisions
	maxPipelined     = 128
)

// pipelined sends the scripts of concurrent decisions in one pipeline. Other commands pass unchanged.
type pipelined struct {
	*redis.Client
	scripts pg.Batcher[*scriptCall]
}

type scriptCall struct {
	*redis.Cmd
	done chan struct{} // closed when the command has its reply
}

func newPipelined(client *redis.Client) *pipelined {
	p := &pipelined{Client: client}
	p.scripts = pg.Batcher[*scriptCall]{MaxInFlight: limiterPipelines, MaxGroup: maxPipelined, MaxWait: pg.MaxShareWait, Work: p.send}
	return p
}

// EvalSha runs a script that Redis has stored.
func (p *pipelined) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	words := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", sha, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	call := &scriptCall{Cmd: redis.NewCmd(ctx, append(words, args...)...), done: make(chan struct{})}
	if len(keys) > 0 {
		call.SetFirstKeyPos(3)
	}
	p.scripts.Add(call)
	select {
	case <-call.done:
		return call.Cmd
	case <-ctx.Done():
		late := redis.NewCmd(ctx)
		late.SetErr(ctx.Err())
		return late
	}
}

// send runs a group of scripts in one pipeline.
func (p *pipelined) send(group []*scriptCall) {
	ctx, cancel := context.WithTimeout(context.Background(), limiterTimeout)
	defer cancel()
	pipe := p.Pipeline()
	for _, call := range group {
		_ = pipe.Process(ctx, call.Cmd) // this only queues the command
	}
	_, _ = pipe.Exec(ctx) // each command has its own reply or error
	for _, call := range group {
		close(call.done)
	}
}

// disableRedisLog stops the client from writing to standard error what every caller gets as an error.
var disableRedisLog = sync.OnceFunc(func() { redis.SetLogger(discardLogger{}) })

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// Close closes the connections.
func (l *Limiter) Close() error { return l.redis.Close() }

// Ready checks that Redis responds.
func (l *Limiter) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	if err := l.redis.Ping(ctx).Err(); err != nil {
		return limiterDown(err)
	}
	return nil
}

// Connect opens a connection and stores the script in Redis, so that the first decision needs no more time than others.
func (l *Limiter) Connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	if _, err := l.gcra.Allow(ctx, "rl:{}:connect", redis_rate.PerSecond(1)); err != nil {
		return limiterDown(err)
	}
	return nil
}

// Take takes one token from the bucket of a key: an account, or an address if the account is not known. If Redis cannot
// decide, the error is protocol.CodeUnavailable, within limiterTimeout: no request passes without a limit.
func (l *Limiter) Take(ctx context.Context, bucket, key string) (Decision, error) {
	if limit, ok := l.config.Local[bucket]; ok {
		return l.local[bucket].take(key, limit, time.Now()), nil
	}
	limit, ok := l.config.Shared[bucket]
	if !ok {
		return Decision{}, fmt.Errorf("no limit is configured for %q", bucket)
	}
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	result, err := l.gcra.Allow(ctx, "rl:{"+key+"}:"+bucket, limit.asRedis())
	if err != nil {
		return Decision{}, limiterDown(err)
	}
	decision := Decision{Allowed: result.Allowed > 0, Limit: limit, Remaining: result.Remaining, ResetAfter: result.ResetAfter}
	if !decision.Allowed {
		decision.RetryAfter = max(result.RetryAfter, 0)
	}
	return decision, nil
}

func (l Limit) asRedis() redis_rate.Limit {
	return redis_rate.Limit{Rate: l.Rate, Burst: l.Burst, Period: l.Period}
}

func limiterDown(cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the limiter is not available", RetryAfter: pg.RetrySeconds, Err: cause}
}

// localBuckets are the token buckets that were used last, by key.
type localBuckets struct {
	recent *recent.Cache[string, *rate.Limiter]
}

func newLocalBuckets(most int) *localBuckets {
	return &localBuckets{recent.New[string, *rate.Limiter](most, 0)}
}

func (b *localBuckets) take(key string, limit Limit, now time.Time) Decision {
	perSecond := rate.Limit(float64(limit.Rate) / limit.Period.Seconds())
	limiter := b.recent.GetOrPut(key, func() *rate.Limiter { return rate.NewLimiter(perSecond, limit.Burst) })
	decision := Decision{Allowed: limiter.AllowN(now, 1), Limit: limit}
	tokens := limiter.TokensAt(now)
	wait := func(upTo float64) time.Duration {
		return max(0, time.Duration((upTo-tokens)/float64(perSecond)*float64(time.Second)))
	}
	decision.Remaining, decision.ResetAfter = max(0, int(tokens)), wait(float64(limit.Burst))
	if !decision.Allowed {
		decision.RetryAfter = wait(1)
	}
	return decision
}
