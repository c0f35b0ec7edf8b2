package exhaustion

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

const (
	// atOnce is the number of requests that an account may have in progress on a node.
	atOnce = 32
	// memoryLimit is the memory that the node may use at most, in MiB: that of a small container.
	memoryLimit = 512
	// softLimit is the soft limit that the program derives from such a container.
	softLimit = "410MiB"
)

// unattacked are the operations that end the session or the account, or change how it signs in, and those that need another
// service, for example a mail server.
var unattacked = regexp.MustCompile(`^(DELETE /account|DELETE /auth/sessions.*|POST /auth/(logout|password|reauthenticate)|PUT /account/email|POST /auth/(password/(forgot|reset)|email/verify)|.* /account/pending-email.*|GET /auth/oidc/.*|POST /auth/passkeys/.*/finish|POST /transcriptions)$`)

// byGuests are the operations that open a session, which would replace that of the account.
var byGuests = regexp.MustCompile(`^POST /auth/(login|register)$`)

// unacceptable are the operations that accept no request of this test: they need another state of the account than the
// others, a passkey, an identity, or the confirmation of a first request.
var unacceptable = regexp.MustCompile(`^((GET|PATCH|DELETE) /account/(passkeys|identities)/.*|POST /auth/passkeys/.*|GET /files/\{file_id\}/thumbnail|` +
	`PUT /conversations/\{conversation_id\}/(follow-ups/order|feedback|active-branch)|(GET|PATCH) /conversations/.*/(follow-ups|usage)/.*|PUT /files/uploads/\{upload_id\}/content|POST /projects/\{project_id\}/restore|` +
	`DELETE /(account/imports/.*|conversations/\{conversation_id\}(/feedback)?|projects/.*|shares/.*|files/.*))$`)

// changed are the members of bodies that contradict others, or whose largest value another rule of the operation forbids.
var changed = map[string]func(l *largest, body map[string]any){
	"POST /chat": func(l *largest, body map[string]any) {
		for _, name := range []string{"branch", "conversation_id", "expected_head_message_id", "project_id", "tools"} {
			delete(body, name)
		}
		body["input"] = []any{map[string]any{"type": "text", "text": l.repeat(100_000)}}
	},
	"POST /conversations/{conversation_id}/research-tasks": func(_ *largest, body map[string]any) {
		body["sources"] = []string{"files"}
		delete(body, "file_ids")
		delete(body, "connectors")
	},
	"POST /research-tasks/{task_id}/steering": func(l *largest, body map[string]any) {
		clear(body)
		body["type"], body["client_steering_id"], body["input"] = "input", protocol.NewMessageID().String(), l.repeat(16_000)
	},
	"PUT /artifacts/{artifact_id}": func(l *largest, body map[string]any) {
		body["content"] = l.repeat(longest / len(l.filling))
	},
	"POST /chat/steering": func(l *largest, body map[string]any) {
		clear(body)
		body["type"], body["turn_id"], body["client_steering_id"] = "input", l.known["turn_id"], protocol.NewMessageID().String()
		body["input"] = []any{map[string]any{"type": "text", "text": l.repeat(16_000)}}
	},
	"PUT /projects/{project_id}/settings":              func(_ *largest, body map[string]any) { delete(body, "tools") },
	"POST /conversations/{conversation_id}/follow-ups": func(_ *largest, body map[string]any) { delete(body, "tools") },
	"POST /conversations/{conversation_id}/branches": func(l *largest, body map[string]any) {
		body["mode"], body["message_id"] = "fork", l.known["head_message_id"]
	},
	"POST /conversations": func(_ *largest, body map[string]any) { body["temporary"] = false },
	"POST /auth/register": func(_ *largest, body map[string]any) {
		body["email"] = protocol.NewMessageID().String() + "@example.org"
	},
	"POST /files/uploads": func(_ *largest, body map[string]any) {
		delete(body, "sha256")
		body["media_type"] = "text/plain"
	},
	"POST /conversations/{conversation_id}/shares": func(_ *largest, body map[string]any) {
		delete(body, "file_ids")
		delete(body, "artifact_ids")
	},
	"PATCH /conversations/{conversation_id}/follow-ups/{follow_up_id}": func(_ *largest, body map[string]any) { body["state"] = "held" },
	"PUT /memory-sources/{source}/consent":                             func(_ *largest, body map[string]any) { body["granted"], body["precise"] = true, false },
	"PUT /conversations/{conversation_id}/location-context":            func(_ *largest, body map[string]any) { body["expires_at"] = time.Now().Add(time.Hour) },
	"POST /conversations/{conversation_id}/usage":                      func(_ *largest, body map[string]any) { body["occurred_at"] = time.Now() },
	"PUT /conversations/{conversation_id}/feedback":                    func(_ *largest, body map[string]any) { body["rating"], body["reasons"] = "up", []string{"accurate"} },
}

