package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/mail/mailtest"
)

// mailSettings are the settings of a service whose mail server a test provides. The URL with the password is in a file.
func mailSettings(t *testing.T, scheme string, server *mailtest.Server, user *url.Userinfo) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "smtp-url")
	if err := os.WriteFile(file, []byte((&url.URL{Scheme: scheme, Host: server.Address, User: user}).String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"TURNSTONE_SMTP_URL_FILE=" + file, "TURNSTONE_SMTP_FROM=Turnstone <no-reply@example.org>", "TURNSTONE_SMTP_CA_FILE=" + server.CAFile}
}

// newMailUser creates an account whose address contains the canary, so that no log may contain the address.
func newMailUser(t *testing.T, base, name string) *sitetest.User {
	t.Helper()
	u := sitetest.NewGuest(t, base)
	u.Email = name + "-" + sitetest.Canary + "@example.org"
	var session protocol.SessionInfo
	u.Do(t, "POST", "/auth/register", map[string]string{"email": u.Email, "password": sitetest.GoodPassword}).Want(t, 201, &session)
	u.API.UseToken(session.CSRFToken)
	return u
}

func forgot(t *testing.T, u *sitetest.User, email string) {
	t.Helper()
	u.Do(t, "POST", "/auth/password/forgot", map[string]string{"email": email}).Want(t, 202, nil)
}

func TestPasswordsAreResetAndAddressesConfirmedByMail(t *testing.T) {
	t.Parallel()
	const password = "canary-of-the-mail-server"
	server := mailtest.New(t, mailtest.Options{ImplicitTLS: true, User: "turnstone", Password: password})
	s := sitetest.NewSite(t, mailSettings(t, "smtps", server, url.UserPassword("turnstone", password))...)
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if code, stdout, stderr := sitetest.Finish(t, s.Environment, "doctor", "--bundle", bundle); code != 0 || !strings.Contains(stdout, "ok    mail server\n") || server.Waiting() != 0 {
		t.Errorf("doctor: %d %s%s, %d mails", code, stdout, stderr, server.Waiting())
	}
	for name, text := range readBundle(t, bundle) {
		if strings.Contains(text, password) {
			t.Errorf("%s of the bundle contains the password of the mail server", name)
		}
	}
	s.Start()
	u := newMailUser(t, s.Base, "ada")
	guest := sitetest.NewGuest(t, s.Base)
	forgot(t, guest, "nobody@example.org")
	forgot(t, guest, u.Email)
	m := server.Next(t)
	if m.From != "no-reply@example.org" || m.To != u.Email || m.Subject != "Reset your Turnstone password" || !strings.HasPrefix(m.Link(), s.Base+"/reset-password#mt1_") ||
		!strings.HasSuffix(m.Header.Get("Message-Id"), "@example.org>") {
		t.Fatalf("%+v", m)
	}
	if page, err := guest.HTTP.Get(m.Link()); err != nil || page.StatusCode != 200 && page.StatusCode != 503 || page.Header.Get("Referrer-Policy") != "no-referrer" { // 503: the app is not built
		t.Errorf("the page of the link: %v, %v", page, err)
	} else {
		_ = page.Body.Close()
	}
	next := "another long enough pass phrase"
	guest.Do(t, "POST", "/auth/password/reset", map[string]string{"token": m.Token(), "password": next}).Want(t, 204, nil)
	guest.Do(t, "POST", "/auth/password/reset", map[string]string{"token": m.Token(), "password": next}).Want(t, 422, nil)
	u.Do(t, "GET", "/auth/session", nil).Want(t, 401, nil)
	if notice := server.Next(t); notice.To != u.Email || notice.Subject != "Your Turnstone password was changed" || notice.Link() != "" {
		t.Errorf("%+v", notice)
	}
	if status := u.SignIn(t, u.Email, next); status != 200 {
		t.Fatalf("signing in with the new password: %d", status)
	}
	before, after := u.Email, "eve-"+sitetest.Canary+"@example.net"
	u.Do(t, "PUT", "/account/email", map[string]string{"email": after}).Want(t, 200, nil)
	byRecipient := map[string]mailtest.Mail{}
	for range 2 {
		m := server.Next(t)
		byRecipient[m.To] = m
	}
	if notice := byRecipient[before]; notice.Link() != "" || !strings.Contains(notice.Text, "not you") {
		t.Errorf("%+v", notice)
	}
	guest.Do(t, "POST", "/auth/email/verify", map[string]string{"token": byRecipient[after].Token()}).Want(t, 200, nil)
	var account protocol.Account
	u.Get(t, "/account", &account)
	if account.Email != after || account.PendingEmail != nil {
		t.Errorf("%+v", account)
	}
	if server.Waiting() != 0 {
		t.Errorf("another mail: %+v", server.Next(t))
	}
}

