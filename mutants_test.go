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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/machine"
)

// The seeded bugs: tools/mutants/mutant_*.diff, each a bug that others had, and the test that must find it. No line of
// the product knows of them: go builds them from copies, by -overlay (docs/adr/0010).

var seed = flag.String("mutants", "", "which seeded bugs are built and must be killed: some (those of make test), all, or one by its name")

const (
	seededBugs = 25
	killWithin = 60 * time.Second // with its build
	// systemWithin is for a suite that builds the whole program with the bug and attacks it.
	systemWithin = 5 * time.Minute
	// mutantPatience is how many times as long a test may run before it is ended: a slow machine makes it late, not wrong.
	mutantPatience = 3
)

// mutant is a seeded bug.
type mutant struct {
	name      string
	diff      string // its path
	files     []string
	invariant string
	folder    string // of the killing test
	test      string
	arguments []string       // of the test; a suite of the whole program has some
	seen      *regexp.Regexp // what the test says of it
	quick     bool           // killed in make test
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
			t.Fatalf("%s does not say what it changes, which invariant it breaks, what kills it and how that is seen", path)
		}
		m.arguments = strings.Fields(killer[3])
		m.invariant, m.folder, m.test, m.seen = invariant[1], killer[1], killer[2], regexp.MustCompile("(?s)"+seen[1])
		list = append(list, m)
	}
	return list
}

// TestEverySeededBugStillApplies keeps the bugs in step with the code they are seeded in.
func TestEverySeededBugStillApplies(t *testing.T) {
	list := mutants(t)
	if len(list) != seededBugs {
		t.Errorf("there are %d seeded bugs, %d are promised", len(list), seededBugs)
	}
	page := readPage(t, "docs/testing.md")
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) { m.stands(t, page) })
	}
}

// stands looks at all of a bug that needs no build; page is where it is told of.
func (m mutant) stands(t *testing.T, page string) {
	t.Helper()
	for _, copied := range m.apply(t) {
		if filepath.Ext(copied) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), copied, nil, parser.SkipObjectResolution); err != nil {
			t.Errorf("with the bug it is no Go: %v", err)
		}
	}
	if !m.hasKiller(t) {
		t.Errorf("%s has no %s", m.folder, m.test)
	}
	if row := fmt.Sprintf("| `%s` | %s | `%s` |", m.name, m.invariant, m.test); !strings.Contains(page, row) {
		t.Errorf("docs/testing.md has no row that begins with %s", row)
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

// apply makes a changed copy of every file that the diff changes, and returns where each is, by the original.
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
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // in no repository the paths are those of dir
	if output, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more; make it again on the code as it is now:\n%s", m.diff, output)
	}
	return copies
}

// TestSeededBugsAreKilled builds what -mutants says with each bug and runs the test that must find it.
func TestSeededBugsAreKilled(t *testing.T) {
	list := slices.DeleteFunc(mutants(t), func(m mutant) bool {
		return *seed != "all" && (*seed != "some" || !m.quick) && *seed != m.name
	})
	if *seed == "all" {
		healthy(t, list)
	}
	killed, meter := 0, machine.Start()
	defer meter.Stop()
	for _, m := range list {
		began := time.Now()
		fate := m.fate(t)
		took := time.Since(began)
		if fate == "killed" {
			killed++
			meter.Check(t, m.name+" was killed, which", began, took, m.within())
		} else {
			t.Errorf("%s: %s by %s %s", m.name, fate, m.folder, m.test)
		}
		fmt.Printf("%-34s %-14s %-50s %-14s %3.0f s\n", m.name, m.folder, m.test, fate, took.Seconds())
	}
	if len(list) > 0 {
		fmt.Printf("%d of %d killed\n", killed, len(list))
	} else if *seed != "" {
		t.Errorf("there is no seeded bug %q", *seed)
	}
}

// within is how long the bug may live.
func (m mutant) within() time.Duration {
	if len(m.arguments) > 0 {
		return systemWithin
	}
	return killWithin
}

// healthy checks that the killing tests pass without the bugs: else they kill nothing. Suites of the whole program are left
// to make test.
func healthy(t *testing.T, list []mutant) {
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

// fate is killed only when the expected test ran, failed, and said what the bug does.
func (m mutant) fate(t *testing.T) string {
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
	case outcome[m.test] == "fail" && m.seen.MatchString(output):
		return "killed"
	case outcome[m.test] == "pass":
		return "survived"
	}
	t.Log(output)
	return "not understood" // not built, or failed for another reason
}

// runTests runs tests of a folder and returns how each ended, and all that was said. The flags hold for the programs, too,
// that a test builds, which go into a folder of their own.
func runTests(t *testing.T, m mutant, names []string, flags string) (outcome map[string]string, output string) {
	t.Helper()
	arguments := []string{"test", "-race", "-count=1", "-vet=off", "-json", "-timeout", (mutantPatience * m.within()).String()}
	arguments = append(arguments, "-run", "^("+strings.Join(names, "|")+")$", m.folder)
	if len(m.arguments) > 0 {
		arguments = append(append(arguments, "-args"), m.arguments...)
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Env = append(os.Environ(), "GOFLAGS="+flags, "TURNSTONE_TEST_PROGRAMS="+t.TempDir())
	var text strings.Builder
	command.Stderr = &text
	said, err := command.Output()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	outcome = map[string]string{}
	for lines := json.NewDecoder(bytes.NewReader(said)); ; {
		var event struct{ Action, Test, Output string }
		if err := lines.Decode(&event); errors.Is(err, io.EOF) {
			return outcome, text.String()
		} else if err != nil {
			t.Fatalf("reading what go test says: %v\n%s%s", err, said, text.String())
		}
		text.WriteString(event.Output)
		if event.Action == "pass" || event.Action == "fail" {
			outcome[event.Test] = event.Action
		}
	}
}
