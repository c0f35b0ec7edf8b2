package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/jobs"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	disableInterval = time.Second      // interval between two checks for live turns of a disabled account
	disableGrace    = 15 * time.Second // no request that arrived before the account was disabled takes longer than this
)

// maxDisableAttempts is as high as that of a purge: at most ten minutes apart, about a week.
const maxDisableAttempts = 1000

// DisableAccountArgs is the job that cancels the live turns and research tasks of a disabled account. It repeats until none runs and
// no request that arrived before the account was disabled can still start one.
type DisableAccountArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
}

// Kind returns the name of the job.
func (DisableAccountArgs) Kind() string { return "disable_account" }

// InsertOpts allows as many attempts as a purge has, because a disabled account must not keep using models.
func (DisableAccountArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: jobs.UrgentQueue, MaxAttempts: maxDisableAttempts}
}

const (
	disableAccountSQL = `
	update accounts set disabled_at = @at, pending_email = null, pending_email_expires_at = null where account_id = @account and disabled_at is null`
	enableAccountSQL = `update accounts set disabled_at = null where account_id = $1 and disabled_at is not null and erasing_at is null`
)

// QueueDisable adds the statements that disable an account: they set its queued follow-ups to held and end its sessions.
// The caller also enqueues a DisableAccountArgs, which cancels what runs.
func QueueDisable(batch *pgx.Batch, account protocol.AccountID, now time.Time) {
	queues.HoldOfAccount(batch, account)
	batch.Queue(disableAccountSQL, pgx.NamedArgs{"account": account, "at": now})
	accounts.QueueEndSessions(batch, account, now)
}

// Store does what an operator requests for an account. Its methods may be called from any goroutine.
type Store struct {
	db    *pg.DB
	queue *jobs.Queue
}

// New returns an operator that enqueues its jobs in queue.
func New(db *pg.DB, queue *jobs.Queue) *Store { return &Store{db, queue} }

// Cancel cancels what runs for an account, on behalf of an operator. What has ended is no error.
type Cancel struct {
	Turn func(context.Context, protocol.AccountID, protocol.TurnID) error
	Task func(context.Context, protocol.AccountID, protocol.TaskID) error
}

// DisableJob returns the job that calls cancel for what runs for disabled accounts.
func (s *Store) DisableJob(cancel Cancel) jobs.Job {
	return jobs.New(func(ctx context.Context, args DisableAccountArgs) error {
		return s.StopAccount(ctx, args.AccountID, cancel)
	})
}

// DisableAccount disables an account: it ends the sessions, sets the queued follow-ups to held and enqueues a job that
// cancels the live turns and the research tasks. It deletes nothing.
func (s *Store) DisableAccount(ctx context.Context, account protocol.AccountID, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		QueueDisable(batch, account, now)
		by.Queue(batch, account, audit.EventAccountDisabled, nil)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		return s.queue.Insert(ctx, tx, DisableAccountArgs{account})
	})
}

// EnableAccount lets an account sign in again. It starts nothing: held follow-ups stay held.
func (s *Store) EnableAccount(ctx context.Context, account protocol.AccountID, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(enableAccountSQL, account)
		by.Queue(batch, account, audit.EventAccountEnabled, nil)
		return tx.Run(ctx, batch)
	})
}

const (
	disabledAtSQL = `select disabled_at from accounts where account_id = $1`
	stillLiveSQL  = `select turn_id from turns where account_id = $1 and ` + open.Turns
	openTasksSQL  = `select task_id from research_tasks where account_id = $1 and not hidden and ` + open.Tasks
)

// StopAccount cancels the live turns and the research tasks of a disabled account. It also sets the follow-ups to held that were
// queued since the account was disabled, so that the end of a turn does not start them. It returns river.JobSnooze
// until nothing runs and disableGrace has passed.
func (s *Store) StopAccount(ctx context.Context, account protocol.AccountID, cancel Cancel) error {
	var disabled *time.Time
	var live []protocol.TurnID
	var open []protocol.TaskID
	err := s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(disabledAtSQL, account).QueryRow(func(row pgx.Row) error { return row.Scan(&disabled) })
		if err := tx.Run(ctx, batch); err != nil || disabled == nil {
			return err
		}
		batch = &pgx.Batch{}
		queues.HoldOfAccount(batch, account)
		batch.Queue(stillLiveSQL, account).Query(func(rows pgx.Rows) (err error) {
			live, err = pgx.CollectRows(rows, pgx.RowTo[protocol.TurnID])
			return err
		})
		batch.Queue(openTasksSQL, account).Query(func(rows pgx.Rows) (err error) {
			open, err = pgx.CollectRows(rows, pgx.RowTo[protocol.TaskID])
			return err
		})
		return tx.Run(ctx, batch)
	})
	if protocol.CodeOf(err) == protocol.CodeNotFound { // the account was erased
		return nil
	}
	if err != nil || disabled == nil { // the account was enabled again
		return err
	}
	var failed []error
	for _, turn := range live {
		failed = append(failed, cancel.Turn(ctx, account, turn))
	}
	for _, task := range open {
		failed = append(failed, cancel.Task(ctx, account, task))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("cancelling what runs for a disabled account: %w", err)
	}
	if len(live)+len(open) > 0 || time.Since(*disabled) < disableGrace {
		return river.JobSnooze(disableInterval)
	}
	return nil
}
