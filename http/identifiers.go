package http

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

type prefixed interface{ Prefix() string }

var prefixedType = reflect.TypeFor[prefixed]()

// identifierPattern is the spelling of a TypeID.
func identifierPattern(prefix string) string { return "^" + prefix + "_[0-7][0-9a-hjkmnp-tv-z]{25}$" }

// describeIdentifiers adds the pattern of every identifier to the schemas, so that a malformed one in a body is told by
// its field. huma only sees text.
func describeIdentifiers(document *huma.OpenAPI) {
	registry := document.Components.Schemas
	for name, schema := range registry.Map() {
		if t := registry.TypeFromRef("#/components/schemas/" + name); t != nil && t.Kind() == reflect.Struct {
			describeFields(t, schema)
		}
	}
}

func describeFields(t reflect.Type, schema *huma.Schema) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			describeFields(field.Type, schema)
			continue
		}
		if property := schema.Properties[name]; property != nil {
			describeField(field.Type, property)
			// huma forgets that a pointer to an array, which an identifier is, may be nil.
			if field.Type.Kind() == reflect.Pointer && field.Type.Elem().Implements(prefixedType) && !strings.Contains(options, "omitempty") {
				property.Nullable = true
			}
		}
	}
}

func describeField(t reflect.Type, schema *huma.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && schema.Items != nil {
		describeField(t.Elem(), schema.Items)
		return
	}
	if t.Implements(prefixedType) {
		schema.Pattern = identifierPattern(reflect.Zero(t).Interface().(prefixed).Prefix())
		schema.PatternDescription = "an identifier"
		schema.PrecomputeMessages()
	}
}

// describeParams does the same for the parameters of one operation, which takes an input of type t.
func describeParams(t reflect.Type, op *huma.Operation) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous && !field.IsExported() {
			panic("http: huma does not see what is in the unexported " + field.Name + " that " + t.Name() + " embeds")
		}
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			describeParams(field.Type, op)
			continue
		}
		for _, param := range op.Parameters {
			if name := field.Tag.Get(param.In); name != "" && name == param.Name {
				describeField(field.Type, param.Schema)
			}
		}
	}
}
