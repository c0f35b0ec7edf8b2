package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/audit"
	"turnstone/persistence/jobs"
	"turnstone/persistence/mails"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Recovery stores what the owners of accounts do by mail: they set a new password, and confirm a new address. Its methods may
// be called from any goroutine.
type Recovery struct {
	db       *pg.DB
	accounts *Store
	queue    *jobs.Queue
	outbox   *mails.Outbox
}

// NewRecovery returns a store.
func NewRecovery(db *pg.DB, accounts *Store, queue *jobs.Queue, outbox *mails.Outbox) *Recovery {
	return &Recovery{db, accounts, queue, outbox}
}

// resetArgs is the job that mails a link to the account that signs in with an address.
type resetArgs struct {
	RequestID uuid.UUID `json:"password_request_id"`
}

func (resetArgs) Kind() string { return "request_password_reset" }

// InsertOpts puts the job before the mail that it causes.
func (resetArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: jobs.MailQueue} }

const insertResetSQL = `
	insert into password_requests (password_request_id, email_key, request_id, address, requested_at)
	values (@id, @email_key, @request, @address, @at)`

// RequestReset requests a link for the account that signs in with an address and a password. It does not look for that account:
// a job does so afterwards, so that neither the result nor the duration reveals whether there is one. emailKey is the
// normalized address.
func (s *Recovery) RequestReset(ctx context.Context, emailKey string, now time.Time, by audit.Requester) error {
	id := uuid.New()
	return s.db.InTx(ctx, pg.NoAccount, func(ctx context.Context, tx *pg.Tx) error {
		_, err := tx.Exec(ctx, insertResetSQL, pgx.NamedArgs{"id": id, "email_key": emailKey, "request": by.RequestID, "address": by.Address, "at": now})
		if err != nil {
			return fmt.Errorf("storing a request to reset a password: %w", err)
		}
		return s.queue.Insert(ctx, tx, resetArgs{id})
	})
}

// ResetJob returns the job that mails links for requests to reset a password.
func (s *Recovery) ResetJob() jobs.Job { return jobs.New(s.mailReset) }

// resetRequest is a row of password_requests.
type resetRequest struct {
	EmailKey    string
	RequestID   string
	Address     string
	RequestedAt time.Time
}

const (
	selectResetSQL = `
	select email_key, request_id, address, requested_at from password_requests where password_request_id = $1`
	takeResetSQL = `delete from password_requests where password_request_id = $1`
)

// mailReset mails a link to the account that a request is for. Accounts without a password, and those that are disabled, get
// none: an address of theirs is not a proof of who they are.
func (s *Recovery) mailReset(ctx context.Context, args resetArgs) error {
	request, err := pg.Row(ctx, s.db, pg.NoAccount, pgx.RowToAddrOfStructByName[resetRequest], selectResetSQL, args.RequestID)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading a request to reset a password: %w", err)
	}
	found, err := s.accounts.CredentialsByEmail(ctx, request.EmailKey)
	if protocol.CodeOf(err) == protocol.CodeNotFound || err == nil && found.Disabled {
		_, err = s.db.Exec(ctx, pg.NoAccount, takeResetSQL, args.RequestID)
		return err
	}
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, found.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, takeResetSQL, args.RequestID)
		if err != nil || tag.RowsAffected() == 0 { // an earlier run has done it
			return err
		}
		if err := s.outbox.Insert(ctx, tx, found.AccountID, protocol.MailPasswordReset, found.Email, request.RequestedAt); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		audit.Requester{RequestID: request.RequestID, Address: request.Address}.Queue(batch, found.AccountID, audit.EventResetRequested, nil)
		return tx.Run(ctx, batch)
	})
}

const (
	// resettable is the condition under which the link m of an account a can set a new password.
	resettable = `m.account_id = @account and m.mail_id = @mail and m.kind = 'password_reset' and m.expires_at > @now
	  and a.account_id = m.account_id and m.recipient = a.email and a.password_hash is not null and a.disabled_at is null`
	findResetSQL = `
	select ` + accountColumns + ` from mails m, accounts a where ` + resettable
	useResetSQL = `
	delete from mails m using accounts a where ` + resettable + `
	returning ` + accountColumns
)

func linkArgs(link mails.Ref, now time.Time) pgx.NamedArgs {
	return pgx.NamedArgs{"account": link.AccountID, "mail": link.MailID, "now": now}
}

