package mail_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/providers/mail"
	"turnstone/providers/mail/mailtest"
)

const from = "Turnstone <no-reply@example.org>"

// clientOf returns a client of a server.
func clientOf(t *testing.T, scheme string, s *mailtest.Server, user *url.Userinfo) *mail.Client {
	t.Helper()
	c, err := mail.New(mail.Options{URL: (&url.URL{Scheme: scheme, Host: s.Address, User: user}).String(), From: from, CAFile: s.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// message returns a mail to an address.
func message(to string) *mail.Message {
	return &mail.Message{ID: "mail_1", To: to, At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Subject: "Réinitialiser", Text: "日本語 …\n\nhttps://chat.example.org/reset-password#mt1_" + strings.Repeat("a", 90) + "\n.\nend\n"}
}

func TestAMailArrivesAsItWasWritten(t *testing.T) {
	t.Parallel()
	account := url.UserPassword("me@example.org", "p@ss:word/%")
	for name, test := range map[string]struct {
		options mailtest.Options
		scheme  string
		user    *url.Userinfo
	}{
		"TLS from the start":              {mailtest.Options{ImplicitTLS: true, User: "me@example.org", Password: "p@ss:word/%"}, "smtps", account},
		"loopback without encryption":     {mailtest.Options{}, "smtp", nil},
		"loopback with a sign-in":         {mailtest.Options{User: "me@example.org", Password: "p@ss:word/%"}, "smtp", account},
		"TLS from the start, no password": {mailtest.Options{ImplicitTLS: true}, "smtps", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailtest.New(t, test.options)
			c := clientOf(t, test.scheme, s, test.user)
			if err := c.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := message("ada@example.net")
			if err := c.Send(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			got := s.Next(t)
			if got.From != "no-reply@example.org" || got.To != want.To || got.Subject != want.Subject || got.Text != want.Text {
				t.Errorf("%+v", got)
			}
			for field, value := range map[string]string{
				"Message-Id": "<mail_1@example.org>", "Auto-Submitted": "auto-generated", "To": "<ada@example.net>", "From": `"Turnstone" <no-reply@example.org>`,
				"Date": "Sun, 01 Mar 2026 12:00:00 +0000", "User-Agent": "", "X-Mailer": "",
			} {
				if got.Header.Get(field) != value {
					t.Errorf("%s: %q, want %q", field, got.Header.Get(field), value)
				}
			}
			if s.Waiting() != 0 {
				t.Error("Ready has sent a mail")
			}
		})
	}
}

func TestSTARTTLSIsRequired(t *testing.T) {
	t.Parallel()
	for _, offered := range []bool{true, false} {
		s := mailtest.New(t, mailtest.Options{StartTLS: offered, User: "me", Password: "secret"})
		c, err := mail.NewRemote(mail.Options{URL: "smtp://me:secret@" + s.Address, From: from, CAFile: s.CAFile})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Send(t.Context(), message("ada@example.net"))
		switch {
		case offered && err != nil:
			t.Errorf("with STARTTLS: %v", err)
		case offered:
			s.Next(t)
		case err == nil || !strings.Contains(err.Error(), "does not support STARTTLS") || s.Waiting() != 0:
			t.Errorf("without STARTTLS: %v", err)
		}
	}
}

func TestAWrongPasswordAndAnUnknownCertificateFail(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t, mailtest.Options{ImplicitTLS: true, User: "me", Password: "right"})
	if err := clientOf(t, "smtps", s, url.UserPassword("me", "wrong")).Ready(t.Context()); err == nil || strings.Contains(err.Error(), "wrong ") && !strings.Contains(err.Error(), "535") {
		t.Errorf("a wrong password: %v", err)
	}
	c, err := mail.New(mail.Options{URL: "smtps://me:right@" + s.Address, From: from})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// Errors are logged and stored with the job, so they must not name the recipient, whom many servers repeat.
func TestOnlyARefusalForGoodIsOneAndNoErrorNamesTheRecipient(t *testing.T) {
	t.Parallel()
	const to = "canary@example.net"
	for reply, refused := range map[string]bool{
		"550 5.1.1 <" + to + "> unknown": true, "451 4.7.1 <" + to + "> greylisted": false, "552 too large": true, "421 4.3.2 shutting down": false,
	} {
		for where, options := range map[string]mailtest.Options{
			"recipient": {Recipient: func(string) string { return reply }}, "content": {Answer: func(mailtest.Mail) string { return reply }},
		} {
			s := mailtest.New(t, options)
			err := clientOf(t, "smtp", s, nil).Send(t.Context(), message(to))
			if err == nil || errors.Is(err, mail.ErrRefused) != refused || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), reply[:3]) {
				t.Errorf("%s, %s: %v", where, reply, err)
			}
			if s.Waiting() != 0 {
				t.Errorf("%s, %s: a mail was accepted", where, reply)
			}
		}
	}
	s := mailtest.New(t, mailtest.Options{})
	c := clientOf(t, "smtp", s, nil)
	s.Stop()
	if err := c.Send(t.Context(), message(to)); err == nil || errors.Is(err, mail.ErrRefused) || strings.Contains(err.Error(), "canary") {
		t.Errorf("the server is down: %v", err)
	}
}

// A repeated mail would annoy its recipient, so an attempt that the server may have accepted is not one that failed.
func TestAMailWithoutAResponseIsNotOneThatWasNotAccepted(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"smtp", "smtps"} {
		s := mailtest.New(t, mailtest.Options{ImplicitTLS: scheme == "smtps", Answer: func(mailtest.Mail) string { return mailtest.Drop }})
		if err := clientOf(t, scheme, s, nil).Send(t.Context(), message("ada@example.net")); !errors.Is(err, mail.ErrUnanswered) {
			t.Errorf("%s: %v", scheme, err)
		}
		s.Next(t)
	}
}

