package failpoints

import (
	"net/http"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// begins: POST /chat meets the fault; the repeat with the same key finds what is there, or begins.
type begins struct {
	answer int // to the first request
	turns  int // that are there after it
}

func (want begins) play(t *testing.T, s *installation, c cell) {
	conversation, key := s.user.NewConversation(t), newKey()
	body := sitetest.Saying("begin").In(conversation)
	s.user.Client.CloseIdleConnections() // on a new one Go's client does not repeat the request by itself
	s.arm(c.spec())
	stream, refused, err := s.user.TryChat(sitetest.Within(t, sitetest.Patience), body, "Idempotency-Key", key)
	s.strikes(c)
	s.wantStatus(want.answer, refused, stream, err)
	if stream != nil {
		want.turns = 1
		// Handed on, it does not end in this answer.
		if err := s.user.Watch(sitetest.Within(t, sitetest.Patience), stream.Turn, stream, nil); err != nil {
			t.Error(err)
		}
	}
	if there := one[int](s, turnsSQL, rowID(t, conversation)); there != want.turns {
		t.Errorf("%d turns are there, want %d", there, want.turns)
	}
	again := s.user.Chat(t, body, "Idempotency-Key", key)
	if replayed := again.Header.Get("Idempotent-Replayed") == "true"; replayed != (want.turns == 1) {
		t.Errorf("the repeat is a replay: %t", replayed)
	}
	again.ToTheEnd(t)
	events, end := s.invariants(again.Turn, conversation)
	s.wantRecited("begin", events, end)
}

// streams: a turn meets the fault while two readers follow it.
type streams struct {
	takeovers int
	asked     int  // how often the model was; 0: not looked at
	late      bool // armed once the turn speaks
}

func (want streams) play(t *testing.T, s *installation, c cell) {
	text := "a stream "
	if want.late {
		text = "a long stream "
	}
	k := s.newTalk(text + newKey())
	if !want.late {
		s.arm(c.spec())
	}
	k.begin(s)
	if want.late {
		k.says(s)
		s.arm(c.spec())
	}
	s.strikes(c)
	events, end := k.ends(s)
	s.wantRecited(k.text, events, end)
	s.wantTakeovers(want.takeovers, events)
	if asked := s.asked(sitetest.Canary + " " + k.text); want.asked > 0 && asked != want.asked {
		t.Errorf("the model was asked %d times, want %d", asked, want.asked)
	}
}

const epochSQL = `select owner_epoch from turns where turn_id = $1`

// claims: the process dies in the middle of a turn, and the next one meets the fault when it takes the turn over.
type claims struct{ epoch int }

func (want claims) play(t *testing.T, s *installation, c cell) {
	k := s.newTalk("a long claim " + newKey())
	k.begin(s)
	k.says(s)
	s.plan()
	s.p.Kill()
	s.launch("TURNSTONE_FAILPOINTS=" + c.spec())
	if !c.kills() && !c.terms() {
		s.p.UntilLogged("turnstone serves")
	}
	s.strikes(c)
	events, end := k.ends(s)
	s.wantRecited(k.text, events, end)
	epoch := one[int](s, epochSQL, rowID(t, k.turn))
	if want.epoch == either { // who was told to stop may have handed on what it had just claimed
		if seen := sitetest.CountKind(events, "turn.recovering"); seen < 1 || epoch <= seen || epoch > 3 {
			t.Errorf("taken over %d times, it ended in epoch %d", seen, epoch)
		}
		return
	}
	s.wantTakeovers(1, events)
	if epoch != want.epoch {
		t.Errorf("it ended in epoch %d, want %d", epoch, want.epoch)
	}
}

// tools: the model calls a tool, and the fault meets the call.
type tools struct {
	tool      string
	ends      protocol.ToolState
	effects   int // that the stand-in noted
	takeovers int
}

func (want tools) play(t *testing.T, s *installation, c cell) {
	note := newKey()
	k := s.newTalk("call " + want.tool + " " + note)
	s.arm(c.spec())
	k.begin(s)
	s.strikes(c)
	events, end := k.ends(s)
	s.wantTakeovers(want.takeovers, events)
	var completed []*protocol.ToolCompleted
	for _, e := range events {
		if done, ok := e.Payload().(*protocol.ToolCompleted); ok {
			completed = append(completed, done)
		}
	}
	noted := s.effects.of(note)
	if c.terms() && want.effects == 1 && len(completed) == 1 && completed[0].State == protocol.ToolOutcomeUnknown {
		want.ends, want.effects = protocol.ToolOutcomeUnknown, min(noted, 1) // it outlasted the grace
	}
	if end.Status != protocol.TurnCompleted || len(completed) != 1 || completed[0].State != want.ends {
		t.Errorf("the turn ended %s, the tool %+v", end.Status, completed)
	}
	if noted != want.effects {
		t.Errorf("it took effect %d times, want %d", noted, want.effects)
	}
	if said := strings.Join(sitetest.Texts(sitetest.Fold(events)), "|"); !strings.HasPrefix(said, "The tool says: ") {
		t.Errorf("the model says %q", said)
	}
}

// steers: an input meets the fault; the repeat is told that it is accepted, and it ends applied or returned, once.
type steers struct {
	answer    int // to the first request
	takeovers int
}

func (want steers) play(t *testing.T, s *installation, c cell) {
	k, id := s.newTalk("a long speech "+newKey()), newKey()
	k.begin(s)
	k.says(s)
	body := sitetest.Steering(k.turn, id, "steered by "+id, "next_step")
	s.arm(c.spec())
	answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodPost, "/chat/steering", body)
	s.strikes(c)
	s.wantStatus(want.answer, answer, nil, err)
	receipt, err := sitetest.Insist(sitetest.Within(t, sitetest.Soon), s.user, body)
	if err != nil || receipt.Status != http.StatusAccepted {
		t.Fatalf("the repeat was answered %d (%v)", receipt.Status, err)
	}
	events, end := k.ends(s)
	s.wantTakeovers(want.takeovers, events)
	wasAccepted, ended, applied := fateOf(events, id)
	if end.Status != protocol.TurnCompleted || wasAccepted != 1 || ended != 1 {
		t.Errorf("the turn ended %s, the input was accepted %d times and ended %d times", end.Status, wasAccepted, ended)
	}
	if asked := s.asked(sitetest.Canary + " steered by " + id); (asked > 0) != applied {
		t.Errorf("applied: %t, and the model heard of it %d times", applied, asked)
	}
}

