package accounts

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Passkeys stores passkeys. Its methods may be called from any goroutine.
type Passkeys struct{ db *pg.DB }

// NewPasskeys returns a store without state in memory.
func NewPasskeys(db *pg.DB) *Passkeys { return &Passkeys{db} }

// MaxPasskeys limits the passkeys of an account.
const MaxPasskeys = 20

// Passkey is a stored passkey, with the data that a signature is checked against.
type Passkey struct {
	protocol.Passkey
	CredentialID   []byte
	PublicKey      []byte // a COSE key
	SignCount      uint32 // of the last use; 0: the authenticator does not count
	Transports     []string
	AAGUID         [16]byte `db:"aaguid"` // the model of the authenticator
	BackupEligible bool
}

const passkeyColumns = `passkey_id, name, created_at, last_used_at, backed_up, version, credential_id, public_key, sign_count, transports, aaguid, backup_eligible`

const listPasskeysSQL = `select ` + passkeyColumns + ` from passkeys where account_id = $1 order by created_at, passkey_id`

// ListPasskeys returns the passkeys of an account, in the order of their creation.
func (s *Passkeys) ListPasskeys(ctx context.Context, account protocol.AccountID) ([]Passkey, error) {
	return pg.Rows(ctx, s.db, account, pgx.RowToStructByName[Passkey], listPasskeysSQL, account)
}

const ownsPasskeySQL = `select true from passkeys where account_id = $1 and passkey_id = $2`

// OwnsPasskey returns protocol.CodeNotFound unless the account has the passkey.
func (s *Passkeys) OwnsPasskey(ctx context.Context, account protocol.AccountID, id protocol.PasskeyID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsPasskeySQL, account, id)
	return err
}

// passkeyConstraint is the constraint that refuses a second passkey with the same credential identifier.
const passkeyConstraint = "passkeys_credential_id_key"

const (
	countPasskeysSQL = `select count(*) from passkeys where account_id = $1`
	insertPasskeySQL = `
	insert into passkeys (account_id, passkey_id, credential_id, public_key, sign_count, transports, aaguid, name, backup_eligible, backed_up, created_at)
	values (@account, @passkey, @credential, @key, @count, @transports, @aaguid, @name, @eligible, @backed_up, @at)`
)

// AddPasskey stores a new passkey. It returns protocol.CodeConflict if the account has MaxPasskeys, or if the credential
// is already a passkey of an account.
func (s *Passkeys) AddPasskey(ctx context.Context, account protocol.AccountID, passkey *Passkey, by audit.Requester) error {
	err := s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		// The lock prevents concurrent requests from exceeding the limit together.
		if _, err := tx.Exec(ctx, LockAccountSQL, account); err != nil {
			return err
		}
		var has int
		if err := tx.QueryRow(ctx, countPasskeysSQL, account).Scan(&has); err != nil {
			return err
		}
		if has >= MaxPasskeys {
			return ErrTooManyPasskeys()
		}
		batch := &pgx.Batch{}
		batch.Queue(insertPasskeySQL, pgx.NamedArgs{
			"account": account, "passkey": passkey.PasskeyID, "credential": passkey.CredentialID, "key": passkey.PublicKey, "count": passkey.SignCount,
			"transports": passkey.Transports, "aaguid": passkey.AAGUID, "name": passkey.Name, "eligible": passkey.BackupEligible,
			"backed_up": passkey.BackedUp, "at": passkey.CreatedAt,
		})
		by.Queue(batch, account, audit.EventPasskeyAdded, nil)
		return tx.Run(ctx, batch)
	})
	if pg.Violates(err, passkeyConstraint) {
		return protocol.Conflict(protocol.CodeConflict, map[string]string{"credential_id": base64.RawURLEncoding.EncodeToString(passkey.CredentialID)}, "This passkey is already stored.")
	}
	return err
}

