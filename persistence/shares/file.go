package shares

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// carriedFiles are the files of a share s that were not deleted, with their numbers and the names that readers see. Postgres
// looks up each file by its key, because no index of the files that were not deleted fits the inner statement (ADR 14).
const carriedFiles = `(
		select n, file_id, filename as shared_as from share_files w
		where w.account_id = s.account_id and w.share_id = s.share_id order by w.n limit 50) w
	cross join lateral (
		select w.n, w.shared_as, file_id, media_type, size, deleted_at from files
		where account_id = s.account_id and file_id = w.file_id limit 1) f
	where f.deleted_at is null`

const (
	countFilesSQL = `select count(*) from files where account_id = @account and file_id = any(@files) and deleted_at is null`
	// insertFilesSQL stores the names that the files have now. Their numbers start at 1.
	insertFilesSQL = `
	insert into share_files (account_id, share_id, n, file_id, filename)
	select f.account_id, @share, w.n, f.file_id, f.filename
	from unnest(@files::uuid[]) with ordinality w (file_id, n)
	join files f on f.account_id = @account and f.file_id = w.file_id and f.deleted_at is null`
)

// checkFiles returns protocol.CodeNotFound unless the library of the account has all files. It precedes the snapshot, which
// costs more.
func (s *Store) checkFiles(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := pg.Row(ctx, s.db, account, pgx.RowTo[int], countFilesSQL, pgx.NamedArgs{"account": account, "files": ids})
	if err != nil {
		return fmt.Errorf("finding the files of a share: %w", err)
	}
	return allFound(found, len(ids))
}

func allFound(found, wanted int) error {
	if found < wanted {
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	return nil
}

// insertFiles stores which files a share carries. One that was deleted in the meantime is protocol.CodeNotFound.
func insertFiles(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, ids []protocol.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, insertFilesSQL, args)
	if err != nil {
		return fmt.Errorf("storing the files of a share: %w", err)
	}
	return allFound(int(tag.RowsAffected()), len(ids))
}

// carried are the files and artifacts of a share whose snapshot is being taken. It belongs to one goroutine.
type carried struct {
	numbers protocol.SharedNumbers
	unused  map[int]bool // numbers of files that no message has, so far
}

func newCarried(files []protocol.FileID, artifacts []protocol.ArtifactID) *carried {
	c := &carried{unused: make(map[int]bool, len(files))}
	c.numbers.Files, c.numbers.Artifacts = numbered(files), numbered(artifacts)
	for _, n := range c.numbers.Files {
		c.unused[n] = true
	}
	return c
}

// numbered returns the numbers of identifiers, from 1.
func numbered[ID comparable](ids []ID) map[ID]int {
	numbers := make(map[ID]int, len(ids))
	for i, id := range ids {
		numbers[id] = i + 1
	}
	return numbers
}

// use records the files of a message.
func (c *carried) use(message *protocol.SharedMessage) {
	for _, attachment := range message.Attachments {
		if attachment.N != nil {
			delete(c.unused, *attachment.N)
		}
	}
}

// check returns an error if no message has one of the files: a share shows what a conversation had, and nothing else.
func (c *carried) check() error {
	if len(c.unused) > 0 {
		return protocol.Invalid("body.file_ids", "has a file that no message of the share has")
	}
	return nil
}

// shareableMessages limits the work of a preview: so many of the messages with files are looked at, the newest ones. A path with
// more messages cannot be copied either.
const shareableMessages = 20_000

// shareableSQL finds the files of the messages of a path, up to the depth @until. Messages are found by their conversation,
// because only few of them have files.
const shareableSQL = `
	select f.file_id, f.filename, f.media_type, f.size, count(*) over ()::int as count
	from (
		select a.file_id, min(m.depth) as depth, min(a.at) as at
		from (
			select message_id, branch_id, depth, attachments from messages
			where account_id = @account and conversation_id = @conversation and attachments <> '{}'
			order by message_id desc limit @messages) m
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = @branch and to_depth >= m.depth
			order by to_depth limit 1) s
		cross join lateral unnest(m.attachments) with ordinality a (file_id, at)
		where s.source_branch_id = m.branch_id and m.depth <= @until
		group by a.file_id) x
	cross join lateral (
		select file_id, filename, media_type, size, deleted_at from files
		where account_id = @account and file_id = x.file_id limit 1) f
	where f.deleted_at is null
	order by x.depth, x.at, f.file_id limit @limit`

// countedFile is a file, with the number of all of them.
type countedFile struct {
	protocol.ShareableFile
	Count int
}

// shareable returns the first files that a share of a target may carry, in the order of the messages, and the number of all.
func (s *Store) shareable(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, t *target) (files []protocol.ShareableFile, count int, err error) {
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[countedFile], shareableSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation, "branch": t.BranchID, "until": t.Depth,
		"messages": shareableMessages, "limit": protocol.MaxShareableFiles,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("finding the files of a conversation: %w", err)
	}
	files = make([]protocol.ShareableFile, len(found))
	for i := range found {
		files[i], count = found[i].ShareableFile, found[i].Count
	}
	return files, count, nil
}

const openFileSQL = `
	select s.account_id, s.share_id, f.file_id, w.filename, f.media_type, f.size, encode(f.sha256, 'hex') as sha256, f.created_at
	from shares s
	cross join lateral (
		select file_id, filename from share_files
		where account_id = s.account_id and share_id = s.share_id and n = @n limit 1) w
	cross join lateral (
		select file_id, media_type, size, sha256, created_at, deleted_at from files
		where account_id = s.account_id and file_id = w.file_id limit 1) f
	join accounts a on a.account_id = s.account_id and a.disabled_at is null
	where s.account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid
	  and s.token_hash = @hash and f.deleted_at is null and ` + readableSQL

// OpenedFile is a file of a share that was found by its token.
type OpenedFile struct {
	Ref
	FileID    protocol.FileID
	Filename  string
	MediaType string
	Size      int64
	SHA256    string
	CreatedAt time.Time
}

// OpenFile returns the file with a number of the share whose token has a hash. The error is protocol.CodeNotFound if Open
// returned it for the first page, if the share has no such file, and if the file was deleted.
func (s *Store) OpenFile(ctx context.Context, hash []byte, n int) (*OpenedFile, error) {
	return open[OpenedFile](ctx, s, hash, openFileSQL, pgx.NamedArgs{"hash": hash, "n": n})
}
