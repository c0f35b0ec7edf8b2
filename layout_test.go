// Package turnstone_test holds the rules of the whole tree: which folders there are, and who may import whom.
package turnstone_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "turnstone/"

// folders is everything at the top, and what of ours each may import besides itself. A folder without Go code allows
// nothing.
var folders = map[string][]string{
	"protocol":    {},
	"actors":      {"protocol"},
	"persistence": {"protocol"},
	"providers":   {"protocol", "actors"},
	"http":        {"protocol", "actors", "persistence"},
	"cmd":         {"protocol", "actors", "persistence", "providers", "http", "web"},
	"web":         {},
	"docs":        {},
	"deploy":      {},
	"tools":       {},
	".ci":         {},
}

// unversioned are the folders that builds and runs make.
var unversioned = []string{".git", ".turnstone", "bin", "tmp"}

// owners are libraries with one place in the tree, by the beginning of their import path.
var owners = map[string]string{
	"github.com/jackc/":                      "persistence",
	"github.com/riverqueue/":                 "persistence",
	"github.com/redis/":                      "persistence",
	"github.com/go-redis/":                   "persistence",
	"github.com/aws/":                        "persistence",
	"github.com/go-chi/":                     "http",
	"github.com/danielgtaylor/":              "http",
	"github.com/rs/cors":                     "http",
	"github.com/asynkron/":                   "actors",
	"github.com/openai/":                     "providers",
	"github.com/anthropics/":                 "providers",
	"github.com/alecthomas/kong":             "cmd",
	"github.com/caarlos0/env":                "cmd",
	"github.com/modelcontextprotocol/go-sdk": "providers",
}

// banned are packages that nobody imports, with the reason.
var banned = map[string]string{
	"github.com/jackc/pgx/v5/stdlib":                  "it runs a COMMIT whose answer was lost a second time",
	"database/sql":                                    "we speak to Postgres through pgx itself",
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager": "deprecated; transfermanager is its successor",
	"github.com/asynkron/protoactor-go/cluster":       "its placement keeps actors alive twice",
	"github.com/asynkron/protoactor-go/persistence":   "it cannot report an error",
	"io/ioutil": "deprecated",
	"math/rand": "math/rand/v2, or crypto/rand for what must not be guessed",
}

func TestTheTopHoldsTheFoldersOfTheArchitectureAndNoOthers(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if _, known := folders[entry.Name()]; entry.IsDir() && !known && !slices.Contains(unversioned, entry.Name()) {
			t.Errorf("%s/ is no folder of the architecture", entry.Name())
		}
	}
}

func TestImportsGoOneWay(t *testing.T) {
	walk(t, func(file string, imports []string) {
		top, _, _ := strings.Cut(file, "/")
		for _, path := range imports {
			ours, isOurs := strings.CutPrefix(path, module)
			if !isOurs {
				continue
			}
			target, _, _ := strings.Cut(ours, "/")
			if target != top && !slices.Contains(folders[top], target) {
				t.Errorf("%s imports %s: %s may import %v", file, path, top, folders[top])
			}
			if strings.HasSuffix(path, "test") {
				t.Errorf("%s imports %s, which is for tests", file, path)
			}
		}
	})
}

func TestEveryLibraryStaysWithItsOwner(t *testing.T) {
	walk(t, func(file string, imports []string) {
		top, _, _ := strings.Cut(file, "/")
		for _, path := range imports {
			for library, owner := range owners {
				if strings.HasPrefix(path, library) && top != owner {
					t.Errorf("%s imports %s, which only %s may", file, path, owner)
				}
			}
		}
	})
}

func TestNobodyImportsWhatIsBanned(t *testing.T) {
	walkAll(t, func(file string, imports []string) {
		for _, path := range imports {
			if reason, no := banned[path]; no {
				t.Errorf("%s imports %s: %s", file, path, reason)
			}
		}
	})
}

// walk visits the files that run in production: not tests and not the packages named for tests, which may import more.
func walk(t *testing.T, visit func(file string, imports []string)) {
	t.Helper()
	walkAll(t, func(file string, imports []string) {
		if !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(path.Dir(file), "test") {
			visit(file, imports)
		}
	})
}

func walkAll(t *testing.T, visit func(file string, imports []string)) {
	t.Helper()
	visited := 0
	err := filepath.WalkDir(".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (slices.Contains(unversioned, at) || entry.Name() == "node_modules" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(at) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		visited++
		visit(filepath.ToSlash(at), importsOf(t, file))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if visited == 0 {
		t.Fatal("no Go file was found")
	}
}

func importsOf(t *testing.T, file *ast.File) []string {
	t.Helper()
	paths := make([]string, 0, len(file.Imports))
	for _, one := range file.Imports {
		path, err := strconv.Unquote(one.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestMigrationsAreNumberedWithoutGapsOrRepeats(t *testing.T) {
	files, err := filepath.Glob("persistence/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d migrations: %v", len(files), err)
	}
	for i, file := range files { // Glob sorts
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			t.Errorf("%s should have the number %03d", file, i+1)
		}
	}
}