// ErrTooManyPasskeys returns the error for one passkey more than MaxPasskeys.
func ErrTooManyPasskeys() error {
	current := map[string]int{"limit": MaxPasskeys, "used": MaxPasskeys}
	return protocol.Conflict(protocol.CodeConflict, current, fmt.Sprintf("The account has %d passkeys, which is the limit. Remove one first.", MaxPasskeys))
}

const (
	lockPasskeySQL = `
	select passkey_id, name, created_at, last_used_at, backed_up, version from passkeys
	where account_id = @account and passkey_id = @passkey for update`
	renamePasskeySQL = `
	update passkeys set name = @name, version = version + 1 where account_id = @account and passkey_id = @passkey
	returning passkey_id, name, created_at, last_used_at, backed_up, version`
)

// PasskeyChange identifies the passkey that a request changes.
type PasskeyChange struct {
	PasskeyID protocol.PasskeyID
	Version   *int64 // that the change is based on; nil: any
}

// lock locks the passkey and returns it. The errors are protocol.CodeNotFound if the account does not have it, and a conflict
// with the passkey if it has another version.
func (c *PasskeyChange) lock(ctx context.Context, tx *pg.Tx, account protocol.AccountID) (*protocol.Passkey, error) {
	passkey, err := onePasskey(ctx, tx, lockPasskeySQL, pgx.NamedArgs{"account": account, "passkey": c.PasskeyID})
	if err == nil && c.Version != nil && *c.Version != passkey.Version {
		err = protocol.Conflict(protocol.CodeStaleVersion, passkey, "The passkey has changed since that version.")
	}
	return passkey, err
}

func onePasskey(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) (*protocol.Passkey, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Passkey])
}

// RenamePasskey stores another name and returns the passkey. The same name changes nothing.
func (s *Passkeys) RenamePasskey(ctx context.Context, account protocol.AccountID, change *PasskeyChange, name string) (passkey *protocol.Passkey, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if passkey, err = change.lock(ctx, tx, account); err != nil || passkey.Name == name {
			return err
		}
		passkey, err = onePasskey(ctx, tx, renamePasskeySQL, pgx.NamedArgs{"account": account, "passkey": change.PasskeyID, "name": name})
		return err
	})
	if err != nil {
		return nil, err
	}
	return passkey, nil
}

const deletePasskeySQL = `delete from passkeys where account_id = $1 and passkey_id = $2`

// DeletePasskey deletes a passkey. The last way to sign in to an account is not deleted: protocol.CodeConflict, with the passkey.
// issuers are those of the providers that are configured.
func (s *Passkeys) DeletePasskey(ctx context.Context, account protocol.AccountID, change *PasskeyChange, issuers []string, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		// The lock prevents concurrent requests from deleting the last two passkeys together.
		if _, err := tx.Exec(ctx, LockAccountSQL, account); err != nil {
			return err
		}
		passkey, err := change.lock(ctx, tx, account)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deletePasskeySQL, account, change.PasskeyID); err != nil {
			return err
		}
		if err := checkCanSignIn(ctx, tx, account, issuers, passkey); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		by.Queue(batch, account, audit.EventPasskeyRemoved, nil)
		return tx.Run(ctx, batch)
	})
}

// setAccountByPasskeySQL finds the account that has a passkey and makes it the account of the transaction, as
// setAccountByEmailSQL does.
const (
	setAccountByPasskeySQL = `select set_config('turnstone.account_id', coalesce(passkey_lookup($1)::text, ''), true)`
	selectPasskeySQL       = `
	select ` + passkeyColumns + ` from passkeys
	where account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid and credential_id = $1`
)

