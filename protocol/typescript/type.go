package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"turnstone/protocol"
)

const heading = `// The events of a turn, as the service sends them. Generated from the registry in protocol/event.go by "make generate";
// do not edit. Clients must ignore types, fields and values that they do not know: payloads change only additively.

/** A point in time: RFC 3339 in UTC with milliseconds. */
export type Timestamp = string;
`

// enums lists the string types with a closed set of values where every field of the type allows all of them.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[protocol.TurnState]():  texts(protocol.TurnStates),
	reflect.TypeFor[protocol.ToolState]():  texts(protocol.ToolStates),
	reflect.TypeFor[protocol.Profile]():    texts(protocol.Profiles),
	reflect.TypeFor[protocol.Delivery]():   texts([]protocol.Delivery{protocol.DeliverNextStep, protocol.DeliverInterrupt}),
	reflect.TypeFor[protocol.StopReason](): texts(protocol.StopReasons),
}

func texts[S ~string](values []S) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// generator collects the declarations of the file, in the order in which they were first declared.
type generator struct {
	declared map[string]string // by name
	order    []string
}

// eventTypes returns the content of the generated file.
func eventTypes() ([]byte, error) {
	g := &generator{declared: map[string]string{}}
	envelope, err := g.fields(reflect.TypeFor[protocol.Envelope](), map[string]string{"type": "T"})
	if err != nil {
		return nil, err
	}
	g.declare("Envelope", "/** The fields with which every event starts. */\nexport interface Envelope<T extends string> {\n"+envelope+"}\n")
	specs := append(slices.Clone(protocol.Events), protocol.SnapshotSpec)
	for _, spec := range specs {
		if err := g.event(spec); err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Type, err)
		}
	}
	var out bytes.Buffer
	out.WriteString(heading)
	for _, name := range g.order {
		out.WriteString("\n" + g.declared[name])
	}
	out.WriteString("\n/** Any event that this version knows. */\nexport type TurnEvent =\n")
	for i, spec := range specs {
		end := "\n"
		if i == len(specs)-1 {
			end = ";\n"
		}
		out.WriteString("  | " + nameOf(spec) + end)
	}
	out.WriteString("\n/** The types of all events: an EventSource needs a listener for each. */\nexport const turnEventTypes = [\n")
	for _, spec := range specs {
		fmt.Fprintf(&out, "  %q,\n", spec.Type)
	}
	out.WriteString("] as const satisfies readonly TurnEvent[\"type\"][];\n")
	return out.Bytes(), nil
}

func nameOf(spec protocol.EventSpec) string {
	return strings.TrimSuffix(reflect.TypeOf(spec.New()).Elem().Name(), "Event")
}

// event declares one event: the envelope with its own type, and its payload's fields.
func (g *generator) event(spec protocol.EventSpec) error {
	payload, err := g.fields(reflect.TypeOf(spec.New()).Elem(), nil)
	if err != nil {
		return err
	}
	name := nameOf(spec)
	g.declare(name, comment("", spec.Doc)+"export interface "+name+" extends Envelope<"+quote(string(spec.Type))+"> {\n"+payload+"}\n")
	return nil
}

func (g *generator) declare(name, text string) {
	if _, done := g.declared[name]; !done {
		g.order = append(g.order, name)
	}
	g.declared[name] = text
}

// fields returns the TypeScript fields of a struct. fixed overrides the type of a field, by JSON name.
func (g *generator) fields(t reflect.Type, fixed map[string]string) (string, error) {
	var out strings.Builder
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" { // its fields are fields of the outer object
			embedded, err := g.fields(field.Type, fixed)
			if err != nil {
				return "", err
			}
			out.WriteString(embedded)
			continue
		}
		if name == "" || name == "-" {
			return "", fmt.Errorf("%s.%s has no JSON name", t.Name(), field.Name)
		}
		text, isFixed := fixed[name]
		if !isFixed {
			var err error
			if text, err = g.typeOf(field); err != nil {
				return "", fmt.Errorf("%s.%s: %w", t.Name(), field.Name, err)
			}
		}
		optional := ""
		if strings.Contains(options, "omitempty") {
			optional = "?"
		} else if field.Type.Kind() == reflect.Pointer {
			text += " | null"
		}
		out.WriteString(comment("  ", field.Tag.Get("doc")) + "  " + name + optional + ": " + text + ";\n")
	}
	return out.String(), nil
}

func comment(indent, text string) string {
	if text == "" {
		return ""
	}
	return indent + "/** " + strings.ReplaceAll(text, "*/", "* /") + " */\n"
}

func quote(text string) string { return `"` + text + `"` }

// typeOf returns the TypeScript type of a field. A field with an enum tag, or its items, have only those values.
func (g *generator) typeOf(field reflect.StructField) (string, error) {
	t := field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	values := field.Tag.Get("enum")
	switch {
	case values == "":
		return g.named(t)
	case t.Kind() == reflect.String:
		return union(strings.Split(values, ",")), nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return "(" + union(strings.Split(values, ",")) + ")[]", nil
	default: // numbers
		return strings.ReplaceAll(values, ",", " | "), nil
	}
}

func union(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = quote(value)
	}
	return strings.Join(quoted, " | ")
}

type prefixed interface{ Prefix() string }

// named returns the TypeScript type of a Go type, and declares it if it is a named type.
func (g *generator) named(t reflect.Type) (string, error) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "Timestamp", nil
	case t == reflect.TypeFor[json.RawMessage]():
		return "unknown", nil
	case t.Implements(reflect.TypeFor[prefixed]()):
		return g.identifier(reflect.Zero(t).Interface().(prefixed).Prefix())
	case enums[t] != nil:
		g.declare(t.Name(), "export type "+t.Name()+" = "+union(enums[t])+";\n")
		return t.Name(), nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "number", nil
	case reflect.String:
		return "string", nil
	case reflect.Slice:
		item, err := g.named(t.Elem())
		return item + "[]", err
	case reflect.Struct:
		if _, done := g.declared[t.Name()]; done {
			return t.Name(), nil
		}
		fields, err := g.fields(t, nil)
		g.declare(t.Name(), "export interface "+t.Name()+" {\n"+fields+"}\n")
		return t.Name(), err
	}
	return "", fmt.Errorf("no TypeScript type for %s", t)
}

// identifiers maps the prefixes of the identifiers that events contain to their TypeScript names.
var identifiers = map[string]string{
	"ap": "ApprovalID", "art": "ArtifactID", "br": "BranchID", "conv": "ConversationID", "file": "FileID", "fu": "FollowUpID", "msg": "MessageID",
	"part": "PartID", "st": "SteeringID", "tl": "ToolID", "turn": "TurnID",
}

func (g *generator) identifier(prefix string) (string, error) {
	name, known := identifiers[prefix]
	if !known {
		return "", fmt.Errorf("identifiers has no name for the prefix %s_", prefix)
	}
	g.declare(name, "export type "+name+" = `"+prefix+"_${string}`;\n")
	return name, nil
}
