package turnstone_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutual lists the files that call each other within a package, by package. The list may only become shorter: a new cycle means
// that a function belongs into another file.
var mutual = map[string][]string{
	// A mail of one format can be attached to a mail of the other.
	"providers/extract": {"mail.go", "outlook.go"},
	// The decoder passes a member to the reader of its format, which reads what is in it with the decoder; archives contain exports, and
	// messages of one service contain what others have too.
	"persistence/imports/source": {
		"archive.go", "asset.go", "chatgpt.go", "citation.go", "claude.go", "decode.go", "deepseek.go", "extra.go", "file.go", "gemini.go", "librechat.go",
		"model.go", "openwebui.go", "own.go", "own_archive.go", "textdoc.go", "tree.go",
	},
}

// TestFilesOfAPackageCallEachOtherWithoutCycles checks the packages below these folders, except mutual: the files of each one can be read
// from the top to the bottom.
func TestFilesOfAPackageCallEachOtherWithoutCycles(t *testing.T) {
	packages := map[string][]string{}
	walk(t, func(file string, _ []string) {
		for _, folder := range []string{"actors/", "http/", "cmd/turnstone/", "persistence/", "providers/", "protocol/"} {
			if strings.HasPrefix(file, folder) {
				packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
			}
		}
	})
	if len(packages) < 100 {
		t.Errorf("only %d packages were checked", len(packages))
	}
	for folder, files := range packages {
		cycles := cyclesOf(callsOf(t, folder, files))
		if !slices.Equal(cycles, mutual[folder]) {
			t.Errorf("files of %s call each other: %q, want %q", folder, cycles, mutual[folder])
		}
	}
	for folder := range mutual {
		if packages[folder] == nil {
			t.Errorf("%s has no files", folder)
		}
	}
}

// noPackages imports packages without their contents: the types of one package are enough to find the calls between its files.
type noPackages struct{}

func (noPackages) Import(of string) (*types.Package, error) {
	empty := types.NewPackage(of, path.Base(of))
	empty.MarkComplete()
	return empty, nil
}

// callsOf returns the calls between the files of a package: for each file, the other files with a function or method that it uses.
func callsOf(t *testing.T, folder string, names []string) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	files := make([]*ast.File, len(names))
	for i, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = file
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}}
	checked, _ := config.Check(folder, set, files, info) // names of other packages are unknown, which is an error
	calls := map[string][]string{}
	for use, object := range info.Uses {
		called, is := object.(*types.Func)
		if !is || called.Pkg() != checked || called.Signature().Recv() != nil && types.IsInterface(called.Signature().Recv().Type()) {
			continue
		}
		from, to := baseOf(set, use.Pos()), baseOf(set, called.Origin().Pos())
		if from != to && !slices.Contains(calls[from], to) {
			calls[from] = append(calls[from], to)
		}
	}
	return calls
}

func baseOf(set *token.FileSet, at token.Pos) string { return filepath.Base(set.Position(at).Filename) }

// cyclesOf returns the files that reach themselves, sorted.
func cyclesOf(calls map[string][]string) (cycles []string) {
	for _, start := range slices.Sorted(maps.Keys(calls)) {
		seen := map[string]bool{}
		for next := slices.Clone(calls[start]); len(next) > 0; next = next[1:] {
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, calls[next[0]]...)
			}
		}
		if seen[start] {
			cycles = append(cycles, start)
		}
	}
	return cycles
}

// plurals are the last words of names of files that may be plural: words that are always plural, and what such a file lists.
var plurals = []string{"handlers", "instructions", "limits", "metrics", "ports", "routes", "settings", "slots", "stats", "stores", "symbols"}

// pluralNames are the files that are named after something with such a name.
var pluralNames = []string{
	"providers/embedded/postgres.go",
	"providers/model/openai/responses.go",    // the interface of OpenAI with this name
	"providers/tool/search_conversations.go", // the tool
	"providers/tool/search_files.go",         // the tool
	"providers/web/page/robots.go",           // robots.txt
}

// TestAReaderFindsTheFileOfANoun checks the rule for names of docs/architecture.md.
func TestAReaderFindsTheFileOfANoun(t *testing.T) {
	var files []string
	walkAll(t, func(at string, _ []string) { files = append(files, at) })
	for _, found := range misnamed(files) {
		t.Error(found)
	}
	for _, at := range pluralNames {
		if !slices.Contains(files, at) {
			t.Errorf("there is no %s", at)
		}
	}
	for _, word := range plurals {
		if !slices.ContainsFunc(files, func(at string) bool { return wordOf(at) == word }) {
			t.Errorf("no file has the name %s.go", word)
		}
	}
}

