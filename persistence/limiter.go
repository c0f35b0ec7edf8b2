package persistence

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/time/rate"

	"turnstone/protocol"
)

const (
	redisDialTimeout = 200 * time.Millisecond
	redisTimeout     = 150 * time.Millisecond // of one read or write
	redisPoolTimeout = 100 * time.Millisecond
	redisPoolSize    = 32
	// limiterTimeout bounds a decision as a whole: a limiter that hangs is one that is down. The refusal is promised within
	// 300 ms of the request, which also has its session and its key looked up.
	limiterTimeout = 200 * time.Millisecond
	// maxLocalBuckets bounds the keys of an in-process bucket; the ones not used for longest make room, full again when they
	// return.
	maxLocalBuckets = 16_384
)

// Limit lets Rate pass in every Period, evenly spaced, and Burst of them at once.
type Limit struct {
	Rate   int
	Period time.Duration
	Burst  int
}

// CancelReserve is the bucket that only cancels draw from, so that Stop works for one who is over quota.
var CancelReserve = Limit{Rate: 10, Period: time.Minute, Burst: 10}

// Decision is what a bucket answers.
type Decision struct {
	Allowed    bool
	Limit      Limit
	Remaining  int
	ResetAfter time.Duration // until the bucket is full again
	RetryAfter time.Duration // until the next one passes; 0 when this one did
}

// LimiterConfig says which buckets there are. Shared ones live in Redis, local ones in this process, so that those can
// always decide.
type LimiterConfig struct {
	URL    string // redis://, rediss:// or unix://
	Shared map[string]Limit
	Local  map[string]Limit
}

// Limiter counts requests. Redis holds counters under rate:rl:{key}:bucket and nothing else; it is never asked twice, and
// when it does not answer nothing passes. Its methods may be called from any goroutine.
type Limiter struct {
	redis  *redis.Client
	gcra   *redis_rate.Limiter
	config LimiterConfig
	local  map[string]*localBuckets // by bucket, so that strangers who fill one of them push no account out of another
}

// NewLimiter makes a limiter; it connects when it is first asked.
func NewLimiter(config LimiterConfig) (*Limiter, error) {
	options, err := redis.ParseURL(config.URL)
	if err != nil { // its text may show the password
		return nil, errors.New("the Redis address is not a URL, as redis://localhost:6379/0 or unix:///run/redis.sock")
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisDialTimeout, redisTimeout, redisTimeout
	options.PoolTimeout, options.PoolSize = redisPoolTimeout, redisPoolSize
	options.MaxRetries, options.DialerRetries = -1, 1
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	silence()
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
	limiterPipelines = 4 // under way at once, so that one that hangs does not hold up everybody
	maxPipelined     = 128
)

// pipelined sends the scripts of decisions that are asked for at the same time in one pipeline. All else passes through.
type pipelined struct {
	*redis.Client
	scripts gather[*scriptCall]
}

type scriptCall struct {
	*redis.Cmd
	done chan struct{} // closed when the command has its answer
}

func newPipelined(client *redis.Client) *pipelined {
	p := &pipelined{Client: client}
	p.scripts = gather[*scriptCall]{atOnce: limiterPipelines, most: maxPipelined, patience: sharePatience, work: p.send}
	return p
}

// EvalSha runs a script that Redis knows.
func (p *pipelined) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	words := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", sha, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	call := &scriptCall{Cmd: redis.NewCmd(ctx, append(words, args...)...), done: make(chan struct{})}
	if len(keys) > 0 {
		call.SetFirstKeyPos(3)
	}
	p.scripts.add(call)
	select {
	case <-call.done:
		return call.Cmd
	case <-ctx.Done():
		late := redis.NewCmd(ctx)
		late.SetErr(ctx.Err())
		return late
	}
}

func (p *pipelined) send(group []*scriptCall) {
	ctx, cancel := context.WithTimeout(context.Background(), limiterTimeout)
	defer cancel()
	pipe := p.Pipeline()
	for _, call := range group {
		_ = pipe.Process(ctx, call.Cmd) // it is only queued
	}
	_, _ = pipe.Exec(ctx) // each command has its own answer or error
	for _, call := range group {
		close(call.done)
	}
}

// silence keeps the client from writing to standard error what every caller is told.
var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections.
func (l *Limiter) Close() error { return l.redis.Close() }

// Ready asks Redis whether it is there.
func (l *Limiter) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limiterTimeout)
	defer cancel()
	if err := l.redis.Ping(ctx).Err(); err != nil {
		return limiterDown(err)
	}
	return nil
}

// Take draws one from the bucket of a key: an account, or an address where there is none. When Redis cannot decide the
// answer is protocol.CodeUnavailable, within limiterTimeout: nothing passes unlimited.
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
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the limiter is not available", RetryAfter: retrySeconds, Err: cause}
}

// localBuckets is a bounded map of token buckets, the latest used at the front.
type localBuckets struct {
	most int

	// Guarded by mu.
	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List
}

type localBucket struct {
	key     string
	limiter *rate.Limiter
}

func newLocalBuckets(most int) *localBuckets {
	return &localBuckets{most: most, byKey: map[string]*list.Element{}, order: list.New()}
}

func (b *localBuckets) take(key string, limit Limit, now time.Time) Decision {
	perSecond := rate.Limit(float64(limit.Rate) / limit.Period.Seconds())
	limiter := b.bucket(key, perSecond, limit.Burst)
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

func (b *localBuckets) bucket(key string, limit rate.Limit, burst int) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if element, ok := b.byKey[key]; ok {
		b.order.MoveToFront(element)
		return element.Value.(*localBucket).limiter //nolint:forcetypeassert // nothing else is put in
	}
	if b.order.Len() >= b.most {
		oldest := b.order.Back()
		delete(b.byKey, b.order.Remove(oldest).(*localBucket).key) //nolint:forcetypeassert // nothing else is put in
	}
	fresh := &localBucket{key: key, limiter: rate.NewLimiter(limit, burst)}
	b.byKey[key] = b.order.PushFront(fresh)
	return fresh.limiter
}
