package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	stdhttp "net/http"
	"net/url"
	"strings"
	"sync"

	"turnstone/http/manual"
	"turnstone/http/route"
)

// OpenAPI returns the OpenAPI 3.1 document of every route. It depends only on the code.
func OpenAPI() ([]byte, error) {
	document, err := generateDocument()
	if err != nil {
		return nil, err
	}
	return indent(document)
}

// EventSchema returns the JSON Schema (2020-12) of every event of a stream.
func EventSchema() ([]byte, error) {
	document, err := generateDocument()
	if err != nil {
		return nil, err
	}
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any) // huma's shape
	definitions := map[string]any{}
	copyReferenced(schemas, "Event", definitions)
	copyReferenced(schemas, "UploadEvent", definitions)
	copyReferenced(schemas, "ResearchEvent", definitions)
	copyReferenced(schemas, "FeedItem", definitions)
	text, err := indent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An event of a turn; $defs/UploadEvent is an event of an upload, " +
			"$defs/ResearchEvent one of a research task, $defs/FeedItem an item of the account feed",
		"$ref": "#/$defs/Event", "$defs": definitions,
	})
	return bytes.ReplaceAll(text, []byte(route.SchemaPrefix), []byte("#/$defs/")), err
}

// published are the documents that the internal listener and the documentation origin serve, by their paths.
var published = map[string]manual.Document{
	"/openapi.json": sync.OnceValues(OpenAPI), "/events.schema.json": sync.OnceValues(EventSchema),
}

// InternalHandler serves /health, /ready and the published documents on the internal listener, which has no sign-in.
func (s *Server) InternalHandler() stdhttp.Handler {
	mux := stdhttp.NewServeMux()
	s.system().Internal(mux)
	for path, content := range published {
		mux.HandleFunc("GET "+path, manual.ServeDocument(content))
	}
	return mux
}

// Documentation serves the documentation origin with the pages of the folder docs.
func Documentation(pages fs.FS) (stdhttp.Handler, error) { return manual.New(pages, published) }

func generateDocument() (map[string]any, error) {
	const anySecret = "the document needs no secret, but a Server has one"
	s, err := New(Config{Secrets: [][]byte{[]byte(anySecret)}, BaseURL: &url.URL{Scheme: "http", Host: "localhost:8080"}})
	if err != nil {
		return nil, fmt.Errorf("building the routes: %w", err)
	}
	return s.Document()
}

// indent encodes a tree with sorted names, so that equal documents have equal bytes.
func indent(tree any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(tree)
	return out.Bytes(), err
}

// copyReferenced copies a schema and all schemas to which it refers, directly or not.
func copyReferenced(schemas map[string]any, name string, into map[string]any) {
	if _, done := into[name]; done || schemas[name] == nil {
		return
	}
	into[name] = schemas[name]
	for _, ref := range references(schemas[name]) {
		copyReferenced(schemas, ref, into)
	}
}

func references(node any) (found []string) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			found = append(found, references(item)...)
		}
	case map[string]any:
		if ref, isRef := node["$ref"].(string); isRef {
			found = append(found, strings.TrimPrefix(ref, route.SchemaPrefix))
		}
		for _, item := range node {
			found = append(found, references(item)...)
		}
	}
	return found
}
