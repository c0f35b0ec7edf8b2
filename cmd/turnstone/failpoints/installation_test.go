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

	"turnstone/actors"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/embedded"
	"turnstone/providers/model/modeltest"
)

// How long an answer is: as many pieces, and between two of them the interval. A long one lasts for some rounds of the
// lease, an endless one until it is stopped.
const (
	pieces        = 25
	longPieces    = 150
	endlessPieces = 3000
	interval      = 15 * time.Millisecond
	// grace is what a turn may go on for after SIGTERM: less than a long one lasts.
	grace = 300 * time.Millisecond
)

// installation is where a group of cells is played: one database, one program at a time, a model and a tool with an
// effect that outlive it, and one user.
type installation struct {
	*sitetest.Site
	home    *testing.T // of the group
	t       *testing.T // of the cell
	p       *sitetest.Process
	user    *sitetest.User
	model   *modeltest.Server
	effects *effects
	db      *pgx.Conn
	over    func() // ends the plan of the cell's fault
}

// effects is the stand-in that the tool changes.
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

func install(t *testing.T) *installation {
	t.Helper()
	s := &installation{home: t, t: t, effects: &effects{noted: map[string]int{}}}
	s.effects.server = httptest.NewServer(http.HandlerFunc(s.effects.serve))
	t.Cleanup(s.effects.server.Close)
	s.model = modeltest.NewServer(modeltest.Chat, modeltest.Script{React: react, Interval: interval})
	t.Cleanup(s.model.Close)
	s.Site = sitetest.NewSite(t, "TURNSTONE_DRAIN_GRACE="+grace.String(), "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+s.model.URL,
		"TURNSTONE_MODEL_BALANCED=reciter", "TURNSTONE_MODEL_CODING=reciter", "TURNSTONE_FAILPOINT_EFFECT_URL="+s.effects.server.URL)
	s.Build = program
	s.launch()
	s.p.UntilLogged("turnstone serves")
	t.Cleanup(func() {
		s.p.Kill()
		sitetest.CheckLog(t, s.p.Complaints()+s.p.Printed())
	})
	s.user = sitetest.NewUser(t, s.Base)
	address, err := url.Parse(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser) // row-level security does not hold for it
	if s.db, err = pgx.Connect(t.Context(), address.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close(context.Background()) })
	return s
}

// at goes over to the next cell, which plans its own fault.
func (s *installation) at(t *testing.T) { s.t, s.p.T, s.over = t, t, nil }

// react recites what it was asked, and calls a tool if it was asked to: "call <tool> <note>".
func react(request modeltest.Request) modeltest.Step {
	usage := &actors.ModelUsage{InputTokens: 1, OutputTokens: pieces}
	last := request.Messages[len(request.Messages)-1]
	if last.Role == "tool" {
		return modeltest.Step{Text: []string{"The tool ", "says: ", last.Text}, Usage: usage}
	}
	words := strings.Fields(last.Text)
	if len(words) == 4 && words[1] == "call" {
		input := `{"expression":"6*7"}`
		if words[2] == "effect" {
			input = fmt.Sprintf(`{"note":%q}`, words[3])
		}
		return modeltest.ToolThenAnswer(words[2], input)(request)
	}
	return modeltest.Step{Text: reciting(last.Text), Usage: usage}
}

func reciting(asked string) []string {
	said, length := []string{"Of “" + asked + "”: "}, pieces
	switch {
	case strings.Contains(asked, " long "):
		length = longPieces
	case strings.Contains(asked, " endless "):
		length = endlessPieces
	}
	for i := range length {
		said = append(said, fmt.Sprint(i, " "))
	}
	return said
}

// asked counts the model calls that end with a text.
func (s *installation) asked(text string) int {
	n := 0
	for _, request := range s.model.Requests() {
		if last := request.Messages[len(request.Messages)-1]; last.Text == text {
			n++
		}
	}
	return n
}

// plan declares that the cell's fault begins; the end of the cell ends it.
func (s *installation) plan() {
	if s.over == nil {
		s.over = s.user.Ledger.Plan()
	}
}

// healed ends the plan.
func (s *installation) healed() {
	if s.over != nil {
		s.over()
	}
}

