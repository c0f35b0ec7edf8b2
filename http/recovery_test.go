package http

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/mails"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// mailWorld is a world that sends mails, which the test gets instead of a mail server.
type mailWorld struct {
	*world
	sent chan *mails.Mail
	keys *auth.Keys
}

func newMailWorld(t *testing.T, change ...func(*testConfig)) *mailWorld {
	t.Helper()
	database := pgtest.NewDatabase(t)
	w := &mailWorld{sent: make(chan *mails.Mail, 100)}
	w.world = worldOn(t, database, append([]func(*testConfig){func(c *testConfig) {
		c.MailConfigured = true
		c.use(database.Open(t, func(p *persistence.Config) { p.Mail = true }))
	}}, change...)...)
	var err error
	if w.keys, err = auth.NewKeys(w.Secrets); err != nil {
		t.Fatal(err)
	}
	jobs, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{Observe: w.changes.Job, SendMail: func(_ context.Context, m *mails.Mail) error {
		w.sent <- m
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close(context.Background()) })
	return w
}

// mail returns the next mail, which has to be of a kind and to an address, and the token of its link.
func (w *mailWorld) mail(kind protocol.MailKind, to string) (token string) {
	w.t.Helper()
	return w.mails(map[protocol.MailKind]string{kind: to})[kind]
}

// mails returns the tokens of the next mails, which have to be of these kinds and to these addresses, in any order.
func (w *mailWorld) mails(want map[protocol.MailKind]string) map[protocol.MailKind]string {
	w.t.Helper()
	tokens := map[protocol.MailKind]string{}
	for len(tokens) < len(want) {
		select {
		case m := <-w.sent:
			if to, wanted := want[m.Kind]; !wanted || to != m.Recipient {
				w.t.Fatalf("a mail %s to %s, want %v", m.Kind, m.Recipient, want)
			}
			tokens[m.Kind] = w.keys.MailToken(m.Ref)
		case <-time.After(storetest.WaitLimit):
			w.t.Fatalf("no mail arrived, want %v", want)
		}
	}
	return tokens
}

// forgot requests a reset and returns the token of its mail.
func (w *mailWorld) forgot(email string) (token string) {
	w.t.Helper()
	w.client().expect(202, "POST", "/auth/password/forgot", route.Object{"email": email})
	return w.mail(protocol.MailPasswordReset, email)
}

// served waits until every request to reset a password was served.
func (w *mailWorld) served() {
	w.t.Helper()
	w.changes.Await(w.t, "the requests are served", func() bool { return query[int](w.world, `select count(*)::int from password_requests`)[0] == 0 })
}

// refuses checks that a token sets no password, with the response that every such token gets.
func (w *mailWorld) refuses(name, token string) {
	w.t.Helper()
	resp := w.client().do("POST", "/auth/password/reset", route.Object{"token": token, "password": "another good secret"})
	if resp.status != 422 || resp.Code != protocol.CodeInvalid || len(resp.Errors) != 1 || resp.Errors[0].Field != "body.token" || resp.Detail != "The token field is not valid, was used, or has expired." {
		w.t.Errorf("%s: %d %s", name, resp.status, resp.body)
	}
}

const newPassword = "two calm tides at noon"

