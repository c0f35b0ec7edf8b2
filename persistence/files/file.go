package files

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/conversations"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// Store stores files. Its methods may be called from any goroutine.
type Store struct {
	db      *pg.DB
	queue   *jobs.Queue
	objects objects.Store
}

// New returns a store whose bytes are in an object store; nil: it can list files, but neither read nor delete them.
func New(db *pg.DB, queue *jobs.Queue, objects objects.Store) *Store {
	return &Store{db, queue, objects}
}

const fileColumns = `
	f.file_id, f.filename, f.media_type, f.kind, f.size, f.sha256, f.scan_engine, f.scanned_at, f.version, f.created_at, f.updated_at, f.deleted_at,
	coalesce((select array_agg(m.project_id order by m.project_id) from project_files m
		cross join lateral (select p.deleted_at from projects p where p.account_id = m.account_id and p.project_id = m.project_id limit 1) p
		where m.account_id = f.account_id and m.file_id = f.file_id and p.deleted_at is null), '{}') as project_ids,
	coalesce(t.state, 'none') as text_state, t.pages, t.width, t.height, t.thumbnail is not null as has_thumbnail,
	not (f.purpose is not distinct from 'attachment' and exists (
		select from conversations c where c.account_id = f.account_id and c.conversation_id = f.uploaded_for and c.temporary and c.deleted_at is null)) as kept`

// fromFiles is the source of fileColumns. A file from before texts were read has none.
const fromFiles = ` from files f left join file_texts t on t.account_id = f.account_id and t.file_id = f.file_id `

// fromProjectFiles is fromFiles for the files of a project. The rows of each are looked up one by one, so that no plan reads the
// whole library.
const fromProjectFiles = ` from project_files m
	cross join lateral (select * from files f where f.account_id = m.account_id and f.file_id = m.file_id offset 0) f
	left join lateral (select * from file_texts t where t.account_id = f.account_id and t.file_id = f.file_id offset 0) t on true `

func scanFile(row pgx.CollectableRow) (protocol.File, error) {
	f := protocol.File{Scan: protocol.FileScan{Verdict: "clean"}}
	var hash []byte
	err := row.Scan(&f.FileID, &f.Filename, &f.MediaType, &f.Kind, &f.Size, &hash, &f.Scan.Engine, &f.Scan.At, &f.Version, &f.CreatedAt, &f.UpdatedAt, &f.DeletedAt, &f.ProjectIDs,
		&f.TextState, &f.Pages, &f.Width, &f.Height, &f.HasThumbnail, &f.Kept)
	f.SHA256 = hex.EncodeToString(hash)
	return f, err
}

// readable selects the files that can be read: those of the library, and those that messages have.
const readable = `(f.deleted_at is null or exists (select from message_files u where u.account_id = f.account_id and u.file_id = f.file_id))`

const getFileSQL = `select ` + fileColumns + fromFiles + `where f.account_id = @account and f.file_id = @file and ` + readable

// File reads a file.
func (s *Store) File(ctx context.Context, account protocol.AccountID, id protocol.FileID) (*protocol.File, error) {
	f, err := pg.Row(ctx, s.db, account, scanFile, getFileSQL, pgx.NamedArgs{"account": account, "file": id})
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return &f, nil
}

const referencesSQL = `
	select m.conversation_id, m.branch_id, m.message_id, coalesce(nullif(c.title, ''), c.provisional_title), m.created_at
	from message_files u
	join messages m on m.account_id = u.account_id and m.message_id = u.message_id
	join conversations c on c.account_id = m.account_id and c.conversation_id = m.conversation_id
	where u.account_id = @account and u.file_id = @file and not c.temporary and ` + conversations.Visible + `
	order by u.message_id desc limit @limit`

// References returns the newest messages that have a file, at most limit.
func (s *Store) References(ctx context.Context, account protocol.AccountID, id protocol.FileID, limit int) ([]protocol.FileReference, error) {
	args := pgx.NamedArgs{"account": account, "file": id, "limit": limit}
	references, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[protocol.FileReference], referencesSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading where a file is used: %w", err)
	}
	return references, nil
}

const objectNameSQL = `select f.object_name from files f where f.account_id = @account and f.file_id = @file and ` + readable

// Open returns length bytes of the content of a file from an offset. The caller closes it.
func (s *Store) Open(ctx context.Context, account protocol.AccountID, id protocol.FileID, offset, length int64) (io.ReadCloser, error) {
	name, err := pg.Row(ctx, s.db, account, pgx.RowTo[string], objectNameSQL, pgx.NamedArgs{"account": account, "file": id})
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return s.get(ctx, account, id, name, offset, length)
}

// get reads the object of a file whose row exists.
func (s *Store) get(ctx context.Context, account protocol.AccountID, id protocol.FileID, name string, offset, length int64) (io.ReadCloser, error) {
	content, err := s.objects.Get(ctx, uploadlog.ObjectKey(account, name), offset, length)
	if code := protocol.CodeOf(err); code == protocol.CodeNotFound || code == protocol.CodeInvalid { // the row exists, so this is a loss
		s.db.Log.Error("the content of a file is missing or cut", zap.Stringer("file", id), zap.Error(err))
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The content of the file cannot be read.", RetryAfter: pg.RetrySeconds, Err: err}
	}
	return content, err
}

