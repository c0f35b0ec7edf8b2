package projects

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Change identifies the project that a request changes.
type Change struct {
	ProjectID protocol.ProjectID
	Version   *int64 // of what is changed, as the client saw it; nil: the client sent none
	SessionID *protocol.SessionID
}

// checkVersion returns a conflict with the current resource unless the client sent its version.
func (c *Change) checkVersion(stored int64, current any) error {
	return protocol.CheckVersion(c.Version, stored, current)
}

const renameSQL = `
	update projects set name = @name, version = version + 1, updated_at = now()
	where account_id = @account and project_id = @project`

// Rename changes the name of an active project.
func (s *Store) Rename(ctx context.Context, account protocol.AccountID, change *Change, name string) (*protocol.Project, error) {
	return s.change(ctx, account, change, func(p *protocol.Project) (*edit, error) {
		if p.Name == name && p.State != protocol.ProjectDeleted {
			return nil, nil // nothing changes
		}
		return &edit{sql: renameSQL, args: pgx.NamedArgs{"name": name}, kind: protocol.WorkProjectRenamed}, refuse(p)
	})
}

const archiveSQL = `
	update projects set archived_at = case when @archived then now() end, version = version + 1, updated_at = now()
	where account_id = @account and project_id = @project`

// openUploadsSQL finds the uploads into a project that have not ended. A session whose lifetime is over ends as expired.
const openUploadsSQL = `
	select upload_id from uploads
	where account_id = $1 and project_id = $2 and ` + open.Uploads + ` and (state <> 'pending' or expires_at > now())
	order by upload_id limit $3`

// maxOpenUploads limits the uploads that one archive reads; the archive is repeated after they have been cancelled.
const maxOpenUploads = 100

// archiveAttempts limits how often one archive cancels uploads. It cancels again if another upload has started before the
// project was archived.
const archiveAttempts = 3

// OpenUploadsError is returned instead of archiving a project into which files are being uploaded.
type OpenUploadsError struct{ Uploads []protocol.UploadID }

func (e *OpenUploadsError) Error() string {
	return fmt.Sprintf("%d uploads into the project have not ended", len(e.Uploads))
}

