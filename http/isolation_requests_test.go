package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	stdhttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// This file generates the requests of the isolation walk from the OpenAPI document: for every route of the router, with
// every parameter and every field of its body. No route is listed here, so the walk covers a new route at once.

// conversationIDs contains the identifiers that a side received with one conversation, by prefix, and the highest
// version seen.
type conversationIDs struct {
	version int64
	ids     map[string][]string
}

// The limits of receivedValues, which drops the oldest values.
const (
	maxOfKind        = 6  // identifiers of a kind in one conversation; cursors of a route; confirmation tokens
	maxConversations = 24 // conversations
	maxUnattached    = 8  // identifiers of a kind without a conversation; idempotency keys
)

// receivedValues contains the values that a side received. Walkers of all sides take the identifiers of their requests
// from it.
type receivedValues struct {
	// Guarded by mu.
	mu            sync.Mutex
	conversations []*conversationIDs  // the oldest first
	unattached    map[string][]string // identifiers without a conversation, by prefix
	deleted       map[string][]string // identifiers without a conversation that were deleted, by prefix
	cursors       map[string][]string // by the route that returned them
	confirms      []string            // confirmation tokens
	keys          []string            // idempotency keys
	tokens        []string            // tokens of shares
	openUploads   []string            // uploads that wait for their content
	ofProject     identifiers         // the file of a project that was received last, and its project
	shareable     identifiers         // an artifact of a conversation that was received last, its conversation and, if it has one, a file of it
	sharedFile    identifiers         // an artifact of a share that was received last: its number, which its file has too, and the token
	sharesFile    bool                // the share of sharedFile has a file
	started       string              // the turn whose stream started last
	startedAt     time.Time
}

func newReceivedValues() *receivedValues {
	return &receivedValues{unattached: map[string][]string{}, deleted: map[string][]string{}, cursors: map[string][]string{}}
}

// appendRecent appends a value to a list and removes its earlier occurrence, or the oldest value if there are more than
// most. An empty value does not change the list.
func appendRecent(list []string, one string, most int) []string {
	if one == "" {
		return list
	}
	list = append(slices.DeleteFunc(list, func(other string) bool { return other == one }), one)
	if len(list) > most {
		list = list[1:]
	}
	return list
}

