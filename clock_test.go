package turnstone_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// timed lists the test code that waits for a time on the real clock, and why: a file, or a function of a file. Everything else awaits
// a signal, runs on the clock of a synctest bubble, or, for what another process does without a signal, uses clocktest.Poll.
var timed = map[string]string{
	"tests/crash/client_test.go":          "clients: their pauses are the load",
	"tests/crash/item_client_test.go":     "clients",
	"tests/crash/data_client_test.go":     "clients",
	"tests/crash/queue_client_test.go":    "clients",
	"tests/crash/research_client_test.go": "clients",
	"tests/chaos/load_test.go":            "clients",
	"tests/chaos/writer_test.go":          "clients",

	"tests/crash/faults_test.go run":              "when a fault begins",
	"tests/crash/faults_test.go wait":             "how long a fault lasts",
	"tests/chaos/chaos_test.go last":              "how long a fault lasts",
	"tests/chaos/chaos_test.go stutter":           "how long a fault lasts",
	"tests/chaos/chaos_test.go killDuringDrain":   "when a fault begins",
	"tests/faults/link_test.go flapping":          "how long a fault lasts",
	"tests/faults/postgres_test.go deadlockStorm": "how often a fault occurs",
	"tests/faults/storm_test.go startWriters":     "clients",
	"tests/e2e/kill_test.go runKillRounds":        "when a process is killed: at any moment",
	"tests/e2e/steering_test.go sendCommands":     "when a command arrives: at any moment before or after the end of a turn",

	"tests/research/corpus_test.go send":                   "a slow server",
	"providers/model/modeltest/failures.go testSlowReader": "a slow reader",
	"http/deadline_test.go Read":                           "a slow body, in a synctest bubble",
}

// A test that waits for a time fails on a slower computer, and is too slow on any other.
func TestTestsDoNotWaitByTheClock(t *testing.T) {
	packages := map[string]map[string]*ast.File{}
	walkAll(t, func(at string, _ []string) {
		folder := path.Dir(at)
		forTests := strings.HasSuffix(at, "_test.go") || strings.HasSuffix(folder, "test") && folder != "cmd/loadtest" || strings.HasPrefix(at, "tests/")
		if !forTests || folder == "protocol/clocktest" {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if packages[folder] == nil {
			packages[folder] = map[string]*ast.File{}
		}
		packages[folder][at] = file
	})
	used := map[string]bool{}
	for _, files := range packages {
		for _, wait := range waitsOf(files) {
			file, _, _ := strings.Cut(wait, " ")
			if timed[file] == "" && timed[wait] == "" {
				t.Errorf("%s waits for a time: await a signal", wait)
			}
			used[file], used[wait] = true, true
		}
	}
	for at := range timed {
		if !used[at] {
			t.Errorf("%s does not wait for a time any more", at)
		}
	}
}

func TestWaitsByTheClockAreFound(t *testing.T) {
	const source = `package a
func TestWaits(t *testing.T) { <-time.After(time.Second) }
func TestSleeps(t *testing.T) { _ = clock.Sleep(ctx, time.Second) }
func TestTicks(t *testing.T) { for range time.NewTicker(1).C {} }
func TestGuarded(t *testing.T) { select { case <-time.After(1): case <-done: } }
func TestFakeClock(t *testing.T) { synctest.Test(t, func(t *testing.T) { <-time.After(1); inside() }) }
func TestFakeClockOfAHelper(t *testing.T) { bubble(t, func() { <-time.After(1) }) }
func bubble(t *testing.T, run func()) { synctest.Test(t, func(*testing.T) { run(); (&world{}).step() }) }
func (w *world) step() { <-time.After(1) }
func inside() { <-time.After(1) }
func outside() { both() }
func TestBoth(t *testing.T) { synctest.Test(t, func(t *testing.T) { both() }) }
func both() { <-time.After(1) }
var table = func() { <-time.After(1) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a_test.go", "a_test.go TestSleeps", "a_test.go TestTicks", "a_test.go TestWaits", "a_test.go both"}
	if found := waitsOf(map[string]*ast.File{"a_test.go": file}); !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

// waitsOf returns the functions of a package that wait for a time on the real clock, as "file function"; without a function for
// other declarations. A function is on a fake clock if it starts a synctest bubble, by itself or by another function that does, or
// if only such functions use it.
func waitsOf(files map[string]*ast.File) (found []string) {
	const bubble = "synctest.Test"
	uses := map[string][]string{} // of functions, by name: methods of one name are the same one
	waits := map[string]string{}  // their functions, by "file function"
	for at, file := range files {
		for _, declared := range file.Decls {
			name, where := "", at
			if f, is := declared.(*ast.FuncDecl); is {
				name, where = f.Name.Name, at+" "+f.Name.Name
			}
			guarded := map[ast.Node]bool{} // waits of a select, which has other cases
			ast.Inspect(declared, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CommClause:
					if wait, is := n.Comm.(*ast.ExprStmt); is {
						guarded[wait.X] = true
					}
				case *ast.UnaryExpr:
					call, is := n.X.(*ast.CallExpr)
					if is && n.Op == token.ARROW && nameOf(call.Fun) == "time.After" && !guarded[n] {
						waits[where] = name
					}
				case *ast.SelectorExpr:
					whole := nameOf(n)
					if slices.Contains([]string{"clock.Sleep", "time.Sleep", "time.Tick", "time.NewTicker"}, whole) {
						waits[where] = name
					}
					if whole == bubble {
						uses[bubble] = append(uses[bubble], name)
					}
				case *ast.Ident:
					if n.Name != name {
						uses[n.Name] = append(uses[n.Name], name)
					}
				}
				return true
			})
		}
	}
	fake := map[string]bool{}
	for _, starts := range uses[bubble] {
		fake[starts] = true
		for _, user := range uses[starts] {
			fake[user] = true
		}
	}
	delete(fake, "")
	for more := true; more; {
		more = false
		for _, name := range waits {
			more = more || addFake(fake, uses, name, nil)
		}
	}
	for where, name := range waits {
		if !fake[name] {
			found = append(found, where)
		}
	}
	return slices.Sorted(slices.Values(found))
}

// addFake adds a function to those on a fake clock if only such functions use it. It reports whether it was added.
func addFake(fake map[string]bool, uses map[string][]string, name string, visiting []string) bool {
	if fake[name] || name == "" || len(uses[name]) == 0 || slices.Contains(visiting, name) {
		return false
	}
	for _, user := range uses[name] {
		if addFake(fake, uses, user, append(visiting, name)); !fake[user] {
			return false
		}
	}
	fake[name] = true
	return true
}

// nameOf returns a name with its package; "": the expression is something else.
func nameOf(of ast.Expr) string {
	selector, is := of.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	if from, is := selector.X.(*ast.Ident); is {
		return from.Name + "." + selector.Sel.Name
	}
	return ""
}
