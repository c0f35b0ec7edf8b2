package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	stdhttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/protocol"
)

// Requests of the isolation walk are made up from the OpenAPI document: every route that the router has is walked, with
// every parameter and every field of its body, without being listed here. A new route is walked from its first day.

// things that a side was told of one conversation, by the prefix of the identifier.
type family struct {
	version int64
	ids     map[string][]string
}

// maxFamily bounds what is remembered of a conversation, maxFamilies of a side: the newest.
const (
	maxFamily   = 6
	maxFamilies = 24
	maxLoose    = 8
)

// estate is what a side was told: where its own walkers and those of the others take identifiers from.
type estate struct {
	mu       sync.Mutex
	families []*family           // guarded by mu
	loose    map[string][]string // guarded by mu: identifiers of no conversation, by prefix
	cursors  map[string][]string // guarded by mu: by the pattern of the route that gave them
	confirms []string            // guarded by mu: tokens of confirmations
	keys     []string            // guarded by mu: idempotency keys
	begun    string              // guarded by mu: the turn whose stream has begun last
	begunAt  time.Time           // guarded by mu
}

func newEstate() *estate {
	return &estate{loose: map[string][]string{}, cursors: map[string][]string{}}
}

// keep remembers one as the last that was seen.
func keep(list []string, one string, most int) []string {
	if one == "" {
		return list
	}
	list = append(slices.DeleteFunc(list, func(other string) bool { return other == one }), one)
	if len(list) > most {
		list = list[1:]
	}
	return list
}

// learn remembers what an answer told.
func (e *estate) learn(pattern string, path things, body []byte) {
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
	var told struct {
		NextCursor *string `json:"next_cursor"`
		Version    int64   `json:"version"`
		Current    struct {
			Version      int64 `json:"version"`
			Confirmation struct {
				Token string `json:"token"`
			} `json:"confirmation"`
		} `json:"current"`
	}
	if bytes.HasPrefix(body, []byte("{")) {
		_ = json.Unmarshal(body, &told) // what is of another shape tells nothing of these
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if told.NextCursor != nil {
		e.cursors[pattern] = keep(e.cursors[pattern], *told.NextCursor, maxFamily)
	}
	e.confirms = keep(e.confirms, told.Current.Confirmation.Token, maxFamily)
	of := (*family)(nil)
	if conversation != "" && !several {
		of = e.family(conversation)
		of.version = max(of.version, told.Version, told.Current.Version)
	}
	for _, id := range ids {
		prefix, _, _ := strings.Cut(id, "_")
		switch {
		case prefix == "conv" && several:
			e.family(id)
		case of != nil && prefix != "conv":
			of.ids[prefix] = keep(of.ids[prefix], id, maxFamily)
		case of == nil:
			e.loose[prefix] = keep(e.loose[prefix], id, maxLoose)
		}
	}
}

// family finds or makes the family of a conversation. Called under the lock.
func (e *estate) family(conversation string) *family {
	for _, f := range e.families {
		if f.ids["conv"][0] == conversation {
			return f
		}
	}
	made := &family{version: 1, ids: map[string][]string{"conv": {conversation}}}
	if e.families = append(e.families, made); len(e.families) > maxFamilies {
		e.families = e.families[1:]
	}
	return made
}

func (e *estate) forget(conversation string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.families = slices.DeleteFunc(e.families, func(f *family) bool { return f.ids["conv"][0] == conversation })
}

func pick[T any](rng *rand.Rand, list []T) (one T) {
	if len(list) > 0 {
		one = list[rng.IntN(len(list))]
	}
	return one
}

// some picks an identifier of a kind: of the family if it has one, else of any.
func (e *estate) some(rng *rand.Rand, prefix string, of *family) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if of != nil && len(of.ids[prefix]) > 0 {
		return pick(rng, of.ids[prefix])
	}
	if other := pick(rng, e.families); other != nil && len(other.ids[prefix]) > 0 {
		return pick(rng, other.ids[prefix])
	}
	return pick(rng, e.loose[prefix])
}

