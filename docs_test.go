package turnstone_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The bounds of the walkthrough of the code in docs/architecture.md.
const (
	walkFiles = 12
	walkLines = 600
)

var (
	walkRow = regexp.MustCompile("(?m)^\\| ([A-Z]?)\\d+ \\| `([^`]+\\.go)` \\| ([^|]+) \\|(.*)")
	quoted  = regexp.MustCompile("`([^`]+)`")
	goFile  = regexp.MustCompile("`[^`]+\\.go`")
)

// TestTheWalkthroughsOfTheArchitecturePageAreCorrect checks the tables in docs/architecture.md that follow operations
// through the code: the functions that they name exist. The first table, of POST /chat, names at most walkFiles files,
// those in its texts included, and its functions have at most walkLines lines together. Other pages say how many files it and the
// table of the answer have.
func TestTheWalkthroughsOfTheArchitecturePageAreCorrect(t *testing.T) {
	rows := walkRow.FindAllStringSubmatch(readPage(t, "docs/architecture.md"), -1)
	lines, files, answer, walks := 0, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		walks[row[1]] = true
		first := row[1] == ""
		if first {
			for _, name := range goFile.FindAllString(row[0], -1) {
				files[name] = true
			}
		} else if row[1] == "A" {
			answer[row[2]] = true
		}
		sizes := sizesIn(t, row[2])
		for _, name := range quoted.FindAllStringSubmatch(row[3], -1) {
			size, there := sizes[name[1]]
			if !there {
				t.Errorf("%s has no %s", row[2], name[1])
			}
			if first {
				lines += size
			}
		}
	}
	if len(walks) != 6 {
		t.Errorf("%d walkthroughs were found", len(walks))
	}
	if len(files) == 0 || len(files) > walkFiles || lines > walkLines {
		t.Errorf("the first walkthrough has %d lines in %d files, want at most %d in %d", lines, len(files), walkLines, walkFiles)
	}
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		for _, want := range []string{fmt.Sprintf("through %d files", len(files)), fmt.Sprintf("the answer through %d more", len(answer))} {
			if !strings.Contains(readPage(t, page), want) {
				t.Errorf("%s does not say that docs/architecture.md follows a request %s", page, want)
			}
		}
	}
	t.Logf("the first walkthrough has %d lines in %d files", lines, len(files))
}

// TestTheArchitecturePageListsEveryPackage checks that the table of folders in docs/architecture.md names every package, at
// least by the end of its path.
func TestTheArchitecturePageListsEveryPackage(t *testing.T) {
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*$").FindAllStringSubmatch(readPage(t, "docs/architecture.md"), -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[0], -1) {
			rows[row[1]] = append(rows[row[1]], name[1])
		}
	}
	for _, top := range []string{"protocol", "actors", "persistence", "providers", "http", "cmd"} {
		for _, folder := range layers[top] {
			if !slices.ContainsFunc(rows[top], func(name string) bool { return folder == name || strings.HasSuffix(folder, "/"+name) }) {
				t.Errorf("the table of folders does not list %s", folder)
			}
		}
	}
}

// sizesIn returns the number of lines of each function, constant and variable of a file, by name.
func sizesIn(t *testing.T, path string) map[string]int {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	size := func(n ast.Node) int { return files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1 }
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			sizes[d.Name.Name] = size(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					sizes[values.Names[0].Name] = size(values)
				}
			}
		}
	}
	return sizes
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPathsAndLinksInThePagesExist checks that every link, and every path in backticks that looks like a path of this
// repository, leads to an existing file.
func TestPathsAndLinksInThePagesExist(t *testing.T) {
	path := regexp.MustCompile("`((?:protocol|actors|persistence|providers|http|cmd|web|docs|tools|\\.ci)/[\\w./-]*)`")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range pages(t) {
		text, dir := readPage(t, page), "."
		if strings.HasPrefix(page, "docs/adr/") {
			dir = "docs/adr"
		} else if strings.HasPrefix(page, "docs/") {
			dir = "docs"
		}
		for _, found := range path.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s names %s: %v", page, found[1], err)
			}
		}
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(dir + "/" + found[1]); err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
			}
		}
	}
}

func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
	for _, dir := range []string{"docs", "docs/adr"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), ".md") {
				list = append(list, dir+"/"+entry.Name())
			}
		}
	}
	return list
}

// TestEveryLibraryIsListedInTheDependenciesPage checks that docs/dependencies.md lists every module that the code imports.
func TestEveryLibraryIsListedInTheDependenciesPage(t *testing.T) {
	var modules []string
	for line := range strings.Lines(readPage(t, "go.mod")) {
		if fields := strings.Fields(line); len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			modules = append(modules, fields[0])
		}
	}
	page := readPage(t, "docs/dependencies.md")
	missing := map[string]bool{}
	walkAll(t, func(file string, imports []string) {
		for _, path := range imports {
			module := moduleOf(modules, path)
			if module != "" && !strings.Contains(page, "`"+module+"`") && !missing[module] {
				missing[module] = true
				t.Errorf("docs/dependencies.md does not list `%s`, which %s imports", module, file)
			}
		}
	})
}

// moduleOf returns the longest module path that is a prefix of an import path, or "" for the standard library and for
// packages of this module.
func moduleOf(modules []string, path string) string {
	longest := ""
	for _, module := range modules {
		if (path == module || strings.HasPrefix(path, module+"/")) && len(module) > len(longest) {
			longest = module
		}
	}
	return longest
}

// TestTheErrorPageMatchesTheErrorCodes checks that docs/errors.md has a row for every error code, with the status that package
// http returns for it, and no row for any other code.
func TestTheErrorPageMatchesTheErrorCodes(t *testing.T) {
	codes := codesIn(t, "protocol/error.go")
	statuses := map[string]string{}
	entry := regexp.MustCompile(`protocol\.(Code\w+):\s+stdhttp\.(Status\w+),`)
	for _, found := range entry.FindAllStringSubmatch(readPage(t, "http/response/problem.go"), -1) {
		statuses[found[1]] = numbers[found[2]]
	}
	page := readPage(t, "docs/errors.md")
	for constant, code := range codes {
		if row := "| " + statuses[constant] + " | `" + code + "` |"; !strings.Contains(page, row) {
			t.Errorf("docs/errors.md has no row that starts with %q", row)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| \\d+ \\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1)
	for _, row := range rows {
		if !slices.Contains(slices.Collect(maps.Values(codes)), row[1]) {
			t.Errorf("docs/errors.md has a row for %s, which is not an error code", row[1])
		}
	}
}

var numbers = map[string]string{
	"StatusBadRequest": "400", "StatusUnauthorized": "401", "StatusForbidden": "403", "StatusNotFound": "404",
	"StatusMethodNotAllowed": "405", "StatusConflict": "409", "StatusGone": "410", "StatusRequestEntityTooLarge": "413",
	"StatusUnsupportedMediaType": "415", "StatusRequestedRangeNotSatisfiable": "416", "StatusMisdirectedRequest": "421", "StatusUnprocessableEntity": "422", "StatusTooManyRequests": "429",
	"StatusInternalServerError": "500", "StatusServiceUnavailable": "503",
}

func codesIn(t *testing.T, path string) map[string]string {
	t.Helper()
	codes := map[string]string{}
	constant := regexp.MustCompile(`(?m)^\s+(Code\w+)\s+Code = "([a-z_]+)"`)
	for _, found := range constant.FindAllStringSubmatch(readPage(t, path), -1) {
		codes[found[1]] = found[2]
	}
	if len(codes) == 0 {
		t.Fatalf("%s has no codes", path)
	}
	return codes
}
