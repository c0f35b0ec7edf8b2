package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	testflag "flag"
	"fmt"
	"math/rand/v2"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/node"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/actors/upload"
	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/limits"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// The isolation walk: two accounts and a caller without an account send random requests to the whole API, live turns
// included, on a real Postgres, a real Redis and a real node. No data of one side may reach another side or the log.
// isolation_checker_test.go contains the checker, and isolation_requests_test.go generates the requests.
//
// The seed determines every choice. With one walker for each account, the order of the requests is determined too,
// except that turns run concurrently. This command repeats a run:
//
//	go test ./http -run TestNoAccountSeesDataOfAnother -isolation.seed 7 -isolation.walkers 1
var (
	isolationSeed      = testflag.Uint64("isolation.seed", 0, "seed of the isolation walk; 0: a new one")
	isolationResponses = testflag.Int("isolation.responses", 20_000, "number of responses that the isolation walk searches")
	isolationWalkers   = testflag.Int("isolation.walkers", 4, "number of walkers for each account of the isolation walk")
)

// leastResponses is the minimum number of responses, whatever the flag says, so that a walk without requests does not
// pass.
const leastResponses = 200

func (s side) email() string    { return markers[s] + "0q@example.com" }
func (s side) password() string { return markers[s] + " long and secret" }

// isolation is the state of one walk.
type isolation struct {
	*world
	checker    *leakChecker
	routes     []route.Route // each as many times as its weight
	ofTurns    []route.Route // those that name a turn
	receivedBy [sides]*receivedValues
	accounts   [sides]protocol.Account
	serial     atomic.Int64 // the number of the last canary
	remaining  atomic.Int64 // the number of responses to search
}

// walker sends random requests for one side, with a session of its own.
type walker struct {
	*isolation
	side    side
	address string // one walker does not use up what another one may send at once; empty: that of the other tests
	rng     *rand.Rand
	token   string
	csrf    string
}

func (w *walker) remoteAddress() string {
	return net.JoinHostPort(cmp.Or(w.address, "192.0.2.1"), "4711")
}

func (w *walker) received() *receivedValues { return w.receivedBy[w.side] }

// otherSide returns the side of the other account; for the anonymous side, that of a random account.
func (w *walker) otherSide() side {
	if w.side == anonymous {
		return side(w.rng.IntN(int(anonymous)))
	}
	return cobalt - w.side
}

func (w *walker) other() *receivedValues { return w.receivedBy[w.otherSide()] }
func (w *walker) canary() string         { return w.side.canary(w.serial.Add(1)) }

// newIsolation starts a service. The functions in planted return additional routes.
func newIsolation(t *testing.T, planted ...func(*isolation) route.Route) *isolation {
	t.Helper()
	redis, database := embeddedtest.Redis(t).URL(), pgtest.NewDatabase(t)
	plenty := limits.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}
	iso := &isolation{checker: newLeakChecker()}
	log := zap.New(newLeakCheckerCore(iso.checker))
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, Objects: database.Objects(t), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var config Config
	iso.world = worldOn(t, database, func(c *testConfig) {
		c.use(db)
		c.Log, c.Limiter = log, limiterWith(t, redis, plenty)
		store := db.StartTurns(turns.Options{Logger: log})
		t.Cleanup(store.Close)
		const live = 50
		n := c.startNode(t, node.Config{Fenced: func() { t.Error("the node was fenced") }}, turn.Config{
			Store: store, FollowUps: db.FollowUps, Log: store, Files: db.FileTexts, Ownership: store,
			Model: echoingModel{scripted.New(scripted.Options{})}, Routes: routing.Defaults("a", "b", "c"), Tools: catalogueOf(t, db), Consents: db.Memory,
			Approvals: db.Approvals, MaxLiveTurns: live, Logger: log,
		}, upload.Config{})
		c.Turns, c.TurnStore = n, store
		config = c.Config
	})
	if len(planted) > 0 {
		if iso.Server, err = newServer(config, func(s *Server) route.Table {
			table := s.table()
			for _, plant := range planted {
				table = table.With(plant(iso))
			}
			return table
		}); err != nil {
			t.Fatal(err)
		}
	}
	iso.addThumbnails(t)
	iso.addArtifacts(t)
	iso.addApprovals(t)
	for s := range sides {
		iso.receivedBy[s] = newReceivedValues()
		if s != anonymous {
			iso.accounts[s] = iso.registerAccount(s)
		}
	}
	iso.routes, iso.ofTurns = iso.weightedRoutes(), iso.routesNaming("turn_id")
	return iso
}