// learn stores the identifiers, the cursor, the version and the confirmation token of a response.
func (e *receivedValues) learn(pattern string, path identifiers, body []byte) {
	var ids []string
	conversation := path["conversation_id"]
	several := false
	for run := range runs(body) {
		if !isTypeID(run) {
			continue
		}
		ids = append(ids, run)
		if strings.HasPrefix(run, "conv_") && run != conversation {
			several = several || conversation != ""
			conversation = run
		}
	}
	var decoded struct {
		NextCursor *string  `json:"next_cursor"`
		Version    int64    `json:"version"`
		Token      string   `json:"token"`
		UploadID   string   `json:"upload_id"`
		State      string   `json:"state"`
		FileID     string   `json:"file_id"`
		ProjectIDs []string `json:"project_ids"`
		FileIDs    []string `json:"file_ids"`
		Files      []struct {
			FileID string `json:"file_id"`
		} `json:"files"`
		ArtifactIDs []string `json:"artifact_ids"`
		Artifacts   []struct {
			ArtifactID string `json:"artifact_id"`
		} `json:"artifacts"`
		Current struct {
			Version      int64 `json:"version"`
			Confirmation struct {
				Token string `json:"token"`
			} `json:"confirmation"`
		} `json:"current"`
	}
	if bytes.HasPrefix(body, []byte("{")) {
		_ = json.Unmarshal(body, &decoded) // a body of another shape has none of these fields
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if decoded.NextCursor != nil {
		e.cursors[pattern] = appendRecent(e.cursors[pattern], *decoded.NextCursor, maxOfKind)
	}
	e.tokens = appendRecent(e.tokens, decoded.Token, maxUnattached)
	if e.openUploads = slices.DeleteFunc(e.openUploads, func(id string) bool { return id == decoded.UploadID }); decoded.State == string(protocol.UploadPending) {
		e.openUploads = appendRecent(e.openUploads, decoded.UploadID, maxUnattached)
	}
	if len(decoded.ProjectIDs) > 0 {
		e.ofProject = identifiers{"file_id": decoded.FileID, "project_id": decoded.ProjectIDs[0]}
	}
	if hasFile := len(decoded.Files) > 0; len(decoded.Artifacts) > 0 && path["conversation_id"] != "" && (hasFile || e.shareable["file_id"] == "") {
		e.shareable = identifiers{"artifact_id": decoded.Artifacts[0].ArtifactID, "conversation_id": path["conversation_id"]}
		if hasFile {
			e.shareable["file_id"] = decoded.Files[0].FileID
		}
	}
	if hasFile := len(decoded.FileIDs) > 0; len(decoded.ArtifactIDs) > 0 && decoded.Token != "" && (hasFile || !e.sharesFile) {
		e.sharedFile, e.sharesFile = identifiers{"token": decoded.Token, "n": "1"}, hasFile
	}
	e.confirms = appendRecent(e.confirms, decoded.Current.Confirmation.Token, maxOfKind)
	of := (*conversationIDs)(nil)
	if conversation != "" && !several {
		of = e.idsOf(conversation)
		of.version = max(of.version, decoded.Version, decoded.Current.Version)
	}
	for _, id := range ids {
		prefix, _, _ := strings.Cut(id, "_")
		switch {
		case prefix == "conv" && several:
			e.idsOf(id)
		case prefix == "upl" || prefix == "file": // a conversation names few of the account's files
			e.unattached[prefix] = appendRecent(e.unattached[prefix], id, maxUnattached)
		case of != nil && prefix != "conv":
			of.ids[prefix] = appendRecent(of.ids[prefix], id, maxOfKind)
		case of == nil:
			e.unattached[prefix] = appendRecent(e.unattached[prefix], id, maxUnattached)
		}
	}
}

// idsOf returns the identifiers of a conversation and adds the conversation if necessary. The caller holds mu.
func (e *receivedValues) idsOf(conversation string) *conversationIDs {
	for _, f := range e.conversations {
		if f.ids["conv"][0] == conversation {
			return f
		}
	}
	made := &conversationIDs{version: 1, ids: map[string][]string{"conv": {conversation}}}
	if e.conversations = append(e.conversations, made); len(e.conversations) > maxConversations {
		e.conversations = e.conversations[1:]
	}
	return made
}

// forget removes the conversation in the path of a deletion. Without one, it stores the last identifier in the path as
// deleted, so that it can be restored.
func (e *receivedValues) forget(pattern string, path identifiers) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if conversation, found := path["conversation_id"]; found {
		e.conversations = slices.DeleteFunc(e.conversations, func(f *conversationIDs) bool { return f.ids["conv"][0] == conversation })
		return
	}
	if names := pathNames(pattern); len(names) > 0 {
		id := path[names[len(names)-1]]
		prefix, _, _ := strings.Cut(id, "_")
		e.deleted[prefix] = appendRecent(e.deleted[prefix], id, maxUnattached)
	}
}

// pick returns a random element of a list, or the zero value if the list is empty.
func pick[T any](rng *rand.Rand, list []T) (one T) {
	if len(list) > 0 {
		one = list[rng.IntN(len(list))]
	}
	return one
}

// some returns a random identifier of a kind: of the conversation if it has one, otherwise of another conversation or
// of none. It returns "" if there is no identifier.
func (e *receivedValues) some(rng *rand.Rand, prefix string, of *conversationIDs) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if of != nil && len(of.ids[prefix]) > 0 {
		return pick(rng, of.ids[prefix])
	}
	if other := pick(rng, e.conversations); other != nil && len(other.ids[prefix]) > 0 {
		return pick(rng, other.ids[prefix])
	}
	return pick(rng, e.unattached[prefix])
}

