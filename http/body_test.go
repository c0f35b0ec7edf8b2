package http

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
)

// maxRefusal limits the size of a response to a hostile body, in bytes.
const maxRefusal = 6 << 10

// container is an array or a map in the body of a route.
type container struct {
	path   []string // of its members; [] stands for an element
	schema *huma.Schema
}

// requestSchemas visits the schemas of the bodies of a server.
type requestSchemas struct {
	*Server
	t     *testing.T
	route string // whose body is visited
}

func (s *requestSchemas) resolve(schema *huma.Schema) *huma.Schema {
	for schema.Ref != "" {
		schema = s.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// bodyOf returns the schema of the JSON body of a route; nil if it has none.
func (s *requestSchemas) bodyOf(r route.Route) *huma.Schema {
	op := route.OperationAt(s.OpenAPI(), r.Method, r.Path)
	if op.RequestBody == nil || isRaw(op) {
		return nil
	}
	return op.RequestBody.Content["application/json"].Schema
}

// containers returns all arrays and maps in a schema.
func (s *requestSchemas) containers(path []string, schema *huma.Schema) (list []container) {
	schema = s.resolve(schema)
	if schema.OneOf != nil || schema.AnyOf != nil || schema.AllOf != nil {
		s.t.Errorf("%s: the check of bodies knows no alternatives", path)
	}
	if schema.Type == huma.TypeArray {
		list = append(list, container{path, schema})
		list = append(list, s.containers(append(slices.Clone(path), "[]"), schema.Items)...)
	}
	if values, isMap := schema.AdditionalProperties.(*huma.Schema); isMap {
		list = append(list, container{path, schema})
		list = append(list, s.containers(append(slices.Clone(path), "name"), values)...)
	}
	for name, property := range schema.Properties {
		list = append(list, s.containers(append(slices.Clone(path), name), property)...)
	}
	return list
}

// documentedLengths are the limits of texts that handlers check, in characters; for a map, that of a name and its value.
var documentedLengths = map[string]int{
	"title": protocol.MaxTitle, "name": protocol.MaxTitle, "metadata": 64 + 512, "off": 64, "connectors": 40, "transports": 32, "place": protocol.MaxPlaceRunes,
	"strike": 16, "add": 400, "text": protocol.MaxInputRunes, "content": protocol.MaxInputRunes,
	"POST /chat/steering text": protocol.MaxSteeringRunes, "PUT /projects/{project_id}/instructions content": protocol.MaxInstructions,
	"PUT /account/instructions content": protocol.MaxInstructions, "description": protocol.MaxPromptDescription,
	"POST /prompts text": protocol.MaxPromptText, "PATCH /prompts/{prompt_id} text": protocol.MaxPromptText,
}

func (s *requestSchemas) documentedLength(name string) int {
	return cmp.Or(documentedLengths[s.route+" "+name], documentedLengths[name])
}

// neverEscaped are texts in base64, which has no characters that are escaped.
var neverEscaped = []string{"id", "rawId", "clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"}

// largest returns the size of the largest valid body, in which every character is written as two escapes.
func (s *requestSchemas) largest(name string, schema *huma.Schema) int {
	const escaped, separators, scalar, identifier = 12, 4, 64, 40
	schema = s.resolve(schema)
	switch {
	case len(schema.Enum) > 0, schema.Type == huma.TypeBoolean, schema.Type == huma.TypeInteger, schema.Type == huma.TypeNumber:
		return scalar
	case schema.Type == huma.TypeString && schema.MaxLength != nil && slices.Contains(neverEscaped, name):
		return *schema.MaxLength + separators
	case schema.Type == huma.TypeString && schema.MaxLength != nil:
		return *schema.MaxLength*escaped + separators
	case schema.Type == huma.TypeString && (schema.Pattern != "" || schema.Format != ""):
		return identifier
	case schema.Type == huma.TypeString:
		if s.documentedLength(name) == 0 {
			s.t.Errorf("%s %s has no maxLength: add its limit to documentedLengths", s.route, name)
		}
		return s.documentedLength(name)*escaped + separators
	case schema.Type == huma.TypeArray && name == "input":
		return s.largest(name, schema.Items) + *schema.MaxItems*(identifier+scalar) // the texts have one limit in common
	case schema.Type == huma.TypeArray:
		return *schema.MaxItems * (s.largest(name, schema.Items) + separators)
	}
	size := separators
	for member, property := range schema.Properties {
		size += len(member) + separators + s.largest(member, property)
	}
	if values, isMap := schema.AdditionalProperties.(*huma.Schema); isMap {
		size += *schema.MaxProperties * (s.largest(name, values) + separators)
		if s.resolve(values).Type != huma.TypeString { // otherwise, the name is included
			size += *schema.MaxProperties * s.documentedLength(name) * escaped
		}
	}
	return size
}

// TestEveryArrayAndMapOfABodyIsBounded checks that the document states how many elements each of them may have, and
// that every valid body fits into the limit of its route.
func TestEveryArrayAndMapOfABodyIsBounded(t *testing.T) {
	t.Parallel()
	s := &requestSchemas{Server: documentServer(t), t: t}
	for _, r := range s.Routes() {
		body := s.bodyOf(r)
		if body == nil {
			continue
		}
		s.route = nameOf(r)
		bounded := true
		for _, c := range s.containers(nil, body) {
			if c.schema.Type == huma.TypeArray && c.schema.MaxItems == nil || c.schema.Type != huma.TypeArray && c.schema.MaxProperties == nil {
				t.Errorf("%s: body.%s has no maxItems or maxProperties", nameOf(r), strings.Join(c.path, "."))
				bounded = false
			}
		}
		if largest := s.largest("body", body); bounded && r.BodyLimit() < int64(min(largest, route.MaxBody)) {
			t.Errorf("%s: the limit of the body is %d bytes, but a valid body may have %d", nameOf(r), r.BodyLimit(), largest)
		}
	}
}

// filledBody returns a body with a container at a path that has as many of these elements as fit into size bytes.
func filledBody(c container, element string, size int) rawBody {
	open, closing := "[", "]"
	member := func(int) string { return element }
	if c.schema.Type != huma.TypeArray {
		open, closing = "{", "}"
		member = func(n int) string { return fmt.Sprintf("%q:%s", fmt.Sprint("m", n), element) }
	}
	var before, after string
	for _, name := range c.path {
		if name == "[]" {
			before, after = before+"[", "]"+after
		} else {
			before, after = fmt.Sprintf("%s{%q:", before, name), "}"+after
		}
	}
	var body strings.Builder
	body.WriteString(before + open)
	for n := 0; body.Len()+len(element)+len(after)+32 < size; n++ {
		if n > 0 {
			body.WriteByte(',')
		}
		body.WriteString(member(n))
	}
	body.WriteString(closing + after)
	return rawBody(body.String())
}

// TestABodyWithTooManyElementsIsRefusedBriefly fills every array and every map of every body with small elements, up to
// the limit of its route.
func TestABodyWithTooManyElementsIsRefusedBriefly(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	s, sent := &requestSchemas{Server: m.Server, t: t}, 0
	for _, r := range m.Routes() {
		body := s.bodyOf(r)
		if body == nil {
			continue
		}
		for _, c := range s.containers(nil, body) {
			for _, element := range []string{`1`, `""`, `{}`, `[]`, `null`, `"file_01h2xcejqtf2nbrexx3vqjhp41"`} {
				sent++
				resp := m.send(m.owner, r, m.mine, filledBody(c, element, int(r.BodyLimit())))
				if resp.status != 422 && resp.status != 413 || len(resp.body) > maxRefusal || len(resp.Errors) > 20 {
					t.Errorf("%s: body.%s filled with %s: %d, %d bytes: %.300s", nameOf(r), strings.Join(c.path, "."), element, resp.status, len(resp.body), resp.body)
				}
			}
		}
	}
	if sent < 70 {
		t.Errorf("only %d bodies were sent", sent)
	}
}

// hostileBodies are bodies of at most size bytes that no client needs, by what is wrong with them.
func hostileBodies(size int) map[string]string {
	repeat := func(text string) string { return strings.Repeat(text, (size-64)/len(text)) }
	var unknown, long, same strings.Builder
	for n := 0; unknown.Len() < size-64; n++ {
		fmt.Fprintf(&unknown, `"u%d":0,`, n)
	}
	for n := 0; long.Len() < size-4096; n++ {
		fmt.Fprintf(&long, `"%d%s":0,`, n, strings.Repeat("n", 2000))
	}
	for same.Len() < size-64 {
		same.WriteString(`"a":0,`)
	}
	deep := (size - 64) / 2
	return map[string]string{
		"unknown members":  "{" + unknown.String() + `"z":0}`,
		"long names":       "{" + long.String() + `"z":0}`,
		"repeated names":   "{" + same.String() + `"a":0}`,
		"deep arrays":      `{"u":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}",
		"deep objects":     `{"u":` + strings.Repeat(`{"u":`, deep/3) + "0" + strings.Repeat("}", deep/3) + "}",
		"an open end":      repeat(`{"u":`),
		"a long number":    `{"u":` + repeat("9") + "}",
		"a long exponent":  `{"version":1e` + repeat("9") + "}",
		"a long fraction":  `{"version":0.` + repeat("1") + "}",
		"an array":         "[" + repeat("0,") + "0]",
		"an array of maps": "[" + repeat("{},") + "{}]",
		"a long text":      `"` + repeat("x") + `"`,
		"white space":      repeat(" "),
		"no JSON":          repeat("x"),
		"text in no UTF-8": `"` + repeat("\xff") + `"`,
		"NUL in a name":    `{"` + repeat("n") + `\u0000":0}`,
	}
}

// TestAHostileBodyIsRefusedBriefly sends each hostile body to every route with a body. Unknown members are ignored if
// they fit into the body.
func TestAHostileBodyIsRefusedBriefly(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	s := &requestSchemas{Server: m.Server, t: t}
	for _, r := range m.Routes() {
		if s.bodyOf(r) == nil {
			continue
		}
		for name, body := range hostileBodies(int(r.BodyLimit())) {
			resp := m.send(m.owner, r, m.mine, rawBody(body))
			refused := slices.Contains([]int{400, 413, 422}, resp.status)
			ignored := name == "unknown members" && resp.status < 500
			if !refused && !ignored || len(resp.body) > maxRefusal {
				t.Errorf("%s with %s: %d, %d bytes: %.300s", nameOf(r), name, resp.status, len(resp.body), resp.body)
			}
		}
	}
}

type listsInput struct {
	Body struct {
		IDs     []protocol.FileID `json:"file_ids" maxItems:"50"`
		Reasons []string          `json:"reasons,omitempty" uniqueItems:"true" maxItems:"6" enum:"slow,wrong"`
		Names   map[string]string `json:"names,omitempty" maxProperties:"4"`
		Text    string            `json:"text,omitempty"`
	}
}

func acceptLists(context.Context, *listsInput) (*resource.Body[echoOutput], error) {
	return resource.OK(echoOutput{}), nil
}

// The memory that a refusal allocates does not depend on the number of elements: it is a small multiple of the size of
// the body, which is read, and decoded at most twice. This test does not run at the same time as others, because it
// counts the allocations of the process.
func TestTheMemoryOfARefusalIsProportionalToTheBody(t *testing.T) { // not parallel: it counts allocations
	s := frameServer(t, Config{}, route.Call("POST", "/lists", "lists", "", route.Policy{Public: true}, acceptLists).WithMaxBody(route.MaxBody))
	const most = 24 << 20
	bodies := hostileBodies(route.MaxBody)
	for _, element := range []string{"1", "{}", "[]", `"file_x"`, `"slow"`} {
		for _, name := range []string{"file_ids", "reasons"} {
			bodies[name+" of "+element] = string(filledBody(container{[]string{name}, &huma.Schema{Type: huma.TypeArray}}, element, route.MaxBody))
		}
		bodies["names of "+element] = string(filledBody(container{[]string{"names"}, &huma.Schema{Type: huma.TypeObject}}, element, route.MaxBody))
	}
	bodies["two equal objects"] = `{"file_ids":[],"reasons":[{},{}]}`
	for name, body := range bodies {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, p := post(s, "/lists", "application/json", strings.NewReader(body))
		runtime.ReadMemStats(&after)
		size, _ := io.Copy(io.Discard, got.Body)
		if !slices.Contains([]int{400, 413, 422}, got.StatusCode) || size > maxRefusal {
			t.Errorf("%s: %d, %d bytes: %.300s", name, got.StatusCode, size, p.Detail)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: a body of %d bytes allocates %d bytes", name, len(body), used)
		}
	}
}

// A problem has at most 20 errors, says how many more there are, and repeats no long name.
func TestAProblemHasAtMostTwentyErrors(t *testing.T) {
	t.Parallel()
	fields := make([]protocol.FieldError, 25)
	for i := range fields {
		fields[i] = protocol.FieldError{Field: "body." + strings.Repeat("ü", 5000), Message: strings.Repeat("x", 5000)}
	}
	p := response.ProblemOf(&protocol.Error{Code: protocol.CodeInvalid, Detail: "The request has an invalid value.", Fields: fields})
	text, err := json.Marshal(p)
	if err != nil || len(p.Errors) != 20 || !strings.HasSuffix(p.Detail, "There are 5 more errors.") || len(text) > 20<<10 {
		t.Errorf("%d errors, %q, %d bytes (%v)", len(p.Errors), p.Detail, len(text), err)
	}
}

func TestTheMediaTypeOfABodyIsReadAsTheStandardDefinesIt(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client().register("a@example.com")
	for media, status := range map[string]int{
		"application/json": 201, "APPLICATION/JSON": 201, "Application/Json ; Charset=UTF-8": 201, `application/json;charset="utf-8"`: 201,
		"application/json; charset=iso-8859-1": 415, "application/json; charset=utf-16": 415, "application/jsonx": 415, "text/json": 415, "application/json,": 415,
	} {
		if resp := c.do("POST", "/conversations", rawBody(`{"title":"é"}`), "Content-Type", media); resp.status != status {
			t.Errorf("%s: %d %s", media, resp.status, resp.body)
		}
	}
}
