package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// PurgeArgs is the job that deletes the bytes and the row of a deleted file.
type PurgeArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
	FileID    protocol.FileID    `json:"file_id"`
}

// Kind implements river.JobArgs.
func (PurgeArgs) Kind() string { return "purge_file" }

const (
	unusedNameSQL = `select f.object_name from files f where f.account_id = @account and f.file_id = @file and f.deleted_at is not null and not ` + used
	purgeFileSQL  = `
	with gone as (delete from files where account_id = @account and file_id = @file and deleted_at is not null returning size, counted)
	update file_totals t set bytes = t.bytes - gone.size, files = t.files - 1 from gone where t.account_id = @account and gone.counted`
	deletedFilesSQL = `
	select account_id, file_id from files f
	where (account_id, file_id) > ($1, $2) and deleted_at is not null
	  and not exists (select from message_files u where u.account_id = f.account_id and u.file_id = f.file_id)
	order by account_id, file_id limit $3`
)

const (
	sweepInterval = 10 * time.Minute
	sweepRows     = 1000
)

type sweepArgs struct{}

func (sweepArgs) Kind() string { return "sweep_files" }

// SweepJob returns the job that deletes the bytes of deleted files that no message has any more.
func (s *Store) SweepJob() jobs.Job {
	return jobs.New(func(ctx context.Context, _ sweepArgs) error { return s.Sweep(ctx) }).Every(sweepInterval, sweepArgs{})
}

// Sweep deletes the bytes of deleted files that no message has any more.
func (s *Store) Sweep(ctx context.Context) error {
	var last PurgeArgs
	for {
		rows, err := s.db.Engine.Query(ctx, deletedFilesSQL, last.AccountID, last.FileID, sweepRows)
		if err != nil {
			return fmt.Errorf("finding unused files: %w", pg.Classify(err))
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PurgeArgs])
		if err != nil || len(page) == 0 {
			return pg.Classify(err)
		}
		last = page[len(page)-1]
		for _, file := range page {
			if err := s.purge(ctx, file); err != nil {
				return err
			}
		}
	}
}

// PurgeJob returns the job that deletes the bytes of a deleted file.
func (s *Store) PurgeJob() jobs.Job { return jobs.New(s.purge) }

// purge deletes the bytes of a deleted file that no message has, and then its row. It can be repeated.
func (s *Store) purge(ctx context.Context, job PurgeArgs) error {
	args := pgx.NamedArgs{"account": job.AccountID, "file": job.FileID}
	name, err := pg.Row(ctx, s.db, job.AccountID, pgx.RowTo[string], unusedNameSQL, args)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil // an earlier run has finished, a message has the file, or the account is erased
	}
	if err == nil {
		err = s.objects.Delete(ctx, uploadlog.ObjectKey(job.AccountID, name))
	}
	if err == nil {
		_, err = s.db.Exec(ctx, job.AccountID, purgeFileSQL, args)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("purging a file: %w", err)
	}
	return err
}
