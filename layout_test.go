// Package turnstone_test checks rules of the whole repository: its folders and their imports, its documentation, its
// names and its seeded bugs.
package turnstone_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "turnstone/"

// folders maps every top-level folder to the other top-level folders that its packages may import. A folder without Go
// code has an empty list.
var folders = map[string][]string{
	"protocol":    {},
	"actors":      {"protocol"},
	"persistence": {"protocol"},
	"providers":   {"protocol", "actors"},
	"http":        {"protocol", "actors", "persistence"},
	"cmd":         {"protocol", "actors", "persistence", "providers", "http", "web", "docs"},
	"web":         {},
	"tests":       {"protocol", "actors", "persistence", "providers", "http", "cmd"},
	"docs":        {},
	"deploy":      {},
	"tools":       {},
	".ci":         {},
}

// layers lists the packages of each top-level folder from the bottom to the top: a package may import only packages of
// its folder that precede it.
var layers = map[string][]string{
	"protocol": {"protocol/clock", "protocol/recent", "protocol/timelimit", "protocol/failpoint", "protocol/clip", "protocol/foreign", "protocol", "protocol/filetype", "protocol/words", "protocol/wire", "protocol/ownership", "protocol/turnlog", "protocol/uploadlog", "protocol/researchlog", "protocol/verify", "protocol/client", "protocol/typescript"},
	"actors": {
		"actors/llm", "actors/retry", "actors/routing", "actors/policy", "actors/toolbox", "actors/metering", "actors/turn/machine", "actors/passages", "actors/research/evidence", "actors/research/machine", "actors/modelinput", "actors/upload/machine", "actors/observe",
		"actors/tail", "actors/follow", "actors/shell", "actors/cluster", "actors/host", "actors/node", "actors/turn", "actors/upload", "actors/research", "actors/research/work", "actors",
	},
	"persistence": {
		"persistence/migrations", "persistence/open", "persistence/pg", "persistence/exports/archive", "persistence/jobs", "persistence/audit", "persistence/idempotency", "persistence/limits",
		"persistence/feed", "persistence/journal", "persistence/mails", "persistence/followups/queues", "persistence/accounts", "persistence/projects", "persistence/prompts", "persistence/conversations", "persistence/memory", "persistence/approvals", "persistence/feedback", "persistence/shares", "persistence/usage", "persistence/turns", "persistence/nodes", "persistence/followups",
		"persistence/search", "persistence/objects", "persistence/files", "persistence/artifacts", "persistence/research", "persistence/operator", "persistence/exports", "persistence/imports/source", "persistence/imports", "persistence/erasure",
		"persistence/objects/disk", "persistence/objects/s3", "persistence",
	},
	"providers": {
		"providers/tokens", "providers/model/lenient", "providers/model", "providers/model/anthropic", "providers/model/openai", "providers/model/scripted", "providers/model/open",
		"providers/charset", "providers/media", "providers/outbound", "providers/web/page", "providers/web/search", "providers/web/corpus", "providers/scanner", "providers/scanner/clamd", "providers/scanner/signatures", "providers/mail", "providers/transcription", "providers/embedded/process", "providers/child", "providers/code", "providers/tool", "providers/embedded", "providers/extract",
	},
	"http": {
		"http/sse", "http/auth", "http/ready", "http/response", "http/listener", "http/route", "http/exchange", "http/markdown", "http/transfer", "http/resource", "http/tools", "http/approvals", "http/chat", "http/conversations", "http/usage", "http/accounts", "http/system", "http/projects", "http/prompts", "http/search", "http/webapp", "http/feed", "http/accountdata", "http/feedback", "http/shares", "http/files", "http/artifacts", "http/research", "http/memory", "http/transcriptions", "http/sandbox", "http/manual", "http/router", "http",
	},
	"cmd": {
		"cmd/loadtest/console", "cmd/loadtest/figures", "cmd/loadtest/load", "cmd/loadtest/server", "cmd/loadtest/site",
		"cmd/loadtest/goals", "cmd/loadtest/promises", "cmd/loadtest/bench", "cmd/loadtest/soak", "cmd/loadtest",
		"cmd/turnstone/settings", "cmd/turnstone/telemetry", "cmd/turnstone/users", "cmd/turnstone/cluster", "cmd/turnstone/balancer", "cmd/turnstone/admin", "cmd/turnstone/operate",
		"cmd/turnstone/folder", "cmd/turnstone/diskspace", "cmd/turnstone/connect", "cmd/turnstone/private", "cmd/turnstone/socket", "cmd/turnstone/doctor", "cmd/turnstone/dev", "cmd/turnstone",
	},
	"web":   {"web"},
	"docs":  {"docs"},
	"tests": {"tests/browser", "tests/chaos", "tests/crash", "tests/e2e", "tests/exhaustion", "tests/failpoints", "tests/faults", "tests/research", "tests/restore"},
}

