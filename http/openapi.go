package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/protocol"
)

// The document of the API is made from the table of routes and protocol's types, and changed only where huma cannot say
// what is true: a pointer to an object may be null, an enumeration that may be absent has null among its values, the
// events of a turn are one of many.

const schemaPrefix = "#/components/schemas/"

const documentDescription = `Turnstone serves conversations whose answers are produced by live turns.

Sign in with POST /auth/login; the session is a cookie. Unsafe requests carry the X-CSRF-Token that GET /auth/session
gives. Errors are application/problem+json: branch on the status and the code. Fields and events that you do not know
are to be ignored: payloads change only additively.`

// OpenAPI is the OpenAPI 3.1 document of every route. It depends on nothing but the code.
func OpenAPI() ([]byte, error) {
	document, err := document()
	if err != nil {
		return nil, err
	}
	return indent(document)
}

// EventSchema is the JSON Schema (2020-12) of every event of a stream.
func EventSchema() ([]byte, error) {
	document, err := document()
	if err != nil {
		return nil, err
	}
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any) //nolint:forcetypeassert // huma's shape
	definitions := map[string]any{}
	reach(schemas, "Event", definitions)
	text, err := indent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An event of a turn",
		"$ref": "#/$defs/Event", "$defs": definitions,
	})
	return bytes.ReplaceAll(text, []byte(schemaPrefix), []byte("#/$defs/")), err
}

func document() (map[string]any, error) {
	const anySecret = "the document needs no secret, but a Server has one"
	s, err := New(Config{Secrets: [][]byte{[]byte(anySecret)}, BaseURL: &url.URL{Scheme: "http", Host: "localhost:8080"}})
	if err != nil {
		return nil, fmt.Errorf("building the routes: %w", err)
	}
	api := s.api.OpenAPI()
	text, err := json.Marshal(api)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	tell(tree)
	tellNullObjects(tree, api.Components.Schemas)
	s.describe(tree)
	return tree, nil
}

// indent writes a tree with its names in order, so that equal documents are equal bytes.
func indent(tree any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(tree)
	return out.Bytes(), err
}

// tell walks the tree and mends each schema.
func tell(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			tell(item)
		}
	case map[string]any:
		if node["additionalProperties"] == true { // the default; spelled out it gives every generated type an index
			delete(node, "additionalProperties")
		}
		delete(node, "patternDescription") // huma's own, for messages
		types, _ := node["type"].([]any)
		if values, isEnum := node["enum"].([]any); isEnum && slices.Contains(types, any("null")) && !slices.Contains(values, nil) {
			node["enum"] = append(values, nil)
		}
		for _, item := range node {
			tell(item)
		}
	}
}

// tellNullObjects lets null in where a pointer to an object is always present.
func tellNullObjects(tree map[string]any, registry huma.Registry) {
	schemas := tree["components"].(map[string]any)["schemas"].(map[string]any) //nolint:forcetypeassert // huma's shape
	for name, schema := range schemas {
		properties, _ := schema.(map[string]any)["properties"].(map[string]any)
		t := registry.TypeFromRef(schemaPrefix + name)
		if t == nil && strings.HasPrefix(name, eventPrefix) {
			t = eventTypes[name]
		}
		if t != nil && t.Kind() == reflect.Struct {
			nullObjects(t, properties)
		}
	}
}

func nullObjects(t reflect.Type, properties map[string]any) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			nullObjects(field.Type, properties)
			continue
		}
		property, _ := properties[name].(map[string]any)
		if field.Type.Kind() != reflect.Pointer || property["$ref"] == nil || strings.Contains(options, "omitempty") {
			continue
		}
		mended := map[string]any{"anyOf": []any{map[string]any{"$ref": property["$ref"]}, map[string]any{"type": "null"}}}
		if property["description"] != nil {
			mended["description"] = property["description"]
		}
		properties[name] = mended
	}
}

// reach copies a schema and all that it refers to.
func reach(schemas map[string]any, name string, into map[string]any) {
	if _, done := into[name]; done || schemas[name] == nil {
		return
	}
	into[name] = schemas[name]
	for _, ref := range references(schemas[name]) {
		reach(schemas, ref, into)
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
			found = append(found, strings.TrimPrefix(ref, schemaPrefix))
		}
		for _, item := range node {
			found = append(found, references(item)...)
		}
	}
	return found
}

const eventPrefix = "Event."

// eventTypes finds the payload of an event's schema by its name in the document.
var eventTypes = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, spec := range allEvents() {
		types[eventPrefix+string(spec.Type)] = reflect.TypeOf(spec.New()).Elem()
	}
	return types
}()

func allEvents() []protocol.EventSpec {
	return append(slices.Clone(protocol.Events), protocol.SnapshotSpec)
}

// describeEvents adds Event, which is one of all events, each with the envelope's fields beside its own.
func describeEvents(document *huma.OpenAPI) {
	registry := document.Components.Schemas
	union := &huma.Schema{
		Description:   "One event of a turn. Types that you do not know are to be ignored.",
		Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}},
	}
	for _, spec := range allEvents() {
		name := eventPrefix + string(spec.Type)
		registry.Map()[name] = eventSchema(registry, spec)
		union.OneOf = append(union.OneOf, &huma.Schema{Ref: schemaPrefix + name})
		union.Discriminator.Mapping[string(spec.Type)] = schemaPrefix + name
	}
	registry.Map()["Event"] = union
}

func eventSchema(registry huma.Registry, spec protocol.EventSpec) *huma.Schema {
	envelope := huma.SchemaFromType(registry, reflect.TypeFor[protocol.Envelope]())
	payload := reflect.TypeOf(spec.New()).Elem()
	schema := huma.SchemaFromType(registry, payload)
	describeFields(payload, schema)
	describeFields(reflect.TypeFor[protocol.Envelope](), envelope)
	maps.Copy(schema.Properties, envelope.Properties)
	schema.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{string(spec.Type)}}
	schema.Required = append(slices.Clone(envelope.Required), schema.Required...)
	schema.Description = spec.Doc
	return schema
}

// describeService adds what holds for all routes.
func describeService(document *huma.OpenAPI) {
	document.Info.Description = documentDescription
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"session": {Type: "apiKey", In: "cookie", Name: "__Host-session", Description: "Over plain http on loopback its name is session."},
	}
	document.Security = []map[string][]string{{"session": {}}}
}
