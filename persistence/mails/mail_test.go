package mails_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/mails"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
)

// world is a database that stores mails.
type world struct {
	*storetest.World
	attempts chan *mails.Mail
	answers  chan error // of the next attempts; none: success
	changes  clocktest.Changes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	database := pgtest.NewDatabase(t)
	db := database.Open(t, func(c *persistence.Config) { c.Mail = true })
	return &world{World: storetest.NewWorldOn(t, database, db), attempts: make(chan *mails.Mail, 100), answers: make(chan error, 100)}
}

// start runs the jobs; with mail: those that send mails, too.
func (w *world) start(mail bool) (stop func()) {
	w.Helper()
	workers := persistence.JobWorkers{Observe: w.changes.Job}
	if mail {
		workers.SendMail = func(_ context.Context, m *mails.Mail) error {
			w.attempts <- m
			select {
			case err := <-w.answers:
				return err
			default:
				return nil
			}
		}
	}
	jobs, err := w.DB.StartJobs(w.Context(), workers)
	w.Must(err)
	return func() { w.Must(jobs.Close(context.Background())) }
}

// insert stores a mail of a kind.
func (w *world) insert(kind protocol.MailKind, now time.Time) {
	w.Helper()
	w.Must(w.DB.InTx(w.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error {
		return w.DB.Mails.Insert(ctx, tx, w.Account, kind, "ada@example.com", now)
	}))
}

// attempt returns the mail of the next attempt.
func (w *world) attempt() *mails.Mail {
	w.Helper()
	select {
	case m := <-w.attempts:
		return m
	case <-time.After(storetest.WaitLimit):
		w.Fatal("no mail is sent")
		return nil
	}
}

// eventually waits until a statement counts so many rows, because a job has changed them.
func (w *world) eventually(sql string, want int) {
	w.Helper()
	w.changes.Await(w.T, sql, func() bool { return w.Count(sql) == want })
}

// wantNoJob checks that no job that sends a mail is left. It is called when the jobs have stopped.
func (w *world) wantNoJob() {
	w.Helper()
	if n := w.Count(`select count(*) from river.river_job where kind = 'send_mail' and state <> 'completed'`); n != 0 {
		w.Errorf("%d mails would be sent again", n)
	}
}

const waiting = `select count(*) from mails where sent_at is null`

func TestAMailIsSentAgainUntilItIsAcceptedAndKeepsItsIdentifier(t *testing.T) {
	w := newWorld(t)
	settings := accounts.DefaultSettings()
	settings.Language = "ja"
	_, err := w.DB.Accounts.PutSettings(t.Context(), w.Account, settings, nil)
	w.Must(err)
	w.answers <- errors.New("the mail server is down")
	w.answers <- errors.New("the mail server is busy")
	w.insert(protocol.MailPasswordReset, time.Now())
	defer w.start(true)()
	first := w.attempt()
	if first.Recipient != "ada@example.com" || first.Language != "ja" || first.Kind != protocol.MailPasswordReset {
		t.Errorf("%+v", first)
	}
	for range 2 {
		if again := w.attempt(); again.Ref != first.Ref || !again.CreatedAt.Equal(first.CreatedAt) {
			t.Errorf("%+v, then %+v", first, again)
		}
	}
	w.eventually(waiting, 0)
	if n := w.Count(`select count(*) from mails`); n != 1 {
		t.Errorf("%d links can be used, want 1", n)
	}
}

// A server that accepts mails and does not respond would deliver the same one at each attempt, for as long as its link works.
func TestAMailIsSentThreeTimesAtMostToAServerThatDoesNotRespond(t *testing.T) {
	w := newWorld(t)
	w.insert(protocol.MailEmailConfirmation, time.Now())
	w.answers <- mails.ErrUnanswered
	w.answers <- errors.New("the mail server is down") // such an attempt is not counted
	for range 4 {
		w.answers <- mails.ErrUnanswered
	}
	stop := w.start(true)
	for range 4 {
		w.attempt()
	}
	w.eventually(`select count(*) from mails where sent_at is not null and unanswered = 3`, 1)
	stop()
	w.wantNoJob()
	if len(w.attempts) != 0 {
		t.Error("the mail was sent a fourth time")
	}
}

// The end of a node interrupts the wait for the response; the attempt counts nevertheless.
func TestAnAttemptThatTheEndOfTheNodeInterruptsIsCounted(t *testing.T) {
	w := newWorld(t)
	w.insert(protocol.MailPasswordReset, time.Now())
	var ref mails.Ref
	w.Must(w.AdminConn().QueryRow(t.Context(), `select account_id, mail_id from mails`).Scan(&ref.AccountID, &ref.MailID))
	ctx, cancel := context.WithCancel(t.Context())
	err := w.DB.Mails.SendOnce(ctx, ref, func(context.Context, *mails.Mail) error {
		cancel()
		return mails.ErrUnanswered
	})
	if !errors.Is(err, mails.ErrUnanswered) {
		t.Error(err)
	}
	if n := w.Count(`select count(*) from mails where unanswered = 1 and sent_at is null`); n != 1 {
		t.Error("the attempt is not counted")
	}
}

