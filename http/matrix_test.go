package http

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap/zaptest"

	"turnstone/actors"
	"turnstone/cmd/machine"
	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/scripted"
	"turnstone/providers/tool"
)

// The authorization matrix: every route that the router knows, against every state that a caller can be in, on a real
// Postgres, a real Redis and a real node. A route that is added without an example here fails the test.

// example is how a route is asked rightly.
type example struct {
	body    func(m *matrix, of things) object // of the caller's own things; nil: no body
	names   []string                          // fields of the body that name things, as branch.message_id
	query   string
	success int                     // 0: 200
	creates bool                    // a foreign identifier in its path makes an own thing
	free    bool                    // draws from no limit
	as      func(m *matrix) *client // who asks rightly, where the matrix's own caller would end itself
	of      func(m *matrix) things  // what is asked about, where it does not survive
}

// things are identifiers of one account, by the name that paths and bodies give them.
type things map[string]string

// examples has one line for each route.
var examples = map[string]example{
	"GET /health":  {free: true},
	"GET /ready":   {},
	"GET /version": {},

	"POST /auth/register": {success: 201, as: (*matrix).nobody, body: func(*matrix, things) object {
		return object{"email": protocol.NewAccountID().String() + "@example.com", "password": testPassword, "display_name": "New"}
	}},
	"POST /auth/login": {as: (*matrix).nobody, body: func(m *matrix, _ things) object {
		return object{"email": m.owner.account.Email, "password": testPassword}
	}},
	"POST /auth/logout":                  {success: 204, as: (*matrix).passing},
	"GET /auth/session":                  {},
	"GET /auth/sessions":                 {},
	"DELETE /auth/sessions":              {success: 204, as: (*matrix).passing},
	"DELETE /auth/sessions/{session_id}": {success: 204, of: func(m *matrix) things { return m.thingsOf(m.owner.again()) }},
	"POST /auth/password": {as: (*matrix).passing, body: func(*matrix, things) object {
		return object{"current_password": testPassword, "new_password": "another good secret"}
	}},
	"POST /auth/reauthenticate":          {as: (*matrix).passing, body: func(*matrix, things) object { return object{"password": testPassword} }},
	"GET /auth/oidc/{provider}/start":    {success: 404}, // none is configured here; see oidc_test.go
	"GET /auth/oidc/{provider}/callback": {success: 404},

	"GET /account/settings": {},
	"PUT /account/settings": {body: func(*matrix, things) object {
		return object{"language": "en", "theme": "dark", "send_key": "enter", "busy_action": "queue", "default_profile": "auto"}
	}},

	"GET /conversations":                         {},
	"POST /conversations":                        {success: 201, body: func(*matrix, things) object { return object{"title": "New"} }, names: []string{"project_id"}},
	"GET /conversations/{conversation_id}":       {},
	"PUT /conversations/{conversation_id}":       {success: 201, creates: true, of: unmade, body: func(*matrix, things) object { return object{"title": "Mine"} }},
	"PUT /conversations/{conversation_id}/title": {body: func(*matrix, things) object { return object{"title": "Named"} }},
	"PUT /conversations/{conversation_id}/read": {
		body: func(_ *matrix, of things) object { return object{"message_id": of["message_id"]} }, names: []string{"message_id"},
	},
	"PUT /conversations/{conversation_id}/draft":    {body: func(*matrix, things) object { return object{"content": "a draft"} }},
	"GET /conversations/{conversation_id}/messages": {},
	"GET /conversations/{conversation_id}/branches": {},
	"POST /conversations/{conversation_id}/branches": {success: 201, names: []string{"message_id"}, body: func(_ *matrix, of things) object {
		return object{"message_id": of["message_id"], "mode": "fork"}
	}},
	"PUT /conversations/{conversation_id}/active-branch": {names: []string{"branch_id"}, body: func(m *matrix, of things) object {
		return object{"branch_id": of["branch_id"], "version": m.versionOf(of)}
	}},
	"GET /conversations/{conversation_id}/follow-ups": {},
	"PATCH /conversations/{conversation_id}/follow-ups/{follow_up_id}": {body: func(*matrix, things) object {
		return object{"state": "held", "version": 1}
	}},
	"GET /conversations/{conversation_id}/usage": {},
	"POST /conversations/{conversation_id}/usage": {success: 201, body: func(*matrix, things) object {
		return object{"kind": "characters", "quantity": 3, "unit": "character"}
	}},
	"DELETE /conversations/{conversation_id}": {success: 204, of: func(m *matrix) things { return m.conversation(m.owner) }},
	"GET /usage": {},

	"POST /chat": {names: []string{"conversation_id", "branch.message_id"}, body: func(_ *matrix, of things) object {
		return object{"conversation_id": of["conversation_id"], "input": []object{{"type": "text", "text": "Hello"}}}
	}},
	"POST /chat/steering": {success: 409, names: []string{"turn_id"}, body: func(_ *matrix, of things) object {
		return object{"type": "input", "turn_id": of["turn_id"], "client_steering_id": "one", "input": []object{{"type": "text", "text": "faster"}}}
	}},
	"GET /chat/turns/{turn_id}":        {},
	"GET /chat/turns/{turn_id}/events": {free: true},
}

