package e2e

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

	"turnstone/cmd/turnstone/sitetest"
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

// TestLiveTurnsKeepTheContract checks what live turns promise to their clients, in one run of the program.
func TestLiveTurnsKeepTheContract(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	for name, test := range map[string]func(*testing.T, *sitetest.Site){
		"busy: reject, queue, steer":                     busy,
		"one key starts one turn, and a repeat attaches": sameKey,
		"a stale tab does not overwrite":                 staleTab,
		"readers resume at any position":                 resume,
		"a snapshot replaces the events before it":       snapshot,
		"another account finds nothing":                  foreign,
		"a revoked session loses its stream":             revoked,
		"the fifty-first stream is refused":              tooManyStreams,
		"operators see the bytes that clients see":       operatorsBytes,
		"the scope of a cancel decides about the queue":  cancelAll,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func busy(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	first := u.Live(t, conversation, "[[script tokens=60 ttft=0 interval=10ms]]")

	refused := u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("again").In(conversation)).WantProblem(t, http.StatusConflict, protocol.CodeTurnInProgress)
	var current struct {
		TurnID string `json:"turn_id"`
	}
	if err := json.Unmarshal(refused.Current, &current); err != nil || current.TurnID != first.Turn {
		t.Errorf("current is %s", refused.Current)
	}
	var queued protocol.FollowUp
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("queued "+shortTurn).In(conversation).With("if_busy", "queue")).Want(t, http.StatusAccepted, &queued)
	if queued.State != protocol.FollowUpQueued {
		t.Errorf("queued as %s", queued.State)
	}
	var steered protocol.SteeringReceipt
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("steered").In(conversation).With("if_busy", "steer")).Want(t, http.StatusAccepted, &steered)
	if steered.TurnID.String() != first.Turn || steered.State != "accepted" {
		t.Errorf("steered %+v", steered)
	}
	events, end := first.ReadToEnd(t)
	if end.Status != protocol.TurnCompleted || sitetest.CountKind(events, "steering.applied") != 1 {
		t.Errorf("the turn ended %s, %d inputs applied", end.Status, sitetest.CountKind(events, "steering.applied"))
	}

	var second string // the queue continues by itself
	sitetest.Eventually(t, "the queued message became a turn", func() bool {
		for _, item := range u.FollowUps(t, conversation) {
			if item.FollowUpID == queued.FollowUpID && item.State == protocol.FollowUpStarted && item.TurnID != nil {
				second = item.TurnID.String()
			}
		}
		return second != ""
	})
	if _, end := u.WholeLog(t, second); end.Status != protocol.TurnCompleted {
		t.Errorf("the queued turn ended %s", end.Status)
	}
	messages := u.Messages(t, conversation)
	if len(messages) != 4 || !strings.Contains(sitetest.Texts(messages[2].Parts)[0], "queued") {
		t.Errorf("%d messages", len(messages))
	}
}

func sameKey(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	body := sitetest.NewChatBody(sitetest.LongTurn).In(conversation)
	first := u.Chat(t, body, "Idempotency-Key", "one-turn")
	first.AwaitKind(t, "answer.delta")
	again := u.Chat(t, body, "Idempotency-Key", "one-turn")
	if again.Turn != first.Turn || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("the same key: turn %s and %s, %v", first.Turn, again.Turn, again.Header)
	}
	if e := again.AwaitKind(t, "turn.started"); e.Sequence != 1 {
		t.Errorf("the replay starts with event %d", e.Sequence)
	}
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("something else").In(conversation), "Idempotency-Key", "one-turn").
		WantProblem(t, http.StatusUnprocessableEntity, protocol.CodeIdempotencyMismatch)
	u.Cancel(t, first)
	again.ReadToEnd(t)
	last := u.Chat(t, body, "Idempotency-Key", "one-turn")
	if events, _ := last.ReadToEnd(t); last.Turn != first.Turn || events[0].Sequence != 1 {
		t.Errorf("after its end: turn %s from event %d", last.Turn, events[0].Sequence)
	}
	if messages := u.Messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}

