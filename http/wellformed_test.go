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

	"turnstone/protocol"
)

func TestMalformedTextIsRefusedAtTheEntry(t *testing.T) {
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	conversation := protocol.NewConversationID().String()
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		code                        protocol.Code
		field                       string
	}{
		{"POST", "/chat", keyHeader, "\xff", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyHeader, "ä", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyHeader, "a b", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"POST", "/chat", keyHeader, strings.Repeat("k", 129), 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"GET", "/conversations", keyHeader, "\x00", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"PUT", "/account/settings", keyHeader, "a\tb", 422, protocol.CodeInvalid, "header.Idempotency-Key"},
		{"PUT", "/account/settings", "If-Match", "\x00", 422, protocol.CodeInvalid, "header.If-Match"},
		{"GET", "/chat/turns/" + protocol.NewTurnID().String() + "/events", "Last-Event-ID", "\xff", 422, protocol.CodeInvalid, "header.Last-Event-Id"},
		{"GET", "/conversations", "Accept-Encoding", "\xff", 400, protocol.CodeInvalidHeader, "header.Accept-Encoding"},
		{"GET", "/conversations", "X-Forwarded-For", "a\x1fb", 400, protocol.CodeInvalidHeader, "header.X-Forwarded-For"},
		{"GET", "/health", "Origin", "\xff", 400, protocol.CodeInvalidHeader, "header.Origin"},
		{"GET", "/conversations/%00/usage", keyHeader, "key", 404, protocol.CodeNotFound, ""},
		{"GET", "/conversations/" + conversation + "%FF", "", "", 404, protocol.CodeNotFound, ""},
		{"POST", "/conversations/%0A/usage", keyHeader, "key", 404, protocol.CodeNotFound, ""},
		{"GET", "/conversations?cursor=%FF", "", "", 422, protocol.CodeInvalid, "query.cursor"},
		{"GET", "/conversations?x=%00", "", "", 422, protocol.CodeInvalid, "query.x"},
		{"GET", "/conversations?%01=x", "", "", 422, protocol.CodeInvalid, "query"},
		{"GET", "/conversations?limit=%zz", "", "", 422, protocol.CodeInvalid, "query"},
	} {
		var body any
		if c.method != "GET" {
			body = object{}
		}
		var headers []string
		if c.header != "" {
			headers = []string{c.header, c.value}
		}
		answer := ada.do(c.method, c.path, body, headers...)
		field := ""
		if len(answer.Errors) == 1 {
			field = answer.Errors[0].Field
		}
		if answer.status != c.status || answer.Code != c.code || !strings.EqualFold(field, c.field) {
			t.Errorf("%s %s with %s %q: %d %s", c.method, c.path, c.header, c.value, answer.status, answer.body)
		}
	}
	w.client().expect(401, "GET", "/conversations/%00/usage", nil)
	ada.expect(200, "GET", "/conversations", nil, "User-Agent", "Mozilla/5.0\t(é)")
}

func TestAHeaderThatDecidesNothingMayBeLatin1(t *testing.T) {
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	for _, header := range []string{"User-Agent", "Accept-Language", "Referer", "X-Something"} {
		ada.expect(200, "GET", "/conversations", nil, header, "caf\xe9 \xff\x85")
		w.client().expect(200, "GET", "/health", nil, header, "caf\xe9 \xff\x85")
	}
	login := object{"email": "ada@example.com", "password": testPassword}
	for sent, kept := range map[string]string{"Caf\xe9/1.0 \x85\x00": "Café/1.0 ", "Café/1.0 \u0085": "Café/1.0 "} {
		c := w.client()
		c.keep(c.expect(200, "POST", "/auth/login", login, "User-Agent", sent))
		var list protocol.List[protocol.Device]
		c.expect(200, "GET", "/auth/sessions?limit=1", nil).into(t, &list)
		if list.Data[0].UserAgent != kept {
			t.Errorf("%q is kept as %q", sent, list.Data[0].UserAgent)
		}
	}
}

// What is read of a request's head is checked: the fields that the document lists, and those that the code asks for.
func TestEveryHeaderThatIsReadIsChecked(t *testing.T) {
	read := map[string]string{"Origin": "CrossOriginProtection", "Sec-Fetch-Site": "CrossOriginProtection"}
	server := newWorld(t)
	for _, r := range server.routes {
		for _, param := range operationAt(server.api.OpenAPI(), r.method, r.path).Parameters {
			if param.In == "header" {
				read[stdhttp.CanonicalHeaderKey(param.Name)] = r.method + " " + r.path
			}
		}
	}
	for name, place := range headersAskedFor(t) {
		read[stdhttp.CanonicalHeaderKey(name)] = place
	}
	checked := map[string]bool{}
	for name := range readHeaders {
		checked[stdhttp.CanonicalHeaderKey(name)] = true
	}
	for name, place := range read {
		if !checked[name] {
			t.Errorf("%s is read by %s and not checked", name, place)
		}
	}
	for name := range checked {
		if read[name] == "" {
			t.Errorf("%s is checked and not read", name)
		}
	}
}

// headersAskedFor are the names in calls as r.Header.Get("Origin"), with where they stand.
func headersAskedFor(t *testing.T) map[string]string {
	t.Helper()
	names, constants := map[string]string{}, map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var asked []ast.Expr
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
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
				}
			case *ast.CallExpr:
				if argument := askedHeader(n); argument != nil {
					asked = append(asked, argument)
				}
			}
			return true
		})
	}
	for _, expression := range asked {
		name := ""
		switch e := expression.(type) {
		case *ast.BasicLit:
			name, _ = strconv.Unquote(e.Value)
		case *ast.Ident:
			name = constants[e.Name]
		}
		if name == "" {
			t.Errorf("%s: a header whose name is not a constant", set.Position(expression.Pos()))
		}
		names[name] = set.Position(expression.Pos()).String()
	}
	return names
}

// askedHeader is the argument of a call of Get or Values of a request's Header; nil for others.
func askedHeader(call *ast.CallExpr) ast.Expr {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || method.Sel.Name != "Get" && method.Sel.Name != "Values" || len(call.Args) != 1 {
		return nil
	}
	if field, is := method.X.(*ast.SelectorExpr); is && field.Sel.Name == "Header" {
		return call.Args[0]
	}
	return nil
}