func TestARefusedMailIsForgottenAtOnce(t *testing.T) {
	w := newWorld(t)
	stop := w.start(true)
	w.answers <- mails.ErrRefused
	w.insert(protocol.MailPasswordReset, time.Now())
	w.attempt()
	w.eventually(`select count(*) from mails`, 0)
	stop()
	w.wantNoJob()
	if len(w.attempts) != 0 {
		t.Error("a mail was sent again")
	}
}

func TestNoMailIsSentAfterItExpiredWasWithdrawnOrItsAccountWasDisabled(t *testing.T) {
	w := newWorld(t)
	w.insert(protocol.MailPasswordReset, time.Now().Add(-mails.ResetLifetime))
	w.insert(protocol.MailEmailConfirmation, time.Now().Add(-mails.ConfirmationLifetime))
	w.insert(protocol.MailEmailChangeRequested, time.Now())
	w.Database.Admin(t, `delete from mails where kind = 'email_change_requested'`)
	disabled := pgtest.Account(t, w.DB)
	w.Must(w.DB.InTx(t.Context(), disabled, func(ctx context.Context, tx *pg.Tx) error {
		return w.DB.Mails.Insert(ctx, tx, disabled, protocol.MailPasswordChanged, "eve@example.com", time.Now())
	}))
	w.Database.Admin(t, `update accounts set disabled_at = now() where account_id = $1`, disabled)
	stop := w.start(true)
	w.changes.Await(t, "each of the four jobs has run", func() bool { return w.changes.Jobs("send_mail") == 4 })
	stop()
	w.wantNoJob()
	if len(w.attempts) != 0 {
		t.Errorf("%+v was sent", <-w.attempts)
	}
	w.Must(w.DB.Mails.Expire(t.Context()))
	if n := w.Count(`select count(*) from mails where expires_at < now()`); n != 0 {
		t.Errorf("%d expired mails are kept", n)
	}
}

// A node of the previous version, or one without a mail server, leaves mails to the others.
func TestANodeThatSendsNoMailLeavesItToTheOthers(t *testing.T) {
	w := newWorld(t)
	w.insert(protocol.MailPasswordReset, time.Now())
	w.Must(w.DB.Recovery.RequestReset(t.Context(), "nobody@example.com", time.Now(), audit.Requester{}))
	stop := w.start(false)
	w.changes.Await(t, "a job has run", func() bool { return w.changes.Jobs("expire") > 0 })
	stop()
	if n := w.Count(`select count(*) from river.river_job where kind in ('send_mail', 'request_password_reset') and state = 'available' and attempt = 0`); n != 2 {
		t.Errorf("%d jobs wait, want 2", n)
	}
	defer w.start(true)()
	w.attempt()
	w.eventually(`select count(*) from password_requests`, 0)
}

func TestAnErasureWithdrawsMailsAndRequests(t *testing.T) {
	w := newWorld(t)
	w.Database.Admin(t, `update accounts set email = 'ada@example.com', email_key = 'ada@example.com', password_hash = 'x' where account_id = $1`, w.Account)
	_, err := w.DB.Recovery.RequestEmail(t.Context(), w.Account, "ada@example.net", "ada@example.net", nil, time.Now(), audit.Requester{})
	w.Must(err)
	for _, address := range []string{"ada@example.com", "eve@example.com"} {
		w.Must(w.DB.Recovery.RequestReset(t.Context(), address, time.Now(), audit.Requester{}))
	}
	if n := w.Count(`select count(*) from mails`); n != 2 {
		t.Fatalf("%d mails, want 2", n)
	}
	_, err = w.DB.Erasures.Begin(t.Context(), w.Account, time.Now(), nil, audit.Requester{})
	w.Must(err)
	if n := w.Count(`select (select count(*) from mails) + (select count(*) from accounts where pending_email is not null)`); n != 0 {
		t.Errorf("%d mails or addresses are left", n)
	}
	if n := w.Count(`select count(*) from password_requests where email_key = 'eve@example.com'`); n != 1 || w.Count(`select count(*) from password_requests`) != 1 {
		t.Error("the requests are not those of others")
	}
}

func TestRequestsThatNoNodeServesExpire(t *testing.T) {
	w := newWorld(t)
	w.Must(w.DB.Recovery.RequestReset(t.Context(), "ada@example.com", time.Now().Add(-mails.ResetLifetime-time.Minute), audit.Requester{}))
	w.Must(w.DB.Recovery.RequestReset(t.Context(), "ada@example.com", time.Now(), audit.Requester{}))
	w.Must(w.DB.Recovery.Expire(t.Context()))
	if n := w.Count(`select count(*) from password_requests`); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
