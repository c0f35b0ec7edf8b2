package failpoints

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// startScenario is the scenario in which POST /chat meets the fault. The repeat with the same key finds the turn if it
// was stored, or starts it.
type startScenario struct {
	status    int  // of the first response
	turns     int  // stored after the first request
	held      bool // the turn does not end in the first process
	takeovers int
}

func (want startScenario) play(t *testing.T, s *installation, c cell) {
	conversation, key, text := s.user.NewConversation(t), newKey(), "begin"
	if want.held {
		text = "begin a held answer"
	}
	body := sitetest.NewChatBody(text).In(conversation)
	s.user.HTTP.CloseIdleConnections() // on a new connection Go's client does not repeat the request by itself
	s.arm(c.spec())
	stream, refused, err := s.user.TryChat(sitetest.Within(t, sitetest.HangGuard), body, "Idempotency-Key", key)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, refused, stream, err)
	if stream != nil {
		// If the turn is handed over, it does not end in this response.
		if err := s.user.Watch(sitetest.Within(t, sitetest.HangGuard), stream.Turn, stream, nil); err != nil {
			t.Error(err)
		}
	}
	if stored := queryOne[int](s, turnsSQL, rowID(t, conversation)); stored != want.turns {
		t.Errorf("%d turns are stored, want %d", stored, want.turns)
	}
	again := s.user.Chat(t, body, "Idempotency-Key", key)
	if replayed := again.Header.Get("Idempotent-Replayed") == "true"; replayed != (want.turns == 1) {
		t.Errorf("the repeat is a replay: %t", replayed)
	}
	again.ReadToEnd(t)
	read := s.invariants(again.Turn, conversation)
	s.wantRecited(text, read)
	s.wantTakeovers(want.takeovers, read)
}

// streamScenario is the scenario in which a turn meets the fault while two readers follow it.
type streamScenario struct {
	held      bool // the turn does not end in the first process
	takeovers int
	calls     int  // number of model calls; 0: not checked
	late      bool // the failpoint is armed after the first text of the answer
}

func (want streamScenario) play(t *testing.T, s *installation, c cell) {
	text := "a stream "
	switch {
	case want.held:
		text = "a held stream "
	case want.late:
		text = "a long stream "
	}
	k := s.newLiveTurn(text + newKey())
	if !want.late {
		s.arm(c.spec())
	}
	k.start(s)
	if want.late {
		k.awaitText(s)
		s.arm(c.spec())
	}
	s.awaitFailpoint(c)
	read := k.awaitEnd(s)
	s.wantRecited(k.text, read)
	s.wantTakeovers(want.takeovers, read)
	if calls := s.modelCalls(sitetest.Canary + " " + k.text); want.calls > 0 && calls != want.calls {
		t.Errorf("the model was called %d times, want %d", calls, want.calls)
	}
}

const epochSQL = `select owner_epoch from turns where turn_id = $1`

// claimScenario is the scenario in which the process dies during a turn, and the next process meets the fault when it
// takes the turn over.
type claimScenario struct{ epoch int }

func (want claimScenario) play(t *testing.T, s *installation, c cell) {
	k := s.newLiveTurn("a long claim " + newKey())
	k.start(s)
	k.awaitText(s)
	s.plan()
	s.p.Kill()
	s.launch("TURNSTONE_FAILPOINTS=" + c.spec())
	if !c.ends() {
		s.p.AwaitLog("turnstone serves")
	}
	s.awaitFailpoint(c)
	read := k.awaitEnd(s)
	s.wantRecited(k.text, read)
	s.wantTakeovers(1, read)
	if epoch := queryOne[int](s, epochSQL, rowID(t, k.turn)); epoch != want.epoch {
		t.Errorf("the turn ended in epoch %d, want %d", epoch, want.epoch)
	}
}

// toolScenario is the scenario in which a tool call meets the fault.
type toolScenario struct {
	tool      string
	ends      protocol.ToolState
	effects   int // recorded by the stand-in
	takeovers int
}

