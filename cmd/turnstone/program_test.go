package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"turnstone/providers/embedded/embeddedtest"
)

// patience is how long a test waits for a program before it says that it hangs; nothing takes it when all is well.
const patience = 90 * time.Second

func TestMain(m *testing.M) { embeddedtest.RunMain(m) }

// binary is the built program, with the race detector: the one variant of everything that tests run.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/turnstone-race")
	if err != nil {
		return "", err
	}
	output, err := exec.Command("go", "build", "-race", "-buildvcs=false", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w: %s", err, output)
	}
	return path, nil
})

// process is a running program.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu     sync.Mutex
	stdout bytes.Buffer  // guarded by mu
	stderr bytes.Buffer  // guarded by mu
	wrote  chan struct{} // guarded by mu; closed at the next output
}

// command makes the program, with no environment but what is given.
func command(t *testing.T, environment []string, arguments ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, arguments...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1 atexit_sleep_ms=0"}, environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// start runs the program; the test's end kills it. The thread that starts it may end before the test does, so the
// parent-death signal is only a second net.
func start(t *testing.T, environment []string, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(t, environment, arguments...), done: make(chan struct{}), wrote: make(chan struct{})}
	p.cmd.SysProcAttr.Pdeathsig = 0
	p.cmd.Stdout, p.cmd.Stderr = p.into(&p.stdout), p.into(&p.stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code stands in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%v printed:\n%s\n%s", arguments, p.printed(), p.complaints())
		}
	})
	return p
}

// into keeps what is written and wakes who waits for it.
func (p *process) into(buffer *bytes.Buffer) io.Writer {
	return writerFunc(func(text []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.wrote)
		p.wrote = make(chan struct{})
		return buffer.Write(text)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

func (p *process) complaints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// until waits for a text on stdout.
func (p *process) until(text string) {
	p.t.Helper()
	p.await(text, &p.stdout)
}

// untilLogged waits for a text on stderr.
func (p *process) untilLogged(text string) {
	p.t.Helper()
	p.await(text, &p.stderr)
}

func (p *process) await(text string, in *bytes.Buffer) {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		found, wrote := strings.Contains(in.String(), text), p.wrote
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-wrote:
		case <-p.done:
			p.t.Fatalf("it ended before it said %q", text)
		case <-timeout:
			p.t.Fatalf("it does not say %q", text)
		}
	}
}

func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and answers the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// finish runs the program to its end.
func finish(t *testing.T, environment []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, environment, arguments...)
	return p.exit(), p.printed(), p.complaints()
}

// freeAddress is one that nobody listens on, most likely still when the program does.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// development is a dev installation of its own: a data folder and two addresses.
type development struct {
	folder, public, internal string
	environment              []string
}

func newDevelopment(t *testing.T, more ...string) *development {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-dev-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil { // the servers' accounts pass through
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &development{folder: filepath.Join(folder, "data"), public: freeAddress(t), internal: freeAddress(t)}
	d.environment = append([]string{
		"TURNSTONE_DATA_DIR=" + d.folder, "TURNSTONE_LISTEN=" + d.public, "TURNSTONE_INTERNAL_LISTEN=" + d.internal,
	}, more...)
	return d
}

// up starts dev and waits until it serves.
func (d *development) up(t *testing.T) *process {
	t.Helper()
	p := start(t, d.environment, "dev")
	p.until("Ctrl-C stops all of it")
	return p
}

var printedPassword = regexp.MustCompile(`password +(\S+)`)

func passwordOf(p *process) string {
	p.t.Helper()
	match := printedPassword.FindStringSubmatch(p.printed())
	if match == nil {
		p.t.Fatal("no password was printed")
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
}

func newClient(t *testing.T, base string) *client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, base: base, http: &http.Client{Transport: transport}}
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
		c.cookie = cookie
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
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