// FindReset returns the account whose password a link can set. The error is protocol.CodeNotFound if the link is unknown, used,
// withdrawn or expired.
func (s *Recovery) FindReset(ctx context.Context, link mails.Ref, now time.Time) (*protocol.Account, error) {
	return pg.Row(ctx, s.db, link.AccountID, pgx.RowToAddrOfStructByName[protocol.Account], findResetSQL, linkArgs(link, now))
}

// ResetPassword stores a new password with a link, which ends as FindReset describes. It ends every session of the account, all
// of its other links, and a change of its address that waits for its confirmation: whoever has read along may have started it.
// The owner is informed by mail.
func (s *Recovery) ResetPassword(ctx context.Context, link mails.Ref, hash string, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, link.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		account, err := takeLink(ctx, tx, link, useResetSQL, linkArgs(link, now))
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		queuePassword(batch, link.AccountID, hash)
		QueueEndSessions(batch, link.AccountID, now)
		by.Queue(batch, link.AccountID, audit.EventPasswordReset, nil)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		return s.outbox.Insert(ctx, tx, link.AccountID, protocol.MailPasswordChanged, account.Email, now)
	})
}

// takeLink locks an account and runs the statement that uses its link, which returns the account as it was.
func takeLink(ctx context.Context, tx *pg.Tx, link mails.Ref, sql string, args pgx.NamedArgs) (*protocol.Account, error) {
	if _, err := tx.Exec(ctx, LockAccountSQL, link.AccountID); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Account])
}

const (
	// takenSQL returns whether an address is the sign-in name of another account, if it would become that of this one.
	takenSQL = `
	select coalesce(sign_in_lookup(@email_key) <> @account, false) and password_hash is not null from accounts where account_id = @account`
	setPendingSQL = `
	update accounts set pending_email = @email, pending_email_expires_at = @expires, version = version + 1 where account_id = @account`
)

// checkFree returns protocol.CodeEmailTaken if an address cannot become that of an account, which the transaction has locked.
func checkFree(ctx context.Context, tx *pg.Tx, account *protocol.Account, emailKey string) error {
	var taken bool
	if err := tx.QueryRow(ctx, takenSQL, pgx.NamedArgs{"account": account.AccountID, "email_key": emailKey}).Scan(&taken); err != nil {
		return err
	}
	if taken {
		return protocol.Conflict(protocol.CodeEmailTaken, account, detailEmailTaken)
	}
	return nil
}

// RequestEmail stores an address to which an account changes when it is confirmed, mails the link to it, and informs the
// address that it replaces. It returns the account. The address of the account itself ends a change that waits; one that waits
// already changes nothing. The errors are those of ChangeEmail. emailKey is the normalized address.
func (s *Recovery) RequestEmail(ctx context.Context, account protocol.AccountID, email, emailKey string, version *int64, now time.Time, by audit.Requester) (changed *protocol.Account, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if changed, err = lockVersion(ctx, tx, account, version); err != nil {
			return err
		}
		waits := changed.PendingEmail != nil
		switch {
		case email == changed.Email && !waits, waits && email == *changed.PendingEmail:
			return nil
		case email == changed.Email:
			changed, err = setPending(ctx, tx, account, nil, now, by, audit.EventEmailCancelled)
			return err
		}
		if err := checkFree(ctx, tx, changed, emailKey); err != nil {
			return err
		}
		if changed.Email != "" {
			if err := s.outbox.Insert(ctx, tx, account, protocol.MailEmailChangeRequested, changed.Email, now); err != nil {
				return err
			}
		}
		changed, err = s.mailConfirmation(ctx, tx, account, email, now, by)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// mailConfirmation makes an address the one that waits, and mails its link.
func (s *Recovery) mailConfirmation(ctx context.Context, tx *pg.Tx, account protocol.AccountID, email string, now time.Time, by audit.Requester) (*protocol.Account, error) {
	changed, err := setPending(ctx, tx, account, &email, now, by, audit.EventEmailRequested)
	if err != nil {
		return nil, err
	}
	return changed, s.outbox.Insert(ctx, tx, account, protocol.MailEmailConfirmation, email, now)
}

// setPending stores the address that waits for its confirmation, or that none does. Links to earlier ones end.
func setPending(ctx context.Context, tx *pg.Tx, account protocol.AccountID, email *string, now time.Time, by audit.Requester, event audit.SecurityEvent) (changed *protocol.Account, err error) {
	args := pgx.NamedArgs{"account": account, "email": email, "expires": nil}
	if email != nil {
		args["expires"] = now.Add(mails.ConfirmationLifetime)
	}
	batch := &pgx.Batch{}
	mails.QueueWithdraw(batch, account, protocol.MailEmailConfirmation)
	batch.Queue(setPendingSQL, args)
	by.Queue(batch, account, event, nil)
	batch.Queue(selectAccountSQL, account).Query(collectOne(&changed))
	return changed, tx.Run(ctx, batch)
}

// ResendEmail mails another link to the address that waits for its confirmation; the earlier link ends. It returns the account;
// protocol.CodeNotFound if no address waits, and protocol.CodeEmailTaken if another account signs in with the address meanwhile,
// so that no link could confirm it. keyOf normalizes an address.
func (s *Recovery) ResendEmail(ctx context.Context, account protocol.AccountID, keyOf func(email string) string, now time.Time, by audit.Requester) (changed *protocol.Account, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		before, err := lockPending(ctx, tx, account, nil)
		if err != nil {
			return err
		}
		if err := checkFree(ctx, tx, before, keyOf(*before.PendingEmail)); err != nil {
			return err
		}
		changed, err = s.mailConfirmation(ctx, tx, account, *before.PendingEmail, now, by)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// CancelEmail ends a change of the address that waits for its confirmation; protocol.CodeNotFound if none does. version is the
// one of the account that the request is based on; nil: any.
func (s *Recovery) CancelEmail(ctx context.Context, account protocol.AccountID, version *int64, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := lockPending(ctx, tx, account, version); err != nil {
			return err
		}
		_, err := setPending(ctx, tx, account, nil, now, by, audit.EventEmailCancelled)
		return err
	})
}

