package accounts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/mails"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	// LockAccountSQL locks the row of an account, but not against new rows that refer to it.
	LockAccountSQL = `select from accounts where account_id = $1 for no key update`
	// lockPasswordSQL locks an account whose password is still the one that was checked before.
	lockPasswordSQL = `select from accounts where account_id = @account and password_hash is not distinct from @checked for no key update`
	lockSessionSQL  = `
	select from sessions where account_id = @account and session_id = @session and revoked_at is null and expires_at > @at for update`
	// updatePasswordSQL also ends a change of the address that waits: whoever knew the old password may have started it.
	updatePasswordSQL = `
	update accounts set password_hash = @password_hash, pending_email = null, pending_email_expires_at = null,
		version = version + case when pending_email is null then 0 else 1 end
	where account_id = @account`
)

// queuePassword adds the statements that store a password, and end the links that were mailed before.
func queuePassword(batch *pgx.Batch, account protocol.AccountID, hash string) {
	batch.Queue(updatePasswordSQL, pgx.NamedArgs{"account": account, "password_hash": hash})
	mails.QueueWithdraw(batch, account, protocol.MailPasswordReset, protocol.MailEmailConfirmation)
}

// ChangePassword stores a new password, ends every session of the account and a change of its address that waits, and informs
// its owner by mail. The session that changed the password continues: session is its next token, under the same session
// identifier, and its Checked is the password that was checked before. The error is protocol.CodeNotFound if the account has
// another password by now, or the session has ended. Setting a first password makes the address of the account its sign-in
// name; protocol.CodeEmailTaken if another account signs in with that address.
func (s *Store) ChangePassword(ctx context.Context, account protocol.AccountID, hash string, session *NewSession, by audit.Requester) (changed *protocol.Account, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := lockAll(ctx, tx, session.args(account), lockPasswordSQL, lockSessionSQL); err != nil {
			return err
		}
		if changed, err = lockVersion(ctx, tx, account, nil); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		queuePassword(batch, account, hash)
		by.Queue(batch, account, audit.EventPasswordChanged, nil)
		batch.Queue(replaceSessionsSQL, session.args(account))
		queueReplaceSessions(batch, account, session)
		by.Queue(batch, account, audit.EventSessionRotated, &session.SessionID)
		batch.Queue(selectAccountSQL, account).Query(collectOne(&changed))
		if err := tx.Run(ctx, batch); err != nil || changed.Email == "" {
			return err
		}
		return s.outbox.Insert(ctx, tx, account, protocol.MailPasswordChanged, changed.Email, session.At)
	})
	if err != nil && changed != nil {
		return nil, emailTaken(err, changed.Email)
	}
	return changed, err
}

const updateEmailSQL = `
	update accounts set email = @email, email_key = @email_key, version = version + 1, pending_email = null, pending_email_expires_at = null
	where account_id = @account and (email <> @email or email_key <> @email_key or pending_email is not null)`

// ChangeEmail stores another address of an account and returns the account. If the account has a password, the address
// becomes its sign-in name; protocol.CodeEmailTaken if another account signs in with that address. emailKey is the
// normalized address. An address that waits for its confirmation does not wait any more. Sessions continue. Storing the same address again changes nothing and is not audited. version is the
// one that the change is based on; nil: any.
func (s *Store) ChangeEmail(ctx context.Context, account protocol.AccountID, email, emailKey string, version *int64, by audit.Requester) (changed *protocol.Account, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if changed, err = lockVersion(ctx, tx, account, version); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, updateEmailSQL, pgx.NamedArgs{"account": account, "email": email, "email_key": emailKey})
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		if tag.RowsAffected() > 0 {
			by.Queue(batch, account, audit.EventEmailChanged, nil)
			mails.QueueWithdraw(batch, account, protocol.MailPasswordReset, protocol.MailEmailConfirmation)
		}
		batch.Queue(selectAccountSQL, account).Query(collectOne(&changed))
		return tx.Run(ctx, batch)
	})
	if pg.Violates(err, signInNameIndex) {
		return nil, protocol.Conflict(protocol.CodeEmailTaken, changed, detailEmailTaken)
	}
	if err != nil {
		return nil, err
	}
	return changed, nil
}

const (
	// accountColumns are the columns of a protocol.Account, of a row a.
	accountColumns = `a.account_id, a.email, a.display_name, a.version, ` + pendingColumns
	pendingColumns = `case when a.pending_email_expires_at > now() then a.pending_email end as pending_email,
		case when a.pending_email_expires_at > now() then a.pending_email_expires_at end as pending_email_expires_at`
	selectAccountSQL = `select ` + accountColumns + ` from accounts a where a.account_id = $1`
)

// lockVersion locks an account and returns it. If it has another version, the error is a conflict with the account; nil:
// any version.
func lockVersion(ctx context.Context, tx *pg.Tx, account protocol.AccountID, version *int64) (current *protocol.Account, err error) {
	rows, err := tx.Query(ctx, selectAccountSQL+` for no key update`, account)
	if err != nil {
		return nil, err
	}
	if current, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Account]); err != nil {
		return nil, err
	}
	if version != nil && *version != current.Version {
		return nil, protocol.Conflict(protocol.CodeStaleVersion, current, detailStaleAccount)
	}
	return current, nil
}

const updateNameSQL = `
	update accounts set display_name = @display_name, version = version + 1
	where account_id = @account and display_name <> @display_name`

// ChangeName stores another display name of an account and returns the account. version is the one that the change is based
// on; nil: any.
func (s *Store) ChangeName(ctx context.Context, account protocol.AccountID, name string, version *int64) (changed *protocol.Account, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := lockVersion(ctx, tx, account, version); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(updateNameSQL, pgx.NamedArgs{"account": account, "display_name": name})
		batch.Queue(selectAccountSQL, account).Query(collectOne(&changed))
		return tx.Run(ctx, batch)
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// SetPassword stores a password that an operator chose, and ends every session of the account and a change of its address that
// waits. As with ChangePassword, a
// first password may be refused with protocol.CodeEmailTaken.
func (s *Store) SetPassword(ctx context.Context, account protocol.AccountID, hash string, now time.Time, by audit.Requester) error {
	return emailTaken(s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(LockAccountSQL, account)
		queuePassword(batch, account, hash)
		by.Queue(batch, account, audit.EventPasswordChanged, nil)
		QueueEndSessions(batch, account, now)
		return tx.Run(ctx, batch)
	}), "")
}