func (e *receivedValues) someDeleted(rng *rand.Rand, prefix string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pick(rng, e.deleted[prefix])
}

func (e *receivedValues) someToken(rng *rand.Rand) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pick(rng, e.tokens)
}

// combined returns the values for a path that a random request rarely combines: a file of a project that was received
// last, a conversation with a file, or a share with a file. nil: there was none.
func (e *receivedValues) combined(pattern string) identifiers {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch names := pathNames(pattern); {
	case slices.Contains(names, "project_id") && slices.Contains(names, "file_id"):
		return maps.Clone(e.ofProject)
	case strings.HasSuffix(pattern, "{conversation_id}/shares"):
		return maps.Clone(e.shareable)
	case slices.Contains(names, "n"):
		return maps.Clone(e.sharedFile)
	}
	return nil
}

func (e *receivedValues) someOpenUpload(rng *rand.Rand) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pick(rng, e.openUploads)
}

// begin stores the turn whose stream has just started, so that other walkers steer it while it is live.
func (e *receivedValues) begin(turn string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn != "" {
		e.started, e.startedAt = turn, time.Now()
	}
}

// live returns the turn that started last, or "" if its start was more than 400 ms ago.
func (e *receivedValues) live() string {
	const recent = 400 * time.Millisecond
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.startedAt) > recent {
		return ""
	}
	return e.started
}

func (e *receivedValues) anyConversation(rng *rand.Rand) *conversationIDs {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pick(rng, e.conversations)
}

