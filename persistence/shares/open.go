package shares

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	// setOwnerSQL sets the account whose share has a token, so that row-level security admits the next statement to its
	// rows. For an unknown token it sets no account.
	setOwnerSQL = `select set_config('turnstone.account_id', coalesce(share_lookup($1)::text, ''), true)`
	openSQL     = `
	select s.account_id, s.share_id, s.title, s.created_at, s.expires_at, s.message_count, s.page_count, p.page, p.messages,
		(select coalesce(json_agg(json_build_object('n', f.n, 'filename', f.shared_as, 'media_type', f.media_type, 'size', f.size) order by f.n), '[]')
			from ` + carriedFiles + `) as files,
		(select coalesce(json_agg(json_build_object('n', a.n, 'kind', a.kind, 'title', a.title, 'language', a.language, 'version', a.version, 'bytes', a.bytes) order by a.n), '[]')
			from ` + carriedArtifacts + `) as artifacts
	from shares s
	cross join lateral (
		select page, messages from share_pages
		where account_id = s.account_id and share_id = s.share_id and page = @page limit 1) p
	join accounts o on o.account_id = s.account_id and o.disabled_at is null
	where s.account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid
	  and s.token_hash = @hash and ` + readableSQL
)

// Opened is a page of a share that was found by its token.
type Opened struct {
	Ref
	protocol.SharedPage
}

// Ref names a share.
type Ref struct {
	AccountID protocol.AccountID
	ShareID   protocol.ShareID
}

// Open returns a page of the share whose token has a hash. An unknown, revoked or expired token, a share whose conversation
// or account has ended, and a page that does not exist all get the same statements and protocol.CodeNotFound.
func (s *Store) Open(ctx context.Context, hash []byte, page int) (*Opened, error) {
	opened, err := open[Opened](ctx, s, hash, openSQL, pgx.NamedArgs{"hash": hash, "page": page})
	if err != nil {
		return nil, err
	}
	keepFiles(&opened.SharedPage)
	return opened, nil
}

// keepFiles makes the attachments of a page refer to its files only: a file may have been deleted since the snapshot was taken.
func keepFiles(page *protocol.SharedPage) {
	kept := map[int]bool{}
	for i := range page.Files {
		kept[page.Files[i].N] = true
	}
	for i := range page.Messages {
		message := &page.Messages[i]
		if message.Attachments == nil { // a snapshot from before files could be shared
			message.Attachments = []protocol.SharedAttachment{}
		}
		for j := range message.Attachments {
			if attachment := &message.Attachments[j]; attachment.N != nil && !kept[*attachment.N] {
				attachment.N = nil
			}
		}
	}
}

// open runs a statement on behalf of the account that owns the token with a hash, and returns its row. None is
// protocol.CodeNotFound.
func open[T any](ctx context.Context, s *Store, hash []byte, sql string, args pgx.NamedArgs) (*T, error) {
	found := []T{}
	batch := &pgx.Batch{}
	batch.Queue(setOwnerSQL, hash)
	batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
	if err := s.db.Send(ctx, pg.NoAccount, batch); err != nil {
		return nil, fmt.Errorf("opening a share: %w", err)
	}
	if len(found) == 0 {
		return nil, &protocol.Error{Code: protocol.CodeNotFound}
	}
	return &found[0], nil
}

// recordOpensSQL counts how often a share was opened. Once an hour it also appends an entry to the audit.
const recordOpensSQL = `
	with opened as (
		update shares
		set open_count = open_count + @count, last_opened_at = greatest(last_opened_at, @at),
			audited_at = case when audited_at > now() - interval '1 hour' then audited_at else now() end
		where account_id = @account and share_id = @share
		returning open_count, audited_at = now() as due
	)
	select audit_append(@account, @event, null, '', '', jsonb_build_object('share_id', @name::text, 'open_count', open_count))
	from opened where due`

// RecordOpens adds to the number of times that a share was opened. A share that has ended is left out.
func (s *Store) RecordOpens(ctx context.Context, share Ref, count int64, at time.Time) error {
	_, err := s.db.Exec(ctx, share.AccountID, recordOpensSQL, pgx.NamedArgs{
		"account": share.AccountID, "share": share.ShareID, "count": count, "at": at, "event": string(EventOpened), "name": share.ShareID.String(),
	})
	if err != nil {
		return fmt.Errorf("counting that a share was opened: %w", err)
	}
	return nil
}
