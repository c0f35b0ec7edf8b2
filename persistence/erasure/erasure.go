package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/imports"
	"turnstone/persistence/jobs"
	"turnstone/persistence/mails"
	"turnstone/persistence/objects"
	"turnstone/persistence/open"
	"turnstone/persistence/operator"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// Store erases accounts. Its methods may be called from any goroutine.
type Store struct {
	db      *pg.DB
	queue   *jobs.Queue
	objects objects.Store
}

// New returns a store.
func New(db *pg.DB, queue *jobs.Queue, objects objects.Store) *Store {
	return &Store{db, queue, objects}
}

// The events of an erasure in the audit.
const (
	EventRequested audit.SecurityEvent = "account.erasure_requested"
	EventErased    audit.SecurityEvent = "account.erased" // its detail has the counts
)

// maxCounted is the number at which counting stops; see package conversations.
const maxCounted = 1000

const countSQL = `
	select
		(select count(*) from (select from conversations c where c.account_id = @account and ` + conversations.Visible + ` limit @most) c) as conversations,
		(select count(*) from (select from projects where account_id = @account limit @most) r) as projects,
		(select count(*) from (select from shares where account_id = @account and expires_at > now() limit @most) h) as shares,
		(select count(*) from (select from messages where account_id = @account limit @most) m) as messages,
		(select count(*) from (select from follow_ups where account_id = @account and ` + open.FollowUps + ` limit @most) f) as follow_ups,
		(select count(*) from (select distinct session_id from sessions where account_id = @account and revoked_at is null and expires_at > now() limit @most) s) as sessions,
		(select count(*) from (select from imports where account_id = @account limit @most) i) as imports,
		(select count(*) from (select from passkeys where account_id = @account limit @most) p) as passkeys,
		(select count(*) from (select from files where account_id = @account and deleted_at is null limit @most) f) as files,
		(select count(*) from (select from prompts where account_id = @account limit @most) q) as prompts,
		(select count(*) from (select from artifacts where account_id = @account limit @most) a) as artifacts`

// Count counts what an erasure deletes, each kind up to 1,000. A session counts once, although it may have several tokens:
// the numbers are part of the confirmation, and a request that renews the token must not change them.
func (s *Store) Count(ctx context.Context, account protocol.AccountID) (map[string]int, error) {
	return pg.Row(ctx, s.db, account, func(row pgx.CollectableRow) (map[string]int, error) {
		found, err := pgx.RowToMap(row)
		counts := make(map[string]int, len(found))
		for kind, n := range found {
			if n, is := n.(int64); is {
				counts[kind] = int(n)
			}
		}
		return counts, err
	}, countSQL, pgx.NamedArgs{"account": account, "most": maxCounted})
}

const (
	beginSQL = `
	update accounts
	set erasing_at = @now, email = '', email_key = account_id::text, display_name = '', password_hash = null,
		pending_email = null, pending_email_expires_at = null
	where account_id = @account and erasing_at is null
	returning 1`
	// Before beginSQL, which removes the address.
	forgetResetsSQL = `
	delete from password_requests r using accounts a where a.account_id = $1 and r.email_key = a.email_key`
	unlinkSQL = `delete from account_identities where account_id = $1`
	// An import that is open would write until its rows are gone.
	cancelImportsSQL = `
	update imports set state = 'cancelled', finished_at = now()
	where account_id = $1 and ` + open.Imports
	// The report counts the passkeys, which end at once, as it counts the rows that are deleted later.
	insertSQL = `
	with gone as (delete from passkeys where account_id = @account returning 1)
	insert into erasures (erasure_id, subject, requested_at, counts)
	select @erasure, @account, @now, case when count(*) = 0 then '{}' else jsonb_build_object('passkeys', count(*)) end from gone`
)

// Begin starts the erasure of an account. When it returns, no request of the account succeeds any more, its live turns
// are being cancelled, and its address can be registered again. An account that is already being erased is
// protocol.CodeNotFound.
func (s *Store) Begin(ctx context.Context, account protocol.AccountID, now time.Time, session *protocol.SessionID, by audit.Requester) (protocol.ErasureID, error) {
	id := protocol.NewErasureID()
	err := s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		args := pgx.NamedArgs{"account": account, "erasure": id, "now": now}
		batch := &pgx.Batch{}
		operator.QueueDisable(batch, account, now)
		batch.Queue(forgetResetsSQL, account)
		mails.QueueWithdraw(batch, account, protocol.MailKinds...)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		var one int
		if err := tx.QueryRow(ctx, beginSQL, args).Scan(&one); err != nil {
			return err
		}
		batch = &pgx.Batch{}
		batch.Queue(unlinkSQL, account)
		batch.Queue(cancelImportsSQL, account)
		batch.Queue(insertSQL, args)
		by.Queue(batch, account, EventRequested, session)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		if err := s.queue.Insert(ctx, tx, operator.DisableAccountArgs{AccountID: account}); err != nil {
			return err
		}
		return s.queue.Insert(ctx, tx, EraseArgs{account, id})
	})
	return id, err
}

const erasureSQL = `select erasure_id, subject, requested_at, finished_at, counts from erasures where erasure_id = $1`

// Erasure returns the report of an erasure, for operators.
func (s *Store) Erasure(ctx context.Context, id protocol.ErasureID) (*Report, error) {
	return pg.Row(ctx, s.db, pg.NoAccount, pgx.RowToAddrOfStructByName[Report], erasureSQL, id)
}

// Report says what an erasure has deleted so far.
type Report struct {
	ErasureID   protocol.ErasureID `json:"erasure_id"`
	Subject     protocol.AccountID `json:"account_id"`
	RequestedAt time.Time          `json:"requested_at"`
	FinishedAt  *time.Time         `json:"finished_at"`
	Counts      map[string]int64   `json:"counts"`
}