// fateOf counts what a log says of one input.
func fateOf(events []sitetest.Event, clientID string) (accepted, ended int, applied bool) {
	var id protocol.SteeringID
	for _, e := range events {
		switch p := e.Payload().(type) {
		case *protocol.SteeringAccepted:
			if p.ClientSteeringID == clientID {
				id = p.SteeringID
				accepted++
			}
		case *protocol.SteeringApplied:
			if p.SteeringID == id {
				applied = true
				ended++
			}
		case *protocol.SteeringReturned:
			if p.SteeringID == id {
				ended++
			}
		}
	}
	return accepted, ended, applied
}

// cancels: a cancel meets the fault; the turn ends cancelled.
type cancels struct{ answer int }

func (want cancels) play(t *testing.T, s *installation, c cell) {
	k := s.newTalk("an endless speech " + newKey())
	k.begin(s)
	k.says(s)
	s.arm(c.spec())
	answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodPost, "/chat/steering", sitetest.Cancelling(k.turn))
	s.strikes(c)
	s.wantStatus(want.answer, answer, nil, err)
	if _, err := sitetest.Insist(sitetest.Within(t, sitetest.Soon), s.user, sitetest.Cancelling(k.turn)); err != nil {
		t.Errorf("the repeat: %v", err)
	}
	events, end := k.ends(s)
	if requested := sitetest.CountKind(events, "turn.cancel_requested"); end.Status != protocol.TurnCancelled || requested != 1 {
		t.Errorf("it ended %s after %d requests to cancel", end.Status, requested)
	}
}

