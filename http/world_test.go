package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"turnstone/actors/node"
	"turnstone/actors/research"
	"turnstone/actors/routing"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn"
	"turnstone/actors/upload"
	"turnstone/http/auth"
	"turnstone/http/ready"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/limits"
	"turnstone/persistence/limits/limitstest"
	"turnstone/persistence/nodes"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/media"
	"turnstone/providers/scanner/signatures"
	"turnstone/providers/tool"
)

// TestMain fails if a test leaks a goroutine.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(checkedHeaders{embeddedtest.Main(m)},
		// The dead letter throttle of the actor system sleeps for a second after the system was shut down.
		goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"),
		// A Redis client whose server has stopped dials it once a second. After the client is closed, its next attempt
		// ends the goroutine.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// testClock is a clock that only the test advances.
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

// testLimiter decides as the test chooses, except on buckets for which the test sets a real limiter.
type testLimiter struct {
	limitstest.Chosen

	// Set before the first request.
	real    *limits.Limiter // decides on buckets; nil: none
	buckets []string
}

// Take implements exchange.Limiter.
func (l *testLimiter) Take(ctx context.Context, bucket, key string) (limits.Decision, error) {
	decision, err := l.Chosen.Take(ctx, bucket, key)
	if l.real != nil && slices.Contains(l.buckets, bucket) {
		return l.real.Take(ctx, bucket, key)
	}
	return decision, err
}

// Values of sessions on which clients and operators rely. The tests repeat them, so that a change makes a test fail.
const (
	tokenPrefix     = "s1_"
	tokenBytes      = 32
	minSecret       = 32 // bytes
	sessionTouch    = 5 * time.Minute
	sessionRotation = 24 * time.Hour
	sessionOverlap  = time.Minute
	sudoLifetime    = 10 * time.Minute
	flowLifetime    = 10 * time.Minute
)

// Values of all requests on which clients and operators rely.
const (
	keyField       = "Idempotency-Key"
	replayedField  = "Idempotent-Replayed"
	apiPolicy      = "default-src 'none'; frame-ancestors 'none'"          // Content-Security-Policy of all responses that are not pages
	downloadPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'" // that of the content of a file
	reportAge      = time.Second                                           // how long a report of /ready is reused
	reservedSlots  = 2                                                     // for cancels
	maxStreams     = 50                                                    // of an account on one node
)

// pathNames returns the names of the parameters of a path.
func pathNames(path string) (names []string) {
	for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		names = append(names, found[1])
	}
	return names
}