// addThumbnails gives every file a thumbnail that contains its name, as no job reads the contents.
func (iso *isolation) addThumbnails(t *testing.T) {
	t.Helper()
	iso.database.Admin(t, `
		create function add_thumbnail() returns trigger language plpgsql as $$ begin
			new.state := 'none';
			new.width := 1;
			select '\xffd8'::bytea || convert_to(filename, 'UTF8') into new.thumbnail from files where account_id = new.account_id and file_id = new.file_id;
			return new;
		end $$;
		create trigger thumbnails before insert on file_texts for each row execute function add_thumbnail()`)
}

// addArtifacts gives every conversation an artifact that has its title, as no model writes one.
func (iso *isolation) addArtifacts(t *testing.T) {
	t.Helper()
	iso.database.Admin(t, `
		create function add_artifact() returns trigger language plpgsql security definer set search_path = pg_catalog, public as $$
		declare
			id uuid := gen_random_uuid();
			text text := coalesce(nullif(new.title, ''), 'none') || ' ' || id; -- equal contents have the same hash
		begin
			insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
			values (new.account_id, id, new.conversation_id, 'document', text, 1, 'model', octet_length(text), sha256(convert_to(text, 'UTF8')));
			insert into artifact_versions (account_id, artifact_id, version, title, created_by, content, bytes, sha256)
			values (new.account_id, id, 1, text, 'model', text, octet_length(text), sha256(convert_to(text, 'UTF8')));
			return null;
		end $$;
		create trigger artifacts after insert on conversations for each row execute function add_artifact()`)
}

// addApprovals gives every turn an approval that has the title of its conversation.
func (iso *isolation) addApprovals(t *testing.T) {
	t.Helper()
	iso.database.Admin(t, `
		create function add_approval() returns trigger language plpgsql security definer set search_path = pg_catalog, public as $$
		begin
			insert into approvals (account_id, approval_id, turn_id, conversation_id, body, tool_name, resource, definition, created_at, expires_at)
			select new.account_id, a.id, new.turn_id, new.conversation_id, json_build_object('state', 'pending',
				'tool_name', 'demo_action', 'summary', c.title, 'input', json_build_object('note', c.title), 'created_at', now(), 'expires_at', now() + interval '1 day'), 'demo_action', '', '', now(), now() + interval '1 day'
			from conversations c, (select gen_random_uuid() as id) a where c.account_id = new.account_id and c.conversation_id = new.conversation_id;
			return null;
		end $$;
		create trigger approvals after insert on turns for each row execute function add_approval()`)
}

// registerAccount registers the account of a side over the API, with as many passkeys as it can have and as many
// identities. No authenticator and no provider has them: walkers can list and remove them, but not sign in.
func (iso *isolation) registerAccount(s side) protocol.Account {
	c := iso.client()
	c.storeSession(c.expect(201, "POST", "/auth/register", route.Object{"email": s.email(), "password": s.password(), "display_name": s.canary(0)}))
	for range accounts.MaxPasskeys {
		iso.storePasskey(c, s.canary(0))
		iso.storeIdentity(c, s.canary(iso.serial.Add(1)))
	}
	return c.account
}

