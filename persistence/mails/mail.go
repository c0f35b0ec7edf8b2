// Package mails stores the mails to the owners of accounts until they are sent, and the links in them until they are used.
//
// A mail is inserted in the transaction that causes it, with the job that sends it. A mail that may have been sent before its
// node ended, or to a server that did not respond, is sent again a few times, under the same identifier. Neither its text nor
// the token of its link is stored.
package mails

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"go.uber.org/zap"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// The lifetimes of mails, and so of their links.
const (
	ResetLifetime        = time.Hour
	ConfirmationLifetime = 24 * time.Hour
	NoticeLifetime       = 24 * time.Hour
)

// Outbox stores mails. Its methods may be called from any goroutine.
type Outbox struct {
	db      *pg.DB
	queue   *jobs.Queue
	enabled bool
}

// NewOutbox returns an outbox. If it is not enabled, it stores nothing.
func NewOutbox(db *pg.DB, queue *jobs.Queue, enabled bool) *Outbox {
	return &Outbox{db, queue, enabled}
}

// Ref identifies a mail of an account.
type Ref struct {
	AccountID protocol.AccountID `json:"account_id"`
	MailID    protocol.MailID    `json:"mail_id"`
}

// Mail is a mail to be sent.
type Mail struct {
	Ref
	Kind      protocol.MailKind
	Recipient string
	Language  string // of the account, a BCP 47 tag
	CreatedAt time.Time
	ExpiresAt time.Time
}

// noticeInterval is the time after a notice in which an account gets no other one of the same kind. Otherwise somebody who
// registers with the address of another person could fill that person's mailbox.
const noticeInterval = 15 * time.Minute

const insertSQL = `
	insert into mails (account_id, mail_id, kind, recipient, created_at, expires_at)
	select @account, @mail, @kind, @recipient, @at, @expires
	where @kind = any (@links) or not exists (select from mails where account_id = @account and kind = @kind and created_at > @since)`

