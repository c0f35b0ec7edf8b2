package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clock"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/zap"
)

const (
	jobsAtOnce   = 4
	longAtOnce   = 2
	filesAtOnce  = 2
	mailsAtOnce  = 2
	titlesAtOnce = 4
	urgentAtOnce = 2
	jobTimeout   = time.Minute
	jobPoll      = time.Second     // the queue is polled: LISTEN would need a connection of every node
	jobRescue    = 3 * time.Minute // a job without an end runs again, unless rescueLost has noticed before that its node is dead
	lostPoll     = 2 * time.Second
	jobStopTime  = 10 * time.Second // time for running jobs to end; then they are cancelled and run again elsewhere

	retryFirst   = time.Second
	retryLongest = 10 * time.Minute
)

// LongQueue is the queue of jobs that take minutes or hours. They do not delay the other jobs.
const LongQueue = "long"

// FileQueue is the queue of jobs that read files. Each starts a process that needs memory and processor time, and many files
// may arrive together, which does not delay the other jobs.
const FileQueue = "files"

// MailQueue is the queue of jobs that send mails. A mail server that responds slowly does not delay the other jobs.
const MailQueue = "mail"

// TitleQueue is the queue of jobs that ask a model for a title. A model that responds slowly, or the titles of very many new
// conversations, do not delay the other jobs.
const TitleQueue = "titles"

// UrgentQueue is the queue of short jobs for which somebody waits. Purges of much content, and an object store that responds slowly, do
// not delay them.
const UrgentQueue = "urgent"

// Runner runs queued jobs on this node. The nodes share the work. A job whose node has been declared dead runs again within
// seconds.
type Runner struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
	log    *zap.Logger
	stop   context.CancelFunc // of rescueLost
	lost   sync.WaitGroup     // rescueLost
}

// Observe gets the kind of a job that has ended, how long it took, and its error; nil: it succeeded.
type Observe func(kind string, took time.Duration, err error)

// observed reports each run of a job. It implements rivertype.WorkerMiddleware.
type observed struct {
	river.MiddlewareDefaults
	observe Observe
}

// Work implements rivertype.WorkerMiddleware.
func (o *observed) Work(ctx context.Context, job *rivertype.JobRow, run func(context.Context) error) error {
	began := time.Now()
	err := run(ctx)
	if errors.Is(err, &river.JobSnoozeError{}) {
		return err // it has not run
	}
	o.observe(job.Kind, time.Since(began), err)
	return err
}

// nodeCheck prevents a node that was declared dead from beginning a job: other nodes would run the same job again. Such a node was paused.
// nodeCheck implements rivertype.WorkerMiddleware.
type nodeCheck struct {
	river.MiddlewareDefaults
	pool *pgxpool.Pool
	node protocol.NodeID
}

var nodeRunsSQL = `select ` + pg.NodeRuns("$1")

// Work implements rivertype.WorkerMiddleware.
func (c *nodeCheck) Work(ctx context.Context, _ *rivertype.JobRow, run func(context.Context) error) error {
	runs, err := c.nodeRuns(ctx)
	if err != nil {
		return fmt.Errorf("reading whether the node was declared dead: %w", pg.Classify(err))
	}
	if !runs {
		return Later(lostPoll)
	}
	return run(ctx)
}

// nodeRuns has a limit of its own, because that of the job begins later. Without a reply, it would keep a connection of the queue.
func (c *nodeCheck) nodeRuns(ctx context.Context) (runs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pg.RequestTimeout)
	defer cancel()
	err = c.pool.QueryRow(ctx, nodeRunsSQL, c.node).Scan(&runs)
	return runs, err
}

