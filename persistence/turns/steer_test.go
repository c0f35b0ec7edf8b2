package turns_test

import (
	"encoding/json"
	"strings"
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// steerWith returns a start with an idempotency key that steers the live turn of a conversation.
func steerWith(w *storetest.World, turn *storetest.Turn, key protocol.IdempotencyKey, input string) *turnlog.Start {
	start := w.Request(&turn.Spec.ConversationID, input)
	start.IfBusy, start.Idempotency = protocol.BusySteer, &key
	return start
}

// acceptSteering stores that the turn has accepted the steering input with the client's identifier name, and returns the receipt
// that a repeat gets.
func acceptSteering(w *storetest.World, l *storetest.Turn, name string) protocol.SteeringReceipt {
	w.Helper()
	id := protocol.NewSteeringID()
	body, err := json.Marshal(turnlog.SteeringRecord{SteeringID: id, Hash: "h"})
	w.Must(err)
	a := l.Chunk(1)
	a.Frames = l.Event(nil, a.First, &protocol.SteeringAccepted{SteeringID: id, ClientSteeringID: name, Text: "shorter"})
	a.Records = []turnlog.Record{{Kind: turnlog.RecordSteering, Key: name, Sequence: a.First, Body: body}}
	w.Must(w.Append(a))
	l.Stored(a)
	return protocol.Accepted(id, l.Spec.TurnID, a.First, false)
}

func TestARepeatedSteerFindsTheReceiptThatWasCommittedWithTheInput(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	key := storetest.KeyOf("k", "body")
	var name string
	for range 2 { // the process may crash between the two commits
		result, err := w.Try(steerWith(w, turn, key, "shorter"))
		if err != nil || result.Busy == nil || *result.Busy != turn.Spec.TurnID || result.Replayed || name != "" && result.SteersAs != name {
			t.Fatalf("the first request: %+v, %v", result, err)
		}
		name = result.SteersAs
	}
	if stored, err := w.Turns.StoredStart(t.Context(), w.Account, key); stored != nil || err != nil {
		t.Errorf("before the input was accepted: %+v, %v", stored, err)
	}
	want := acceptSteering(w, turn, name)
	repeat := func(when string) {
		t.Helper()
		result, err := w.Try(steerWith(w, turn, key, "shorter"))
		if err != nil || result.Receipt == nil || *result.Receipt != want || !result.Replayed {
			t.Errorf("%s: %+v, %v", when, result, err)
		}
		stored, err := w.Turns.StoredStart(t.Context(), w.Account, key)
		if err != nil || stored == nil || stored.Receipt == nil || *stored.Receipt != want {
			t.Errorf("%s, looked up: %+v, %v", when, stored, err)
		}
		other := storetest.KeyOf("k", "other body")
		if _, err := w.Try(steerWith(w, turn, other, "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
			t.Errorf("%s, another body: %v", when, err)
		}
		if _, err := w.Turns.StoredStart(t.Context(), w.Account, other); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
			t.Errorf("%s, another body looked up: %v", when, err)
		}
	}
	repeat("while the turn is live")
	turn.End(nil)
	repeat("after its end")
	w.Start(w.Request(&turn.Spec.ConversationID, "next"))
	repeat("while the next turn is live")
}

// forgetNames makes the rows of steered starts those of an earlier version, which stored no name of the input.
func forgetNames(w *storetest.World) {
	w.Helper()
	_, err := w.AdminConn().Exec(w.Context(), `update idempotency set body = null`)
	w.Must(err)
}

func TestARepeatFindsTheReceiptOfASteerByAnEarlierVersion(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	key := storetest.KeyOf("k", "body")
	_, err := w.Try(steerWith(w, turn, key, "shorter"))
	w.Must(err)
	forgetNames(w)
	if result, err := w.Try(steerWith(w, turn, key, "shorter")); err != nil || result.SteersAs != "k" {
		t.Fatalf("the input that is not accepted yet: %+v, %v", result, err)
	}
	forgetNames(w)
	want := acceptSteering(w, turn, "k")
	if result, err := w.Try(steerWith(w, turn, key, "shorter")); err != nil || result.Receipt == nil || *result.Receipt != want {
		t.Errorf("the repeat: %+v, %v", result, err)
	}
	if stored, err := w.Turns.StoredStart(t.Context(), w.Account, key); err != nil || stored == nil || stored.Receipt == nil || *stored.Receipt != want {
		t.Errorf("the repeat, looked up: %+v, %v", stored, err)
	}
}

func TestASteeringInputThatItsTurnDidNotAcceptStartsOneTurn(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	key := storetest.KeyOf("k", "body")
	if result, err := w.Try(steerWith(w, turn, key, "shorter")); err != nil || result.Busy == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	turn.End(nil)
	first, err := w.Try(steerWith(w, turn, key, "shorter"))
	if err != nil || first.Spec == nil || first.Replayed {
		t.Fatalf("the repeat after the end: %+v, %v", first, err)
	}
	second, err := w.Try(steerWith(w, turn, key, "shorter"))
	if err != nil || second.Spec == nil || second.Spec.TurnID != first.Spec.TurnID || !second.Replayed {
		t.Errorf("the second repeat: %+v, %v", second, err)
	}
	if _, err := w.Try(steerWith(w, turn, storetest.KeyOf("k", "other body"), "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
}

func TestAKeyIsFreeAgainAfterATurnEndedWithoutItsInput(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	if _, err := w.Try(steerWith(w, turn, storetest.KeyOf("k", "body"), "shorter")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Try(steerWith(w, turn, storetest.KeyOf("k", "other body"), "longer")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body while the turn may still take the input: %v", err)
	}
	turn.End(nil)
	if result, err := w.Try(steerWith(w, turn, storetest.KeyOf("k", "other body"), "longer")); err != nil || result.Spec == nil {
		t.Errorf("another body after the end: %+v, %v", result, err)
	}
}

func TestQueueingAndSteeringMakeTheChecksOfAStart(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	for _, busy := range []string{protocol.BusyQueue, protocol.BusySteer} {
		for name, test := range map[string]struct {
			change func(*turnlog.Start)
			want   protocol.Code
		}{
			"the head": {func(s *turnlog.Start) { s.Expected = &turnlog.ExpectedHead{ID: &turn.Spec.AssistantMessageID} }, ""},
			"an older head": {func(s *turnlog.Start) {
				s.Expected = &turnlog.ExpectedHead{ID: &turn.Spec.UserMessageID}
			}, protocol.CodeHeadMoved},
			"an empty branch": {func(s *turnlog.Start) { s.Expected = &turnlog.ExpectedHead{} }, protocol.CodeHeadMoved},
			"an edit": {func(s *turnlog.Start) {
				s.Branch = &protocol.BranchRequest{MessageID: turn.Spec.UserMessageID, Mode: protocol.BranchEdit}
			}, protocol.CodeTurnInProgress},
			"an edit of an answer": {func(s *turnlog.Start) {
				s.Branch = &protocol.BranchRequest{MessageID: turn.Spec.AssistantMessageID, Mode: protocol.BranchEdit}
			}, protocol.CodeInvalid},
			"an edit of nothing": {func(s *turnlog.Start) {
				s.Branch = &protocol.BranchRequest{MessageID: protocol.NewMessageID(), Mode: protocol.BranchEdit}
			}, protocol.CodeNotFound},
			"no text": {func(s *turnlog.Start) { s.Input = "" }, protocol.CodeInvalid},
		} {
			start := w.Request(&turn.Spec.ConversationID, "more")
			start.IfBusy = busy
			test.change(start)
			result, err := w.Try(start)
			if test.want == "" && (err != nil || (result.FollowUp == nil) != (busy == protocol.BusySteer)) || test.want != "" && protocol.CodeOf(err) != test.want {
				t.Errorf("%s, %s: %+v, %v", busy, name, result, err)
			}
		}
	}
	long := w.Request(&turn.Spec.ConversationID, strings.Repeat("é", protocol.MaxSteeringRunes+1))
	long.IfBusy = protocol.BusySteer
	if _, err := w.Try(long); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("an input that is too long: %v", err)
	}
}
