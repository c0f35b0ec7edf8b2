// Package shares stores snapshots of conversations that everybody who has their token can read.
//
// A snapshot is taken once and never changes. The token itself is not stored: a share is found by the SHA-256 of its token,
// before the account is known, and is then read on behalf of its account. Revoking a share deletes it.
package shares

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// The events of shares in the audit. The entry of an opened share has the number of times that it was opened so far, and
// there is at most one each hour.
const (
	EventCreated audit.SecurityEvent = "share.created"
	EventOpened  audit.SecurityEvent = "share.opened"
	EventRevoked audit.SecurityEvent = "share.revoked"
)

// Store stores shares. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

// NewShare is a share to be created.
type NewShare struct {
	ShareID        protocol.ShareID
	ConversationID protocol.ConversationID
	MessageID      *protocol.MessageID   // the last message of the snapshot; nil: the last finished one of the active branch
	FileIDs        []protocol.FileID     // that the share carries, each once; their numbers follow their order
	ArtifactIDs    []protocol.ArtifactID // as FileIDs
	Title          string                // empty: the title of the conversation
	Days           int                   // until the share expires
	TokenHash      []byte
	KeyVersion     int16 // of the key of the token
	SessionID      protocol.SessionID
	By             audit.Requester
}

// Stored is what the stored response to the creation of a share contains: everything but its token.
type Stored struct {
	protocol.Share
	KeyVersion int16 `json:"key_version"`
}

const (
	shareColumns = `s.share_id, s.conversation_id, s.title, s.message_count, s.open_count, s.last_opened_at, s.created_at, s.expires_at,
	array(select f.file_id from ` + carriedFiles + ` order by f.n) as file_ids,
	array(select a.artifact_id from ` + carriedArtifacts + ` order by a.n) as artifact_ids`

	countSharesSQL = `
	select count(*) from (select from shares where account_id = @account and expires_at > now() limit @most) s`
	insertShareSQL = `
	insert into shares as s (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
	values (@account, @share, @conversation, @hash, @title, @messages, @pages, now() + make_interval(days => @days))
	returning ` + shareColumns
	insertPageSQL = `insert into share_pages (account_id, share_id, page, messages) values (@account, @share, @page, @messages)`
)

// Create takes a snapshot of a conversation and stores it as a share.
func (s *Store) Create(ctx context.Context, account protocol.AccountID, request *NewShare) (share *protocol.Share, err error) {
	t, err := s.findTarget(ctx, account, request.ConversationID, request.MessageID, "body")
	if err != nil {
		return nil, err
	}
	if err := s.checkFiles(ctx, account, request.FileIDs); err != nil {
		return nil, err
	}
	pages, size, err := s.take(ctx, account, t, newCarried(request.FileIDs, request.ArtifactIDs))
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"account": account, "share": request.ShareID, "conversation": request.ConversationID, "hash": request.TokenHash,
		"title": request.Title, "messages": t.Depth, "pages": len(pages), "days": request.Days, "most": protocol.MaxShares,
		"files": request.FileIDs, "artifacts": request.ArtifactIDs,
	}
	if request.Title == "" {
		args["title"] = t.Title
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		// The purge takes the same lock. It finds the share if this transaction commits first.
		if _, err := conversations.LockConversation(ctx, tx, account, request.ConversationID); err != nil {
			return err
		}
		if err := checkCount(ctx, tx, args); err != nil {
			return err
		}
		if share, err = insert(ctx, tx, args); err != nil {
			return err
		}
		if err := insertFiles(ctx, tx, args, request.FileIDs); err != nil {
			return err
		}
		if err := insertArtifacts(ctx, tx, args, request.ArtifactIDs, protocol.MaxSharedBytes-size); err != nil {
			return err
		}
		share.FileIDs, share.ArtifactIDs = append(share.FileIDs, request.FileIDs...), append(share.ArtifactIDs, request.ArtifactIDs...)
		batch := &pgx.Batch{}
		for i, page := range pages {
			batch.Queue(insertPageSQL, pgx.NamedArgs{"account": account, "share": request.ShareID, "page": i + 1, "messages": page})
		}
		if err := queueAudit(batch, account, EventCreated, request.ShareID, &request.SessionID, request.By); err != nil {
			return err
		}
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("storing the pages of a share: %w", err)
		}
		return idempotency.StoreResponseIn(ctx, tx, &Stored{Share: *share, KeyVersion: request.KeyVersion})
	})
	return share, err
}

