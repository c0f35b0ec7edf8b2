package exhaustion

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// schema is the part of a JSON schema that decides how large a value may be.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Properties           map[string]*schema
	AdditionalProperties json.RawMessage
	Items                *schema
	OneOf                []*schema
	AnyOf                []*schema
	Enum                 []any
	Pattern              string
	Format               string
	MaxLength            *int
	MaxItems             *int
	MaxProperties        *int
	Maximum              *float64
}

// document is the part of the OpenAPI document that describes requests.
type document struct {
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Method, Path string `json:"-"`
	Parameters   []struct {
		Name, In string
		Schema   *schema
	}
	RequestBody *struct {
		Content map[string]struct{ Schema *schema }
	}
}

// readDocument reads the published OpenAPI document. The operations are in the order of their names.
func readDocument(t *testing.T) (doc *document, operations []*operation) {
	t.Helper()
	text, err := os.ReadFile("../../protocol/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, one := range methods {
			one.Method, one.Path = strings.ToUpper(method), path
			operations = append(operations, one)
		}
	}
	slices.SortFunc(operations, func(a, b *operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return doc, operations
}

// unbounded is the length of a text for which the document states no maximum.
const unbounded = 16_000

// fillings are the characters of which texts consist: those that need most bytes, most bytes in JSON, most work of
// renderers and tokenizers, and least of everything.
var fillings = []string{"😀", "\u200d", "<", "[](", "e\u0301", "\u0915\u094d", "a ", "\"", "a"}

// largest makes the largest values that are valid for a schema.
type largest struct {
	doc     *document
	random  *rand.Rand
	filling string
	// scale divides the length of every text, for bodies that would be larger than their route accepts.
	scale int
	known map[string]string // identifiers that exist, by the name of their member
}

func (l *largest) value(name string, s *schema) any {
	if s == nil {
		return strings.Repeat(l.filling, 10)
	}
	if s.Ref != "" {
		return l.value(name, l.doc.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")])
	}
	if choices := slices.Concat(s.OneOf, s.AnyOf); len(choices) > 0 {
		return l.value(name, choices[l.random.IntN(len(choices))])
	}
	if len(s.Enum) > 0 {
		return s.Enum[l.random.IntN(len(s.Enum))]
	}
	switch typeOf(s) {
	case "object":
		return l.object(s)
	case "array":
		if id, ok := l.known["file_id"]; ok && s.Items != nil && strings.HasPrefix(s.Items.Pattern, "^file_") {
			return []string{id}
		}
		list := make([]any, least(s.MaxItems, 100))
		for i := range list {
			list[i] = l.value(fmt.Sprint(name, i), s.Items)
		}
		return list
	case "boolean":
		return l.random.IntN(2) == 0
	case "integer", "number":
		if s.Maximum != nil {
			return int64(*s.Maximum)
		}
		return 1
	}
	return l.text(name, s)
}

func (l *largest) object(s *schema) any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // so that a seed makes the same choices
		object[name] = l.value(name, s.Properties[name])
	}
	var more *schema
	if json.Unmarshal(s.AdditionalProperties, &more) == nil && more != nil && s.MaxProperties != nil {
		for n := range *s.MaxProperties {
			object[fmt.Sprint("member", n)] = l.value("member", more)
		}
	}
	return object
}

var identifier = regexp.MustCompile(`^\^([a-z]+)_\[0-7\]`)

func (l *largest) text(name string, s *schema) any {
	if id, ok := l.known[name]; ok {
		return id
	}
	if prefix := identifier.FindStringSubmatch(s.Pattern); prefix != nil { // one that does not exist
		return prefix[1] + strings.TrimPrefix(protocol.NewMessageID().String(), "msg")
	}
	switch {
	case s.Format == "date-time": // the latest times of the API are those of expiries, a year away
		return time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	case s.Format == "date":
		return time.Now().UTC().Format(time.DateOnly)
	case s.Pattern != "":
		return "application/octet-stream"
	}
	return l.repeat(least(s.MaxLength, unbounded))
}

// repeat returns a text of at most so many code points.
func (l *largest) repeat(length int) string {
	count := max(1, length/l.scale) / max(1, len([]rune(l.filling)))
	return strings.TrimSpace(strings.Repeat(l.filling, max(1, count)))
}

func typeOf(s *schema) string {
	if list, ok := s.Type.([]any); ok {
		return fmt.Sprint(list[0])
	}
	return fmt.Sprint(s.Type)
}

func least(most *int, otherwise int) int {
	if most == nil {
		return otherwise
	}
	return *most
}