// signIn signs a walker in.
func (w *walker) signIn(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(route.Object{"email": w.side.email(), "password": w.side.password()})
	if err != nil {
		panic(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), "POST", "https://turnstone.example/auth/login", stdhttp.NoBody)
	request.Body, request.ContentLength = &readBody{bytes.NewReader(body), body}, int64(len(body))
	request.RemoteAddr = w.remoteAddress()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", w.canary())
	_, resp := w.exchange(request, "POST /auth/login")
	if resp.status != stdhttp.StatusOK {
		w.checker.leak("%s cannot sign in: %d %s", w.side, resp.status, clipped(resp.body))
		return
	}
	var info protocol.SessionInfo
	_ = json.Unmarshal(resp.body, &info) // an empty CSRF token gets 403
	for _, cookie := range (&stdhttp.Response{Header: resp.header}).Cookies() {
		if cookie.Name == w.cookieName() {
			w.token, w.csrf = cookie.Value, info.CSRFToken
		}
	}
}

// walk sends requests until the wanted number of responses was searched or a leak was found.
func (iso *isolation) walk(t *testing.T, seed uint64, responses int) {
	t.Helper()
	began := time.Now()
	iso.remaining.Store(int64(responses))
	var walkers sync.WaitGroup
	for s := range anonymous {
		for i := range *isolationWalkers {
			rng := rand.New(rand.NewPCG(seed, uint64(s)<<32|uint64(i))) // a seed that can be repeated
			address := fmt.Sprintf("198.51.100.%d", int(s)**isolationWalkers+i)
			w := &walker{isolation: iso, side: s, address: address, rng: rng}
			walkers.Go(func() { w.run(t, &walker{isolation: iso, side: anonymous, address: address, rng: rng}) })
		}
	}
	walkers.Wait()
	took := time.Since(began)
	iso.checker.mu.Lock()
	t.Logf("seed %d: %d responses (%.1f MB) and %d lines of the log searched in %v, %d identifiers, tokens and cursors known; by status %v",
		seed, iso.checker.responses, float64(iso.checker.bytes)/1e6, iso.checker.lines, took.Round(time.Millisecond), len(iso.checker.owners), iso.checker.statuses)
	iso.checker.mu.Unlock()
}

// run sends requests, one in five of them without an account.
func (w *walker) run(t *testing.T, stranger *walker) {
	const strangers = 5
	for t.Context().Err() == nil && w.checker.clean() && w.remaining.Load() > 0 {
		if w.token == "" {
			w.signIn(t)
		}
		if w.rng.IntN(strangers) == 0 {
			stranger.step(t.Context())
		} else {
			w.step(t.Context())
		}
	}
}

// step sends one request and checks its response. Most requests that conflict with a newer state are sent once
// more as their response demands, as an app would do.
func (w *walker) step(ctx context.Context) {
	d := w.draft()
	defer func() { d.leave() }()
	request := d.request(ctx)
	resp := w.send(ctx, d, request)
	if resp.status == stdhttp.StatusConflict && !d.chance(4) {
		w.send(ctx, d, d.corrected(request, resp.body))
	}
}

// send sends one request and checks its response. The walk plans no fault, so every 5xx is a finding, except the 503 of a
// reader that has left before the first byte.
func (w *walker) send(ctx context.Context, d *draft, request *stdhttp.Request) *reply {
	q, resp := w.exchange(request, nameOf(d.route))
	w.checkStatus(d, q, resp)
	if left := request.Context().Err() != nil; resp.status >= 500 && !(left && resp.status == stdhttp.StatusServiceUnavailable) {
		w.checker.leak("%s got %d: %s\n%s", w.side, resp.status, q.line, clipped(resp.body))
	}
	if w.side != anonymous && resp.status == stdhttp.StatusUnauthorized && !d.route.Policy.Public {
		w.token = "" // another walker of this side ended the session
	}
	if resp.status < 300 || resp.status == stdhttp.StatusConflict {
		w.received().learn(nameOf(d.route), d.path, resp.body)
	}
	if d.route.Method == "DELETE" && resp.status < 300 {
		w.received().forget(d.route.Path, d.path)
	}
	w.updateSession(ctx, d, resp)
	return resp
}