// CredentialsByPasskey returns the account that has a passkey, and the passkey; protocol.CodeNotFound if there is none.
func (s *Passkeys) CredentialsByPasskey(ctx context.Context, credentialID []byte) (found *Credentials, passkey *Passkey, err error) {
	batch := &pgx.Batch{}
	batch.Queue(setAccountByPasskeySQL, credentialID)
	batch.Queue(selectCredentialsSQL).Query(collectOne(&found))
	batch.Queue(selectPasskeySQL, credentialID).Query(collectOne(&passkey))
	return found, passkey, s.db.Send(ctx, pg.NoAccount, batch)
}

// PasskeyUse is a verified signature of a passkey.
type PasskeyUse struct {
	PasskeyID protocol.PasskeyID
	SignCount uint32
	BackedUp  bool
	At        time.Time
}

const usePasskeySQL = `
	update passkeys set sign_count = @count, backed_up = @backed_up, last_used_at = @at
	where account_id = @account and passkey_id = @passkey and (sign_count < @count or sign_count = 0 and @count = 0)
	  and exists (select from accounts a where a.account_id = @account and a.disabled_at is null)`

// UsePasskey stores the use of a passkey, and the session that it signs in to; nil: the use confirms the session that
// by belongs to. used is false, and nothing is stored, if the count of signatures is not above the stored one, the
// passkey has been deleted or the account is disabled.
func (s *Passkeys) UsePasskey(ctx context.Context, account protocol.AccountID, use *PasskeyUse, session *NewSession, by audit.Requester) (used bool, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, usePasskeySQL, pgx.NamedArgs{
			"account": account, "passkey": use.PasskeyID, "count": int64(use.SignCount), "backed_up": use.BackedUp, "at": use.At,
		})
		if used = err == nil && tag.RowsAffected() > 0; !used {
			return err
		}
		batch := &pgx.Batch{}
		if session == nil {
			by.Queue(batch, account, audit.EventPasskeyUsed, nil)
		} else {
			by.Queue(batch, account, audit.EventPasskeyUsed, &session.SessionID)
			queueCreateSession(batch, account, session, by)
		}
		return tx.Run(ctx, batch)
	})
	return used && err == nil, err
}

// PasskeyPurpose says what a request to an authenticator is for.
type PasskeyPurpose string

// The purposes of a request to an authenticator.
const (
	PasskeyRegister       PasskeyPurpose = "register"
	PasskeySignIn         PasskeyPurpose = "sign_in"
	PasskeyReauthenticate PasskeyPurpose = "reauthenticate"
)

// PasskeyFlow is a request to an authenticator that is in progress. It can be used once, by one browser.
type PasskeyFlow struct {
	ChallengeHash []byte
	BrowserHash   []byte
	Purpose       PasskeyPurpose
	ForAccount    *protocol.AccountID // nil: a sign-in
	ExpiresAt     time.Time
}

const insertPasskeyFlowSQL = `
	insert into passkey_flows (challenge_hash, browser_hash, purpose, for_account, expires_at)
	values (@challenge, @browser, @purpose, @account, @expires)`

// BeginPasskeyFlow stores the values that the response of an authenticator is checked against.
func (s *Passkeys) BeginPasskeyFlow(ctx context.Context, flow *PasskeyFlow) error {
	_, err := s.db.Exec(ctx, pg.NoAccount, insertPasskeyFlowSQL, pgx.NamedArgs{
		"challenge": flow.ChallengeHash, "browser": flow.BrowserHash, "purpose": string(flow.Purpose), "account": flow.ForAccount, "expires": flow.ExpiresAt,
	})
	return err
}

const takePasskeyFlowSQL = `
	delete from passkey_flows where challenge_hash = $1
	returning challenge_hash, browser_hash, purpose, for_account, expires_at`

// TakePasskeyFlow returns a flow and deletes it, whichever browser presents the challenge: a challenge works once. The
// error is protocol.CodeNotFound if there is none.
func (s *Passkeys) TakePasskeyFlow(ctx context.Context, challengeHash []byte) (*PasskeyFlow, error) {
	return takeFlow[PasskeyFlow](ctx, s.db, takePasskeyFlowSQL, challengeHash)
}