// Sort is the order of a list of files.
type Sort string

// The orders.
const (
	Newest Sort = "newest"
	ByName Sort = "name"
	Larger Sort = "size" // the largest first
)

// Filter selects files for a list.
type Filter struct {
	Query     string // part of the name, in any case; empty: all
	Kind      protocol.FileKind
	ProjectID *protocol.ProjectID
	Sort      Sort
	Deleted   bool // instead of the library: the files that were deleted from it, and that messages have
}

// Position is the position of a list after a file.
type Position struct {
	Name string          `json:"n,omitempty"`
	Size int64           `json:"s,omitempty"`
	ID   protocol.FileID `json:"i"`
}

// listSQL are the statements of the orders. Each has an index, so a page costs what it reads. Only Postgres changes names
// to lower case: Go changes some characters differently, and then a page would begin at another place.
var listSQL = map[Sort]string{
	Newest: `and f.file_id < @after order by f.file_id desc limit @limit`,
	ByName: `and (lower(f.filename), f.file_id) > (lower(@name), @after) order by lower(f.filename), f.file_id limit @limit`,
	Larger: `and (f.size, f.file_id) < (@size, @after) order by f.size desc, f.file_id desc limit @limit`,
}

const (
	listFilesSQL        = `select ` + fileColumns + fromFiles + `where f.account_id = @account`
	listProjectFilesSQL = `select ` + fileColumns + fromProjectFiles + `
	where m.account_id = @account and m.project_id = @project and exists (
		select from projects p where p.account_id = @account and p.project_id = @project and p.deleted_at is null)`
	newestOfProjectSQL = `and m.file_id < @after order by m.file_id desc limit @limit`
	newestOfKindSQL    = `and (f.kind, f.file_id) < (@kind, @after) and f.kind >= @kind order by f.kind desc, f.file_id desc limit @limit`
	ofKindSQL          = ` and f.kind = @kind`
	namedSQL           = ` and position(lower(@query) in lower(f.filename)) > 0`
)

// sql returns the statement of a list. It has only the conditions of the filter, because a plan for all filters would use no index.
func (f *Filter) sql(sort Sort) string {
	sql, order := listFilesSQL, listSQL[sort]
	switch {
	case f.ProjectID != nil && sort == Newest:
		sql, order = listProjectFilesSQL, newestOfProjectSQL
	case f.ProjectID != nil:
		sql = listProjectFilesSQL
	case f.Kind != "" && sort == Newest && !f.Deleted:
		order = newestOfKindSQL
	}
	if f.Kind != "" && order != newestOfKindSQL {
		sql += ofKindSQL
	}
	if f.Query != "" {
		sql += namedSQL
	}
	of := ` and f.deleted_at is null `
	if f.Deleted {
		of = ` and f.deleted_at is not null and ` + readable + ` `
	}
	return sql + of + order
}

// ListFiles returns a page of the files of an account. It starts after a position; nil starts at the beginning. next is
// nil at the end.
func (s *Store) ListFiles(ctx context.Context, account protocol.AccountID, filter *Filter, after *Position, limit int) (page []protocol.File, next *Position, err error) {
	sort := filter.Sort
	if sort == "" {
		sort = Newest
	}
	from := Position{Size: 1<<63 - 1, ID: protocol.FileID(pg.HighestID)}
	if sort == ByName {
		from = Position{}
	}
	if after != nil {
		from = *after
	}
	args := pgx.NamedArgs{
		"account": account, "kind": string(filter.Kind), "query": filter.Query, "project": filter.ProjectID,
		"after": from.ID, "name": from.Name, "size": from.Size, "limit": limit + 1,
	}
	page, err = pg.Rows(ctx, s.db, account, scanFile, filter.sql(sort), args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing files: %w", err)
	}
	return pg.NextPage(page, limit, func(last *protocol.File) Position {
		return Position{Name: last.Filename, Size: last.Size, ID: last.FileID}
	})
}

const statesSQL = `select ` + fileColumns + fromFiles + `where f.account_id = @account and f.file_id = any(@files) and ` + readable

// Files reads files by their identifiers. Those that do not exist are absent.
func (s *Store) Files(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) (map[protocol.FileID]*protocol.File, error) {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	found, err := pg.Rows(ctx, s.db, account, scanFile, statesSQL, pgx.NamedArgs{"account": account, "files": list})
	if err != nil {
		return nil, fmt.Errorf("reading files: %w", err)
	}
	files := map[protocol.FileID]*protocol.File{}
	for i := range found {
		files[found[i].FileID] = &found[i]
	}
	return files, nil
}

const (
	ownsFileSQL = `select true from files where account_id = $1 and file_id = $2 and deleted_at is null`
)

// OwnsFile returns protocol.CodeNotFound unless the account has the file.
func (s *Store) OwnsFile(ctx context.Context, account protocol.AccountID, id protocol.FileID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsFileSQL, account, id)
	return err
}