// webLayers lists the folders of web/src from the bottom to the top: a module may import only from its own folder and from
// those before it. Of a feature, other folders may import only the public file, index.ts.
var webLayers = []string{
	"generated", "api", "sandbox", "turn", "messages", "style", "controls", "keys", "parts",
	"features/sign-in", "features/files", "features/research", "features/prompts", "features/composer", "features/artifacts", "features/projects", "features/sharing", "features/conversation",
	"features/sidebar", "features/search", "features/settings",
	"layout", ".",
}

// machines lists the packages of state machines, and the one that decides about sources and citations. They have no clock, no
// context, no lock, no log and no store, so they decide the same from the same events.
var machines = []string{"actors/turn/machine", "actors/upload/machine", "actors/research/machine", "actors/research/evidence"}

// apart maps packages to those that they must not import: the kinds of durable work, and what must know none of them.
var apart = map[string][]string{
	"actors/turn":     {"actors/upload", "actors/research", "actors/node"},
	"actors/upload":   {"actors/turn", "actors/research", "actors/node", "protocol/turnlog"},
	"actors/research": {"actors/turn", "actors/upload", "actors/node", "protocol/turnlog"},
	"actors/shell":    {"actors/turn", "actors/upload", "actors/research", "protocol/turnlog"},
	"actors/host":     {"actors/turn", "actors/upload", "actors/research", "protocol/turnlog"},
	"actors/node":     {"actors/turn", "actors/upload", "actors/research", "protocol/turnlog"},
	"http/sse":        {"actors/turn", "actors/upload", "actors/research"},

	"persistence/nodes": {"protocol/turnlog"},
	"persistence/pg":    {"protocol/turnlog"},
}

// alsoPure lists what some packages may import in addition to the list pure: more functions without state.
var alsoPure = map[string][]string{
	"actors/research/evidence": {
		"encoding/binary", "math/bits", "net/url", "path", "regexp", "unicode", "unicode/utf8", "golang.org/x/net/idna", "golang.org/x/net/publicsuffix",
		"golang.org/x/text/unicode/norm", "turnstone/actors/passages", "turnstone/protocol/words",
	},
	"actors/research/machine": {"crypto/sha256", "encoding/hex", "turnstone/actors/research/evidence", "turnstone/protocol/researchlog"},
}

// pure lists what a state machine may import.
var pure = []string{
	"encoding/json", "fmt", "maps", "slices", "strconv", "strings", "time", "turnstone/actors/llm", "turnstone/actors/policy", "turnstone/actors/routing", "turnstone/protocol", "turnstone/protocol/clip", "turnstone/protocol/foreign", "turnstone/protocol/turnlog", "turnstone/protocol/uploadlog",
}

// timeValues is what a state machine may use of package time: values that it is given, but no clock.
var timeValues = []string{"Duration", "Time", "Millisecond", "Second", "Minute", "Hour"}

// unversioned lists the folders that builds and runs create.
var unversioned = []string{".git", ".turnstone", "bin", "tmp"}

// owners maps the beginning of a library's import path to the only top-level folder that may import it.
var owners = map[string]string{
	"github.com/jackc/":                  "persistence",
	"github.com/riverqueue/":             "persistence",
	"github.com/redis/":                  "persistence",
	"github.com/go-redis/":               "persistence",
	"github.com/aws/":                    "persistence",
	"github.com/go-chi/":                 "http",
	"github.com/danielgtaylor/":          "http",
	"github.com/rs/cors":                 "http",
	"github.com/yuin/goldmark":           "http",
	"github.com/microcosm-cc/bluemonday": "http",
	"google.golang.org/grpc":             "actors",
	"github.com/asynkron/":               "actors",
	"github.com/gabriel-vasile/":         "providers",
	"github.com/xuri/excelize/":          "providers",
	"codeberg.org/readeck/":              "providers",
	"github.com/gogs/chardet":            "providers",
	"github.com/JohannesKaufmann/":       "providers",
	"golang.org/x/image":                 "providers",
	"github.com/wneessen/":               "providers",
	"github.com/dop251/":                 "providers",
	"github.com/alecthomas/kong":         "cmd",
	"go.opentelemetry.io/otel/sdk":       "cmd",
	"go.opentelemetry.io/otel/exporters": "cmd",
	"github.com/caarlos0/env":            "cmd",
}

