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
	"http/markdown": {"commands.go", "extensions.go", "markdown.go", "mathml.go"},
}

// TestFilesOfAPackageCallEachOtherWithoutCycles checks the packages below these folders: the files of each one can be read from
// the top to the bottom.
func TestFilesOfAPackageCallEachOtherWithoutCycles(t *testing.T) {
	packages := map[string][]string{}
	walk(t, func(file string, _ []string) {
		for _, folder := range []string{"actors/", "http/", "cmd/turnstone/", "persistence/turns/"} {
			if strings.HasPrefix(file, folder) {
				packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
			}
		}
	})
	if len(packages) < 50 {
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
