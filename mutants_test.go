package turnstone_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/protocol/timelimit"
)

// The seeded bugs are in tools/mutants/mutant_*.diff: each one is a bug that other projects had, with the test that
// must find it. The product contains no trace of them: go builds them from changed copies with -overlay (docs/adr/0010).

var seed = flag.String("mutants", "", "seeded bugs to build and to kill: some (two of the quick ones, at random), all, or the name of one")

const (
	seededBugs = 35
	// someBugs is the number of bugs that make test seeds. make nightly seeds all of them.
	someBugs = 2
	// mutantTimeout ends a killing test that hangs. It is ten times as long as the slowest suite that found a bug took.
	mutantTimeout = 40 * time.Minute
)

// mutant is a seeded bug, as its diff describes it.
type mutant struct {
	name      string
	diff      string // its path
	files     []string
	invariant string
	folder    string // of the killing test
	test      string
	arguments []string       // of the test; tests of the whole program have some
	evidence  *regexp.Regexp // what the test prints when it finds the bug
	quick     bool           // killed in seconds, so make test may choose it
}

var (
	diffFile      = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
	diffInvariant = regexp.MustCompile(`(?m)^Invariant: (I\d+)$`)
	diffKiller    = regexp.MustCompile(`(?m)^Killed by: (\./\S+) (Test\w+)((?: -\S+)*)$`)
	diffSeen      = regexp.MustCompile(`(?m)^Seen as: (.+)$`)
	diffQuick     = regexp.MustCompile(`(?m)^In make test: yes$`)
)

func mutants(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob("tools/mutants/mutant_*.diff")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]mutant, 0, len(paths))
	for _, path := range paths {
		text := readPage(t, path)
		m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".diff"), diff: path, quick: diffQuick.MatchString(text)}
		for _, found := range diffFile.FindAllStringSubmatch(text, -1) {
			m.files = append(m.files, found[1])
		}
		invariant, killer, seen := diffInvariant.FindStringSubmatch(text), diffKiller.FindStringSubmatch(text), diffSeen.FindStringSubmatch(text)
		if len(m.files) == 0 || invariant == nil || killer == nil || seen == nil {
			t.Fatalf("%s lacks a changed file, or a line Invariant, Killed by or Seen as", path)
		}
		m.arguments = strings.Fields(killer[3])
		m.invariant, m.folder, m.test, m.evidence = invariant[1], killer[1], killer[2], regexp.MustCompile("(?s)"+seen[1])
		list = append(list, m)
	}
	return list
}

// TestEverySeededBugStillApplies checks that the diffs match the current code.
func TestEverySeededBugStillApplies(t *testing.T) {
	list := mutants(t)
	if len(list) != seededBugs {
		t.Errorf("there are %d seeded bugs, want %d", len(list), seededBugs)
	}
	page := readPage(t, "docs/testing.md")
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) { m.checkApplies(t, page) })
	}
}

// checkApplies checks everything about a seeded bug that needs no build. page is the text of docs/testing.md, which must list
// the bug.
func (m mutant) checkApplies(t *testing.T, page string) {
	t.Helper()
	for _, copied := range m.apply(t) {
		if filepath.Ext(copied) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), copied, nil, parser.SkipObjectResolution); err != nil {
			t.Errorf("with the bug the file does not parse: %v", err)
		}
	}
	if !m.hasKiller(t) {
		t.Errorf("%s has no %s", m.folder, m.test)
	}
	if row := fmt.Sprintf("| `%s` | %s | `%s` |", m.name, m.invariant, m.test); !strings.Contains(page, row) {
		t.Errorf("docs/testing.md has no row that starts with %s", row)
	}
}

func (m mutant) hasKiller(t *testing.T) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		return strings.Contains(readPage(t, file), "\nfunc "+m.test+"(t *testing.T) {\n")
	})
}

// apply creates a changed copy of every file that the diff changes. It returns the paths of the copies by the paths of
// the originals.
func (m mutant) apply(t *testing.T) map[string]string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, copies := t.TempDir(), map[string]string{}
	for _, file := range m.files {
		copied := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, []byte(readPage(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
		copies[filepath.Join(root, file)] = copied
	}
	git := exec.CommandContext(t.Context(), "git", "apply", filepath.Join(root, m.diff))
	git.Dir = dir
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // outside of a repository, paths are relative to dir
	if output, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%s no longer applies; regenerate it from the current code:\n%s", m.diff, output)
	}
	return copies
}