// exchange sends a request and passes the whole response to the checker.
func (w *walker) exchange(request *stdhttp.Request, pattern string) (sentRequest, *reply) {
	recorder := &turnRecorder{readOnce: readOnce{ResponseRecorder: httptest.NewRecorder()}}
	if pattern == "POST /chat" {
		recorder.began = w.received().begin
	}
	return w.exchangeOn(recorder, request, pattern)
}

func (w *walker) exchangeOn(recorder *turnRecorder, request *stdhttp.Request, pattern string) (sentRequest, *reply) {
	q := sentRequest{by: w.side, line: request.Method + " " + request.URL.RequestURI(), offered: sentBy(request)}
	w.serve(recorder, request)
	resp := &reply{status: recorder.Code, header: recorder.Result().Header, body: recorder.Body.Bytes()}
	w.checker.response(q, pattern, resp.status, resp.header, resp.body)
	w.remaining.Add(-1)
	return q, resp
}

// serve handles a request. The handler of a download whose client disconnects ends the connection.
func (w *walker) serve(recorder *turnRecorder, request *stdhttp.Request) {
	defer func() {
		if cause := recover(); cause != nil && cause != stdhttp.ErrAbortHandler {
			panic(cause)
		}
	}()
	w.ServeHTTP(recorder, recorder.reads(request))
}

// turnRecorder is a response recorder that calls began with a turn as soon as the stream of the turn starts.
type turnRecorder struct {
	readOnce
	began func(turn string)
}

func (h *turnRecorder) WriteHeader(status int) {
	if turn := h.Header().Get("X-Turn-Id"); turn != "" && h.began != nil {
		h.began(turn)
	}
	h.ResponseRecorder.WriteHeader(status)
}

// sentBy returns everything that a request sends except its cookies, in lower case.
func sentBy(request *stdhttp.Request) string {
	var all bytes.Buffer
	all.WriteString(request.URL.RequestURI() + "\n")
	header := request.Header.Clone()
	header.Del("Cookie")
	_ = header.Write(&all)
	if body, ok := request.Body.(*readBody); ok {
		all.Write(body.all)
	}
	return strings.ToLower(all.String())
}

// checkStatus checks what the status of a response discloses.
func (w *walker) checkStatus(d *draft, q sentRequest, resp *reply) {
	disclosed := resp.status < 300 || resp.status == stdhttp.StatusConflict || resp.status == stdhttp.StatusGone
	for id, inPath := range d.foreignIDs { // for an identifier in the body, 409 may be about the own object in the path
		if (resp.status < 300 || inPath && disclosed) && w.checker.foreign(w.side, id) {
			w.checker.leak("%s got %d for %s, which belongs to another side: %s\n%s", w.side, resp.status, id, q.line, clipped(resp.body))
		}
	}
	if d.cursor && resp.status < 300 {
		w.checker.leak("%s read a page with a cursor of another side: %s\n%s", w.side, q.line, clipped(resp.body))
	}
	if w.side == anonymous && disclosed && !d.route.Policy.Public {
		w.checker.leak("a caller without an account got %d: %s\n%s", resp.status, q.line, clipped(resp.body))
	}
}

// updateSession stores the session token and the CSRF token of a response. If the response ended the session,
// updateSession checks that the token is refused.
func (w *walker) updateSession(ctx context.Context, d *draft, resp *reply) {
	if w.token == "" || d.route.Policy.Public {
		return
	}
	for _, cookie := range (&stdhttp.Response{Header: resp.header}).Cookies() {
		switch {
		case cookie.Name != w.cookieName():
		case cookie.MaxAge >= 0:
			var info protocol.SessionInfo
			_ = json.Unmarshal(resp.body, &info) // without a CSRF token in the body, the next unsafe request gets 403
			w.token, w.csrf = cookie.Value, info.CSRFToken
		case resp.status < 300:
			request := httptest.NewRequestWithContext(ctx, "GET", "https://turnstone.example/auth/session", nil)
			request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: w.token})
			if q, after := w.exchange(request, "GET /auth/session"); after.status != stdhttp.StatusUnauthorized {
				w.checker.leak("%s: a request with an ended session got %d: %s", w.side, after.status, q.line)
			}
			w.token = ""
		}
	}
}

