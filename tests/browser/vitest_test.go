package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	webFolder = "../../web"
	// killReserve is the time before the limit of the package at which a run that hangs is killed. The suites then fail.
	killReserve = 30 * time.Second
	// maxRetries is the number of tests of a run that get a second try if CI is set; otherwise none does. `make test`
	// prints a notice of each next to its summary.
	maxRetries = 2
)

// matching restricts a run to some tests of the app, while one works on them.
var matching = flag.String("matching", "", "run only the tests of the app whose names match")

// secondTries is the budget that both suites of a run share.
var secondTries = newBudget(os.Getenv("CI"))

// retryBudget is the number of tests that may still be tried a second time.
type retryBudget struct {
	mu   sync.Mutex
	left int // guarded by mu
}

func newBudget(ci string) *retryBudget {
	if ci == "" || ci == "0" || ci == "false" {
		return &retryBudget{}
	}
	return &retryBudget{left: maxRetries}
}

// allow reserves a second try for each of the failed tests, or for none of them if there are more than are left.
func (b *retryBudget) allow(failed int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed == 0 || failed > b.left {
		return false
	}
	b.left -= failed
	return true
}

// result is the outcome of a test of the app.
type result struct {
	FullName        string
	Status          string
	FailureMessages []string
	Duration        float64 // in milliseconds
}

// results are the outcomes of a run. A file that could not be run counts as a failed test.
type results []result

// failed returns the names of the failed tests.
func (all results) failed() (names []string) {
	for _, one := range all {
		if one.Status == "failed" {
			names = append(names, one.FullName)
		}
	}
	return names
}

// merge replaces the results of the named tests by those of a second try, and returns a notice for each test that
// passed then.
func (all results) merge(second results, names []string) (noticed []string) {
	for i, one := range all {
		at := slices.IndexFunc(second, func(other result) bool { return other.FullName == one.FullName })
		if !slices.Contains(names, one.FullName) || at < 0 || second[at].Status != "passed" && second[at].Status != "failed" {
			continue
		}
		if second[at].Status == "passed" {
			noticed = append(noticed, fmt.Sprintf("%s passed only at its second try; the first failed: %s", one.FullName, one.why()))
		}
		all[i] = second[at]
	}
	return noticed
}

// whyLines is the number of lines of a failure that a notice quotes: the awaited condition, its position in the test, and what the
// page showed.
const whyLines = 150

// why returns the failure as one line, without the stack frames of libraries.
func (r result) why() string {
	var lines []string
	for line := range strings.Lines(strings.Join(r.FailureMessages, "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "node_modules") && len(lines) < whyLines {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " | ")
}

// replace merges the results of a second try and writes the notices.
func (all results) replace(t *testing.T, names []string, second results) {
	t.Helper()
	for _, text := range all.merge(second, names) {
		if err := addNotice(t.Name() + ": " + text); err != nil {
			t.Fatal(err)
		}
	}
}

// noticeFile receives a line for each notice; `make test` prints it above its summary.
const noticeFile = "../../tmp/notices"

// addNotice appends a line to the notices of `make test`.
func addNotice(text string) error {
	if err := os.MkdirAll(filepath.Dir(noticeFile), 0o711); err != nil {
		return err
	}
	file, err := os.OpenFile(noticeFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, text)
	return errors.Join(err, file.Close())
}

// report reports each test of the app as a subtest.
func (all results) report(t *testing.T) {
	t.Helper()
	for _, one := range all {
		if *matching != "" && one.Status == "skipped" {
			continue
		}
		t.Run(one.FullName, func(t *testing.T) {
			t.Logf("%.1f s", one.Duration/1000)
			if finding := one.finding(); finding != "" {
				t.Error(finding)
			}
		})
	}
}

// finding describes why the test did not pass, or is empty. No test is skipped on purpose: one that did not start, for
// example because a hook of its file failed, is a failure.
func (r result) finding() string {
	if r.Status == "passed" {
		return ""
	}
	return fmt.Sprintf("%s: %s", r.Status, strings.Join(r.FailureMessages, "\n"))
}

// vitest is a run of the app's own tests.
type vitest struct {
	file string // of the results
	// Set before done is closed.
	output  []byte
	failure error
	done    chan struct{}
}

// start runs the tests of a vitest configuration, or only those with the given names.
func start(t *testing.T, config string, only []string, environment ...string) *vitest {
	t.Helper()
	v := &vitest{file: filepath.Join(t.TempDir(), "results.json"), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	if limit, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, limit.Add(-killReserve))
	}
	program, err := filepath.Abs(filepath.Join(webFolder, "node_modules", ".bin", "vitest")) // npx would search for it for a second
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"run", "--config", config, "--reporter=json", "--outputFile=" + v.file}
	switch {
	case *matching != "":
		arguments = append(arguments, "--testNamePattern="+*matching)
	case len(only) > 0:
		quoted := make([]string, len(only))
		for i, name := range only {
			quoted[i] = regexp.QuoteMeta(name)
		}
		arguments = append(arguments, "--testNamePattern=^(?:"+strings.Join(quoted, "|")+")$")
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = webFolder
	command.Env = append(os.Environ(), environment...)
	killWithChildren(command)
	go func() {
		defer close(v.done)
		defer cancel()
		v.output, v.failure = command.CombinedOutput()
	}()
	return v
}

// killWithChildren makes the end of a command's context end its whole process group: the workers of vitest would keep the
// output open. A browser has a group of its own, which WaitDelay is for.
func killWithChildren(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
}

// results reads the results that vitest wrote.
func (v *vitest) results(t *testing.T) results {
	t.Helper()
	written, err := os.ReadFile(v.file)
	if err != nil {
		t.Fatalf("vitest wrote no results: %v\n%s", v.failure, v.output)
	}
	var report struct {
		TestResults []struct {
			Name, Message, Status string
			AssertionResults      results
		}
	}
	if err := json.Unmarshal(written, &report); err != nil {
		t.Fatal(err)
	}
	var all results
	for _, file := range report.TestResults {
		if len(file.AssertionResults) == 0 {
			t.Errorf("%s: %s %s", filepath.Base(file.Name), file.Status, file.Message)
		}
		all = append(all, file.AssertionResults...)
	}
	if len(all) == 0 || v.failure != nil && len(all.failed()) == 0 && !t.Failed() {
		t.Fatalf("%d tests ran: %v\n%s", len(all), v.failure, v.output)
	}
	return all
}