// leftOut are the members of a query that contradict others, or that name a page. leftOutOf are those of one operation.
var (
	leftOut   = []string{"cursor", "wait", "after", "around", "branch_id", "version", "page", "metadata"}
	leftOutOf = map[string]string{"GET /tools": "project_id", "GET /artifacts/{artifact_id}/diff": "to"}
)

func TestTheLargestValidRequestsOfAnAccount(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d", *seed)
	site := sitetest.NewSite(t, "GOMEMLIMIT="+softLimit, "TURNSTONE_MAX_LIVE_TURNS=5", "TURNSTONE_LIMIT_SHARES=100000/1m burst 10000", "TURNSTONE_LIMIT_SHARED=100000/1m burst 10000", "TURNSTONE_LOG_LEVEL=info")
	node := site.Start()
	a := &attack{t: t, user: sitetest.NewUser(t, site.Base), random: rand.New(rand.NewPCG(*seed, 1)), accepted: map[string]bool{}}
	a.guest = sitetest.NewGuest(t, site.Base)
	var operations []*operation
	a.doc, operations = readDocument(t)
	operations = slices.DeleteFunc(operations, func(op *operation) bool { return unattacked.MatchString(op.name()) })
	a.prepare()
	a.knowsAll(operations)
	a.random.Shuffle(len(operations), func(i, j int) { operations[i], operations[j] = operations[j], operations[i] })
	attacked := map[*operation]bool{}
	for _, op := range operations[:min(cmp.Or(*sample, len(operations)), len(operations))] {
		attacked[op] = true
	}
	slices.SortStableFunc(operations, func(a, b *operation) int { return cmp.Compare(a.order(), b.order()) })
	other := watch(t, site.Base)
	quiet := other.median(t, 20)
	began := time.Now()
	for _, op := range operations {
		if chosen := a.largest(op); attacked[op] {
			a.attack(op, chosen)
		}
		if peak := node.PeakMemory(t); peak > memoryLimit<<20 {
			t.Errorf("%s: the node used %d MiB at its peak, want at most %d", op.name(), peak>>20, memoryLimit)
			node.ForgetPeakMemory(t)
		}
		if accepted, tried := a.accepted[op.name()]; tried && !accepted && !unacceptable.MatchString(op.name()) {
			t.Errorf("%s accepted no request", op.name())
		}
	}
	t.Logf("%d operations, %d of them many times at once, in %s; another account's median: %s before, %s meanwhile", len(a.accepted), len(attacked), time.Since(began).Round(time.Second), quiet, other.stop())
	node.Kill()
	node = site.Start()
	if peak := node.PeakMemory(t); peak > memoryLimit<<20 {
		t.Errorf("after a restart the node uses %d MiB", peak>>20)
	}
}

func (op *operation) name() string { return op.Method + " " + op.Path }

// order puts the operations that end something last, those of parts before those of the whole. Steering comes first: others
// cancel the research task, or promote a follow-up that interrupts the live turn.
func (op *operation) order() int {
	switch {
	case strings.HasSuffix(op.Path, "/steering"):
		return -1
	case op.Method == "DELETE":
		return 100 - strings.Count(op.Path, "/")
	case strings.HasSuffix(op.Path, "/archive") || strings.HasSuffix(op.Path, "/restore"):
		return 1 // others change what is not archived
	}
	return 0
}

// attack is one account that sends the largest valid requests.
type attack struct {
	t      *testing.T
	user   *sitetest.User
	guest  *sitetest.User // without the session
	random *rand.Rand
	doc    *document
	// known are the identifiers of what the account has, by the name of their member; knownOf are those that one operation
	// needs in its path. Both are written while nothing is sent.
	known   map[string]string
	knownOf map[string]map[string]string

	mu       sync.Mutex
	accepted map[string]bool // by operation; guarded by mu
}

// knowsAll reports paths that name an object which prepare did not create: their operations would accept no request.
func (a *attack) knowsAll(operations []*operation) {
	a.t.Helper()
	for _, op := range operations {
		for _, p := range op.Parameters {
			if p.In == "path" && identifier.MatchString(p.Schema.Pattern) && a.known[p.Name] == "" && a.knownOf[op.name()][p.Name] == "" && !unacceptable.MatchString(op.name()) {
				a.t.Errorf("%s: no %s is known", op.name(), p.Name)
			}
		}
	}
}