// EraseArgs is the job that erases an account.
type EraseArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
	ErasureID protocol.ErasureID `json:"erasure_id"`
}

// Kind returns the name of the job.
func (EraseArgs) Kind() string { return "erase_account" }

// InsertOpts allows as many attempts as a purge has: an account must be erased.
func (EraseArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: maxAttempts} }

const (
	maxAttempts = 1000
	stepRows    = 2000
	runFor      = 40 * time.Second // then the next run continues
	// grace is longer than a request takes that arrived before its session ended.
	grace = 15 * time.Second
	// workGrace limits the wait for live turns and for uploads that receive or scan, which takes seconds: they would write
	// rows and objects. Then their rows are deleted too.
	workGrace    = 2 * time.Minute
	waitInterval = time.Second
)

// Job returns the job that erases accounts.
func (s *Store) Job() jobs.Job { return jobs.New(s.erase) }

const dueSQL = `
	select erasing_at < now() - @grace::interval and (erasing_at < now() - @work::interval or not exists (
		select from turns where account_id = @account and ` + open.Turns + `) and not exists (
		select from uploads where account_id = @account and ` + open.BusyUploads + `))
	from accounts where account_id = @account and erasing_at is not null`

func (s *Store) erase(ctx context.Context, job EraseArgs) error {
	due, err := pg.Rows(ctx, s.db, job.AccountID, pgx.RowTo[bool], dueSQL,
		pgx.NamedArgs{"account": job.AccountID, "grace": grace, "work": workGrace})
	if err != nil {
		return fmt.Errorf("erasing an account: %w", err)
	}
	if len(due) > 0 && !due[0] {
		return river.JobSnooze(waitInterval)
	}
	for began := time.Now(); ; {
		done, err := s.Step(ctx, job, stepRows)
		switch {
		case err != nil:
			return fmt.Errorf("erasing an account: %w", err)
		case done:
			return s.finish(ctx, job)
		case time.Since(began) > runFor:
			return river.JobSnooze(0)
		}
	}
}

const (
	stepSQL   = `select erase_account_rows($1)`
	countsSQL = `
	update erasures e
	set counts = e.counts || (
		select coalesce(jsonb_object_agg(key, value::bigint + coalesce((e.counts ->> key)::bigint, 0)), '{}') from jsonb_each_text(@step::jsonb))
	where erasure_id = @erasure`
)

// Step deletes at most limit rows of an account that is being erased, and reports whether none are left.
func (s *Store) Step(ctx context.Context, job EraseArgs, limit int) (done bool, err error) {
	err = s.db.InTx(ctx, job.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		var step map[string]int64
		if err := tx.QueryRow(ctx, stepSQL, limit).Scan(&step); err != nil {
			return err
		}
		if done = len(step) == 0; done {
			return nil
		}
		return add(ctx, tx, job.ErasureID, step)
	})
	return done, err
}

func add(ctx context.Context, tx *pg.Tx, id protocol.ErasureID, counts map[string]int64) error {
	text, err := pg.JSONText(counts)
	if err == nil {
		_, err = tx.Exec(ctx, countsSQL, pgx.NamedArgs{"erasure": id, "step": string(text)})
	}
	return err
}

// prefixes are the beginnings of the keys of an account's objects: of files, and of received imports.
func prefixes(account protocol.AccountID) []string {
	return append(uploadlog.AccountPrefixes(account), imports.Prefix(account))
}

const (
	// jobsSQL deletes what names the account in the job queue. The job of the erasure itself is deleted a day after it ended.
	jobsSQL     = `delete from river.river_job where args ->> 'account_id' = $1 and state <> 'running'`
	finishedSQL = `update erasures set finished_at = now() where erasure_id = $1 and finished_at is null returning counts`
)

// finish deletes the objects, and writes the report to the audit. It can be repeated.
func (s *Store) finish(ctx context.Context, job EraseArgs) error {
	for _, prefix := range prefixes(job.AccountID) {
		deleted, err := objects.DeleteAll(ctx, s.objects, prefix)
		if err != nil {
			return fmt.Errorf("erasing objects: %w", err)
		}
		if deleted == 0 {
			continue
		}
		err = s.db.InTx(ctx, job.AccountID, func(ctx context.Context, tx *pg.Tx) error {
			return add(ctx, tx, job.ErasureID, map[string]int64{"objects": int64(deleted)})
		})
		if err != nil {
			return fmt.Errorf("counting erased objects: %w", err)
		}
	}
	if _, err := s.db.Engine.Exec(ctx, jobsSQL, job.AccountID.String()); err != nil {
		return fmt.Errorf("erasing jobs: %w", pg.Classify(err))
	}
	err := s.db.InTx(ctx, job.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		var counts map[string]int64
		err := tx.QueryRow(ctx, finishedSQL, job.ErasureID).Scan(&counts)
		if errors.Is(err, pgx.ErrNoRows) { // an earlier run has finished
			return nil
		}
		if err != nil {
			return err
		}
		detail, err := json.Marshal(map[string]any{"erasure_id": job.ErasureID, "counts": counts})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, audit.AppendAuditSQL, job.AccountID, string(EventErased), nil, "", "", detail)
		return err
	})
	if err != nil {
		return fmt.Errorf("finishing an erasure: %w", err)
	}
	return nil
}

const expireSQL = `
	delete from erasures e using (
		select erasure_id from erasures where requested_at < now() - '` + audit.Retention + `'::interval and finished_at is not null order by requested_at limit $1) x
	where e.erasure_id = x.erasure_id`

// Expire deletes old reports.
func (s *Store) Expire(ctx context.Context) error { return s.db.DeleteExpired(ctx, expireSQL) }