// Start starts to run jobs of these kinds as a node of the directory, or as none if node is zero. Close ends it. A nil observe gets nothing.
func Start(ctx context.Context, db *pg.DB, node protocol.NodeID, observe Observe, kinds ...Job) (*Runner, error) {
	pool, err := jobPool(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	workers := river.NewWorkers()
	var periodic []*river.PeriodicJob
	for _, kind := range kinds {
		kind.add(workers)
		if kind.periodic != nil {
			periodic = append(periodic, kind.periodic)
		}
	}
	var middleware []rivertype.Middleware
	name := "" // the queue chooses one that rescueLost ignores
	if node != (protocol.NodeID{}) {
		name = pg.UUIDText(node) // rescueLost finds the jobs of a node by it
		middleware = append(middleware, &nodeCheck{pool: pool, node: node})
	}
	if observe != nil {
		middleware = append(middleware, &observed{observe: observe})
	}
	j := &Runner{pool: pool, log: db.Log}
	j.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: name, Schema: pg.RiverSchema, Workers: workers, FetchOnlyKnownKinds: true, PeriodicJobs: periodic,
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: jobsAtOnce}, LongQueue: {MaxWorkers: longAtOnce}, FileQueue: {MaxWorkers: filesAtOnce},
			MailQueue: {MaxWorkers: mailsAtOnce}, TitleQueue: {MaxWorkers: titlesAtOnce}, UrgentQueue: {MaxWorkers: urgentAtOnce},
		},
		Logger:     jobLogger(db.Log),
		Middleware: middleware,
		JobTimeout: jobTimeout, RescueStuckJobsAfter: jobRescue, RetryPolicy: jobRetries{},
		PollOnly: true, FetchPollInterval: jobPoll, ReindexerSchedule: river.NeverSchedule(),
	})
	if err == nil {
		err = j.client.Start(context.WithoutCancel(ctx)) // Close stops the client, not the end of ctx
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("job queue: %w", err)
	}
	ctx, j.stop = context.WithCancel(context.WithoutCancel(ctx))
	j.lost.Go(func() { j.rescueLost(ctx) })
	return j, nil
}

// lostError is the error of a run whose node has ended.
const lostError = "The node that ran the job has ended."

const lostSQL = `
update river.river_job set
	state = (case when attempt < max_attempts then 'available' else 'discarded' end)::river.river_job_state,
	finalized_at = case when attempt < max_attempts then null else now() end,
	scheduled_at = now() + least(power(2, coalesce(cardinality(errors), 0)), $2) * interval '1 second',
	errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error', $1::text, 'trace', ''))
where state = 'running' and attempted_by[cardinality(attempted_by)] ~ '^[0-9a-f-]{36}$'
  and attempted_by[cardinality(attempted_by)] not in (select node_id::text from nodes where not dead)`

// rescueLost lets the jobs of nodes that have ended run again, with the delays of jobRetries, until ctx ends. A node that was declared dead
// and still runs a job was paused; it begins no other one, and ends when it learns that it is dead. Jobs allow for that. A node that has left
// runs none, but could not store their ends. Programs before this one have identifiers of another form.
func (j *Runner) rescueLost(ctx context.Context) {
	for clock.Sleep(ctx, lostPoll) == nil {
		if n, err := j.releaseLost(ctx); err == nil && n > 0 { // after an error the next round does it
			j.log.Info("jobs of nodes that have ended run again", zap.Int64("count", n))
		}
	}
}

func (j *Runner) releaseLost(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pg.RequestTimeout)
	defer cancel()
	tag, err := j.pool.Exec(ctx, lostSQL, lostError, retryLongest.Seconds())
	return tag.RowsAffected(), err
}

func jobPool(ctx context.Context, db *pg.DB) (*pgxpool.Pool, error) {
	return db.Pool(ctx, pg.EngineRole, pg.JobConns)
}

// Close waits up to jobStopTime for the running jobs, then cancels the rest and waits for it.
func (j *Runner) Close(ctx context.Context) error {
	defer j.pool.Close()
	j.stop()
	j.lost.Wait()
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

// jobRetries doubles the delay with each failure, up to retryLongest.
type jobRetries struct{}

func (jobRetries) NextRetry(job *rivertype.JobRow) time.Time {
	delay := retryLongest
	if failed := len(job.Errors); failed < 10 {
		delay = min(retryFirst<<failed, retryLongest)
	}
	return time.Now().Add(delay)
}