// attack sends a request atOnce times at the same time.
func (a *attack) attack(op *operation, chosen *request) {
	a.t.Helper()
	var sending sync.WaitGroup
	for range atOnce {
		sending.Go(func() { a.send(op, chosen) })
	}
	sending.Wait()
}

// largest returns the largest request that was accepted, or the smallest one that was tried.
func (a *attack) largest(op *operation) (tried *request) {
	order := slices.Clone(fillings)
	a.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, filling := range append(order, "a") {
		l := &largest{doc: a.doc, random: a.random, filling: filling, known: a.known}
		for l.scale = 1; l.scale <= 1<<14; l.scale *= 2 {
			tried = a.request(op, l)
			status, current := a.send(op, tried)
			if status == http.StatusConflict && current != nil {
				tried = tried.withVersion(*current)
				status, _ = a.send(op, tried)
			}
			if status < 300 {
				return tried
			}
			if status != http.StatusRequestEntityTooLarge && status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
				break
			}
		}
	}
	return tried
}

// request is a request without the headers that every request has.
type request struct {
	path    string
	body    any
	headers []string
}

// withVersion returns the request for a version of the resource that it changes.
func (r *request) withVersion(version int64) *request {
	if body, ok := r.body.(map[string]any); ok {
		for _, name := range []string{"base_version", "version", "queue_version"} {
			if _, ok := body[name]; ok {
				body = maps.Clone(body)
				body[name] = version
				return &request{path: r.path, body: body}
			}
		}
	}
	return &request{r.path, r.body, []string{"If-Match", fmt.Sprintf(`"v%d"`, version)}}
}

func (a *attack) request(op *operation, l *largest) *request {
	path, query := op.Path, url.Values{}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			value := a.knownOf[op.name()][p.Name]
			if value == "" {
				value = fmt.Sprint(l.value(p.Name, p.Schema))
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && !slices.Contains(leftOut, p.Name) && leftOutOf[op.name()] != p.Name:
			query.Set(p.Name, fmt.Sprint(l.value(p.Name, p.Schema)))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if op.RequestBody == nil {
		return &request{path: path}
	}
	described, ok := op.RequestBody.Content["application/json"]
	if !ok {
		return &request{path: path, body: strings.Repeat("x", 1<<20)}
	}
	body := l.value("", described.Schema)
	if change := changed[op.name()]; change != nil {
		change(l, body.(map[string]any))
	}
	return &request{path: path, body: body}
}

// send sends a request once and reads the whole response. current is the present version of the resource, if the response
// is a conflict that names it.
func (a *attack) send(op *operation, r *request) (status int, current *int64) {
	ctx, cancel := context.WithTimeout(a.t.Context(), sitetest.HangGuard)
	defer cancel()
	user := a.user
	if byGuests.MatchString(op.name()) {
		user = a.guest
	}
	resp, err := user.Open(ctx, op.Method, r.path, r.body, r.headers...)
	if err != nil {
		a.t.Errorf("%s: %v", op.name(), err)
		return 0, nil
	}
	defer resp.Body.Close()
	a.mu.Lock()
	a.accepted[op.name()] = a.accepted[op.name()] || resp.StatusCode < 300
	a.mu.Unlock()
	if op.Method == "GET" && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.StatusCode, nil // it lasts as long as its reader
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if _, rest := io.Copy(io.Discard, resp.Body); err != nil || rest != nil {
		a.t.Errorf("%s: reading the response: %v %v", op.name(), err, rest)
	}
	switch {
	case resp.StatusCode >= 500:
		a.t.Errorf("%s: %d %s", op.name(), resp.StatusCode, text[:min(len(text), 300)])
	case resp.StatusCode >= 400 && len(text) > 8<<10 && resp.StatusCode != http.StatusConflict:
		a.t.Errorf("%s: the refusal has %d bytes", op.name(), len(text))
	}
	var seen struct {
		FollowUpID string `json:"follow_up_id"`
		Current    struct {
			Version      *int64
			QueueVersion *int64 `json:"queue_version"`
		}
	}
	_ = json.Unmarshal(text, &seen) // other responses have no such members
	if seen.FollowUpID != "" && resp.StatusCode == http.StatusCreated {
		a.mu.Lock()
		a.known["follow_up_id"] = seen.FollowUpID
		a.mu.Unlock()
	}
	return resp.StatusCode, cmp.Or(seen.Current.Version, seen.Current.QueueVersion)
}
