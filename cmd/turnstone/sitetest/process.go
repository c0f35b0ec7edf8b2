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

	"turnstone/protocol/timelimit"
)

// Build is a variant of the program. It is built once per test process, when it is first needed.
type Build struct {
	name  string
	flags []string
	made  func() (string, error)
}

// NewBuild returns the variant that is built with flags, with the time limits of the test and, if the test has it, with the
// race detector. The binary is stored in bin under its name, or in the folder that TURNSTONE_TEST_PROGRAMS names: a
// program with a seeded bug must not be mistaken for the unmodified one.
func NewBuild(name string, flags ...string) *Build {
	if raceDetector {
		name, flags = name+"-race", append([]string{"-race"}, flags...)
	}
	b := &Build{name: name, flags: flags}
	b.made = sync.OnceValues(b.make)
	return b
}

// Prebuilt returns a program that exists already, for example one of an earlier commit.
func Prebuilt(path string) *Build {
	return &Build{name: filepath.Base(path), made: func() (string, error) { return path, nil }}
}

var (
	// Standard is the variant that tests run by default.
	Standard = NewBuild("turnstone-test")
	// Failpoints is the variant with failpoints; see package protocol/failpoint.
	Failpoints = NewBuild("turnstone-failpoint", "-tags=failpoint")
)

// DetectRaces gives the programs of the variants the race detector, also if the test does not have it. Call it before the tests run.
func DetectRaces() {
	raceDetector = true
	Standard, Failpoints = NewBuild("turnstone-test"), NewBuild("turnstone-failpoint", "-tags=failpoint")
}

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
	unlock, err := lockFile(path + ".lock") // concurrent packages that need the binary build it one at a time
	if err != nil {
		return "", err
	}
	defer unlock()
	build := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-w " + timelimit.LinkerFlag()}, b.flags...), "-o", path, "./cmd/turnstone")...)
	build.Dir = root
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w: %s", b.name, err, output)
	}
	return path, nil
}

// lockFile locks a file, which it creates if necessary. It waits while another process has the lock.
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
	return func() { _ = file.Close() }, nil // closing the file releases the lock
}

// moduleRoot returns the folder of go.mod, in which the program is built.
func moduleRoot() (string, error) {
	output, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module's folder: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))), nil
}

// Process is a running program.
type Process struct {
	T    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended

	mu     sync.Mutex
	stdout bytes.Buffer  // guarded by mu
	stderr bytes.Buffer  // guarded by mu
	wrote  chan struct{} // guarded by mu; closed at the next output
}

// Command returns the program as a command. Its environment contains PATH, GORACE and the given variables only.
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

// Start runs the program, and kills it at the end of the test. The parent-death signal is switched off: it would kill
// the program when the thread that started it ends, which may be before the end of the test.
func (b *Build) Start(t *testing.T, environment []string, arguments ...string) *Process {
	t.Helper()
	p := &Process{T: t, cmd: b.Command(t, environment, arguments...), done: make(chan struct{}), wrote: make(chan struct{})}
	p.cmd.SysProcAttr.Pdeathsig = 0
	p.cmd.Stdout, p.cmd.Stderr = p.Into(&p.stdout), p.Into(&p.stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%v printed:\n%s\n%s", arguments, p.Stdout(), p.Stderr())
		}
	})
	return p
}

// Into returns a writer that appends to buffer and wakes the goroutines that wait for output.
func (p *Process) Into(buffer *bytes.Buffer) io.Writer {
	return WriterFunc(func(text []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.wrote)
		p.wrote = make(chan struct{})
		return buffer.Write(text)
	})
}

// WriterFunc implements io.Writer by a function.
type WriterFunc func([]byte) (int, error)

func (f WriterFunc) Write(text []byte) (int, error) { return f(text) }

// Stdout returns the program's stdout so far.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// Stderr returns the program's stderr so far, which is its log.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// AwaitStdout waits for a text on stdout.
func (p *Process) AwaitStdout(text string) {
	p.T.Helper()
	p.Await(text, &p.stdout)
}

// AwaitLog waits for a text on stderr.
func (p *Process) AwaitLog(text string) {
	p.T.Helper()
	p.Await(text, &p.stderr)
}

// Await waits for a text in one of the two buffers. It fails the test if the program ends first.
func (p *Process) Await(text string, in *bytes.Buffer) {
	p.T.Helper()
	timeout := time.After(HangGuard)
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
			p.T.Fatalf("the program ended before it printed %q", text)
		case <-timeout:
			p.T.Fatalf("the program did not print %q", text)
		}
	}
}

// Signal sends a signal to the program.
func (p *Process) Signal(signal syscall.Signal) {
	p.T.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.T.Fatal(err)
	}
}

// Exit waits until the program ends and returns its exit code.
func (p *Process) Exit() int {
	p.T.Helper()
	select {
	case <-p.done:
	case <-time.After(HangGuard):
		p.T.Fatal("the program did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// HasEnded reports whether the program has ended, for whatever reason.
func (p *Process) HasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill kills the program with SIGKILL and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Start runs the variant Standard.
func Start(t *testing.T, environment []string, arguments ...string) *Process {
	t.Helper()
	return Standard.Start(t, environment, arguments...)
}

// Finish runs the variant Standard to its end and returns its exit code and its output.
func Finish(t *testing.T, environment []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	return Standard.Finish(t, environment, arguments...)
}

// Finish runs the variant to its end and returns its exit code and its output.
func (b *Build) Finish(t *testing.T, environment []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := b.Start(t, environment, arguments...)
	return p.Exit(), p.Stdout(), p.Stderr()
}
