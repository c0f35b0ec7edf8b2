package followups_test

import (
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// promotion is the result of PromoteFollowUp.
type promotion struct {
	item    *protocol.FollowUp
	live    *protocol.TurnID
	started *turnlog.Started
}

func promote(w *storetest.World, conversation protocol.ConversationID, item *protocol.FollowUp, interrupt bool) (p promotion, err error) {
	p.item, p.live, p.started, err = w.DB.FollowUps.PromoteFollowUp(w.Context(), &turnlog.FollowUpPromotion{
		Queue: w.QueueOf(conversation), FollowUpID: item.FollowUpID, Interrupt: interrupt,
	}, w.Runner)
	return p, err
}

// busyQueue starts a turn and queues three follow-ups behind it.
func busyQueue(w *storetest.World) (turn *storetest.Turn, conversation protocol.ConversationID) {
	w.Helper()
	turn = w.Start(w.Request(nil, "one"))
	conversation = turn.Spec.ConversationID
	for _, content := range []string{"two", "three", "four"} {
		create(w, conversation, content)
	}
	return turn, conversation
}

func wantStates(w *storetest.World, conversation protocol.ConversationID, want map[string]protocol.FollowUpState) {
	w.Helper()
	items := itemsOf(w, conversation)
	for content, state := range want {
		if items[content].State != state {
			w.Errorf("%q is %s, want %s", content, items[content].State, state)
		}
	}
}

func TestAPromotedFollowUpIsTheNextOne(t *testing.T) {
	w := storetest.NewWorld(t)
	turn, conversation := busyQueue(w)
	held, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, itemsOf(w, conversation)["four"], protocol.FollowUpHeld), w.Runner)
	w.Must(err)
	promoted, err := promote(w, conversation, held, false)
	if err != nil || promoted.live != nil || promoted.started != nil || promoted.item.State != protocol.FollowUpQueued || promoted.item.Version != held.Version+1 {
		t.Fatalf("%+v, %v", promoted, err)
	}
	before := queueOf(w, conversation)
	again, err := promote(w, conversation, held, false)
	if now := queueOf(w, conversation); err != nil || now.QueueVersion != before.QueueVersion || again.item.Version != promoted.item.Version {
		t.Errorf("the repeat changed %+v to %+v, %v", before, now, err)
	}
	started := turn.End(nil)
	if started == nil || started.Spec.Input != "four" {
		t.Fatalf("the end started %+v", started)
	}
	again, err = promote(w, conversation, held, false)
	if err != nil || again.started != nil || again.item.State != protocol.FollowUpStarted || *again.item.TurnID != started.Spec.TurnID {
		t.Errorf("the repeat after the start: %+v, %v", again, err)
	}
	wantStates(w, conversation, map[string]protocol.FollowUpState{"two": protocol.FollowUpQueued, "three": protocol.FollowUpQueued})
}

func TestAFollowUpThatInterruptsStartsWhenTheTurnWasCancelled(t *testing.T) {
	w := storetest.NewWorld(t)
	turn, conversation := busyQueue(w)
	items := itemsOf(w, conversation)
	promoted, err := promote(w, conversation, items["four"], true)
	if err != nil || promoted.live == nil || *promoted.live != turn.Spec.TurnID || promoted.started != nil {
		t.Fatalf("%+v, %v", promoted, err)
	}
	// Another device reorders the queue before the turn has ended.
	queue := queueOf(w, conversation)
	_, err = order(w, conversation, []protocol.FollowUpID{queue.Order[1], queue.Order[2], queue.Order[0]}, &queue.QueueVersion)
	w.Must(err)
	started := turn.End(cancelled)
	if started == nil || started.Spec.Input != "four" {
		t.Fatalf("the end started %+v", started)
	}
	wantStates(w, conversation, map[string]protocol.FollowUpState{"two": protocol.FollowUpHeld, "three": protocol.FollowUpHeld, "four": protocol.FollowUpStarted})
	again, err := promote(w, conversation, items["four"], true)
	if err != nil || again.live != nil || again.item.State != protocol.FollowUpStarted {
		t.Errorf("the repeat would interrupt the turn of the follow-up itself: %+v, %v", again, err)
	}
}