// wantsTool in a user's message makes the model emit reasoning and call a tool with the text of the message.
const wantsTool = "with a tool"

// echoingModel is the scripted model, except that it repeats a message with wantsTool in every kind of output.
type echoingModel struct{ llm.Model }

func (m echoingModel) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	last := request.Messages[len(request.Messages)-1]
	if last.Role != "user" || !strings.Contains(last.Text, wantsTool) || request.WithoutCalls {
		return m.Model.Stream(ctx, request, emit)
	}
	input, err := json.Marshal(map[string]string{"expression": "6*7 " + last.Text})
	if err != nil {
		return err
	}
	return modeltest.Emit(ctx, emit, append([]llm.Chunk{
		{Kind: llm.ChunkReasoning, Text: "The message is: " + last.Text},
		{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "call-1", Name: "calculate", Input: input}},
		{Kind: llm.ChunkOpaque, Opaque: input},
	}, modeltest.Ended(llm.StopToolCalls)...)...)
}

// attackLive starts a long turn of a side. While the turn is live, the other account tries everything that can be done
// to a turn and must get 404, and a caller without an account must get 401. Then the owner steers and cancels the turn.
func (iso *isolation) attackLive(t *testing.T, s side) {
	t.Helper()
	owner, other, guest := &walker{isolation: iso, side: s}, &walker{isolation: iso, side: cobalt - s}, &walker{isolation: iso, side: anonymous}
	for _, w := range []*walker{owner, other} {
		w.signIn(t)
	}
	began, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		request := owner.signed(t.Context(), "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": owner.canary() + " [[script tokens=2000 interval=20ms]]"}}})
		request.Header.Set(keyField, owner.canary())
		owner.exchangeOn(&turnRecorder{readOnce{ResponseRecorder: httptest.NewRecorder()}, func(turn string) { began <- turn }}, request, "POST /chat")
	}()
	var turn string
	select {
	case turn = <-began:
	case <-ended:
		t.Fatal("no turn started")
	}
	steer := func(w *walker, body route.Object) route.Object {
		body["turn_id"], body["input"], body["client_steering_id"] = turn, []route.Object{{"type": "text", "text": w.canary()}}, w.canary()
		return body
	}
	ask := func(w *walker, status int, method, path, pattern string, body route.Object) (decoded struct {
		ConversationID string `json:"conversation_id"`
		FollowUpID     string `json:"follow_up_id"`
	},
	) {
		_, resp := w.exchange(w.signed(t.Context(), method, path, body), method+" "+pattern)
		if resp.status != status {
			t.Errorf("%s: %s %s of a live turn of %s: %d %s, want %d", w.side, method, path, s, resp.status, resp.body, status)
		} else if status < 300 {
			_ = json.Unmarshal(resp.body, &decoded) // a body of another shape has none of these fields
		}
		return decoded
	}
	conversation := ask(owner, stdhttp.StatusOK, "GET", "/chat/turns/"+turn, "/chat/turns/{turn_id}", nil).ConversationID
	queued := ask(owner, stdhttp.StatusAccepted, "POST", "/chat", "/chat", route.Object{
		"conversation_id": conversation, "input": []route.Object{{"type": "text", "text": owner.canary()}}, "if_busy": "queue",
	})
	item, held := "/conversations/"+conversation+"/follow-ups/"+queued.FollowUpID, route.Object{"state": "held", "version": 1}
	for w, status := range map[*walker]int{other: stdhttp.StatusNotFound, guest: stdhttp.StatusUnauthorized} {
		ask(w, status, "GET", "/chat/turns/"+turn, "/chat/turns/{turn_id}", nil)
		ask(w, status, "GET", "/chat/turns/"+turn+"/events", "/chat/turns/{turn_id}/events", nil)
		ask(w, status, "GET", "/chat/turns/"+turn+"/events?mode=snapshot", "/chat/turns/{turn_id}/events", nil)
		for _, body := range []route.Object{{"type": "input", "delivery": "interrupt"}, {"type": "input"}, {"type": "cancel"}, {"type": "withdraw", "steering_id": protocol.NewSteeringID().String()}, {"type": "apply_now", "steering_id": protocol.NewSteeringID().String()}} {
			ask(w, status, "POST", "/chat/steering", "/chat/steering", steer(w, body))
		}
		ask(w, status, "PATCH", item, "/conversations/{conversation_id}/follow-ups/{follow_up_id}", held)
		for _, mode := range []string{"next", "interrupt"} {
			ask(w, status, "POST", item+"/promote", "/conversations/{conversation_id}/follow-ups/{follow_up_id}/promote", route.Object{"mode": mode})
		}
	}
	ask(owner, stdhttp.StatusOK, "PATCH", item, "/conversations/{conversation_id}/follow-ups/{follow_up_id}", held)
	ask(owner, stdhttp.StatusAccepted, "POST", "/chat/steering", "/chat/steering", steer(owner, route.Object{"type": "input", "delivery": "interrupt"}))
	ask(owner, stdhttp.StatusAccepted, "POST", "/chat/steering", "/chat/steering", steer(owner, route.Object{"type": "cancel"}))
	<-ended
}