// banned maps packages that must not be imported to the reason.
var banned = map[string]string{
	"github.com/jackc/pgx/v5/stdlib":                  "it repeats a COMMIT whose reply was lost",
	"database/sql":                                    "the code uses pgx directly",
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager": "deprecated; transfermanager is its successor",
	"github.com/asynkron/protoactor-go/cluster":       "its placement can run the same actor twice",
	"github.com/asynkron/protoactor-go/persistence":   "it cannot report an error",
	"io/ioutil": "deprecated",
	"math/rand": "use math/rand/v2, or crypto/rand for values that must not be guessable",
}

func TestTopLevelFoldersAreThoseOfTheArchitecture(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if _, known := folders[entry.Name()]; entry.IsDir() && !known && !slices.Contains(unversioned, entry.Name()) {
			t.Errorf("%s/ is not a folder of the architecture", entry.Name())
		}
	}
}

func TestImportsFollowTheAllowedDirections(t *testing.T) {
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

func TestPackagesOfAFolderImportDownwardOnly(t *testing.T) {
	walk(t, func(file string, imports []string) {
		top, _, inFolder := strings.Cut(file, "/")
		if !inFolder {
			return
		}
		at := slices.Index(layers[top], path.Dir(file))
		if at < 0 {
			t.Errorf("%s is not in the layers of %s", path.Dir(file), top)
		}
		for _, imported := range imports {
			ours, isOurs := strings.CutPrefix(imported, module)
			if target, _, _ := strings.Cut(ours, "/"); !isOurs || target != top {
				continue
			}
			if below := slices.Index(layers[top], ours); below < 0 || below >= at {
				t.Errorf("%s imports %s, which is not below it", file, imported)
			}
		}
	})
}

func TestKindsOfWorkDoNotKnowEachOther(t *testing.T) {
	checked := map[string]bool{}
	walk(t, func(file string, imports []string) {
		checked[path.Dir(file)] = true
		for _, other := range apart[path.Dir(file)] {
			for _, imported := range imports {
				if ours, is := strings.CutPrefix(imported, module); is && (ours == other || strings.HasPrefix(ours, other+"/")) {
					t.Errorf("%s imports %s", file, imported)
				}
			}
		}
	})
	for folder := range apart {
		if !checked[folder] {
			t.Errorf("%s has no files", folder)
		}
	}
}

// TestTheRoutesOfANounAreInRoutes: a reader finds the routes of every noun in the same file of its package.
func TestTheRoutesOfANounAreInRoutes(t *testing.T) {
	routes := 0
	for at, file := range parsed(t) {
		if path.Dir(path.Dir(at)) != "http" || path.Dir(at) == "http/router" || path.Dir(at) == "http/route" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if of, is := selector.X.(*ast.Ident); is && of.Name == "route" && slices.Contains([]string{"Call", "Stream", "Route"}, selector.Sel.Name) {
				if routes++; path.Base(at) != "routes.go" {
					t.Errorf("%s has a route: move it to routes.go", at)
				}
			}
			return true
		})
	}
	if routes < 100 {
		t.Errorf("only %d routes were found", routes)
	}
}

// webRoot is the folder of the modules of the web app.
const webRoot = "web/src"

var (
	webImport = regexp.MustCompile(`(?:from|import|import\()\s*["'](\.[^"']+)["']`)
	// webEffect matches a statement of a module that starts something when the module is imported.
	webEffect = regexp.MustCompile(`(?m)^(?:if \(.*\) |)(?:[\w.()]+\.(?:subscribe|addEventListener|replaceState|pushState)\(|[\w.]+\.onmessage =|setInterval\(|(?:const|let) \w+ = new BroadcastChannel\()`)
)

func TestModulesOfTheWebAppImportDownwardOnlyAndStartNothing(t *testing.T) {
	imports := webImports(t)
	if len(imports) < 50 {
		t.Errorf("only %d modules were checked", len(imports))
	}
	for at, targets := range imports {
		own := webFolder(at)
		if !slices.Contains(webLayers, own) {
			t.Errorf("the folder of %s is not in the layers of the web app", at)
		}
		for _, target := range targets {
			folder := webFolder(target)
			if below := slices.Index(webLayers, folder); below < 0 || below > slices.Index(webLayers, own) {
				t.Errorf("%s imports %s, which is not below it", at, target)
			}
			if strings.HasPrefix(folder, "features/") && folder != own && path.Base(target) != "index.ts" {
				t.Errorf("%s imports %s, which only its feature may import: use %s/index.ts", at, target, folder)
			}
		}
		text, err := os.ReadFile(path.Join(webRoot, at))
		if err != nil {
			t.Fatal(err)
		}
		if effect := webEffect.FindString(string(text)); effect != "" {
			t.Errorf("%s starts something when it is imported (%s): do that in a function that start.ts calls", at, effect)
		}
	}
}

