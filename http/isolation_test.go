package http

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	testflag "flag"
	"fmt"
	"math/rand/v2"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/actors"
	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/scripted"
	"turnstone/providers/tool"
)

// The isolation walk: two accounts and somebody without one take random steps through the whole API, live turns
// included, on a real Postgres, a real Redis and a real node, and nothing of one may reach another or the log. The
// isolation_spy_test.go says how that is found out, isolation_ask_test.go what is asked.
//
//	go test ./http -run TestNobodySeesWhatIsAnothers -isolation.seed 7 -isolation.walkers 1
//
// repeats a run: the seed decides every choice, and one walker a side makes their order as firm as turns that live by
// themselves allow.
var (
	isolationSeed      = testflag.Uint64("isolation.seed", 0, "of the isolation walk; 0: a new one")
	isolationResponses = testflag.Int("isolation.responses", 50_000, "how many responses the isolation walk searches")
	isolationWalkers   = testflag.Int("isolation.walkers", 4, "of each account of the isolation walk")
)

// leastResponses are walked whatever the flag says, so that a walk that stood still is not taken for a good one.
const leastResponses = 200

// maxRefused is how often a machine that is busy may answer 503 where a walk needs a success.
const maxRefused = 100

func (s side) email() string    { return markers[s] + "0q@example.com" }
func (s side) password() string { return markers[s] + " long and secret" }

// isolation is a walk under way.
type isolation struct {
	*world
	spy      *spy
	routes   []route // each as often as it is drawn
	ofTurns  []route
	estates  [sides]*estate
	accounts [sides]protocol.Account
	serial   atomic.Int64 // of canaries
	left     atomic.Int64 // responses to go
}

// walker takes steps for one side, with a session of its own.
type walker struct {
	*isolation
	side  side
	rng   *rand.Rand
	token string
	csrf  string
}

func (w *walker) estate() *estate { return w.estates[w.side] }

func (w *walker) otherSide() side {
	if w.side == nobody {
		return side(w.rng.IntN(int(nobody)))
	}
	return cobalt - w.side
}

func (w *walker) other() *estate { return w.estates[w.otherSide()] }
func (w *walker) canary() string { return w.side.canary(w.serial.Add(1)) }

// newIsolation starts a service, with further routes if a test plants some.
func newIsolation(t *testing.T, planted ...func(*isolation) route) *isolation {
	t.Helper()
	redis, database := embeddedtest.Redis(t).URL(), pgtest.NewDatabase(t)
	strong := argonParams
	argonParams = &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32} // else hashes are most of the work
	t.Cleanup(func() { argonParams = strong })
	plenty := persistence.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}
	iso := &isolation{spy: newSpy()}
	log := zap.New(newSpyCore(iso.spy))
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var config Config
	iso.world = worldOn(t, database, func(c *Config) {
		c.DB, c.Log, c.Limiter = db, log, limiterWith(t, redis, plenty)
		turns := persistence.NewTurns(db, persistence.TurnsOptions{Logger: log})
		t.Cleanup(turns.Close)
		const live = 50
		node := actors.NewNode(actors.Config{
			Store: turns, Log: turns, Directory: persistence.NewDirectory(db, persistence.DirectoryOptions{MaxLiveTurns: live, Logger: log}),
			Model: talkative{scripted.New(scripted.Options{})}, Routes: actors.DefaultRoutes("a", "b", "c"), Tools: tool.All(),
			MaxLiveTurns: live, Logger: log, Fenced: func() { t.Error("the node was fenced") },
		})
		if err := node.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Stop)
		c.Turns, c.TurnStore = node, storedTurns{turns, db}
		config = *c
	})
	if len(planted) > 0 {
		if iso.Server, err = newServer(config, func(s *Server) []route {
			list := s.table()
			for _, plant := range planted {
				list = append(list, plant(iso))
			}
			return list
		}); err != nil {
			t.Fatal(err)
		}
	}
	for s := range sides {
		iso.estates[s] = newEstate()
		if s != nobody {
			iso.accounts[s] = iso.member(s)
		}
	}
	iso.routes, iso.ofTurns = iso.drawn(), iso.naming("turn_id")
	return iso
}

