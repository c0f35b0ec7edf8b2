package persistence

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"turnstone/protocol"
)

// AppendAlone stores one append with a statement of its own: what the benchmark holds the journal against.
func (db *DB) AppendAlone(ctx context.Context, a *protocol.TurnAppend) error {
	conn, err := acquire(ctx, db.engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	stored, err := appendBatch(ctx, conn.Conn(), []*journalEntry{{TurnAppend: a}})
	if err == nil && !stored[0] {
		return protocol.ErrFenced
	}
	return err
}

// ReadEventsSQL reads what follows a sequence in the log of a live turn.
const ReadEventsSQL = readEventsSQL

// AppendRecordsSQL stores many appends with their records.
const AppendRecordsSQL = appendRecordsSQL

// MaintainPartitions is the job that creates and drops partitions.
func (db *DB) MaintainPartitions(ctx context.Context) error { return db.turnPartitions(ctx) }

// Expire is the job that removes what has expired.
func (db *DB) Expire(ctx context.Context) error { return db.expire(ctx) }

// JobPool makes the pool of the job queue.
func (db *DB) JobPool(ctx context.Context) (*pgxpool.Pool, error) { return db.jobPool(ctx) }

// StopAccount is the job that stops what a disabled account has live.
func (db *DB) StopAccount(ctx context.Context, account protocol.AccountID, cancel func(context.Context, protocol.AccountID, protocol.TurnID) error) error {
	return db.stopAccount(ctx, account, cancel)
}

// Quiet is what the pools ask before they hand a connection out.
func Quiet(ctx context.Context, conn *pgx.Conn) (bool, error) { return quiet(ctx, conn) }

// MigrateTo brings the schema to an older version.
func MigrateTo(ctx context.Context, ownerURL string, version int32) error {
	config, err := ownerConfig(ownerURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	migrator, err := newMigrator(ctx, conn)
	if err != nil {
		return err
	}
	return migrator.MigrateTo(ctx, version)
}

// Started is what became of one start.
type Started struct {
	Result *protocol.TurnStartResult
	Err    error
	Alone  bool // it could not begin with the others
}

// StartTogether begins turns that came at the same time.
func (t *Turns) StartTogether(ctx context.Context, starts ...*protocol.TurnStart) []Started {
	group := make([]*sharedStart, len(starts))
	for i, start := range starts {
		group[i] = &sharedStart{TurnStart: start, ctx: ctx, taken: make(chan struct{}), done: make(chan struct{})}
	}
	t.startWaiting(group)
	started := make([]Started, len(starts))
	for i, s := range group {
		<-s.done
		started[i] = Started{s.result, s.err, s.alone}
		if s.alone {
			started[i].Result, started[i].Err = t.startAlone(ctx, s.TurnStart)
		}
	}
	return started
}

// Gather collects numbers, for the tests of how groups are made.
type Gather struct{ g gather[int] }

// NewGather makes one; see gather.
func NewGather(atOnce, most int, patience time.Duration, work func(group []int)) *Gather {
	return &Gather{gather[int]{atOnce: atOnce, most: most, patience: patience, work: work}}
}

// Add hands a number in.
func (g *Gather) Add(item int) { g.g.add(item) }

// AskTogether looks numbers up in one trip; find answers with their doubles, or fails as a whole.
func AskTogether(find func(some []int) error, numbers ...int) (answers []int, failures []error) {
	group := make([]*question[int, int], len(numbers))
	for i, n := range numbers {
		group[i] = &question[int, int]{asked: n, done: make(chan struct{})}
	}
	newLookups(func(_ context.Context, some []*question[int, int]) error {
		asked := make([]int, len(some))
		for i, q := range some {
			asked[i], q.answer = q.asked, 2*q.asked
		}
		return find(asked)
	}).work(group)
	for _, q := range group {
		<-q.done
		answers, failures = append(answers, q.answer), append(failures, q.err)
	}
	return answers, failures
}

// shareOne makes the next n items one group: there seems to be a worker, and patience does not end.
func shareOne[T any](g *gather[T], n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers, g.atOnce, g.most, g.patience = 1, 2, n, time.Hour
}

// ShareLookups makes the next n look-ups of each kind one trip.
func (db *DB) ShareLookups(n int) {
	shareOne(&db.sessions.gather, n)
	shareOne(&db.keys.gather, n)
}

// TakeTogether draws from a bucket for many keys in one pipeline.
func (l *Limiter) TakeTogether(ctx context.Context, bucket string, keys ...string) []error {
	scripts := newPipelined(l.redis)
	shareOne(&scripts.scripts, len(keys))
	together := &Limiter{redis: l.redis, gcra: redis_rate.NewLimiter(scripts), config: l.config, local: l.local}
	failures := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { _, failures[i] = together.Take(ctx, bucket, key) })
	}
	all.Wait()
	return failures
}

// Spoil puts something else where a counter of a bucket is kept.
func (l *Limiter) Spoil(ctx context.Context, bucket, key string) error {
	return l.redis.LPush(ctx, "rate:rl:{"+key+"}:"+bucket, "not a counter").Err()
}

// DialWith reaches Redis another way.
func (l *Limiter) DialWith(dial func(context.Context, string, string) (net.Conn, error)) {
	l.redis.Options().Dialer = dial
}

// ExpireAudit does the job of removing what is old.
func (db *DB) ExpireAudit(ctx context.Context) error { return db.expireAudit(ctx) }
