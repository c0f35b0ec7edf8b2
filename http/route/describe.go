package route

import (
	"encoding/json"
	"fmt"
	stdhttp "net/http"
	"slices"
	"strconv"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

// This file adds to the OpenAPI document what it has beyond the schemas: servers, tags, descriptions, examples, the
// headers of responses, and the codes of each error. Tags, descriptions and examples of requests are next to the routes
// (Table, DescribedAs, WithExample, WithCodes); everything in this file follows from the table of routes.

// headerDoc describes a response header. A required one is part of every response under which the document lists it.
type headerDoc struct {
	description, kind, example string
	required                   bool
}

// headerDocs describe every response header that a client may use, besides those that the description of the document
// names.
var headerDocs = map[string]headerDoc{
	"X-Request-Id":        {"Identifies the request. Quote it in error reports.", "string", "req_019cab2c-4f21-7c3e-9d52-6a1f0e8b7c55", true},
	"X-Turn-Id":           {"The turn whose events are streamed.", "string", "turn_01h2xcejqtf2nbrexx3vqjhp41", true},
	"X-Accel-Buffering":   {"no: a proxy must pass on each event at once.", "string", "no", true},
	"Location":            {"The address of the new resource or of the turn, or the target of a redirect.", "string", "/conversations/conv_01h2xcejqtf2nbrexx3vqjhp41", true},
	"ETag":                {"The version of the resource, for use in If-Match.", "string", `"v3"`, true},
	"Content-Disposition": {"attachment, with a name for the file.", "string", `attachment; filename=turnstone-export-2026-03-01.zip`, true},
	"Content-Range":       {"The range of bytes in the response, and the size of the content.", "string", "bytes 0-1023/48213", true},
	"Last-Modified":       {"When the content was stored.", "string", "Sun, 01 Mar 2026 12:30:15 GMT", true},
	"Accept-Ranges":       {"bytes: a request may ask for a range.", "string", "bytes", true},
	"Set-Cookie":          {"A new session token, or the removal of a cookie.", "string", "__Host-session=s1_3q2; Path=/; HttpOnly; Secure; SameSite=Lax", false},
	"Clear-Site-Data":     {"The browser forgets what it has stored of the service.", "string", `"cache","storage"`, true},
	"Retry-After":         {"The number of seconds to wait before the next attempt.", "integer", "2", true},
	"RateLimit-Policy":    {"The limit that applies to the request: its quota (q) and its window in seconds (w). See draft-ietf-httpapi-ratelimit-headers.", "string", `"writes";q=120;w=60`, false},
	"RateLimit":           {"The remaining quota of that limit (r), and the number of seconds until it is fully restored (t).", "string", `"writes";r=29;t=1`, false},
	"Idempotent-Replayed": {"true if this is the stored response of an earlier request with the same Idempotency-Key.", "string", "true", false},
}

// describe adds to the document what applies to all routes, and what the table states about each route.
func describe(tree map[string]any, table Table) {
	tree["servers"] = []any{map[string]any{"url": "/", "description": "The origin of the installation (TURNSTONE_BASE_URL)."}}
	var groups []any
	for _, tag := range table.Tags {
		groups = append(groups, map[string]any{"name": tag.Name, "description": tag.Description})
	}
	tree["tags"] = groups
	components := asMap(tree["components"])
	headers := map[string]any{}
	for name, doc := range headerDocs {
		var example any = doc.example
		if number, err := strconv.Atoi(doc.example); err == nil && doc.kind == "integer" {
			example = number
		}
		header := map[string]any{"description": doc.description, "schema": map[string]any{"type": doc.kind}, "example": example}
		if doc.required {
			header["required"] = true
		}
		headers[name] = header
	}
	components["headers"] = headers
	sample := sampler{schemas: asMap(components["schemas"])}
	for _, r := range table.Routes {
		r.describeIn(asMap(asMap(asMap(tree["paths"])[r.Path])[strings.ToLower(r.Method)]), sample)
	}
}

// asMap returns a node of the document that has to be an object. If it is not one, the result is nil, which has no
// members.
func asMap(node any) map[string]any {
	members, _ := node.(map[string]any)
	return members
}

func (t Route) describeIn(op map[string]any, sample sampler) {
	op["description"] = t.description
	if content := asMap(asMap(asMap(op["requestBody"])["content"])["application/json"]); content != nil && t.example != nil {
		content["example"] = t.example
	}
	responses := asMap(op["responses"])
	for code, node := range responses {
		status, err := strconv.Atoi(code)
		if err != nil {
			continue
		}
		response := asMap(node)
		if status >= stdhttp.StatusBadRequest && !t.describeError(response, status) {
			delete(responses, code)
			continue
		}
		if status == stdhttp.StatusRequestEntityTooLarge && asMap(asMap(op["requestBody"])["content"])["application/octet-stream"] == nil {
			response["description"] = fmt.Sprintf("%s The body must have at most %d bytes.", response["description"], t.BodyLimit())
		}
		t.describeHeaders(op, response, status)
		for _, media := range asMap(response["content"]) {
			content := asMap(media)
			if _, given := content["example"]; !given && content["schema"] != nil {
				content["example"] = sample.of(asMap(content["schema"]), "")
			}
		}
	}
}

// describeError lists the codes of an error response. It returns false for a status that the route never returns.
func (t Route) describeError(documented map[string]any, status int) bool {
	codes := t.codesOf(status)
	if len(codes) == 0 {
		return false
	}
	names := make([]string, len(codes))
	for i, code := range codes {
		names[i] = "`" + string(code) + "`"
	}
	if description, _ := documented["description"].(string); description == stdhttp.StatusText(status) {
		documented["description"] = description + ". Codes: " + strings.Join(names, ", ") + "."
	}
	content := asMap(asMap(documented["content"])["application/problem+json"])
	if content == nil {
		return true
	}
	problem := response.ProblemOf(&protocol.Error{Code: codes[0], Detail: "A human-readable explanation of the error."})
	problem.RequestID = headerDocs["X-Request-Id"].example
	text, _ := json.Marshal(problem) // strings and numbers
	var example any
	_ = json.Unmarshal(text, &example)
	content["example"] = example
	return true
}

// codesOf returns the codes that a route returns with a status: those that follow from its policy, and its own.
func (t Route) codesOf(status int) []protocol.Code {
	codes := []protocol.Code{
		protocol.CodeInvalidHeader, protocol.CodeWrongHost, protocol.CodeUnauthenticated, protocol.CodeNotFound, protocol.CodeTooLarge, protocol.CodeUnsupportedMedia,
		protocol.CodeInvalid, protocol.CodeInternal, protocol.CodeUnavailable,
	}
	if !Safe(t.Method) && t.Method != stdhttp.MethodDelete {
		codes = append(codes, protocol.CodeInvalidBody)
	}
	if t.Path != "/health" {
		codes = append(codes, protocol.CodeRateLimited)
	}
	if !t.Policy.Public {
		codes = append(codes, protocol.CodeTooManyRequests)
	}
	if !Safe(t.Method) {
		codes = append(codes, protocol.CodeOrigin)
		if !t.Policy.Public {
			codes = append(codes, protocol.CodeCSRF)
		}
	}
	if t.Policy.Sudo {
		codes = append(codes, protocol.CodeReauthRequired)
	}
	if t.takesKey() {
		codes = append(codes, protocol.CodeIdempotencyBusy, protocol.CodeIdempotencyMismatch)
	}
	codes = append(codes, t.codes...)
	codes = slices.DeleteFunc(codes, func(code protocol.Code) bool { return response.Statuses[code] != status })
	slices.Sort(codes)
	return slices.Compact(codes)
}

// takesKey reports whether a route accepts an Idempotency-Key. POST /chat handles its key itself.
func (t Route) takesKey() bool { return t.Policy.Idempotent || t.Path == "/chat" }

// describeHeaders lists the headers of one response.
func (t Route) describeHeaders(op, response map[string]any, status int) {
	names := []string{"X-Request-Id"}
	if t.showsLimit(status, op) {
		names = append(names, "RateLimit", "RateLimit-Policy")
	}
	streams := asMap(response["content"])["text/event-stream"] != nil
	add := func(name string, has bool) {
		if has {
			names = append(names, name)
		}
	}
	add("Retry-After", status == stdhttp.StatusTooManyRequests || status == stdhttp.StatusServiceUnavailable)
	add("Idempotent-Replayed", status < stdhttp.StatusMultipleChoices && t.takesKey())
	add("X-Accel-Buffering", streams)
	add("X-Turn-Id", streams && t.tag == "chat")
	add("Location", streams && t.tag == "chat")
	add("Content-Range", status == stdhttp.StatusRequestedRangeNotSatisfiable)
	add("Set-Cookie", slices.Contains(t.cookies, status) || status == stdhttp.StatusUnauthorized && !t.Policy.Public)
	headers := asMap(response["headers"])
	if headers == nil {
		headers = map[string]any{}
		response["headers"] = headers
	}
	for name, documented := range headers { // those of the type of the response, which may have several statuses
		if other := otherStatus[name]; other != nil && other(status) && !slices.Contains(names, name) {
			delete(headers, name)
		} else if _, described := headerDocs[name]; described && asMap(documented)["description"] == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		headers[name] = map[string]any{"$ref": "#/components/headers/" + name}
	}
}

// otherStatus has the headers of some types of responses that only some of their statuses have.
var otherStatus = map[string]func(status int) bool{
	"Location":    func(status int) bool { return status == stdhttp.StatusOK },
	"Retry-After": func(int) bool { return true },
}

// showsLimit reports whether a response with this status can have the headers of a limit: whether the request can have drawn
// from it before. The steps before the limit are those of package router.
func (t Route) showsLimit(status int, op map[string]any) bool {
	switch inHandler := t.Policy.Bucket == NoBucket; {
	case inHandler && !t.Policy.Conflicts: // only routes of turns draw in their handlers
		return false
	case inHandler && t.Method == stdhttp.MethodGet: // only for the events of a turn that has ended
		return status < stdhttp.StatusMultipleChoices || status == stdhttp.StatusTooManyRequests
	case t.Policy.Readiness && status == stdhttp.StatusServiceUnavailable: // a report, not an error
		return true
	case status >= stdhttp.StatusInternalServerError, status == stdhttp.StatusMisdirectedRequest, status == stdhttp.StatusMethodNotAllowed:
		return false
	case status == stdhttp.StatusBadRequest:
		return !inHandler && !Safe(t.Method) && t.Method != stdhttp.MethodDelete
	case status == stdhttp.StatusRequestEntityTooLarge, status == stdhttp.StatusUnsupportedMediaType:
		return !inHandler
	case status == stdhttp.StatusUnauthorized:
		return t.Policy.Public
	case status == stdhttp.StatusForbidden:
		return slices.ContainsFunc(t.codes, func(code protocol.Code) bool { return response.Statuses[code] == status })
	case status == stdhttp.StatusUnprocessableEntity:
		return hasValues(op)
	}
	return true
}

// hasValues reports whether the values of an operation are checked: those of a JSON body, of its query or of If-Match. Other
// requests get 422 only for text that is not well-formed, before the limit.
func hasValues(op map[string]any) bool {
	content := asMap(asMap(op["requestBody"])["content"])
	if len(content) == 1 && content["application/json"] != nil {
		return true
	}
	parameters, _ := op["parameters"].([]any)
	return op["operationId"] != "finishOIDC" && slices.ContainsFunc(parameters, func(node any) bool {
		parameter := asMap(node)
		return parameter["in"] == "query" || parameter["name"] == "If-Match"
	})
}

// sampler builds examples from schemas of the document.
type sampler struct{ schemas map[string]any }

// samples are example values of fields, by name, for fields whose schema alone would give a poor example.
var samples = map[string]any{
	"email": "ada@example.org", "display_name": "Ada", "title": "Six times seven", "title_source": "auto", "content": "And seven times eight?",
	"text": "What is 6*7?", "model_id": "demo", "user_agent": "Mozilla/5.0", "language": "en", "key": "2026-03-01", "unit": "token",
	"csrf_token": "3q2-7w.dGhlIHRva2Vu", "environment": "production", "build_sha": "0b9b4fb0d5c1f6c3a2c1e7f2c5d1a9b8e7f6a5d4", "version": 3, "last_sequence": 41, "sequence": 12, "limit": 20,
	"name": "Another way", "model_provider_family": "openai", "scanner": "clamav",
}

func (s sampler) of(schema map[string]any, name string) any {
	if ref, isRef := schema["$ref"].(string); isRef {
		return s.of(asMap(s.schemas[strings.TrimPrefix(ref, SchemaPrefix)]), name)
	}
	if listed, _ := schema["examples"].([]any); len(listed) > 0 {
		return listed[0]
	}
	for _, choice := range []string{"oneOf", "anyOf"} {
		if listed, _ := schema[choice].([]any); len(listed) > 0 {
			return s.of(asMap(listed[0]), name)
		}
	}
	if listed, _ := schema["enum"].([]any); len(listed) > 0 {
		return listed[0]
	}
	kind, _ := schema["type"].(string)
	if kinds, several := schema["type"].([]any); several {
		kind, _ = kinds[0].(string)
	}
	switch kind {
	case "object":
		return s.object(schema)
	case "array":
		return []any{s.of(asMap(schema["items"]), "")}
	case "boolean":
		return false
	case "integer", "number":
		if value, isNumber := samples[name].(int); isNumber {
			return value
		}
		if least, has := schema["minimum"].(float64); has {
			return least
		}
		return 1
	case "string":
		return sampleText(schema, name)
	}
	return map[string]any{}
}

func (s sampler) object(schema map[string]any) any {
	object := map[string]any{}
	for name, property := range asMap(schema["properties"]) {
		object[name] = s.of(asMap(property), name)
	}
	if values := asMap(schema["additionalProperties"]); values != nil {
		object["name"] = s.of(values, "")
	}
	return object
}

func sampleText(schema map[string]any, name string) any {
	if pattern, _ := schema["pattern"].(string); strings.HasPrefix(pattern, "^") {
		prefix, _, _ := strings.Cut(pattern[1:], "_[")
		return prefix + "_01h2xcejqtf2nbrexx3vqjhp41"
	}
	switch schema["format"] {
	case "date-time":
		return "2026-03-01T12:30:15.250Z"
	case "email":
		return samples["email"]
	case "uri":
		return "https://example.org/"
	}
	if value, known := samples[name].(string); known {
		return value
	}
	return fmt.Sprintf("a %s", strings.ReplaceAll(strings.TrimSuffix(name, "_id"), "_", " "))
}