// member registers the account of a side over the API.
func (iso *isolation) member(s side) protocol.Account {
	c := iso.client()
	c.keep(c.expect(201, "POST", "/auth/register", object{"email": s.email(), "password": s.password(), "display_name": s.canary(0)}))
	return c.account
}

// enter gives a walker a new session. It is stored directly: signing in by password is walked too, but costs a hash.
func (w *walker) enter(ctx context.Context) error {
	token, session := w.newToken(w.canary())
	if err := w.DB.CreateSession(ctx, w.accounts[w.side].AccountID, session, persistence.Requester{}); err != nil {
		return err
	}
	w.token = token
	w.csrf = w.csrfToken(&Caller{SessionID: session.SessionID, tokenHash: session.TokenHash})
	return nil
}

// walk takes steps until as many responses were searched as are wanted, or something was found.
func (iso *isolation) walk(t *testing.T, seed uint64, responses int) {
	t.Helper()
	began := time.Now()
	iso.left.Store(int64(responses))
	var walkers sync.WaitGroup
	for s := range nobody {
		for i := range *isolationWalkers {
			rng := rand.New(rand.NewPCG(seed, uint64(s)<<32|uint64(i))) //nolint:gosec // a seed that can be repeated
			w := &walker{isolation: iso, side: s, rng: rng}
			walkers.Go(func() { w.run(t, &walker{isolation: iso, side: nobody, rng: rng}) })
		}
	}
	walkers.Wait()
	took := time.Since(began)
	iso.spy.mu.Lock()
	t.Logf("seed %d: %d responses (%.1f MB) and %d lines of the log searched in %v, %d identifiers, tokens and cursors known; by status %v",
		seed, iso.spy.responses, float64(iso.spy.bytes)/1e6, iso.spy.lines, took.Round(time.Millisecond), len(iso.spy.owners), iso.spy.statuses)
	iso.spy.mu.Unlock()
}

// run takes steps, one in five as nobody.
func (w *walker) run(t *testing.T, stranger *walker) {
	const strangers = 5
	refused := 0
	for t.Context().Err() == nil && w.spy.clean() && w.left.Load() > 0 {
		if w.token == "" {
			switch err := w.enter(t.Context()); {
			case protocol.CodeOf(err) == protocol.CodeUnavailable && refused < maxRefused: // the machine is busy
				refused++
				continue
			case err != nil:
				t.Errorf("storing a session: %v", err)
				return
			}
		}
		if w.rng.IntN(strangers) == 0 {
			stranger.step(t.Context())
		} else {
			w.step(t.Context())
		}
	}
}

// step asks one request and looks at its answer.
func (w *walker) step(ctx context.Context) {
	d := w.draft()
	request := d.request(ctx)
	defer func() { d.leave() }()
	q, answer := w.exchange(request, d.route.name())
	w.judge(d, q, answer)
	if w.side != nobody && answer.status == stdhttp.StatusUnauthorized && !d.route.policy.Public {
		w.token = "" // it was ended by another walker of this side
	}
	if answer.status < 300 || answer.status == stdhttp.StatusConflict {
		w.estate().learn(d.route.name(), d.path, answer.body)
	}
	if d.route.method == "DELETE" && answer.status < 300 {
		w.estate().forget(d.path["conversation_id"])
	}
	w.follow(ctx, d, answer)
}

// exchange sends a request and shows the whole of it to the spy.
func (w *walker) exchange(request *stdhttp.Request, pattern string) (question, *reply) {
	recorder := &headNoting{ResponseRecorder: httptest.NewRecorder()}
	if pattern == "POST /chat" {
		recorder.began = w.estate().begin
	}
	return w.exchangeOn(recorder, request, pattern)
}

func (w *walker) exchangeOn(recorder *headNoting, request *stdhttp.Request, pattern string) (question, *reply) {
	q := question{by: w.side, line: request.Method + " " + request.URL.RequestURI(), offered: offeredBy(request)}
	w.ServeHTTP(recorder, request)
	answer := &reply{status: recorder.Code, header: recorder.Result().Header, body: recorder.Body.Bytes()}
	w.spy.response(q, pattern, answer.status, answer.header, answer.body)
	w.left.Add(-1)
	return q, answer
}