// arm makes the running program fail as the cell says, and in no other way.
func (s *installation) arm(spec string) {
	s.t.Helper()
	s.plan()
	request, err := http.NewRequestWithContext(sitetest.Within(s.t, sitetest.Soon), http.MethodPut, "http://"+s.Internal+"/failpoints", strings.NewReader(spec))
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(response.Body) // what there is of it is shown
		s.t.Fatalf("arming %s: %s %s", spec, response.Status, text)
	}
}

// strikes waits until the cell's point has failed. A program that ends of it is started again.
func (s *installation) strikes(c cell) {
	s.t.Helper()
	if c.kills() || c.terms() {
		s.ends(c)
		s.revive()
		return
	}
	sitetest.Eventually(s.t, c.spec()+" strikes", func() bool {
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

// ends waits until the program has killed itself, or has stopped in order.
func (s *installation) ends(c cell) {
	s.t.Helper()
	want := 0
	if c.kills() {
		want = -1
	}
	if code := s.p.Exit(); code != want {
		s.t.Fatalf("it ended with %d, want %d", code, want)
	}
	sitetest.CheckLog(s.t, s.p.Complaints()+s.p.Printed())
}

// revive starts the program anew. It is not armed unless more says so.
func (s *installation) revive(more ...string) {
	s.t.Helper()
	s.plan()
	s.p.Kill()
	s.launch(more...)
	s.p.UntilLogged("turnstone serves")
}

// launch does not wait for the program, which may be armed to die at once. It outlives the cell.
func (s *installation) launch(more ...string) {
	s.t.Helper()
	s.p = s.Build.Start(s.home, append(s.Environment[:len(s.Environment):len(s.Environment)], more...), "serve")
	s.p.T = s.t
}

// one reads one value.
func one[T any](s *installation, sql string, args ...any) (value T) {
	s.t.Helper()
	if err := s.db.QueryRow(sitetest.Within(s.t, sitetest.Soon), sql, args...).Scan(&value); err != nil {
		s.t.Fatal(err)
	}
	return value
}

func (s *installation) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(sitetest.Within(s.t, sitetest.Soon), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

// rowID is an identifier of the API as the database has it.
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
	t.Fatalf("%q is no identifier of a turn or a conversation", text)
	return ""
}

// wantStatus holds the answer to a request, which may have got none, against a status; cut is none.
func (s *installation) wantStatus(want int, refused *sitetest.Answer, stream *sitetest.Stream, err error) {
	s.t.Helper()
	got := cut
	switch {
	case stream != nil:
		got = okay
	case err == nil:
		got = refused.Status
	}
	if got == want || want == either && (got == okay || got == away) {
		return
	}
	if refused != nil {
		s.t.Fatalf("answered %d, want %d: %s", got, want, refused.Body)
	}
	s.t.Fatalf("answered %d, want %d (%v)", got, want, err)
}

var keys atomic.Int64

// newKey is an idempotency key, or the client's name of a steering input.
func newKey() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

// talk is a turn with two readers, who do not give up when the program is away.
type talk struct {
	conversation, text string
	turn               string        // set before known is closed
	known              chan struct{} // closed when there is a turn, or none will be
	ended              [2]chan error
}

func (s *installation) newTalk(text string) *talk {
	s.t.Helper()
	return &talk{conversation: s.user.NewConversation(s.t), text: text, known: make(chan struct{}), ended: [2]chan error{make(chan error, 1), make(chan error, 1)}}
}

// begin asks for the turn, with a key and as often as it takes.
func (k *talk) begin(s *installation) {
	s.t.Helper()
	began := make(chan string, 1)
	ctx, key := sitetest.Within(s.t, sitetest.Patience), newKey()
	go func() {
		defer close(began)
		for {
			stream, refused, err := s.user.TryChat(ctx, sitetest.Saying(k.text).In(k.conversation), "Idempotency-Key", key)
			if stream != nil {
				began <- stream.Turn
				k.ended[0] <- s.user.Watch(ctx, stream.Turn, stream, nil)
				return
			}
			if refused != nil && refused.Status != http.StatusServiceUnavailable {
				k.ended[0] <- fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
				return
			}
			if waited := sitetest.Pause(ctx, sitetest.PollEvery); waited != nil {
				k.ended[0] <- errors.Join(waited, err)
				return
			}
		}
	}()
	go func() {
		k.turn = <-began
		close(k.known)
		if k.turn == "" {
			k.ended[1] <- errors.New("there is no turn to read along")
			return
		}
		k.ended[1] <- s.user.Watch(ctx, k.turn, nil, nil)
	}()
}

// says waits until the turn has said something.
func (k *talk) says(s *installation) {
	s.t.Helper()
	<-k.known
	stream, refused, err := s.user.Follow(sitetest.Within(s.t, sitetest.Patience), k.turn, 0, "")
	if err != nil || refused != nil {
		s.t.Fatalf("following %s: %v %+v", k.turn, err, refused)
	}
	defer stream.Close()
	stream.AwaitKind(s.t, "answer.delta")
}

// ends waits for both readers, then reads the log once more and holds it against all that is always true.
func (k *talk) ends(s *installation) ([]sitetest.Event, *protocol.TurnFinished) {
	s.t.Helper()
	for _, ended := range k.ended {
		sitetest.AwaitEnd(s.t, ended)
	}
	return s.invariants(k.turn, k.conversation)
}

const (
	chunksSQL = `
select coalesce(bool_and(first_sequence = coalesce(before, 0) + 1 and epoch >= coalesce(epoch_before, 1)), false) and max(last_sequence) = $2
from (select first_sequence, last_sequence, epoch, lag(last_sequence) over w as before, lag(epoch) over w as epoch_before
      from turn_events where turn_id = $1 window w as (order by first_sequence)) as chunks`
	endSQL = `
select t.terminal and t.next_sequence = $2 + 1 and r.last_sequence = $2 and t.owner_epoch >= (select max(epoch) from turn_events where turn_id = $1)
from turns t join turn_replays r using (account_id, turn_id) where t.turn_id = $1`
	leftSQL  = `select count(*) from conversations where conversation_id = $1 and live_turn_id is not null`
	turnsSQL = `select count(*) from turns where conversation_id = $1`
)

// invariants: the log has no gap and one end, which is last; every reader saw the same, and nothing that is not in it;
// epochs never go back; the conversation is free and has one turn, with its question and its answer.
func (s *installation) invariants(turn, conversation string) ([]sitetest.Event, *protocol.TurnFinished) {
	s.t.Helper()
	events, end := s.user.WholeLog(s.t, turn) // contiguous from 1, the same bytes as all saw, nothing behind its end
	last := int64(len(events))
	if seen := s.user.Saw.Count(turn); seen != len(events) || end.LastSequence != last || sitetest.CountKind(events, "turn.finished") != 1 {
		s.t.Errorf("readers saw %d events, the log has %d, its end says %d", seen, last, end.LastSequence)
	}
	id, place := rowID(s.t, turn), rowID(s.t, conversation)
	if !one[bool](s, chunksSQL, id, last) {
		s.t.Error("the stored chunks have a gap, or an epoch went back")
	}
	if !one[bool](s, endSQL, id, last) {
		s.t.Error("the turn's row does not say what its log says")
	}
	if live, turns := one[int](s, leftSQL, place), one[int](s, turnsSQL, place); live != 0 || turns != 1 {
		s.t.Errorf("the conversation has %d turns, live: %d", turns, live)
	}
	messages := s.user.Messages(s.t, conversation)
	if len(messages) != 2 {
		s.t.Fatalf("%d messages", len(messages))
	}
	if told, kept := sitetest.Texts(sitetest.Fold(events)), sitetest.Texts(messages[1].Parts); strings.Join(told, "|") != strings.Join(kept, "|") {
		s.t.Errorf("the log says %q, the message %q", told, kept)
	}
	return events, end
}

// wantRecited: the answer to a question is whole, and there once.
func (s *installation) wantRecited(text string, events []sitetest.Event, end *protocol.TurnFinished) {
	s.t.Helper()
	want := strings.Join(reciting(sitetest.Canary+" "+text), "")
	if got := strings.Join(sitetest.Texts(sitetest.Fold(events)), "|"); end.Status != protocol.TurnCompleted || got != want {
		s.t.Errorf("it ended %s (%+v) and says %q, want %q", end.Status, end.Error, got, want)
	}
}

func (s *installation) wantTakeovers(want int, events []sitetest.Event) {
	s.t.Helper()
	if got := sitetest.CountKind(events, "turn.recovering"); got != want && (want != either || got > 1) {
		s.t.Errorf("taken over %d times, want %d", got, want)
	}
}
