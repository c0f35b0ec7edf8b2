package sitetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a test waits for a program before it says that it hangs; nothing takes it when all is well.
const Patience = 90 * time.Second

// Build is a variant of the program, built once a test process when it is first needed.
type Build struct {
	name  string
	flags []string
	made  func() (string, error)
}

// NewBuild is the program built with the race detector and with flags. It is in bin under its name, or in the folder that
// TURNSTONE_TEST_PROGRAMS names: a program with a seeded bug may not be taken for the real one.
func NewBuild(name string, flags ...string) *Build {
	b := &Build{name: name, flags: flags}
	b.made = sync.OnceValues(b.make)
	return b
}

// Race is the one variant of everything that tests run, unless they are about another one.
var Race = NewBuild("turnstone-race")

func (b *Build) make() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin")
	if other := os.Getenv("TURNSTONE_TEST_PROGRAMS"); other != "" {
		folder = other
	}
	path := filepath.Join(folder, b.name)
	unlock, err := lockFile(path + ".lock") // packages that need it at the same time build it once
	if err != nil {
		return "", err
	}
	defer unlock()
	build := exec.Command("go", append(append([]string{"build", "-race", "-buildvcs=false"}, b.flags...), "-o", path, "./cmd/turnstone")...)
	build.Dir = root
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w: %s", b.name, err, output)
	}
	return path, nil
}

// lockFile waits for the lock of a file, which it makes.
func lockFile(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil // which ends the lock
}

// moduleRoot is the folder of go.mod, from which the program is built.
func moduleRoot() (string, error) {
	output, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking where the module is: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))), nil
}

// Process is a running program.
type Process struct {
	T    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu     sync.Mutex
	stdout bytes.Buffer  // guarded by mu
	stderr bytes.Buffer  // guarded by mu
	wrote  chan struct{} // guarded by mu; closed at the next output
}

// Command makes the program, with no environment but what is given.
func (b *Build) Command(t *testing.T, environment []string, arguments ...string) *exec.Cmd {
	t.Helper()
	path, err := b.made()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, arguments...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1 atexit_sleep_ms=0"}, environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// Start runs the program; the test's end kills it. The thread that starts it may end before the test does, so the
// parent-death signal is only a second net.
func (b *Build) Start(t *testing.T, environment []string, arguments ...string) *Process {
	t.Helper()
	p := &Process{T: t, cmd: b.Command(t, environment, arguments...), done: make(chan struct{}), wrote: make(chan struct{})}
	p.cmd.SysProcAttr.Pdeathsig = 0
	p.cmd.Stdout, p.cmd.Stderr = p.Into(&p.stdout), p.Into(&p.stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code stands in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%v printed:\n%s\n%s", arguments, p.Printed(), p.Complaints())
		}
	})
	return p
}

// Into keeps what is written and wakes who waits for it.
func (p *Process) Into(buffer *bytes.Buffer) io.Writer {
	return WriterFunc(func(text []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.wrote)
		p.wrote = make(chan struct{})
		return buffer.Write(text)
	})
}

// WriterFunc is a function that takes what is written.
type WriterFunc func([]byte) (int, error)

func (f WriterFunc) Write(text []byte) (int, error) { return f(text) }

// Printed is its stdout so far.
func (p *Process) Printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// Complaints is its stderr so far: the log.
func (p *Process) Complaints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Until waits for a text on stdout.
func (p *Process) Until(text string) {
	p.T.Helper()
	p.Await(text, &p.stdout)
}

// UntilLogged waits for a text on stderr.
func (p *Process) UntilLogged(text string) {
	p.T.Helper()
	p.Await(text, &p.stderr)
}

// Await waits for a text in one of the two; the test fails when the program ends first.
func (p *Process) Await(text string, in *bytes.Buffer) {
	p.T.Helper()
	timeout := time.After(Patience)
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
			p.T.Fatalf("it ended before it said %q", text)
		case <-timeout:
			p.T.Fatalf("it does not say %q", text)
		}
	}
}

// Signal sends one.
func (p *Process) Signal(signal syscall.Signal) {
	p.T.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.T.Fatal(err)
	}
}

// Exit waits for the end and answers the exit code.
func (p *Process) Exit() int {
	p.T.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.T.Fatal("it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// HasEnded reports whether it runs no more, whoever ended it.
func (p *Process) HasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill is kill -9.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Start runs the usual variant.
func Start(t *testing.T, environment []string, arguments ...string) *Process {
	t.Helper()
	return Race.Start(t, environment, arguments...)
}

// Finish runs the program to its end.
func Finish(t *testing.T, environment []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := Race.Start(t, environment, arguments...)
	return p.Exit(), p.Printed(), p.Complaints()
}
