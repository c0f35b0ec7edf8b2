package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

const (
	lockFileSQL = `select version from files where account_id = @account and file_id = @file and deleted_at is null for update`
	changeSQL   = `
	update files set filename = coalesce(@filename, filename), purpose = case when @keep then 'library' else purpose end,
		version = version + 1, updated_at = now()
	where account_id = @account and file_id = @file`
	touchSQL       = `update files set version = version + 1, updated_at = now() where account_id = @account and file_id = @file`
	deleteFileSQL  = `update files f set deleted_at = now(), counted = ` + used + ` where f.account_id = @account and f.file_id = @file`
	leaveAllSQL    = `delete from project_files where account_id = @account and file_id = @file returning project_id`
	leaveSQL       = `delete from project_files where account_id = @account and project_id = @project and file_id = @file`
	joinProjectSQL = `
	insert into project_files (account_id, project_id, file_id) values (@account, @project, @file) on conflict do nothing`
	fewerFilesSQL = `
	update file_totals t set bytes = t.bytes - f.size, files = t.files - 1
	from files f where t.account_id = @account and f.account_id = @account and f.file_id = @file and not f.counted`
	// used reports whether a message has the file, or will have it.
	used = `(exists (select from message_files u where u.account_id = f.account_id and u.file_id = f.file_id)
		or exists (select from follow_ups q where q.account_id = f.account_id and q.` + open.FollowUps + ` and q.attachments <> '{}'
			and f.file_id = any (q.attachments)))`
	// needed selects the files whose text a turn may still need: those of the library, and those that a message has or will
	// have.
	needed = `(f.deleted_at is null or ` + used + `)`
)

// Change is a request to change a file.
type Change struct {
	FileID   protocol.FileID
	Version  *int64  // that the change is based on; nil: any
	Filename *string // nil: unchanged
	Keep     bool    // the file does not end with the temporary conversation that it was uploaded for
}

// Change changes a file.
func (s *Store) Change(ctx context.Context, account protocol.AccountID, change *Change) (file *protocol.File, err error) {
	args := pgx.NamedArgs{"account": account, "file": change.FileID, "filename": change.Filename, "keep": change.Keep}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := lock(ctx, tx, args, change.Version); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, changeSQL, args); err != nil {
			return fmt.Errorf("changing a file: %w", err)
		}
		file, err = readFile(ctx, tx, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// lock locks the row of a file and compares its version; nil: any.
func lock(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, version *int64) error {
	var current int64
	if err := tx.QueryRow(ctx, lockFileSQL, args).Scan(&current); err != nil {
		return fmt.Errorf("locking a file: %w", err)
	}
	if version == nil || *version == current {
		return nil
	}
	file, err := readFile(ctx, tx, args)
	if err != nil {
		return err
	}
	return protocol.Conflict(protocol.CodeStaleVersion, file, "The file was changed in the meantime.")
}

func readFile(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (*protocol.File, error) {
	rows, err := tx.Query(ctx, getFileSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	file, err := pgx.CollectExactlyOneRow(rows, scanFile)
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return &file, nil
}

// Delete removes a file from the library and from its projects, and enqueues the deletion of its bytes. While a message has
// the file, its bytes stay, and it counts for the quota.
func (s *Store) Delete(ctx context.Context, account protocol.AccountID, id protocol.FileID, version *int64, session *protocol.SessionID) error {
	args := pgx.NamedArgs{"account": account, "file": id}
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := lock(ctx, tx, args, version); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, leaveAllSQL, args)
		if err != nil {
			return fmt.Errorf("deleting a file: %w", err)
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[protocol.ProjectID])
		if err != nil {
			return fmt.Errorf("deleting a file: %w", err)
		}
		batch := &pgx.Batch{}
		for _, project := range left {
			projects.Work{Kind: protocol.WorkFileRemoved, SessionID: session, FileID: &id}.Queue(batch, account, project)
		}
		batch.Queue(deleteFileSQL, args)
		batch.Queue(fewerFilesSQL, args)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("deleting a file: %w", err)
		}
		return s.queue.Insert(ctx, tx, PurgeArgs{account, id})
	})
}

// AddToProject makes a file one of the files of an active project. A file that it already is stays unchanged.
func (s *Store) AddToProject(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, id protocol.FileID, session *protocol.SessionID) (*protocol.File, error) {
	return s.changeProject(ctx, account, project, id, joinProjectSQL, projects.Work{Kind: protocol.WorkFileAdded, SessionID: session, FileID: &id})
}

// RemoveFromProject ends the membership of a file in an active project. The file stays in the library. The error is
// protocol.CodeNotFound if the file is not one of the project.
func (s *Store) RemoveFromProject(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, id protocol.FileID, session *protocol.SessionID) error {
	_, err := s.changeProject(ctx, account, project, id, leaveSQL, projects.Work{Kind: protocol.WorkFileRemoved, SessionID: session, FileID: &id})
	return err
}

func (s *Store) changeProject(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, id protocol.FileID, sql string, work projects.Work) (file *protocol.File, err error) {
	args := pgx.NamedArgs{"account": account, "file": id, "project": project}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := projects.Lock(ctx, tx, account, project)
		if err != nil {
			return err
		}
		if err := lock(ctx, tx, args, nil); err != nil { // before the conflict: a missing file is not found in any project
			return err
		}
		if err := projects.CheckActive(locked); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sql, args)
		if err != nil {
			return fmt.Errorf("changing the files of a project: %w", err)
		}
		if tag.RowsAffected() == 1 {
			batch := &pgx.Batch{}
			work.Queue(batch, account, project)
			batch.Queue(touchSQL, args)
			if err := tx.Run(ctx, batch); err != nil {
				return fmt.Errorf("changing the files of a project: %w", err)
			}
		} else if work.Kind == protocol.WorkFileRemoved {
			return pg.NotFound()
		}
		if file, err = readFile(ctx, tx, args); err != nil || work.Kind != protocol.WorkFileAdded {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, file)
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}
