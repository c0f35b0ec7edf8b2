package route

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

type prefixed interface{ Prefix() string }

var prefixedType = reflect.TypeFor[prefixed]()

// IdentifierPattern returns the regular expression of a TypeID.
func IdentifierPattern(prefix string) string { return "^" + prefix + "_[0-7][0-9a-hjkmnp-tv-z]{25}$" }

// DescribeIdentifiers adds the pattern of every identifier to the schemas, so that the error of a malformed identifier
// in a body names its field. huma only sees strings.
func DescribeIdentifiers(document *huma.OpenAPI) {
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
			// huma does not know that a pointer to an array may be nil; an identifier is an array.
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
		schema.Pattern = IdentifierPattern(reflect.Zero(t).Interface().(prefixed).Prefix())
		schema.PatternDescription = "an identifier"
		schema.PrecomputeMessages()
	}
}

// describeParams adds the patterns to the parameters of an operation whose input has type t.
func describeParams(t reflect.Type, op *huma.Operation) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous && !field.IsExported() {
			panic("http: " + t.Name() + " embeds the unexported " + field.Name + ", whose fields huma ignores")
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
