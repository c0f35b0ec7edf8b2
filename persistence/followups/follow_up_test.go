package followups_test

import (
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// create adds a follow-up to a queue, as a node does.
func create(w *storetest.World, conversation protocol.ConversationID, content string) (*protocol.FollowUp, *turnlog.Started) {
	w.Helper()
	item, started, err := w.DB.FollowUps.CreateFollowUp(w.Context(), &turnlog.NewFollowUp{Queue: w.QueueOf(conversation), Content: content}, w.Runner)
	w.Must(err)
	return item, started
}

// cancelled ends a turn as cancelled.
func cancelled(f *turnlog.Finish) {
	f.State, f.StopReason, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.StopCancelled, protocol.MessageCancelled, true
}

func TestAFollowUpThatIsCreatedWhileNoTurnIsLiveStarts(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Queue").ConversationID
	first, started := create(w, conversation, "one")
	if started == nil || started.Spec.Input != "one" || first.State != protocol.FollowUpStarted || *first.TurnID != started.Spec.TurnID {
		t.Fatalf("created %+v, which started %+v", first, started)
	}
	if stored := itemsOf(w, conversation)["one"]; stored.Version != first.Version || *stored.TurnID != *first.TurnID {
		t.Errorf("returned %+v, stored %+v", first, stored)
	}
	second, more := create(w, conversation, "two")
	if more != nil || second.State != protocol.FollowUpQueued || second.Position <= first.Position {
		t.Fatalf("while a turn is live: %+v started %+v", second, more)
	}
	turn := w.Simulate(started.Spec, started.Begin)
	if next := turn.End(nil); next == nil || *next.Spec.FollowUpID != second.FollowUpID {
		t.Errorf("the end started %+v", next)
	}
}

func TestACreatedFollowUpWaitsForASlotAndForANodeThatRunsTurns(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Queue").ConversationID
	full := w.Runner
	full.MaxLiveTurns = 0
	for what, on := range map[string]turnlog.Runner{"at the limit of live turns": full, "by a draining node": {}} {
		f := &turnlog.NewFollowUp{Queue: w.QueueOf(conversation), Content: what}
		if item, started, err := w.DB.FollowUps.CreateFollowUp(t.Context(), f, on); err != nil || started != nil || item.State != protocol.FollowUpQueued {
			t.Errorf("%s: %+v started %+v, %v", what, item, started, err)
		}
	}
	// The queue was stalled: the oldest item starts first.
	item, started := create(w, conversation, "three")
	if started == nil || started.Spec.Input == "three" || item.State != protocol.FollowUpQueued {
		t.Errorf("%+v started %+v", item, started)
	}
}

func TestAFollowUpIsCreatedOnlyInAConversationOfItsAccountAndInAQueueThatIsNotFull(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := w.Start(w.Request(nil, "one")).Spec.ConversationID
	foreign := &turnlog.NewFollowUp{Queue: w.QueueOf(conversation), Content: "two"}
	foreign.AccountID = w.OtherAccount()
	_, _, err := w.DB.FollowUps.CreateFollowUp(t.Context(), foreign, w.Runner)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for range protocol.MaxFollowUps {
		create(w, conversation, "more")
	}
	_, _, err = w.DB.FollowUps.CreateFollowUp(t.Context(), &turnlog.NewFollowUp{Queue: w.QueueOf(conversation), Content: "one too many"}, w.Runner)
	storetest.WantCode(t, err, protocol.CodeTooManyFollowUps)
}
