package http

import (
	"bytes"
	"encoding/json"
	stdflag "flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	stdhttp "net/http"
)

var update = stdflag.Bool("update", false, "rewrite the published documents")

// TestThePublishedDocumentsAreTheCodes holds the files that clients and generators read to what the code says. A change
// of the contract is a change of these files.
func TestThePublishedDocumentsAreTheCodes(t *testing.T) {
	for path, make := range map[string]func() ([]byte, error){
		"../protocol/openapi.json":       OpenAPI,
		"../protocol/events.schema.json": EventSchema,
	} {
		text, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := make(); !bytes.Equal(text, again) {
			t.Errorf("%s is another one each time", path)
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

func TestEveryReferenceInTheDocumentLeadsSomewhere(t *testing.T) {
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	schemas := tree["components"].(map[string]any)["schemas"].(map[string]any)
	for _, ref := range references(tree) {
		if schemas[ref] == nil {
			t.Errorf("%s is not defined", ref)
		}
	}
	if strings.Contains(string(text), `"additionalProperties": true`) {
		t.Error("additionalProperties is spelled out")
	}
}

func TestTheDocumentHasEveryRouteOfTheRouter(t *testing.T) {
	s := documentServer(t)
	paths := s.api.OpenAPI().Paths
	err := chi.Walk(s.router, func(method, pattern string, _ stdhttp.Handler, _ ...func(stdhttp.Handler) stdhttp.Handler) error {
		if slices.Contains(append([]string{assetsPath, robotsPath}, shellPaths...), pattern) {
			return nil // pages for a browser, no API
		}
		if paths[pattern] == nil || operationAt(s.api.OpenAPI(), method, pattern) == nil {
			t.Errorf("%s %s is not in the document", method, pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
