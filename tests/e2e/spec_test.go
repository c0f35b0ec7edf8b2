package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/client"
	"turnstone/protocol/filetype"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// specAddress is the URL under which the document is registered with the schema compiler.
const specAddress = "https://turnstone.invalid/openapi.json"

// spec is the published OpenAPI document. It is all that specClient knows about the service.
type spec struct {
	compiler   *jsonschema.Compiler
	operations map[string]*operation // by operationId
}

// operation is one operation of the document.
type operation struct {
	id, method, path string
	node             map[string]any
	pointer          string // JSON pointer of the operation in the document
	called           bool
}

// readSpec reads the document that the program prints.
func readSpec(t *testing.T) *spec {
	t.Helper()
	code, stdout, stderr := sitetest.Finish(t, nil, "openapi")
	if code != 0 {
		t.Fatalf("turnstone openapi: %d %s", code, stderr)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	s := &spec{compiler: jsonschema.NewCompiler(), operations: map[string]*operation{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource(specAddress, document); err != nil {
		t.Fatal(err)
	}
	for path, entry := range object(object(document)["paths"]) {
		for method, node := range object(entry) {
			o := &operation{
				method: strings.ToUpper(method), path: path, node: object(node),
				pointer: "/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + method,
			}
			o.id, _ = o.node["operationId"].(string)
			s.operations[o.id] = o
		}
	}
	return s
}

// object returns value as a JSON object. Any other value yields an object without members.
func object(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}

// check validates a JSON text against the schema at a pointer of the document.
func (s *spec) check(pointer string, text []byte) error {
	schema, err := s.compiler.Compile(specAddress + "#" + (&url.URL{Fragment: pointer}).EscapedFragment())
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// uncalled returns the identifiers of the operations that were never called.
func (s *spec) uncalled() []string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(s.operations)) {
		if !s.operations[id].called {
			names = append(names, id)
		}
	}
	return names
}

// specClient is a client that is written from the document alone. It sends only what the document allows, and fails the
// test for a response that the document does not describe.
type specClient struct {
	*sitetest.User
	spec  *spec
	token string // value of X-CSRF-Token; "": none
}

// args are the parameters of a call, by their names in the document.
type args map[string]string

// call sends a request that the document describes and validates the response against it. body may be nil.
func (g *specClient) call(t *testing.T, id string, parameters args, body any) *sitetest.Response {
	t.Helper()
	s, a := g.send(t, id, parameters, body)
	if s != nil {
		t.Fatalf("%s returns a stream", id)
	}
	return a
}

// stream is call for an operation whose response is a stream; it validates every event.
func (g *specClient) stream(t *testing.T, id string, parameters args, body any) *sitetest.Stream {
	t.Helper()
	s, a := g.send(t, id, parameters, body)
	if s == nil {
		t.Fatalf("%s returns %d %s instead of a stream", id, a.Status, a.Body)
	}
	t.Cleanup(s.Close)
	return s
}

func (g *specClient) send(t *testing.T, id string, parameters args, body any) (*sitetest.Stream, *sitetest.Response) {
	t.Helper()
	o := g.spec.operations[id]
	if o == nil {
		t.Fatalf("the document has no operation %s", id)
	}
	o.called = true
	path, headers, err := o.address(parameters, g.token)
	if err == nil {
		err = g.checkRequest(o, body)
	}
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.HangGuard)
	t.Cleanup(cancel)
	after, _ := strconv.ParseInt(cmp.Or(parameters["Last-Event-ID"], parameters["after"], "0"), 10, 64) // 0 if the test sends garbage
	if _, raw := body.(client.Content); raw {
		headers = append(headers, "Content-Type", o.rawMedia())
	}
	s, a, err := g.OpenStream(ctx, o.method, path, body, after, headers...)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	if s != nil {
		events, err := o.contentPointer(http.StatusOK, "text/event-stream")
		if err != nil {
			t.Fatal(err)
		}
		s.Checks = func(e sitetest.Event) error { return g.spec.check(events, []byte(e.Data)) }
		return s, nil
	}
	if err := g.checkResponse(o, a); err != nil {
		t.Fatalf("%s: %v\n%d %s", id, err, a.Status, a.Body)
	}
	return nil, a
}

// address puts the parameters into the path, the query and the headers as the document specifies. It returns an error
// for a missing or an unknown parameter.
func (o *operation) address(parameters args, token string) (path string, headers []string, err error) {
	path = o.path
	query := url.Values{}
	left := maps.Clone(parameters)
	listed, _ := o.node["parameters"].([]any)
	for _, entry := range listed {
		parameter := object(entry)
		name, _ := parameter["name"].(string)
		value, given := left[name]
		delete(left, name)
		if name == "X-CSRF-Token" && token != "" {
			value, given = token, true
		}
		if !given {
			if parameter["required"] == true {
				return "", nil, fmt.Errorf("%s is required", name)
			}
			continue
		}
		switch parameter["in"] {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
		case "query":
			query.Set(name, value)
		case "header":
			headers = append(headers, name, value)
		}
	}
	if len(left) > 0 {
		return "", nil, fmt.Errorf("the document has no parameters %v", left)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, headers, nil
}

// checkRequest returns an error if the document does not allow the request body.
func (g *specClient) checkRequest(o *operation, body any) error {
	request := object(o.node["requestBody"])
	_, raw := body.(client.Content)
	switch {
	case raw && object(request["content"])[o.rawMedia()] == nil:
		return fmt.Errorf("the document does not describe a raw body")
	case raw:
		return nil
	case body == nil && request["required"] == true:
		return fmt.Errorf("a body is required")
	case body == nil:
		return nil
	case object(request["content"])["application/json"] == nil:
		return fmt.Errorf("the document does not describe a JSON body")
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := g.spec.check(o.pointer+"/requestBody/content/application~1json/schema", text); err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	return nil
}

// rawMedia returns a media type that the document allows for a content.
func (o *operation) rawMedia() string {
	allowed := object(object(o.node["requestBody"])["content"])
	if allowed[filetype.OctetStream] != nil || len(allowed) == 0 {
		return filetype.OctetStream
	}
	return slices.Min(slices.Collect(maps.Keys(allowed)))
}

// contentPointer returns the JSON pointer of the schema of a response, or "" if the response has no body.
func (o *operation) contentPointer(status int, media string) (string, error) {
	response := object(object(o.node["responses"])[fmt.Sprint(status)])
	if response == nil {
		return "", fmt.Errorf("%s: the document does not describe status %d", o.id, status)
	}
	content := object(response["content"])
	if content == nil {
		return "", nil
	}
	if object(content[media])["schema"] == nil {
		return "", fmt.Errorf("%s: the document does not describe %s with status %d", o.id, media, status)
	}
	return o.pointer + "/responses/" + fmt.Sprint(status) + "/content/" + strings.ReplaceAll(media, "/", "~1") + "/schema", nil
}

func (g *specClient) checkResponse(o *operation, a *sitetest.Response) error {
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	pointer, err := o.contentPointer(a.Status, media)
	if err != nil {
		return err
	}
	if pointer == "" {
		if len(a.Body) > 0 {
			return fmt.Errorf("the document does not describe a body with status %d", a.Status)
		}
		return nil
	}
	if !strings.HasSuffix(media, "json") {
		return nil // a file
	}
	return g.spec.check(pointer, a.Body)
}
