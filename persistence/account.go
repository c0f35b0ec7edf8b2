package persistence

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// NewAccount is what an account begins with.
type NewAccount struct {
	protocol.Account
	EmailKey     string  // the address as look-ups spell it
	PasswordHash *string // nil: signs in by a provider only
	CreatedAt    time.Time
}

// Credentials are what a sign-in with a password is held against.
type Credentials struct {
	protocol.Account
	PasswordHash *string
	Disabled     bool
}

// signInName is the index that refuses an address to a second account with a password. Accounts that sign in by a provider
// only are not in it.
const signInName = "accounts_sign_in_name"

// emailTaken gives a violation of signInName its meaning.
func emailTaken(err error) error {
	if Violates(err, signInName) {
		return protocol.Conflict(protocol.CodeEmailTaken, nil, "Another account signs in with this address and a password.")
	}
	return err
}

const insertAccountSQL = `
	insert into accounts (account_id, email, email_key, display_name, password_hash, created_at)
	values (@account, @email, @email_key, @display_name, @password_hash, @at)`

// Register makes an account with its first session, and with the identity that it came by, if any. With a password, an
// address that another account with a password has is protocol.CodeEmailTaken.
func (db *DB) Register(ctx context.Context, account *NewAccount, identity *Identity, session *NewSession, by Requester) error {
	err := db.InTx(ctx, account.AccountID, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(insertAccountSQL, account.args())
		by.queue(batch, account.AccountID, EventRegistered, nil)
		if identity != nil {
			batch.Queue(insertIdentitySQL, identity.args(account.AccountID))
			by.queue(batch, account.AccountID, EventIdentityLinked, nil)
		}
		if session != nil {
			batch.Queue(insertSessionSQL, session.args(account.AccountID))
			by.queue(batch, account.AccountID, EventSessionCreated, &session.SessionID)
		}
		return tx.Run(ctx, batch)
	})
	if Violates(err, identityTaken) {
		return protocol.Conflict(protocol.CodeConflict, nil, "This identity belongs to an account already.")
	}
	return emailTaken(err)
}

func (a *NewAccount) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": a.AccountID, "email": a.Email, "email_key": a.EmailKey, "display_name": a.DisplayName,
		"password_hash": a.PasswordHash, "at": a.CreatedAt,
	}
}

// The first statement finds whose credentials they are and becomes that account for the second.
const (
	becomeByEmailSQL     = `select set_config('turnstone.account_id', coalesce(sign_in_lookup($1)::text, ''), true)`
	selectCredentialsSQL = `
	select account_id, email, display_name, password_hash, disabled_at is not null as disabled
	from accounts where account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid`
)

// CredentialsByEmail finds the account that signs in with an address and a password; protocol.CodeNotFound when there is
// none.
func (db *DB) CredentialsByEmail(ctx context.Context, emailKey string) (*Credentials, error) {
	var found *Credentials
	batch := &pgx.Batch{}
	batch.Queue(becomeByEmailSQL, emailKey)
	batch.Queue(selectCredentialsSQL).Query(collectOne(&found))
	return found, db.Send(ctx, Nobody, batch)
}

const accountsWithEmailSQL = `select accounts_with_email($1)`

// AccountsWithEmail finds every account that shows an address, for operators. At most one of them has a password.
func (db *DB) AccountsWithEmail(ctx context.Context, emailKey string) ([]protocol.AccountID, error) {
	return Rows(ctx, db, Nobody, pgx.RowTo[protocol.AccountID], accountsWithEmailSQL, emailKey)
}

// CredentialsOf are an account's own.
func (db *DB) CredentialsOf(ctx context.Context, account protocol.AccountID) (*Credentials, error) {
	return Row(ctx, db, account, pgx.RowToAddrOfStructByName[Credentials], selectCredentialsSQL)
}

const (
	lockAccountSQL    = `select from accounts where account_id = $1 for no key update`
	updatePasswordSQL = `update accounts set password_hash = @password_hash where account_id = @account`
)

// ChangePassword stores a new password, ends every session of the account and begins session, which goes on for the one
// who changed it: under the same session identifier, with a new token. A first password takes the account's address as
// sign-in name; protocol.CodeEmailTaken when another account has it.
func (db *DB) ChangePassword(ctx context.Context, account protocol.AccountID, hash string, session *NewSession, by Requester) error {
	return emailTaken(db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(updatePasswordSQL, pgx.NamedArgs{"account": account, "password_hash": hash})
		by.queue(batch, account, EventPasswordChanged, nil)
		batch.Queue(replaceSessionsSQL, session.args(account))
		queueReplaced(batch, account, session)
		by.queue(batch, account, EventSessionRotated, &session.SessionID)
		return tx.Run(ctx, batch)
	}))
}

const setPasswordSQL = `update accounts set password_hash = $2 where account_id = $1`

// SetPassword stores a password that an operator gave, and ends every session of the account. A first password may be
// protocol.CodeEmailTaken, as with ChangePassword.
func (db *DB) SetPassword(ctx context.Context, account protocol.AccountID, hash string, now time.Time, by Requester) error {
	return emailTaken(db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(setPasswordSQL, account, hash)
		by.queue(batch, account, EventPasswordChanged, nil)
		queueEnded(batch, account, now)
		return tx.Run(ctx, batch)
	}))
}

// collectOne reads exactly one row into *to; pgx.ErrNoRows otherwise.
func collectOne[T any](to **T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*to, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[T])
		return err
	}
}