func (want toolScenario) play(t *testing.T, s *installation, c cell) {
	note := newKey()
	k := s.newLiveTurn("call " + want.tool + " " + note)
	s.arm(c.spec())
	k.start(s)
	s.awaitFailpoint(c)
	read := k.awaitEnd(s)
	s.wantTakeovers(want.takeovers, read)
	if states := completions(read); read.End.Status != protocol.TurnCompleted || !slices.Equal(states, []protocol.ToolState{want.ends}) {
		t.Errorf("the turn ended %s, the tool %v", read.End.Status, states)
	}
	if noted := s.effects.of(note); noted != want.effects {
		t.Errorf("the tool took effect %d times, want %d", noted, want.effects)
	}
	if text := strings.Join(sitetest.Texts(read.Parts), "|"); !strings.HasPrefix(text, "The tool says: ") {
		t.Errorf("the answer is %q", text)
	}
}

// approvalScenario is the scenario in which a call that needs an approval meets the fault: when it is asked for, or when it is
// approved. It runs once, with the input that was approved.
type approvalScenario struct {
	asks    bool // the fault is met when the call is asked for
	status  int  // of the first response to the decision; 0: it depends on which of the two comes first
	ends    protocol.ToolState
	effects int // recorded by the stand-in
}

func (want approvalScenario) play(t *testing.T, s *installation, c cell) {
	note := newKey()
	k := s.newLiveTurn("call asked_effect " + note)
	if want.asks {
		s.arm(c.spec())
	}
	k.start(s)
	if want.asks {
		s.awaitFailpoint(c)
	}
	<-k.known
	asked := s.awaitApproval(k.turn)
	if noted := s.effects.of(note); noted != 0 {
		t.Errorf("the tool took effect %d times before the decision", noted)
	}
	body := map[string]any{"type": "approval", "turn_id": k.turn, "approval_id": asked.ApprovalID, "decision": protocol.ApproveOnce, "input_digest": asked.InputDigest}
	decision := verify.Decision{Approval: asked.ApprovalID.String(), Decision: protocol.ApproveOnce, Outcome: verify.Acknowledged}
	if !want.asks {
		s.arm(c.spec())
	}
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, "/chat/steering", body)
	if !want.asks {
		s.awaitFailpoint(c)
	}
	if want.status != 0 {
		s.wantStatus(want.status, response, nil, err)
	}
	receipt, err := sitetest.SendUntilDecided(sitetest.Within(t, sitetest.HangGuard), s.user, body)
	if err != nil || receipt.Status != http.StatusAccepted {
		t.Fatalf("the repeat got %d (%v)", receipt.Status, err)
	}
	decision.Sequence = receipt.Sequence
	read := k.awaitEnd(s)
	sitetest.Report(t, "the approvals", read.CheckApprovals([]verify.Decision{decision}))
	if states := completions(read); read.End.Status != protocol.TurnCompleted || !slices.Equal(states, []protocol.ToolState{want.ends}) {
		t.Errorf("the turn ended %s, the tool %v", read.End.Status, states)
	}
	if noted := s.effects.of(note); noted != want.effects {
		t.Errorf("the tool took effect %d times, want %d", noted, want.effects)
	}
}

// awaitApproval returns the approval for which a turn waits.
func (s *installation) awaitApproval(turn string) (found protocol.Approval) {
	s.t.Helper()
	sitetest.Eventually(s.t, "an approval is asked for", func() bool {
		response, err := s.user.Request(sitetest.Within(s.t, sitetest.HangGuard), http.MethodGet, "/approvals", nil)
		if err != nil || response.Status != http.StatusOK {
			return false
		}
		var list protocol.List[protocol.Approval]
		if err := response.Decode(http.StatusOK, &list); err != nil {
			s.t.Fatal(err)
		}
		at := slices.IndexFunc(list.Data, func(a protocol.Approval) bool { return a.TurnID.String() == turn })
		if at >= 0 {
			found = list.Data[at]
		}
		return at >= 0
	})
	return found
}

// completions returns the states in which the tool calls of a turn ended.
func completions(read *verify.Turn) (states []protocol.ToolState) {
	for _, payload := range read.Payloads {
		if done, is := payload.(*protocol.ToolCompleted); is {
			states = append(states, done.State)
		}
	}
	return states
}

// steerScenario is the scenario in which a steering input meets the fault. The repeat reports that the input is
// accepted, and the input is applied or returned, once.
type steerScenario struct {
	status    int  // of the first response
	held      bool // the turn does not end in the first process
	takeovers int
}