// checkNoUploads returns an OpenUploadsError if uploads into a project have not ended.
func checkNoUploads(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID) error {
	rows, err := tx.Query(ctx, openUploadsSQL, account, project, maxOpenUploads)
	if err != nil {
		return fmt.Errorf("reading the uploads into a project: %w", err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[protocol.UploadID])
	if err == nil && len(open) > 0 {
		err = &OpenUploadsError{open}
	}
	return err
}

// SetArchivedWithUploads is SetArchived for a project into which files are being uploaded, which cancel ends first. The error is
// protocol.CodeUnavailable if uploads start faster than they are cancelled. A crash in between leaves an active project, whose
// archive the client repeats.
func (s *Store) SetArchivedWithUploads(
	ctx context.Context, account protocol.AccountID, change *Change, archived bool, cancel func(context.Context, protocol.UploadID) error,
) (*protocol.Project, error) {
	for range archiveAttempts {
		project, err := s.SetArchived(ctx, account, change, archived)
		var open *OpenUploadsError
		if !errors.As(err, &open) {
			return project, err
		}
		for _, upload := range open.Uploads {
			// An upload that has just ended needs no cancel.
			if err := cancel(ctx, upload); protocol.CodeOf(err) == protocol.CodeUnavailable {
				return nil, err
			}
		}
	}
	return nil, protocol.Errorf(protocol.CodeUnavailable, "Uploads into the project were canceled, but the project is not archived yet. Try again.")
}

// SetArchived archives a project, or makes it active again. The archive holds what is queued in its conversations, and it
// stays held in the active project: also what an archive by a node of an earlier version has left queued, which otherwise would
// start now. The error is an OpenUploadsError while files are being uploaded into the project.
func (s *Store) SetArchived(ctx context.Context, account protocol.AccountID, change *Change, archived bool) (*protocol.Project, error) {
	return s.changeAfter(ctx, account, change, queues.LockOfProject, func(p *protocol.Project) (*edit, error) {
		kind, trigger, to := protocol.WorkProjectUnarchived, protocol.ProjectUnarchive, protocol.ProjectActive
		if archived {
			kind, trigger, to = protocol.WorkProjectArchived, protocol.ProjectArchive, protocol.ProjectArchived
		}
		if p.State == to {
			return nil, nil // nothing changes
		}
		if _, legal := protocol.NextProjectState(p.State, trigger); !legal {
			return nil, refuse(p)
		}
		edit := &edit{sql: archiveSQL, args: pgx.NamedArgs{"archived": archived}, kind: kind, then: queues.HoldOfProject}
		if archived {
			edit.first = checkNoUploads
		}
		return edit, nil
	})
}

// refuse returns the conflict for a change that needs an active project; nil if the project is active.
func refuse(p *protocol.Project) error {
	switch p.State {
	case protocol.ProjectActive:
		return nil
	case protocol.ProjectArchived:
		return protocol.Conflict(protocol.CodeConflict, p, "The project is archived, so it is read-only.")
	default:
		return protocol.Conflict(protocol.CodeConflict, p, "The project is deleted. Restore it first.")
	}
}

// edit is a statement that changes the row of a project and its version, with the entry of the work history.
type edit struct {
	sql  string
	args pgx.NamedArgs
	kind protocol.WorkKind
	then func(batch *pgx.Batch, account protocol.AccountID, project protocol.ProjectID) // adds further statements; nil: none
	// first may refuse the edit; nil: nothing does.
	first func(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID) error
}

func (s *Store) change(ctx context.Context, account protocol.AccountID, change *Change,
	decide func(*protocol.Project) (*edit, error),
) (*protocol.Project, error) {
	return s.changeAfter(ctx, account, change, nil, decide)
}

// changeAfter runs the edit that decide returns for the locked project, after a function that takes other locks; nil: none. With no edit
// and no error, nothing changes. The version is checked before the state.
func (s *Store) changeAfter(ctx context.Context, account protocol.AccountID, change *Change,
	before func(context.Context, *pg.Tx, protocol.AccountID, protocol.ProjectID) error, decide func(*protocol.Project) (*edit, error),
) (project *protocol.Project, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if before != nil {
			if err := before(ctx, tx, account, change.ProjectID); err != nil {
				return fmt.Errorf("changing a project: %w", err)
			}
			// A request that queues locks the account before it reads the state of the project.
			if _, err := tx.Exec(ctx, accounts.LockAccountSQL, account); err != nil {
				return fmt.Errorf("locking an account: %w", err)
			}
		}
		if project, err = Lock(ctx, tx, account, change.ProjectID); err != nil {
			return err
		}
		edit, refused := decide(project)
		if err := change.checkVersion(project.Version, project); err != nil {
			return err
		}
		if refused != nil || edit == nil {
			return refused
		}
		if edit.first != nil {
			if err := edit.first(ctx, tx, account, change.ProjectID); err != nil {
				return err
			}
		}
		project, err = s.apply(ctx, tx, account, change, edit, project.Version+1)
		return err
	})
	return project, err
}

// apply runs an edit, records it and returns the changed project.
func (s *Store) apply(ctx context.Context, tx *pg.Tx, account protocol.AccountID, change *Change, edit *edit, version int64) (*protocol.Project, error) {
	args := edit.args
	args["account"], args["project"] = account, change.ProjectID
	batch := &pgx.Batch{}
	batch.Queue(edit.sql, args)
	if edit.then != nil {
		edit.then(batch, account, change.ProjectID)
	}
	Work{Kind: edit.kind, SessionID: change.SessionID, Version: &version}.Queue(batch, account, change.ProjectID)
	if err := tx.Run(ctx, batch); err != nil {
		return nil, fmt.Errorf("changing a project: %w", err)
	}
	return Read(ctx, tx, account, change.ProjectID)
}