func TestAForgottenPasswordIsResetByMail(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	other := w.client().login("ada@example.com")
	w.client().expect(202, "POST", "/auth/password/forgot", route.Object{"email": " ADA@example.com "})
	token := w.mail(protocol.MailPasswordReset, "ada@example.com")
	weak := w.client().do("POST", "/auth/password/reset", route.Object{"token": token, "password": "password"})
	if weak.status != 422 || weak.Errors[0].Field != "body.password" {
		t.Fatalf("a common password: %d %s", weak.status, weak.body)
	}
	reset := w.client().expect(204, "POST", "/auth/password/reset", route.Object{"token": token, "password": newPassword})
	if len(reset.header.Values("Set-Cookie")) != 0 {
		t.Errorf("a reset signs in: %v", reset.header)
	}
	for _, session := range []*client{c, other} {
		session.expect(401, "GET", "/auth/session", nil)
	}
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	w.client().expect(200, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": newPassword})
	w.refuses("a used token", token)
	w.mail(protocol.MailPasswordChanged, "ada@example.com")
	events := w.events(c.account.AccountID)
	for _, event := range []audit.SecurityEvent{audit.EventResetRequested, audit.EventPasswordReset} {
		if !slices.Contains(events, string(event)) {
			t.Errorf("the audit has no %s: %v", event, events)
		}
	}
	w.changes.Await(t, "the mails are sent", func() bool {
		return query[int](w.world, `select count(*)::int from mails where sent_at is null`)[0] == 0
	})
}

func TestAnAddressWithoutAnAccountGetsTheSameResponseAndNoMail(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	w.client().register("ada@example.com")
	disabled := w.client().register("eve@example.com").account
	w.database.Admin(t, `update accounts set disabled_at = now() where account_id = $1`, disabled.AccountID)
	linked := &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: "oidc@example.com", DisplayName: "Linked"},
		EmailKey: "oidc@example.com", CreatedAt: time.Now(),
	}
	if err := w.DB.Accounts.Register(t.Context(), linked, &accounts.Identity{Issuer: "https://issuer.example", Subject: "1"}, nil, audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	var first *reply
	for _, email := range []string{"nobody@example.com", "eve@example.com", "oidc@example.com", "ada@example.com"} {
		resp := w.client().expect(202, "POST", "/auth/password/forgot", route.Object{"email": email})
		for _, header := range []string{"X-Request-Id", "Date"} {
			resp.header.Del(header)
		}
		if first == nil {
			first = resp
		}
		if !bytes.Equal(resp.body, first.body) || fmt.Sprint(resp.header) != fmt.Sprint(first.header) {
			t.Errorf("%s: %s %v, want %s %v", email, resp.body, resp.header, first.body, first.header)
		}
	}
	w.mail(protocol.MailPasswordReset, "ada@example.com")
	w.served()
	if n := query[int](w.world, `select count(*)::int from mails`)[0]; n != 1 || len(w.sent) != 0 {
		t.Errorf("%d mails are stored, %d more were sent", n, len(w.sent))
	}
	for _, email := range []string{"", "ada", "Ada <ada@example.com>", "ada@example.com\r\nBcc: eve@example.com"} {
		w.client().expect(422, "POST", "/auth/password/forgot", route.Object{"email": email})
	}
}

// A request writes the same rows whether there is an account, and looks for none, so its duration reveals nothing.
func TestARequestToResetAPasswordLooksForNoAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { c.MailConfigured = true })
	w.client().register("ada@example.com")
	rows := func() []int64 {
		return query[int64](w, `select n_live from (values ((select count(*) from password_requests)), ((select count(*) from river.river_job)),
			((select count(*) from mails)), ((select count(*) from audit))) v (n_live)`)
	}
	var grown [][]int64
	for _, email := range []string{"nobody@example.com", "ada@example.com"} {
		before := rows()
		w.client().expect(202, "POST", "/auth/password/forgot", route.Object{"email": email})
		after := rows()
		for i := range after {
			after[i] -= before[i]
		}
		grown = append(grown, after)
	}
	if want := []int64{1, 1, 0, 0}; !slices.Equal(grown[0], want) || !slices.Equal(grown[1], want) {
		t.Errorf("without and with an account, the tables grow by %v", grown)
	}
}

func TestMailsToOneAddressAndForOneNetworkAreLimited(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t, func(c *testConfig) { c.MailConfigured = true })
	known := w.client().at("203.0.113.9").register("ada@example.com")
	for _, email := range []string{"ada@example.com", "nobody@example.com"} {
		var statuses []int
		for n := range 6 {
			c, _ := w.direct(n)
			statuses = append(statuses, c.do("POST", "/auth/password/forgot", route.Object{"email": email}).status)
		}
		if got := fmt.Sprint(statuses); got != "[202 202 202 202 202 429]" {
			t.Errorf("%s from six networks: %s", email, got)
		}
	}
	known.expect(202, "POST", "/auth/password/forgot", route.Object{"email": "ada@example.com"}) // a known device has its own limit
	var statuses []int
	for n := range 6 {
		statuses = append(statuses, w.client().at("192.0.2.77").do("POST", "/auth/password/forgot", route.Object{"email": fmt.Sprintf("u%d@example.com", n)}).status)
	}
	if got := fmt.Sprint(statuses); got != "[202 202 202 202 202 429]" {
		t.Errorf("six addresses from one network: %s", got)
	}
}

