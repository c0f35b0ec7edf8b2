package route

import (
	"cmp"
	"context"
	stdhttp "net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"turnstone/http/response"
	"turnstone/protocol"
)

// Route is one line of the table of routes.
type Route struct {
	Method, Path string
	id           string // operationId
	tag          string // the group of the route in the document
	summary      string
	description  string
	example      Object          // of the request body
	codes        []protocol.Code // of errors, in addition to those that follow from the policy
	Policy       Policy
	cookies      []int // the statuses with which the handler sets a cookie
	success      int   // 0: 200 with a body, 204 without
	maxBody      int64 // 0: SmallBody
	Streams      bool
	describe     func(huma.API, *huma.Operation)
	restore      func(stored []byte) ([]byte, error) // adds to a stored response what is not stored; nil: nothing
	// Register adds the operation to the API. fail writes what a handler of a stream returns.
	Register func(api huma.API, op huma.Operation, fail func(stdhttp.ResponseWriter, *stdhttp.Request, error))
}

// Call returns a route whose handler takes and returns JSON. The fields of I are tagged path, query or header; its
// field Body is the body of the request. The response consists of the fields Body and Status of O and its header
// fields.
func Call[I, O any](method, path, id, summary string, policy Policy, handler func(context.Context, *I) (*O, error)) Route {
	return Route{
		Method: method, Path: path, id: id, tag: firstSegment(path), summary: summary, Policy: policy,
		Register: func(api huma.API, op huma.Operation, _ func(stdhttp.ResponseWriter, *stdhttp.Request, error)) {
			register(api, op, handler)
		},
	}
}

// Stream returns a route whose handler writes the response itself: server-sent events or a redirect. The request is
// decoded and checked as for Call. An error that the handler returns before the first byte becomes a problem document;
// after the first byte, an error can only end the connection.
func Stream[I any](method, path, id, summary string, policy Policy, handler func(stdhttp.ResponseWriter, *stdhttp.Request, *I) error) Route {
	return Route{
		Method: method, Path: path, id: id, tag: firstSegment(path), summary: summary, Policy: policy, Streams: true,
		Register: func(api huma.API, op huma.Operation, fail func(stdhttp.ResponseWriter, *stdhttp.Request, error)) {
			register(api, op, func(_ context.Context, in *I) (*huma.StreamResponse, error) {
				return &huma.StreamResponse{Body: func(ctx huma.Context) {
					r, w := humachi.Unwrap(ctx)
					if err := handler(w, r, in); err != nil {
						fail(w, r, err)
					}
				}}, nil
			})
		},
	}
}

// register adds an operation to the API, adds the patterns of identifiers to its parameters, and removes the responses
// that it never returns.
func register[I, O any](api huma.API, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	checkEmbedded(reflect.TypeFor[I]())
	checkEmbedded(reflect.TypeFor[O]())
	huma.Register(api, op, handler)
	listed := OperationAt(api.OpenAPI(), op.Method, op.Path)
	describeParams(reflect.TypeFor[I](), listed)
	removeUnusedResponses(listed)
	if op.Method == stdhttp.MethodPost && listed.RequestBody != nil && allOptional(api, listed.RequestBody) {
		listed.RequestBody.Required = false
	}
	if op.Metadata["raw"] == true {
		for _, media := range listed.RequestBody.Content {
			if media.Schema == nil { // with a schema, huma.Register would have decoded the body
				media.Schema = &huma.Schema{Description: "The content."}
			}
		}
	}
}