// headNoting tells of a turn as soon as its stream begins.
type headNoting struct {
	*httptest.ResponseRecorder
	began func(turn string)
}

func (h *headNoting) WriteHeader(status int) {
	if turn := h.Header().Get("X-Turn-Id"); turn != "" && h.began != nil {
		h.began(turn)
	}
	h.ResponseRecorder.WriteHeader(status)
}

// offeredBy is everything that a request brings but its session.
func offeredBy(request *stdhttp.Request) string {
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

// judge looks at what an answer says by its status alone.
func (w *walker) judge(d *draft, q question, answer *reply) {
	told := answer.status < 300 || answer.status == stdhttp.StatusConflict || answer.status == stdhttp.StatusGone
	for id, inPath := range d.named { // of one in the body, 409 may be about the asker's own that the path names
		if (answer.status < 300 || inPath && told) && w.spy.foreign(w.side, id) {
			w.spy.leak("%s was answered %d about %s, which is another's: %s\n%s", w.side, answer.status, id, q.line, clipped(answer.body))
		}
	}
	if d.cursor && answer.status < 300 {
		w.spy.leak("%s went on from another's cursor: %s\n%s", w.side, q.line, clipped(answer.body))
	}
	if w.side == nobody && told && !d.route.policy.Public {
		w.spy.leak("nobody was answered %d: %s\n%s", answer.status, q.line, clipped(answer.body))
	}
	if answer.status >= 500 && answer.status != stdhttp.StatusServiceUnavailable {
		w.spy.leak("%s was answered %d: %s\n%s", w.side, answer.status, q.line, clipped(answer.body))
	}
}

// follow takes over what an answer says about the session, and makes sure that an ended one is worth nothing.
func (w *walker) follow(ctx context.Context, d *draft, answer *reply) {
	if w.token == "" || d.route.policy.Public {
		return
	}
	for _, cookie := range (&stdhttp.Response{Header: answer.header}).Cookies() {
		switch {
		case cookie.Name != w.cookieName():
		case cookie.MaxAge >= 0:
			var info protocol.SessionInfo
			_ = json.Unmarshal(answer.body, &info) // what tells no CSRF token makes the next unsafe request a 403
			w.token, w.csrf = cookie.Value, info.CSRFToken
		case answer.status < 300:
			request := httptest.NewRequestWithContext(ctx, "GET", "https://turnstone.example/auth/session", nil)
			request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: w.token})
			if q, after := w.exchange(request, "GET /auth/session"); after.status != stdhttp.StatusUnauthorized && after.status != stdhttp.StatusServiceUnavailable {
				w.spy.leak("%s: a session that had ended was answered %d: %s", w.side, after.status, q.line)
			}
			w.token = ""
		}
	}
}

// wantsTool in what a user says makes the model think aloud and call a tool with the user's words.
const wantsTool = "with a tool"

// talkative is the scripted model, and repeats the user's words in every kind of output.
type talkative struct{ actors.Model }

func (m talkative) Stream(ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	last := request.Messages[len(request.Messages)-1]
	if last.Role != "user" || !strings.Contains(last.Text, wantsTool) {
		return m.Model.Stream(ctx, request, emit)
	}
	input, err := json.Marshal(map[string]string{"expression": "6*7 " + last.Text})
	if err != nil {
		return err
	}
	for _, chunk := range []actors.ModelChunk{
		{Kind: actors.ChunkReasoning, Text: "They said: " + last.Text},
		{Kind: actors.ChunkToolCall, ToolCall: actors.ModelToolCall{ID: "call-1", Name: "calculate", Input: input}},
		{Kind: actors.ChunkOpaque, Opaque: input},
		{Kind: actors.ChunkUsage, Usage: actors.ModelUsage{InputTokens: 1, OutputTokens: 1}},
		{Kind: actors.ChunkStop, Stop: actors.StopToolCalls},
	} {
		if err := emit(chunk); err != nil {
			return err
		}
	}
	return nil
}