func TestOnlyALiveTokenOfTheAccountSetsAPassword(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	token := w.forgot("ada@example.com")
	foreign, err := auth.NewKeys([][]byte{bytes.Repeat([]byte("x"), minSecret)})
	if err != nil {
		t.Fatal(err)
	}
	unknown := mails.Ref{AccountID: c.account.AccountID, MailID: protocol.NewMailID()}
	for name, wrong := range map[string]string{
		"empty": "", "no token": "token", "cut": token[:len(token)-1], "another prefix": "sh1_" + token[4:], "longer": token + "AAAA",
		"of another key": foreign.MailToken(unknown), "of an unknown mail": w.keys.MailToken(unknown),
		"of another account": w.keys.MailToken(mails.Ref{AccountID: protocol.NewAccountID(), MailID: unknown.MailID}),
	} {
		w.refuses(name, wrong)
	}
	w.refuses("a confirmation", func() string {
		c.changeEmail("ada@example.net")
		return w.mails(map[protocol.MailKind]string{protocol.MailEmailConfirmation: "ada@example.net", protocol.MailEmailChangeRequested: "ada@example.com"})[protocol.MailEmailConfirmation]
	}())
	w.client().expect(422, "POST", "/auth/email/verify", route.Object{"token": token})
	w.clock.advance(mails.ResetLifetime)
	w.refuses("an expired token", token)
	w.clock.advance(-mails.ResetLifetime)

	second := w.forgot("ada@example.com")
	c.expect(200, "POST", "/auth/password", route.Object{"current_password": testPassword, "new_password": newPassword})
	w.mail(protocol.MailPasswordChanged, "ada@example.com")
	w.refuses("after the password was changed", token)
	w.refuses("after the password was changed, the other", second)
}

func TestATokenOfTheSecretBeforeARotationWorks(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	w.client().register("ada@example.com")
	token := w.forgot("ada@example.com")
	rotated := worldOn(t, w.database, func(c *testConfig) { c.Secrets = append([][]byte{bytes.Repeat([]byte("n"), minSecret)}, c.Secrets...) })
	rotated.client().expect(204, "POST", "/auth/password/reset", route.Object{"token": token, "password": newPassword})
}

func TestOneOfTwoConcurrentResetsSucceeds(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	w.client().register("ada@example.com")
	token := w.forgot("ada@example.com")
	statuses := make([]int, 2)
	var both sync.WaitGroup
	for i := range statuses {
		both.Go(func() {
			statuses[i] = w.client().at(fmt.Sprintf("198.51.100.%d", i)).do("POST", "/auth/password/reset", route.Object{"token": token, "password": newPassword}).status
		})
	}
	both.Wait()
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{204, 422}) {
		t.Errorf("%v", statuses)
	}
}

func TestWithoutAMailServerNothingIsMailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	for path, resp := range map[string]*reply{
		"forgot": w.client().do("POST", "/auth/password/forgot", route.Object{"email": "ada@example.com"}),
		"resend": c.do("POST", "/account/pending-email/resend", nil),
	} {
		if resp.status != 403 || resp.Code != protocol.CodeMailNotConfigured {
			t.Errorf("%s: %d %s", path, resp.status, resp.body)
		}
	}
	if changed := c.changeEmail("ada@example.net"); changed.Email != "ada@example.net" || changed.PendingEmail != nil {
		t.Errorf("%+v", changed)
	}
	if n := query[int](w, `select count(*)::int from mails`)[0] + query[int](w, `select count(*)::int from password_requests`)[0]; n != 0 {
		t.Errorf("%d rows are stored", n)
	}
}

// change requests another address and returns the token of the confirmation.
func (w *mailWorld) change(c *client, email string) (token string) {
	w.t.Helper()
	before := c.session().Account.Email
	noticed := query[bool](w.world, `select exists (select from mails where account_id = $1 and kind = 'email_change_requested')`, c.account.AccountID)[0]
	c.changeEmail(email)
	want := map[protocol.MailKind]string{protocol.MailEmailConfirmation: email, protocol.MailEmailChangeRequested: before}
	if noticed { // a few minutes ago
		delete(want, protocol.MailEmailChangeRequested)
	}
	return w.mails(want)[protocol.MailEmailConfirmation]
}

func (w *mailWorld) refusesAddress(name, token string) {
	w.t.Helper()
	if resp := w.client().do("POST", "/auth/email/verify", route.Object{"token": token}); resp.status != 422 || resp.Errors[0].Field != "body.token" {
		w.t.Errorf("%s: %d %s", name, resp.status, resp.body)
	}
}

func TestANewAddressIsUsedOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	reset := w.forgot("ada@example.com")
	token := w.change(c, "Ada@Example.net")
	waiting := c.session().Account
	if waiting.Email != "ada@example.com" || waiting.PendingEmail == nil || *waiting.PendingEmail != "Ada@Example.net" || waiting.Version != 2 ||
		waiting.PendingEmailExpiresAt == nil || !waiting.PendingEmailExpiresAt.Equal(w.clock.now().Add(24*time.Hour)) {
		t.Fatalf("%+v", waiting)
	}
	if same := c.changeEmail("Ada@Example.net"); same.Version != 2 { // it waits already: no other mail
		t.Errorf("%+v", same)
	}
	w.client().login("ada@example.com")
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.net", "password": testPassword})
	if got := string(w.client().expect(200, "POST", "/auth/email/verify", route.Object{"token": token}).body); !strings.Contains(got, `{"email":"Ada@Example.net"}`) {
		t.Error(got)
	}
	if now := c.session().Account; now.Email != "Ada@Example.net" || now.PendingEmail != nil || now.PendingEmailExpiresAt != nil || now.Version != 3 {
		t.Errorf("%+v", now)
	}
	w.client().login("ada@example.net")
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	w.refusesAddress("a used token", token)
	w.refuses("a reset that was mailed to the earlier address", reset)
	events := w.events(c.account.AccountID)
	if !slices.Contains(events, string(audit.EventEmailRequested)) || !slices.Contains(events, string(audit.EventEmailChanged)) {
		t.Errorf("audit %v", events)
	}
	if len(w.sent) != 0 {
		t.Errorf("%d more mails", len(w.sent))
	}
}

func TestAChangeOfTheAddressIsSentAgainAndCancelled(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	c.expect(404, "POST", "/account/pending-email/resend", nil)
	c.expect(404, "DELETE", "/account/pending-email", nil)
	first := w.change(c, "ada@example.net")
	again := c.expect(200, "POST", "/account/pending-email/resend", nil)
	if again.header.Get("ETag") != `"v3"` {
		t.Errorf("%v %s", again.header, again.body)
	}
	second := w.mail(protocol.MailEmailConfirmation, "ada@example.net")
	w.refusesAddress("the link of the earlier mail", first)
	stale := c.expect(409, "DELETE", "/account/pending-email", nil, "If-Match", `"v2"`)
	if stale.Code != protocol.CodeStaleVersion || !strings.Contains(string(stale.body), `"pending_email":"ada@example.net"`) {
		t.Errorf("%s", stale.body)
	}
	c.expect(204, "DELETE", "/account/pending-email", nil, "If-Match", `"v3"`)
	w.refusesAddress("a cancelled change", second)
	third := w.change(c, "ada@example.org")
	if back := c.changeEmail("ada@example.com"); back.PendingEmail != nil || back.Email != "ada@example.com" {
		t.Errorf("%+v", back)
	}
	w.refusesAddress("after a return to the own address", third)
	fourth := w.change(c, "ada@example.info")
	fifth := w.change(c, "ada@example.biz")
	w.refusesAddress("a change that another one replaced", fourth)
	w.clock.advance(mails.ConfirmationLifetime)
	w.refusesAddress("an expired link", fifth)
}

func TestATakenAddressIsRefusedWhenItIsRequestedMailedAgainAndConfirmed(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	token := w.change(c, "eve@example.com")
	w.client().register("eve@example.com")
	taken := w.client().expect(409, "POST", "/auth/email/verify", route.Object{"token": token})
	if taken.Code != protocol.CodeEmailTaken || strings.Contains(string(taken.body), c.account.AccountID.String()) {
		t.Errorf("%s", taken.body)
	}
	for request, again := range map[string]*reply{
		"another link":          c.expect(409, "POST", "/account/pending-email/resend", nil), // it would mail a link that confirms nothing
		"the address once more": c.expect(409, "PUT", "/account/email", route.Object{"email": "EVE@example.com"}),
	} {
		if again.Code != protocol.CodeEmailTaken || !strings.Contains(string(again.body), `"current":{"account_id"`) {
			t.Errorf("%s: %s", request, again.body)
		}
	}
	if len(w.sent) != 0 {
		t.Errorf("%d more mails", len(w.sent))
	}
	c.expect(204, "DELETE", "/account/pending-email", nil)
}

