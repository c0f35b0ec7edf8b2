package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/uploadlog"
)

const specColumns = `
	upload_id, filename, media_type, size, declared_sha256, purpose, conversation_id, project_id, session_id, object_name, created_at, expires_at,
	owner_epoch, state, next_sequence, content`

// scanClaim returns a function that reads a row with specColumns.
func scanClaim(account protocol.AccountID) pgx.RowToFunc[*uploadlog.Claim] {
	return func(row pgx.CollectableRow) (*uploadlog.Claim, error) {
		c := &uploadlog.Claim{Spec: uploadlog.Spec{AccountID: account}}
		return c, row.Scan(&c.UploadID, &c.Filename, &c.MediaType, &c.Size, &c.SHA256, &c.Purpose, &c.ConversationID, &c.ProjectID, &c.SessionID, &c.ObjectName, &c.CreatedAt, &c.ExpiresAt,
			&c.Epoch, &c.State, &c.NextSequence, &c.Content)
	}
}

var (
	// lockUploadSQL makes the claim and the read after a refused one see the same state.
	lockUploadSQL   = `select from uploads where account_id = @account and upload_id = @upload for update`
	claimPendingSQL = `
	update uploads set owner = @node, owner_epoch = owner_epoch + 1
	where account_id = @account and upload_id = @upload and state = 'pending' and expires_at > now() and ` + pg.NodeRuns("@node") + `
	returning ` + specColumns
	claimAnySQL = `
	update uploads set owner = @node, owner_epoch = owner_epoch + 1
	where account_id = @account and upload_id = @upload and ` + open.Uploads + ` and (state <> 'pending' or expires_at > now()) and ` + pg.NodeRuns("@node") + `
	returning ` + specColumns
	loadUploadSQL = `
	select ` + specColumns + ` from uploads
	where account_id = @account and upload_id = @upload and owner = @node and owner_epoch = @epoch and ` + open.Uploads
)

// ClaimPending makes a node the owner of an upload that accepts content. In any other state, the error is a conflict with
// the upload, or protocol.CodeUploadExpired.
func (s *Uploads) ClaimPending(ctx context.Context, account protocol.AccountID, id protocol.UploadID, node protocol.NodeID) (*uploadlog.Claim, error) {
	return s.claim(ctx, claimPendingSQL, account, id, node)
}

// ClaimAny makes a node the owner of an upload that has not ended, whatever its owner.
func (s *Uploads) ClaimAny(ctx context.Context, account protocol.AccountID, id protocol.UploadID, node protocol.NodeID) (*uploadlog.Claim, error) {
	return s.claim(ctx, claimAnySQL, account, id, node)
}

// claim runs a claim. A claim whose reply was lost is harmless: an upload that waits for content has an owner without an
// actor, and the next request claims it again.
func (s *Uploads) claim(ctx context.Context, sql string, account protocol.AccountID, id protocol.UploadID, node protocol.NodeID) (claim *uploadlog.Claim, err error) {
	args := pgx.NamedArgs{"account": account, "upload": id, "node": node}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, lockUploadSQL, args); err != nil {
			return fmt.Errorf("locking an upload: %w", err)
		}
		rows, err := tx.Query(ctx, sql, args)
		if err != nil {
			return fmt.Errorf("claiming an upload: %w", err)
		}
		claims, err := pgx.CollectRows(rows, scanClaim(account))
		if err != nil {
			return fmt.Errorf("claiming an upload: %w", err)
		}
		if len(claims) == 1 {
			claim = claims[0]
			return nil
		}
		current, err := readUpload(ctx, tx, args)
		if err != nil {
			return err
		}
		return uploadlog.Conflict(current)
	})
	if err != nil {
		return nil, err
	}
	return claim, nil
}

// Load reads an upload that a node has claimed; ownership.ErrFenced if the upload has ended or has another owner or
// epoch.
func (s *Uploads) Load(ctx context.Context, claim uploadlog.Claimed, node protocol.NodeID) (*uploadlog.Claim, error) {
	found, err := pg.Rows(ctx, s.db, claim.AccountID, scanClaim(claim.AccountID), loadUploadSQL,
		pgx.NamedArgs{"account": claim.AccountID, "upload": claim.UploadID, "node": node, "epoch": claim.Epoch})
	if err != nil {
		return nil, fmt.Errorf("reading a claimed upload: %w", err)
	}
	if len(found) == 0 {
		return nil, ownership.ErrFenced
	}
	return found[0], nil
}

const overtakenSQL = `
	select owner_epoch > @epoch and content ->> 'Key' is distinct from @key from uploads where account_id = @account and upload_id = @upload`

// Overtaken reports whether an upload was claimed again after a claim, and does not have the content that the claim stored
// under key. That content then never has an effect.
func (s *Uploads) Overtaken(ctx context.Context, claim uploadlog.Claimed, key string) (bool, error) {
	overtaken, err := pg.Row(ctx, s.db, claim.AccountID, pgx.RowTo[bool], overtakenSQL,
		pgx.NamedArgs{"account": claim.AccountID, "upload": claim.UploadID, "epoch": claim.Epoch, "key": key})
	if err != nil {
		return false, fmt.Errorf("reading the epoch of an upload: %w", err)
	}
	return overtaken, nil
}

// The statements of the engine.
var (
	claimDueSQL = `
	with orphans as (
		select u.account_id, u.upload_id from uploads u
		where u.` + open.BusyUploads + ` and ` + pg.Unowned("u.owner") + `
		limit $2 for update of u skip locked
	), expired as (
		select u.account_id, u.upload_id from uploads u
		where u.state = 'pending' and u.expires_at < now()
		order by u.expires_at limit $2 for update of u skip locked
	), due as (
		select account_id, upload_id from orphans union all select account_id, upload_id from expired
	)
	update uploads u set owner = $1, owner_epoch = u.owner_epoch + 1
	from due
	where u.account_id = due.account_id and u.upload_id = due.upload_id and ` + pg.NodeClaims("$1") + `
	returning u.account_id, u.upload_id, u.owner_epoch`
	ownedSQL     = `select account_id, upload_id, owner_epoch from uploads where owner = $1 and ` + open.BusyUploads
	claimLostSQL = `
	update uploads set owner_epoch = owner_epoch + 1
	where account_id = $2 and upload_id = $3 and owner = $1 and owner_epoch = $4 and ` + open.BusyUploads + ` and ` + pg.NodeRuns("$1") + `
	returning account_id, upload_id, owner_epoch`
)

// ClaimDue claims the work of nodes that have ended, and uploads that have expired; at most limit of each.
func (s *Uploads) ClaimDue(ctx context.Context, node protocol.NodeID, limit int) ([]uploadlog.Claimed, error) {
	return pg.EngineRows[uploadlog.Claimed](ctx, s.db, "claiming uploads", claimDueSQL, node, limit)
}

// Owned lists the uploads that a node works on.
func (s *Uploads) Owned(ctx context.Context, node protocol.NodeID) ([]uploadlog.Claimed, error) {
	return pg.EngineRows[uploadlog.Claimed](ctx, s.db, "listing own uploads", ownedSQL, node)
}

// ClaimLost claims an upload of this node again that has no actor. The error is ownership.ErrFenced if the
// upload has ended or has another owner or epoch.
func (s *Uploads) ClaimLost(ctx context.Context, claim uploadlog.Claimed, node protocol.NodeID) (uploadlog.Claimed, error) {
	return pg.EngineRow[uploadlog.Claimed](ctx, s.db, ownership.ErrFenced, "claiming a lost upload", claimLostSQL, node, claim.AccountID, claim.UploadID, claim.Epoch)
}