func staleTab(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	_, end := u.Chat(t, sitetest.NewChatBody(shortTurn).In(conversation).With("expected_head_message_id", nil)).ReadToEnd(t)
	for _, stale := range []any{nil, u.Messages(t, conversation)[0].MessageID.String()} {
		u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("stale").In(conversation).With("expected_head_message_id", stale)).
			WantProblem(t, http.StatusConflict, protocol.CodeHeadMoved)
	}
	u.Chat(t, sitetest.NewChatBody(shortTurn).In(conversation).With("expected_head_message_id", end.MessageID.String())).ReadToEnd(t)
	if messages := u.Messages(t, conversation); len(messages) != 4 {
		t.Errorf("%d messages", len(messages))
	}
}

func resume(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	events := "/chat/turns/" + live.Turn + "/events"
	u.Do(t, http.MethodGet, events, nil, "Last-Event-ID", fmt.Sprint(farAhead)).WantProblem(t, http.StatusConflict, protocol.CodeSequenceAhead)
	for _, malformed := range []string{malformedCursor, "?after=-1", "?after=1.5"} {
		u.Do(t, http.MethodGet, events+malformed, nil).WantProblem(t, http.StatusUnprocessableEntity, protocol.CodeInvalid)
	}
	both, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 2, "?after=1") // the header takes precedence
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer both.Close()
	if e, err := both.Next(); err != nil || e.Sequence != 3 {
		t.Errorf("event %d follows event 2, %v", e.Sequence, err)
	}
	u.Cancel(t, live)
	whole, end := u.WholeLog(t, live.Turn)
	for _, after := range []int64{0, 1, end.LastSequence / 2, end.LastSequence - 1} {
		tail, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, after, "")
		if err != nil || refused != nil {
			t.Fatalf("%v %+v", err, refused)
		}
		if got, _ := tail.ReadToEnd(t); int64(len(got)) != int64(len(whole))-after {
			t.Errorf("after event %d there are %d of %d events", after, len(got), len(whole))
		}
		tail.Close()
	}
	for _, after := range []int64{end.LastSequence, farAhead} {
		for _, mode := range []string{"", "?mode=snapshot"} {
			got := u.Do(t, http.MethodGet, events+mode, nil, "Last-Event-ID", fmt.Sprint(after)).Want(t, http.StatusNoContent, nil)
			if len(got.Body) != 0 {
				t.Errorf("204 with %q", got.Body)
			}
		}
	}
}

func snapshot(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, sitetest.LongTurn)
	from := func() (*protocol.TurnSnapshot, []sitetest.Event, *protocol.TurnFinished) {
		t.Helper()
		reader, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 0, "?mode=snapshot")
		if err != nil || refused != nil {
			t.Fatalf("%v %+v", err, refused)
		}
		defer reader.Close()
		first, err := reader.Next()
		if err != nil || first.Type != "turn.snapshot" {
			t.Fatalf("the stream starts with %s: %v", first.Type, err)
		}
		shown := first.Payload().(*protocol.TurnSnapshot)
		if shown.CoversSequence != first.Sequence {
			t.Errorf("snapshot %d covers %d", first.Sequence, shown.CoversSequence)
		}
		events, end := reader.ReadToEnd(t)
		return shown, events, end
	}
	shown, events, _ := from()
	if said := strings.Join(sitetest.Texts(shown.Message.Parts), ""); said == "" || !strings.HasPrefix(sitetest.ScriptedText(sitetest.LongTurn), said) || shown.Message.Status != protocol.MessageStreaming {
		t.Errorf("the message so far is %s: %q", shown.Message.Status, said)
	}
	for _, e := range events {
		if delta, ok := e.Payload().(*protocol.AnswerDelta); ok { // the first one continues where the snapshot ends
			if want := len(strings.Join(sitetest.Texts(shown.Message.Parts), "")); delta.Offset != want {
				t.Errorf("the snapshot has %d bytes, but the next event continues at %d", want, delta.Offset)
			}
			break
		}
	}
	live.ReadToEnd(t)
	shown, events, end := from()
	if len(events) != 1 || shown.CoversSequence != end.LastSequence-1 || strings.Join(sitetest.Texts(shown.Message.Parts), "") != sitetest.ScriptedText(sitetest.LongTurn) {
		t.Errorf("the snapshot of a finished turn covers %d of %d, and %d events follow", shown.CoversSequence, end.LastSequence, len(events))
	}
}