// attackLive has a side begin a long turn, and another, then nobody, do whatever can be done to a turn while it lives:
// each is answered as about one that is not there. Then its own side steers it and ends it.
func (iso *isolation) attackLive(t *testing.T, s side) {
	t.Helper()
	owner, other, guest := &walker{isolation: iso, side: s}, &walker{isolation: iso, side: cobalt - s}, &walker{isolation: iso, side: nobody}
	for _, w := range []*walker{owner, other} {
		if err := w.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		request := owner.signed(t.Context(), "POST", "/chat", object{"input": []object{{"type": "text", "text": owner.canary() + " [[script tokens=2000 interval=20ms]]"}}})
		request.Header.Set(keyHeader, owner.canary())
		status := stdhttp.StatusServiceUnavailable
		for again := 0; status == stdhttp.StatusServiceUnavailable && again < maxRefused; again++ {
			request.Body = &readBody{bytes.NewReader(request.Body.(*readBody).all), request.Body.(*readBody).all}
			_, answer := owner.exchangeOn(&headNoting{httptest.NewRecorder(), func(turn string) { began <- turn }}, request, "POST /chat")
			status = answer.status
		}
	}()
	var turn string
	select {
	case turn = <-began:
	case <-ended:
		t.Fatal("no turn began")
	}
	steer := func(w *walker, body object) object {
		body["turn_id"], body["input"], body["client_steering_id"] = turn, []object{{"type": "text", "text": w.canary()}}, w.canary()
		return body
	}
	ask := func(w *walker, status int, method, path, pattern string, body object) (told struct {
		ConversationID string `json:"conversation_id"`
		FollowUpID     string `json:"follow_up_id"`
	},
	) {
		_, answer := w.exchange(w.signed(t.Context(), method, path, body), method+" "+pattern)
		for again := 0; answer.status == stdhttp.StatusServiceUnavailable && again < maxRefused; again++ {
			_, answer = w.exchange(w.signed(t.Context(), method, path, body), method+" "+pattern)
		}
		if answer.status != status {
			t.Errorf("%s: %s %s of a live turn of %s: %d %s, want %d", w.side, method, path, s, answer.status, answer.body, status)
		} else if status < 300 {
			_ = json.Unmarshal(answer.body, &told) // what is of another shape tells nothing of these
		}
		return told
	}
	conversation := ask(owner, stdhttp.StatusOK, "GET", "/chat/turns/"+turn, "/chat/turns/{turn_id}", nil).ConversationID
	queued := ask(owner, stdhttp.StatusAccepted, "POST", "/chat", "/chat", object{
		"conversation_id": conversation, "input": []object{{"type": "text", "text": owner.canary()}}, "if_busy": "queue",
	})
	item, held := "/conversations/"+conversation+"/follow-ups/"+queued.FollowUpID, object{"state": "held", "version": 1}
	for w, status := range map[*walker]int{other: stdhttp.StatusNotFound, guest: stdhttp.StatusUnauthorized} {
		ask(w, status, "GET", "/chat/turns/"+turn, "/chat/turns/{turn_id}", nil)
		ask(w, status, "GET", "/chat/turns/"+turn+"/events", "/chat/turns/{turn_id}/events", nil)
		ask(w, status, "GET", "/chat/turns/"+turn+"/events?mode=snapshot", "/chat/turns/{turn_id}/events", nil)
		for _, body := range []object{{"type": "input", "delivery": "interrupt"}, {"type": "input"}, {"type": "cancel"}, {"type": "withdraw", "steering_id": protocol.NewSteeringID().String()}} {
			ask(w, status, "POST", "/chat/steering", "/chat/steering", steer(w, body))
		}
		ask(w, status, "PATCH", item, "/conversations/{conversation_id}/follow-ups/{follow_up_id}", held)
	}
	ask(owner, stdhttp.StatusOK, "PATCH", item, "/conversations/{conversation_id}/follow-ups/{follow_up_id}", held)
	ask(owner, stdhttp.StatusAccepted, "POST", "/chat/steering", "/chat/steering", steer(owner, object{"type": "input", "delivery": "interrupt"}))
	ask(owner, stdhttp.StatusAccepted, "POST", "/chat/steering", "/chat/steering", steer(owner, object{"type": "cancel"}))
	<-ended
}

