package http

import (
	"context"
	"errors"
	stdhttp "net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// route is one line of the table.
type route struct {
	method, path string
	id           string // operationId
	summary      string
	description  string
	example      object          // of the request's body
	codes        []protocol.Code // of errors, beyond those that follow from the policy
	policy       Policy
	success      int // 0: 200 with a body, 204 without
	streams      bool
	describe     func(huma.API, *huma.Operation)
	register     func(huma.API, huma.Operation)
}

// call makes a route of a handler that takes and gives JSON. I's fields are tagged path, query, header; its Body is the
// body. O's Body, Status and header fields are the answer.
func call[I, O any](method, path, id, summary string, policy Policy, handler func(context.Context, *I) (*O, error)) route {
	return route{
		method: method, path: path, id: id, summary: summary, policy: policy,
		register: func(api huma.API, op huma.Operation) { register(api, op, handler) },
	}
}

// stream makes a route of a handler that writes its answer itself: server-sent events, redirects. The request is decoded
// and checked as for call. An error that is returned before the first byte becomes a problem document; after it, only
// the connection can end.
func stream[I any](method, path, id, summary string, policy Policy, handler func(stdhttp.ResponseWriter, *stdhttp.Request, *I) error) route {
	wrapped := func(_ context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			r, w := humachi.Unwrap(ctx)
			if err := handler(w, r, in); err != nil {
				exchangeOf(r.Context()).server.failStream(w, r, err)
			}
		}}, nil
	}
	return route{
		method: method, path: path, id: id, summary: summary, policy: policy, streams: true,
		register: func(api huma.API, op huma.Operation) { register(api, op, wrapped) },
	}
}

// register adds an operation and the spelling of the identifiers among its parameters.
func register[I, O any](api huma.API, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	checkEmbedded(reflect.TypeFor[I]())
	checkEmbedded(reflect.TypeFor[O]())
	huma.Register(api, op, handler)
	listed := operationAt(api.OpenAPI(), op.Method, op.Path)
	describeParams(reflect.TypeFor[I](), listed)
	describeAnswers(listed)
}

// checkEmbedded refuses at the start what would fail silently: huma does not look into embedded types that are not
// exported, so their parameters would be read by nobody.
func checkEmbedded(t reflect.Type) {
	for field := range t.Fields() {
		if field.Anonymous && !field.IsExported() {
			panic("http: " + t.String() + " embeds " + field.Type.String() + ", which has to be exported")
		}
	}
}

func operationAt(document *huma.OpenAPI, method, path string) *huma.Operation {
	item := document.Paths[path]
	return map[string]*huma.Operation{
		"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
	}[method]
}

// failStream answers with the error if nothing was sent yet.
func (s *Server) failStream(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	if began(w) {
		if r.Context().Err() == nil && !errors.Is(err, context.Canceled) { // neither did the client leave nor its session end
			s.log.Info("a stream broke off", zap.String("request_id", requestIDOf(r.Context())), zap.Error(err))
		}
		return
	}
	s.fail(w, r, err)
}

func began(w stdhttp.ResponseWriter) bool {
	for {
		switch v := w.(type) {
		case *recorder:
			return v.status != 0
		case interface{ Unwrap() stdhttp.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// object is a JSON object in an example.
type object = map[string]any

// about says in the document what the summary leaves out: effects, order, limits.
func (t route) about(description string) route { t.description = description; return t }

// sends gives the document an example of the body.
func (t route) sends(example object) route { t.example = example; return t }

// refuses lists the codes of errors that only the handler knows.
func (t route) refuses(codes ...protocol.Code) route { t.codes = codes; return t }

// answers sets the status of success.
func (t route) answers(status int) route { t.success = status; return t }

// documented changes the operation in the OpenAPI document.
func (t route) documented(change func(huma.API, *huma.Operation)) route {
	t.describe = change
	return t
}

// tag groups the routes of the document by the first segment of their path.
func (t route) tag() string {
	first, _, _ := strings.Cut(strings.TrimPrefix(t.path, "/"), "/")
	if slices.Contains([]string{"health", "ready", "version"}, first) {
		return "system"
	}
	return first
}

func (t route) operation(api huma.API) huma.Operation {
	op := huma.Operation{
		Method: t.method, Path: t.path, OperationID: t.id, Summary: t.summary, Tags: []string{t.tag()},
		DefaultStatus:   t.success,
		MaxBodyBytes:    maxBody + 1,
		BodyReadTimeout: -1, // the body was read before; a deadline left on the connection would cut a stream
		Errors:          t.errors(),
		Metadata:        map[string]any{"policy": t.policy, "streams": t.streams},
	}
	if t.policy.Public {
		op.Security = []map[string][]string{}
	}
	if t.policy.Idempotent {
		op.Parameters = append(op.Parameters, headerParam("Idempotency-Key",
			"Makes the request safe to repeat for 24 hours: the first answer comes again, with Idempotent-Replayed: true."))
	}
	if !t.policy.Public && !safe(t.method) {
		token := headerParam("X-CSRF-Token", "From GET /auth/session.")
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

// errors lists the statuses that a client has to expect of the route; huma adds 422 where there is something to validate,
// and describeAnswers takes away what only a body can cause.
func (t route) errors() []int {
	list := []int{stdhttp.StatusInternalServerError}
	if t.path == "/health" {
		return list
	}
	list = append(list, stdhttp.StatusServiceUnavailable, stdhttp.StatusTooManyRequests, stdhttp.StatusBadRequest,
		stdhttp.StatusRequestEntityTooLarge, stdhttp.StatusUnsupportedMediaType)
	if !t.policy.Public {
		list = append(list, stdhttp.StatusUnauthorized)
	}
	if !safe(t.method) || t.policy.Sudo {
		list = append(list, stdhttp.StatusForbidden)
	}
	if strings.Contains(t.path, "{") || !t.policy.Public && t.method != "GET" { // bodies name things too
		list = append(list, stdhttp.StatusNotFound)
	}
	if t.policy.Conflicts {
		list = append(list, stdhttp.StatusConflict)
	}
	slices.Sort(list)
	return list
}

// describeAnswers takes out of an operation what it never answers.
func describeAnswers(op *huma.Operation) {
	if op.RequestBody == nil {
		for _, status := range []int{stdhttp.StatusBadRequest, stdhttp.StatusRequestEntityTooLarge, stdhttp.StatusUnsupportedMediaType} {
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

// eventStream documents a route that answers with server-sent events.
func eventStream(status int, description string) func(huma.API, *huma.Operation) {
	return func(_ huma.API, op *huma.Operation) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: description,
			Content: map[string]*huma.MediaType{"text/event-stream": {
				Schema: &huma.Schema{Ref: "#/components/schemas/Event"},
			}},
		}
	}
}

// redirects documents a route that sends the browser elsewhere.
func redirects(_ huma.API, op *huma.Operation) {
	op.Responses[strconv.Itoa(stdhttp.StatusFound)] = &huma.Response{
		Description: "Found. A browser's navigation (Sec-Fetch-Mode: navigate) that is refused goes to /?refused={code}, in place of a problem.",
		Headers:     map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	op.Errors = append(op.Errors, stdhttp.StatusUnauthorized, stdhttp.StatusForbidden)
}

// answer documents a further JSON answer of a route that writes its answer itself.
func answer[T any](api huma.API, op *huma.Operation, status int, description string) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	op.Responses[strconv.Itoa(status)] = &huma.Response{
		Description: description,
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
}
