package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }

var printedPassword = regexp.MustCompile(`password +(\S+)`)

func passwordOf(p *sitetest.Process) string {
	p.T.Helper()
	match := printedPassword.FindStringSubmatch(p.Printed())
	if match == nil {
		p.T.Fatal("no password was printed")
	}
	return match[1]
}

// client is a signed-in user of the API.
type client struct {
	t      *testing.T
	base   string
	http   *http.Client
	cookie *http.Cookie
	csrf   string
	ledger *sitetest.Ledger
}

func newClient(t *testing.T, base string) *client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, base: base, http: &http.Client{Transport: transport}, ledger: sitetest.NewLedger(t)}
}

// signIn answers the status; with 200 the client is signed in.
func (c *client) signIn(email, password string) int {
	c.t.Helper()
	response := c.send(http.MethodPost, "/auth/login", map[string]string{"email": email, "password": password})
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode
	}
	for _, cookie := range response.Cookies() {
		if cookie.Name == "session" || cookie.Name == "__Host-session" {
			c.cookie = cookie
		}
	}
	var session struct {
		CSRF string `json:"csrf_token"`
	}
	c.json(c.send(http.MethodGet, "/auth/session", nil), http.StatusOK, &session)
	c.csrf = session.CSRF
	return http.StatusOK
}

func (c *client) send(method, path string, body any) *http.Response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), sitetest.Patience)
	c.t.Cleanup(cancel)
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.cookie != nil {
		request.AddCookie(c.cookie)
	}
	if c.csrf != "" {
		request.Header.Set("X-CSRF-Token", c.csrf)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ledger.Count(method+" "+path, began, response.StatusCode, nil)
	return response
}

func (c *client) json(response *http.Response, status int, into any) {
	c.t.Helper()
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if response.StatusCode != status {
		c.t.Fatalf("%s %s: %s, want %d: %s", response.Request.Method, response.Request.URL.Path, response.Status, status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
}

// chat begins a turn and answers its name and its stream.
func (c *client) chat(text string) (turn string, stream *bufio.Scanner) {
	c.t.Helper()
	response := c.send(http.MethodPost, "/chat", map[string]any{"input": []map[string]string{{"type": "text", "text": text}}})
	c.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // what came of it is shown
		c.t.Fatalf("POST /chat: %s: %s", response.Status, text)
	}
	stream = bufio.NewScanner(response.Body)
	stream.Buffer(nil, 16<<20)
	return response.Header.Get("X-Turn-Id"), stream
}

// awaitEvent reads a stream until an event of a type.
func awaitEvent(t *testing.T, stream *bufio.Scanner, kind string) {
	t.Helper()
	for stream.Scan() {
		if stream.Text() == "event: "+kind {
			return
		}
	}
	t.Fatalf("the stream ends without %s (%v)", kind, stream.Err())
}

// signedUp is a new account of the installation.
func signedUp(t *testing.T, i *sitetest.Hosted) *client {
	t.Helper()
	const email = "grace@example.org"
	code, printed, complaint := sitetest.Finish(t, i.Environment, "user", "add", email)
	if code != 0 {
		t.Fatalf("user add: %d %s", code, complaint)
	}
	c := newClient(t, "http://"+i.Public)
	if status := c.signIn(email, lastWord(printed)); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	return c
}