func TestTheDoctorReportsAMailServerThatRefusesTheSignIn(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{ImplicitTLS: true, User: "turnstone", Password: "right"})
	s := sitetest.NewSite(t, mailSettings(t, "smtps", server, url.UserPassword("turnstone", "canary-wrong"))...)
	code, stdout, stderr := sitetest.Finish(t, s.Environment, "doctor")
	if code == 0 || !strings.Contains(stdout, "WRONG mail server: connecting to the mail server: SMTP AUTH failed: 535") || strings.Contains(stdout+stderr, "canary-wrong") {
		t.Errorf("doctor: %d %s%s", code, stdout, stderr)
	}
}

// Such a server may have delivered each of the mails, so they are few, and the link in them works.
func TestAMailServerThatDoesNotRespondGetsAMailThreeTimes(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{Answer: func(mailtest.Mail) string { return mailtest.Drop }})
	s := sitetest.NewSite(t, mailSettings(t, "smtp", server, nil)...)
	p := s.Start()
	u := newMailUser(t, s.Base, "ada")
	guest := sitetest.NewGuest(t, s.Base)
	forgot(t, guest, u.Email)
	p.AwaitLog("a mail is not sent again")
	first := server.Next(t)
	for range 2 {
		if again := server.Next(t); again.Header.Get("Message-Id") != first.Header.Get("Message-Id") || again.Link() != first.Link() {
			t.Errorf("%+v, then %+v", first, again)
		}
	}
	if n := server.Waiting(); n != 0 {
		t.Errorf("%d more mails", n)
	}
	guest.Do(t, "POST", "/auth/password/reset", map[string]string{"token": first.Token(), "password": "another long enough pass phrase"}).Want(t, 204, nil)
}

// A mail is stored with what causes it, so an outage of the mail server and the end of the process only delay it.
func TestAMailSurvivesAnOutageOfTheMailServerAndTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	var first atomic.Pointer[sitetest.Process] // to be killed when the server has received a mail, before it responds
	var received atomic.Int32
	ids := make(chan string, 10)
	server := mailtest.New(t, mailtest.Options{Answer: func(m mailtest.Mail) string {
		received.Add(1)
		ids <- m.Header.Get("Message-Id")
		if p := first.Swap(nil); p != nil {
			p.Kill()
			return "421 4.3.2 the client is gone" // it is not read
		}
		return ""
	}})
	s := sitetest.NewSite(t, mailSettings(t, "smtp", server, nil)...)
	p := s.Start()
	u := newMailUser(t, s.Base, "ada")
	server.Stop()
	forgot(t, sitetest.NewGuest(t, s.Base), u.Email)
	p.Kill()
	p = s.Start()
	p.AwaitLog("connecting to the mail server") // an attempt has failed
	server.Start()
	m := server.Next(t)
	if m.To != u.Email || received.Load() != 1 {
		t.Errorf("after an outage: %+v, %d mails", m, received.Load())
	}

	<-ids
	first.Store(p)
	received.Store(0)
	over := u.Ledger.Plan()
	forgot(t, sitetest.NewGuest(t, s.Base), u.Email)
	sitetest.Eventually(t, "the process is killed while it sends", func() bool { return received.Load() == 1 && p.HasEnded() })
	over()
	// The queue notices after minutes that the run has ended with its process.
	execute(t, s.Owner, `update river.river_job set attempted_at = now() - interval '1 hour' where kind = 'send_mail' and state = 'running'`)
	execute(t, s.Owner, `delete from river.river_leader`)
	s.Start()
	again := server.Next(t)
	if again.To != u.Email || again.Token() == m.Token() || received.Load() != 2 {
		t.Errorf("after the end of the process: %+v, %d mails", again, received.Load())
	}
	if one, two := <-ids, <-ids; one != two || one == "" {
		t.Errorf("the attempts have the identifiers %s and %s", one, two)
	}
	sitetest.Eventually(t, "the mail is done", func() bool {
		return number(t, s.Owner, `select count(*) from river.river_job where kind = 'send_mail' and state not in ('completed', 'discarded')`) == 0
	})
	if server.Waiting() != 0 {
		t.Error("the mail was sent more than twice")
	}
}

