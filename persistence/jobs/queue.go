package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"turnstone/persistence/pg"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
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

// The priorities of jobs of one queue. Those of a lower number run first.
const (
	FirstPriority = 1
	LastPriority  = 4
)

// InsertWith is Insert with a priority.
func (q *Queue) InsertWith(ctx context.Context, tx *pg.Tx, args river.JobArgs, priority int) error {
	if _, err := q.client.InsertTx(ctx, tx, args, &river.InsertOpts{Priority: priority}); err != nil {
		return fmt.Errorf("enqueueing %s: %w", args.Kind(), err)
	}
	return nil
}

// Later is the error of a run that has done nothing and lets another one do it after a delay.
func Later(delay time.Duration) error { return river.JobSnooze(delay) }

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
	return NewGuarded(timeout, run, nil)
}

// NewGuarded is NewLong for jobs that read what an account has sent. If two runs of such a job have ended with their
// processes, the third run calls giveUp instead, on whichever node it is: a content that needs more memory than a node has
// must not end the next node too.
func NewGuarded[T river.JobArgs](timeout time.Duration, run, giveUp func(ctx context.Context, args T) error) Job {
	return Job{add: func(all *river.Workers) {
		river.AddWorker(all, &jobWorker[T]{timeout: timeout, run: run, giveUp: giveUp})
	}}
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
	giveUp  func(ctx context.Context, args T) error // nil: the job is tried again
}

// Timeout implements river.Worker.
func (w *jobWorker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *jobWorker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	if w.giveUp != nil && lostRuns(job.JobRow) >= maxLostRuns {
		if err := w.giveUp(ctx, job.Args); err != nil {
			return err
		}
		return river.JobCancel(errGivenUp)
	}
	return w.run(ctx, job.Args)
}

const maxLostRuns = 2

var errGivenUp = errors.New("two runs of the job have ended with their processes; it does not run again")

// lostRuns returns how many runs of a job have ended with their processes: the queue or rescueLost notes an error for each.
func lostRuns(job *rivertype.JobRow) (lost int) {
	for i := range job.Errors {
		if text := job.Errors[i].Error; text == lostError || text == "Stuck job rescued by JobRescuer" {
			lost++
		}
	}
	return lost
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