// revokes: the end of another device's session meets the fault.
type revokes struct {
	answer int
	lives  bool // the session does, after the fault
}

func (want revokes) play(t *testing.T, s *installation, c cell) {
	other := s.user.Device(t)
	var devices protocol.List[protocol.Device]
	other.Get(t, "/auth/sessions", &devices)
	var path string
	for _, device := range devices.Data {
		if device.Current {
			path = "/auth/sessions/" + device.SessionID.String()
		}
	}
	s.arm(c.spec())
	answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodDelete, path, nil)
	s.strikes(c)
	s.wantStatus(want.answer, answer, nil, err)
	after, repeat := http.StatusUnauthorized, http.StatusNotFound
	if want.lives {
		after, repeat = http.StatusOK, http.StatusNoContent
	}
	other.Do(t, http.MethodGet, "/conversations", nil).Want(t, after, nil)
	s.user.Do(t, http.MethodDelete, path, nil).Want(t, repeat, nil)
	other.Do(t, http.MethodGet, "/conversations", nil).Want(t, http.StatusUnauthorized, nil)
}

const (
	madeSQL = `select count(*) from conversations where title = $1`
	// The clock that would make a dead request's claim stale after 30 s.
	ageClaimSQL = `update idempotency set created_at = created_at - interval '31 seconds'
		where key_hash = sha256(convert_to(E'POST\n/conversations\n' || $1, 'UTF8')) and status is null`
)

// creates: a creating request with a key meets the fault; the repeat finds what was made, or makes it.
type creates struct {
	answer int
	made   int // after the fault
}

func (want creates) play(t *testing.T, s *installation, c cell) {
	key := newKey()
	body := map[string]string{"title": "Made with " + key}
	s.user.Client.CloseIdleConnections() // on a new one Go's client does not repeat the request by itself
	s.arm(c.spec())
	answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodPost, "/conversations", body, "Idempotency-Key", key)
	s.strikes(c)
	s.wantStatus(want.answer, answer, nil, err)
	if made := one[int](s, madeSQL, body["title"]); made != want.made {
		t.Errorf("%d were made, want %d", made, want.made)
	}
	if c.kills() {
		s.user.Do(t, http.MethodPost, "/conversations", body, "Idempotency-Key", key).WantProblem(t, http.StatusConflict, protocol.CodeIdempotencyBusy)
		s.exec(ageClaimSQL, key)
	}
	repeat := s.user.Do(t, http.MethodPost, "/conversations", body, "Idempotency-Key", key).Want(t, http.StatusCreated, nil)
	if replayed := repeat.Header.Get("Idempotent-Replayed") == "true"; replayed != (want.made == 1) {
		t.Errorf("the repeat is a replay: %t", replayed)
	}
	if made := one[int](s, madeSQL, body["title"]); made != 1 {
		t.Errorf("%d were made in the end", made)
	}
}

// writes: a draft or a title meets the fault. What was not acknowledged is not there, what was is.
type writes struct {
	path   string
	answer int
}

func (want writes) play(t *testing.T, s *installation, c cell) {
	conversation := s.user.NewConversation(t)
	before, text := s.written(conversation, want.path), "Written "+newKey()
	field := map[string]string{"draft": "content", "title": "title"}[want.path]
	body := map[string]string{field: text}
	s.arm(c.spec())
	answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodPut, "/conversations/"+conversation+"/"+want.path, body)
	s.strikes(c)
	s.wantStatus(want.answer, answer, nil, err)
	stands := before
	if want.answer == okay {
		stands = text
	}
	if got := s.written(conversation, want.path); got != stands {
		t.Errorf("it says %q, want %q", got, stands)
	}
	s.user.Do(t, http.MethodPut, "/conversations/"+conversation+"/"+want.path, body).Want(t, http.StatusOK, nil)
	if got := s.written(conversation, want.path); got != text {
		t.Errorf("after the repeat it says %q", got)
	}
}