// signed makes a request of a walker's, with its session if it has one.
func (w *walker) signed(ctx context.Context, method, path string, body object) *stdhttp.Request {
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
		request.Header.Set(csrfHeader, w.csrf)
	}
	return request
}

// withoutRowSecurity takes the second wall away, so that every statement stands on its own filter by owner.
func (iso *isolation) withoutRowSecurity(t *testing.T) {
	t.Helper()
	iso.database.Admin(t, `
		do $$ declare t regclass; begin
			for t in select oid from pg_class where relrowsecurity and relnamespace = 'public'::regnamespace loop
				execute format('alter table %s disable row level security', t);
			end loop;
		end $$`)
}

// rest looks at what stands in the database in the end: no row of one account holds a text of another side. A key that
// somebody guessed is the guesser's own row, so keys do not count.
func (iso *isolation) rest(t *testing.T) {
	t.Helper()
	const tablesSQL = `
		select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`
	rows := 0
	for _, table := range query[string](iso.world, tablesSQL) {
		for s := range nobody {
			account, other := iso.accounts[s].AccountID, markers[cobalt-s]
			counts := query[int](iso.world, fmt.Sprintf(`
				select count(*)::int from %[1]s t where account_id = $1
				union all
				select count(*)::int from %[1]s t, lateral (select (to_jsonb(t) - 'key')::text as said) as said
				where account_id = $1 and (said like '%%' || $2::text || '%%' or said like '%%' || $3::text || '%%')`,
				pgx.Identifier{table}.Sanitize()), account, other, hex.EncodeToString([]byte(other)))
			rows += counts[0]
			if counts[len(counts)-1] > 0 {
				t.Errorf("%d rows of %s hold texts of %s", counts[len(counts)-1], s, other)
			}
		}
	}
	t.Logf("%d rows of both accounts hold nothing of each other", rows)
}

// covered makes sure that the walks went everywhere: every route answered somebody well but those that cannot here.
func covered(t *testing.T, walks ...*isolation) {
	t.Helper()
	for _, r := range walks[0].Server.routes {
		answers, good := 0, 0
		for _, iso := range walks {
			classes := iso.spy.routes[r.name()]
			good += classes[2]
			for _, count := range classes {
				answers += count
			}
		}
		if good == 0 && !strings.Contains(r.path, "{provider}") || answers == 0 {
			t.Errorf("%s never succeeded in %d answers", r.name(), answers)
		}
	}
}

func TestNobodySeesWhatIsAnothers(t *testing.T) {
	seed := *isolationSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // it is printed, to be repeated
	}
	var walks []*isolation
	for _, half := range []struct {
		name    string
		prepare func(*isolation, *testing.T)
	}{
		{"as it is", func(*isolation, *testing.T) {}},
		{"by the owner filters alone", (*isolation).withoutRowSecurity},
	} {
		t.Run(half.name, func(t *testing.T) {
			iso := newIsolation(t)
			half.prepare(iso, t)
			wanted := max(leastResponses, *isolationResponses/2)
			iso.walk(t, seed, wanted)
			for s := range nobody {
				iso.attackLive(t, s)
			}
			if iso.spy.report(t); t.Failed() {
				t.Fatalf("repeat it with -isolation.seed %d -isolation.walkers %d", seed, *isolationWalkers)
			}
			if responses, lines := iso.spy.searched(); responses < wanted || lines < wanted {
				t.Errorf("%d responses and %d lines of the log were searched, want %d", responses, lines, wanted)
			}
			iso.rest(t)
			walks = append(walks, iso)
		})
	}
	const enough = 40_000 // for the seldom ones to succeed whatever the seed
	if *isolationResponses >= enough && !t.Failed() {
		covered(t, walks...)
	}
}

