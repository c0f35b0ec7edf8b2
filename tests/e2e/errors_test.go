package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/http/response"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/embedded"
)

// Limits of the processes of an errorSite, as low as the tests permit.
const (
	maxLiveTurns = 6
	maxStreams   = 10
	maxFiles     = 101
)

// heldTurn is a message whose answer stops after its first token, until the turn is cancelled.
const heldTurn = "[[script tokens=3 ttft=0 interval=0ms hold=1:errors]]"

// strictFailpoints make requests of the strict process fail: one with an idempotency key is in progress for longer than
// another request waits for it, and a sign-out panics.
const strictFailpoints = "idem.after_claim_before_work=sleep:30s@*;session.after_revoke_before_204=panic@*"

// errorSite is an installation with two processes. The strict one has settings and failpoints with which the requests of
// most tests would fail.
type errorSite struct {
	*sitetest.Site
	strict         string // base URL of the strict process
	strictInternal string // address of its internal listener
	ada            *sitetest.User
}

func newErrorSite(t *testing.T) *errorSite {
	t.Helper()
	i := sitetest.NewHosted(t)
	i.Build = sitetest.Failpoints // a test can hold an answer of the model, and make a step fail
	s := &errorSite{Site: sitetest.NewSiteOf(t, i, "TURNSTONE_LIMIT_SEARCH=1/1h burst 1")}
	public := sitetest.FreeAddress(t)
	s.strict, s.strictInternal = "http://"+public, sitetest.FreeAddress(t)
	strict := sitetest.Failpoints.Start(t, append(s.Environment,
		"TURNSTONE_DATA_DIR="+filepath.Join(filepath.Dir(s.Folder), "strict"), "TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+s.strictInternal, "TURNSTONE_CONTENT_LISTEN=off",
		"TURNSTONE_REGISTRATION=closed", "TURNSTONE_TOKENS_PER_DAY=1000", "TURNSTONE_UPLOAD_LIFETIME=1s", "TURNSTONE_FAILPOINTS="+strictFailpoints), "serve")
	s.Environment = append(s.Environment, fmt.Sprint("TURNSTONE_MAX_LIVE_TURNS=", maxLiveTurns), fmt.Sprint("TURNSTONE_MAX_STREAMS=", maxStreams),
		fmt.Sprint("TURNSTONE_MAX_FILES=", maxFiles))
	s.Start()
	strict.AwaitLog("turnstone serves")
	for _, internal := range []string{s.Internal, s.strictInternal} {
		s.internal(t, http.MethodPut, internal, "/holds/errors", "")
	}
	s.ada = sitetest.NewUser(t, s.Base)
	return s
}

// internal sends a request to an internal listener and returns the body of the response, which must be a success.
func (s *errorSite) internal(t *testing.T, method, address, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %v %s", method, path, got.StatusCode, err, text)
	}
	return string(text)
}

// execute runs a statement as the superuser, to whom row-level security does not apply.
func (s *errorSite) execute(t *testing.T, sql string, args ...any) {
	t.Helper()
	config, err := pgx.ParseConfig(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	config.User = embedded.Superuser
	db, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// request returns a request of a user with its session, to be sent over a connection of its own. headers are alternating
// names and values.
func request(t *testing.T, u *sitetest.User, method, path string, body any, headers ...string) *http.Request {
	t.Helper()
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header[headers[i]] = []string{headers[i+1]} // also one that net/http would refuse to send
	}
	r, err := u.API.NewRequest(t.Context(), client.Request{Method: method, Path: path, Body: body, Header: header})
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range u.HTTP.Jar.Cookies(r.URL) {
		r.AddCookie(cookie)
	}
	return r
}

// wire is a connection to the service without an HTTP client.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dialWire(t *testing.T, base string) *wire {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(sitetest.HangGuard)); err != nil {
		t.Fatal(err)
	}
	return &wire{conn, bufio.NewReader(conn)}
}

// write sends text as it is.
func (w *wire) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// rawResponse is a response that was read to its end.
type rawResponse struct {
	*http.Response
	body string
}

// read reads a response. It fails the test if the response is incomplete.
func (w *wire) read(t *testing.T) *rawResponse {
	t.Helper()
	got, err := http.ReadResponse(w.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("%s after %q", err, body)
	}
	return &rawResponse{got, string(body)}
}