// TestSeededBugsAreKilled builds each bug that -mutants selects and runs the test that must find it.
func TestSeededBugsAreKilled(t *testing.T) {
	list := selectMutants(mutants(t), *seed)
	if *seed == "all" {
		checkKillersPass(t, list)
	}
	killed := 0
	for _, m := range list {
		began := time.Now()
		outcome := m.outcome(t)
		took := time.Since(began)
		if outcome == "killed" {
			killed++
		} else {
			t.Errorf("%s: %s by %s %s", m.name, outcome, m.folder, m.test)
		}
		fmt.Printf("%-34s %-14s %-50s %-14s %3.0f s\n", m.name, m.folder, m.test, outcome, took.Seconds())
	}
	if len(list) > 0 {
		fmt.Printf("%d of %d killed\n", killed, len(list))
	} else if *seed != "" {
		t.Errorf("there is no seeded bug %q", *seed)
	}
}

// selectMutants returns the bugs that a value of the flag -mutants selects.
func selectMutants(list []mutant, choice string) []mutant {
	if choice == "some" {
		quick := slices.DeleteFunc(list, func(m mutant) bool { return !m.quick })
		rand.Shuffle(len(quick), func(i, j int) { quick[i], quick[j] = quick[j], quick[i] })
		return quick[:someBugs]
	}
	return slices.DeleteFunc(list, func(m mutant) bool { return choice != "all" && choice != m.name })
}

// checkKillersPass checks that the killing tests pass without the bugs; otherwise a failure would prove nothing. It leaves out
// the suites of the whole program, which make test runs.
func checkKillersPass(t *testing.T, list []mutant) {
	t.Helper()
	tests := map[string][]string{}
	for _, m := range list {
		if len(m.arguments) == 0 && !slices.Contains(tests[m.folder], m.test) {
			tests[m.folder] = append(tests[m.folder], m.test)
		}
	}
	for folder, names := range tests {
		outcome, output := runTests(t, mutant{folder: folder}, names, "")
		for _, name := range names {
			if outcome[name] != "pass" {
				t.Fatalf("without any bug %s %s does not pass:\n%s", folder, name, output)
			}
		}
	}
}

// outcome runs the killing test with the bug and returns the outcome. It is "killed" only if the expected test ran,
// failed, and printed the text by which the bug is recognized.
func (m mutant) outcome(t *testing.T) string {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": m.apply(t)})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	outcome, output := runTests(t, m, []string{m.test}, "-overlay="+file+" -tags="+m.name)
	switch {
	case strings.Contains(output, "panic: test timed out"):
		return "not decided"
	case outcome[m.test] == "fail" && m.evidence.MatchString(output):
		return "killed"
	case outcome[m.test] == "pass":
		return "survived"
	}
	t.Log(output)
	return "not understood" // it did not build, or failed for another reason
}

// runTests runs tests of a folder and returns the outcome of each and their whole output. The flags also apply to the
// programs that a test builds, which go into a separate folder.
func runTests(t *testing.T, m mutant, names []string, flags string) (outcome map[string]string, output string) {
	t.Helper()
	arguments := []string{"test", "-race", "-count=1", "-vet=off", "-json", "-timeout", mutantTimeout.String(), "-ldflags=" + timelimit.LinkerFlag()}
	arguments = append(arguments, "-run", "^("+strings.Join(names, "|")+")$", m.folder)
	if len(m.arguments) > 0 {
		arguments = append(append(arguments, "-args"), m.arguments...)
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	// A prepared cluster would have the schema without the bug.
	// The flags of the build, so that only packages with the bug, and those that import them, are compiled.
	flags = strings.TrimSpace(os.Getenv("GOFLAGS") + " " + flags)
	command.Env = append(os.Environ(), "GOFLAGS="+flags, "TURNSTONE_TEST_PROGRAMS="+t.TempDir(), "TURNSTONE_TEST_PREPARED=")
	var text strings.Builder
	command.Stderr = &text
	stdout, err := command.Output()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	outcome = map[string]string{}
	for lines := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var event struct{ Action, Test, Output string }
		if err := lines.Decode(&event); errors.Is(err, io.EOF) {
			return outcome, text.String()
		} else if err != nil {
			t.Fatalf("reading the output of go test: %v\n%s%s", err, stdout, text.String())
		}
		text.WriteString(event.Output)
		if event.Action == "pass" || event.Action == "fail" {
			outcome[event.Test] = event.Action
		}
	}
}
