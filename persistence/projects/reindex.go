package projects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	// movedAtOnce limits the conversations that a deletion or restoration moves between indexes itself. They are the most
	// recently used ones, so the first pages of an account's list cost the same, and are complete, at once.
	movedAtOnce = 200
	movedRows   = 500 // conversations that one transaction of the job moves
	reindexRun  = 40 * time.Second
	reindexWait = time.Second // until another attempt, while other transactions have locked the last conversations
)

// moveSQL moves conversations of a project to the indexes of its state. It skips a locked conversation instead of waiting
// for it, since transactions that lock a conversation may wait for the project.
const (
	moveSQL = `
	update conversations c set hidden = not c.hidden
	from (
		select conversation_id from conversations
		where account_id = @account and project_id = @project and hidden = not @hidden::bool and deleted_at is null
		order by last_activity_at desc, conversation_id desc limit @limit
		for no key update skip locked) x
	where c.account_id = @account and c.conversation_id = x.conversation_id`
	movesLeftSQL = `
	select exists (
		select from conversations
		where account_id = @account and project_id = @project and hidden = not @hidden::bool and deleted_at is null)`
)

// moveInIndexes moves at most limit conversations of a locked project to the indexes of its state, and reports whether
// all conversations of the project are there.
func moveInIndexes(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project *protocol.Project, limit int) (done bool, err error) {
	args := pgx.NamedArgs{
		"account": account, "project": project.ProjectID, "hidden": project.State == protocol.ProjectDeleted, "limit": limit,
	}
	if _, err := tx.Exec(ctx, moveSQL, args); err != nil {
		return false, fmt.Errorf("moving the conversations of a project: %w", err)
	}
	var left bool
	if err := tx.QueryRow(ctx, movesLeftSQL, args).Scan(&left); err != nil {
		return false, fmt.Errorf("moving the conversations of a project: %w", err)
	}
	return !left, nil
}

// ReindexArgs is the job that moves the conversations of a project to the indexes of its state.
type ReindexArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
	ProjectID protocol.ProjectID `json:"project_id"`
}

// Kind returns the name of the job.
func (ReindexArgs) Kind() string { return "reindex_project" }

// ReindexJob returns the job that moves the conversations of a deleted or restored project between indexes.
func (s *Store) ReindexJob() jobs.Job { return jobs.New(s.reindex) }

func (s *Store) reindex(ctx context.Context, args ReindexArgs) error {
	for began := time.Now(); time.Since(began) < reindexRun; {
		done, err := s.Reindex(ctx, args.AccountID, args.ProjectID, movedRows)
		if err != nil || done {
			return err
		}
	}
	return river.JobSnooze(reindexWait)
}

// Reindex moves at most limit conversations of a project to the indexes of its state, and reports whether all are there.
// Each call reads the state again, so it does not matter how often a project was deleted and restored since the job was
// enqueued.
func (s *Store) Reindex(ctx context.Context, account protocol.AccountID, id protocol.ProjectID, limit int) (done bool, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		project, err := Lock(ctx, tx, account, id)
		if errors.Is(err, pgx.ErrNoRows) { // purged
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		done, err = moveInIndexes(ctx, tx, account, project, limit)
		return err
	})
	return done, err
}
