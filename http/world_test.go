package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
)

// The actor system's throttle of dead letters sleeps for a second after the system was shut down.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(embeddedtest.Main(m),
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"),
		// Of a client whose server is gone: it looks for it once a second, and ends after that when the client was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// testClock is a clock that only a test moves.
type testClock struct {
	mu sync.Mutex
	at time.Time // guarded by mu
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// testLimiter passes everything, unless a test says otherwise.
type testLimiter struct {
	mu    sync.Mutex
	limit persistence.Decision // guarded by mu
	err   error                // guarded by mu
	drawn []string             // guarded by mu: bucket and key
	waits []time.Duration      // guarded by mu: the time that each draw was given
	real  *persistence.Limiter // set before requests, with buckets: decides on those

	buckets []string
}

var testQuota = persistence.Limit{Rate: 60, Period: time.Minute, Burst: 20}

func newTestLimiter() *testLimiter {
	return &testLimiter{limit: persistence.Decision{Allowed: true, Limit: testQuota, Remaining: 59, ResetAfter: time.Second}}
}

func (l *testLimiter) Take(ctx context.Context, bucket, key string) (persistence.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = append(l.drawn, bucket+" "+key)
	if deadline, bounded := ctx.Deadline(); bounded {
		l.waits = append(l.waits, time.Until(deadline))
	}
	if l.real != nil && slices.Contains(l.buckets, bucket) {
		return l.real.Take(ctx, bucket, key)
	}
	return l.limit, l.err
}

func (l *testLimiter) set(limit persistence.Decision, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit, l.err = limit, err
}

func (l *testLimiter) refuse() {
	l.set(persistence.Decision{Limit: testQuota, RetryAfter: 1200 * time.Millisecond}, nil)
}

func (l *testLimiter) breakDown() { l.set(persistence.Decision{}, errors.New("connection refused")) }

// world is a Server on a database of its own.
type world struct {
	*Server
	t        *testing.T
	clock    *testClock
	limiter  *testLimiter
	database pgtest.Database
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	return worldOn(t, pgtest.NewDatabase(t), change...)
}

func worldOn(t *testing.T, database pgtest.Database, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, clock: &testClock{at: time.Now().Truncate(time.Millisecond)}, limiter: newTestLimiter(), database: database}
	config := Config{
		DB: database.Open(t), Limiter: w.limiter, Log: zaptest.NewLogger(t), Now: w.clock.now, RegistrationOpen: true,
		Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
		Environment: "test", BuildSHA: "abc", ModelFamily: "scripted",
		Ready: map[string]Probe{"persistence": func(context.Context) error { return nil }},
	}
	for _, c := range change {
		c(&config)
	}
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	return w
}

// client is a browser: it keeps cookies and the CSRF token.
type client struct {
	*world
	cookies map[string]string
	csrf    string
	account protocol.Account
	address string // empty: 192.0.2.1
}

// at moves the browser to another address.
func (c *client) at(address string) *client {
	c.address = address
	return c
}

func (w *world) client() *client { return &client{world: w, cookies: map[string]string{}} }

// reply is an answer, read.
type reply struct {
	status int
	header stdhttp.Header
	body   []byte
	Problem
}

func (r *reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("body %s: %v", r.body, err)
	}
}

// rawBody is sent as it is.
type rawBody string

// do asks and keeps what the answer says about cookies. body is encoded as JSON; headers are name, value, …
func (c *client) do(method, path string, body any, headers ...string) *reply {
	c.t.Helper()
	var content io.Reader
	if text, isRaw := body.(rawBody); isRaw {
		content = strings.NewReader(string(text))
	} else if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	request := httptest.NewRequest(method, "https://"+c.BaseURL.Host+path, content)
	request.RemoteAddr = net.JoinHostPort(cmp.Or(c.address, "192.0.2.1"), "4711")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.csrf != "" && !safe(method) {
		request.Header.Set(csrfHeader, c.csrf)
	}
	for name, value := range c.cookies {
		request.AddCookie(&stdhttp.Cookie{Name: name, Value: value})
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
		}
	}
	recorder := httptest.NewRecorder()
	c.ServeHTTP(recorder, request)
	result := recorder.Result()
	for _, cookie := range result.Cookies() {
		if cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		} else {
			c.cookies[cookie.Name] = cookie.Value
		}
	}
	answer := &reply{status: result.StatusCode, header: result.Header, body: recorder.Body.Bytes()}
	_ = json.Unmarshal(answer.body, &answer.Problem)
	return answer
}

// expect is do that insists on a status.
func (c *client) expect(status int, method, path string, body any, headers ...string) *reply {
	c.t.Helper()
	answer := c.do(method, path, body, headers...)
	if answer.status != status {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, answer.status, answer.body, status)
	}
	return answer
}

const testPassword = "correct horse battery"

// register makes an account and stays signed in.
func (c *client) register(email string) *client {
	c.t.Helper()
	answer := c.expect(201, "POST", "/auth/register", object{"email": email, "password": testPassword, "display_name": "Some Body"})
	c.keep(answer)
	return c
}

func (c *client) login(email string) *client {
	c.t.Helper()
	c.keep(c.expect(200, "POST", "/auth/login", object{"email": email, "password": testPassword}))
	return c
}

func (c *client) keep(answer *reply) {
	c.t.Helper()
	var info protocol.SessionInfo
	answer.into(c.t, &info)
	c.csrf, c.account = info.CSRFToken, info.Account
}

func (c *client) session() *protocol.SessionInfo {
	c.t.Helper()
	answer := c.expect(200, "GET", "/auth/session", nil)
	c.keep(answer)
	info := &protocol.SessionInfo{}
	answer.into(c.t, info)
	return info
}

func (c *client) token() string { return c.cookies[c.cookieName()] }

// twin is another browser with the same token.
func (c *client) twin() *client {
	other := c.client()
	other.cookies[c.cookieName()], other.csrf, other.account = c.token(), c.csrf, c.account
	return other
}

// events lists what the audit says about an account, in order.
func (w *world) events(account protocol.AccountID) []string {
	w.t.Helper()
	return query[string](w, `select event from audit where account_id = $1 order by n`, account)
}

// query reads one column as the superuser, past row-level security.
func query[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.database.AdminURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(w.t.Context(), sql, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func contains(list []string, want persistence.SecurityEvent) bool {
	for _, one := range list {
		if one == string(want) {
			return true
		}
	}
	return false
}

// alike says whether two answers are the same but for what names the request.
func alike(a, b *reply) bool {
	return a.status == b.status && strings.ReplaceAll(string(a.body), a.RequestID, "") == strings.ReplaceAll(string(b.body), b.RequestID, "")
}
