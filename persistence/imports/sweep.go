package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/jobs"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	sweepInterval = 30 * time.Second
	sweepRows     = 100
)

type sweepArgs struct{}

func (sweepArgs) Kind() string { return "sweep_imports" }

// SweepJob returns the job that continues what a node left unfinished: runs, and uploads that were not deleted. An upload
// that is not received any more has failed.
func (s *Store) SweepJob() jobs.Job {
	return jobs.New(func(ctx context.Context, _ sweepArgs) error { return s.sweep(ctx) }).Every(sweepInterval, sweepArgs{})
}

const (
	abandonedSQL = `
	select account_id, import_id, state from imports
	where (` + open.Imports + ` or stored) and active_at < now() - $1::interval
	order by active_at
	limit $2`
	abandonedUploadSQL = `
	update imports set state = 'failed', failure = @failure, finished_at = now()
	where account_id = @account and import_id = @import and state = 'receiving' and active_at < now() - @abandoned::interval`
	sweptSQL = `
	update imports set active_at = now()
	where account_id = @account and import_id = @import and (state = 'queued' or ` + open.EndedImports + `)`
)

type abandoned struct {
	AccountID protocol.AccountID
	ImportID  protocol.ImportID
	State     protocol.ImportState
}

func (s *Store) sweep(ctx context.Context) error {
	rows, err := s.db.Engine.Query(ctx, abandonedSQL, abandonedAfter, sweepRows)
	if err != nil {
		return fmt.Errorf("finding unfinished imports: %w", pg.Classify(err))
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[abandoned])
	if err != nil {
		return fmt.Errorf("finding unfinished imports: %w", pg.Classify(err))
	}
	for _, one := range found {
		args := pgx.NamedArgs{"account": one.AccountID, "import": one.ImportID, "abandoned": abandonedAfter, "failure": "The upload ended early."}
		err := s.db.InTx(ctx, one.AccountID, func(ctx context.Context, tx *pg.Tx) error {
			for _, sql := range []string{abandonedUploadSQL, sweptSQL} {
				if _, err := tx.Exec(ctx, sql, args); err != nil {
					return err
				}
			}
			return s.queue.Insert(ctx, tx, RunArgs{one.AccountID, one.ImportID})
		})
		if err != nil {
			return fmt.Errorf("continuing an import: %w", err)
		}
	}
	return nil
}
