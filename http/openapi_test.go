package http

import (
	"bytes"
	"encoding/json"
	stdflag "flag"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"turnstone/http/route"
)

var update = stdflag.Bool("update", false, "rewrite the published documents")

// TestThePublishedDocumentsMatchTheCode compares the files that clients and generators read with the output of the
// code. A change of the contract is a change of these files.
func TestThePublishedDocumentsMatchTheCode(t *testing.T) {
	t.Parallel()
	for path, make := range map[string]func() ([]byte, error){
		"../protocol/openapi.json":       OpenAPI,
		"../protocol/events.schema.json": EventSchema,
	} {
		text, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := make(); !bytes.Equal(text, again) {
			t.Errorf("%s: two runs produce different bytes", path)
		}
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, text) {
			t.Errorf("%s is out of date (%v): run `make generate` and review the difference", path, err)
		}
	}
}

func TestEveryReferenceInTheDocumentIsDefined(t *testing.T) {
	t.Parallel()
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	components := tree["components"].(map[string]any)
	schemas, headers := components["schemas"].(map[string]any), components["headers"].(map[string]any)
	for _, ref := range references(tree) {
		if header, isHeader := strings.CutPrefix(ref, "#/components/headers/"); schemas[ref] == nil && (!isHeader || headers[header] == nil) {
			t.Errorf("%s is not defined", ref)
		}
	}
	if strings.Contains(string(text), `"additionalProperties": true`) {
		t.Error("the document states additionalProperties: true, which is the default")
	}
}

func TestTheDocumentHasEveryRouteOfTheRouter(t *testing.T) {
	t.Parallel()
	s := documentServer(t)
	for _, r := range s.Routes() {
		if route.OperationAt(s.OpenAPI(), r.Method, r.Path) == nil {
			t.Errorf("%s %s is not in the document", r.Method, r.Path)
		}
	}
}

// documentTree returns the published document, decoded.
func documentTree(t *testing.T) map[string]any {
	t.Helper()
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func toMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

// eachOperation visits every operation of the document.
func eachOperation(tree map[string]any, visit func(name string, op map[string]any)) {
	for path, item := range toMap(tree["paths"]) {
		for method, op := range toMap(item) {
			visit(strings.ToUpper(method)+" "+path, toMap(op))
		}
	}
}

// TestEveryOperationIsDescribed checks that every operation has a summary, a description, a known tag, an example of
// each body, the headers of each response, the codes of each error, and the CSRF token as a parameter if the method is
// unsafe.
func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	tree, groups := documentTree(t), map[string]bool{}
	for _, tag := range tree["tags"].([]any) {
		groups[toMap(tag)["name"].(string)] = toMap(tag)["description"] != ""
	}
	if len(tree["servers"].([]any)) == 0 {
		t.Error("the document has no servers")
	}
	public := map[string]bool{}
	for _, r := range documentServer(t).Routes() {
		public[nameOf(r)] = r.Policy.Public
	}
	eachOperation(tree, func(name string, op map[string]any) {
		if op["description"] == "" || op["summary"] == "" || !groups[op["tags"].([]any)[0].(string)] {
			t.Errorf("%s has no description, no summary or an unknown tag %v", name, op["tags"])
		}
		if content := toMap(toMap(toMap(op["requestBody"])["content"])["application/json"]); content != nil && content["example"] == nil {
			t.Errorf("%s: the body has no example: add WithExample to its route", name)
		}
		token := slices.ContainsFunc(toList(op["parameters"]), func(p any) bool {
			return toMap(p)["name"] == "X-CSRF-Token" && toMap(p)["required"] == true
		})
		if unsafe := !strings.HasPrefix(name, "GET ") && !public[name]; token != unsafe {
			t.Errorf("%s: X-CSRF-Token is required: %v, want %v", name, token, unsafe)
		}
		success, refusal := false, name == "GET /health"
		for code, node := range toMap(op["responses"]) {
			response := toMap(node)
			headers := toMap(response["headers"])
			success = success || code < "400"
			refusal = refusal || code[0] == '4'
			if headers["X-Request-Id"] == nil || (code == "429" || code == "503") != (headers["Retry-After"] != nil) {
				t.Errorf("%s: the headers of %s are %v", name, code, headers)
			}
			for media, content := range toMap(response["content"]) {
				if toMap(content)["example"] == nil {
					t.Errorf("%s: %s %s has no example", name, code, media)
				}
			}
			if description := response["description"].(string); code >= "400" && !strings.Contains(description, "`") && name != "GET /ready" {
				t.Errorf("%s: the description of %s names no error code: %s", name, code, description)
			}
		}
		if !success || !refusal {
			t.Errorf("%s: has a successful response: %v, a refusal: %v", name, success, refusal)
		}
	})
	for name, wanted := range map[string][]string{
		"POST /chat 200":                            {"X-Turn-Id", "Location", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy"},
		"POST /conversations 201":                   {"Location", "ETag", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy"},
		"GET /chat/turns/{turn_id}/events 200":      {"X-Turn-Id", "Location"},
		"GET /events 200":                           {},
		"GET /files/uploads/{upload_id}/events 200": {},
		"PUT /account/settings 200":                 {"ETag", "RateLimit", "RateLimit-Policy"},
	} {
		words := strings.Fields(name)
		responses := toMap(toMap(toMap(toMap(tree["paths"])[words[1]])[strings.ToLower(words[0])])["responses"])
		if stream := toMap(toMap(responses["200"])["content"])["text/event-stream"]; stream != nil && len(wanted) == 0 {
			for _, header := range []string{"X-Turn-Id", "Location"} {
				if toMap(toMap(responses["200"])["headers"])[header] != nil {
					t.Errorf("%s lists %s, which only streams of turns have", name, header)
				}
			}
		}
		for _, header := range wanted {
			if toMap(toMap(responses[words[2]])["headers"])[header] == nil {
				t.Errorf("%s does not list %s", name, header)
			}
		}
	}
}

func toList(node any) []any {
	list, _ := node.([]any)
	return list
}

// TestExamplesAreValid validates every example of the document against the schema next to it.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const address = "https://turnstone.invalid/openapi.json"
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(address, document); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(pointer string, node any)
	walk = func(pointer string, node any) {
		if members := toMap(node); members["example"] != nil && members["schema"] != nil {
			checked++
			schema, err := compiler.Compile(address + "#" + (&url.URL{Fragment: pointer + "/schema"}).EscapedFragment())
			if err == nil {
				err = schema.Validate(members["example"])
			}
			if err != nil {
				t.Errorf("%s: %v", pointer, err)
			}
		}
		for name, member := range toMap(node) {
			walk(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), member)
		}
	}
	walk("", document)
	if checked < 100 {
		t.Errorf("only %d examples were found", checked)
	}
}