func (want steerScenario) play(t *testing.T, s *installation, c cell) {
	text := "a long speech "
	if want.held {
		text = "a held speech "
	}
	k, id := s.newLiveTurn(text+newKey()), newKey()
	k.start(s)
	k.awaitText(s)
	body := sitetest.SteeringBody(k.turn, id, "steered by "+id, "next_step")
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, "/chat/steering", body)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	receipt, err := sitetest.SendUntilDecided(sitetest.Within(t, sitetest.HangGuard), s.user, body)
	if err != nil || receipt.Status != http.StatusAccepted {
		t.Fatalf("the repeat got %d (%v)", receipt.Status, err)
	}
	read := k.awaitEnd(s, receipt.Of(id))
	s.wantTakeovers(want.takeovers, read)
	input := read.Inputs[id]
	if read.End.Status != protocol.TurnCompleted || input == nil {
		t.Fatalf("the turn ended %s, the log says %+v", read.End.Status, input)
	}
	if calls := s.modelCalls(sitetest.Canary + " steered by " + id); (calls > 0) != (input.Applied == 1) {
		t.Errorf("the log says %+v, and %d model requests contain the input", input, calls)
	}
}

// cancelScenario is the scenario in which a cancel meets the fault. The turn ends cancelled.
type cancelScenario struct{ status int }

func (want cancelScenario) play(t *testing.T, s *installation, c cell) {
	k := s.newLiveTurn("an endless speech " + newKey())
	k.start(s)
	k.awaitText(s)
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, "/chat/steering", sitetest.CancelBody(k.turn))
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	receipt, err := sitetest.SendUntilDecided(sitetest.Within(t, sitetest.HangGuard), s.user, sitetest.CancelBody(k.turn))
	if err != nil {
		t.Errorf("the repeat: %v", err)
	}
	read := k.awaitEnd(s, receipt.Of(""))
	if read.End.Status != protocol.TurnCancelled || len(read.Cancels) != 1 {
		t.Errorf("the turn ended %s, and its log has %d cancel requests", read.End.Status, len(read.Cancels))
	}
}

// revokeScenario is the scenario in which the revocation of another device's session meets the fault.
type revokeScenario struct {
	status     int
	stillValid bool // the session is still valid after the fault
}

func (want revokeScenario) play(t *testing.T, s *installation, c cell) {
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
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodDelete, path, nil)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	after, repeat := http.StatusUnauthorized, http.StatusNotFound
	if want.stillValid {
		after, repeat = http.StatusOK, http.StatusNoContent
	}
	other.Do(t, http.MethodGet, "/conversations", nil).Want(t, after, nil)
	s.user.Do(t, http.MethodDelete, path, nil).Want(t, repeat, nil)
	other.Do(t, http.MethodGet, "/conversations", nil).Want(t, http.StatusUnauthorized, nil)
}

const madeSQL = `select count(*) from conversations where title = $1`

// createScenario is the scenario in which a creating request with a key meets the fault. The repeat finds the
// conversation if it was created, or creates it.
type createScenario struct {
	status int
	made   int // number of conversations created after the fault
}

func (want createScenario) play(t *testing.T, s *installation, c cell) {
	key := newKey()
	body := map[string]string{"title": "Made with " + key}
	s.user.HTTP.CloseIdleConnections() // on a new connection Go's client does not repeat the request by itself
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPost, "/conversations", body, "Idempotency-Key", key)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	if made := queryOne[int](s, madeSQL, body["title"]); made != want.made {
		t.Errorf("%d conversations were created, want %d", made, want.made)
	}
	repeat := s.user.Do(t, http.MethodPost, "/conversations", body, "Idempotency-Key", key).Want(t, http.StatusCreated, nil)
	if replayed := repeat.Header.Get("Idempotent-Replayed") == "true"; replayed != (want.made == 1) {
		t.Errorf("the repeat is a replay: %t", replayed)
	}
	if made := queryOne[int](s, madeSQL, body["title"]); made != 1 {
		t.Errorf("%d conversations exist after the repeat", made)
	}
}

// writeScenario is the scenario in which a write of a draft or a title meets the fault. An unacknowledged write is not
// stored, an acknowledged one is.
type writeScenario struct {
	path   string
	status int
}