func TestModulesOfTheWebAppImportEachOtherWithoutCycles(t *testing.T) {
	imports := webImports(t)
	finished := map[string]bool{}
	var visit func(at string, trail []string)
	visit = func(at string, trail []string) {
		if start := slices.Index(trail, at); start >= 0 {
			t.Errorf("modules import each other: %s", strings.Join(append(trail[start:], at), " → "))
			return
		}
		if finished[at] {
			return
		}
		for _, target := range imports[at] {
			visit(target, append(trail, at))
		}
		finished[at] = true
	}
	for at := range imports {
		visit(at, nil)
	}
}

// webFolder returns the folder of webLayers that contains a module.
func webFolder(module string) string {
	folders := strings.Split(path.Dir(module), "/")
	if folders[0] == "features" {
		return path.Join(folders[:min(2, len(folders))]...)
	}
	return folders[0]
}

// webImports returns the modules of the web app, without tests and workers, each with the modules that it imports at once or
// later. Paths are relative to web/src.
func webImports(t *testing.T) map[string][]string {
	t.Helper()
	root := os.DirFS(webRoot)
	suffixes := []string{"", ".ts", ".tsx", "/index.ts"}
	imports := map[string][]string{}
	err := fs.WalkDir(root, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(path.Ext(at), ".ts") || strings.Contains(at, ".test.") || strings.Contains(at, ".worker.") {
			return err
		}
		text, err := fs.ReadFile(root, at)
		if err != nil {
			return err
		}
		imports[at] = nil
		for _, match := range webImport.FindAllStringSubmatch(string(text), -1) {
			specifier, _, _ := strings.Cut(match[1], "?")
			named := path.Join(path.Dir(at), specifier)
			suffix := slices.IndexFunc(suffixes, func(suffix string) bool {
				info, err := fs.Stat(root, named+suffix)
				return err == nil && !info.IsDir()
			})
			if suffix < 0 {
				t.Errorf("%s imports %s, which does not exist", at, specifier)
				continue
			}
			imports[at] = append(imports[at], named+suffixes[suffix])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func TestStateMachinesArePure(t *testing.T) {
	files := map[string]int{}
	walk(t, func(file string, imports []string) {
		if !slices.Contains(machines, path.Dir(file)) {
			return
		}
		files[path.Dir(file)]++
		for _, imported := range imports {
			if !slices.Contains(pure, imported) && !slices.Contains(alsoPure[path.Dir(file)], imported) {
				t.Errorf("%s imports %s", file, imported)
			}
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if selector, is := n.(*ast.SelectorExpr); is {
				if of, is := selector.X.(*ast.Ident); is && of.Name == "time" && !slices.Contains(timeValues, selector.Sel.Name) {
					t.Errorf("%s uses time.%s", file, selector.Sel.Name)
				}
			}
			return true
		})
	})
	if len(files) != len(machines) {
		t.Errorf("only these packages have files: %v", files)
	}
}

// TestTheLongTestsExist checks the names of the tests that make test runs in an invocation of their own: the other one leaves them
// out in all packages.
func TestTheLongTestsExist(t *testing.T) {
	script := readPage(t, "tools/test.sh")
	list := regexp.MustCompile(`(?m)^long='\^\(([A-Za-z0-9|]+)\)\$'$`).FindStringSubmatch(script)
	packages := regexp.MustCompile(`(?m)^computing=\(([a-z./ ]+)\)$`).FindStringSubmatch(script)
	if list == nil || packages == nil {
		t.Fatal("tools/test.sh has no list of long tests")
	}
	computing := strings.Fields(packages[1])
	found := map[string][]string{}
	walkAll(t, func(file string, _ []string) {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(readPage(t, file), -1) {
			found[m[1]] = append(found[m[1]], path.Dir(file))
		}
	})
	for name := range strings.SplitSeq(list[1], "|") {
		if folders := found[name]; len(folders) != 1 || !slices.Contains(computing, "./"+folders[0]) {
			t.Errorf("%s is a test of %v, want one of %v", name, folders, computing)
		}
	}
}

// TestPackagesWithoutTheRaceDetectorStartNoGoroutines checks the packages that make test tests without the race detector.
func TestPackagesWithoutTheRaceDetectorStartNoGoroutines(t *testing.T) {
	list := regexp.MustCompile(`(?m)^sequential=\(([a-z./\s]+)\)$`).FindStringSubmatch(readPage(t, "tools/test.sh"))
	if list == nil {
		t.Fatal("tools/test.sh has no list of sequential packages")
	}
	files := map[string]int{}
	for folder := range strings.FieldsSeq(list[1]) {
		files[strings.TrimPrefix(folder, "./")] = 0
	}
	walkAll(t, func(file string, imports []string) {
		folder := path.Dir(file)
		if _, sequential := files[folder]; !sequential {
			return
		}
		files[folder]++
		for _, imported := range imports {
			if strings.HasPrefix(imported, "sync") || imported == "testing/synctest" {
				t.Errorf("%s imports %s", file, imported)
			}
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			if call, is := n.(*ast.SelectorExpr); is {
				starts = call.Sel.Name == "Parallel" || call.Sel.Name == "Go" || call.Sel.Name == "AfterFunc"
			}
			if starts {
				t.Errorf("%s starts a goroutine: remove its package from the sequential ones in tools/test.sh", file)
			}
			return true
		})
	})
	for folder, n := range files {
		if n == 0 {
			t.Errorf("%s has no files", folder)
		}
	}
}

func TestEveryLibraryIsImportedOnlyByItsOwner(t *testing.T) {
	imported := map[string]bool{}
	walk(t, func(file string, imports []string) {
		top, _, _ := strings.Cut(file, "/")
		for _, path := range imports {
			for library, owner := range owners {
				if !strings.HasPrefix(path, library) {
					continue
				}
				imported[library] = true
				if top != owner {
					t.Errorf("%s imports %s, which only %s may import", file, path, owner)
				}
			}
		}
	})
	for library, owner := range owners {
		if !imported[library] {
			t.Errorf("%s does not import %s: remove it from owners", owner, library)
		}
	}
}

func TestNoFileImportsABannedPackage(t *testing.T) {
	walkAll(t, func(file string, imports []string) {
		for _, path := range imports {
			if reason, no := banned[path]; no {
				t.Errorf("%s imports %s: %s", file, path, reason)
			}
		}
	})
}

// maxFileLines is the limit of a file. Packages and types have no limit: they would be split where the limit is, and not where
// their responsibilities end (ADR 15).
const maxFileLines = 600

func TestFilesAreSmall(t *testing.T) {
	for at := range parsed(t) {
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte{'\n'}); n > maxFileLines {
			t.Errorf("%s has %d lines, want at most %d", at, n, maxFileLines)
		}
	}
}