func TestTheRuleForNamesFindsWhatBreaksIt(t *testing.T) {
	for _, c := range []struct{ files, want string }{
		{"http/a/routes.go http/a/address.go protocol/status.go actors/a/synthesis.go cmd/a/jobs.go tests/a/rows_test.go", ""},
		{"http/shares/artifacts.go", "http/shares/artifacts.go has a plural: want artifact.go"},
		{"persistence/a/live_queries.go", "persistence/a/live_queries.go has a plural: want live_query.go"},
		{"persistence/a/change.go", "persistence/a/change.go does not say of what: want <noun>_change.go"},
		{"persistence/a/create.go", "persistence/a/create.go does not say of what: want <noun>.go"},
		{"http/a/limit.go http/a/limits.go", "http/a/limit.go and http/a/limits.go have the same name"},
		{"cmd/a/box_test.go cmd/a/boxes.go", "cmd/a/box_test.go and cmd/a/boxes.go have the same name"},
	} {
		if found := strings.Join(misnamed(strings.Fields(c.files)), "\n"); found != c.want {
			t.Errorf("the files %s: %q, want %q", c.files, found, c.want)
		}
	}
}

// misnamed returns what breaks the rule for names: a plural where the rule wants a singular, a verb without its noun, and two files
// of one package that have the singular and the plural of the same name. Tests and cmd may have plurals.
func misnamed(files []string) (found []string) {
	names := map[string]string{}
	for _, at := range slices.Sorted(slices.Values(files)) {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(at), ".go"), "_test")
		one := singular(name)
		if same, is := names[path.Join(path.Dir(at), one)]; is && strings.TrimSuffix(strings.TrimSuffix(path.Base(same), ".go"), "_test") != name {
			found = append(found, same+" and "+at+" have the same name")
		}
		names[path.Join(path.Dir(at), one)] = at
		top, _, _ := strings.Cut(at, "/")
		if strings.HasSuffix(at, "_test.go") || strings.HasSuffix(path.Dir(at), "test") || !slices.Contains([]string{"protocol", "actors", "persistence", "providers", "http"}, top) {
			continue
		}
		switch {
		case name == "change":
			found = append(found, at+" does not say of what: want <noun>_change.go")
		case name == "create":
			found = append(found, at+" does not say of what: want <noun>.go")
		case one != name && !slices.Contains(plurals, wordOf(at)) && !slices.Contains(pluralNames, at):
			found = append(found, at+" has a plural: want "+one+".go")
		}
	}
	return found
}

// wordOf returns the last word of the name of a file.
func wordOf(at string) string {
	name := strings.TrimSuffix(path.Base(at), ".go")
	return name[strings.LastIndexByte(name, '_')+1:]
}

// singular returns an English noun without the ending of its plural.
func singular(noun string) string {
	for _, ending := range []string{"ss", "us", "is", "ias"} {
		if strings.HasSuffix(noun, ending) {
			return noun
		}
	}
	if stem, is := strings.CutSuffix(noun, "ies"); is {
		return stem + "y"
	}
	for _, ending := range []string{"sses", "shes", "ches", "xes", "iases"} {
		if strings.HasSuffix(noun, ending) {
			return strings.TrimSuffix(noun, "es")
		}
	}
	return strings.TrimSuffix(noun, "s")
}

// TestTransitionTablesAreInTheFileOfTheState checks the rule for names of docs/architecture.md.
func TestTransitionTablesAreInTheFileOfTheState(t *testing.T) {
	tables := 0
	walk(t, func(file string, _ []string) {
		if path.Dir(file) != "protocol" {
			return
		}
		found := tablesIn(t, file, nil)
		tables += len(found)
		if len(found) > 0 && !hasTables(file) {
			t.Errorf("%s has %s, want it in <noun>_state.go", file, strings.Join(found, ", "))
		}
		if len(found) == 0 && hasTables(file) {
			t.Errorf("%s has no table of transitions", file)
		}
	})
	if tables < 10 {
		t.Errorf("only %d tables were found", tables)
	}
	const source = "package protocol\n\nvar (\n\tnames []string\n\tMailTransitions = []Transition[MailState, MailTrigger]{}\n)\n"
	if found := tablesIn(t, "protocol/mail.go", source); !slices.Equal(found, []string{"MailTransitions"}) || hasTables("protocol/mail.go") {
		t.Errorf("a table in another file was not found: %q", found)
	}
}

// hasTables reports whether a file of protocol has tables of transitions, by its name.
func hasTables(file string) bool { return strings.HasSuffix(file, "_state.go") }

// tablesIn returns the names of the tables of transitions in a file; source is its text, nil: it is read.
func tablesIn(t *testing.T, file string, source any) (tables []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range parsed.Decls {
		values, is := declaration.(*ast.GenDecl)
		if !is || values.Tok != token.VAR {
			continue
		}
		for _, spec := range values.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasSuffix(name.Name, "Transitions") {
					tables = append(tables, name.Name)
				}
			}
		}
	}
	return tables
}