// TestTheSpyFindsWhatIsPlanted holds the checker itself against every way in which a thing of one side may come out at
// another, and against what is none.
func TestTheSpyFindsWhatIsPlanted(t *testing.T) {
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
	line := func(text string) func(*spy) {
		return func(s *spy) { zap.New(newSpyCore(s)).Info("request", zap.String("said", text)) }
	}
	answer := func(q question, status int, header stdhttp.Header, body string) func(*spy) {
		q.by = amber
		return func(s *spy) { s.response(q, "GET /", status, header, []byte(body)) }
	}
	stream := stdhttp.Header{"Content-Type": {"text/event-stream"}}
	for _, test := range []struct {
		name  string
		show  func(*spy)
		leaks bool
	}{
		{"nothing", answer(question{}, 200, nil, "fine"), false},
		{"an own text", answer(question{}, 200, nil, amber.canary(3)), false},
		{"a text in a body", answer(question{}, 200, nil, `{"title":"`+cobalt.canary(3)+`"}`), true},
		{"a text in a header", answer(question{}, 200, stdhttp.Header{"Location": {"/" + cobalt.canary(3)}}, ""), true},
		{"a text in capitals", answer(question{}, 404, nil, strings.ToUpper(cobalt.canary(3))), true},
		{"a text in hexadecimal", answer(question{}, 500, nil, hex.EncodeToString([]byte(cobalt.canary(3)))), true},
		{"a text of nobody's", answer(question{}, 200, nil, nobody.canary(3)), true},
		{"a text cut into events", answer(question{}, 200, stream, delta(1, "cobalt")+delta(2, "heron17q")), true},
		{"an own text cut into events", answer(question{}, 200, stream, delta(1, "amber")+delta(2, "finch17q")), false},
		{"the text of the request", answer(question{offered: cobalt.canary(3)}, 200, nil, cobalt.canary(3)), false},
		{"more than the text of the request", answer(question{offered: cobalt.canary(3)}, 200, nil, cobalt.canary(31)), true},
		{"an identifier", answer(question{}, 200, nil, `{"id":"`+theirs.String()+`"}`), true},
		{"an identifier in a header", answer(question{}, 200, stdhttp.Header{"X-Turn-Id": {theirs.String()}}, ""), true},
		{"an identifier as a UUID", answer(question{}, 200, nil, uuid), true},
		{"the identifier of the request", answer(question{offered: theirs.String()}, 404, nil, theirs.String()), false},
		{"a cursor", answer(question{}, 200, nil, `{"next_cursor":"`+cursor+`"}`), true},
		{"a text in the log", line("title " + cobalt.canary(3)), true},
		{"an address in the log", line(strings.ToUpper(cobalt.email())), true},
		{"a session in the log", line("cookie s1_abc"), true},
		{"a share in the log", line("/shared/sh1_abc"), true},
		{"an account in the log", line(protocol.NewAccountID().String()), true},
		{"a cursor in the log", line("cursor=" + cursor), true},
		{"a turn in the log", line("turn " + protocol.NewTurnID().String()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSpy()
			s.response(question{by: cobalt}, "GET /", 200, nil, []byte(theirs.String()+" "+cursor+" "+cobalt.canary(3)))
			if !s.clean() {
				t.Fatal("an own answer is a leak")
			}
			if test.show(s); s.clean() == test.leaks {
				t.Errorf("found: %v, want %v", s.leaks, test.leaks)
			}
		})
	}
}

// TestTheWalkFindsARouteThatLeaks plants a route that answers about anybody's conversation. Nobody tells the walk about it.
func TestTheWalkFindsARouteThatLeaks(t *testing.T) {
	iso := newIsolation(t, func(iso *isolation) route {
		return call("GET", "/planted/{conversation_id}", "planted", "", reads, func(ctx context.Context, in *InConversation) (*body[protocol.ConversationPage], error) {
			for _, account := range iso.accounts {
				if page, err := iso.DB.ConversationPage(ctx, account.AccountID, in.ConversationID); err == nil {
					return ok(*page), nil
				}
			}
			return nil, &protocol.Error{Code: protocol.CodeNotFound}
		})
	})
	const enough = 20_000
	iso.walk(t, 1, enough)
	if iso.spy.clean() {
		t.Errorf("%d responses were searched and the planted route was not found", iso.spy.responses)
	}
}
