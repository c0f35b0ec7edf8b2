package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// endlessTurn streams until it is cancelled.
const endlessTurn = "[[script tokens=100000 ttft=0 interval=10ms]]"

const (
	openStreams     = 50 // of an account, at most
	revokedStreams  = 5 * time.Second
	shortTurn       = "[[script tokens=30 ttft=0 interval=5ms]]"
	farAhead        = 1_000_000
	malformedCursor = "?after=soon"
)

// What live turns promise to their clients, in one run of the program.
func TestLiveTurnsKeepTheContract(t *testing.T) {
	s := newSite(t)
	s.up()
	for name, test := range map[string]func(*testing.T, *site){
		"busy: reject, queue, steer":                   busy,
		"one key begins one turn, and attaches to it":  sameKey,
		"a stale tab does not overwrite":               staleTab,
		"readers resume at any place":                  resume,
		"a snapshot stands for the events before it":   snapshot,
		"another account finds nothing":                foreign,
		"a revoked session loses its stream":           revoked,
		"the fifty-first stream has to wait":           tooManyStreams,
		"operators see the bytes that clients see":     operatorsBytes,
		"a cancel of everything takes the queue along": cancelAll,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// live begins a turn and waits until it says something.
func (u *user) live(t *testing.T, conversation, text string) *stream {
	t.Helper()
	s := u.chat(t, saying(text).in(conversation))
	s.awaitKind(t, "answer.delta")
	return s
}

// cancel ends a turn and reads the rest of it.
func (u *user) cancel(t *testing.T, s *stream) {
	t.Helper()
	u.do(t, http.MethodPost, "/chat/steering", cancelling(s.turn)).want(t, http.StatusAccepted, nil)
	if _, end := s.toTheEnd(t); end.Status != protocol.TurnCancelled {
		t.Errorf("a cancelled turn ended %s", end.Status)
	}
}

func busy(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	first := u.live(t, conversation, "[[script tokens=60 ttft=0 interval=10ms]]")

	refused := u.do(t, http.MethodPost, "/chat", saying("again").in(conversation)).wantProblem(t, http.StatusConflict, protocol.CodeTurnInProgress)
	var current struct {
		TurnID string `json:"turn_id"`
	}
	if err := json.Unmarshal(refused.Current, &current); err != nil || current.TurnID != first.turn {
		t.Errorf("current is %s", refused.Current)
	}
	var queued protocol.FollowUp
	u.do(t, http.MethodPost, "/chat", saying("queued "+shortTurn).in(conversation).with("if_busy", "queue")).want(t, http.StatusAccepted, &queued)
	if queued.State != protocol.FollowUpQueued {
		t.Errorf("queued as %s", queued.State)
	}
	var steered protocol.SteeringReceipt
	u.do(t, http.MethodPost, "/chat", saying("steered").in(conversation).with("if_busy", "steer")).want(t, http.StatusAccepted, &steered)
	if steered.TurnID.String() != first.turn || steered.State != "accepted" {
		t.Errorf("steered %+v", steered)
	}
	events, end := first.toTheEnd(t)
	if end.Status != protocol.TurnCompleted || countKind(events, "steering.applied") != 1 {
		t.Errorf("the turn ended %s, %d inputs applied", end.Status, countKind(events, "steering.applied"))
	}

	var second string // the queue goes on by itself
	eventually(t, "the queued message became a turn", func() bool {
		for _, item := range u.followUps(t, conversation) {
			if item.FollowUpID == queued.FollowUpID && item.State == protocol.FollowUpStarted && item.TurnID != nil {
				second = item.TurnID.String()
			}
		}
		return second != ""
	})
	if _, end := u.wholeLog(t, second); end.Status != protocol.TurnCompleted {
		t.Errorf("the queued turn ended %s", end.Status)
	}
	messages := u.messages(t, conversation)
	if len(messages) != 4 || !strings.Contains(texts(messages[2].Parts)[0], "queued") {
		t.Errorf("%d messages", len(messages))
	}
}

func (u *user) followUps(t *testing.T, conversation string) []protocol.FollowUp {
	t.Helper()
	var list protocol.List[protocol.FollowUp]
	u.get(t, "/conversations/"+conversation+"/follow-ups", &list)
	return list.Data
}

func sameKey(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	body := saying(longTurn).in(conversation)
	first := u.chat(t, body, "Idempotency-Key", "one-turn")
	first.awaitKind(t, "answer.delta")
	again := u.chat(t, body, "Idempotency-Key", "one-turn")
	if again.turn != first.turn || again.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("the same key: turn %s and %s, %v", first.turn, again.turn, again.header)
	}
	if e := again.awaitKind(t, "turn.started"); e.sequence != 1 {
		t.Errorf("the replay begins with %d", e.sequence)
	}
	u.do(t, http.MethodPost, "/chat", saying("something else").in(conversation), "Idempotency-Key", "one-turn").
		wantProblem(t, http.StatusUnprocessableEntity, protocol.CodeIdempotencyMismatch)
	u.cancel(t, first)
	again.toTheEnd(t)
	last := u.chat(t, body, "Idempotency-Key", "one-turn")
	if events, _ := last.toTheEnd(t); last.turn != first.turn || events[0].sequence != 1 {
		t.Errorf("after its end: turn %s from %d", last.turn, events[0].sequence)
	}
	if messages := u.messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}

func staleTab(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	_, end := u.chat(t, saying(shortTurn).in(conversation).with("expected_head_message_id", nil)).toTheEnd(t)
	for _, stale := range []any{nil, u.messages(t, conversation)[0].MessageID.String()} {
		u.do(t, http.MethodPost, "/chat", saying("stale").in(conversation).with("expected_head_message_id", stale)).
			wantProblem(t, http.StatusConflict, protocol.CodeHeadMoved)
	}
	u.chat(t, saying(shortTurn).in(conversation).with("expected_head_message_id", end.MessageID.String())).toTheEnd(t)
	if messages := u.messages(t, conversation); len(messages) != 4 {
		t.Errorf("%d messages", len(messages))
	}
}

func resume(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	live := u.live(t, conversation, endlessTurn)
	events := "/chat/turns/" + live.turn + "/events"
	u.do(t, http.MethodGet, events, nil, "Last-Event-ID", fmt.Sprint(farAhead)).wantProblem(t, http.StatusConflict, protocol.CodeSequenceAhead)
	for _, malformed := range []string{malformedCursor, "?after=-1", "?after=1.5"} {
		u.do(t, http.MethodGet, events+malformed, nil).wantProblem(t, http.StatusUnprocessableEntity, protocol.CodeInvalid)
	}
	both, refused, err := u.follow(within(t, patience), live.turn, 2, "?after=1") // the header wins
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer both.close()
	if e, err := both.next(); err != nil || e.sequence != 3 {
		t.Errorf("after 2 comes %d, %v", e.sequence, err)
	}
	u.cancel(t, live)
	whole, end := u.wholeLog(t, live.turn)
	for _, after := range []int64{0, 1, end.LastSequence / 2, end.LastSequence - 1} {
		tail, refused, err := u.follow(within(t, patience), live.turn, after, "")
		if err != nil || refused != nil {
			t.Fatalf("%v %+v", err, refused)
		}
		if got, _ := tail.toTheEnd(t); int64(len(got)) != int64(len(whole))-after {
			t.Errorf("after %d come %d of %d events", after, len(got), len(whole))
		}
		tail.close()
	}
	for _, after := range []int64{end.LastSequence, farAhead} {
		got := u.do(t, http.MethodGet, events, nil, "Last-Event-ID", fmt.Sprint(after)).want(t, http.StatusNoContent, nil)
		if len(got.body) != 0 {
			t.Errorf("204 with %q", got.body)
		}
	}
}

func snapshot(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	live := u.live(t, conversation, longTurn)
	from := func() (*protocol.TurnSnapshot, []event, *protocol.TurnFinished) {
		t.Helper()
		reader, refused, err := u.follow(within(t, patience), live.turn, 0, "?mode=snapshot")
		if err != nil || refused != nil {
			t.Fatalf("%v %+v", err, refused)
		}
		defer reader.close()
		first, err := reader.next()
		if err != nil || first.kind != "turn.snapshot" {
			t.Fatalf("it begins with %s: %v", first.kind, err)
		}
		shown := first.payload().(*protocol.TurnSnapshot)
		if shown.CoversSequence != first.sequence {
			t.Errorf("snapshot %d covers %d", first.sequence, shown.CoversSequence)
		}
		events, end := reader.toTheEnd(t)
		return shown, events, end
	}
	shown, events, _ := from()
	if said := strings.Join(texts(shown.Message.Parts), ""); said == "" || !strings.HasPrefix(longText(), said) || shown.Message.Status != protocol.MessageStreaming {
		t.Errorf("the message so far is %s: %q", shown.Message.Status, said)
	}
	for _, e := range events {
		if delta, ok := e.payload().(*protocol.AnswerDelta); ok { // the first goes on where the snapshot ends
			if want := len(strings.Join(texts(shown.Message.Parts), "")); delta.Offset != want {
				t.Errorf("the snapshot has %d bytes, the next are from %d", want, delta.Offset)
			}
			break
		}
	}
	live.toTheEnd(t)
	shown, events, end := from()
	if len(events) != 1 || shown.CoversSequence != end.LastSequence-1 || strings.Join(texts(shown.Message.Parts), "") != longText() {
		t.Errorf("of a finished turn: %d of %d, then %d events", shown.CoversSequence, end.LastSequence, len(events))
	}
}

var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

// foreign: what belongs to somebody else looks, to the byte, like what does not exist.
func foreign(t *testing.T, s *site) {
	owner, other := newUser(t, s.base), newUser(t, s.base)
	conversation := owner.newConversation(t)
	live := owner.live(t, conversation, endlessTurn)
	noTurn, noConversation := protocol.NewTurnID().String(), protocol.NewConversationID().String()
	message := protocol.NewMessageID().String()
	for _, a := range []func(turn, conversation string) attempt{
		func(turn, _ string) attempt { return attempt{http.MethodGet, "/chat/turns/" + turn, nil} },
		func(turn, _ string) attempt { return attempt{http.MethodGet, "/chat/turns/" + turn + "/events", nil} },
		func(turn, _ string) attempt {
			return attempt{http.MethodGet, "/chat/turns/" + turn + "/events?after=99999999", nil}
		},
		func(turn, _ string) attempt {
			return attempt{http.MethodGet, "/chat/turns/" + turn + "/events?mode=snapshot", nil}
		},
		func(turn, _ string) attempt {
			return attempt{http.MethodPost, "/chat/steering", steering(turn, "foreign", "foreign", "interrupt")}
		},
		func(turn, _ string) attempt { return attempt{http.MethodPost, "/chat/steering", cancelling(turn)} },
		func(_, c string) attempt { return attempt{http.MethodPost, "/chat", saying("foreign").in(c)} },
		func(_, c string) attempt {
			return attempt{http.MethodPost, "/chat", saying("foreign").in(c).with("if_busy", "steer")}
		},
		func(_, c string) attempt {
			return attempt{http.MethodPost, "/chat", saying("foreign").in(c).with("if_busy", "queue")}
		},
		func(_, c string) attempt { return attempt{http.MethodGet, "/conversations/" + c, nil} },
		func(_, c string) attempt { return attempt{http.MethodGet, "/conversations/" + c + "/messages", nil} },
		func(_, c string) attempt { return attempt{http.MethodGet, "/conversations/" + c + "/follow-ups", nil} },
		func(_, c string) attempt { return attempt{http.MethodGet, "/conversations/" + c + "/usage", nil} },
		func(_, c string) attempt {
			return attempt{http.MethodPut, "/conversations/" + c + "/title", map[string]string{"title": "Foreign"}}
		},
		func(_, c string) attempt {
			return attempt{http.MethodPut, "/conversations/" + c + "/draft", map[string]string{"content": "foreign"}}
		},
		func(_, c string) attempt {
			return attempt{http.MethodPost, "/conversations/" + c + "/branches", map[string]string{"message_id": message, "mode": "fork"}}
		},
		func(_, c string) attempt { return attempt{http.MethodDelete, "/conversations/" + c, nil} },
	} {
		theirs, nobodys := a(live.turn, conversation), a(noTurn, noConversation)
		got := other.do(t, theirs.method, theirs.path, theirs.body)
		missing := other.do(t, nobodys.method, nobodys.path, nobodys.body)
		got.wantProblem(t, http.StatusNotFound, protocol.CodeNotFound)
		if !bytes.Equal(requestID.ReplaceAll(got.body, nil), requestID.ReplaceAll(missing.body, nil)) || missing.status != got.status {
			t.Errorf("%s: of somebody else\n%s\nof nobody\n%d %s", got.request, got.body, missing.status, missing.body)
		}
	}
	owner.cancel(t, live)
	if page := owner.page(t, conversation); strings.Contains(page.Title, "Foreign") || page.Draft.Content != "" || len(page.FollowUps) != 0 {
		t.Errorf("a stranger left a mark: %+v", page)
	}
}

func revoked(t *testing.T, s *site) {
	u := newUser(t, s.base)
	lost := u.device(t)
	conversation := u.newConversation(t)
	live := u.live(t, conversation, endlessTurn)
	reader, refused, err := lost.follow(within(t, patience), live.turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer reader.close()
	reader.awaitKind(t, "answer.delta")
	var devices protocol.List[protocol.Device]
	u.get(t, "/auth/sessions", &devices)
	if len(devices.Data) != 2 {
		t.Fatalf("%d sessions", len(devices.Data))
	}
	began := time.Now()
	for _, device := range devices.Data {
		if !device.Current {
			u.do(t, http.MethodDelete, "/auth/sessions/"+device.SessionID.String(), nil).want(t, http.StatusNoContent, nil)
		}
	}
	lost.do(t, http.MethodGet, "/conversations", nil).wantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
	for err = nil; err == nil; { // the stream ends, and not with the turn
		_, err = reader.next()
	}
	took := time.Since(began)
	if t.Logf("the stream of the revoked session ended after %s", took.Round(time.Millisecond)); took > revokedStreams || errors.Is(err, errBroken) || reader.finished {
		t.Errorf("after %s: %v", took, err)
	}
	live.awaitKind(t, "answer.delta")
	u.cancel(t, live)
}

func tooManyStreams(t *testing.T, s *site) {
	u := newUser(t, s.base)
	conversation, idle := u.newConversation(t), u.newConversation(t)
	live := u.live(t, conversation, endlessTurn)
	readers := []*stream{live}
	for len(readers) < openStreams {
		reader, refused, err := u.follow(within(t, patience), live.turn, 0, "")
		if err != nil || refused != nil {
			t.Fatalf("stream %d: %v %+v", len(readers)+1, err, refused)
		}
		defer reader.close()
		readers = append(readers, reader)
	}
	got := u.do(t, http.MethodGet, "/chat/turns/"+live.turn+"/events", nil)
	got.wantProblem(t, http.StatusTooManyRequests, protocol.CodeTooManyStreams)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	u.do(t, http.MethodPost, "/chat", saying("one too many").in(idle)).wantProblem(t, http.StatusTooManyRequests, protocol.CodeTooManyStreams)
	if messages := u.messages(t, idle); len(messages) != 0 {
		t.Error("the refused start has begun")
	}
	readers[openStreams-1].close()
	eventually(t, "a place is free again", func() bool {
		reader, _, err := u.follow(within(t, patience), live.turn, 0, "")
		if err != nil || reader == nil {
			return false
		}
		reader.close()
		return true
	})
	u.cancel(t, live)
}

func operatorsBytes(t *testing.T, s *site) {
	u := newUser(t, s.base)
	one := u.chat(t, saying(shortTurn).in(u.newConversation(t)))
	events, _ := one.toTheEnd(t)
	code, printed, complaint := finish(t, s.environment, "turn", "events", one.turn)
	lines := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	if code != 0 || len(lines) != len(events) {
		t.Fatalf("%d, %d lines of %d events: %s", code, len(lines), len(events), complaint)
	}
	for i, e := range events {
		if lines[i] != e.data {
			t.Errorf("event %d is\n%s\nfor the client, and for the operator\n%s", i+1, e.data, lines[i])
		}
	}
}

func cancelAll(t *testing.T, s *site) {
	u := newUser(t, s.base)
	for scope, want := range map[string]string{"turn": protocol.FollowUpHeld, "turn_and_follow_ups": protocol.FollowUpCancelled} {
		conversation := u.newConversation(t)
		live := u.live(t, conversation, endlessTurn)
		u.do(t, http.MethodPost, "/chat", saying("queued").in(conversation).with("if_busy", "queue")).want(t, http.StatusAccepted, nil)
		cancel := cancelling(live.turn)
		cancel["scope"] = scope
		var first, repeated protocol.SteeringReceipt
		u.do(t, http.MethodPost, "/chat/steering", cancel).want(t, http.StatusAccepted, &first)
		if a := u.do(t, http.MethodPost, "/chat/steering", cancel); a.status == http.StatusAccepted { // still cancelling
			if a.want(t, http.StatusAccepted, &repeated); !repeated.Replayed || repeated.Sequence != first.Sequence {
				t.Errorf("repeated: %+v after %+v", repeated, first)
			}
		} else {
			a.wantProblem(t, http.StatusConflict, protocol.CodeSteeringClosed)
		}
		if _, end := live.toTheEnd(t); end.Status != protocol.TurnCancelled {
			t.Errorf("it ended %s", end.Status)
		}
		u.do(t, http.MethodPost, "/chat/steering", steering(live.turn, "late", "late", "next_step")).
			wantProblem(t, http.StatusConflict, protocol.CodeSteeringClosed)
		if queue := u.followUps(t, conversation); len(queue) != 1 || queue[0].State != want {
			t.Errorf("scope %s leaves %+v", scope, queue)
		}
	}
}
