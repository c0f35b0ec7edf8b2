package failpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/verify"
	"turnstone/providers/embedded"
	"turnstone/providers/model/modeltest"
)

// The lengths of the model's answers in pieces, and the interval between two pieces. A long answer lasts for several
// rounds of lease renewal, an endless one until it is stopped.
const (
	pieces        = 25
	longPieces    = 150
	endlessPieces = 3000
	interval      = 15 * time.Millisecond
)

// How long a turn may continue after SIGTERM. A turn that does not end by itself is handed over after shortGrace. Every
// step ends within longGrace, and the process does not wait for the rest of it.
const (
	shortGrace = 300 * time.Millisecond
	longGrace  = 2 * sitetest.HangGuard
)

// installation runs a group of cells. It has one database, one program at a time, a model and a tool with a side effect
// that run longer than the program, and one user.
type installation struct {
	*sitetest.Site
	groupT  *testing.T // of the group
	t       *testing.T // of the cell
	p       *sitetest.Process
	user    *sitetest.User
	model   *modeltest.Server
	effects *effects
	db      *pgx.Conn
	over    func() // ends the plan of the cell's fault
}

// effects is the stand-in that records the effects of the tool.
type effects struct {
	server *httptest.Server
	mu     sync.Mutex
	noted  map[string]int // guarded by mu
}

func (e *effects) serve(w http.ResponseWriter, r *http.Request) {
	var in struct{ Note string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noted[in.Note]++
	_, _ = io.WriteString(w, "noted")
}

func (e *effects) of(note string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.noted[note]
}

func install(t *testing.T, grace time.Duration) *installation {
	t.Helper()
	s := &installation{groupT: t, t: t, effects: &effects{noted: map[string]int{}}}
	s.effects.server = httptest.NewServer(http.HandlerFunc(s.effects.serve))
	t.Cleanup(s.effects.server.Close)
	s.model = modeltest.NewServer(modeltest.Chat, modeltest.Script{})
	s.model.SetScript(modeltest.Script{Respond: s.respond, Interval: interval})
	t.Cleanup(s.model.Close)
	s.begin("TURNSTONE_DRAIN_GRACE="+grace.String(), "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+s.model.URL,
		"TURNSTONE_MODEL_BALANCED=reciter", "TURNSTONE_MODEL_CODING=reciter", "TURNSTONE_FAILPOINT_EFFECT_URL="+s.effects.server.URL, "TURNSTONE_SEARCH_PROVIDERS=bundled")
	return s
}

// begin creates the site with settings, starts the program, and creates the user.
func (s *installation) begin(settings ...string) {
	s.t.Helper()
	t := s.t
	s.Site = sitetest.NewSite(t, settings...)
	s.Build = sitetest.Failpoints
	s.launch()
	s.p.AwaitLog("turnstone serves")
	t.Cleanup(func() {
		s.p.Kill()
		sitetest.CheckLog(t, s.p.Stderr()+s.p.Stdout())
	})
	s.user = sitetest.NewUser(t, s.Base)
	address, err := url.Parse(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser) // row-level security does not apply to it
	if s.db, err = pgx.Connect(t.Context(), address.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close(context.Background()) })
}

// switchTo switches to the next cell, which plans a fault of its own.
func (s *installation) switchTo(t *testing.T) { s.t, s.p.T, s.over = t, t, nil }

// respond answers as react does. The first answer to a message with the word "held" stalls, so that its turn ends only
// after the next process has called the model again.
func (s *installation) respond(request modeltest.Request) modeltest.Step {
	step, asked := react(request), request.Messages[len(request.Messages)-1].Text
	if strings.Contains(asked, " held ") && s.modelCalls(asked) == 1 {
		step.Fault, step.After = modeltest.Stall, longPieces
	}
	return step
}

// react answers with the last message, or calls a tool if that message is "call <tool> <note>" (after the canary).
func react(request modeltest.Request) modeltest.Step {
	usage := &llm.Usage{InputTokens: 1, OutputTokens: pieces}
	last := request.Messages[len(request.Messages)-1]
	if last.Role == "tool" {
		return modeltest.Step{Text: []string{"The tool ", "says: ", last.Text}, Usage: usage}
	}
	words := strings.Fields(last.Text)
	if len(words) == 4 && words[1] == "call" {
		input := `{"expression":"6*7"}`
		if words[2] != "calculate" {
			input = fmt.Sprintf(`{"note":%q}`, words[3])
		}
		return modeltest.ToolThenAnswer(words[2], input)(request)
	}
	return modeltest.Step{Text: reciting(last.Text), Usage: usage}
}

func reciting(asked string) []string {
	said, length := []string{"Of “" + asked + "”: "}, pieces
	switch {
	case strings.Contains(asked, " long "), strings.Contains(asked, " held "):
		length = longPieces
	case strings.Contains(asked, " endless "):
		length = endlessPieces
	}
	for i := range length {
		said = append(said, fmt.Sprint(i, " "))
	}
	return said
}