// identifierNames is pathNames without the names of what every account has.
func identifierNames(path string) []string {
	return slices.DeleteFunc(pathNames(path), func(name string) bool { return name == "source" })
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// cookieName returns the name of the session cookie.
func (w *world) cookieName() string {
	if w.BaseURL.Scheme == "https" {
		return "__Host-session"
	}
	return "session"
}

// testConfig is the configuration of a world, which tests edit.
type testConfig struct {
	Config
	database    pgtest.Database
	unavailable map[protocol.ResearchSource]string // to research tasks
	wrapTurns   func(turn.Store) turn.Store        // replaces the store of the turns of the node; nil: it is used as it is
	uploads     upload.Config                      // its store, objects, scanner and guard replace those of the host of uploads, unless they are nil
}

// testNode is a node that runs turns, uploads and research tasks.
type testNode struct {
	*turn.Host
	process *node.Node
}

func (n *testNode) ID() protocol.NodeID { return n.process.ID() }

func (n *testNode) Drain(ctx context.Context, grace time.Duration) error {
	return n.process.Drain(ctx, grace)
}

// startNode starts a node, which ends with the test, and sets c.Uploads and c.Research.
func (c *testConfig) startNode(t *testing.T, of node.Config, turns turn.Config, uploads upload.Config) *testNode {
	t.Helper()
	of.Logger, of.Directory = turns.Logger, nodes.NewDirectory(c.DB.DB)
	process := node.New(of)
	turns.Node = process.Host()
	n := &testNode{turn.New(turns), process}
	uploads.Live, uploads.Node, uploads.Detector, uploads.Logger = n.Running, process.Host(), media.Detector{}, c.Log
	if uploads.Store == nil {
		uploads.Store = c.DB.Uploads
	}
	if uploads.Objects == nil {
		uploads.Objects = c.database.Objects(t)
	}
	if uploads.Scanner == nil {
		uploads.Scanner = signatures.Scanner{}
	}
	if uploads.Inspector == nil {
		uploads.Inspector = noInspector{}
	}
	host := upload.New(uploads)
	tasks := research.New(research.Config{Node: process.Host(), Store: c.DB.Research, Worker: tideWorker{}, Capacity: 8, Logger: c.Log})
	c.Uploads, c.Research = host, tasks
	c.ResearchAdmission = &research.Admission{
		Consents: c.DB.Memory, Files: c.DB.Files, Conversations: c.DB.Conversations, Settings: c.DB.Accounts, Unavailable: c.unavailable,
	}
	process.Attach(n.Load, n.Host, host, tasks)
	t.Cleanup(process.Stop)
	if err := process.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// noInspector finds no content encrypted. The tests of the whole program use the real one.
type noInspector struct{}

func (noInspector) Encrypted(context.Context, func() (io.ReadCloser, error), string) (bool, error) {
	return false, nil
}

// use replaces the database.
func (c *testConfig) use(db *persistence.Stores) { c.DB = db }

// world is a Server on a database of its own.
type world struct {
	*Server
	DB       *persistence.Stores
	t        *testing.T
	clock    *testClock
	limiter  *testLimiter
	database pgtest.Database
	changes  clocktest.Changes // jobs have ended, streams have continued, uploads or tasks were stored, or bodies are being read
}

// noteStored notifies changes of the log lines of the transitions of uploads and research tasks.
func (w *world) noteStored(entry zapcore.Entry) error {
	if strings.HasSuffix(entry.Message, " stored") {
		w.changes.Notify()
	}
	return nil
}

// lowCost makes the hash of a password cheap. With the recommended cost and the race detector, each takes 0.2 s.
var lowCost = &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

func newWorld(t *testing.T, change ...func(*testConfig)) *world {
	t.Helper()
	return worldOn(t, pgtest.NewDatabase(t), change...)
}

// catalogueOf returns the tools of a service with the scripted model.
func catalogueOf(t *testing.T, db *persistence.Stores) *toolbox.Catalogue {
	t.Helper()
	stores := &tool.Stores{Web: &tool.Web{}, Code: &tool.Code{}}
	if db != nil {
		stores = &tool.Stores{Files: db.FileTexts, Artifacts: db.Artifacts, Projects: db.Projects, Past: db.Search, Locations: db.Memory, Web: &tool.Web{}, Code: &tool.Code{}}
	}
	tools, err := toolbox.NewCatalogue(append(tool.All(stores), tool.DemoAction{}))
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// worldOn returns a Server on an existing database. The functions in change edit its configuration.
func worldOn(t *testing.T, database pgtest.Database, change ...func(*testConfig)) *world {
	t.Helper()
	w := &world{t: t, clock: &testClock{at: time.Now().Truncate(time.Millisecond)}, limiter: &testLimiter{}, database: database}
	config := testConfig{database: database, Config: Config{
		Limiter: w.limiter, Log: zaptest.NewLogger(t, zaptest.WrapOptions(zap.Hooks(w.noteStored))), Now: w.clock.now, RegistrationOpen: true,
		Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
		Environment: "test", BuildSHA: "abc", ModelFamily: "scripted", Abilities: routing.Defaults("a", "b", "c").Abilities(),
		Ready:        map[string]ready.Probe{"persistence": func(context.Context) error { return nil }},
		PasswordCost: lowCost, AttachmentWait: time.Millisecond, Tools: catalogueOf(t, nil),
	}}
	config.use(database.Open(t))
	for _, c := range change {
		c(&config)
	}
	server, err := New(config.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.Server, w.DB = server, config.DB
	return w
}

// client is a browser: it stores cookies and the CSRF token.
type client struct {
	*world
	cookies map[string]string
	csrf    string
	account protocol.Account
	address string // empty: 192.0.2.1
}

// at gives the client another network address.
func (c *client) at(address string) *client {
	c.address = address
	return c
}

func (w *world) client() *client { return &client{world: w, cookies: map[string]string{}} }

// reply is a response that was read. Problem is set if its body is a problem document.
type reply struct {
	status int
	header stdhttp.Header
	body   []byte
	response.Problem
}

func (r *reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("body %s: %v", r.body, err)
	}
}

// rawBody is a body that is sent unchanged.
type rawBody string

// do sends a request and stores the cookies of the response. body is encoded as JSON, except for a rawBody. headers
// alternates names and values; an empty value removes the header.
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
	if c.csrf != "" && !route.Safe(method) {
		request.Header.Set(auth.CSRFHeader, c.csrf)
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
	recorder := &readOnce{ResponseRecorder: httptest.NewRecorder(), flushed: c.changes.Notify}
	c.ServeHTTP(recorder, recorder.reads(request))
	result := recorder.Result()
	for _, cookie := range result.Cookies() {
		if cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		} else {
			c.cookies[cookie.Name] = cookie.Value
		}
	}
	resp := &reply{status: result.StatusCode, header: result.Header, body: recorder.Body.Bytes()}
	if resp.status >= stdhttp.StatusBadRequest {
		if json.Unmarshal(resp.body, &resp.Problem) == nil && resp.Code != "" {
			c.checkCode(method, request.URL.Path, resp)
			if current := string(resp.Current); resp.status == stdhttp.StatusConflict && (current == "" || current == "null") {
				c.t.Errorf("%s %s: the conflict %s has no current state", method, path, resp.body)
			}
			if !isSentence(resp.Detail) {
				c.t.Errorf("%s %s: the detail of %d %s is no sentence: %q", method, path, resp.status, resp.Code, resp.Detail)
			}
		}
	}
	return resp
}

// isSentence reports whether a detail can be shown to a person: it is no code word, and is written as a sentence, which
// begins with a capital letter or a number.
func isSentence(detail string) bool {
	return regexp.MustCompile(`^[\p{Lu}\d]\S* .*[.…]$`).MatchString(detail)
}

// readOnce is a recorder whose client disconnects from the feed of an account, which never ends by itself, after the first
// flush. Only streams are flushed.
type readOnce struct {
	*httptest.ResponseRecorder
	flushed    func()             // nil: nothing waits for the stream
	disconnect context.CancelFunc // nil: the response ends by itself
}

// reads returns the request with a context that ends when the client disconnects.
func (o *readOnce) reads(request *stdhttp.Request) *stdhttp.Request {
	if request.URL.Path != "/events" {
		return request
	}
	ctx, disconnect := context.WithCancel(request.Context())
	o.disconnect = disconnect
	return request.WithContext(ctx)
}

// Flush implements http.Flusher.
func (o *readOnce) Flush() {
	o.ResponseRecorder.Flush()
	if o.flushed != nil {
		o.flushed()
	}
	if o.disconnect != nil {
		o.disconnect()
	}
}

// expect is do that fails the test if the response has another status.
func (c *client) expect(status int, method, path string, body any, headers ...string) *reply {
	c.t.Helper()
	resp := c.do(method, path, body, headers...)
	if resp.status != status {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, resp.status, resp.body, status)
	}
	return resp
}

const testPassword = "correct horse battery"

// register creates an account and signs the client in.
func (c *client) register(email string) *client {
	c.t.Helper()
	resp := c.expect(201, "POST", "/auth/register", route.Object{"email": email, "password": testPassword, "display_name": "Some Body"})
	c.storeSession(resp)
	return c
}

func (c *client) login(email string) *client {
	c.t.Helper()
	c.storeSession(c.expect(200, "POST", "/auth/login", route.Object{"email": email, "password": testPassword}))
	return c
}

// storeSession stores the CSRF token and the account of a response with protocol.SessionInfo.
func (c *client) storeSession(resp *reply) {
	c.t.Helper()
	var info protocol.SessionInfo
	resp.into(c.t, &info)
	c.csrf, c.account = info.CSRFToken, info.Account
}

// session returns the session of the client and stores its CSRF token.
func (c *client) session() *protocol.SessionInfo {
	c.t.Helper()
	resp := c.expect(200, "GET", "/auth/session", nil)
	c.storeSession(resp)
	info := &protocol.SessionInfo{}
	resp.into(c.t, info)
	return info
}

func (c *client) token() string { return c.cookies[c.cookieName()] }

// twin returns another client with the same session token.
func (c *client) twin() *client {
	other := c.client()
	other.cookies[c.cookieName()], other.csrf, other.account = c.token(), c.csrf, c.account
	return other
}

// events returns the security events in the audit of an account, in order.
func (w *world) events(account protocol.AccountID) []string {
	w.t.Helper()
	return query[string](w, `select event from audit where account_id = $1 order by n`, account)
}

// query returns the values of a statement that selects one column. It runs as the superuser, so row-level security does
// not apply.
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

func contains(list []string, want audit.SecurityEvent) bool {
	for _, one := range list {
		if one == string(want) {
			return true
		}
	}
	return false
}

// alike reports whether two responses are equal except for the request identifier.
func alike(a, b *reply) bool {
	return a.status == b.status && strings.ReplaceAll(string(a.body), a.RequestID, "") == strings.ReplaceAll(string(b.body), b.RequestID, "")
}