// wantUsable checks that the connection can be used for another request, or that it is closed if the last response says
// so; nil: there was none.
func (w *wire) wantUsable(t *testing.T, last *rawResponse) {
	t.Helper()
	if last != nil && last.Close {
		w.wantClosed(t)
		return
	}
	w.write(t, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got := w.read(t); got.StatusCode != http.StatusOK || got.body != `{"status":"ok"}`+"\n" {
		t.Errorf("the next response on the connection: %d %q", got.StatusCode, got.body)
	}
}

// wantClosed checks that the service closes the connection and sends nothing more. If it has not read all that was sent,
// its kernel resets the connection.
func (w *wire) wantClosed(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(w.in); err != nil && !errors.Is(err, syscall.ECONNRESET) || len(rest) > 0 {
		t.Errorf("the connection ends with %v, after %q", err, rest)
	}
}

// wantProblem checks that the response is a complete problem document, with the members and headers that every problem
// of its status has.
func (r *rawResponse) wantProblem(t *testing.T, status int, code protocol.Code) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(r.body), &members); err != nil || r.StatusCode != status || members["code"] != string(code) {
		t.Fatalf("%d %s, want %d %s", r.StatusCode, r.body, status, code)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": float64(status), "request_id": r.Header.Get("X-Request-Id"),
	} {
		if members[name] != want || want == "" {
			t.Errorf("%s: %v, want %v", name, members[name], want)
		}
	}
	if detail, is := members["detail"].(string); !is || !strings.Contains(detail, " ") || !strings.HasSuffix(detail, ".") {
		t.Errorf("detail: %v", members["detail"])
	}
	if has := members["current"] != nil; has != (status == http.StatusConflict) {
		t.Errorf("current: %v", members["current"])
	}
	if named := namesFields(members["errors"]); named != (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) {
		t.Errorf("errors: %v", members["errors"])
	}
	wait := r.Header.Get("Retry-After")
	if limited := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable; limited && !isPositive(wait) {
		t.Errorf("Retry-After: %q", wait)
	}
}

// namesFields reports whether the member errors of a problem has at least one entry, each with a field and a message.
func namesFields(errors any) bool {
	list, _ := errors.([]any) // anything else has no entries
	for _, entry := range list {
		members, _ := entry.(map[string]any)
		if field, _ := members["field"].(string); field == "" {
			return false
		}
		if message, _ := members["message"].(string); message == "" {
			return false
		}
	}
	return len(list) > 0
}

// isPositive reports whether a text is a decimal number above 0, without leading zeros.
func isPositive(text string) bool {
	return text != "" && text[0] != '0' && strings.Trim(text, "0123456789") == ""
}

// TestEveryErrorOverASocket provokes every published error, and sends malformed requests, over connections of their own.
func TestEveryErrorOverASocket(t *testing.T) {
	s := newErrorSite(t)
	t.Run("malformed HTTP", s.malformedHTTP)
	t.Run("unusual HTTP", s.unusualHTTP)
	t.Run("expectations", s.expectations)
	t.Run("compressed bodies", s.compressed)
	t.Run("the length of an input", s.steeringLengths)
	t.Run("waiting for an upload", s.waits)
	t.Run("every published code", s.everyCode)
}

// everyCode provokes each published code. The response must be a complete problem, and the connection must stay usable.
func (s *errorSite) everyCode(t *testing.T) {
	missing := map[protocol.Code]int{}
	for code, status := range response.Statuses {
		missing[code] = status
	}
	t.Run("without a fault of a shared server", func(t *testing.T) {
		for _, p := range provocations {
			delete(missing, p.code)
			t.Run(string(p.code), func(t *testing.T) {
				t.Parallel()
				s.provoke(t, p)
			})
		}
	})
	for _, p := range faults {
		delete(missing, p.code)
		t.Run(string(p.code), func(t *testing.T) { s.provoke(t, p) })
	}
	for code, status := range missing {
		t.Errorf("nothing provokes %d %s", status, code)
	}
}

// provocation is a row of the table of errors: how a request comes about that must get the error.
type provocation struct {
	code    protocol.Code
	status  int
	provoke func(*testing.T, *errorSite) *http.Request
	check   func(*testing.T, *rawResponse) // more than what is checked for every problem; nil: nothing
}

func (s *errorSite) provoke(t *testing.T, p provocation) {
	r := p.provoke(t, s)
	w := dialWire(t, r.URL.Scheme+"://"+r.URL.Host)
	if err := r.Write(w); err != nil {
		t.Fatal(err)
	}
	got := w.read(t)
	got.wantProblem(t, p.status, p.code)
	if p.check != nil {
		p.check(t, got)
	}
	if got.Close { // the request was read to its end
		t.Error("the connection is closed")
	}
	w.wantUsable(t, got)
}