// modelCalls returns the number of model calls whose last message ends with text. The service sends messages of a user as one
// if no answer is between them.
func (s *installation) modelCalls(text string) int {
	n := 0
	for _, request := range s.model.Requests() {
		if last := request.Messages[len(request.Messages)-1]; strings.HasSuffix(last.Text, text) {
			n++
		}
	}
	return n
}

// plan declares the start of the cell's fault.
func (s *installation) plan() {
	if s.over == nil {
		s.over = s.user.Ledger.Plan()
	}
}

// endPlan declares the end of the cell's fault.
func (s *installation) endPlan() {
	if s.over != nil {
		s.over()
	}
}

// arm replaces the armed failpoints of the running program by those of a specification.
func (s *installation) arm(spec string) {
	s.t.Helper()
	s.plan()
	if err := sitetest.Arm(sitetest.Within(s.t, sitetest.HangGuard), s.Internal, spec); err != nil {
		s.t.Fatalf("arming %s: %v", spec, err)
	}
}

// awaitFailpoint waits until the cell's point has failed. If the failure ends the program, it starts the program again.
func (s *installation) awaitFailpoint(c cell) {
	s.t.Helper()
	if c.ends() {
		s.awaitExit(c)
		s.restart()
		return
	}
	sitetest.Eventually(s.t, c.spec()+" fires", func() bool {
		_, body, err := sitetest.Fetch(s.t, http.MethodGet, "http://"+s.Internal+"/failpoints", "")
		fired := map[string]int{}
		if err == nil {
			err = json.Unmarshal([]byte(body), &fired)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return fired[string(c.point)] > 0
	})
}

// awaitExit waits until the program has killed itself or stopped in an orderly way.
func (s *installation) awaitExit(c cell) {
	s.t.Helper()
	want := 0
	if c.kills() {
		want = -1
	}
	if code := s.p.Exit(); code != want {
		s.t.Fatalf("the program ended with exit code %d, want %d", code, want)
	}
	sitetest.CheckLog(s.t, s.p.Stderr()+s.p.Stdout())
}

// restart restarts the program. more are additional settings, which may arm failpoints.
func (s *installation) restart(more ...string) {
	s.t.Helper()
	s.plan()
	s.p.Kill()
	s.launch(more...)
	s.p.AwaitLog("turnstone serves")
}

// launch starts the program without waiting for it, because a failpoint may kill it at once. The program keeps running
// after the cell.
func (s *installation) launch(more ...string) {
	s.t.Helper()
	s.p = s.Build.Start(s.groupT, append(s.Environment[:len(s.Environment):len(s.Environment)], more...), "serve")
	s.p.T = s.t
}

// queryOne runs a query and returns its only value.
func queryOne[T any](s *installation, sql string, args ...any) (value T) {
	s.t.Helper()
	if err := s.db.QueryRow(sitetest.Within(s.t, sitetest.HangGuard), sql, args...).Scan(&value); err != nil {
		s.t.Fatal(err)
	}
	return value
}

func (s *installation) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(sitetest.Within(s.t, sitetest.HangGuard), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

// rowID converts an identifier of the API to its form in the database.
func rowID(t *testing.T, text string) string {
	t.Helper()
	var conversation protocol.ConversationID
	var turn protocol.TurnID
	switch {
	case turn.UnmarshalText([]byte(text)) == nil:
		return uuid.UUID(turn).String()
	case conversation.UnmarshalText([]byte(text)) == nil:
		return uuid.UUID(conversation).String()
	}
	t.Fatalf("%q is not the identifier of a turn or a conversation", text)
	return ""
}

// wantStatus compares the outcome of a request with a status; cut means no response.
func (s *installation) wantStatus(want int, refused *sitetest.Response, stream *sitetest.Stream, err error) {
	s.t.Helper()
	got := cut
	switch {
	case stream != nil:
		got = okay
	case err == nil:
		got = refused.Status
	}
	if got == want {
		return
	}
	if refused != nil {
		s.t.Fatalf("status %d, want %d: %s", got, want, refused.Body)
	}
	s.t.Fatalf("status %d, want %d (%v)", got, want, err)
}

var keys atomic.Int64

// newKey returns a new idempotency key or client_steering_id.
func newKey() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

// liveTurn is a turn with two readers that keep trying while the program is down.
type liveTurn struct {
	conversation, text string
	turn               string        // set before known is closed
	known              chan struct{} // closed when the turn is known, or when its start has failed
	ended              [2]chan error
}

func (s *installation) newLiveTurn(text string) *liveTurn {
	s.t.Helper()
	return &liveTurn{conversation: s.user.NewConversation(s.t), text: text, known: make(chan struct{}), ended: [2]chan error{make(chan error, 1), make(chan error, 1)}}
}

// start starts the turn, repeating the request with the same key until it succeeds, and the two readers.
func (k *liveTurn) start(s *installation) {
	s.t.Helper()
	began := make(chan string, 1)
	ctx, key := sitetest.Within(s.t, sitetest.HangGuard), newKey()
	go func() {
		defer close(began)
		var stream *sitetest.Stream
		var refused *sitetest.Response
		var err error
		waited := clocktest.Poll(ctx, sitetest.PollEvery, func() bool {
			stream, refused, err = s.user.TryChat(ctx, sitetest.NewChatBody(k.text).In(k.conversation), "Idempotency-Key", key)
			return stream != nil || refused != nil && refused.Status != http.StatusServiceUnavailable
		})
		switch {
		case stream != nil:
			began <- stream.Turn
			k.ended[0] <- s.user.Watch(ctx, stream.Turn, stream, nil)
		case waited != nil:
			k.ended[0] <- errors.Join(waited, err)
		default:
			k.ended[0] <- fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
		}
	}()
	go func() {
		k.turn = <-began
		close(k.known)
		if k.turn == "" {
			k.ended[1] <- errors.New("there is no turn to follow")
			return
		}
		k.ended[1] <- s.user.Watch(ctx, k.turn, nil, nil)
	}()
}

// awaitText waits for the first text of the turn's answer.
func (k *liveTurn) awaitText(s *installation) {
	s.t.Helper()
	<-k.known
	stream, refused, err := s.user.Follow(sitetest.Within(s.t, sitetest.HangGuard), k.turn, 0, "")
	if err != nil || refused != nil {
		s.t.Fatalf("following %s: %v %+v", k.turn, err, refused)
	}
	defer stream.Close()
	stream.AwaitKind(s.t, "answer.delta")
}

// awaitEnd waits for both readers, then reads the log once more and checks the invariants.
func (k *liveTurn) awaitEnd(s *installation, told ...verify.Command) *verify.Turn {
	s.t.Helper()
	for _, ended := range k.ended {
		sitetest.AwaitEnd(s.t, ended)
	}
	return s.invariants(k.turn, k.conversation, told...)
}

const (
	chunksSQL = `select first_sequence, last_sequence, epoch, frames from turn_events where turn_id = $1 order by first_sequence`
	endSQL    = `
select t.terminal and t.next_sequence = $2 + 1 and r.last_sequence = $2 and t.owner_epoch >= (select max(epoch) from turn_events where turn_id = $1)
from turns t join turn_replays r using (account_id, turn_id) where t.turn_id = $1`
	leftSQL  = `select count(*) from conversations where conversation_id = $1 and live_turn_id is not null`
	turnsSQL = `select count(*) from turns where conversation_id = $1`
)

// invariants compares the log of a turn with its rows, and with what readers saw and clients were told, as CheckTurn does.
// The conversation has no live turn and one turn in all, with its question and its answer.
func (s *installation) invariants(turn, conversation string, told ...verify.Command) *verify.Turn {
	s.t.Helper()
	read := s.user.CheckTurn(s.t, turn, told...)
	turnID, conversationID := rowID(s.t, turn), rowID(s.t, conversation)
	rows, err := s.db.Query(sitetest.Within(s.t, sitetest.HangGuard), chunksSQL, turnID)
	if err != nil {
		s.t.Fatal(err)
	}
	chunks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[verify.Chunk])
	if err != nil {
		s.t.Fatal(err)
	}
	stored, found := verify.ReadChunks(turn, chunks)
	sitetest.Report(s.t, "the rows", found, s.user.Witness.CheckAll(turn, stored))
	if !queryOne[bool](s, endSQL, turnID, len(read.Events)) {
		s.t.Error("the turn's row contradicts its log")
	}
	if live, turns := queryOne[int](s, leftSQL, conversationID), queryOne[int](s, turnsSQL, conversationID); live != 0 || turns != 1 {
		s.t.Errorf("the conversation has %d turns, live: %d", turns, live)
	}
	if messages := s.user.Messages(s.t, conversation); len(messages) != 2 {
		s.t.Fatalf("%d messages", len(messages))
	}
	return read
}

// wantRecited checks that the turn completed, and that its answer is complete and not repeated.
func (s *installation) wantRecited(text string, read *verify.Turn) {
	s.t.Helper()
	want := strings.Join(reciting(sitetest.Canary+" "+text), "")
	if got := strings.Join(sitetest.Texts(read.Parts), "|"); read.End.Status != protocol.TurnCompleted || got != want {
		s.t.Errorf("the turn ended %s (%+v) with the text %q, want %q", read.End.Status, read.End.Error, got, want)
	}
}

func (s *installation) wantTakeovers(want int, read *verify.Turn) {
	s.t.Helper()
	if got := takeovers(read); got != want {
		s.t.Errorf("taken over %d times, want %d", got, want)
	}
}

// takeovers returns how often a turn was taken over.
func takeovers(read *verify.Turn) (n int) {
	for _, e := range read.Events {
		if e.Type == "turn.recovering" {
			n++
		}
	}
	return n
}