// signed returns a request with the session of the walker, if it has one.
func (w *walker) signed(ctx context.Context, method, path string, body route.Object) *stdhttp.Request {
	request := httptest.NewRequestWithContext(ctx, method, "https://turnstone.example"+path, nil)
	if body != nil {
		content, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		request.Body, request.ContentLength = &readBody{bytes.NewReader(content), content}, int64(len(content))
		request.Header.Set("Content-Type", "application/json")
	}
	if w.token != "" {
		request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: w.token})
		request.Header.Set(auth.CSRFHeader, w.csrf)
	}
	return request
}

// withoutRowSecurity disables row-level security, so that only the owner filter of each statement separates the
// accounts.
func (iso *isolation) withoutRowSecurity(t *testing.T) {
	t.Helper()
	iso.database.Admin(t, `
		do $$ declare t regclass; begin
			for t in select oid from pg_class where relrowsecurity and relnamespace = 'public'::regnamespace loop
				execute format('alter table %s disable row level security', t);
			end loop;
		end $$`)
}

// checkRows checks the rows in the database at the end: no row of one account contains a text of the other. Columns
// named key are left out: a guessed idempotency key is stored in a row of the account that guessed it.
func (iso *isolation) checkRows(t *testing.T) {
	t.Helper()
	const tablesSQL = `
		select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`
	rows := 0
	for _, table := range query[string](iso.world, tablesSQL) {
		for s := range anonymous {
			account, other := iso.accounts[s].AccountID, markers[cobalt-s]
			counts := query[int](iso.world, fmt.Sprintf(`
				select count(*)::int from %[1]s t where account_id = $1
				union all
				select count(*)::int from %[1]s t, lateral (select (to_jsonb(t) - 'key')::text as said) as said
				where account_id = $1 and (said like '%%' || $2::text || '%%' or said like '%%' || $3::text || '%%')`,
				pgx.Identifier{table}.Sanitize()), account, other, hex.EncodeToString([]byte(other)))
			rows += counts[0]
			if counts[len(counts)-1] > 0 {
				t.Errorf("%d rows of %s contain texts of %s", counts[len(counts)-1], s, other)
			}
		}
	}
	t.Logf("%d rows of both accounts contain no text of the other account", rows)
}

// The numbers of responses that reach every route, and that contain a success of every route, with any seed.
const (
	reachesAll  = 20_000
	succeedsAll = 40_000
)

// mailRoutes are the routes that succeed only with a mail. The walk sends none (recovery_test.go).
var mailRoutes = []string{
	"POST /auth/password/forgot", "POST /auth/password/reset", "POST /auth/email/verify", "POST /account/pending-email/resend", "DELETE /account/pending-email",
}

