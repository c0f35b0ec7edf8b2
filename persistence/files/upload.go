package files

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// maxOpen limits the uploads of an account that have not ended.
const maxOpen = 100

// Quota limits what an account stores.
type Quota struct {
	Bytes     int64 // of its files, its open uploads, and the rejected contents in quarantine, together
	Files     int64
	TextBytes int64 // of the texts of its files, which are stored and indexed in Postgres
}

// DefaultQuota is the quota of a service that configures none.
var DefaultQuota = Quota{Bytes: 10 << 30, Files: 10_000, TextBytes: 512 << 20}

// Uploads stores uploads. Its methods may be called from any goroutine.
type Uploads struct {
	db      *pg.DB
	queue   *jobs.Queue
	objects objects.Store
	quota   Quota
}

// NewUploads returns a store whose bytes are in an object store.
func NewUploads(db *pg.DB, queue *jobs.Queue, objects objects.Store, quota Quota) *Uploads {
	if quota == (Quota{}) {
		quota = DefaultQuota
	}
	return &Uploads{db, queue, objects, quota}
}

// uploadColumns show an upload whose lifetime is over as expired, also before a node has ended it.
const uploadColumns = `
	upload_id, case when state = 'pending' and expires_at <= now() then 'expired' else state end as state, filename, media_type, size, purpose, conversation_id, project_id, received_bytes, declared_sha256, content, file_id, failure,
	next_sequence - 1 as last_sequence, created_at, expires_at`

// uploadRow is a row with uploadColumns.
type uploadRow struct {
	protocol.Upload
	DeclaredSHA256 []byte
	Content        *uploadlog.Content
}

func (r *uploadRow) upload() *protocol.Upload {
	u := &r.Upload
	switch {
	case r.Content != nil:
		u.SHA256 = hexText(r.Content.SHA256[:])
	case r.DeclaredSHA256 != nil:
		u.SHA256 = hexText(r.DeclaredSHA256)
	}
	return u
}

func hexText(hash []byte) *string {
	text := hex.EncodeToString(hash)
	return &text
}

func scanUpload(row pgx.CollectableRow) (*protocol.Upload, error) {
	var r uploadRow
	u := &r.Upload
	err := row.Scan(&u.UploadID, &u.State, &u.Filename, &u.MediaType, &u.Size, &u.Purpose, &u.ConversationID, &u.ProjectID, &u.ReceivedBytes, &r.DeclaredSHA256, &r.Content, &u.FileID, &u.Failure,
		&u.LastSequence, &u.CreatedAt, &u.ExpiresAt)
	if err != nil {
		return nil, err
	}
	return r.upload(), nil
}

const getUploadSQL = `select ` + uploadColumns + ` from uploads where account_id = @account and upload_id = @upload`

// Upload reads an upload.
func (s *Uploads) Upload(ctx context.Context, account protocol.AccountID, id protocol.UploadID) (*protocol.Upload, error) {
	u, err := pg.Row(ctx, s.db, account, scanUpload, getUploadSQL, pgx.NamedArgs{"account": account, "upload": id})
	if err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	return u, nil
}

const framesSQL = `
	select first_sequence, last_sequence, frames from upload_events
	where account_id = @account and upload_id = @upload and last_sequence > @after
	order by first_sequence limit 200`

// UploadFrames returns the events of an upload after a sequence, one per line. last is the sequence of the last of them.
func (s *Uploads) UploadFrames(ctx context.Context, account protocol.AccountID, id protocol.UploadID, after int64) (frames []byte, last int64, err error) {
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[pg.EventRow], framesSQL, pgx.NamedArgs{"account": account, "upload": id, "after": after})
	if err != nil {
		return nil, 0, fmt.Errorf("reading the events of an upload: %w", err)
	}
	frames, last = pg.FramesAfter(found, after)
	return frames, last, nil
}

