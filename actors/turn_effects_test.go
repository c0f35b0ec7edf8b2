package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"turnstone/protocol"
)

func TestTurnsReadTheStoreAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{reads: make(chan struct{}, maxTurnReads)}
		var inside, read atomic.Int64
		goOn := make(chan struct{})
		const turns = 3 * maxTurnReads
		for range turns {
			go func() {
				_ = n.reading(t.Context(), func() error {
					inside.Add(1)
					<-goOn
					inside.Add(-1)
					read.Add(1)
					return nil
				})
			}()
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if got := inside.Load(); got != maxTurnReads {
			t.Errorf("%d read at once", got)
		}
		if err := n.reading(over, func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("a turn that ended while it waited: %v", err)
		}
		close(goOn)
		synctest.Wait()
		if got := read.Load(); got != turns {
			t.Errorf("%d of %d read", got, turns)
		}
	})

	store := newMemory()
	n := makeNode(t, store, saying("fine"), nil)
	placed := func() {
		if len(n.reads) == 0 {
			t.Error("a turn reads without a place")
		}
	}
	store.onLoad, store.onRead = placed, func() error { placed(); return nil }
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