// linkTo returns the token in the next mail to an address that has a link.
func (w *walk) linkTo(address string) string {
	w.t.Helper()
	for {
		if m := w.mailServer.Next(w.t); m.To == address && m.Link() != "" {
			return m.Token()
		}
	}
}

// changeEmail changes the address of the account of the walk, after another change that is cancelled.
func (w *walk) changeEmail() {
	before := w.email
	for _, cancel := range []bool{true, false} {
		w.email = uuid.NewString() + "@example.org"
		changed := w.call("changeEmail", nil, map[string]any{"email": w.email})
		if email, pending := changed.Text(w.t, http.StatusOK, "email"), changed.Text(w.t, http.StatusOK, "pending_email"); email != before || pending != w.email {
			w.t.Errorf("the address is %s and %s waits, want %s and %s", email, pending, before, w.email)
		}
		first := w.linkTo(w.email)
		w.call("resendPendingEmail", nil, nil).Text(w.t, http.StatusOK, "pending_email_expires_at")
		w.call("verifyEmail", nil, map[string]any{"token": first}).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
		again := w.linkTo(w.email)
		if cancel {
			w.call("cancelPendingEmail", args{"If-Match": changed.Header.Get("ETag")}, nil).Value(w.t, http.StatusConflict, "current")
			w.call("cancelPendingEmail", nil, nil).Want(w.t, http.StatusNoContent, nil)
			w.call("cancelPendingEmail", nil, nil).Text(w.t, http.StatusNotFound, "code")
			continue
		}
		if email := w.call("verifyEmail", nil, map[string]any{"token": again}).Text(w.t, http.StatusOK, "email"); email != w.email {
			w.t.Errorf("the address is %s, want %s", email, w.email)
		}
	}
}

// forgotPassword sets a new password of another account by mail.
func (w *walk) forgotPassword() {
	guest, email := w.newGuest(), uuid.NewString()+"@example.org"
	guest.call(w.t, "register", nil, map[string]any{"email": email, "password": w.password, "display_name": sitetest.Canary})
	other := w.newGuest()
	other.call(w.t, "requestPasswordReset", nil, map[string]any{"email": email}).Want(w.t, http.StatusAccepted, nil)
	token := w.linkTo(email)
	other.call(w.t, "resetPassword", nil, map[string]any{"token": token, "password": "short"}).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	other.call(w.t, "resetPassword", nil, map[string]any{"token": token, "password": "yet another pass phrase"}).Want(w.t, http.StatusNoContent, nil)
	guest.call(w.t, "getSession", nil, nil).Text(w.t, http.StatusUnauthorized, "code")
}

// execute runs a statement as the owner of the database, who owns the schema of the queue.
func execute(t *testing.T, owner, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
}

// number returns the number that a statement of the owner of the database selects.
func number(t *testing.T, owner, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
	return n
}