func (e *receivedValues) versionOf(of *conversationIDs) int64 {
	if of == nil {
		return 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return of.version
}

// seldom lists the routes that random requests seldom satisfy: each needs several objects of the caller, or one in a
// certain state.
var seldom = []string{
	"POST /conversations/{conversation_id}/attachments", "POST /projects/{project_id}/files", "DELETE /projects/{project_id}/files/{file_id}",
	"DELETE /projects/{project_id}", "POST /projects/{project_id}/restore", "POST /conversations/{conversation_id}/branches",
	"POST /conversations/{conversation_id}/shares", "DELETE /shares/{share_id}", "PUT /conversations/{conversation_id}/feedback",
	"DELETE /conversations/{conversation_id}/feedback", "PUT /conversations/{conversation_id}/read",
	"PATCH /conversations/{conversation_id}/follow-ups/{follow_up_id}", "POST /conversations/{conversation_id}/follow-ups/{follow_up_id}/promote",
}

// weightedRoutes lists each route as many times as its weight: most for reads, less for routes that create
// conversations and turns, least for routes that end sessions that other walkers use, and more for those that seldom
// succeed.
func (iso *isolation) weightedRoutes() []route.Route {
	var list []route.Route
	for _, r := range iso.Server.Routes() {
		weight := 60
		op := route.OperationAt(iso.OpenAPI(), r.Method, r.Path)
		switch {
		case strings.HasPrefix(r.Path, "/auth/") && !route.Safe(r.Method) && !strings.Contains(r.Path, "{"):
			weight = 4
		case r.Path == "/chat": // one in a hundred starts a turn, which costs as much as twenty reads
			weight = 10
		case strings.HasPrefix(r.Path, "/files/uploads") && r.Method != "DELETE": // all files come from them
		case slices.Contains(seldom, nameOf(r)):
			weight = 150
		case len(op.Parameters) == 0:
			weight = 20
		case !route.Safe(r.Method):
			weight = 35
		}
		for range weight {
			list = append(list, r)
		}
	}
	return list
}

// routesNaming returns the routes with this name in their path or body. The walk chooses those that name a turn more
// often while a turn is live.
func (iso *isolation) routesNaming(name string) []route.Route {
	return slices.DeleteFunc(slices.Clone(iso.Server.Routes()), func(r route.Route) bool {
		body := iso.bodyOf(route.OperationAt(iso.OpenAPI(), r.Method, r.Path))
		return !slices.Contains(pathNames(r.Path), name) && (body == nil || body.Properties[name] == nil)
	})
}

// isRaw reports whether the body of an operation is a file: an import, or the content of an upload.
func isRaw(op *huma.Operation) bool { return op.Metadata["raw"] == true }

// sendsEvents reports whether the response is a stream of events, which may last until its reader leaves.
func sendsEvents(op *huma.Operation) bool {
	for _, response := range op.Responses {
		if response.Content["text/event-stream"] != nil {
			return true
		}
	}
	return false
}

func (iso *isolation) bodyOf(op *huma.Operation) *huma.Schema {
	if op.RequestBody == nil || isRaw(op) {
		return nil
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema.Ref != "" {
		schema = iso.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// draft is a request under construction.
type draft struct {
	w          *walker
	route      route.Route
	op         *huma.Operation
	conv       *conversationIDs // of the requester; most identifiers in the request belong to it
	foreign    bool             // most identifiers in the request belong to another side
	path       identifiers
	foreignIDs map[string]bool // identifiers of others, in the path (true) or in a required field of the body (false)
	cursor     bool            // the cursor belongs to another side
	sparse     bool            // most optional fields for identifiers are left out
	sharedKey  int             // from 1: the number of an idempotency key that all sides use with the same body; 0: none
	leave      context.CancelFunc
}

// chance returns true with the probability 1/n.
func (d *draft) chance(n int) bool { return d.w.rng.IntN(n) == 0 }

// idOf returns an identifier: mostly one of the draft's conversation, sometimes one of another conversation or of
// another account, one that names nothing, or a malformed one. must means that the service has to refuse a foreign
// identifier.
func (d *draft) idOf(prefix string, must bool) string {
	rng := d.w.rng
	dice := rng.IntN(20)
	if d.foreign {
		dice -= 10
	}
	switch {
	case dice < 2:
		id := d.w.other().some(rng, prefix, nil)
		if live := d.w.other().live(); prefix == "turn" && live != "" {
			id = live
		}
		if id != "" && must {
			d.foreignIDs[id] = len(d.path) < len(pathNames(d.route.Path))
		}
		if id != "" {
			return id
		}
	case dice == 2:
		return prefix + "_" + strings.TrimPrefix(protocol.NewAccountID().String(), "acct_")
	case dice == 3 && d.chance(3):
		return d.w.canary()
	case dice == 4:
		if id := d.w.received().some(rng, prefix, nil); id != "" {
			return id
		}
	}
	if id := d.w.received().someDeleted(rng, prefix); id != "" && strings.HasSuffix(d.route.Path, "/restore") {
		return id
	}
	if id := d.w.received().live(); prefix == "turn" && id != "" && !d.chance(4) {
		return id
	}
	if id := d.w.received().someOpenUpload(rng); prefix == "upl" && id != "" && isRaw(d.op) {
		return id
	}
	if id := d.w.received().some(rng, prefix, d.conv); id != "" {
		return id
	}
	return prefix + "_" + strings.TrimPrefix(protocol.NewAccountID().String(), "acct_")
}

// value returns a random value that a schema allows, and sometimes one that it does not allow.
func (d *draft) value(name string, schema *huma.Schema, must bool) any {
	if schema.Ref != "" {
		schema = d.w.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	rng := d.w.rng
	if schema.Nullable && d.chance(8) {
		return nil
	}
	if len(schema.OneOf) > 0 {
		return d.value(name, pick(rng, schema.OneOf), must)
	}
	if len(schema.Enum) > 0 && !d.chance(40) {
		// Otherwise most inputs would be files that do not exist.
		if slices.Contains(schema.Enum, any("text")) && !d.chance(20) {
			return "text"
		}
		return pick(rng, schema.Enum)
	}
	switch schema.Type {
	case huma.TypeBoolean:
		return rng.IntN(2) == 0
	case huma.TypeInteger:
		return d.number(name, schema)
	case huma.TypeNumber:
		if schema.Maximum != nil && !d.chance(40) {
			return math.Floor(rng.Float64() * *schema.Maximum)
		}
		return float64(1+rng.IntN(1000)) / 4
	case huma.TypeArray:
		list := []any{}
		for range rng.IntN(3) {
			list = append(list, d.value(name, schema.Items, must))
		}
		return list
	case huma.TypeObject:
		return d.object(schema, must)
	}
	return d.text(name, schema, must)
}

func (d *draft) number(name string, schema *huma.Schema) int64 {
	rng := d.w.rng
	switch {
	case name == "version":
		return d.version()
	case name == "size" && !d.chance(20):
		return contentSize
	}
	low, high := int64(0), int64(5)
	if schema.Minimum != nil {
		low = int64(*schema.Minimum)
	}
	if schema.Maximum != nil && d.chance(10) {
		high = int64(*schema.Maximum)
	}
	if d.chance(40) {
		return low - 1
	}
	return low + rng.Int64N(max(1, high-low))
}

func (d *draft) version() int64 {
	if d.chance(4) {
		return d.w.rng.Int64N(4)
	}
	return d.w.received().versionOf(d.conv)
}

func (d *draft) object(schema *huma.Schema, must bool) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) { // in a fixed order, so that a seed repeats a run
		required := slices.Contains(schema.Required, name)
		if d.sharedKey > 0 && strings.Contains(schema.Properties[name].Pattern, "_") {
			continue // the sides share no identifier
		}
		if required && !d.chance(60) || !required && d.wanted(schema.Properties[name]) {
			made[name] = d.value(name, schema.Properties[name], must && required)
		}
	}
	if values, open := schema.AdditionalProperties.(*huma.Schema); open {
		for range 1 + d.w.rng.IntN(2) {
			made[d.text("", &huma.Schema{}, false)] = d.value("", values, false)
		}
	}
	return made
}

// wanted reports whether an optional field is present. A sparse request leaves out most identifiers, because most
// combinations of them are invalid.
func (d *draft) wanted(schema *huma.Schema) bool {
	if !d.sparse {
		return !d.chance(3)
	}
	const most = 8
	return d.chance(most) != (schema.Pattern == "" && schema.Ref == "")
}

// text returns a random string. A field without a rule of its own gets a canary, so a new field gets one at once.
func (d *draft) text(name string, schema *huma.Schema, must bool) string {
	if prefix, _, isID := strings.Cut(strings.TrimPrefix(schema.Pattern, "^"), "_"); isID {
		id := d.idOf(prefix, must)
		if prefix == "file" && d.op.OperationID == "putDraft" { // a draft stores any identifier
			d.w.checker.recordStored(d.w.side, id)
		}
		return id
	}
	rng := d.w.rng
	switch {
	case name == "media_type":
		return pick(rng, []string{"text/plain", "text/plain", filetype.OctetStream, "application/pdf"})
	case d.sharedKey > 0:
		return "the same text"
	case name == "sha256": // of another content
		return fmt.Sprintf("%x", sha256.Sum256([]byte(d.w.canary())))
	case name == "wait":
		return "30ms"
	case strings.Contains(name, "password"):
		return d.w.side.password()
	case name == "email" && d.chance(3):
		return d.w.otherSide().email()
	case name == "email" && d.op.OperationID == "register":
		return d.w.canary() + "@example.com"
	case name == "email":
		return d.w.side.email()
	case name == "language" && !d.chance(4):
		return pick(rng, []string{"en", "de", "pt-BR", "ar"})
	case name == "cursor":
		return d.cursorText()
	case name == "token": // only of the own side: a token lets everybody read
		if token := d.w.received().someToken(rng); token != "" {
			return token
		}
	case name == "expires_at" && !d.chance(20):
		return d.w.now().Add(time.Duration(1+rng.IntN(20)) * time.Hour).UTC().Format(time.RFC3339)
	case name == "from" || name == "to" || strings.HasSuffix(name, "_from") || strings.HasSuffix(name, "_to") || schema.Format == "date-time":
		return d.w.now().Add(time.Duration(rng.IntN(96)-90) * time.Hour).UTC().Format(time.RFC3339)
	case name == "after" || name == "Last-Event-ID":
		return strconv.Itoa(rng.IntN(30))
	case name == "text" || name == "input":
		return d.messageText()
	}
	return d.w.canary()
}

// messageText returns a user's message to the model. Most are short. Others make the answer long enough to be steered,
// call a tool, or make the model fail.
func (d *draft) messageText() string {
	about := d.w.canary()
	switch d.w.rng.IntN(6) {
	case 0, 4:
		return about + " [[script tokens=5 interval=60ms]]"
	case 1:
		return about + " [[script tokens=4 reasoning=2 fail=2 code=go]]"
	case 2, 3:
		return about + " " + wantsTool
	}
	return about
}

// cursorText returns a cursor of the route, from the walker's side or another one, or a canary if there is none.
func (d *draft) cursorText() string {
	own, theirs := d.w.received(), d.w.other()
	from := own
	if d.chance(3) {
		from, d.cursor = theirs, true
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if cursor := pick(d.w.rng, from.cursors[nameOf(d.route)]); cursor != "" {
		return cursor
	}
	d.cursor = false
	return d.w.canary()
}

// guess returns an identifier or a text of another side. It is only for parts of a request that the service does not
// store.
func (d *draft) guess() string {
	if id := d.w.other().some(d.w.rng, pick(d.w.rng, []string{"conv", "turn", "msg", "acct", "sess"}), nil); id != "" {
		return id
	}
	return d.w.otherSide().canary(1)
}

// header returns a value for a header of the document, or "" to leave it out.
func (d *draft) header(name string) string {
	rng, own := d.w.rng, d.w.received()
	switch name {
	case auth.CSRFHeader:
		return "" // set by identify
	case keyField:
		return d.key()
	case "If-Match":
		if d.chance(2) {
			return ""
		}
		return fmt.Sprintf(`"v%d"`, d.version())
	case "X-Confirm":
		from := own
		if d.chance(3) {
			from = d.w.other()
		}
		from.mu.Lock()
		defer from.mu.Unlock()
		return pick(rng, from.confirms)
	case "Last-Event-ID":
		return strconv.Itoa(rng.IntN(30))
	case "Range":
		return pick(rng, []string{"bytes=0-", "bytes=3-40", "bytes=-50", "bytes=90-"})
	}
	return d.w.canary()
}

// commonKeys is the number of idempotency keys that all sides share. A key of one side must have no effect on another.
const commonKeys = 100

func (d *draft) key() string {
	own := d.w.received()
	switch d.w.rng.IntN(4) {
	case 0:
		return ""
	case 1:
		d.sharedKey = 1 + d.w.rng.IntN(commonKeys)
		return "common-" + strconv.Itoa(d.sharedKey)
	case 2:
		other := d.w.other()
		other.mu.Lock()
		defer other.mu.Unlock()
		return pick(d.w.rng, other.keys)
	}
	key := d.w.canary()
	own.mu.Lock()
	defer own.mu.Unlock()
	own.keys = appendRecent(own.keys, key, maxUnattached)
	return key
}

// draft chooses a route and the properties of the next request.
func (w *walker) draft() *draft {
	r := pick(w.rng, w.isolation.routes)
	if w.rng.IntN(4) == 0 && (w.received().live() != "" || w.other().live() != "") {
		r = pick(w.rng, w.ofTurns)
	}
	d := &draft{
		w: w, route: r, op: route.OperationAt(w.OpenAPI(), r.Method, r.Path), conv: w.received().anyConversation(w.rng),
		foreign: w.rng.IntN(4) == 0, sparse: w.rng.IntN(3) > 0, path: identifiers{}, foreignIDs: map[string]bool{}, leave: func() {},
	}
	if w.side == anonymous {
		d.foreign = true
	}
	return d
}

// readBody is a request body whose content is available after it was read.
type readBody struct {
	*bytes.Reader
	all []byte
}

func (*readBody) Close() error { return nil }

// request builds the request.
func (d *draft) request(ctx context.Context) *stdhttp.Request {
	w, query := d.w, url.Values{}
	request := (&stdhttp.Request{
		Method: d.route.Method, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "turnstone.example",
		Header: stdhttp.Header{"User-Agent": {w.canary()}}, RemoteAddr: w.remoteAddress(), Body: stdhttp.NoBody,
	}).WithContext(ctx)
	// Streams of events are left after a while. Most readers of a download see its end: a slow host computer needs seconds for it.
	if d.route.Streams && (sendsEvents(d.op) || d.chance(8)) {
		ctx, d.leave = context.WithTimeout(ctx, time.Duration(5+w.rng.IntN(300))*time.Millisecond)
		request = request.WithContext(ctx)
	}
	if d.chance(50) {
		request.Method = pick(w.rng, []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
	}
	for _, param := range d.op.Parameters {
		switch {
		case param.In == "path" && (param.Schema.Type == huma.TypeInteger || len(param.Schema.Enum) > 0):
			d.path[param.Name] = fmt.Sprint(d.value(param.Name, param.Schema, false))
		case param.In == "path":
			d.path[param.Name] = d.text(param.Name, param.Schema, d.op.Metadata["unowned"] != true)
		case d.chance(2) && param.Name != auth.CSRFHeader:
		case param.In == "query" && param.Style == "deepObject":
			query.Set(param.Name+"["+w.canary()+"]", w.canary())
		case param.In == "query":
			query.Set(param.Name, fmt.Sprint(d.value(param.Name, param.Schema, false)))
		case param.In == "header" && (param.Name != "X-Confirm" || nameOf(d.route) != erasureRoute):
			if value := d.header(param.Name); value != "" {
				request.Header.Set(param.Name, value)
			}
		}
	}
	if of := w.received().combined(d.route.Path); of != nil && len(d.foreignIDs) == 0 && !d.chance(3) {
		d.path = of
	}
	if d.chance(16) {
		query.Set(pick(w.rng, []string{"account_id", "q", "owner", "user"}), d.guess())
	}
	if d.chance(16) {
		request.Header.Set(pick(w.rng, []string{"X-User-Id", "X-Forwarded-User", "X-Account-Id", "X-Forwarded-For"}), d.guess())
	}
	request.URL = &url.URL{Scheme: "https", Host: request.Host, Path: fill(d.route.Path, d.path), RawQuery: query.Encode()}
	d.fillBody(request)
	d.identify(request)
	if request.Method != d.route.Method { // this is another route, with other rules
		d.foreignIDs, d.cursor = nil, false
	}
	if d.op.Metadata["unowned"] == true {
		for _, id := range d.path {
			w.checker.recordChosen(w.side, id)
		}
	}
	return request
}

func (d *draft) fillBody(request *stdhttp.Request) {
	if d.op.RequestBody == nil {
		return
	}
	if d.op.OperationID == "putUploadContent" {
		d.fillContent(request)
		return
	}
	body := route.Object{"format": protocol.ConversationExportFormat, "title": d.w.canary()} // an import
	if schema := d.w.bodyOf(d.op); schema != nil {
		body = d.content(schema)
	}
	if d.op.OperationID == "createShare" && d.path["artifact_id"] != "" && d.sharedKey == 0 {
		share := route.Object{"title": d.w.canary(), "artifact_ids": []string{d.path["artifact_id"]}}
		if file := d.path["file_id"]; file != "" {
			share["file_ids"] = []string{file}
		}
		body = share
	}
	content, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	media := "application/json"
	switch {
	case d.chance(80):
		content = []byte(`{"title": ` + d.w.canary())
	case d.chance(80):
		media = "text/plain"
	}
	request.Header.Set("Content-Type", media)
	request.Body, request.ContentLength = &readBody{bytes.NewReader(content), content}, int64(len(content))
}

// contentSize is the size of most files, in bytes.
const contentSize = 80

// fillContent adds the content of a file: canaries, mostly as long as an upload declares.
func (d *draft) fillContent(request *stdhttp.Request) {
	content := d.w.canary()
	for len(content) < contentSize {
		content += " " + d.w.canary()
	}
	content = content[:contentSize]
	if d.chance(20) {
		content += "."
	}
	request.Header.Set("Content-Type", pick(d.w.rng, []string{"text/plain", filetype.OctetStream, filetype.OctetStream}))
	request.Body, request.ContentLength = &readBody{bytes.NewReader([]byte(content)), []byte(content)}, int64(len(content))
}

// erasureRoute is never confirmed: its success would end the walk of its account.
const erasureRoute = "DELETE /account"

// corrected returns a request that conflicted, with the version, the confirmation and the other values that the response
// says are current.
func (d *draft) corrected(conflicting *stdhttp.Request, response []byte) *stdhttp.Request {
	var decoded struct {
		Current map[string]any `json:"current"`
	}
	_ = json.Unmarshal(response, &decoded) // a response without current changes nothing
	request := conflicting.Clone(conflicting.Context())
	request.Body = stdhttp.NoBody
	request.Header.Del(keyField)
	if confirmation, found := decoded.Current["confirmation"].(map[string]any); found && nameOf(d.route) != erasureRoute {
		request.Header.Set("X-Confirm", fmt.Sprint(confirmation["token"]))
	}
	if version, found := decoded.Current["version"].(float64); found && request.Header.Get("If-Match") != "" {
		request.Header.Set("If-Match", fmt.Sprintf(`"v%.f"`, version))
	}
	sent, found := conflicting.Body.(*readBody)
	if !found {
		return request
	}
	content := sent.all
	var body route.Object
	if json.Unmarshal(sent.all, &body) == nil {
		for name, value := range decoded.Current {
			if schema := d.w.bodyOf(d.op); schema != nil && schema.Properties[name] != nil && strings.HasSuffix(name, "version") || name == "order" {
				body[name] = value
			}
		}
		var err error
		if content, err = json.Marshal(body); err != nil {
			panic(err)
		}
	}
	request.Body, request.ContentLength = &readBody{bytes.NewReader(content), content}, int64(len(content))
	return request
}

// content returns a body, which is always the same for one common key.
func (d *draft) content(schema *huma.Schema) map[string]any {
	if d.sharedKey > 0 {
		own := d.w.rng
		defer func() { d.w.rng = own }()
		d.w.rng = rand.New(rand.NewPCG(uint64(d.sharedKey), 0)) // the same sequence for all sides
	}
	// The states of files are those of any identifiers: a foreign one is reported as missing.
	return d.object(schema, d.op.Metadata["unowned"] != true && d.op.OperationID != "getAttachmentStates")
}

// identify adds the session cookie and the CSRF token of the walker, and sometimes leaves them out or sends a wrong
// cookie.
func (d *draft) identify(request *stdhttp.Request) {
	w := d.w
	token := w.token
	switch {
	case d.route.Policy.Public:
		return
	case w.side == anonymous && d.chance(2):
		return
	case w.side == anonymous:
		token = tokenPrefix + encode([]byte(w.canary()))
	}
	request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: token})
	if !route.Safe(request.Method) && !d.chance(100) {
		request.Header.Set(auth.CSRFHeader, w.csrf)
	}
}