var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

// foreign checks that the response for an object of another account is byte for byte the response for an object that
// does not exist.
func foreign(t *testing.T, s *sitetest.Site) {
	owner, other := sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)
	conversation := owner.NewConversation(t)
	live := owner.Live(t, conversation, endlessTurn)
	noTurn, noConversation := protocol.NewTurnID().String(), protocol.NewConversationID().String()
	message := protocol.NewMessageID().String()
	for _, a := range []func(turn, conversation string) sitetest.Attempt{
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/chat/turns/" + turn, Body: nil}
		},
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/chat/turns/" + turn + "/events", Body: nil}
		},
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/chat/turns/" + turn + "/events?after=99999999", Body: nil}
		},
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/chat/turns/" + turn + "/events?mode=snapshot", Body: nil}
		},
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.SteeringBody(turn, "foreign", "foreign", "interrupt")}
		},
		func(turn, _ string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.CancelBody(turn)}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/chat", Body: sitetest.NewChatBody("foreign").In(c)}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/chat", Body: sitetest.NewChatBody("foreign").In(c).With("if_busy", "steer")}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/chat", Body: sitetest.NewChatBody("foreign").In(c).With("if_busy", "queue")}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/conversations/" + c, Body: nil}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/conversations/" + c + "/messages", Body: nil}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/conversations/" + c + "/follow-ups", Body: nil}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodGet, Path: "/conversations/" + c + "/usage", Body: nil}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPut, Path: "/conversations/" + c + "/title", Body: map[string]string{"title": "Foreign"}}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPut, Path: "/conversations/" + c + "/draft", Body: map[string]string{"content": "foreign"}}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodPost, Path: "/conversations/" + c + "/branches", Body: map[string]string{"message_id": message, "mode": "fork"}}
		},
		func(_, c string) sitetest.Attempt {
			return sitetest.Attempt{Method: http.MethodDelete, Path: "/conversations/" + c, Body: nil}
		},
	} {
		theirs, nobodys := a(live.Turn, conversation), a(noTurn, noConversation)
		got := other.Do(t, theirs.Method, theirs.Path, theirs.Body)
		missing := other.Do(t, nobodys.Method, nobodys.Path, nobodys.Body)
		got.WantProblem(t, http.StatusNotFound, protocol.CodeNotFound)
		if !bytes.Equal(requestID.ReplaceAll(got.Body, nil), requestID.ReplaceAll(missing.Body, nil)) || missing.Status != got.Status {
			t.Errorf("%s: for an object of another account\n%s\nfor a missing object\n%d %s", got.Request, got.Body, missing.Status, missing.Body)
		}
	}
	owner.Cancel(t, live)
	if page := owner.Page(t, conversation); strings.Contains(page.Title, "Foreign") || page.Draft.Content != "" || len(page.FollowUps) != 0 {
		t.Errorf("another account changed the conversation: %+v", page)
	}
}

func revoked(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	lost := u.Device(t)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	reader, refused, err := lost.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer reader.Close()
	reader.AwaitKind(t, "answer.delta")
	var devices protocol.List[protocol.Device]
	u.Get(t, "/auth/sessions", &devices)
	if len(devices.Data) != 2 {
		t.Fatalf("%d sessions", len(devices.Data))
	}
	began := time.Now()
	for _, device := range devices.Data {
		if !device.Current {
			u.Do(t, http.MethodDelete, "/auth/sessions/"+device.SessionID.String(), nil).Want(t, http.StatusNoContent, nil)
		}
	}
	lost.Do(t, http.MethodGet, "/conversations", nil).WantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
	for err = nil; err == nil; { // the stream ends, but not with the end of the turn
		_, err = reader.Next()
	}
	took := time.Since(began)
	if t.Logf("the stream of the revoked session ended after %s", took.Round(time.Millisecond)); took > revokedStreams || errors.Is(err, sitetest.ErrBroken) || reader.Finished() {
		t.Errorf("after %s: %v", took, err)
	}
	live.AwaitKind(t, "answer.delta")
	u.Cancel(t, live)
}