// Insert stores a mail to an address of an account, in the transaction that causes it, which has locked the account. A notice
// is left out if the account had one of its kind in the last 15 minutes.
func (o *Outbox) Insert(ctx context.Context, tx *pg.Tx, account protocol.AccountID, kind protocol.MailKind, recipient string, now time.Time) error {
	if !o.enabled {
		return nil
	}
	lifetime := NoticeLifetime
	switch kind {
	case protocol.MailPasswordReset:
		lifetime = ResetLifetime
	case protocol.MailEmailConfirmation:
		lifetime = ConfirmationLifetime
	case protocol.MailPasswordChanged, protocol.MailEmailChangeRequested:
	}
	id := protocol.NewMailID()
	tag, err := tx.Exec(ctx, insertSQL, pgx.NamedArgs{
		"account": account, "mail": id, "kind": kind, "recipient": recipient, "at": now, "expires": now.Add(lifetime),
		"links": links, "since": now.Add(-noticeInterval),
	})
	if err != nil {
		return fmt.Errorf("storing a mail: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return o.queue.Insert(ctx, tx, sendArgs{Ref{account, id}})
}

// sendArgs is the job that sends a mail.
type sendArgs struct{ Ref }

func (sendArgs) Kind() string { return "send_mail" }

// maxAttempts is more than fit into the lifetime of a mail, with the delays of package jobs.
const maxAttempts = 200

// InsertOpts lets the job be tried again for as long as the mail is worth sending.
func (sendArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, Queue: jobs.MailQueue}
}

const (
	// The mails of an account that is disabled or being erased are not sent.
	selectSQL = `
	select m.account_id, m.mail_id, m.kind, m.recipient, m.created_at, m.expires_at, coalesce(s.settings ->> 'language', 'en') as language
	from mails m join accounts a on a.account_id = m.account_id left join account_settings s on s.account_id = m.account_id
	where m.account_id = @account and m.mail_id = @mail and m.sent_at is null and m.expires_at > now() and a.disabled_at is null`
	// The row stays until it expires: the link in it can be used, and another notice would be one too many.
	sentSQL   = `update mails set sent_at = now() where account_id = @account and mail_id = @mail`
	deleteSQL = `delete from mails where account_id = @account and mail_id = @mail`
	// A server that accepts mails without responding has them all, so the last one counts as sent.
	unansweredSQL = `
	update mails set unanswered = unanswered + 1, sent_at = case when unanswered + 1 >= @max then now() end
	where account_id = @account and mail_id = @mail returning sent_at is not null`
)

// maxUnanswered is how often a mail is sent at most if the server never responds to it.
const maxUnanswered = 3

// links are the kinds that have a link.
var links = []string{string(protocol.MailPasswordReset), string(protocol.MailEmailConfirmation)}

// Send sends a mail. After an error that is not ErrRefused, the mail is sent again later; after ErrUnanswered, at most twice.
type Send func(ctx context.Context, mail *Mail) error

// The errors of a Send that have a meaning of their own.
var (
	// ErrRefused is the error for a mail that no further attempt can deliver.
	ErrRefused = errors.New("the mail server refuses the mail permanently")
	// ErrUnanswered is the error for a mail that may have been delivered.
	ErrUnanswered = errors.New("the mail may have been delivered")
)

// SendJob returns the job that sends a mail. It ends without a mail if the mail has expired, or was withdrawn.
func (o *Outbox) SendJob(send Send) jobs.Job {
	return jobs.New(func(ctx context.Context, args sendArgs) error { return o.send(ctx, args.Ref, send) })
}

func (o *Outbox) send(ctx context.Context, ref Ref, send Send) error {
	args := pgx.NamedArgs{"account": ref.AccountID, "mail": ref.MailID}
	mail, err := pg.Row(ctx, o.db, ref.AccountID, pgx.RowToAddrOfStructByName[Mail], selectSQL, args)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading a mail: %w", err)
	}
	after := sentSQL
	switch err := send(ctx, mail); {
	case errors.Is(err, ErrRefused):
		o.db.Log.Warn("a mail is not sent", zap.Stringer("mail", ref.MailID), zap.String("kind", string(mail.Kind)), zap.Error(err))
		after = deleteSQL
	case errors.Is(err, ErrUnanswered):
		return o.noteUnanswered(ctx, mail, err)
	case err != nil:
		return fmt.Errorf("sending a mail: %w", err)
	}
	_, err = o.db.Exec(ctx, ref.AccountID, after, args)
	return err
}

// noteUnanswered counts an attempt to which the server did not respond, also if it was the end of the node that stopped waiting.
// It returns an error if the mail is to be sent again.
func (o *Outbox) noteUnanswered(ctx context.Context, mail *Mail, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.RequestTimeout)
	defer cancel()
	args := pgx.NamedArgs{"account": mail.AccountID, "mail": mail.MailID, "max": maxUnanswered}
	last, err := pg.Row(ctx, o.db, mail.AccountID, pgx.RowTo[bool], unansweredSQL, args)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound: // it was withdrawn
		return nil
	case err != nil:
		return errors.Join(reason, err)
	case last:
		o.db.Log.Warn("a mail is not sent again", zap.Stringer("mail", mail.MailID), zap.String("kind", string(mail.Kind)), zap.Error(reason))
		return nil
	}
	return fmt.Errorf("sending a mail: %w", reason)
}

const expireSQL = `
	delete from mails m using (select account_id, mail_id from mails where expires_at < now() order by expires_at limit $1) x
	where m.account_id = x.account_id and m.mail_id = x.mail_id`

// Expire deletes mails and links that have expired.
func (o *Outbox) Expire(ctx context.Context) error { return o.db.DeleteExpired(ctx, expireSQL) }

const withdrawSQL = `delete from mails where account_id = $1 and kind = any ($2)`

// QueueWithdraw adds the statement that withdraws the mails of some kinds of an account: those that were not sent are not, and
// the links in the others end.
func QueueWithdraw(batch *pgx.Batch, account protocol.AccountID, kinds ...protocol.MailKind) {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	batch.Queue(withdrawSQL, account, names)
}
