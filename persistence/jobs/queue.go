package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"turnstone/persistence/pg"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Jobs are rows that are inserted in the transaction that causes them, so that both are stored or neither. They contain
// only identifiers of accounts and objects, so the queue reveals no content. A new job needs a type for its arguments
// next to the store that runs it, and a line in the list of jobs that the node starts.

// Queue inserts jobs. Its methods may be called from any goroutine.
type Queue struct{ client *river.Client[pgx.Tx] }

// NewQueue returns a queue that only inserts jobs; it starts no workers.
func NewQueue(db *pg.DB) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(db.App), &river.Config{Schema: pg.RiverSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	return &Queue{client}, nil
}

// Insert inserts a job in the transaction that causes it: both are stored or neither.
func (q *Queue) Insert(ctx context.Context, tx *pg.Tx, args river.JobArgs) error {
	if _, err := q.client.InsertTx(ctx, tx, args, nil); err != nil {
		return fmt.Errorf("enqueueing %s: %w", args.Kind(), err)
	}
	return nil
}

// Job is one kind of job, with the function that runs it.
type Job struct {
	add      func(*river.Workers)
	periodic *river.PeriodicJob // nil: runs when it is inserted
}

// New returns the kind of job whose arguments are T.
func New[T river.JobArgs](run func(ctx context.Context, args T) error) Job {
	return NewLong(0, run)
}

// NewLong is New for jobs that may take longer than others; 0 stands for the common limit.
func NewLong[T river.JobArgs](timeout time.Duration, run func(ctx context.Context, args T) error) Job {
	return Job{add: func(all *river.Workers) { river.AddWorker(all, &jobWorker[T]{timeout: timeout, run: run}) }}
}

// Every makes a job run once in each interval on one of the nodes, from the start on.
func (j Job) Every(interval time.Duration, args river.JobArgs) Job {
	j.periodic = river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: interval}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
	return j
}

type jobWorker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	timeout time.Duration
	run     func(ctx context.Context, args T) error
}

// Timeout implements river.Worker.
func (w *jobWorker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *jobWorker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	return w.run(ctx, job.Args)
}

// expireArgs is the job that deletes expired rows.
type expireArgs struct{}

func (expireArgs) Kind() string { return "expire" }

const expiryInterval = 10 * time.Minute

// NewExpiry returns the job that calls each function, which deletes expired rows.
func NewExpiry(expire ...func(context.Context) error) Job {
	return New(func(ctx context.Context, _ expireArgs) error {
		for _, one := range expire {
			if err := one(ctx); err != nil {
				return err
			}
		}
		return nil
	}).Every(expiryInterval, expireArgs{})
}
