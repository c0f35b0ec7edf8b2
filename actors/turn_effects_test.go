package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"turnstone/protocol"
)

func TestTurnsAreAtTheStoreAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{places: make(chan struct{}, maxAtStore)}
		var inside, left atomic.Int64
		goOn := make(chan struct{})
		const turns = 3 * maxAtStore
		for range turns {
			go func() {
				_ = n.atStore(t.Context(), func() error {
					inside.Add(1)
					<-goOn
					inside.Add(-1)
					left.Add(1)
					return nil
				})
			}()
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if got := inside.Load(); got != maxAtStore {
			t.Errorf("%d are there at once", got)
		}
		if err := n.atStore(over, func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("a turn that ended while it waited: %v", err)
		}
		close(goOn)
		synctest.Wait()
		if got := left.Load(); got != turns {
			t.Errorf("%d of %d were there", got, turns)
		}
	})

	store := newMemory()
	n := makeNode(t, store, saying("fine"), nil)
	placed := func() {
		if len(n.places) == 0 {
			t.Error("a turn is at the store without a place")
		}
	}
	checked := func() error { placed(); return nil }
	store.onLoad, store.onRead, store.onFinish = placed, checked, checked
	if err := store.Register(t.Context(), n.id, "", nil); err != nil {
		t.Fatal(err)
	}
	orphan, err := store.StartTurn(t.Context(), &protocol.TurnStart{AccountID: protocol.NewAccountID(), Owner: protocol.NewNodeID(), Begin: n.Begin})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&keeper{node: n}).adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	read(t, n, orphan.Spec, 0, nil)
}
