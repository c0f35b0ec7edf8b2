package followups_test

import (
	"errors"
	"slices"
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// queueOf returns the order of the waiting items of a conversation.
func queueOf(w *storetest.World, conversation protocol.ConversationID) *protocol.FollowUpOrder {
	w.Helper()
	page, err := w.DB.FollowUps.ListFollowUps(w.Context(), w.Account, conversation, false, nil, 100)
	w.Must(err)
	queue := &protocol.FollowUpOrder{QueueVersion: page.QueueVersion}
	for _, item := range page.Items {
		queue.Order = append(queue.Order, item.FollowUpID)
	}
	return queue
}

func order(w *storetest.World, conversation protocol.ConversationID, ids []protocol.FollowUpID, version *int64) (*protocol.FollowUpOrder, error) {
	return w.DB.FollowUps.OrderFollowUps(w.Context(), w.Account, conversation, ids, version)
}

func TestTheQueueStartsInTheOrderThatItWasGiven(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	for _, content := range []string{"two", "three", "four"} {
		create(w, conversation, content)
	}
	queue, before := queueOf(w, conversation), itemsOf(w, conversation)
	wanted := []protocol.FollowUpID{queue.Order[2], queue.Order[0], queue.Order[1]}
	ordered, err := order(w, conversation, wanted, &queue.QueueVersion)
	if err != nil || ordered.QueueVersion != queue.QueueVersion+1 || !slices.Equal(ordered.Order, wanted) {
		t.Fatalf("%+v, %v", ordered, err)
	}
	if now := queueOf(w, conversation); !slices.Equal(now.Order, wanted) || now.QueueVersion != ordered.QueueVersion {
		t.Errorf("the queue is %+v", now)
	}
	if now := itemsOf(w, conversation)["four"]; now.Version != before["four"].Version {
		t.Errorf("the order changed the version of an item: %+v", now)
	}
	if same, err := order(w, conversation, wanted, &ordered.QueueVersion); err != nil || same.QueueVersion != ordered.QueueVersion {
		t.Errorf("the same order again: %+v, %v", same, err)
	}
	create(w, conversation, "five") // behind all items that were ordered
	for _, content := range []string{"four", "two", "three", "five"} {
		started := turn.End(nil)
		if started == nil || started.Spec.Input != content {
			t.Fatalf("started %+v, want %q", started, content)
		}
		turn = w.Simulate(started.Spec, started.Begin)
	}
}

func TestOfTwoDevicesThatReorderAtOnceOneGetsTheOrderOfTheOther(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := w.Start(w.Request(nil, "one")).Spec.ConversationID
	for _, content := range []string{"two", "three", "four"} {
		create(w, conversation, content)
	}
	queue := queueOf(w, conversation)
	orders := [][]protocol.FollowUpID{
		{queue.Order[1], queue.Order[0], queue.Order[2]}, {queue.Order[2], queue.Order[1], queue.Order[0]},
	}
	results := make([]*protocol.FollowUpOrder, len(orders))
	failures := storetest.Together(len(orders), func(i int) (err error) {
		results[i], err = order(w, conversation, orders[i], &queue.QueueVersion)
		return err
	})
	winner := slices.Index(failures, nil)
	if winner < 0 || failures[1-winner] == nil {
		t.Fatalf("the results are %v", failures)
	}
	storetest.WantCode(t, failures[1-winner], protocol.CodeStaleVersion)
	var conflict *protocol.Error
	if !errors.As(failures[1-winner], &conflict) {
		t.Fatal(failures[1-winner])
	}
	current, ok := conflict.Current.(*protocol.FollowUpOrder)
	if !ok || !slices.Equal(current.Order, orders[winner]) || current.QueueVersion != results[winner].QueueVersion {
		t.Errorf("the conflict has %+v, the queue is %+v", conflict.Current, results[winner])
	}
}

func TestAnOrderNamesEachWaitingItemOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	for _, content := range []string{"two", "three", "four"} {
		create(w, conversation, content)
	}
	started := turn.End(nil)
	other, _ := create(w, w.Start(w.Request(nil, "another")).Spec.ConversationID, "elsewhere")
	queue := queueOf(w, conversation)
	a, b, version := queue.Order[0], queue.Order[1], queue.QueueVersion
	stale := version - 1
	for what, test := range map[string]struct {
		order   []protocol.FollowUpID
		version *int64
		want    protocol.Code
	}{
		"an unknown item":                {[]protocol.FollowUpID{b, a, protocol.NewFollowUpID()}, &version, protocol.CodeNotFound},
		"an item of another queue":       {[]protocol.FollowUpID{b, a, other.FollowUpID}, &version, protocol.CodeNotFound},
		"an unknown item, stale":         {[]protocol.FollowUpID{b, protocol.NewFollowUpID()}, &stale, protocol.CodeNotFound},
		"an incomplete order":            {[]protocol.FollowUpID{b}, &version, protocol.CodeInvalid},
		"an empty order":                 {nil, &version, protocol.CodeInvalid},
		"an item twice":                  {[]protocol.FollowUpID{b, a, b}, &version, protocol.CodeInvalid},
		"an item that has started":       {[]protocol.FollowUpID{b, a, *started.Spec.FollowUpID}, &version, protocol.CodeInvalid},
		"an incomplete order, stale":     {[]protocol.FollowUpID{b}, &stale, protocol.CodeStaleVersion},
		"a complete order, stale":        {[]protocol.FollowUpID{b, a}, &stale, protocol.CodeStaleVersion},
		"without the version":            {[]protocol.FollowUpID{b, a}, nil, protocol.CodeVersionRequired},
		"unknown items, without version": {[]protocol.FollowUpID{protocol.NewFollowUpID()}, nil, protocol.CodeNotFound},
	} {
		if _, err := order(w, conversation, test.order, test.version); err == nil || protocol.CodeOf(err) != test.want {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
	_, err := w.DB.FollowUps.OrderFollowUps(t.Context(), w.OtherAccount(), conversation, []protocol.FollowUpID{b, a}, &version)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	if now := queueOf(w, conversation); !slices.Equal(now.Order, queue.Order) || now.QueueVersion != version {
		t.Errorf("refused orders changed the queue to %+v", now)
	}
}

// TestAQueueOfReturnedInputsHasABoundedOrder fills a queue beyond the limit of created follow-ups: inputs that turns
// return are always kept.
func TestAQueueOfReturnedInputsHasABoundedOrder(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	conversation := turn.Spec.ConversationID
	turn.End(func(f *turnlog.Finish) {
		cancelled(f)
		for range protocol.MaxFollowUpOrder + 2 {
			f.Returned = append(f.Returned, turnlog.ReturnedInput{FollowUpID: protocol.NewFollowUpID(), Text: "later"})
		}
	})
	version := queueOf(w, conversation).QueueVersion - 1
	var conflict *protocol.Error
	if _, err := order(w, conversation, nil, &version); !errors.As(err, &conflict) || conflict.Code != protocol.CodeStaleVersion {
		t.Fatal(err)
	}
	if current, ok := conflict.Current.(*protocol.FollowUpOrder); !ok || len(current.Order) != protocol.MaxFollowUpOrder+1 {
		t.Errorf("the conflict has %+v", conflict.Current)
	}
}
