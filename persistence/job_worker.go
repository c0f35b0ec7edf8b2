package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const (
	jobsAtOnce  = 4
	jobTimeout  = time.Minute
	jobPoll     = time.Second // there is no LISTEN: it would hold a connection of every node
	jobRescue   = 3 * time.Minute
	jobStopTime = 10 * time.Second // what runs may end by itself; then it is cancelled and runs again elsewhere

	purgeRows   = 2000 // of one transaction
	purgeRun    = 40 * time.Second
	purgeBusy   = 5 * time.Second // a turn of the conversation is still ending
	expireEvery = 10 * time.Minute
	expireRows  = 1000

	retryFirst   = time.Second
	retryLongest = 10 * time.Minute
)

// JobWorkers is what the jobs call. Title makes and stores an automatic title; nil leaves such jobs to other nodes.
type JobWorkers struct {
	Title func(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error
	// CancelTurn cancels a live turn on behalf of the operator.
	CancelTurn func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) error
}

// Jobs works the queue on this node: erasing what was deleted, removing what has expired, making titles. Nodes share the
// work; a job whose node died runs again within minutes.
type Jobs struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
}

// StartJobs begins to work. Close ends it.
func StartJobs(ctx context.Context, db *DB, workers JobWorkers) (*Jobs, error) {
	pool, err := db.jobPool(ctx)
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	j := &Jobs{pool: pool}
	j.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: riverSchema, Workers: workers.register(db), FetchOnlyKnownKinds: true,
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: jobsAtOnce}},
		Logger:     jobLogger(db.log),
		JobTimeout: jobTimeout, RescueStuckJobsAfter: jobRescue, RetryPolicy: jobRetries{},
		PollOnly: true, FetchPollInterval: jobPoll, ReindexerSchedule: river.NeverSchedule(),
		PeriodicJobs: []*river.PeriodicJob{periodic(expireEvery, expireArgs{}), periodic(partitionInterval, partitionArgs{}), periodic(auditExpireInterval, expireAuditArgs{})},
	})
	if err == nil {
		err = j.client.Start(context.WithoutCancel(ctx)) // it ends with Close, not with what started it
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("job queue: %w", err)
	}
	return j, nil
}

func (db *DB) jobPool(ctx context.Context) (*pgxpool.Pool, error) {
	return db.pool(ctx, engineRole, jobConns)
}

// Close lets what runs end, for a while, and waits.
func (j *Jobs) Close(ctx context.Context) error {
	defer j.pool.Close()
	soft, cancel := context.WithTimeout(ctx, jobStopTime)
	defer cancel()
	if err := j.client.Stop(soft); err == nil {
		return nil
	}
	if err := j.client.StopAndCancel(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("stopping the job queue: %w", err)
	}
	return nil
}

func periodic(every time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: every}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// jobRetries waits twice as long each time, up to a bound.
type jobRetries struct{}

func (jobRetries) NextRetry(job *rivertype.JobRow) time.Time {
	delay := retryLongest
	if failed := len(job.Errors); failed < 10 {
		delay = min(retryFirst<<failed, retryLongest)
	}
	return time.Now().Add(delay)
}

func (w JobWorkers) register(db *DB) *river.Workers {
	all := river.NewWorkers()
	river.AddWorker(all, river.WorkFunc(func(ctx context.Context, job *river.Job[PurgeConversationArgs]) error {
		return db.purge(ctx, job.Args)
	}))
	river.AddWorker(all, river.WorkFunc(func(ctx context.Context, _ *river.Job[expireArgs]) error {
		return db.expire(ctx)
	}))
	river.AddWorker(all, &partitionWorker{db: db})
	river.AddWorker(all, river.WorkFunc(func(ctx context.Context, _ *river.Job[expireAuditArgs]) error {
		return db.expireAudit(ctx)
	}))
	if w.CancelTurn != nil {
		river.AddWorker(all, river.WorkFunc(func(ctx context.Context, job *river.Job[DisableAccountArgs]) error {
			return db.stopAccount(ctx, job.Args.AccountID, w.CancelTurn)
		}))
	}
	if w.Title != nil {
		river.AddWorker(all, river.WorkFunc(func(ctx context.Context, job *river.Job[TitleArgs]) error {
			return w.Title(ctx, job.Args.AccountID, job.Args.ConversationID, job.Args.TurnID)
		}))
	}
	return all
}

// purge erases in steps until nothing is left; when its time is over the next run goes on.
func (db *DB) purge(ctx context.Context, args PurgeConversationArgs) error {
	if err := failpoint.Before(failpoint.DeleteAfterRow); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < purgeRun; {
		done, err := db.PurgeConversation(ctx, args.AccountID, args.ConversationID, purgeRows)
		switch {
		case errors.Is(err, errStillLive):
			return river.JobCancel(err)
		case protocol.CodeOf(err) == protocol.CodeTurnInProgress:
			return river.JobSnooze(purgeBusy)
		case err != nil:
			return fmt.Errorf("purging a conversation: %w", err)
		case done:
			return failpoint.After(failpoint.DeleteAfterRow, nil)
		}
	}
	return river.JobSnooze(0)
}

// expirySQL removes what has expired, a bounded number of rows at a time, by the index on its age. A session stays until
// its absolute end also when it was revoked: a token that is shown again after its end tells of a theft.
var expirySQL = []string{
	`delete from idempotency i using (
		select account_id, key_hash from idempotency where created_at < now() - interval '24 hours' limit $1) x
	where i.account_id = x.account_id and i.key_hash = x.key_hash`,
	`delete from sessions s using (select token_hash from sessions where expires_at < now() limit $1) x where s.token_hash = x.token_hash`,
	`delete from oidc_flows f using (select state_hash from oidc_flows where expires_at < now() limit $1) x where f.state_hash = x.state_hash`,
	`delete from token_days d using (
		select account_id, day from token_days where day < now() - interval '40 days' limit $1) x
	where d.account_id = x.account_id and d.day = x.day`,
	`delete from token_reservations r using (
		select account_id, reservation_id from token_reservations where expires_at < now() limit $1) x
	where r.account_id = x.account_id and r.reservation_id = x.reservation_id`,
	`delete from nodes n using (
		select node_id from nodes d
		where dead and started_at < now() - interval '1 day'
		  and not exists (select from turns t where t.owner = d.node_id and t.` + liveStates + `)
		limit $1) x
	where n.node_id = x.node_id`,
}

func (db *DB) expire(ctx context.Context) error {
	for _, sql := range expirySQL {
		for removed := int64(expireRows); removed == expireRows; {
			tag, err := db.engine.Exec(ctx, sql, expireRows)
			if err != nil {
				return fmt.Errorf("removing what has expired: %w", classify(err))
			}
			removed = tag.RowsAffected()
		}
	}
	return db.expireTemporary(ctx)
}