func unmade(*matrix) things { return things{"conversation_id": protocol.NewConversationID().String()} }

// fresh is a new identifier that names nothing, by the name of its field.
func fresh(name string) string {
	switch name[strings.LastIndex(name, ".")+1:] {
	case "conversation_id":
		return protocol.NewConversationID().String()
	case "message_id":
		return protocol.NewMessageID().String()
	case "branch_id":
		return protocol.NewBranchID().String()
	case "follow_up_id":
		return protocol.NewFollowUpID().String()
	case "turn_id":
		return protocol.NewTurnID().String()
	case "session_id":
		return protocol.NewSessionID().String()
	case "project_id":
		return "proj_" + strings.TrimPrefix(protocol.NewTurnID().String(), "turn_")
	}
	panic("nobody knows how a " + name + " is spelled: add it to fresh")
}

// switchLimiter asks a real limiter, one that has run dry, or one whose Redis is not there.
type switchLimiter struct{ open, dry, dead, now *persistence.Limiter }

func (l *switchLimiter) Take(ctx context.Context, bucket, key string) (persistence.Decision, error) {
	if l.now == l.dry { // its buckets hold one, and are not those of the others
		key = "dry " + key
		if first, err := l.dry.Take(ctx, bucket, key); err != nil || !first.Allowed {
			return first, err
		}
	}
	return l.now.Take(ctx, bucket, key)
}

