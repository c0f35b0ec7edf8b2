package persistence_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"turnstone/protocol"
)

// queued puts a text into the queue of a conversation in which a turn is live.
func (w *world) queued(conversation protocol.ConversationID, text string) *protocol.FollowUp {
	w.Helper()
	start := w.request(&conversation, text)
	start.IfBusy = protocol.BusyQueue
	result, err := w.try(start)
	if err != nil || result.FollowUp == nil {
		w.Fatalf("queueing: %+v, %v", result, err)
	}
	return result.FollowUp
}

// change is one that a node would make.
func (w *world) change(conversation protocol.ConversationID, item *protocol.FollowUp, state string) *protocol.FollowUpChange {
	return &protocol.FollowUpChange{
		AccountID: w.account, ConversationID: conversation, FollowUpID: item.FollowUpID, State: state, Version: &item.Version,
		At: time.Now(), Owner: w.node, MaxLiveTurns: testLiveTurns, Begin: beginTurn,
	}
}

// itemsOf are the items of a queue by what they say.
func (w *world) itemsOf(conversation protocol.ConversationID) map[string]*protocol.FollowUp {
	w.Helper()
	list, _, err := w.db.ListFollowUps(w.Context(), w.account, conversation, true, nil, 100)
	w.must(err)
	items := map[string]*protocol.FollowUp{}
	for i := range list {
		items[list[i].Content] = &list[i]
	}
	return items
}

func TestAHeldQueueGoesOnWhenItIsReleased(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	conversation := turn.spec.ConversationID
	w.queued(conversation, "two")
	w.queued(conversation, "three")
	turn.end(func(f *protocol.TurnFinish) {
		f.State, f.StopReason, f.Status, f.PauseQueue = protocol.TurnCancelled, protocol.StopCancelled, protocol.MessageCancelled, true
	})
	held := w.itemsOf(conversation)

	item, started, err := w.turns.ChangeFollowUp(t.Context(), w.change(conversation, held["two"], protocol.FollowUpQueued))
	w.must(err)
	if started == nil || started.Spec.Input != "two" || started.Epoch != 1 || *started.Spec.FollowUpID != item.FollowUpID {
		t.Fatalf("released, it began %+v", started)
	}
	if now := w.itemsOf(conversation)["two"]; item.State != protocol.FollowUpStarted || *item.TurnID != started.Spec.TurnID ||
		now.Version != item.Version || now.State != item.State || *now.TurnID != *item.TurnID {
		t.Errorf("answered %+v, stored %+v", item, now)
	}
	next := w.alive(started.Spec, started.Begin)
	next.append(1)
	if more := next.end(nil); more != nil {
		t.Errorf("what is held began: %+v", more)
	}

	change := w.change(conversation, held["three"], protocol.FollowUpQueued)
	edited := "four"
	change.Content = &edited
	if _, started, err = w.turns.ChangeFollowUp(t.Context(), change); err != nil || started == nil || started.Spec.Input != edited {
		t.Errorf("edited and released, it began %+v, %v", started, err)
	}
}

func TestAReleasedFollowUpWaitsForTheLiveTurnAndForItsNode(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	conversation := turn.spec.ConversationID
	second, third := w.queued(conversation, "two"), w.queued(conversation, "three")
	for _, state := range []string{protocol.FollowUpHeld, protocol.FollowUpQueued, protocol.FollowUpHeld} {
		item, started, err := w.turns.ChangeFollowUp(t.Context(), w.change(conversation, second, state))
		if err != nil || started != nil || item.State != state || item.Version != second.Version+1 {
			t.Fatalf("%s beside a live turn: %+v began %+v, %v", state, item, started, err)
		}
		second = item
	}
	if started := turn.end(nil); started == nil || started.Spec.Input != "three" || *started.Spec.FollowUpID != third.FollowUpID {
		t.Fatalf("past what is held, the end began %+v", started)
	} else {
		w.alive(started.Spec, started.Begin).end(nil)
	}
	draining := w.change(conversation, second, protocol.FollowUpQueued)
	draining.Begin = nil
	item, started, err := w.turns.ChangeFollowUp(t.Context(), draining)
	if err != nil || started != nil || item.State != protocol.FollowUpQueued {
		t.Errorf("by a node that drains: %+v began %+v, %v", item, started, err)
	}
}

func TestAFollowUpIsChangedOnlyAsItWasSeen(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	conversation := turn.spec.ConversationID
	item := w.queued(conversation, "two")
	refused := func(what string, change *protocol.FollowUpChange, code protocol.Code) {
		t.Helper()
		if _, _, err := w.turns.ChangeFollowUp(t.Context(), change); protocol.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
	}
	without := w.change(conversation, item, protocol.FollowUpHeld)
	without.Version = nil
	refused("without a version", without, protocol.CodeVersionRequired)
	stale := *item
	stale.Version--
	refused("with an old version", w.change(conversation, &stale, protocol.FollowUpHeld), protocol.CodeStaleVersion)
	refused("in another conversation", w.change(protocol.NewConversationID(), item, protocol.FollowUpHeld), protocol.CodeNotFound)
	foreign := w.change(conversation, item, protocol.FollowUpHeld)
	foreign.AccountID = protocol.NewAccountID()
	refused("by another account", foreign, protocol.CodeNotFound)
	missing := w.change(conversation, item, protocol.FollowUpHeld)
	missing.FollowUpID = protocol.NewFollowUpID()
	refused("one that is not there", missing, protocol.CodeNotFound)

	same, _, err := w.turns.ChangeFollowUp(t.Context(), w.change(conversation, item, protocol.FollowUpQueued))
	if err != nil || same.Version != item.Version {
		t.Errorf("as it stands: %+v, %v", same, err)
	}
	gone, _, err := w.turns.ChangeFollowUp(t.Context(), w.change(conversation, item, protocol.FollowUpCancelled))
	if err != nil || gone.State != protocol.FollowUpCancelled {
		t.Fatalf("cancelled: %+v, %v", gone, err)
	}
	refused("after it was cancelled", w.change(conversation, gone, protocol.FollowUpQueued), protocol.CodeConflict)
	if started := turn.end(nil); started != nil {
		t.Errorf("what was cancelled began: %+v", started)
	}
}

func TestAFollowUpThatManyReleaseBeginsOnce(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "one"))
	conversation := turn.spec.ConversationID
	w.queued(conversation, "two")
	turn.end(func(f *protocol.TurnFinish) { f.PauseQueue = true })
	item := w.itemsOf(conversation)["two"]
	var all sync.WaitGroup
	begun := make(chan *protocol.StartedTurn, 8)
	for range cap(begun) {
		all.Go(func() {
			_, started, err := w.turns.ChangeFollowUp(context.Background(), w.change(conversation, item, protocol.FollowUpQueued))
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
		t.Errorf("%d turns began", turns)
	}
}
