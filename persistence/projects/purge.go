package projects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	purgeInterval = 10 * time.Minute
	purgeRun      = 40 * time.Second
	purgeRows     = 200 // rows that one transaction erases
	purgeBatch    = 100 // projects that one query lists
)

// EraseConversations deletes at most limit conversations of a project and returns how many it deleted.
type EraseConversations func(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID, limit int) (deleted int, err error)

type purgeArgs struct{}

func (purgeArgs) Kind() string { return "purge_projects" }

// PurgeJob returns the job that erases the projects whose retention is over.
func (s *Store) PurgeJob(erase EraseConversations) jobs.Job {
	return jobs.New(func(ctx context.Context, _ purgeArgs) error { return s.purgeDue(ctx, erase) }).Every(purgeInterval, purgeArgs{})
}

const dueProjectsSQL = `
	select account_id, project_id from projects
	where deleted_at is not null and purge_at <= now()
	order by purge_at limit $1`

type dueProject struct {
	AccountID protocol.AccountID
	ProjectID protocol.ProjectID
}

// purgeDue erases due projects in steps until none is left or purgeRun is over. The next run continues: the job keeps no
// state.
func (s *Store) purgeDue(ctx context.Context, erase EraseConversations) error {
	for began := time.Now(); ; {
		rows, err := s.db.Engine.Query(ctx, dueProjectsSQL, purgeBatch)
		if err != nil {
			return fmt.Errorf("listing projects to purge: %w", pg.Classify(err))
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dueProject])
		if err != nil {
			return fmt.Errorf("listing projects to purge: %w", pg.Classify(err))
		}
		for _, project := range due {
			for done := false; !done; {
				if time.Since(began) > purgeRun {
					return nil
				}
				if done, err = s.PurgeProject(ctx, project.AccountID, project.ProjectID, purgeRows, erase); err != nil {
					return fmt.Errorf("purging a project: %w", err)
				}
			}
		}
		if len(due) < purgeBatch {
			return nil
		}
	}
}

// purgeSteps delete what belongs to a project besides its conversations. Each deletes at most @limit rows.
var purgeSteps = []struct{ what, sql string }{
	{"work history", `
		delete from project_work w using (
			select work_id from project_work where account_id = @account and project_id = @project limit @limit) x
		where w.account_id = @account and w.work_id = x.work_id`},
	{"prompts", `
		delete from prompts p using (
			select prompt_id from prompts where account_id = @account and project_id = @project limit @limit) x
		where p.account_id = @account and p.prompt_id = x.prompt_id`},
	{"instructions", `
		delete from project_instructions i using (
			select version from project_instructions where account_id = @account and project_id = @project limit @limit) x
		where i.account_id = @account and i.project_id = @project and i.version = x.version`},
}

const (
	lockForPurgeSQL = `
	select purge_at <= now() from projects
	where account_id = @account and project_id = @project and deleted_at is not null
	for update`
	removeProjectSQL = `delete from projects where account_id = @account and project_id = @project`
)

// PurgeProject erases at most limit rows of a deleted project whose retention is over, and reports whether nothing is
// left to do. Callers repeat it until then. Any process may continue, whatever state an earlier call left. The content of
// the conversations is erased by jobs of their own.
func (s *Store) PurgeProject(ctx context.Context, account protocol.AccountID, id protocol.ProjectID, limit int, erase EraseConversations) (done bool, err error) {
	args := pgx.NamedArgs{"account": account, "project": id}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var due bool
		err := tx.QueryRow(ctx, lockForPurgeSQL, args).Scan(&due)
		if done = errors.Is(err, pgx.ErrNoRows) || err == nil && !due; done { // purged or restored in the meantime
			return nil
		}
		if err != nil {
			return fmt.Errorf("starting a purge: %w", err)
		}
		left := limit
		deleted, err := erase(ctx, tx, account, id, left)
		if left -= deleted; err != nil || left <= 0 {
			return err
		}
		for _, step := range purgeSteps {
			args["limit"] = left
			tag, err := tx.Exec(ctx, step.sql, args)
			if err != nil {
				return fmt.Errorf("purging the %s: %w", step.what, err)
			}
			if left -= int(tag.RowsAffected()); left <= 0 {
				return nil
			}
		}
		if _, err := tx.Exec(ctx, removeProjectSQL, args); err != nil {
			return fmt.Errorf("removing a project: %w", err)
		}
		done = true
		return appendAudit(ctx, tx, account, &Change{ProjectID: id}, EventProjectPurged, audit.Requester{})
	})
	return done, err
}
