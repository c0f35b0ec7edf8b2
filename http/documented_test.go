package http

import (
	"bufio"
	"encoding/json"
	"errors"
	stdflag "flag"
	"fmt"
	"maps"
	"net"
	stdhttp "net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
)

// Every response of a world is compared with the OpenAPI document: its status, its headers and the code of its problem. A
// status or a header that the document does not list under the operation is an error, and so is a required header that is
// missing. At the end of all tests, each header that is listed for a response that occurred must have occurred with it.

// generalHeaders are the headers that the document does not list: the description of the document names them.
var generalHeaders = []string{
	"Cache-Control", "Content-Encoding", "Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy",
	"Connection", "Referrer-Policy", "Strict-Transport-Security", "Vary", "X-Content-Type-Options", "X-Robots-Tag",
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
}

// documented has the responses of each operation in the OpenAPI document, by method and path. Their headers are resolved.
var documented = sync.OnceValue(func() map[string]map[string]any {
	text, err := OpenAPI()
	var tree map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &tree)); err != nil {
		panic(err)
	}
	statuses := map[string]map[string]any{}
	components := toMap(toMap(tree["components"])["headers"])
	eachOperation(tree, func(name string, op map[string]any) {
		statuses[name] = toMap(op["responses"])
		for _, response := range statuses[name] {
			headers := map[string]any{}
			for header, node := range toMap(toMap(response)["headers"]) {
				reference, _ := toMap(node)["$ref"].(string)
				if described := components[strings.TrimPrefix(reference, "#/components/headers/")]; described != nil {
					node = described
				}
				headers[stdhttp.CanonicalHeaderKey(header)] = node
			}
			toMap(response)["headers"] = headers
		}
	})
	return statuses
})

// documentedPaths has the segments of the paths of all operations, those with the fewest parameters first.
var documentedPaths = sync.OnceValue(func() (paths [][]string) {
	for name := range documented() {
		_, pattern, _ := strings.Cut(name, " ")
		paths = append(paths, strings.Split(pattern, "/"))
	}
	slices.SortFunc(paths, func(a, b []string) int {
		return strings.Count(strings.Join(a, "/"), "{") - strings.Count(strings.Join(b, "/"), "{")
	})
	return paths
})

// documentedAt returns the operation of a request and its responses in the document. A path without such an operation has
// only the statuses of unknown paths and methods.
func documentedAt(method, path string) (name string, responses map[string]any) {
	if method == "HEAD" {
		method = "GET"
	}
	segments := strings.Split(path, "/")
	matches := func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") }
	for _, of := range documentedPaths() {
		if slices.EqualFunc(of, segments, matches) {
			name = method + " " + strings.Join(of, "/")
			return name, documented()[name]
		}
	}
	return "", nil
}

// checkCode checks that the document lists the code of a problem.
func (c *client) checkCode(method, path string, resp *reply) {
	c.t.Helper()
	_, responses := documentedAt(method, path)
	description, _ := toMap(responses[strconv.Itoa(resp.status)])["description"].(string)
	if strings.Contains(description, "Codes:") && !strings.Contains(description, "`"+string(resp.Code)+"`") {
		c.t.Errorf("%s %s: %d %s is not in the document: %s", method, path, resp.status, resp.Code, description)
	}
}

// seenHeaders counts the responses of all tests, and the headers of each, by operation and status.
var seenHeaders = struct {
	mu        sync.Mutex
	responses map[string]map[string]bool // guarded by mu
}{responses: map[string]map[string]bool{}}

