package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/protocol"
)

// The OpenAPI document is generated from the table of routes and the types of package protocol. It is corrected only
// where huma cannot express the types: a pointer to an object may be null, an optional enumeration has null among its
// values, an event of a turn is one of many types.

// SchemaPrefix precedes the name of a schema in a $ref.
const SchemaPrefix = "#/components/schemas/"

const documentDescription = `Turnstone stores conversations. Each answer is produced by a live turn, which is streamed as events.

Sign in with POST /auth/login; the session is a cookie. Requests with unsafe methods require the header X-CSRF-Token
with the token from GET /auth/session. Errors are application/problem+json documents; handle them by status and code.
Ignore fields and events that you do not know: payloads change only additively.

Every response also has the general headers Cache-Control, Content-Security-Policy, Cross-Origin-Resource-Policy, Referrer-Policy,
X-Content-Type-Options, X-Robots-Tag and, over HTTPS, Strict-Transport-Security; one with a body has Content-Type and mostly Content-Length. An
installation that allows other origins adds the headers of CORS, and Vary. Any response of a session may set the cookie with its
next token, about once a day. Over HTTP/1, a response before the end of a body that is not read has Connection: close; the
client may still send the rest.

HEAD has the status and the headers of GET. Any other method that a path does not have gets 405 ` + "`method_not_allowed`" + ` with
the header Allow.

A JSON body has at most 10,000 values, which are nested at most 32 deep, names of at most 1,024 bytes and numbers of at
most 128 bytes. The description of 413 states the limit of its size.`

// Document returns the OpenAPI document of an API and its table of routes as a tree of JSON values.
func Document(api *huma.OpenAPI, table Table) (map[string]any, error) {
	describeEvents(api)
	DescribeIdentifiers(api)
	describeService(api)
	text, err := json.Marshal(api)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	fixSchemas(tree)
	allowNullObjects(tree, api.Components.Schemas)
	describe(tree, table)
	return tree, nil
}

// fixSchemas corrects every schema of the tree.
func fixSchemas(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			fixSchemas(item)
		}
	case map[string]any:
		if node["additionalProperties"] == true { // the default; if stated, every generated type gets an index signature
			delete(node, "additionalProperties")
		}
		delete(node, "patternDescription") // huma uses it in messages only
		types, _ := node["type"].([]any)
		if values, isEnum := node["enum"].([]any); isEnum && slices.Contains(types, any("null")) && !slices.Contains(values, nil) {
			node["enum"] = append(values, nil)
		}
		for _, item := range node {
			fixSchemas(item)
		}
	}
}

// allowNullObjects allows null where a pointer to an object is always present.
func allowNullObjects(tree map[string]any, registry huma.Registry) {
	schemas := tree["components"].(map[string]any)["schemas"].(map[string]any) // huma's shape
	for name, schema := range schemas {
		properties, _ := schema.(map[string]any)["properties"].(map[string]any)
		t := registry.TypeFromRef(SchemaPrefix + name)
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
		nullable := map[string]any{"anyOf": []any{map[string]any{"$ref": property["$ref"]}, map[string]any{"type": "null"}}}
		if property["description"] != nil {
			nullable["description"] = property["description"]
		}
		properties[name] = nullable
	}
}

const eventPrefix = "Event."

// eventUnion is the union of the events of one kind of stream.
type eventUnion struct {
	name, doc string
	envelope  reflect.Type
	events    []protocol.EventSpec
}

var eventUnions = []eventUnion{
	{
		"Event", "One event of a turn. Ignore events whose type you do not know.", reflect.TypeFor[protocol.Envelope](),
		append(slices.Clone(protocol.Events), protocol.SnapshotSpec),
	},
	{"UploadEvent", "One event of an upload. Ignore events whose type you do not know.", reflect.TypeFor[protocol.UploadEnvelope](), protocol.UploadEvents},
	{"ResearchEvent", "One event of a research task. Ignore events whose type you do not know.", reflect.TypeFor[protocol.ResearchEnvelope](), protocol.ResearchEvents},
}

// eventTypes maps the name that the schema of an event has in the document to the type of its payload.
var eventTypes = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, union := range eventUnions {
		for _, spec := range union.events {
			types[eventPrefix+string(spec.Type)] = reflect.TypeOf(spec.New()).Elem()
		}
	}
	return types
}()

// describeEvents adds the schemas of the unions of events. Each event has the fields of the envelope in addition to its
// own.
func describeEvents(document *huma.OpenAPI) {
	registry := document.Components.Schemas
	for _, of := range eventUnions {
		union := &huma.Schema{
			Description:   of.doc,
			Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}},
		}
		for _, spec := range of.events {
			name := eventPrefix + string(spec.Type)
			registry.Map()[name] = eventSchema(registry, of.envelope, spec)
			union.OneOf = append(union.OneOf, &huma.Schema{Ref: SchemaPrefix + name})
			union.Discriminator.Mapping[string(spec.Type)] = SchemaPrefix + name
		}
		registry.Map()[of.name] = union
	}
}

func eventSchema(registry huma.Registry, of reflect.Type, spec protocol.EventSpec) *huma.Schema {
	envelope := huma.SchemaFromType(registry, of)
	payload := reflect.TypeOf(spec.New()).Elem()
	schema := huma.SchemaFromType(registry, payload)
	describeFields(payload, schema)
	describeFields(of, envelope)
	maps.Copy(schema.Properties, envelope.Properties)
	schema.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{string(spec.Type)}}
	schema.Required = append(slices.Clone(envelope.Required), schema.Required...)
	schema.Description = spec.Doc
	return schema
}

// describeService adds what applies to all routes.
func describeService(document *huma.OpenAPI) {
	document.Info.Description = documentDescription
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"session": {Type: "apiKey", In: "cookie", Name: "__Host-session", Description: "The session cookie. Over plain http on loopback, its name is session."},
	}
	document.Security = []map[string][]string{{"session": {}}}
}
