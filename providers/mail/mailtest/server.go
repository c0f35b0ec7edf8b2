// Package mailtest provides a mail server for tests, which keeps the mails that it accepts. Only tests import it.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// waitLimit is the limit of the wait for a mail.
const waitLimit = 60 * time.Second

// Options describe a server.
type Options struct {
	ImplicitTLS bool   // TLS from the start
	StartTLS    bool   // STARTTLS is offered
	User        string // and Password: what a client has to sign in with; empty: nothing
	Password    string
	// Answer returns the response to a mail that was received, for example "451 try later", or Drop or Hang; nil, or an empty
	// text: it is accepted.
	Answer func(Mail) string
	// Recipient returns the response to RCPT TO; nil, or an empty text: it is accepted.
	Recipient func(address string) string
}

// The values of Answer with which a server keeps a mail and does not respond to it.
const (
	Drop = "drop" // it ends the connection
	Hang = "hang" // it waits for the end of the connection
)

// Mail is a mail that was accepted.
type Mail struct {
	From, To string // of the envelope
	Header   netmail.Header
	Subject  string // decoded
	Text     string
}

var link = regexp.MustCompile(`https?://\S+#mt1_\S+`)

// Link returns the link in the mail; empty: none.
func (m Mail) Link() string { return link.FindString(m.Text) }

// Token returns the token of the link.
func (m Mail) Token() string {
	_, token, _ := strings.Cut(m.Link(), "#")
	return token
}

// Server is a running mail server.
type Server struct {
	Address string // host:port
	CAFile  string // the certificate of the server (PEM)

	t       *testing.T
	options Options
	tls     *tls.Config
	mails   chan Mail

	mu       sync.Mutex
	listener net.Listener // guarded by mu; nil: stopped
	open     map[net.Conn]bool
	running  sync.WaitGroup
}

// New starts a server on a free port of 127.0.0.1. It ends with the test.
func New(t *testing.T, options Options) *Server { return NewOn(t, "127.0.0.1:0", options) }

// NewOn starts a server on an address.
func NewOn(t *testing.T, address string, options Options) *Server {
	t.Helper()
	s := &Server{t: t, options: options, Address: address, mails: make(chan Mail, 1000), open: map[net.Conn]bool{}}
	certified := httptest.NewTLSServer(nil) // for its certificate
	s.tls = certified.TLS.Clone()
	s.tls.NextProtos = nil
	s.CAFile = filepath.Join(t.TempDir(), "mail-ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	certified.Close()
	if err := os.WriteFile(s.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start lets the server listen at its address.
func (s *Server) Start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.listener, s.Address = listener, listener.Addr().String()
	s.mu.Unlock()
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = true
			s.mu.Unlock()
			s.running.Go(func() {
				defer func() {
					_ = conn.Close()
					s.mu.Lock()
					delete(s.open, conn)
					s.mu.Unlock()
				}()
				s.serve(conn)
			})
		}
	})
}

// Stop ends the server and its connections. Start starts it again.
func (s *Server) Stop() {
	s.mu.Lock()
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Next returns the next mail that was accepted.
func (s *Server) Next(t *testing.T) Mail {
	t.Helper()
	select {
	case m := <-s.mails:
		return m
	case <-time.After(waitLimit):
		t.Fatal("no mail arrived")
		return Mail{}
	}
}

// Waiting returns the number of accepted mails that Next has not returned.
func (s *Server) Waiting() int { return len(s.mails) }

// session is the state of a connection.
type session struct {
	*textproto.Conn
	conn     net.Conn
	isTLS    bool
	signedIn bool
	mail     Mail
}

func (s *Server) serve(conn net.Conn) {
	if s.options.ImplicitTLS {
		conn = tls.Server(conn, s.tls)
	}
	c := &session{textproto.NewConn(conn), conn, s.options.ImplicitTLS, s.options.User == "", Mail{}}
	_ = c.PrintfLine("220 mail.test ready")
	for {
		line, err := c.ReadLine()
		if err != nil || !s.command(c, line) {
			return
		}
	}
}

// command performs a command. It returns false when the connection ends.
func (s *Server) command(c *session, line string) bool {
	verb, argument, _ := strings.Cut(line, " ")
	reply := "250 done"
	switch strings.ToUpper(verb) {
	case "EHLO":
		reply = s.greeting(c)
	case "STARTTLS":
		_ = c.PrintfLine("220 go ahead")
		secured := tls.Server(c.conn, s.tls)
		c.Conn, c.conn, c.isTLS = textproto.NewConn(secured), secured, true
		return true
	case "AUTH":
		c.signedIn = argument == "PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+s.options.User+"\x00"+s.options.Password))
		reply = "235 welcome"
		if !c.signedIn {
			reply = "535 5.7.8 wrong user or password"
		}
	case "MAIL":
		c.mail = Mail{From: addressIn(argument)}
		if !c.signedIn {
			reply = "530 5.7.0 sign in first"
		}
	case "RCPT":
		c.mail.To = addressIn(argument)
		if s.options.Recipient != nil {
			if other := s.options.Recipient(c.mail.To); other != "" {
				reply = other
			}
		}
	case "DATA":
		reply = s.receive(c)
	case "QUIT":
		_ = c.PrintfLine("221 bye")
		return false
	case "NOOP", "RSET":
	default:
		reply = "502 5.5.1 unknown command"
	}
	return reply != "" && c.PrintfLine("%s", reply) == nil
}

func (s *Server) greeting(c *session) string {
	lines := []string{"mail.test", "8BITMIME", "ENHANCEDSTATUSCODES", "SMTPUTF8"}
	if s.options.StartTLS && !c.isTLS {
		lines = append(lines, "STARTTLS")
	}
	if s.options.User != "" {
		lines = append(lines, "AUTH PLAIN")
	}
	for i, line := range lines {
		lines[i] = "250-" + line
	}
	lines[len(lines)-1] = "250 " + lines[len(lines)-1][4:]
	return strings.Join(lines, "\r\n")
}

// receive receives a mail and returns the response; empty: the connection has ended.
func (s *Server) receive(c *session) string {
	_ = c.PrintfLine("354 go ahead")
	content, err := c.ReadDotBytes()
	if err != nil {
		return ""
	}
	m, err := parse(c.mail, string(content))
	if err != nil {
		s.t.Errorf("a mail cannot be read: %v\n%s", err, content)
		return "554 5.6.0 not a mail"
	}
	if s.options.Answer != nil {
		switch reply := s.options.Answer(m); reply {
		case "":
		case Drop, Hang:
			s.mails <- m
			if reply == Hang {
				_, _ = c.ReadLine()
			}
			return ""
		default:
			return reply
		}
	}
	s.mails <- m
	return "250 2.0.0 accepted"
}

func parse(m Mail, content string) (Mail, error) {
	read, err := netmail.ReadMessage(bufio.NewReader(strings.NewReader(content)))
	if err != nil {
		return m, err
	}
	m.Header = read.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil {
		return m, err
	}
	body := read.Body
	switch encoding := read.Header.Get("Content-Transfer-Encoding"); encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "8bit", "7bit":
	default:
		return m, fmt.Errorf("encoding %q", encoding)
	}
	text, err := io.ReadAll(body)
	m.Text = strings.ReplaceAll(string(text), "\r\n", "\n")
	return m, err
}

// addressIn returns the address in angle brackets.
func addressIn(argument string) string {
	_, rest, _ := strings.Cut(argument, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}