func limiterWith(t *testing.T, url string, limit persistence.Limit) *persistence.Limiter {
	t.Helper()
	shared := map[string]persistence.Limit{}
	for _, b := range []bucket{bucketWrites, bucketChat, bucketCancel, bucketSignIn, bucketSignInAccount, bucketSignInReserve} {
		shared[string(b)] = limit
	}
	limiter, err := persistence.NewLimiter(persistence.LimiterConfig{URL: url, Shared: shared, Local: map[string]persistence.Limit{
		string(bucketReads): limit, string(bucketReplays): limit, string(bucketRefusals): {Rate: 10_000, Period: time.Second, Burst: 10_000},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	return limiter
}

// matrix is a world with two accounts that know nothing of each other.
type matrix struct {
	*world
	limits          *switchLimiter
	meter           *machine.Meter
	owner, stranger *client
	mine, theirs    things            // the owner's and the stranger's
	cursor          string            // of the owner's list of conversations
	bad             map[string]string // tokens that should open nothing, by what is wrong with them
	turned          *client           // whose token was replaced
	oldCSRF         string            // its CSRF token of before
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	return matrixOn(t, pgtest.NewDatabase(t), func(*Config) {})
}

func matrixOn(t *testing.T, database pgtest.Database, change func(*Config)) *matrix {
	t.Helper()
	redis := embeddedtest.Redis(t).URL()
	plenty := persistence.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}
	m := &matrix{limits: &switchLimiter{
		open: limiterWith(t, redis, plenty), dry: limiterWith(t, redis, persistence.Limit{Rate: 1, Period: time.Hour, Burst: 1}),
		dead: limiterWith(t, "unix:///nowhere/redis.sock", plenty),
	}, meter: machine.Start()}
	t.Cleanup(m.meter.Stop)
	m.limits.now = m.limits.open
	m.world = worldOn(t, database, func(c *Config) {
		c.Limiter = m.limits
		change(c)
		liveOn(t, c)
	})
	m.owner, m.stranger = m.client().register("owner@example.com"), m.client().register("stranger@example.com")
	m.mine, m.theirs = m.conversation(m.owner), m.conversation(m.stranger)
	m.conversation(m.owner)
	var list protocol.List[protocol.Conversation]
	m.owner.expect(200, "GET", "/conversations?limit=1", nil).into(t, &list)
	m.cursor = *list.NextCursor
	return m
}

// liveOn gives a configuration a node of its own, with the scripted model.
func liveOn(t *testing.T, c *Config) {
	t.Helper()
	c.Turns = nodeOn(t, c, scripted.New(scripted.Options{}), nil, func() { t.Error("the node was fenced") })
}

// nodeOn starts a node with a model, in place of an earlier one if there was one, and sets the store that it writes.
func nodeOn(t *testing.T, c *Config, model actors.Model, predecessor *protocol.NodeID, fenced func()) *actors.Node {
	t.Helper()
	const live = 5
	turns := persistence.NewTurns(c.DB, persistence.TurnsOptions{Logger: c.Log})
	t.Cleanup(turns.Close)
	node := actors.NewNode(actors.Config{
		Store: turns, Log: turns, Directory: persistence.NewDirectory(c.DB, persistence.DirectoryOptions{MaxLiveTurns: live}),
		Model: model, Routes: actors.DefaultRoutes("a", "b", "c"), Tools: tool.All(), MaxLiveTurns: live,
		Logger: zaptest.NewLogger(t), Predecessor: predecessor, Fenced: fenced,
	})
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	c.TurnStore = storedTurns{turns, c.DB}
	return node
}

type storedTurns struct {
	*persistence.Turns
	db *persistence.DB
}

func (s storedTurns) GetMessage(ctx context.Context, account protocol.AccountID, id protocol.MessageID) (*protocol.Message, error) {
	return s.db.GetMessage(ctx, account, id)
}

// conversation makes one with a finished turn, and tells what it is made of.
func (m *matrix) conversation(c *client) things {
	m.t.Helper()
	answer := c.expect(200, "POST", "/chat", object{"input": []object{{"type": "text", "text": "Hello"}}})
	_, rest, _ := strings.Cut(string(answer.body), "data: ")
	line, _, _ := strings.Cut(rest, "\n")
	_, payload, err := protocol.DecodeEvent([]byte(line))
	started, isStart := payload.(*protocol.TurnStarted)
	if err != nil || !isStart {
		m.t.Fatalf("the stream begins with %s", line)
	}
	of := m.thingsOf(c)
	of["conversation_id"], of["branch_id"] = started.ConversationID.String(), started.BranchID.String()
	of["message_id"], of["turn_id"] = started.UserMessageID.String(), answer.header.Get("X-Turn-Id")
	of["follow_up_id"] = m.held(c.account.AccountID, started.ConversationID).String()
	of["provider"] = "none"
	return of
}

// held puts an item into a queue that waits for a word of its owner.
func (w *world) held(account protocol.AccountID, conversation protocol.ConversationID) protocol.FollowUpID {
	w.t.Helper()
	id := protocol.NewFollowUpID()
	w.database.Admin(w.t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) values ($1, $2, $3, 'held', 'later', 1)`,
		account, id, conversation)
	return id
}

// thingsOf are the things of a client that has no conversation.
func (m *matrix) thingsOf(c *client) things {
	m.t.Helper()
	var list protocol.List[protocol.Device]
	c.expect(200, "GET", "/auth/sessions", nil).into(m.t, &list)
	for _, device := range list.Data {
		if device.Current {
			return things{"session_id": device.SessionID.String(), "provider": "none"}
		}
	}
	m.t.Fatal("no session is the current one")
	return nil
}

func (m *matrix) versionOf(of things) int64 {
	var id protocol.ConversationID
	if id.UnmarshalText([]byte(of["conversation_id"])) != nil {
		return 0
	}
	return query[int64](m.world, `select coalesce(max(version), 0) from conversations where conversation_id = $1`, id)[0]
}

// passing is somebody who does not mind being signed out.
func (m *matrix) passing() *client {
	return m.client().register(protocol.NewAccountID().String() + "@example.com")
}

// nobody is somebody who is not signed in.
func (m *matrix) nobody() *client { return m.client() }

// again is another session of the same account.
func (c *client) again() *client { return c.client().login(c.account.Email) }

func (t route) name() string { return t.method + " " + t.path }

// fill puts things into a path.
func fill(path string, of things) string {
	for _, name := range namesIn(path) {
		path = strings.ReplaceAll(path, "{"+name+"}", of[name])
	}
	return path
}

// ask asks as the example says, about some things.
func (m *matrix) ask(c *client, r route, of things, headers ...string) *reply {
	m.t.Helper()
	e := examples[r.name()]
	var content any
	if e.body != nil {
		content = e.body(m, of)
	}
	return m.send(c, r, of, content, headers...)
}

func (m *matrix) send(c *client, r route, of things, content any, headers ...string) *reply {
	m.t.Helper()
	answer := c.do(r.method, fill(r.path, of)+examples[r.name()].query, content, headers...)
	m.checkHeaders(r, answer)
	return answer
}

// checkHeaders holds what every answer must carry.
func (m *matrix) checkHeaders(r route, answer *reply) {
	m.t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": contentSecurityPolicy, "Strict-Transport-Security": "max-age=63072000; includeSubDomains",
		"Server": "", "X-Powered-By": "", "Access-Control-Allow-Origin": "",
	} {
		if got := answer.header.Get(name); got != want {
			m.t.Errorf("%s: %s is %q, want %q", r.name(), name, got, want)
		}
	}
	if !strings.HasPrefix(answer.header.Get("X-Request-Id"), "req_") {
		m.t.Errorf("%s: no X-Request-Id", r.name())
	}
	cache := answer.header.Get("Cache-Control")
	if want := r.policy.cacheControl(); cache != want && !(r.streams && strings.HasPrefix(cache, "no-cache")) {
		m.t.Errorf("%s: Cache-Control is %q, want %q", r.name(), cache, want)
	}
	if answer.status >= 400 && (answer.header.Get("Content-Type") != "application/problem+json" || answer.Problem.Status != answer.status || answer.RequestID == "") && r.path != "/ready" {
		m.t.Errorf("%s: %d is no problem document: %s", r.name(), answer.status, answer.body)
	}
}

// rows counts what requests can make.
func (m *matrix) rows() string {
	return query[string](m.world, `select concat_ws(' ', (select count(*) from accounts), (select count(*) from conversations),
		(select count(*) from messages), (select count(*) from turns), (select count(*) from branches), (select count(*) from follow_ups),
		(select count(*) from usage_records), (select count(*) from idempotency), (select count(*) from account_settings),
		(select count(*) from sessions where revoked_at is null), (select count(*) from oidc_flows), (select sum(version) from conversations),
		(select sum(draft_version) from conversations))`)[0]
}

func TestTheAuthorizationMatrix(t *testing.T) {
	m := newMatrix(t)
	known := map[string]bool{}
	for _, r := range m.routes {
		known[r.name()] = true
		if _, has := examples[r.name()]; !has {
			t.Errorf("%s has no example: add one", r.name())
		}
	}
	for name := range examples {
		if !known[name] {
			t.Errorf("%s has an example but is no route", name)
		}
	}
	if t.Failed() {
		return
	}
	var cells int
	each := func(name string, cell func(m *matrix, r route) int) {
		t.Run(name, func(t *testing.T) {
			outer := m.t
			m.t = t
			defer func() { m.t = outer }()
			for _, r := range m.routes {
				before := m.owner.token()
				cells += cell(m, r)
				if m.owner.token() != before {
					t.Fatalf("%s %s replaced the owner's token: the matrix went wrong", name, r.name())
				}
			}
		})
	}
	each("without a valid session", (*matrix).withoutSession)
	each("without the CSRF token", (*matrix).withoutCSRF)
	each("from another site", (*matrix).fromElsewhere)
	each("without a recent sign-in", (*matrix).withoutSudo)
	each("over the limit", (*matrix).overLimit)
	each("with a foreign identifier in the path", (*matrix).foreignPath)
	each("with a foreign identifier in the body", (*matrix).foreignBody)
	each("with a foreign identifier in the query", (*matrix).foreignQuery)
	each("with a foreign cursor", (*matrix).foreignCursor)
	each("by another method", (*matrix).otherMethods)
	each("rightly", (*matrix).rightly)
	t.Logf("%d routes, %d cells", len(m.routes), cells)
}

// withoutSession: whatever is wrong with the session, every route but the public ones answers the same 401.
func (m *matrix) withoutSession(r route) int {
	if r.policy.Public {
		return 0
	}
	states := m.badSessions()
	var first *reply
	for _, name := range slices.Sorted(maps.Keys(states)) {
		c := m.client()
		c.csrf = m.owner.csrf
		if states[name] != "" {
			c.cookies[c.cookieName()] = states[name]
		}
		answer := m.ask(c, r, m.mine)
		if answer.status != 401 || !strings.Contains(answer.header.Get("Set-Cookie"), "Max-Age=0") {
			m.t.Errorf("%s, %s: %d %s", r.name(), name, answer.status, answer.body)
		}
		if first == nil {
			first = answer
		}
		if !alike(first, answer) {
			m.t.Errorf("%s, %s: %s differs from %s", r.name(), name, answer.body, first.body)
		}
	}
	return len(states)
}

// badSessions are made once: tokens that should open nothing.
func (m *matrix) badSessions() map[string]string {
	if m.bad != nil {
		return m.bad
	}
	spoil := func(sql string) string {
		c := m.passing()
		m.database.Admin(m.t, sql, c.account.AccountID, m.clock.now())
		return c.token()
	}
	m.bad = map[string]string{
		"no cookie": "", "garbage": "garbage", "unknown": tokenPrefix + encode(make([]byte, tokenBytes)),
		"unused too long": spoil(`update sessions set last_used_at = $2::timestamptz - interval '7 days' where account_id = $1`),
		"too old":         spoil(`update sessions set expires_at = $2 where account_id = $1`),
		"revoked":         spoil(`update sessions set revoked_at = $2 where account_id = $1`),
		"disabled":        spoil(`update accounts set disabled_at = $2 where account_id = $1`),
	}
	return m.bad
}

// withoutCSRF: an unsafe request needs the token of its session as it is now.
func (m *matrix) withoutCSRF(r route) int {
	if r.policy.Public || safe(r.method) {
		return 0
	}
	if m.turned == nil {
		m.turned = m.passing()
		m.oldCSRF = m.turned.csrf
		m.turned.keep(m.turned.expect(200, "POST", "/auth/reauthenticate", object{"password": testPassword}))
		m.turned.session()
	}
	states := map[string]struct {
		c     *client
		token string
	}{
		"none": {m.owner, ""}, "garbage": {m.owner, "garbage"}, "of another session": {m.owner, m.stranger.csrf},
		"of the token before": {m.turned, m.oldCSRF},
	}
	for name, state := range states {
		answer := m.ask(state.c, r, m.mine, csrfHeader, state.token)
		if answer.status != 403 || answer.Code != protocol.CodeCSRF {
			m.t.Errorf("%s, %s: %d %s", r.name(), name, answer.status, answer.body)
		}
	}
	return len(states)
}

// fromElsewhere: no other site, subdomain or opaque origin may ask for a change, public routes included.
func (m *matrix) fromElsewhere(r route) int {
	if safe(r.method) {
		return 0
	}
	before := m.rows()
	states := [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "https://sub.turnstone.example"},
		{"Origin", "http://turnstone.example"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
	}
	for _, headers := range states {
		answer := m.ask(m.owner, r, m.mine, headers...)
		if answer.status != 403 || answer.Code != protocol.CodeOrigin {
			m.t.Errorf("%s, %v: %d %s", r.name(), headers, answer.status, answer.body)
		}
	}
	if after := m.rows(); after != before {
		m.t.Errorf("%s had an effect: %s, then %s", r.name(), before, after)
	}
	return len(states)
}

func (m *matrix) withoutSudo(r route) int {
	if !r.policy.Sudo {
		return 0
	}
	c := m.passing()
	m.database.Admin(m.t, `update sessions set reauthenticated_at = $2::timestamptz - interval '10 minutes' where account_id = $1`, c.account.AccountID, m.clock.now())
	if answer := m.ask(c, r, m.mine); answer.status != 403 || answer.Code != protocol.CodeReauthRequired {
		m.t.Errorf("%s: %d %s", r.name(), answer.status, answer.body)
	}
	return 1
}

// overLimit: over it 429, undecided 503, and nothing was done. Reads are counted here, so they are never undecided.
func (m *matrix) overLimit(r route) int {
	if examples[r.name()].free {
		return 0
	}
	defer func() { m.limits.now = m.limits.open }()
	before := m.rows()
	m.limits.now = m.limits.dry
	answer := m.ask(m.owner, r, m.mine)
	wait, err := strconv.Atoi(answer.header.Get("Retry-After"))
	if answer.status != 429 || answer.Code != protocol.CodeRateLimited || err != nil || wait < 1 || answer.header.Get("RateLimit") == "" {
		m.t.Errorf("%s over the limit: %d %s %v", r.name(), answer.status, answer.body, answer.header)
	}
	if r.policy.Bucket == bucketReads {
		return 1
	}
	m.limits.now = m.limits.dead
	began := time.Now()
	answer = m.ask(m.owner, r, m.mine)
	m.meter.Check(m.t, r.name()+" without a limiter", began, time.Since(began), 300*time.Millisecond)
	if answer.status != 503 || answer.header.Get("Retry-After") == "" {
		m.t.Errorf("%s without a limiter: %d %s", r.name(), answer.status, answer.body)
	}
	if after := m.rows(); after != before {
		m.t.Errorf("%s had an effect: %s, then %s", r.name(), before, after)
	}
	return 2
}

// foreignPath: another account's identifier answers as one that names nothing and as one that is none, byte for byte,
// also when the body is wrong, and whatever the caller claims to be.
func (m *matrix) foreignPath(r route) int {
	names, cells := namesIn(r.path), 0
	if len(names) == 0 || r.policy.Public || examples[r.name()].creates {
		return 0
	}
	for _, name := range names {
		own := maps.Clone(m.theirs)
		ask := func(value string, headers ...string) *reply {
			own[name] = value
			cells++
			return m.ask(m.stranger, r, own, headers...)
		}
		wrongBody := func(value string) *reply {
			own[name] = value
			cells++
			return m.send(m.stranger, r, own, object{"nonsense": 1}, "Content-Type", "text/plain")
		}
		missing := ask(fresh(name))
		if missing.status != 404 || missing.Code != protocol.CodeNotFound {
			m.t.Errorf("%s, %s missing: %d %s", r.name(), name, missing.status, missing.body)
		}
		for what, answer := range map[string]*reply{
			"foreign":                      ask(m.mine[name]),
			"malformed":                    ask(strings.ToUpper(m.mine[name])),
			"of another kind":              ask("acct_" + strings.TrimLeft(m.mine[name], "abcdefghijklmnopqrstuvwxyz_")),
			"foreign, as its owner":        ask(m.mine[name], "X-User-Id", m.owner.account.AccountID.String(), "X-Forwarded-User", m.owner.account.Email, "X-Account-Id", m.owner.account.AccountID.String()),
			"foreign, with a wrong body":   wrongBody(m.mine[name]),
			"malformed, with a wrong body": wrongBody("nonsense"),
		} {
			if !alike(missing, answer) || !sameHeaders(missing, answer) {
				m.t.Errorf("%s, %s %s: %d %s %v, missing: %d %s %v", r.name(), name, what, answer.status, answer.body, answer.header, missing.status, missing.body, missing.header)
			}
		}
	}
	return cells
}

// sameHeaders compares what is not made anew for each request.
func sameHeaders(a, b *reply) bool {
	strip := func(r *reply) map[string][]string {
		header := maps.Clone(r.header)
		for _, name := range []string{"X-Request-Id", "Ratelimit"} {
			delete(header, name)
		}
		return header
	}
	return maps.EqualFunc(strip(a), strip(b), slices.Equal)
}

// foreignBody: an identifier in a body is 404 when it names nothing of the caller's, and 422 when it is none.
func (m *matrix) foreignBody(r route) int {
	e := examples[r.name()]
	for _, name := range e.names {
		with := func(value string) *reply {
			content := e.body(m, m.theirs)
			parent, field, nested := strings.Cut(name, ".")
			if nested {
				content[parent] = object{field: value, "mode": "edit"}
			} else {
				content[parent] = value
			}
			content["account_id"], content["owner"], content["role"] = m.owner.account.AccountID, m.owner.account.Email, "admin"
			return m.send(m.stranger, r, m.theirs, content)
		}
		field := name[strings.LastIndex(name, ".")+1:]
		foreign := fresh(name)
		if m.mine[field] != "" {
			foreign = m.mine[field]
		}
		missing, theirs, malformed := with(fresh(name)), with(foreign), with("nonsense")
		if missing.status != 404 || !alike(missing, theirs) || !sameHeaders(missing, theirs) {
			m.t.Errorf("%s, %s: missing %d %s, foreign %d %s", r.name(), name, missing.status, missing.body, theirs.status, theirs.body)
		}
		if malformed.status != 422 || len(malformed.Errors) == 0 || malformed.Errors[0].Field != "body."+name {
			m.t.Errorf("%s, %s malformed: %d %s", r.name(), name, malformed.status, malformed.body)
		}
	}
	return 3 * len(e.names)
}

// foreignQuery: an identifier in the query answers as one that names nothing when it is another account's, and 422 when it
// is none.
func (m *matrix) foreignQuery(r route) int {
	cells := 0
	for _, param := range operationAt(m.api.OpenAPI(), r.method, r.path).Parameters {
		prefix, _, isID := strings.Cut(strings.TrimPrefix(param.Schema.Pattern, "^"), "_")
		if param.In != "query" || !isID {
			continue
		}
		field := map[string]string{"conv": "conversation_id", "msg": "message_id", "br": "branch_id", "turn": "turn_id", "proj": "project_id"}[prefix]
		with := func(value string) *reply {
			cells++
			return m.stranger.do(r.method, fill(r.path, m.theirs)+"?"+param.Name+"="+value, nil)
		}
		foreign := m.mine[field]
		if foreign == "" {
			foreign = fresh(field)
		}
		missing, theirs, malformed := with(fresh(field)), with(foreign), with("nonsense")
		if !alike(missing, theirs) || missing.status != 404 && missing.status != 200 || malformed.status != 422 {
			m.t.Errorf("%s, %s: missing %d %s, foreign %d %s, malformed %d", r.name(), param.Name, missing.status, missing.body, theirs.status, theirs.body, malformed.status)
		}
	}
	return cells
}

// foreignCursor: another account's cursor is as good as garbage.
func (m *matrix) foreignCursor(r route) int {
	op := operationAt(m.api.OpenAPI(), r.method, r.path)
	if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == "cursor" }) {
		return 0
	}
	path := fill(r.path, m.theirs)
	foreign, garbage := m.stranger.do(r.method, path+"?cursor="+m.cursor, nil), m.stranger.do(r.method, path+"?cursor=garbage", nil)
	if foreign.status != 422 || !alike(foreign, garbage) {
		m.t.Errorf("%s: foreign %d %s, garbage %d %s", r.name(), foreign.status, foreign.body, garbage.status, garbage.body)
	}
	for _, limit := range []string{"0", "101", "x", "-1"} {
		if answer := m.owner.do(r.method, fill(r.path, m.mine)+"?limit="+limit, nil); answer.status != 422 {
			m.t.Errorf("%s, limit %s: %d", r.name(), limit, answer.status)
		}
	}
	return 6
}

// otherMethods: a method that a path does not take is 405 for one who is signed in, and tells nobody else anything.
func (m *matrix) otherMethods(r route) int {
	path, cells := fill(r.path, m.mine), 0
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "NONSENSE"} {
		if _, taken := m.policies[method+" "+r.path]; taken {
			continue
		}
		cells += 2
		signedIn, nobody := m.owner.do(method, path, nil), m.client().do(method, path, nil)
		if signedIn.status != 405 || signedIn.Code != protocol.CodeMethodNotAllowed || !slices.Contains(signedIn.header.Values("Allow"), r.method) {
			m.t.Errorf("%s by %s: %d %v", r.path, method, signedIn.status, signedIn.header)
		}
		if nobody.status != 401 || nobody.header.Get("Allow") != "" {
			m.t.Errorf("%s by %s of nobody: %d", r.path, method, nobody.status)
		}
	}
	if r.method == "GET" && !r.streams {
		cells++
		get, head := m.owner.do("GET", path, nil), m.owner.do("HEAD", path, nil)
		if get.status != head.status {
			m.t.Errorf("%s: GET %d, HEAD %d", r.path, get.status, head.status)
		}
	}
	if r.streams && r.method == "GET" {
		cells++
		if head := m.owner.do("HEAD", path, nil); head.status != 405 {
			m.t.Errorf("%s: HEAD of a stream is %d", r.path, head.status)
		}
	}
	return cells
}

// rightly: the example is a good one, so that the refusals above were for the reason that was tested.
func (m *matrix) rightly(r route) int {
	e := examples[r.name()]
	c, of := m.owner, m.mine
	if e.as != nil {
		c = e.as(m)
	}
	if e.of != nil {
		of = e.of(m)
	}
	want := e.success
	if want == 0 {
		want = 200
	}
	if answer := m.ask(c, r, of); answer.status != want {
		m.t.Errorf("%s: %d %s, want %d", r.name(), answer.status, answer.body, want)
	}
	return 1
}
