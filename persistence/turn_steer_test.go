package persistence_test

import (
	"encoding/json"
	"strings"
	"testing"

	"turnstone/protocol"
)

// steerWith is a start with a key that steers the live turn of a conversation.
func (w *world) steerWith(turn *actedTurn, key protocol.IdempotencyKey, input string) *protocol.TurnStart {
	start := w.request(&turn.spec.ConversationID, input)
	start.IfBusy, start.Idempotency = protocol.BusySteer, &key
	return start
}

// takes stores the turn's acceptance of an input with a name.
func (l *actedTurn) takes(name string) protocol.SteeringReceipt {
	l.w.Helper()
	id := protocol.NewSteeringID()
	body, err := json.Marshal(protocol.SteeringRecord{SteeringID: id, Hash: "h"})
	l.w.must(err)
	a := l.chunk(1)
	a.Frames = l.event(nil, a.First, &protocol.SteeringAccepted{SteeringID: id, ClientSteeringID: name, Text: "shorter"})
	a.Records = []protocol.TurnRecord{{Kind: protocol.RecordSteering, Key: name, Sequence: a.First, Body: body}}
	l.w.must(l.w.append(a))
	l.stored(a)
	return protocol.SteeringReceipt{SteeringID: id, TurnID: l.spec.TurnID, State: "accepted", Sequence: a.First, Replayed: true}
}

func TestARepeatedSteerFindsTheReceiptThatWasCommittedWithTheInput(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	key := keyOf("k", "body")
	for range 2 { // the process may die between the two commits
		result, err := w.try(w.steerWith(turn, key, "shorter"))
		if err != nil || result.Busy == nil || *result.Busy != turn.spec.TurnID || result.Replayed {
			t.Fatalf("the first request: %+v, %v", result, err)
		}
	}
	if kept, err := w.turns.KeptStart(t.Context(), w.account, key); kept != nil || err != nil {
		t.Errorf("before the input was accepted there is %+v, %v", kept, err)
	}
	want := turn.takes("k")
	repeat := func(when string) {
		t.Helper()
		result, err := w.try(w.steerWith(turn, key, "shorter"))
		if err != nil || result.Receipt == nil || *result.Receipt != want || !result.Replayed {
			t.Errorf("%s: %+v, %v", when, result, err)
		}
		kept, err := w.turns.KeptStart(t.Context(), w.account, key)
		if err != nil || kept == nil || kept.Receipt == nil || *kept.Receipt != want {
			t.Errorf("%s, looked up: %+v, %v", when, kept, err)
		}
		other := keyOf("k", "other body")
		if _, err := w.try(w.steerWith(turn, other, "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
			t.Errorf("%s, another body: %v", when, err)
		}
		if _, err := w.turns.KeptStart(t.Context(), w.account, other); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
			t.Errorf("%s, another body looked up: %v", when, err)
		}
	}
	repeat("while the turn is live")
	turn.end(nil)
	repeat("after its end")
	w.start(w.request(&turn.spec.ConversationID, "next"))
	repeat("while the next turn is live")
}

func TestASteerThatItsTurnNeverTookStartsOneTurn(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	key := keyOf("k", "body")
	if result, err := w.try(w.steerWith(turn, key, "shorter")); err != nil || result.Busy == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	turn.end(nil)
	first, err := w.try(w.steerWith(turn, key, "shorter"))
	if err != nil || first.Spec == nil || first.Replayed {
		t.Fatalf("the repeat after the end: %+v, %v", first, err)
	}
	second, err := w.try(w.steerWith(turn, key, "shorter"))
	if err != nil || second.Spec == nil || second.Spec.TurnID != first.Spec.TurnID || !second.Replayed {
		t.Errorf("the second repeat: %+v, %v", second, err)
	}
	if _, err := w.try(w.steerWith(turn, keyOf("k", "other body"), "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
}

func TestAKeyIsFreeAgainAfterATurnEndedWithoutItsInput(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	if _, err := w.try(w.steerWith(turn, keyOf("k", "body"), "shorter")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.try(w.steerWith(turn, keyOf("k", "other body"), "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body while the turn may still take the input: %v", err)
	}
	turn.end(nil)
	if result, err := w.try(w.steerWith(turn, keyOf("k", "other body"), "longer")); err != nil || result.Spec == nil {
		t.Errorf("another body after the end: %+v, %v", result, err)
	}
}

func TestWhatIsQueuedOrSteeredIsCheckedAsAStartIs(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	for _, busy := range []string{protocol.BusyQueue, protocol.BusySteer} {
		for name, test := range map[string]struct {
			change func(*protocol.TurnStart)
			want   protocol.Code
		}{
			"the head": {func(s *protocol.TurnStart) { s.Expected = &protocol.ExpectedHead{ID: &turn.spec.AssistantMessageID} }, ""},
			"an older head": {func(s *protocol.TurnStart) {
				s.Expected = &protocol.ExpectedHead{ID: &turn.spec.UserMessageID}
			}, protocol.CodeHeadMoved},
			"an empty branch": {func(s *protocol.TurnStart) { s.Expected = &protocol.ExpectedHead{} }, protocol.CodeHeadMoved},
			"an edit": {func(s *protocol.TurnStart) {
				s.Branch = &protocol.BranchRequest{MessageID: turn.spec.UserMessageID, Mode: protocol.BranchEdit}
			}, protocol.CodeTurnInProgress},
			"an edit of an answer": {func(s *protocol.TurnStart) {
				s.Branch = &protocol.BranchRequest{MessageID: turn.spec.AssistantMessageID, Mode: protocol.BranchEdit}
			}, protocol.CodeInvalid},
			"an edit of nothing": {func(s *protocol.TurnStart) {
				s.Branch = &protocol.BranchRequest{MessageID: protocol.NewMessageID(), Mode: protocol.BranchEdit}
			}, protocol.CodeNotFound},
			"no text": {func(s *protocol.TurnStart) { s.Input = "" }, protocol.CodeInvalid},
		} {
			start := w.request(&turn.spec.ConversationID, "more")
			start.IfBusy = busy
			test.change(start)
			result, err := w.try(start)
			if test.want == "" && (err != nil || (result.FollowUp == nil) != (busy == protocol.BusySteer)) || test.want != "" && protocol.CodeOf(err) != test.want {
				t.Errorf("%s, %s: %+v, %v", busy, name, result, err)
			}
		}
	}
	long := w.request(&turn.spec.ConversationID, strings.Repeat("é", protocol.MaxSteeringRunes+1))
	long.IfBusy = protocol.BusySteer
	if _, err := w.try(long); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("an input that is too long: %v", err)
	}
}