// begin remembers a turn while it lives, so that others steer it.
func (e *estate) begin(turn string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn != "" {
		e.begun, e.begunAt = turn, time.Now()
	}
}

// live is a turn that has begun a moment ago.
func (e *estate) live() string {
	const moment = 400 * time.Millisecond
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.begunAt) > moment {
		return ""
	}
	return e.begun
}

func (e *estate) anyFamily(rng *rand.Rand) *family {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pick(rng, e.families)
}

func (e *estate) versionOf(of *family) int64 {
	if of == nil {
		return 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return of.version
}

// drawn lists every route as often as it is worth: reads most, what makes conversations and turns less, what ends the
// sessions that others walk with seldom.
func (iso *isolation) drawn() []route {
	var list []route
	for _, r := range iso.Server.routes {
		weight := 60
		op := operationAt(iso.api.OpenAPI(), r.method, r.path)
		switch {
		case strings.HasPrefix(r.path, "/auth/") && !safe(r.method) && !strings.Contains(r.path, "{"):
			weight = 4
		case r.path == "/chat": // one in a hundred begins a turn, which is as much work as twenty reads
			weight = 10
		case len(op.Parameters) == 0:
			weight = 20
		case !safe(r.method):
			weight = 35
		}
		for range weight {
			list = append(list, r)
		}
	}
	return list
}

// naming lists the routes that name a turn: drawn more often while one lives.
func (iso *isolation) naming(name string) []route {
	return slices.DeleteFunc(slices.Clone(iso.Server.routes), func(r route) bool {
		body := iso.bodyOf(operationAt(iso.api.OpenAPI(), r.method, r.path))
		return !slices.Contains(namesIn(r.path), name) && (body == nil || body.Properties[name] == nil)
	})
}

func (iso *isolation) bodyOf(op *huma.Operation) *huma.Schema {
	if op.RequestBody == nil {
		return nil
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema.Ref != "" {
		schema = iso.api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// draft is a request in the making.
type draft struct {
	w       *walker
	route   route
	op      *huma.Operation
	family  *family // of the asker's, most of what the request names belongs to it
	foreign bool    // the request names another's things wherever it can
	path    things
	named   map[string]bool // identifiers of others that the path (true) or a required field of the body holds
	cursor  bool            // the cursor is another's
	sparse  bool
	common  int // from 1: the number of an idempotency key that all sides use alike, with the same body
	leave   context.CancelFunc
}

// chance is true once in n.
func (d *draft) chance(n int) bool { return d.w.rng.IntN(n) == 0 }

// idOf makes up an identifier: mostly one that belongs to the rest, sometimes one of another conversation, of another
// account, one that names nothing, or one that is none.
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
			d.named[id] = len(d.path) < len(namesIn(d.route.path))
		}
		if prefix == "file" { // there are no files yet: drafts keep whatever identifier they are told
			d.w.spy.chose(d.w.side, id)
		}
		if id != "" {
			return id
		}
	case dice == 2:
		return prefix + "_" + strings.TrimPrefix(protocol.NewAccountID().String(), "acct_")
	case dice == 3 && d.chance(3):
		return d.w.canary()
	case dice == 4:
		if id := d.w.estate().some(rng, prefix, nil); id != "" {
			return id
		}
	}
	if id := d.w.estate().live(); prefix == "turn" && id != "" && !d.chance(4) {
		return id
	}
	if id := d.w.estate().some(rng, prefix, d.family); id != "" {
		return id
	}
	return prefix + "_" + strings.TrimPrefix(protocol.NewAccountID().String(), "acct_")
}

// value makes up what a schema allows, and now and then what it does not.
func (d *draft) value(name string, schema *huma.Schema, must bool) any {
	if schema.Ref != "" {
		schema = d.w.api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	rng := d.w.rng
	if schema.Nullable && d.chance(8) {
		return nil
	}
	if len(schema.OneOf) > 0 {
		return d.value(name, pick(rng, schema.OneOf), must)
	}
	if len(schema.Enum) > 0 && !d.chance(40) {
		if slices.Contains(schema.Enum, any("text")) && !d.chance(20) { // else most inputs would be files that are not there
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
		return float64(1+rng.IntN(1000)) / 4
	case huma.TypeArray:
		list := []any{}
		for range 1 + rng.IntN(2) {
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
	if name == "version" {
		return d.version()
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
	return d.w.estate().versionOf(d.family)
}

func (d *draft) object(schema *huma.Schema, must bool) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) { // in one order, for the seed's sake
		required := slices.Contains(schema.Required, name)
		if d.common > 0 && strings.Contains(schema.Properties[name].Pattern, "_") {
			continue // no two sides have an identifier in common
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

// wanted says whether a field that may be left out is there. In a sparse request names mostly are not: most of what can
// be named together does not go together.
func (d *draft) wanted(schema *huma.Schema) bool {
	if !d.sparse {
		return !d.chance(3)
	}
	const most = 8
	return d.chance(most) != (schema.Pattern == "" && schema.Ref == "")
}

// text makes up a string. What has no rule of its own is a canary, so a new field carries one from its first day.
func (d *draft) text(name string, schema *huma.Schema, must bool) string {
	if prefix, _, isID := strings.Cut(strings.TrimPrefix(schema.Pattern, "^"), "_"); isID {
		return d.idOf(prefix, must)
	}
	rng := d.w.rng
	switch {
	case d.common > 0:
		return "the same words"
	case strings.Contains(name, "password"):
		return d.w.side.password()
	case name == "email" && d.chance(3):
		return d.w.otherSide().email()
	case name == "email" && d.route.id == "register":
		return d.w.canary() + "@example.com"
	case name == "email":
		return d.w.side.email()
	case name == "language" && !d.chance(4):
		return pick(rng, []string{"en", "de", "pt-BR", "ar"})
	case name == "cursor":
		return d.cursorText()
	case name == "from" || name == "to" || schema.Format == "date-time":
		return d.w.now().Add(time.Duration(rng.IntN(96)-90) * time.Hour).UTC().Format(time.RFC3339)
	case name == "after" || name == "Last-Event-ID":
		return strconv.Itoa(rng.IntN(30))
	case name == "text" || name == "input":
		return d.say()
	}
	return d.w.canary()
}

// say is what a user says to the model: mostly short, sometimes long enough to be steered, with a tool, with a fault.
func (d *draft) say() string {
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

func (d *draft) cursorText() string {
	own, theirs := d.w.estate(), d.w.other()
	from := own
	if d.chance(3) {
		from, d.cursor = theirs, true
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if cursor := pick(d.w.rng, from.cursors[d.route.name()]); cursor != "" {
		return cursor
	}
	d.cursor = false
	return d.w.canary()
}

// guess is a text of another's: only for places whose content is not kept.
func (d *draft) guess() string {
	if id := d.w.other().some(d.w.rng, pick(d.w.rng, []string{"conv", "turn", "msg", "acct", "sess"}), nil); id != "" {
		return id
	}
	return d.w.otherSide().canary(1)
}

// header makes up a header that the document names.
func (d *draft) header(name string) string {
	rng, own := d.w.rng, d.w.estate()
	switch name {
	case csrfHeader:
		return "" // the client sends its own
	case keyHeader:
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
	}
	return d.w.canary()
}

// commonKeys is how many idempotency keys all sides use alike: a key of one must mean nothing to another.
const commonKeys = 100

func (d *draft) key() string {
	own := d.w.estate()
	switch d.w.rng.IntN(4) {
	case 0:
		return ""
	case 1:
		d.common = 1 + d.w.rng.IntN(commonKeys)
		return "common-" + strconv.Itoa(d.common)
	case 2:
		other := d.w.other()
		other.mu.Lock()
		defer other.mu.Unlock()
		return pick(d.w.rng, other.keys)
	}
	key := d.w.canary()
	own.mu.Lock()
	defer own.mu.Unlock()
	own.keys = keep(own.keys, key, maxLoose)
	return key
}

func (w *walker) draft() *draft {
	r := pick(w.rng, w.isolation.routes)
	if w.rng.IntN(4) == 0 && (w.estate().live() != "" || w.other().live() != "") {
		r = pick(w.rng, w.ofTurns)
	}
	d := &draft{
		w: w, route: r, op: operationAt(w.api.OpenAPI(), r.method, r.path), family: w.estate().anyFamily(w.rng),
		foreign: w.rng.IntN(4) == 0, sparse: w.rng.IntN(3) > 0, path: things{}, named: map[string]bool{}, leave: func() {},
	}
	if w.side == nobody {
		d.foreign = true
	}
	return d
}

// readBody is a body that can be looked at after it was read.
type readBody struct {
	*bytes.Reader
	all []byte
}

func (*readBody) Close() error { return nil }

// request makes the whole request up.
func (d *draft) request(ctx context.Context) *stdhttp.Request {
	w, query := d.w, url.Values{}
	request := (&stdhttp.Request{
		Method: d.route.method, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "turnstone.example",
		Header: stdhttp.Header{"User-Agent": {w.canary()}}, RemoteAddr: "192.0.2.1:4711", Body: stdhttp.NoBody,
	}).WithContext(ctx)
	if d.route.streams { // a reader who mostly sees the end, and sometimes leaves before
		ctx, d.leave = context.WithTimeout(ctx, time.Duration(5+w.rng.IntN(300))*time.Millisecond)
		request = request.WithContext(ctx)
	}
	if d.chance(50) {
		request.Method = pick(w.rng, []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
	}
	for _, param := range d.op.Parameters {
		switch {
		case param.In == "path":
			d.path[param.Name] = d.text(param.Name, param.Schema, d.op.Metadata["unowned"] != true)
		case d.chance(2) && param.Name != csrfHeader:
		case param.In == "query":
			query.Set(param.Name, fmt.Sprint(d.value(param.Name, param.Schema, false)))
		case param.In == "header":
			if value := d.header(param.Name); value != "" {
				request.Header.Set(param.Name, value)
			}
		}
	}
	if d.chance(16) {
		query.Set(pick(w.rng, []string{"account_id", "q", "owner", "user"}), d.guess())
	}
	if d.chance(16) {
		request.Header.Set(pick(w.rng, []string{"X-User-Id", "X-Forwarded-User", "X-Account-Id", "X-Forwarded-For"}), d.guess())
	}
	request.URL = &url.URL{Scheme: "https", Host: request.Host, Path: fill(d.route.path, d.path), RawQuery: query.Encode()}
	d.fillBody(request)
	d.identify(request)
	if request.Method != d.route.method { // another route, for which other things count
		d.named, d.cursor = nil, false
	}
	if d.op.Metadata["unowned"] == true {
		for _, id := range d.path {
			w.spy.chose(w.side, id)
		}
	}
	return request
}

func (d *draft) fillBody(request *stdhttp.Request) {
	schema := d.w.bodyOf(d.op)
	if schema == nil {
		return
	}
	content, err := json.Marshal(d.content(schema))
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

// content makes up a body; to a common key always the same one.
func (d *draft) content(schema *huma.Schema) map[string]any {
	if d.common > 0 {
		own := d.w.rng
		defer func() { d.w.rng = own }()
		d.w.rng = rand.New(rand.NewPCG(uint64(d.common), 0)) //nolint:gosec // the same for all
	}
	return d.object(schema, d.op.Metadata["unowned"] != true)
}

// identify signs a request as its side's, sometimes wrongly.
func (d *draft) identify(request *stdhttp.Request) {
	w := d.w
	token := w.token
	switch {
	case d.route.policy.Public:
		return
	case w.side == nobody && d.chance(2):
		return
	case w.side == nobody:
		token = tokenPrefix + encode([]byte(w.canary()))
	}
	request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: token})
	if !safe(request.Method) && !d.chance(100) {
		request.Header.Set(csrfHeader, w.csrf)
	}
}