// allOptional reports whether a body is a JSON object without required members. Such a body may be absent.
func allOptional(api huma.API, body *huma.RequestBody) bool {
	media := body.Content["application/json"]
	if media == nil || media.Schema == nil {
		return false
	}
	schema := media.Schema
	for schema.Ref != "" {
		schema = api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema.Type == huma.TypeObject && len(schema.Required) == 0
}

// checkEmbedded panics if t embeds an unexported type. huma ignores such a type, so its parameters would silently not
// be read.
func checkEmbedded(t reflect.Type) {
	for field := range t.Fields() {
		if field.Anonymous && !field.IsExported() {
			panic("http: " + t.String() + " embeds " + field.Type.String() + ", which must be exported")
		}
	}
}

// OperationAt returns an operation of the document; nil when it has none.
func OperationAt(document *huma.OpenAPI, method, path string) *huma.Operation {
	item := document.Paths[path]
	return map[string]*huma.Operation{
		"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
	}[method]
}

// Object is a JSON object in an example.
type Object = map[string]any

// DescribedAs sets the description of the operation: effects, order and limits that the summary leaves out. A long one is a
// file next to the handler, and its last line ends with a line feed.
func (t Route) DescribedAs(description string) Route {
	t.description = strings.TrimSuffix(description, "\n")
	return t
}

// WithExample sets the example of the request body in the document.
func (t Route) WithExample(example Object) Route { t.example = example; return t }

// WithCodes lists the error codes that only the handler knows.
func (t Route) WithCodes(codes ...protocol.Code) Route {
	t.codes = slices.Concat(t.codes, codes)
	return t
}

// Restoring sets a function that adds a secret to the stored response of a creation, because the secret itself is not
// stored. The store must store the response in the transaction of the effect.
func (t Route) Restoring(restore func(stored []byte) ([]byte, error)) Route {
	t.restore = restore
	return t
}

// WithCookies lists the statuses with which the handler sets or removes a cookie.
func (t Route) WithCookies(statuses ...int) Route {
	t.cookies = statuses
	return t
}

// WithMaxBody sets the limit of the JSON body, in bytes.
func (t Route) WithMaxBody(limit int64) Route { t.maxBody = limit; return t }

// BodyLimit returns the limit of the JSON body, in bytes.
func (t Route) BodyLimit() int64 { return cmp.Or(t.maxBody, SmallBody) }

// WithStatus sets the status of a successful response.
func (t Route) WithStatus(status int) Route { t.success = status; return t }

// Documented sets a function that changes the operation in the OpenAPI document.
func (t Route) Documented(change func(huma.API, *huma.Operation)) Route {
	t.describe = change
	return t
}

// WithTag sets the group of the route in the document. Without it, that is the first segment of the path.
func (t Route) WithTag(name string) Route { t.tag = name; return t }

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// Operation returns the description of the route for the OpenAPI document.
func (t Route) Operation(api huma.API) huma.Operation {
	op := huma.Operation{
		Method: t.Method, Path: t.Path, OperationID: t.id, Summary: t.summary, Tags: []string{t.tag},
		DefaultStatus:   t.success,
		MaxBodyBytes:    t.BodyLimit() + 1,
		BodyReadTimeout: -1, // package router has read the body; a deadline left on the connection would end a stream
		Errors:          t.errors(),
		Metadata:        map[string]any{"policy": t.Policy, "streams": t.Streams, "restore": t.restore, "max_body": t.BodyLimit()},
	}
	if t.Policy.Public {
		op.Security = []map[string][]string{}
	}
	if t.Policy.Idempotent {
		op.Parameters = append(op.Parameters, headerParam("Idempotency-Key",
			"Makes the request safe to retry. For 24 hours, a request with the same key and the same body returns the stored response of the first "+
				"one, with Idempotent-Replayed: true. While the first one is in progress, it gets 409 with Retry-After."))
	}
	if !t.Policy.Public && !Safe(t.Method) {
		token := headerParam("X-CSRF-Token", "The CSRF token of the session, from GET /auth/session.")
		token.Required = true
		op.Parameters = append(op.Parameters, token)
	}
	if t.describe != nil {
		op.Responses = map[string]*huma.Response{}
		t.describe(api, &op)
		op.Errors = slices.DeleteFunc(op.Errors, func(status int) bool { return op.Responses[strconv.Itoa(status)] != nil })
	}
	return op
}

// errors returns the error statuses that the route may return. removeUnusedResponses removes those that only a body can
// cause.
func (t Route) errors() []int {
	list := []int{stdhttp.StatusInternalServerError, stdhttp.StatusBadRequest, stdhttp.StatusMisdirectedRequest, stdhttp.StatusUnprocessableEntity}
	if t.Path == "/health" {
		return list
	}
	list = append(list, stdhttp.StatusServiceUnavailable, stdhttp.StatusTooManyRequests,
		stdhttp.StatusRequestEntityTooLarge, stdhttp.StatusUnsupportedMediaType)
	if !t.Policy.Public {
		list = append(list, stdhttp.StatusUnauthorized)
	}
	if !Safe(t.Method) || t.Policy.Sudo {
		list = append(list, stdhttp.StatusForbidden)
	}
	if strings.Contains(t.Path, "{") || !t.Policy.Public && t.Method != "GET" { // a body can name resources too
		list = append(list, stdhttp.StatusNotFound)
	}
	if t.Policy.Conflicts {
		list = append(list, stdhttp.StatusConflict)
	}
	for _, code := range t.codes {
		list = append(list, response.Statuses[code])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// removeUnusedResponses removes from an operation the responses that it never returns.
func removeUnusedResponses(op *huma.Operation) {
	if op.RequestBody == nil {
		for _, status := range []int{stdhttp.StatusRequestEntityTooLarge, stdhttp.StatusUnsupportedMediaType} {
			delete(op.Responses, strconv.Itoa(status))
		}
	}
	const success = "200"
	if plain := op.Responses[success]; op.Metadata["streams"] == true && plain != nil && plain.Content == nil {
		delete(op.Responses, success)
	}
}

func headerParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// DocumentEventStream documents a response of server-sent events.
func DocumentEventStream(status int, description string) func(huma.API, *huma.Operation) {
	return func(_ huma.API, op *huma.Operation) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: description,
			Content: map[string]*huma.MediaType{"text/event-stream": {
				Schema: &huma.Schema{Ref: "#/components/schemas/Event"},
			}},
		}
	}
}

// DocumentRedirect documents a route that redirects the browser.
func DocumentRedirect(_ huma.API, op *huma.Operation) {
	op.Responses[strconv.Itoa(stdhttp.StatusFound)] = &huma.Response{
		Description: "Found. If a browser navigation (Sec-Fetch-Mode: navigate) is refused, the browser is redirected to /?refused={code} instead of receiving a problem document.",
		Headers:     Headers("Location"),
	}
	op.Errors = append(op.Errors, stdhttp.StatusUnauthorized, stdhttp.StatusForbidden)
}

// Headers lists headers of a response. The document describes them.
func Headers(names ...string) map[string]*huma.Param {
	listed := map[string]*huma.Param{}
	for _, name := range names {
		listed[name] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return listed
}

// JSONResponse documents a JSON response of an operation in addition to the one that huma derives from the handler.
func JSONResponse[T any](api huma.API, op *huma.Operation, status int, description string) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	op.Responses[strconv.Itoa(status)] = &huma.Response{
		Description: description,
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
}