// lockPending locks an account, of which an address has to wait for its confirmation.
func lockPending(ctx context.Context, tx *pg.Tx, account protocol.AccountID, version *int64) (*protocol.Account, error) {
	current, err := lockVersion(ctx, tx, account, nil)
	if err == nil && current.PendingEmail == nil {
		return nil, pgx.ErrNoRows
	}
	if err == nil && version != nil && *version != current.Version {
		return nil, protocol.Conflict(protocol.CodeStaleVersion, current, detailStaleAccount)
	}
	return current, err
}

const useConfirmationSQL = `
	delete from mails m using accounts a
	where m.account_id = @account and m.mail_id = @mail and m.kind = 'email_confirmation' and m.expires_at > @now
	  and a.account_id = m.account_id and m.recipient = a.pending_email and a.disabled_at is null
	returning ` + accountColumns

// ConfirmEmail changes the address of an account to the one that a link was mailed to, and returns that address. keyOf
// normalizes an address. The error is protocol.CodeNotFound if the link is unknown, used, withdrawn or expired, and
// protocol.CodeEmailTaken as that of ChangeEmail; then the link can be used again.
func (s *Recovery) ConfirmEmail(ctx context.Context, link mails.Ref, keyOf func(email string) string, now time.Time, by audit.Requester) (email string, err error) {
	err = s.db.InTx(ctx, link.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		before, err := takeLink(ctx, tx, link, useConfirmationSQL, linkArgs(link, now))
		if err != nil {
			return err
		}
		if before.PendingEmail == nil { // it expired by the clock of the database
			return pgx.ErrNoRows
		}
		email = *before.PendingEmail
		batch := &pgx.Batch{}
		batch.Queue(updateEmailSQL, pgx.NamedArgs{"account": link.AccountID, "email": email, "email_key": keyOf(email)})
		mails.QueueWithdraw(batch, link.AccountID, protocol.MailPasswordReset)
		by.Queue(batch, link.AccountID, audit.EventEmailChanged, nil)
		return tx.Run(ctx, batch)
	})
	return email, emailTaken(err, email)
}

const expireRequestsSQL = `
	delete from password_requests r using (
		select password_request_id from password_requests where requested_at < now() - interval '1 hour' order by requested_at limit $1) x
	where r.password_request_id = x.password_request_id`

// Expire deletes requests that no job has served: their links would have expired.
func (s *Recovery) Expire(ctx context.Context) error {
	return s.db.DeleteExpired(ctx, expireRequestsSQL)
}