func tooManyStreams(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	conversation, idle := u.NewConversation(t), u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	readers := []*sitetest.Stream{live}
	for len(readers) < openStreams {
		reader, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 0, "")
		if err != nil || refused != nil {
			t.Fatalf("stream %d: %v %+v", len(readers)+1, err, refused)
		}
		defer reader.Close()
		readers = append(readers, reader)
	}
	got := u.Do(t, http.MethodGet, "/chat/turns/"+live.Turn+"/events", nil)
	got.WantProblem(t, http.StatusTooManyRequests, protocol.CodeTooManyStreams)
	if got.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("one too many").In(idle)).WantProblem(t, http.StatusTooManyRequests, protocol.CodeTooManyStreams)
	if messages := u.Messages(t, idle); len(messages) != 0 {
		t.Error("the start was refused, but its turn runs")
	}
	readers[openStreams-1].Close()
	sitetest.Eventually(t, "a stream slot is free again", func() bool {
		reader, _, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 0, "")
		if err != nil || reader == nil {
			return false
		}
		reader.Close()
		return true
	})
	u.Cancel(t, live)
}

func operatorsBytes(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	one := u.Chat(t, sitetest.NewChatBody(shortTurn).In(u.NewConversation(t)))
	events, _ := one.ReadToEnd(t)
	code, stdout, stderr := sitetest.Finish(t, s.Environment, "turn", "events", one.Turn)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if code != 0 || len(lines) != len(events) {
		t.Fatalf("%d, %d lines of %d events: %s", code, len(lines), len(events), stderr)
	}
	for i, e := range events {
		if lines[i] != e.Data {
			t.Errorf("event %d is\n%s\nfor the client, but for the operator\n%s", i+1, e.Data, lines[i])
		}
	}
}

func cancelAll(t *testing.T, s *sitetest.Site) {
	u := sitetest.NewUser(t, s.Base)
	for scope, want := range map[string]protocol.FollowUpState{"turn": protocol.FollowUpHeld, "turn_and_follow_ups": protocol.FollowUpCancelled} {
		conversation := u.NewConversation(t)
		live := u.Live(t, conversation, endlessTurn)
		u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("queued").In(conversation).With("if_busy", "queue")).Want(t, http.StatusAccepted, nil)
		cancel := sitetest.CancelBody(live.Turn)
		cancel["scope"] = scope
		var first, repeated protocol.SteeringReceipt
		u.Do(t, http.MethodPost, "/chat/steering", cancel).Want(t, http.StatusAccepted, &first)
		if a := u.Do(t, http.MethodPost, "/chat/steering", cancel); a.Status == http.StatusAccepted { // still cancelling
			if a.Want(t, http.StatusAccepted, &repeated); !repeated.Replayed || repeated.Sequence != first.Sequence {
				t.Errorf("repeated: %+v after %+v", repeated, first)
			}
		} else {
			a.WantProblem(t, http.StatusConflict, protocol.CodeSteeringClosed)
		}
		if _, end := live.ReadToEnd(t); end.Status != protocol.TurnCancelled {
			t.Errorf("the turn ended %s", end.Status)
		}
		u.Do(t, http.MethodPost, "/chat/steering", sitetest.SteeringBody(live.Turn, "late", "late", "next_step")).
			WantProblem(t, http.StatusConflict, protocol.CodeSteeringClosed)
		if queue := u.FollowUps(t, conversation); len(queue) != 1 || queue[0].State != want {
			t.Errorf("after a cancel with scope %s the queue is %+v", scope, queue)
		}
	}
}
