package accounts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Identity identifies a user at an OpenID provider. An email address never does.
type Identity struct{ Issuer, Subject string }

// identityConstraint is the constraint that refuses an identity that is linked to another account.
const identityConstraint = "account_identities_pkey"

const insertIdentitySQL = `
	insert into account_identities (issuer, subject, account_id, identity_id) values (@issuer, @subject, @account, @identity)`

func (i *Identity) args(account protocol.AccountID) pgx.NamedArgs {
	return pgx.NamedArgs{"issuer": i.Issuer, "subject": i.Subject, "account": account, "identity": protocol.NewIdentityID()}
}

const (
	setAccountByIdentitySQL = `
	select set_config('turnstone.account_id',
		coalesce((select account_id::text from account_identities where issuer = $1 and subject = $2), ''), true)`
)

// CredentialsByIdentity returns the account that an identity is linked to; protocol.CodeNotFound if there is none.
func (s *Store) CredentialsByIdentity(ctx context.Context, identity Identity) (*Credentials, error) {
	var found *Credentials
	batch := &pgx.Batch{}
	batch.Queue(setAccountByIdentitySQL, identity.Issuer, identity.Subject)
	batch.Queue(selectCredentialsSQL).Query(collectOne(&found))
	return found, s.db.Send(ctx, pg.NoAccount, batch)
}

const linkIdentitySQL = insertIdentitySQL + ` on conflict (issuer, subject) do nothing`

const identityOwnerSQL = `select account_id from account_identities where issuer = @issuer and subject = @subject`

// LinkIdentity links an identity to an account, which can then sign in with it. If the identity is linked to another
// account, the error is protocol.CodeConflict; if it is already linked to this one, nothing happens.
func (s *Store) LinkIdentity(ctx context.Context, account protocol.AccountID, identity Identity, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, linkIdentitySQL, identity.args(account))
		if err != nil {
			return err
		}
		var owner protocol.AccountID
		if err := tx.QueryRow(ctx, identityOwnerSQL, identity.args(account)).Scan(&owner); err != nil {
			return err
		}
		if owner != account {
			return protocol.Conflict(protocol.CodeConflict, map[string]string{"issuer": identity.Issuer}, "This identity belongs to another account.")
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		batch := &pgx.Batch{}
		by.Queue(batch, account, audit.EventIdentityLinked, nil)
		return tx.Run(ctx, batch)
	})
}

// IdentityPosition is the position after an identity in the list, which is in the order of the links.
type IdentityPosition struct {
	LinkedAt   time.Time
	IdentityID protocol.IdentityID
}

const (
	identityColumns   = `identity_id, issuer, subject, created_at as linked_at`
	listIdentitiesSQL = `
	select ` + identityColumns + ` from account_identities where account_id = @account and (created_at, identity_id) > (@after_time, @after)
	order by created_at, identity_id limit @limit`
)

// ListIdentities returns a page of the identities of an account, in the order of their links. next is nil at the end.
func (s *Store) ListIdentities(ctx context.Context, account protocol.AccountID, after *IdentityPosition, limit int) (page []protocol.Identity, next *IdentityPosition, err error) {
	if after == nil {
		after = &IdentityPosition{}
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Identity], listIdentitiesSQL, pgx.NamedArgs{
		"account": account, "after_time": after.LinkedAt, "after": after.IdentityID, "limit": limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	return pg.NextPage(page, limit, func(last *protocol.Identity) IdentityPosition {
		return IdentityPosition{LinkedAt: last.LinkedAt, IdentityID: last.IdentityID}
	})
}

const unlinkIdentitySQL = `delete from account_identities where account_id = $1 and identity_id = $2 returning ` + identityColumns

// UnlinkIdentity removes an identity from an account, which cannot sign in with it any more. The last way to sign in to an
// account is not removed: protocol.CodeConflict, with the identity. issuers are those of the providers that are configured.
func (s *Store) UnlinkIdentity(ctx context.Context, account protocol.AccountID, id protocol.IdentityID, issuers []string, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		// The lock prevents concurrent requests from removing the last two ways to sign in together.
		if _, err := tx.Exec(ctx, LockAccountSQL, account); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, unlinkIdentitySQL, account, id)
		if err != nil {
			return err
		}
		identity, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Identity])
		if err != nil {
			return err
		}
		if err := checkCanSignIn(ctx, tx, account, issuers, identity); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		by.Queue(batch, account, audit.EventIdentityUnlinked, nil)
		return tx.Run(ctx, batch)
	})
}

// canSignInSQL returns whether there is a way to sign in to an account. A password without an address is none, and neither is an
// identity at a provider that is not configured.
const canSignInSQL = `
	select password_hash is not null and email <> '' or exists (select from account_identities i where i.account_id = a.account_id and i.issuer = any($2))
		or exists (select from passkeys p where p.account_id = a.account_id)
	from accounts a where account_id = $1`

// checkCanSignIn returns an error, with what the transaction has removed, if there is no way left to sign in to an account.
func checkCanSignIn(ctx context.Context, tx *pg.Tx, account protocol.AccountID, issuers []string, removed any) error {
	var can bool
	if err := tx.QueryRow(ctx, canSignInSQL, account, issuers).Scan(&can); err != nil || can {
		return err
	}
	return protocol.Conflict(protocol.CodeConflict, removed, "This is the only way to sign in to the account. Set a password or add a passkey first.")
}

// OIDCFlow is a sign-in at a provider that is in progress. It can be used once, by one browser.
type OIDCFlow struct {
	StateHash   []byte
	BrowserHash []byte
	Provider    string
	Verifier    string
	Nonce       string
	LinkAccount *protocol.AccountID
	ReturnTo    string
	ExpiresAt   time.Time
}

const insertFlowSQL = `
	insert into oidc_flows (state_hash, browser_hash, provider, verifier, nonce, link_account, return_to, expires_at)
	values (@state, @browser, @provider, @verifier, @nonce, @account, @return_to, @expires)`

// BeginOIDCFlow stores the values that the callback is checked against.
func (s *Store) BeginOIDCFlow(ctx context.Context, flow *OIDCFlow) error {
	_, err := s.db.Exec(ctx, pg.NoAccount, insertFlowSQL, pgx.NamedArgs{
		"state": flow.StateHash, "browser": flow.BrowserHash, "provider": flow.Provider, "verifier": flow.Verifier,
		"nonce": flow.Nonce, "account": flow.LinkAccount, "return_to": flow.ReturnTo, "expires": flow.ExpiresAt,
	})
	return err
}

const takeFlowSQL = `
	delete from oidc_flows where state_hash = $1
	returning state_hash, browser_hash, provider, verifier, nonce, link_account, return_to, expires_at`

// TakeOIDCFlow returns a flow and deletes it, whichever browser presents the state: a state works once. The error is
// protocol.CodeNotFound if there is none.
func (s *Store) TakeOIDCFlow(ctx context.Context, stateHash []byte) (*OIDCFlow, error) {
	return takeFlow[OIDCFlow](ctx, s.db, takeFlowSQL, stateHash)
}

// takeFlow returns and deletes a flow, which belongs to no account; protocol.CodeNotFound if there is none.
func takeFlow[T any](ctx context.Context, db *pg.DB, sql string, hash []byte) (flow *T, err error) {
	err = db.InTx(ctx, pg.NoAccount, func(ctx context.Context, tx *pg.Tx) error {
		rows, err := tx.Query(ctx, sql, hash)
		if err != nil {
			return err
		}
		flow, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[T])
		return err
	})
	return flow, pg.Classify(err)
}
