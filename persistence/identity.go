package persistence

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// Identity is who somebody is at an OpenID provider. An address never is.
type Identity struct{ Issuer, Subject string }

// identityTaken is the constraint that refuses an identity for a second account.
const identityTaken = "account_identities_pkey"

const insertIdentitySQL = `
	insert into account_identities (issuer, subject, account_id) values (@issuer, @subject, @account)`

func (i *Identity) args(account protocol.AccountID) pgx.NamedArgs {
	return pgx.NamedArgs{"issuer": i.Issuer, "subject": i.Subject, "account": account}
}

const (
	becomeByIdentitySQL = `
	select set_config('turnstone.account_id',
		coalesce((select account_id::text from account_identities where issuer = $1 and subject = $2), ''), true)`
)

// CredentialsByIdentity finds the account that an identity is linked to; protocol.CodeNotFound when there is none.
func (db *DB) CredentialsByIdentity(ctx context.Context, identity Identity) (*Credentials, error) {
	var found *Credentials
	batch := &pgx.Batch{}
	batch.Queue(becomeByIdentitySQL, identity.Issuer, identity.Subject)
	batch.Queue(selectCredentialsSQL).Query(collectOne(&found))
	return found, db.Send(ctx, Nobody, batch)
}

const linkIdentitySQL = `
	insert into account_identities (issuer, subject, account_id) values (@issuer, @subject, @account)
	on conflict (issuer, subject) do nothing`

const identityOwnerSQL = `select account_id from account_identities where issuer = @issuer and subject = @subject`

// LinkIdentity lets an account sign in by an identity. Linked to another account it is protocol.CodeConflict; linked to
// this one already it is done.
func (db *DB) LinkIdentity(ctx context.Context, account protocol.AccountID, identity Identity, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		tag, err := tx.Exec(ctx, linkIdentitySQL, identity.args(account))
		if err != nil {
			return err
		}
		var owner protocol.AccountID
		if err := tx.QueryRow(ctx, identityOwnerSQL, identity.args(account)).Scan(&owner); err != nil {
			return err
		}
		if owner != account {
			return protocol.Conflict(protocol.CodeConflict, nil, "This identity belongs to another account.")
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		batch := &pgx.Batch{}
		by.queue(batch, account, EventIdentityLinked, nil)
		return tx.Run(ctx, batch)
	})
}

// OIDCFlow is a sign-in at a provider that is under way: single use, bound to one browser.
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

// BeginOIDCFlow stores what the callback will be held against.
func (db *DB) BeginOIDCFlow(ctx context.Context, flow *OIDCFlow) error {
	_, err := db.Exec(ctx, Nobody, insertFlowSQL, pgx.NamedArgs{
		"state": flow.StateHash, "browser": flow.BrowserHash, "provider": flow.Provider, "verifier": flow.Verifier,
		"nonce": flow.Nonce, "account": flow.LinkAccount, "return_to": flow.ReturnTo, "expires": flow.ExpiresAt,
	})
	return err
}

const takeFlowSQL = `
	delete from oidc_flows where state_hash = $1
	returning state_hash, browser_hash, provider, verifier, nonce, link_account, return_to, expires_at`

// TakeOIDCFlow reads a flow and ends it, whoever asks: a state works once. protocol.CodeNotFound when there is none.
func (db *DB) TakeOIDCFlow(ctx context.Context, stateHash []byte) (flow *OIDCFlow, err error) {
	err = db.InTx(ctx, Nobody, func(ctx context.Context, tx *Tx) error {
		rows, err := tx.Query(ctx, takeFlowSQL, stateHash)
		if err != nil {
			return err
		}
		flow, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[OIDCFlow])
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &protocol.Error{Code: protocol.CodeNotFound, Detail: notFoundDetail, Err: err}
	}
	return flow, err
}