func (s *installation) written(conversation, path string) string {
	s.t.Helper()
	page := s.user.Page(s.t, conversation)
	if path == "title" {
		return page.Title
	}
	return page.Draft.Content
}

const (
	leftOverSQL = `
select (select count(*) from turns where conversation_id = $1) + (select count(*) from messages where conversation_id = $1)
     + (select count(*) from branches where conversation_id = $1) + (select count(*) from turn_events where turn_id = $2)
     + (select count(*) from turn_replays where turn_id = $2) + (select count(*) from turn_records where turn_id = $2)`
	// The clock that would give the job of a dead process to another one after three minutes.
	agePurgeSQL = `update river.river_job set attempted_at = attempted_at - interval '1 hour' where kind = 'purge_conversation' and state = 'running'`
	purgedSQL   = `select state::text from river.river_job where kind = 'purge_conversation' order by id desc limit 1`
)

// deletes: the purge of a deleted conversation meets the fault.
type deletes struct{}

func (deletes) play(t *testing.T, s *installation, c cell) {
	k := s.newTalk("to be forgotten " + newKey())
	k.begin(s)
	k.ends(s)
	s.arm(c.spec())
	s.user.Do(t, http.MethodDelete, "/conversations/"+k.conversation, nil).Want(t, http.StatusNoContent, nil)
	for _, path := range []string{"/conversations/" + k.conversation, "/chat/turns/" + k.turn, "/chat/turns/" + k.turn + "/events"} {
		if answer, err := s.user.Ask(sitetest.Within(t, sitetest.Soon), http.MethodGet, path, nil); err == nil {
			answer.Want(t, http.StatusNotFound, nil)
		} else if !c.kills() && !c.terms() {
			t.Error(err)
		}
	}
	s.strikes(c)
	s.user.Do(t, http.MethodGet, "/conversations/"+k.conversation, nil).Want(t, http.StatusNotFound, nil)
	if c.kills() || c.terms() {
		s.exec(agePurgeSQL)
	}
	sitetest.Eventually(t, "nothing is left", func() bool {
		return one[int](s, leftOverSQL, rowID(t, k.conversation), rowID(t, k.turn)) == 0 && one[string](s, purgedSQL) == "completed"
	})
}

// zombies: a node is away for so long that another one declares it dead and goes on with its turn.
type zombies struct{}

func (zombies) play(t *testing.T, s *installation, c cell) {
	k := s.newTalk("an endless dispute " + newKey())
	k.begin(s)
	k.says(s)
	neighbour := sitetest.NewDevelopment(t)
	other := s.Build.Start(t, append(s.Environment[:len(s.Environment):len(s.Environment)], neighbour.Environment...), "serve")
	other.UntilLogged("turnstone serves")
	there := *s.user
	there.Base = "http://" + neighbour.Public

	s.arm(c.spec())
	s.strikes(c)
	stream, refused, err := there.Follow(sitetest.Within(t, sitetest.Patience), k.turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer stream.Close()
	stream.AwaitKind(t, "turn.recovering")
	stream.AwaitKind(t, "answer.delta")
	if code := s.p.Exit(); code != 1 || !strings.Contains(s.p.Complaints(), "declared dead by the others") {
		t.Errorf("the node that was declared dead ended with %d", code)
	}
	there.Do(t, http.MethodPost, "/chat/steering", sitetest.Cancelling(k.turn)).Want(t, http.StatusAccepted, nil)
	s.revive()
	events, end := k.ends(s)
	s.wantTakeovers(1, events)
	if epoch := one[int](s, epochSQL, rowID(t, k.turn)); end.Status != protocol.TurnCancelled || epoch != 2 {
		t.Errorf("it ended %s in epoch %d", end.Status, epoch)
	}
}
