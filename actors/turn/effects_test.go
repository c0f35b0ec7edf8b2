package turn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestTheNumberOfTurnsAtTheStoreIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(storeSlots, maxStoreSlots)
		var inside, left atomic.Int64
		proceed := make(chan struct{})
		const turns = 3 * maxStoreSlots
		for range turns {
			go func() {
				_ = slots.use(t.Context(), func() error {
					inside.Add(1)
					<-proceed
					inside.Add(-1)
					left.Add(1)
					return nil
				})
			}()
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if got := inside.Load(); got != maxStoreSlots {
			t.Errorf("%d turns use the store at the same time, want %d", got, maxStoreSlots)
		}
		if err := slots.use(over, func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("use for a turn that ended while it waited returned %v", err)
		}
		close(proceed)
		synctest.Wait()
		if got := left.Load(); got != turns {
			t.Errorf("%d of %d turns used the store", got, turns)
		}
	})

	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	checkSlot := func() {
		if len(n.slots) == 0 {
			t.Error("a turn uses the store without a slot")
		}
	}
	checkSlotAndSucceed := func() error { checkSlot(); return nil }
	store.OnLoad, store.OnRead, store.OnFinish = checkSlot, checkSlotAndSucceed, checkSlotAndSucceed
	orphan, err := store.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID()}, turnlog.Runner{NodeID: protocol.NewNodeID(), Begin: n.starter.Begin})
	if err != nil {
		t.Fatal(err)
	}
	adoptOnce(t, n)
	read(t, n, orphan.Spec, 0, nil)
}
