// Package mail sends plain-text mails by SMTP, and has their texts. It is the only package that imports go-mail.
//
// Nothing that a user wrote is part of a mail except the address to which it is sent.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"turnstone/protocol/timelimit"
)

// commandTimeout limits the connection with its sign-in, and then the transfer of a mail.
var commandTimeout = timelimit.Of(20 * time.Second)

// The ports of the schemes (RFC 8314).
const (
	portTLS        = 465
	portSubmission = 587
)

// Options configure a Client.
type Options struct {
	// URL names the server: smtps://user:password@host:port uses TLS from the start, smtp://… STARTTLS, which is required
	// except on a loopback address, where the connection is not encrypted. The ports are 465 and 587 if there is none.
	// Without a user, the client does not sign in.
	URL    string
	From   string // the address of the sender, with or without a name
	CAFile string // certificates (PEM) that are trusted in addition to those of the system; empty: none
}

// Client sends mails. It opens a connection for each. Its methods may be called from any goroutine.
type Client struct {
	host    string
	from    *netmail.Address
	domain  string // of the sender
	options []gomail.Option
	tls     *tls.Config // of a server that uses TLS from the start; nil: of another one
}

// New returns a client. It does not contact the server. Its errors do not contain the password.
func New(o Options) (*Client, error) { return newClient(o, isLoopback) }

func newClient(o Options, isLoopback func(host string) bool) (*Client, error) {
	c := &Client{}
	var err error
	if c.from, err = netmail.ParseAddress(o.From); err != nil || strings.ContainsAny(o.From, "\r\n") {
		return nil, fmt.Errorf("%q is not the address of a sender (want for example Turnstone <no-reply@example.org>)", o.From)
	}
	c.domain = c.from.Address[strings.LastIndexByte(c.from.Address, '@')+1:]
	server, err := url.Parse(o.URL)
	if err != nil || server.Scheme != "smtp" && server.Scheme != "smtps" || server.Hostname() == "" || strings.Trim(server.Path, "/") != "" || server.RawQuery != "" {
		return nil, errors.New("not the URL of a mail server (want for example smtps://user:password@mail.example.org)")
	}
	c.host = server.Hostname()
	port, loopback := portSubmission, isLoopback(c.host)
	encryption := gomail.TLSMandatory
	switch {
	case server.Scheme == "smtps":
		port, encryption = portTLS, gomail.TLSOpportunistic // connect has done it: such a server offers no STARTTLS
	case loopback:
		encryption = gomail.NoTLS
	}
	if text := server.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
			return nil, fmt.Errorf("invalid port %q", text)
		}
	}
	roots, err := trusted(o.CAFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{ServerName: c.host, MinVersion: tls.VersionTLS12, RootCAs: roots}
	if server.Scheme == "smtps" {
		c.tls = config
	}
	c.options = []gomail.Option{
		gomail.WithPort(port), gomail.WithTLSPolicy(encryption), gomail.WithTimeout(commandTimeout), gomail.WithHELO(heloName(c.domain)),
		gomail.WithTLSConfig(config),
	}
	if user := server.User.Username(); user != "" {
		password, _ := server.User.Password()
		kind := gomail.SMTPAuthAutoDiscover
		if server.Scheme == "smtp" && loopback {
			kind = gomail.SMTPAuthPlainNoEnc
		}
		c.options = append(c.options, gomail.WithSMTPAuth(kind), gomail.WithUsername(user), gomail.WithPassword(password))
	}
	if _, err := gomail.NewClient(c.host, c.options...); err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	return c, nil
}

// heloName returns the name with which the client introduces itself: the domain of the sender, because the name of a host computer in
// a private network means nothing to the server.
func heloName(domain string) string {
	if net.ParseIP(strings.Trim(domain, "[]")) != nil {
		return "localhost"
	}
	return domain
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// trusted returns the certificates of the system with those of a file; nil: only those of the system.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil // the default of a tls.Config
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate (PEM)", file)
	}
	return pool, nil
}

// connection is a connection to the server, on which the client has signed in.
type connection struct {
	client *gomail.Client
	smtp   *smtp.Client
	close  func()
}

// connect connects to the server and signs in. The end of ctx closes the connection, also while it is used.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	end := func() {}
	dial := func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the library waits without a context
		end = func() { stop(); _ = conn.Close() }
		if c.tls == nil {
			return conn, nil
		}
		secured := tls.Client(conn, c.tls)
		return secured, secured.HandshakeContext(dialing)
	}
	client, err := gomail.NewClient(c.host, append(slices.Clone(c.options), gomail.WithDialContextFunc(dial))...)
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	connected, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		end()
		return nil, fmt.Errorf("connecting to the mail server: %w", err)
	}
	return &connection{client, connected, func() {
		_ = client.CloseWithSMTPClient(connected) // what the connection was for has succeeded or failed before
		end()
	}}, nil
}

// Message is a mail.
type Message struct {
	ID      string // identifies the mail, the same in each attempt: the part of the Message-ID before the @
	To      string // an address without a name
	At      time.Time
	Subject string
	Text    string
}

// The errors of Send that have a meaning of their own.
var (
	// ErrRefused is the error for a mail that the server refuses permanently.
	ErrRefused = errors.New("the mail server refused the mail")
	// ErrUnanswered is the error for a mail that the server got and may have accepted: its response is missing.
	ErrUnanswered = errors.New("the mail server got the mail and did not respond")
)

// Send sends a mail, in at most twice commandTimeout, or until ctx ends. After an error that is neither ErrRefused nor
// ErrUnanswered, the mail was not accepted and may be sent again. The errors name neither the recipient nor the content.
func (c *Client) Send(ctx context.Context, m *Message) error {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	message.FromMailAddress(c.from)
	if to, err := netmail.ParseAddress(m.To); err != nil || to.Name != "" || to.Address != m.To || message.To(m.To) != nil {
		return fmt.Errorf("%w: the address of the recipient is not valid", ErrRefused)
	}
	message.Subject(m.Subject)
	message.SetMessageIDWithValue(m.ID + "@" + c.domain)
	message.SetDateWithValue(m.At)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notice in return
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	open, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer open.close()
	err = open.client.SendWithSMTPClient(open.smtp, message)
	if err == nil || message.IsDelivered() {
		return nil
	}
	return sendError(err)
}

// sendError returns an error without the address of the recipient, which the library and many servers repeat.
func sendError(err error) error {
	var failed *gomail.SendError
	isSendError := errors.As(err, &failed)
	if isSendError && failed.Reason == gomail.ErrSMTPDataClose && failed.ErrorCode() == 0 {
		return ErrUnanswered
	}
	if !isSendError || failed.ErrorCode() == 0 {
		return errors.New("the connection to the mail server failed before it accepted the mail")
	}
	const permanent = 500
	at := fmt.Sprintf("%s: the mail server responded %d %s", failed.Reason, failed.ErrorCode(), failed.EnhancedStatusCode())
	// A refused sender is a mistake of the operator, after which the mail is still wanted.
	if failed.ErrorCode() >= permanent && failed.Reason != gomail.ErrSMTPMailFrom {
		return fmt.Errorf("%w: %s", ErrRefused, at)
	}
	return errors.New(at)
}

// Ready checks that the server accepts the connection and the sign-in. It sends no mail.
func (c *Client) Ready(ctx context.Context) error {
	open, err := c.connect(ctx)
	if err != nil {
		return err
	}
	open.close()
	return nil
}