// Whoever has used the session of another may have started the change.
func TestAResetEndsAChangeOfTheAddress(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	token := w.change(c, "eve@example.com")
	w.client().expect(204, "POST", "/auth/password/reset", route.Object{"token": w.forgot("ada@example.com"), "password": newPassword})
	w.mail(protocol.MailPasswordChanged, "ada@example.com")
	w.refusesAddress("after a reset", token)
	again := w.client()
	again.storeSession(again.expect(200, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": newPassword}))
	if again.account.PendingEmail != nil {
		t.Errorf("%+v", again.account)
	}
}

// An operator and the owner change a password because somebody else knows it.
func TestANewPasswordEndsAChangeOfTheAddress(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(t *testing.T, w *mailWorld, c *client){
		"operator": func(t *testing.T, w *mailWorld, c *client) {
			if err := w.DB.Accounts.SetPassword(t.Context(), c.account.AccountID, "hash", time.Now(), audit.Requester{RequestID: "req"}); err != nil {
				t.Error(err)
			}
		},
		"owner": func(t *testing.T, _ *mailWorld, c *client) {
			resp := c.expect(200, "POST", "/auth/password", route.Object{"current_password": testPassword, "new_password": newPassword})
			if strings.Contains(string(resp.body), "pending_email\":\"") {
				t.Errorf("%s", resp.body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMailWorld(t)
			c := w.client().register("ada@example.com")
			token := w.change(c, "ada@example.net")
			set(t, w, c)
			w.refusesAddress(name, token)
		})
	}
}

// A mailbox cannot be filled by somebody who registers with its address: a notice follows another one only after a while.
func TestNoticesOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t)
	c := w.client().register("ada@example.com")
	w.change(c, "ada@example.net")
	w.change(c, "ada@example.org")
	w.clock.advance(16 * time.Minute)
	c.storeSession(c.expect(200, "POST", "/auth/reauthenticate", route.Object{"password": testPassword}))
	c.changeEmail("ada@example.info")
	w.mails(map[protocol.MailKind]string{protocol.MailEmailConfirmation: "ada@example.info", protocol.MailEmailChangeRequested: "ada@example.com"})
}

// The links to a new address are limited for its account and for the address, whatever devices have signed in. They are not
// counted with the links that reset a password, or anybody could use up the limit of those.
func TestLinksThatConfirmAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t, func(c *testConfig) { c.MailConfigured = true })
	var statuses []int
	for n := range 6 {
		c, _ := w.direct(n)
		statuses = append(statuses, c.register(fmt.Sprintf("u%d@example.com", n)).do("PUT", "/account/email", route.Object{"email": "ada@example.net"}).status)
	}
	if got := fmt.Sprint(statuses); got != "[200 200 200 200 200 429]" {
		t.Errorf("one address from six accounts: %s", got)
	}
	statuses = nil
	c := w.client().at("203.0.113.9").register("eve@example.com")
	c.changeEmail("eve@example.net")
	for range 5 {
		statuses = append(statuses, c.do("POST", "/account/pending-email/resend", nil).status)
	}
	if got := fmt.Sprint(statuses); got != "[200 200 200 200 429]" {
		t.Errorf("a link and five more for one account: %s", got)
	}
	w.client().at("192.0.2.77").expect(202, "POST", "/auth/password/forgot", route.Object{"email": "ada@example.net"})
}

func TestAnAddressThatIsTooLongInItsNormalFormIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { c.MailConfigured = true })
	email := strings.Repeat("\ufdfa", 80) + "@ex.org"
	w.client().expect(422, "POST", "/auth/password/forgot", route.Object{"email": email})
	w.client().expect(422, "POST", "/auth/register", route.Object{"email": email, "password": newPassword})
}

func TestTheFeedReportsAnAddressThatWaits(t *testing.T) {
	t.Parallel()
	w := (&feedWorld{}).start(t, func(t *testing.T, change ...func(*testConfig)) *world {
		return newWorld(t, append(change, func(c *testConfig) { c.MailConfigured = true })...)
	})
	laptop := w.client().register("ann@example.com")
	stream := w.feed(w.client().login("ann@example.com"), "")
	stream.want(protocol.FeedStarted, "")
	laptop.changeEmail("ann@example.net")
	stream.want("account.changed", laptop.account.AccountID.String())
	laptop.expect(204, "DELETE", "/account/pending-email", nil)
	stream.want("account.changed", laptop.account.AccountID.String())
}
