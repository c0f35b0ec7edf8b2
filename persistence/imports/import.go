package imports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/files"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// maxDailyBytes limits the uploads of an account in 24 hours.
const maxDailyBytes = 4 << 30

// Store stores imports. Its methods may be called from any goroutine.
type Store struct {
	db      *pg.DB
	queue   *jobs.Queue
	objects objects.Store
	files   *files.Store
	quota   files.Quota
	node    *protocol.NodeID // that runs imports; nil: not a node of the cluster
}

// New returns a store that keeps uploads in an object store.
func New(db *pg.DB, queue *jobs.Queue, objects objects.Store, stored *files.Store, quota files.Quota) *Store {
	if quota == (files.Quota{}) {
		quota = files.DefaultQuota
	}
	return &Store{db: db, queue: queue, objects: objects, files: stored, quota: quota}
}

const importColumns = `import_id, state, source, size, read_bytes, imported, updated, skipped, messages, projects, files, artifacts, report, failure, created_at, finished_at`

const (
	getImportSQL   = `select ` + importColumns + ` from imports where account_id = @account and import_id = @import`
	listImportsSQL = `
	select ` + importColumns + ` from imports
	where account_id = @account and import_id < @after
	order by import_id desc
	limit @limit`
	openImportSQL    = `select ` + importColumns + ` from imports where account_id = @account and ` + open.Imports
	dailyBytesSQL    = `select coalesce(sum(size), 0)::bigint, coalesce(min(created_at), now()) from imports where account_id = @account and created_at > now() - interval '24 hours'`
	insertImportSQL  = `insert into imports (account_id, import_id) values (@account, @import)`
	cancelImportSQL  = `update imports set state = 'cancelled', finished_at = now() where account_id = @account and import_id = @import and ` + open.Imports
	openImportsIndex = "imports_open"
)

// Import returns one import.
func (s *Store) Import(ctx context.Context, account protocol.AccountID, id protocol.ImportID) (*protocol.Import, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Import], getImportSQL, pgx.NamedArgs{"account": account, "import": id})
}

// ListImports returns a page of the imports of an account, newest first, that starts after an import. next is nil at the
// end.
func (s *Store) ListImports(ctx context.Context, account protocol.AccountID, after *protocol.ImportID, limit int) (page []protocol.Import, next *protocol.ImportID, err error) {
	from := protocol.ImportID(pg.HighestID)
	if after != nil {
		from = *after
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Import], listImportsSQL,
		pgx.NamedArgs{"account": account, "after": from, "limit": limit + 1})
	if err != nil {
		return nil, nil, fmt.Errorf("listing imports: %w", err)
	}
	return pg.NextPage(page, limit, func(last *protocol.Import) protocol.ImportID { return last.ImportID })
}

// Cancel ends an import that has not ended. What it has imported stays. If it has ended, the error is
// protocol.CodeConflict with the import.
func (s *Store) Cancel(ctx context.Context, account protocol.AccountID, id protocol.ImportID) (cancelled *protocol.Import, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		args := pgx.NamedArgs{"account": account, "import": id}
		tag, err := tx.Exec(ctx, cancelImportSQL, args)
		if err != nil {
			return fmt.Errorf("cancelling an import: %w", err)
		}
		if cancelled, err = readImport(ctx, tx, getImportSQL, args); err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return protocol.Conflict(protocol.CodeConflict, cancelled, "The import has already ended.")
		}
		return s.queue.Insert(ctx, tx, RunArgs{account, id}) // deletes the upload
	})
	return cancelled, err
}

func readImport(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) (*protocol.Import, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("reading an import: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Import])
}

// begin creates the row of an upload. The error is protocol.CodeConflict with the open import if there is one, and
// protocol.CodeRateLimited over the daily limit.
func (s *Store) begin(ctx context.Context, account protocol.AccountID, size int64) (protocol.ImportID, error) {
	args := pgx.NamedArgs{"account": account}
	for {
		id := protocol.NewImportID()
		args["import"] = id
		err := s.insert(ctx, account, size, args)
		if !pg.Violates(err, openImportsIndex) {
			return id, err
		}
		open, err := pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Import], openImportSQL, args)
		switch {
		case err == nil:
			return id, protocol.Conflict(protocol.CodeConflict, open, "Another import has not ended yet. Wait for it, or cancel it.")
		case protocol.CodeOf(err) != protocol.CodeNotFound:
			return id, err
		}
		// The open import has ended meanwhile.
	}
}

// insert inserts the row of an upload within the daily limit.
func (s *Store) insert(ctx context.Context, account protocol.AccountID, size int64, args pgx.NamedArgs) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var today int64
		var oldest time.Time
		if err := tx.QueryRow(ctx, dailyBytesSQL, args).Scan(&today, &oldest); err != nil {
			return fmt.Errorf("summing uploads: %w", err)
		}
		if today+max(size, 0) > maxDailyBytes {
			return &protocol.Error{
				Code: protocol.CodeRateLimited, Detail: fmt.Sprintf("An account can upload %d GiB in 24 hours. Try again later.", maxDailyBytes>>30),
				RetryAfter: max(1, int(time.Until(oldest.Add(24*time.Hour)).Seconds())),
			}
		}
		_, err := tx.Exec(ctx, insertImportSQL, args)
		return err
	})
}

// errEnded is returned when an import is not in the expected state any more: it was cancelled, or another run has taken
// over.
var errEnded = errors.New("the import was cancelled, or another run continues it")