func (want writeScenario) play(t *testing.T, s *installation, c cell) {
	conversation := s.user.NewConversation(t)
	before, text := s.written(conversation, want.path), "Written "+newKey()
	field := map[string]string{"draft": "content", "title": "title"}[want.path]
	body := map[string]string{field: text}
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPut, "/conversations/"+conversation+"/"+want.path, body)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	wanted := before
	if want.status == okay {
		wanted = text
	}
	if got := s.written(conversation, want.path); got != wanted {
		t.Errorf("the stored value is %q, want %q", got, wanted)
	}
	s.user.Do(t, http.MethodPut, "/conversations/"+conversation+"/"+want.path, body).Want(t, http.StatusOK, nil)
	if got := s.written(conversation, want.path); got != text {
		t.Errorf("after the repeat the stored value is %q", got)
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
	// agePurgeSQL lets another process take over the job of a dead one, which takes three minutes otherwise.
	agePurgeSQL = `update river.river_job set attempted_at = attempted_at - interval '1 hour' where kind = 'purge_conversation' and state = 'running'`
	purgedSQL   = `select state::text from river.river_job where kind = 'purge_conversation' order by id desc limit 1`
)

// deleteScenario is the scenario in which the purge of a deleted conversation meets the fault.
type deleteScenario struct{}

func (deleteScenario) play(t *testing.T, s *installation, c cell) {
	k := s.newLiveTurn("to be forgotten " + newKey())
	k.start(s)
	k.awaitEnd(s)
	s.arm(c.spec())
	s.user.Do(t, http.MethodDelete, "/conversations/"+k.conversation, nil).Want(t, http.StatusNoContent, nil)
	if !c.ends() { // otherwise the program may end at any time
		k.wantUnreadable(s)
	}
	purged := func() bool {
		return queryOne[int](s, leftOverSQL, rowID(t, k.conversation), rowID(t, k.turn)) == 0 && queryOne[string](s, purgedSQL) == "completed"
	}
	if c.ends() {
		s.awaitExit(c)
		if purged() == c.kills() {
			t.Errorf("purged when the program ended: %t", !c.kills())
		}
		s.restart()
		k.wantUnreadable(s)
	} else {
		s.awaitFailpoint(c)
	}
	if c.kills() {
		s.exec(agePurgeSQL)
	}
	sitetest.Eventually(t, "the conversation is purged", purged)
	k.wantUnreadable(s)
}

// wantUnreadable checks that a deleted conversation and its turn cannot be read.
func (k *liveTurn) wantUnreadable(s *installation) {
	s.t.Helper()
	for _, path := range []string{"/conversations/" + k.conversation, "/chat/turns/" + k.turn, "/chat/turns/" + k.turn + "/events"} {
		s.user.Do(s.t, http.MethodGet, path, nil).Want(s.t, http.StatusNotFound, nil)
	}
}

// staleNodeScenario is the scenario in which a node stops renewing its lease for so long that another one declares it
// dead and continues its turn.
type staleNodeScenario struct{}

func (staleNodeScenario) play(t *testing.T, s *installation, c cell) {
	k := s.newLiveTurn("an endless dispute " + newKey())
	k.start(s)
	k.awaitText(s)
	neighbour := sitetest.NewDevelopment(t)
	other := s.Build.Start(t, append(s.Environment[:len(s.Environment):len(s.Environment)], neighbour.Environment...), "serve")
	other.AwaitLog("turnstone serves")
	otherUser := s.user.Via(t, "http://"+neighbour.Public)

	s.arm(c.spec())
	s.awaitFailpoint(c)
	stream, refused, err := otherUser.Follow(sitetest.Within(t, sitetest.HangGuard), k.turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer stream.Close()
	stream.AwaitKind(t, "turn.recovering")
	stream.AwaitKind(t, "answer.delta")
	if code := s.p.Exit(); code != 1 || !strings.Contains(s.p.Stderr(), "declared dead by the others") {
		t.Errorf("the node that was declared dead ended with %d", code)
	}
	otherUser.Do(t, http.MethodPost, "/chat/steering", sitetest.CancelBody(k.turn)).Want(t, http.StatusAccepted, nil)
	s.restart()
	read := k.awaitEnd(s)
	s.wantTakeovers(1, read)
	if epoch := queryOne[int](s, epochSQL, rowID(t, k.turn)); read.End.Status != protocol.TurnCancelled || epoch != 2 {
		t.Errorf("the turn ended %s in epoch %d", read.End.Status, epoch)
	}
}
