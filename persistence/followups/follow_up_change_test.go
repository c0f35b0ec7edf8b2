package followups_test

import (
	"context"
	"sync"
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// itemsOf returns the follow-ups of a conversation by their content.
func itemsOf(w *storetest.World, conversation protocol.ConversationID) map[string]*protocol.FollowUp {
	w.Helper()
	page, err := w.DB.FollowUps.ListFollowUps(w.Context(), w.Account, conversation, true, nil, 100)
	w.Must(err)
	items := map[string]*protocol.FollowUp{}
	for i := range page.Items {
		items[page.Items[i].Content] = &page.Items[i]
	}
	return items
}

func TestAHeldFollowUpStartsWhenItIsReleased(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	w.Queued(conversation, "two")
	w.Queued(conversation, "three")
	turn.End(func(f *turnlog.Finish) {
		f.State, f.StopReason, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.StopCancelled, protocol.MessageCancelled, true
	})
	held := itemsOf(w, conversation)

	item, started, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, held["two"], protocol.FollowUpQueued), w.Runner)
	w.Must(err)
	if started == nil || started.Spec.Input != "two" || started.Epoch != 1 || *started.Spec.FollowUpID != item.FollowUpID {
		t.Fatalf("releasing it started %+v", started)
	}
	if now := itemsOf(w, conversation)["two"]; item.State != protocol.FollowUpStarted || *item.TurnID != started.Spec.TurnID ||
		now.Version != item.Version || now.State != item.State || *now.TurnID != *item.TurnID {
		t.Errorf("returned %+v, stored %+v", item, now)
	}
	next := w.Simulate(started.Spec, started.Begin)
	next.Append(1)
	if more := next.End(nil); more != nil {
		t.Errorf("a held follow-up started: %+v", more)
	}

	change := w.Change(conversation, held["three"], protocol.FollowUpQueued)
	edited := "four"
	change.Content = &edited
	if _, started, err = w.DB.FollowUps.ChangeFollowUp(t.Context(), change, w.Runner); err != nil || started == nil || started.Spec.Input != edited {
		t.Errorf("editing and releasing it started %+v, %v", started, err)
	}
}

func TestAReleasedFollowUpWaitsForTheLiveTurnAndForItsNode(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	second, third := w.Queued(conversation, "two"), w.Queued(conversation, "three")
	for _, state := range []protocol.FollowUpState{protocol.FollowUpHeld, protocol.FollowUpQueued, protocol.FollowUpHeld} {
		item, started, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, second, state), w.Runner)
		if err != nil || started != nil || item.State != state || item.Version != second.Version+1 {
			t.Fatalf("%s while a turn is live: %+v started %+v, %v", state, item, started, err)
		}
		second = item
	}
	if started := turn.End(nil); started == nil || started.Spec.Input != "three" || *started.Spec.FollowUpID != third.FollowUpID {
		t.Fatalf("the end started %+v, want the follow-up after the held one", started)
	} else {
		w.Simulate(started.Spec, started.Begin).End(nil)
	}
	draining := w.Change(conversation, second, protocol.FollowUpQueued)
	item, started, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), draining, turnlog.Runner{})
	if err != nil || started != nil || item.State != protocol.FollowUpQueued {
		t.Errorf("by a draining node: %+v started %+v, %v", item, started, err)
	}
}

func TestAFollowUpChangeNeedsTheCurrentVersion(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	item := w.Queued(conversation, "two")
	refused := func(what string, change *turnlog.FollowUpChange, code protocol.Code) {
		t.Helper()
		if _, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), change, w.Runner); protocol.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
	}
	without := w.Change(conversation, item, protocol.FollowUpHeld)
	without.Version = nil
	refused("without a version", without, protocol.CodeVersionRequired)
	stale := *item
	stale.Version--
	refused("to a state that only a turn gives", w.Change(conversation, item, protocol.FollowUpStarted), protocol.CodeConflict)
	refused("with an old version", w.Change(conversation, &stale, protocol.FollowUpHeld), protocol.CodeStaleVersion)
	refused("in another conversation", w.Change(protocol.NewConversationID(), item, protocol.FollowUpHeld), protocol.CodeNotFound)
	foreign := w.Change(conversation, item, protocol.FollowUpHeld)
	foreign.AccountID = protocol.NewAccountID()
	refused("by another account", foreign, protocol.CodeNotFound)
	missing := w.Change(conversation, item, protocol.FollowUpHeld)
	missing.FollowUpID = protocol.NewFollowUpID()
	refused("an unknown follow-up", missing, protocol.CodeNotFound)

	same, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, item, protocol.FollowUpQueued), w.Runner)
	if err != nil || same.Version != item.Version {
		t.Errorf("in the state that it has: %+v, %v", same, err)
	}
	cancelled, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, item, protocol.FollowUpCancelled), w.Runner)
	if err != nil || cancelled.State != protocol.FollowUpCancelled {
		t.Fatalf("cancelled: %+v, %v", cancelled, err)
	}
	refused("after it was cancelled", w.Change(conversation, cancelled, protocol.FollowUpQueued), protocol.CodeConflict)
	if started := turn.End(nil); started != nil {
		t.Errorf("a cancelled follow-up started: %+v", started)
	}
}

func TestConcurrentReleasesOfAFollowUpStartOneTurn(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	w.Queued(conversation, "two")
	turn.End(func(f *turnlog.Finish) { f.PauseQueue = true })
	item := itemsOf(w, conversation)["two"]
	var all sync.WaitGroup
	begun := make(chan *turnlog.Started, 8)
	for range cap(begun) {
		all.Go(func() {
			_, started, err := w.DB.FollowUps.ChangeFollowUp(context.Background(), w.Change(conversation, item, protocol.FollowUpQueued), w.Runner)
			if err != nil && protocol.CodeOf(err) != protocol.CodeStaleVersion {
				t.Error(err)
			}
			begun <- started
		})
	}
	all.Wait()
	close(begun)
	turns := 0
	for started := range begun {
		if started != nil {
			turns++
		}
	}
	if turns != 1 {
		t.Errorf("%d turns started", turns)
	}
}
