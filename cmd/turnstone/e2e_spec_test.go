package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// specAddress is where the schemas think that the document stands.
const specAddress = "https://turnstone.invalid/openapi.json"

// spec is the published document: all that its reader knows of the service.
type spec struct {
	compiler   *jsonschema.Compiler
	operations map[string]*operation // by operationId
}

// operation is one entry of the document.
type operation struct {
	id, method, path string
	node             map[string]any
	pointer          string // where the entry stands
	called           bool
}

// readSpec asks the program for its document.
func readSpec(t *testing.T) *spec {
	t.Helper()
	code, printed, complaint := sitetest.Finish(t, nil, "openapi")
	if code != 0 {
		t.Fatalf("turnstone openapi: %d %s", code, complaint)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(printed))
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

// object is a value that has to be a JSON object; anything else has no members.
func object(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}

// check holds a JSON text against the schema at a pointer of the document.
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

// uncalled are the operations that nobody has called.
func (s *spec) uncalled() []string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(s.operations)) {
		if !s.operations[id].called {
			names = append(names, id)
		}
	}
	return names
}

// guest is a client that was written from the document alone. It may send what the document allows, and takes no answer
// that the document does not tell of.
type guest struct {
	*sitetest.User
	spec  *spec
	token string // what X-CSRF-Token asks for
}

// args are the parameters of a call, by the names of the document.
type args map[string]string

// call makes a request by the document and checks the answer against it. body may be nil.
func (g *guest) call(t *testing.T, id string, parameters args, body any) *sitetest.Answer {
	t.Helper()
	s, a := g.send(t, id, parameters, body)
	if s != nil {
		t.Fatalf("%s answers with a stream", id)
	}
	return a
}

// stream is call for an answer that is a stream; every event is checked.
func (g *guest) stream(t *testing.T, id string, parameters args, body any) *sitetest.Stream {
	t.Helper()
	s, a := g.send(t, id, parameters, body)
	if s == nil {
		t.Fatalf("%s answers with no stream but %d %s", id, a.Status, a.Body)
	}
	t.Cleanup(s.Close)
	return s
}

func (g *guest) send(t *testing.T, id string, parameters args, body any) (*sitetest.Stream, *sitetest.Answer) {
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
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.Patience)
	t.Cleanup(cancel)
	s, a, err := g.OpenStream(ctx, o.method, path, body, 0, headers...)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	if s != nil {
		events, err := o.contentPointer(http.StatusOK, "text/event-stream")
		if err != nil {
			t.Fatal(err)
		}
		s.Checks = func(e sitetest.Event) error { return g.spec.check(events, []byte(e.Data)) }
		if after := headerAfter(headers); after != "" {
			_, _ = fmt.Sscan(after, &s.After) // the test's own number
		}
		return s, nil
	}
	if err := g.checkAnswer(o, a); err != nil {
		t.Fatalf("%s: %v\n%d %s", id, err, a.Status, a.Body)
	}
	return nil, a
}

func headerAfter(headers []string) string {
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Last-Event-ID" {
			return headers[i+1]
		}
	}
	return ""
}

// address puts the parameters where the document says that they belong.
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

// checkRequest keeps the guest from sending what the document does not allow.
func (g *guest) checkRequest(o *operation, body any) error {
	request := object(o.node["requestBody"])
	switch {
	case body == nil && request["required"] == true:
		return fmt.Errorf("a body is required")
	case body == nil:
		return nil
	case object(request["content"])["application/json"] == nil:
		return fmt.Errorf("the document knows no JSON body")
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

// contentPointer is where the document describes an answer; empty for one without a body.
func (o *operation) contentPointer(status int, media string) (string, error) {
	response := object(object(o.node["responses"])[fmt.Sprint(status)])
	if response == nil {
		return "", fmt.Errorf("the document of %s knows no status %d", o.id, status)
	}
	content := object(response["content"])
	if content == nil {
		return "", nil
	}
	if object(content[media])["schema"] == nil {
		return "", fmt.Errorf("the document of %s knows no %s with status %d", o.id, media, status)
	}
	return o.pointer + "/responses/" + fmt.Sprint(status) + "/content/" + strings.ReplaceAll(media, "/", "~1") + "/schema", nil
}

func (g *guest) checkAnswer(o *operation, a *sitetest.Answer) error {
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	pointer, err := o.contentPointer(a.Status, media)
	if err != nil {
		return err
	}
	if pointer == "" {
		if len(a.Body) > 0 {
			return fmt.Errorf("the document knows no body with status %d", a.Status)
		}
		return nil
	}
	return g.spec.check(pointer, a.Body)
}
