package turnstone_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logFields lists the names of all fields that the service may log. None of them is for what users or models write, for
// titles, file names, addresses, tokens or headers. Before a name is added, make sure that its values can have none of it.
var logFields = []string{
	// Requests. The account is its pseudonym, the route a pattern.
	"account", "code", "method", "ms", "request_id", "request_ids", "route", "status", "trace_id",
	// Identifiers of things, which name no person.
	"conversation_id", "dead", "file", "mail", "node", "task", "turn", "turn_id", "upload", "xid",
	// Turns and logs.
	"adoptions", "appends", "attempt", "bytes", "cause", "epoch", "first", "found", "frames_sha256", "last", "missing", "phase", "profile", "released", "sequence", "state", "step",
	// The service and its dependencies.
	"base_url", "binary", "build", "check", "direction", "dropped", "engine", "failing", "folder", "free_mib", "grace", "migration", "model", "partition", "reason", "schema", "server", "setting", "took",
	// Nodes of a cluster.
	"actor", "address", "number", "owner",
	// Counts and kinds.
	"accounts", "count", "created", "event", "kind", "orphans",
	// A stack has functions and positions, no values.
	"stack",
}

// loggers are the methods of a zap logger that write a line.
var loggers = []string{"Debug", "Info", "Warn", "Error", "DPanic", "Panic", "Fatal"}

// TestLogsHaveOnlyListedFields checks the names of the fields in all code of the service, and that no field takes any value:
// zap.Any and zap.Reflect would log whole structures. cmd/loadtest is no part of the service.
func TestLogsHaveOnlyListedFields(t *testing.T) {
	used := map[string]bool{}
	for at, file := range parsed(t) {
		if strings.HasPrefix(at, "cmd/loadtest/") || strings.HasSuffix(path.Dir(at), "test") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			method, is := call.Fun.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if of, is := method.X.(*ast.Ident); is && of.Name == "zap" {
				checkField(t, at, method.Sel.Name, call, used)
			} else if slices.Contains(loggers, method.Sel.Name) && isLogger(method.X) {
				checkMessage(t, at, call)
			}
			return true
		})
	}
	for _, name := range logFields {
		if !used[name] {
			t.Errorf("logFields has %s, which no code logs", name)
		}
	}
}

// fieldless are the functions of zap that make no field, and the field error, whose name is fixed.
var fieldless = []string{"New", "NewNop", "NewStdLog", "RedirectStdLogAt", "Error", "IncreaseLevel", "NewAtomicLevelAt", "AddStacktrace", "NewProductionEncoderConfig"}

func checkField(t *testing.T, at, function string, call *ast.CallExpr, used map[string]bool) {
	t.Helper()
	if slices.Contains(fieldless, function) {
		return
	}
	if slices.Contains([]string{"Any", "Reflect", "Inline", "Object", "Array", "Dict", "Objects"}, function) {
		t.Errorf("%s logs a structure with zap.%s", at, function)
		return
	}
	if len(call.Args) == 0 {
		return
	}
	name, is := call.Args[0].(*ast.BasicLit)
	if !is || name.Kind != token.STRING {
		t.Errorf("%s: the name of a field of zap.%s is not a constant", at, function)
		return
	}
	text, err := strconv.Unquote(name.Value)
	if err != nil {
		t.Fatal(err)
	}
	used[text] = true
	if !slices.Contains(logFields, text) {
		t.Errorf("%s logs the field %s, which is not in logFields", at, text)
	}
}

// isLogger reports whether an expression looks like a logger: log, r.log, rt.Log, n.log.Named("…").
func isLogger(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return strings.EqualFold(of.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(of.Sel.Name, "log")
	case *ast.CallExpr:
		method, is := of.Fun.(*ast.SelectorExpr)
		return is && method.Sel.Name == "Named" && isLogger(method.X)
	}
	return false
}

// checkMessage checks that a message is not formatted: a value in it would not be a listed field.
func checkMessage(t *testing.T, at string, call *ast.CallExpr) {
	t.Helper()
	if len(call.Args) == 0 {
		return
	}
	if formatted, is := call.Args[0].(*ast.CallExpr); is {
		t.Errorf("%s logs a message that %v formats", at, formatted.Fun)
	}
}
