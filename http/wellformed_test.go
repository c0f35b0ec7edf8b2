package http

import (
	"go/ast"
	"go/parser"
	"go/token"
	stdhttp "net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
)

func TestMalformedTextIsRefusedAtTheEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	conversation := protocol.NewConversationID().String()
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		code                        protocol.Code
		field                       string
	}{
		{"POST", "/chat", keyField, "\xff", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyField, "ä", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyField, "a b", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyField, strings.Repeat("k", 129), 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"GET", "/conversations", keyField, "\x00", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"PUT", "/account/settings", keyField, "a\tb", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"PUT", "/account/settings", "If-Match", "\x00", 422, protocol.CodeInvalid, "header.If-Match"},
		{"GET", "/chat/turns/" + protocol.NewTurnID().String() + "/events", "Last-Event-ID", "\xff", 422, protocol.CodeInvalid, "header.Last-Event-Id"},
		{"GET", "/conversations", "Accept-Encoding", "\xff", 400, protocol.CodeInvalidHeader, "header.Accept-Encoding"},
		{"GET", "/conversations", "X-Forwarded-For", "a\x1fb", 400, protocol.CodeInvalidHeader, "header.X-Forwarded-For"},
		{"GET", "/health", "Origin", "\xff", 400, protocol.CodeInvalidHeader, "header.Origin"},
		{"GET", "/conversations/%00/usage", keyField, "key", 404, protocol.CodeNotFound, ""},
		{"GET", "/conversations/" + conversation + "%FF", "", "", 404, protocol.CodeNotFound, ""},
		{"POST", "/conversations/%0A/usage", keyField, "key", 404, protocol.CodeNotFound, ""},
		{"GET", "/conversations?cursor=%FF", "", "", 422, protocol.CodeInvalid, "query.cursor"},
		{"GET", "/conversations?x=%00", "", "", 422, protocol.CodeInvalid, "query.x"},
		{"GET", "/conversations?%01=x", "", "", 422, protocol.CodeInvalid, "query"},
		{"GET", "/conversations?limit=%zz", "", "", 422, protocol.CodeInvalid, "query"},
	} {
		var body any
		if c.method != "GET" {
			body = route.Object{}
		}
		var headers []string
		if c.header != "" {
			headers = []string{c.header, c.value}
		}
		resp := ada.do(c.method, c.path, body, headers...)
		field := ""
		if len(resp.Errors) == 1 {
			field = resp.Errors[0].Field
		}
		if resp.status != c.status || resp.Code != c.code || !strings.EqualFold(field, c.field) {
			t.Errorf("%s %s with %s %q: %d %s", c.method, c.path, c.header, c.value, resp.status, resp.body)
		}
	}
	w.client().expect(401, "GET", "/conversations/%00/usage", nil)
	ada.expect(200, "GET", "/conversations", nil, "User-Agent", "Mozilla/5.0\t(é)")
}

func TestAnUncheckedHeaderMayBeLatin1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	for _, header := range []string{"User-Agent", "Referer", "X-Something"} {
		ada.expect(200, "GET", "/conversations", nil, header, "caf\xe9 \xff\x85")
		w.client().expect(200, "GET", "/health", nil, header, "caf\xe9 \xff\x85")
	}
	login := route.Object{"email": "ada@example.com", "password": testPassword}
	for sent, stored := range map[string]string{"Caf\xe9/1.0 \x85\x00": "Café/1.0 ", "Café/1.0 \u0085": "Café/1.0 "} {
		c := w.client()
		c.storeSession(c.expect(200, "POST", "/auth/login", login, "User-Agent", sent))
		var list protocol.List[protocol.Device]
		c.expect(200, "GET", "/auth/sessions?limit=1", nil).into(t, &list)
		if list.Data[0].UserAgent != stored {
			t.Errorf("%q is stored as %q", sent, list.Data[0].UserAgent)
		}
	}
}

// Every header field that the server reads is checked: those in the OpenAPI document, and those that the code reads.
func TestEveryHeaderThatIsReadIsChecked(t *testing.T) {
	t.Parallel()
	read := map[string]string{"Origin": "CrossOriginProtection", "Sec-Fetch-Site": "CrossOriginProtection"}
	server := newWorld(t)
	for _, r := range server.Routes() {
		for _, param := range route.OperationAt(server.OpenAPI(), r.Method, r.Path).Parameters {
			if param.In == "header" {
				read[stdhttp.CanonicalHeaderKey(param.Name)] = r.Method + " " + r.Path
			}
		}
	}
	inCode, checkedNames := headersInCode(t)
	for name, position := range inCode {
		read[stdhttp.CanonicalHeaderKey(name)] = position
	}
	checked := map[string]bool{}
	for _, name := range checkedNames {
		checked[stdhttp.CanonicalHeaderKey(name)] = true
	}
	for name, position := range read {
		if !checked[name] {
			t.Errorf("%s is read by %s but not checked", name, position)
		}
	}
	for name := range checked {
		if read[name] == "" {
			t.Errorf("%s is checked but not read", name)
		}
	}
}

// headersInCode returns the names in calls such as r.Header.Get("Origin") in this package and those below it, with the
// position of the last such call, and the keys of the map readHeaders.
func headersInCode(t *testing.T) (read map[string]string, checked []string) {
	t.Helper()
	constants := map[string]string{}
	set := token.NewFileSet()
	var arguments, keys []ast.Expr
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(filepath.Dir(file), "test") {
				continue
			}
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, value := range n.Values {
						if text, is := value.(*ast.BasicLit); is && text.Kind == token.STRING {
							constants[n.Names[i].Name], _ = strconv.Unquote(text.Value)
						}
						if list, is := value.(*ast.CompositeLit); is && n.Names[i].Name == "readHeaders" {
							for _, entry := range list.Elts {
								keys = append(keys, entry.(*ast.KeyValueExpr).Key)
							}
						}
					}
				case *ast.CallExpr:
					if argument := headerArgument(n); argument != nil {
						arguments = append(arguments, argument)
					}
				}
				return true
			})
		}
	}
	nameOf := func(expression ast.Expr) (name string) {
		switch e := expression.(type) {
		case *ast.BasicLit:
			name, _ = strconv.Unquote(e.Value)
		case *ast.Ident:
			name = constants[e.Name]
		case *ast.SelectorExpr:
			name = constants[e.Sel.Name]
		}
		if name == "" {
			t.Errorf("%s: the name of the header is not a constant", set.Position(expression.Pos()))
		}
		return name
	}
	read = map[string]string{}
	for _, expression := range arguments {
		read[nameOf(expression)] = set.Position(expression.Pos()).String()
	}
	for _, expression := range keys {
		checked = append(checked, nameOf(expression))
	}
	return read, checked
}

// headerArgument returns the argument if a call is one of Get or Values of a field Header, otherwise nil.
func headerArgument(call *ast.CallExpr) ast.Expr {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || method.Sel.Name != "Get" && method.Sel.Name != "Values" || len(call.Args) != 1 {
		return nil
	}
	if field, is := method.X.(*ast.SelectorExpr); is && field.Sel.Name == "Header" {
		return call.Args[0]
	}
	return nil
}