const (
	projectOfConversationSQL = `
	select c.project_id from conversations c where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible
	lockTotalsSQL = `
	insert into file_totals (account_id) values (@account)
	on conflict (account_id) do update set account_id = excluded.account_id
	returning bytes + artifact_bytes as bytes, files, reserved, sessions`
	totalsSQL = `
	select coalesce(sum(files + sessions), 0)::bigint, coalesce(sum(bytes + artifact_bytes + reserved), 0)::bigint + (` + keptSQL + `)
	from file_totals where account_id = @account`
	keptSQL         = `select coalesce(sum(size), 0)::bigint from uploads where account_id = @account and reap_at is not null and state = 'rejected'`
	insertUploadSQL = `
	insert into uploads (account_id, upload_id, filename, media_type, size, declared_sha256, purpose, conversation_id, project_id, session_id,
		object_name, next_sequence, created_at, expires_at)
	values (@account, @upload, @filename, @media, @size, @hash, @purpose, @conversation, @project, @session, @object, @next, @created, @expires)`
	insertEventsSQL = `
	insert into upload_events (account_id, upload_id, first_sequence, last_sequence, frames) values (@account, @upload, @first, @last, @frames)`
	reserveSQL = `update file_totals set reserved = reserved + @size, sessions = sessions + 1 where account_id = @account`
)

// CreateUpload stores a new upload with its first events, and the response to an idempotent request. The errors are
// protocol.CodeNotFound for the conversation or the project, a conflict with an archived project, and those of a quota.
func (s *Uploads) CreateUpload(ctx context.Context, spec *uploadlog.Spec, begin *uploadlog.Append) (made *protocol.Upload, err error) {
	args := pgx.NamedArgs{
		"account": spec.AccountID, "upload": spec.UploadID, "filename": spec.Filename, "media": spec.MediaType, "size": spec.Size, "hash": spec.SHA256,
		"purpose": string(spec.Purpose), "conversation": spec.ConversationID, "project": spec.ProjectID, "session": spec.SessionID, "object": spec.ObjectName,
		"created": spec.CreatedAt, "expires": spec.ExpiresAt, "next": begin.Last + 1, "first": begin.First, "last": begin.Last, "frames": begin.Frames,
	}
	err = s.db.InTx(ctx, spec.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		if err := checkTarget(ctx, tx, spec, args); err != nil {
			return err
		}
		if err := s.checkQuota(ctx, tx, spec.Size, args); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, sql := range []string{insertUploadSQL, insertEventsSQL, reserveSQL} {
			batch.Queue(sql, args)
		}
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("creating an upload: %w", err)
		}
		if made, err = readUpload(ctx, tx, args); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, made)
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// checkTarget checks that the account has the conversation and the project of an upload, and that the project of either is not
// archived.
func checkTarget(ctx context.Context, tx *pg.Tx, spec *uploadlog.Spec, args pgx.NamedArgs) error {
	targets := []*protocol.ProjectID{spec.ProjectID, nil}
	if spec.ConversationID != nil {
		if err := tx.QueryRow(ctx, projectOfConversationSQL, args).Scan(&targets[1]); err != nil {
			return fmt.Errorf("reading the conversation of an upload: %w", err)
		}
	}
	for _, id := range targets {
		if id == nil {
			continue
		}
		project, err := projects.Read(ctx, tx, spec.AccountID, *id)
		if err != nil {
			return err
		}
		if err := projects.CheckActive(project); err != nil {
			return err
		}
	}
	return nil
}

func readUpload(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (*protocol.Upload, error) {
	rows, err := tx.Query(ctx, getUploadSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	u, err := pgx.CollectExactlyOneRow(rows, scanUpload)
	if err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	return u, nil
}

// checkQuota locks the totals of the account, and returns an error if a new upload of a size exceeds a limit.
func (s *Uploads) checkQuota(ctx context.Context, tx *pg.Tx, size int64, args pgx.NamedArgs) error {
	t, err := lockTotals(ctx, tx, args)
	if err != nil {
		return err
	}
	count, sessions, kept, left := t.files, t.sessions, t.kept, s.quota.left(t)
	switch {
	case sessions >= maxOpen:
		return &protocol.Error{Code: protocol.CodeTooManyUploads, Detail: fmt.Sprintf("At most %d uploads can be open. Finish or cancel some of them.", maxOpen), RetryAfter: retryQuota}
	case count+sessions >= s.quota.Files:
		return &protocol.Error{Code: protocol.CodeTooManyFiles, Detail: fmt.Sprintf("Your account has %d of at most %d files. Delete files that you no longer need.",
			count, s.quota.Files), RetryAfter: retryQuota}
	case size > left:
		return protocol.Errorf(protocol.CodeTooLarge, "You have %s of storage left, but the file is %s. Delete files that you no longer need.%s",
			protocol.SizeText(left), protocol.SizeText(size), keptNote(kept))
	}
	return nil
}

// totals are what an account stores: bytes include those of artifacts.
type totals struct{ bytes, files, reserved, sessions, kept int64 }

// lockTotals locks the totals of the account in args, so that nothing else takes the same rest of a quota.
func lockTotals(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (t totals, err error) {
	err = tx.QueryRow(ctx, lockTotalsSQL, args).Scan(&t.bytes, &t.files, &t.reserved, &t.sessions)
	if err == nil {
		err = tx.QueryRow(ctx, keptSQL, args).Scan(&t.kept)
	}
	if err != nil {
		return t, fmt.Errorf("reading what an account stores: %w", err)
	}
	return t, nil
}

// left returns how many more bytes an account can store.
func (q Quota) left(t totals) int64 { return max(0, q.Bytes-t.bytes-t.reserved-t.kept) }

// CheckBytes locks what an account stores, and returns an error if so many more bytes exceed the quota. It is for texts that
// are stored in Postgres.
func (q Quota) CheckBytes(ctx context.Context, tx *pg.Tx, account protocol.AccountID, size int) error {
	t, err := lockTotals(ctx, tx, pgx.NamedArgs{"account": account})
	if err != nil {
		return err
	}
	if left := q.left(t); int64(size) > left {
		return protocol.Errorf(protocol.CodeTooLarge, "You have %s of storage left, but this needs %s. Delete files or conversations that you no longer need.%s",
			protocol.SizeText(left), protocol.SizeText(int64(size)), keptNote(t.kept))
	}
	return nil
}

// Stored returns how many files and bytes an account stores, and how many it can store. Artifacts and open uploads count, and
// so do rejected ones that are not erased yet.
func (s *Uploads) Stored(ctx context.Context, account protocol.AccountID) (used, limit Quota, err error) {
	used, err = pg.Row(ctx, s.db, account, func(row pgx.CollectableRow) (used Quota, err error) {
		return used, row.Scan(&used.Files, &used.Bytes)
	}, totalsSQL, pgx.NamedArgs{"account": account})
	if err != nil {
		return used, limit, fmt.Errorf("reading what an account stores: %w", err)
	}
	return used, s.quota, nil
}

// keptNote explains why an account can store less than its files let expect.
func keptNote(kept int64) string {
	if kept == 0 {
		return ""
	}
	return fmt.Sprintf(" Rejected uploads take up %s for up to %.0f days.", protocol.SizeText(kept), quarantineTime.Hours()/24)
}

// retryQuota is the Retry-After of a refusal that only the account itself can end, in seconds.
const retryQuota = 60

// jsonText encodes a value for a column of type json; nil: null.
func jsonText[T any](value *T) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	return pg.JSONText(value)
}

// reapAfter is how long the objects of an upload that has ended stay: malware stays in quarantine for examination.
func reapAfter(failure *protocol.UploadFailure) time.Duration {
	if failure != nil && failure.Code == protocol.UploadMalware {
		return quarantineTime
	}
	return 0
}

const quarantineTime = 7 * 24 * time.Hour

const ownsUploadSQL = `select true from uploads where account_id = $1 and upload_id = $2`

// OwnsUpload returns protocol.CodeNotFound unless the account has the upload.
func (s *Uploads) OwnsUpload(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsUploadSQL, account, id)
	return err
}