// maxVersioned limits a versioned file, in bytes. The OpenAPI document is the largest one.
const maxVersioned = 4 << 20

// A program that go build writes into the top folder is easily committed, and stays in every clone.
func TestNoProgramIsVersioned(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z").Output()
	if err != nil || len(list) == 0 {
		t.Fatalf("listing the versioned files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // deleted, but not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > maxVersioned || bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%s is a program, or has more than %d bytes (%d)", name, maxVersioned, len(content))
		}
	}
}

// walk visits the files that run in production: not tests, and not packages for tests, which may import more.
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

// TestNoDirectiveNamesALinterThatDoesNotRun: such a directive suppresses nothing, and nolintlint does not find it.
func TestNoDirectiveNamesALinterThatDoesNotRun(t *testing.T) {
	_, list, _ := strings.Cut(readPage(t, ".golangci.yml"), "  enable:\n")
	list, _, _ = strings.Cut(list, "  settings:\n")
	var enabled []string
	for line := range strings.Lines(list) {
		enabled = append(enabled, strings.TrimLeft(strings.TrimSpace(line), "- "))
	}
	if len(enabled) < 5 {
		t.Fatalf("the linters that run: %q", enabled)
	}
	directive := regexp.MustCompile(`//nolint:([a-z,]+)`)
	found := 0
	walkAll(t, func(file string, _ []string) {
		for _, names := range directive.FindAllStringSubmatch(readPage(t, file), -1) {
			for name := range strings.SplitSeq(names[1], ",") {
				if found++; !slices.Contains(enabled, name) {
					t.Errorf("%s has a directive for %s, which does not run", file, name)
				}
			}
		}
	})
	if found == 0 {
		t.Error("no directive was found")
	}
}