func checkCount(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	var count int
	if err := tx.QueryRow(ctx, countSharesSQL, args).Scan(&count); err != nil {
		return fmt.Errorf("counting shares: %w", err)
	}
	if count >= protocol.MaxShares {
		return protocol.Errorf(protocol.CodeTooManyShares, "The account has %d shares. Revoke one to create another.", count)
	}
	return nil
}

func insert(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (*protocol.Share, error) {
	rows, err := tx.Query(ctx, insertShareSQL, args)
	if err != nil {
		return nil, fmt.Errorf("storing a share: %w", err)
	}
	share, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Share])
	if err != nil {
		return nil, fmt.Errorf("storing a share: %w", err)
	}
	return share, nil
}

func queueAudit(batch *pgx.Batch, account protocol.AccountID, event audit.SecurityEvent, share protocol.ShareID, session *protocol.SessionID, by audit.Requester) error {
	detail, err := json.Marshal(map[string]protocol.ShareID{"share_id": share})
	if err != nil {
		return err
	}
	batch.Queue(audit.AppendAuditSQL, account, string(event), session, by.RequestID, by.Address, detail)
	return nil
}

const (
	getSQL = `
	select ` + shareColumns + `
	from shares s
	where s.account_id = @account and s.share_id = @share and ` + readableSQL + `
	limit 1`
	listSQL = `
	select ` + shareColumns + `
	from shares s
	where s.account_id = @account and s.share_id < @after and ` + readableSQL + `
	order by s.share_id desc
	limit @limit`
	listOfConversationSQL = `
	select ` + shareColumns + `
	from shares s
	where s.account_id = @account and s.conversation_id = @conversation and s.share_id < @after and ` + readableSQL + `
	order by s.conversation_id desc, s.share_id desc
	limit @limit`
)

// Get reads one share that has not expired.
func (s *Store) Get(ctx context.Context, account protocol.AccountID, share protocol.ShareID) (*protocol.Share, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Share], getSQL, pgx.NamedArgs{"account": account, "share": share})
}

// List returns a page of the shares of an account that have not expired, newest first, after a share; nil starts at the
// beginning. next is nil at the end.
func (s *Store) List(ctx context.Context, account protocol.AccountID, after *protocol.ShareID, limit int) (page []protocol.Share, next *protocol.ShareID, err error) {
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Share], listSQL, listArgs(account, after, limit))
	if err != nil {
		return nil, nil, fmt.Errorf("listing shares: %w", err)
	}
	return nextPage(page, limit)
}

// ListOfConversation is List for the shares of one conversation.
func (s *Store) ListOfConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	after *protocol.ShareID, limit int,
) (page []protocol.Share, next *protocol.ShareID, err error) {
	args := listArgs(account, after, limit)
	args["conversation"] = id
	page, err = conversations.RowsOfConversation[protocol.Share](ctx, s.db, account, listOfConversationSQL, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing shares: %w", err)
	}
	return nextPage(page, limit)
}

func listArgs(account protocol.AccountID, after *protocol.ShareID, limit int) pgx.NamedArgs {
	args := pgx.NamedArgs{"account": account, "after": pg.HighestID, "limit": limit + 1}
	if after != nil {
		args["after"] = *after
	}
	return args
}

func nextPage(rows []protocol.Share, limit int) (page []protocol.Share, next *protocol.ShareID, err error) {
	return pg.NextPage(rows, limit, func(last *protocol.Share) protocol.ShareID { return last.ShareID })
}

const (
	// expireNowSQL precedes the deletion, so that the account feed reports it.
	expireNowSQL = `update shares s set expires_at = now() where s.account_id = @account and s.share_id = @share and ` + readableSQL
	revokeSQL    = `delete from shares where account_id = @account and share_id = @share`
)

// Revoke ends a share at once and erases its snapshot.
func (s *Store) Revoke(ctx context.Context, account protocol.AccountID, share protocol.ShareID, session protocol.SessionID, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		args := pgx.NamedArgs{"account": account, "share": share}
		tag, err := tx.Exec(ctx, expireNowSQL, args)
		if err != nil {
			return fmt.Errorf("revoking a share: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		batch := &pgx.Batch{}
		batch.Queue(revokeSQL, args)
		if err := queueAudit(batch, account, EventRevoked, share, &session, by); err != nil {
			return err
		}
		return tx.Run(ctx, batch)
	})
}