// checkDocumented compares the status and the headers of a response with the document.
func checkDocumented(t *testing.T, r *stdhttp.Request, status int, header stdhttp.Header) {
	t.Helper()
	name, responses := documentedAt(r.Method, r.URL.Path)
	if responses == nil {
		return
	}
	response := toMap(responses[strconv.Itoa(status)])
	if response == nil {
		t.Errorf("%s %s: %d is not in the document", r.Method, r.URL.Path, status)
		return
	}
	listed := toMap(response["headers"])
	at := fmt.Sprintf("%s %d", name, status)
	seenHeaders.mu.Lock()
	seen := seenHeaders.responses[at]
	if seen == nil {
		seen = map[string]bool{}
		seenHeaders.responses[at] = seen
	}
	for sent := range header {
		seen[sent] = true
	}
	seenHeaders.mu.Unlock()
	for sent := range header {
		if listed[sent] == nil && !slices.Contains(generalHeaders, sent) && !isRotation(sent, header, responses) && !isBusy(sent, status, response) {
			t.Errorf("%s: the header %s is sent, but not in the document: %s", at, sent, header.Get(sent))
		}
	}
	for expected, node := range listed {
		switch {
		case header.Get(expected) != "":
		case header[expected] != nil:
			t.Errorf("%s: the header %s is empty", at, expected)
		case toMap(node)["required"] == true:
			t.Errorf("%s: the header %s is required in the document, but not sent", at, expected)
		}
	}
}

// isRotation reports whether a header is the cookie with the next token of a session, which any response of the session
// may set. A route that needs no session has no 401 with a cookie of its own.
func isRotation(sent string, header stdhttp.Header, responses map[string]any) bool {
	ofSession := toMap(toMap(responses["401"])["headers"])["Set-Cookie"] != nil
	return sent == "Set-Cookie" && ofSession && !slices.ContainsFunc(header.Values(sent), func(cookie string) bool {
		return !strings.HasPrefix(cookie, "__Host-session=") && !strings.HasPrefix(cookie, "session=")
	})
}

// isBusy reports whether a header is the Retry-After of a request whose Idempotency-Key is in use. The document names it in the
// description of the key, not among the headers of the response.
func isBusy(sent string, status int, response map[string]any) bool {
	description, _ := response["description"].(string)
	return sent == "Retry-After" && status == stdhttp.StatusConflict && strings.Contains(description, "`"+string(protocol.CodeIdempotencyBusy)+"`")
}

// checkedHeaders checks, after all tests, that each header of the document was sent.
type checkedHeaders struct{ embeddedtest.Runner }

// Run implements embeddedtest.Runner.
func (m checkedHeaders) Run() int {
	code := m.Runner.Run()
	if run := stdflag.Lookup("test.run"); code != 0 || run.Value.String() != "" {
		return code
	}
	for _, missing := range unseenHeaders() {
		fmt.Fprintln(os.Stderr, missing)
		code = 1
	}
	return code
}

// unseenHeaders returns the headers of the document that no response had, although their operation and status occurred.
func unseenHeaders() (missing []string) {
	seenHeaders.mu.Lock()
	defer seenHeaders.mu.Unlock()
	for name, responses := range documented() {
		for status, node := range responses {
			seen := seenHeaders.responses[name+" "+status]
			if seen == nil {
				continue
			}
			for header := range toMap(toMap(node)["headers"]) {
				if !seen[header] {
					missing = append(missing, fmt.Sprintf("%s %s: the header %s is in the document, but no response had it", name, status, header))
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// ServeHTTP handles a request and compares the response with the document.
func (w *world) ServeHTTP(to stdhttp.ResponseWriter, r *stdhttp.Request) {
	w.Server.ServeHTTP(&documentedResponse{ResponseWriter: to, t: w.t, request: r}, r)
}

// documentedResponse compares a response with the document when it starts.
type documentedResponse struct {
	stdhttp.ResponseWriter
	t       *testing.T
	request *stdhttp.Request
	started bool
}

func (d *documentedResponse) start(status int) {
	if d.started || status < stdhttp.StatusOK {
		return
	}
	d.started = true
	checkDocumented(d.t, d.request, status, maps.Clone(d.Header()))
}

// WriteHeader implements http.ResponseWriter.
func (d *documentedResponse) WriteHeader(status int) {
	d.start(status)
	d.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (d *documentedResponse) Write(b []byte) (int, error) {
	d.start(stdhttp.StatusOK)
	return d.ResponseWriter.Write(b)
}

// Hijack lets a stream take over the connection. Its response has the headers that are set by then.
func (d *documentedResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := stdhttp.NewResponseController(d.ResponseWriter).Hijack()
	if err == nil {
		d.start(stdhttp.StatusOK)
	}
	return conn, buffers, err
}

// Unwrap is for http.ResponseController.
func (d *documentedResponse) Unwrap() stdhttp.ResponseWriter { return d.ResponseWriter }