func TestTwoFollowUpsThatInterruptStartOneAfterTheOther(t *testing.T) {
	w := storetest.NewWorld(t)
	turn, conversation := busyQueue(w)
	items := itemsOf(w, conversation)
	for _, content := range []string{"three", "four"} {
		_, err := promote(w, conversation, items[content], true)
		w.Must(err)
	}
	started := turn.End(cancelled)
	if started == nil || started.Spec.Input != "four" {
		t.Fatalf("the end started %+v", started)
	}
	wantStates(w, conversation, map[string]protocol.FollowUpState{"two": protocol.FollowUpHeld, "three": protocol.FollowUpQueued})
	if next := w.Simulate(started.Spec, started.Begin).End(nil); next == nil || next.Spec.Input != "three" {
		t.Errorf("then started %+v", next)
	}
}

func TestAPromotionAppliesOnlyToTheTurnThatItInterrupts(t *testing.T) {
	for what, test := range map[string]struct {
		between func(w *storetest.World, conversation protocol.ConversationID)
		end     func(*turnlog.Finish)
		want    protocol.FollowUpState
	}{
		"held afterwards": {func(w *storetest.World, conversation protocol.ConversationID) {
			for _, state := range []protocol.FollowUpState{protocol.FollowUpHeld, protocol.FollowUpQueued} {
				_, _, err := w.DB.FollowUps.ChangeFollowUp(w.Context(), w.Change(conversation, itemsOf(w, conversation)["four"], state), w.Runner)
				w.Must(err)
			}
		}, cancelled, protocol.FollowUpHeld},
		"the queue is cancelled too": {nil, func(f *turnlog.Finish) { cancelled(f); f.DropQueue = true }, protocol.FollowUpCancelled},
		"no slot at the end":         {func(w *storetest.World, _ protocol.ConversationID) { w.Runner.MaxLiveTurns = 0 }, cancelled, protocol.FollowUpQueued},
	} {
		t.Run(what, func(t *testing.T) {
			w := storetest.NewWorld(t)
			turn, conversation := busyQueue(w)
			_, err := promote(w, conversation, itemsOf(w, conversation)["four"], true)
			w.Must(err)
			if test.between != nil {
				test.between(w, conversation)
			}
			if started := turn.End(test.end); started != nil {
				t.Errorf("started %+v", started)
			}
			wantStates(w, conversation, map[string]protocol.FollowUpState{"four": test.want})
		})
	}
}

func TestAPromotedFollowUpStartsAtOnceIfNoTurnIsLive(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		w := storetest.NewWorld(t)
		turn, conversation := busyQueue(w)
		turn.End(cancelled)
		promoted, err := promote(w, conversation, itemsOf(w, conversation)["three"], interrupt)
		if err != nil || promoted.live != nil || promoted.started == nil || promoted.item.State != protocol.FollowUpStarted {
			t.Fatalf("%+v, %v", promoted, err)
		}
		if stored := itemsOf(w, conversation)["three"]; stored.Version != promoted.item.Version || *stored.TurnID != promoted.started.Spec.TurnID {
			t.Errorf("returned %+v, stored %+v", promoted.item, stored)
		}
	}
}

func TestConcurrentPromotionsStartAFollowUpOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	turn, conversation := busyQueue(w)
	turn.End(cancelled)
	item := itemsOf(w, conversation)["four"]
	results := make([]promotion, 8)
	for _, err := range storetest.Together(len(results), func(i int) (err error) {
		results[i], err = promote(w, conversation, item, i%2 == 0)
		return err
	}) {
		w.Must(err)
	}
	turns := 0
	for _, result := range results {
		if result.started != nil {
			turns++
		}
		if result.live != nil {
			t.Errorf("a promotion would cancel %s", result.live)
		}
	}
	if turns != 1 || w.Count(`select count(*) from turns`) != 2 {
		t.Errorf("%d promotions started a turn", turns)
	}
}

func TestOnlyAWaitingFollowUpOfTheAccountIsPromoted(t *testing.T) {
	w := storetest.NewWorld(t)
	_, conversation := busyQueue(w)
	item := itemsOf(w, conversation)["two"]
	foreign := turnlog.FollowUpPromotion{Queue: w.QueueOf(conversation), FollowUpID: item.FollowUpID}
	foreign.AccountID = w.OtherAccount()
	_, _, _, err := w.DB.FollowUps.PromoteFollowUp(t.Context(), &foreign, w.Runner)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = promote(w, protocol.NewConversationID(), item, true)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = promote(w, conversation, &protocol.FollowUp{FollowUpID: protocol.NewFollowUpID()}, true)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, item, protocol.FollowUpCancelled), w.Runner)
	w.Must(err)
	_, err = promote(w, conversation, item, true)
	storetest.WantCode(t, err, protocol.CodeConflict)
}