// checkCoverage checks that every route was reached and, in a long walk, had a success in one of the walks. Routes of a provider cannot
// succeed, because none is configured; the erasure is not confirmed; and no walker has an authenticator, which passkeys
// need (passkey_test.go).
func checkCoverage(t *testing.T, walks ...*isolation) {
	t.Helper()
	for _, r := range walks[0].Server.Routes() {
		replies, good := 0, 0
		for _, iso := range walks {
			classes := iso.checker.routes[nameOf(r)]
			good += classes[2]
			for _, count := range classes {
				replies += count
			}
		}
		byAuthenticator := strings.HasPrefix(r.Path, "/auth/passkeys/") && strings.HasSuffix(r.Path, "/finish")
		canSucceed := !strings.Contains(r.Path, "{provider}") && !byAuthenticator && nameOf(r) != erasureRoute && !slices.Contains(mailRoutes, nameOf(r))
		switch {
		case replies == 0 && *isolationResponses >= reachesAll:
			t.Errorf("%s was never requested", nameOf(r))
		case good == 0 && canSucceed && *isolationResponses >= succeedsAll:
			t.Errorf("%s never succeeded in %d responses", nameOf(r), replies)
		}
	}
}

func TestNoAccountSeesDataOfAnother(t *testing.T) {
	t.Parallel()
	seed := *isolationSeed
	if seed == 0 {
		seed = rand.Uint64() // it is printed, so that the run can be repeated
	}
	halves := []struct {
		name    string
		prepare func(*isolation, *testing.T)
	}{
		{"with row-level security", func(*isolation, *testing.T) {}},
		{"without row-level security", (*isolation).withoutRowSecurity},
	}
	walks := make([]*isolation, len(halves))
	t.Run("walk", func(t *testing.T) { // returns when both halves have ended
		for i, half := range halves {
			t.Run(half.name, func(t *testing.T) {
				t.Parallel()
				walks[i] = newIsolation(t)
				half.prepare(walks[i], t)
				walks[i].walkAndCheck(t, seed)
			})
		}
	})
	if !t.Failed() {
		checkCoverage(t, walks...)
	}
}

// walkAndCheck walks, attacks live turns and checks what was found.
func (iso *isolation) walkAndCheck(t *testing.T, seed uint64) {
	t.Helper()
	wanted := max(leastResponses, *isolationResponses/2)
	iso.walk(t, seed, wanted)
	for s := range anonymous {
		if iso.checker.clean() { // a walk that found something has ended early
			iso.attackLive(t, s)
		}
	}
	if iso.checker.report(t); t.Failed() {
		t.Fatalf("repeat the run with -isolation.seed %d -isolation.walkers %d", seed, *isolationWalkers)
	}
	if responses, lines := iso.checker.searched(); responses < wanted || lines < wanted {
		t.Errorf("%d responses and %d lines of the log were searched, want %d", responses, lines, wanted)
	}
	iso.checkRows(t)
}

