package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/machine"
)

const (
	webFolder = "../../../web"
	// whole is how long all tests of a suite may take; each has its own limit in web/vitest.bad-days.config.ts.
	whole = 9 * time.Minute
	// mostAgain is how many tests of a run may be tried once more where CI is set; elsewhere none is. `make test` prints
	// a notice of each beside its summary.
	mostAgain = 2
)

// secondTries is what both suites of a run share.
var secondTries = newBudget(os.Getenv("CI"))

// budget is how many tests may still be tried once more.
type budget struct {
	mu   sync.Mutex
	left int // guarded by mu
}

func newBudget(ci string) *budget {
	if ci == "" || ci == "0" || ci == "false" {
		return &budget{}
	}
	return &budget{left: mostAgain}
}

// allow takes a second try for each of some failed tests, or for none of them when there are too many.
func (b *budget) allow(failed int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failed == 0 || failed > b.left {
		return false
	}
	b.left -= failed
	return true
}

// result is how a test of the app ended.
type result struct {
	FullName        string
	Status          string
	FailureMessages []string
	Duration        float64 // in milliseconds
}

// results are those of a run. A file that could not be run counts as a test that failed.
type results []result

// failed names the tests that may be tried again.
func (all results) failed() (names []string) {
	for _, one := range all {
		if one.Status == "failed" {
			names = append(names, one.FullName)
		}
	}
	return names
}

// merge puts what came of a second try in the place of the first, and returns a notice for each test that passed then.
func (all results) merge(second results, names []string) (noticed []string) {
	for i, one := range all {
		at := slices.IndexFunc(second, func(other result) bool { return other.FullName == one.FullName })
		if !slices.Contains(names, one.FullName) || at < 0 {
			continue
		}
		if second[at].Status == "passed" {
			noticed = append(noticed, fmt.Sprintf("%s passed at its second try only; the first: %s", one.FullName, one.why()))
		}
		all[i] = second[at]
	}
	return noticed
}

// whyLines is how many lines of a failure a notice quotes: what was waited for, and where in the test, are among them.
const whyLines = 12

// why is the failure in one line, without the libraries' part of the stack.
func (r result) why() string {
	var lines []string
	for line := range strings.Lines(strings.Join(r.FailureMessages, "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "node_modules") && len(lines) < whyLines {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " | ")
}

// replace merges and writes the notices down.
func (all results) replace(t *testing.T, names []string, second results) {
	t.Helper()
	for _, text := range all.merge(second, names) {
		if err := machine.Notice(t.Name() + ": " + text); err != nil {
			t.Fatal(err)
		}
	}
}

// tell makes a test of each that ran.
func (all results) tell(t *testing.T) {
	t.Helper()
	for _, one := range all {
		t.Run(one.FullName, func(t *testing.T) {
			t.Logf("%.1f s", one.Duration/1000)
			if one.Status != "passed" {
				t.Errorf("%s: %s", one.Status, strings.Join(one.FailureMessages, "\n"))
			}
		})
	}
}

// vitest is a run of the app's own tests.
type vitest struct {
	file string // of the results
	// Set before done is closed.
	output  []byte
	failure error
	done    chan struct{}
}

// start runs the tests of a configuration, or only those with the names.
func start(t *testing.T, config string, only []string, environment ...string) *vitest {
	t.Helper()
	v := &vitest{file: filepath.Join(t.TempDir(), "results.json"), done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), whole)
	// The service goes first: it is to answer within its own limits while browsers keep every processor busy.
	arguments := []string{"npx", "vitest", "run", "--config", config, "--reporter=json", "--outputFile=" + v.file}
	if len(only) > 0 {
		quoted := make([]string, len(only))
		for i, name := range only {
			quoted[i] = regexp.QuoteMeta(name)
		}
		arguments = append(arguments, "--testNamePattern=^(?:"+strings.Join(quoted, "|")+")$")
	}
	command := exec.CommandContext(ctx, "nice", arguments...)
	command.Dir = webFolder
	command.Env = append(os.Environ(), environment...)
	go func() {
		defer close(v.done)
		defer cancel()
		v.output, v.failure = command.CombinedOutput()
	}()
	return v
}

// results reads what vitest has written.
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