// The node waits for its mails when it stops, so no server may delay that.
func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	send := func(c *mail.Client) (cancel func() error) {
		ctx, cancelContext := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- c.Send(ctx, message("ada@example.net")) }()
		return func() error {
			cancelContext()
			select {
			case err := <-result:
				return err
			case <-time.After(20 * time.Second): // less than the shortest limit of a wait for the server
				t.Fatal("it waits for the server")
				return nil
			}
		}
	}
	for _, scheme := range []string{"smtp", "smtps"} {
		s := mailtest.New(t, mailtest.Options{ImplicitTLS: scheme == "smtps", Answer: func(mailtest.Mail) string { return mailtest.Hang }})
		cancel := send(clientOf(t, scheme, s, nil))
		s.Next(t)
		if err := cancel(); !errors.Is(err, mail.ErrUnanswered) {
			t.Errorf("after the mail, %s: %v", scheme, err)
		}
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Address = silent.Addr().String()
		cancel = send(clientOf(t, scheme, s, nil))
		conn, err := silent.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := cancel(); err == nil || errors.Is(err, mail.ErrUnanswered) {
			t.Errorf("before the greeting, %s: %v", scheme, err)
		}
		_, _ = conn.Close(), silent.Close()
	}
}

func TestNoAddressAddsAHeaderOrARecipient(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t, mailtest.Options{})
	c := clientOf(t, "smtp", s, nil)
	for _, to := range []string{
		"ada@example.net\r\nBcc: eve@example.net", "ada@example.net, eve@example.net", "Ada <ada@example.net>", "ada@example.net>\r\nRCPT TO:<eve@example.net", "", "ada", "\"a\nb\"@example.net",
	} {
		if err := c.Send(t.Context(), message(to)); !errors.Is(err, mail.ErrRefused) {
			t.Errorf("%q: %v", to, err)
		}
	}
	if s.Waiting() != 0 {
		t.Error("a mail was sent")
	}
	injected := message("ada@example.net")
	injected.Subject = "Hello\r\nBcc: eve@example.net"
	if err := c.Send(t.Context(), injected); err != nil {
		t.Fatal(err)
	}
	if got := s.Next(t); got.Header.Get("Bcc") != "" || got.To != "ada@example.net" {
		t.Errorf("%+v", got)
	}
	for _, sender := range []string{"", "nobody", "A <a@example.org>\r\nBcc: eve@example.net", "a@example.org, b@example.org"} {
		if _, err := mail.New(mail.Options{URL: "smtp://127.0.0.1", From: sender}); err == nil {
			t.Errorf("the sender %q is accepted", sender)
		}
	}
}

func TestURLsOfMailServersAreChecked(t *testing.T) {
	t.Parallel()
	empty := t.TempDir() + "/empty.pem"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "mail.example.org", "http://mail.example.org", "smtp://", "smtps://me:secret@mail.example.org/path", "smtp://mail.example.org?x=1", "smtp://me:secret@mail.example.org:99999", "smtp://me:sec%ret@mail.example.org"} {
		if _, err := mail.New(mail.Options{URL: address, From: from}); err == nil || strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, file := range []string{empty, empty + ".missing"} {
		if _, err := mail.New(mail.Options{URL: "smtps://mail.example.org", From: from, CAFile: file}); err == nil {
			t.Errorf("%s is accepted", file)
		}
	}
}

func TestEveryKindHasATextInEveryLanguage(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, language := range []string{"en", "ar", "ja"} {
		for _, kind := range protocol.MailKinds {
			subject, body := mail.Text(kind, language, "https://chat.example.org", "LINK")
			hasLink := kind == protocol.MailPasswordReset || kind == protocol.MailEmailConfirmation
			if subject == "" || seen[subject] || strings.Contains(subject+body, "{") || !strings.Contains(body, "https://chat.example.org") || strings.Contains(body, "\n\nLINK\n\n") != hasLink || strings.Contains(body, "== ") {
				t.Errorf("%s, %s: %q\n%s", language, kind, subject, body)
			}
			seen[subject] = true
		}
	}
	english, _ := mail.Text(protocol.MailPasswordReset, "en", "", "")
	for language, same := range map[string]bool{"EN-gb": true, "fr": true, "": true, "ja-JP": false} {
		if subject, _ := mail.Text(protocol.MailPasswordReset, language, "", ""); (subject == english) != same {
			t.Errorf("%q: %q", language, subject)
		}
	}
}
