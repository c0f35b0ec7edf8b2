package accounts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// NewAccount holds the initial values of an account.
type NewAccount struct {
	protocol.Account
	EmailKey     string  // the normalized address for lookups, or a key that no sign-in can match
	PasswordHash *string // nil: the account signs in through a provider only
	CreatedAt    time.Time
}

// Credentials is an account with the data that a password sign-in is checked against.
type Credentials struct {
	protocol.Account
	PasswordHash *string
	Disabled     bool
}

// signInNameIndex is the unique index on the addresses of accounts that have a password. Accounts that sign in through
// a provider only are not in the index.
const signInNameIndex = "accounts_sign_in_name"

const (
	detailEmailTaken   = "Another account signs in with this address and a password."
	detailStaleAccount = "The account has changed since that version."
)

// emailTaken converts a violation of signInNameIndex by an address to protocol.CodeEmailTaken. Other errors pass
// unchanged. The conflict has the address only, because it says enough about the other account.
func emailTaken(err error, email string) error {
	if pg.Violates(err, signInNameIndex) {
		return protocol.Conflict(protocol.CodeEmailTaken, map[string]string{"email": email}, detailEmailTaken)
	}
	return err
}

const insertAccountSQL = `
	insert into accounts (account_id, email, email_key, display_name, password_hash, created_at)
	values (@account, @email, @email_key, @display_name, @password_hash, @at)`

// Register creates an account with its first session and the identity that it signed up with; both are optional. It
// returns protocol.CodeEmailTaken if the account has a password and another account with a password has the same
// address, and protocol.CodeConflict if the identity is linked to another account.
func (s *Store) Register(ctx context.Context, account *NewAccount, identity *Identity, session *NewSession, by audit.Requester) error {
	err := s.db.InTx(ctx, account.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(insertAccountSQL, account.args())
		by.Queue(batch, account.AccountID, audit.EventRegistered, nil)
		if identity != nil {
			batch.Queue(insertIdentitySQL, identity.args(account.AccountID))
			by.Queue(batch, account.AccountID, audit.EventIdentityLinked, nil)
		}
		if session != nil {
			batch.Queue(insertSessionSQL, session.args(account.AccountID))
			by.Queue(batch, account.AccountID, audit.EventSessionCreated, &session.SessionID)
		}
		return tx.Run(ctx, batch)
	})
	if pg.Violates(err, identityConstraint) {
		return protocol.Conflict(protocol.CodeConflict, map[string]string{"issuer": identity.Issuer}, "This identity is already linked to an account.")
	}
	return emailTaken(err, account.Email)
}

func (a *NewAccount) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": a.AccountID, "email": a.Email, "email_key": a.EmailKey, "display_name": a.DisplayName,
		"password_hash": a.PasswordHash, "at": a.CreatedAt,
	}
}

// setAccountByEmailSQL finds the account that signs in with an address and makes it the account of the transaction, so
// that row-level security lets selectCredentialsSQL read its row.
const (
	setAccountByEmailSQL = `select set_config('turnstone.account_id', coalesce(sign_in_lookup($1)::text, ''), true)`
	selectCredentialsSQL = `
	select ` + accountColumns + `, password_hash, disabled_at is not null as disabled
	from accounts a where account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid`
)

// CredentialsByEmail returns the account that signs in with an address and a password; protocol.CodeNotFound if there
// is none.
func (s *Store) CredentialsByEmail(ctx context.Context, emailKey string) (*Credentials, error) {
	var found *Credentials
	batch := &pgx.Batch{}
	batch.Queue(setAccountByEmailSQL, emailKey)
	batch.Queue(selectCredentialsSQL).Query(collectOne(&found))
	return found, s.db.Send(ctx, pg.NoAccount, batch)
}

const accountsWithEmailSQL = `select accounts_with_email($1)`

// AccountsWithEmail returns the accounts that have an address, for operators. At most one of them has a password.
func (s *Store) AccountsWithEmail(ctx context.Context, emailKey string) ([]protocol.AccountID, error) {
	return pg.Rows(ctx, s.db, pg.NoAccount, pgx.RowTo[protocol.AccountID], accountsWithEmailSQL, emailKey)
}

// CredentialsOf returns the credentials of an account; protocol.CodeNotFound if it does not exist.
func (s *Store) CredentialsOf(ctx context.Context, account protocol.AccountID) (*Credentials, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[Credentials], selectCredentialsSQL)
}