// TestTheCheckerFindsEveryKindOfLeak tests the checker itself with every way in which data of one side may reach
// another, and with responses that leak nothing.
func TestTheCheckerFindsEveryKindOfLeak(t *testing.T) {
	t.Parallel()
	const cursor = "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9v"
	theirs := protocol.NewConversationID()
	uuid := protocol.NodeID(theirs).String()
	delta := func(sequence int64, text string) string {
		frame, err := protocol.AppendEvent(nil, protocol.NewTurnID(), sequence, time.Unix(0, 0), &protocol.AnswerDelta{PartID: protocol.NewPartID(), Delta: text})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("id: %d\nevent: answer.delta\ndata: %s\n\n", sequence, frame)
	}
	line := func(text string) func(*leakChecker) {
		return func(s *leakChecker) { zap.New(newLeakCheckerCore(s)).Info("request", zap.String("text", text)) }
	}
	respond := func(q sentRequest, status int, header stdhttp.Header, body string) func(*leakChecker) {
		q.by = amber
		return func(s *leakChecker) { s.response(q, "GET /", status, header, []byte(body)) }
	}
	stream := stdhttp.Header{"Content-Type": {"text/event-stream"}}
	for _, test := range []struct {
		name  string
		show  func(*leakChecker)
		leaks bool
	}{
		{"nothing", respond(sentRequest{}, 200, nil, "fine"), false},
		{"a text of the side itself", respond(sentRequest{}, 200, nil, amber.canary(3)), false},
		{"a text in a body", respond(sentRequest{}, 200, nil, `{"title":"`+cobalt.canary(3)+`"}`), true},
		{"a text in a header", respond(sentRequest{}, 200, stdhttp.Header{"Location": {"/" + cobalt.canary(3)}}, ""), true},
		{"a text in capitals", respond(sentRequest{}, 404, nil, strings.ToUpper(cobalt.canary(3))), true},
		{"a text in hexadecimal", respond(sentRequest{}, 500, nil, hex.EncodeToString([]byte(cobalt.canary(3)))), true},
		{"a text of the caller without an account", respond(sentRequest{}, 200, nil, anonymous.canary(3)), true},
		{"a text split over events", respond(sentRequest{}, 200, stream, delta(1, "cobalt")+delta(2, "heron17q")), true},
		{"a text of the side itself split over events", respond(sentRequest{}, 200, stream, delta(1, "amber")+delta(2, "finch17q")), false},
		{"the text of the request", respond(sentRequest{offered: cobalt.canary(3)}, 200, nil, cobalt.canary(3)), false},
		{"more than the text of the request", respond(sentRequest{offered: cobalt.canary(3)}, 200, nil, cobalt.canary(31)), true},
		{"an identifier", respond(sentRequest{}, 200, nil, `{"id":"`+theirs.String()+`"}`), true},
		{"an identifier in a header", respond(sentRequest{}, 200, stdhttp.Header{"X-Turn-Id": {theirs.String()}}, ""), true},
		{"an identifier as a UUID", respond(sentRequest{}, 200, nil, uuid), true},
		{"the identifier of the request", respond(sentRequest{offered: theirs.String()}, 404, nil, theirs.String()), false},
		{"a cursor", respond(sentRequest{}, 200, nil, `{"next_cursor":"`+cursor+`"}`), true},
		{"a text in the log", line("title " + cobalt.canary(3)), true},
		{"an email address in the log", line(strings.ToUpper(cobalt.email())), true},
		{"a session token in the log", line("cookie s1_abc"), true},
		{"a share token in the log", line("/shared/sh1_abc"), true},
		{"a token of a mail in the log", line("token mt1_abc"), true},
		{"an account identifier in the log", line(protocol.NewAccountID().String()), true},
		{"a cursor in the log", line("cursor=" + cursor), true},
		{"a turn identifier in the log", line("turn " + protocol.NewTurnID().String()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newLeakChecker()
			s.response(sentRequest{by: cobalt}, "GET /", 200, nil, []byte(theirs.String()+" "+cursor+" "+cobalt.canary(3)))
			if !s.clean() {
				t.Fatal("a response with data of the side itself counts as a leak")
			}
			if test.show(s); s.clean() == test.leaks {
				t.Errorf("leaks: %v, want any: %v", s.leaks, test.leaks)
			}
		})
	}
}

// TestTheWalkFindsARouteThatLeaks adds a route that returns a conversation of any account. The walk knows the route
// from the document only.
func TestTheWalkFindsARouteThatLeaks(t *testing.T) {
	t.Parallel()
	iso := newIsolation(t, func(iso *isolation) route.Route {
		return route.Call("GET", "/planted/{conversation_id}", "planted", "", route.Reads, func(ctx context.Context, in *resource.InConversation) (*resource.Body[protocol.ConversationPage], error) {
			for _, account := range iso.accounts {
				if page, err := iso.DB.Conversations.ConversationPage(ctx, account.AccountID, in.ConversationID); err == nil {
					return resource.OK(*page), nil
				}
			}
			return nil, &protocol.Error{Code: protocol.CodeNotFound}
		})
	})
	const enough = 20_000
	iso.walk(t, 1, enough)
	if iso.checker.clean() {
		t.Errorf("%d responses were searched and no leak of the planted route was found", iso.checker.responses)
	}
}
