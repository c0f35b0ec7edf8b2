package actors

import (
	"errors"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// TestStalledQueuesAreStartedInTheFirstRound checks that a node starts the queues that its predecessor left, in as many
// rounds as that takes, and then looks for others only in every seventh round.
func TestStalledQueuesAreStartedInTheFirstRound(t *testing.T) {
	store := newMemory()
	store.stalled = 2*claimLimit + 1
	n := makeNode(t, store, scriptedAnswer("fine"), nil)
	if err := store.Register(t.Context(), turnlog.NewNode{NodeID: n.id}); err != nil {
		t.Fatal(err)
	}
	k := &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
	var checks []int
	for range 2*queueRounds + 3 {
		if err := k.runRound(time.Now()); err != nil {
			t.Fatal(err)
		}
		checks = append(checks, store.queueChecks)
	}
	if store.stalled != 0 || checks[0] != 1 || checks[2] != 3 {
		t.Errorf("%d queues are still stalled; checks by round: %v", store.stalled, checks)
	}
	if checks[1+queueRounds] != 3 || checks[2+queueRounds] != 4 || checks[len(checks)-1] != 5 {
		t.Errorf("checks by round: %v, want one in every %d rounds after the third", checks, queueRounds)
	}
}

func TestAFullNodeRefusesNewTurnsAndAdoptsFew(t *testing.T) {
	store, words := newMemory(), make(chan string)
	n := makeNode(t, store, gated(words), func(c *Config) { c.Capacity, c.MaxLiveTurns = claimLimit+2, 100 })
	if err := store.Register(t.Context(), turnlog.NewNode{NodeID: n.id}); err != nil {
		t.Fatal(err)
	}
	k := &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
	var sizes []int
	for range claimLimit + 2 {
		sizes = append(sizes, k.claimSize())
		startTurn(t, n, "hello")
	}
	if sizes[0] != claimLimit || sizes[2] != claimLimit || sizes[12] != claimLimit-10 || k.claimSize() != fullClaimLimit {
		t.Errorf("claims while turns start: %v, then %d", sizes, k.claimSize())
	}
	_, err := n.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "one more"})
	var refused *protocol.Error
	if !errors.As(err, &refused) || refused.Code != protocol.CodeUnavailable || refused.RetryAfter < 1 || n.Stats().Refused != 1 {
		t.Errorf("a start on a full node: %v, %d refused", err, n.Stats().Refused)
	}
	if err := k.runRound(time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := leaseOf(t, store, n).Load; got != (turnlog.NodeLoad{Live: claimLimit + 2, Capacity: claimLimit + 2}) {
		t.Errorf("the lease reports %+v", got)
	}
	close(words)
}

func TestANodeDrainsWhenAnOperatorHasMarkedIt(t *testing.T) {
	store, words := newMemory(), make(chan string)
	n := makeNode(t, store, gated(words), nil)
	if err := store.Register(t.Context(), turnlog.NewNode{NodeID: n.id}); err != nil {
		t.Fatal(err)
	}
	spec := startTurn(t, n, "hello")
	words <- "one "
	if err := store.Drain(t.Context(), n.id); err != nil {
		t.Fatal(err)
	}
	k := &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
	for range 2 { // it drains once, and keeps its lease
		if err := k.runRound(time.Now()); err != nil {
			t.Fatal(err)
		}
		n.wg.Wait()
	}
	head, err := store.TurnHead(t.Context(), spec.AccountID, spec.TurnID)
	if err != nil || head.Owner != nil || !n.Draining() || leaseOf(t, store, n).Renewals != 2 {
		t.Errorf("draining: %t, head %+v, %v", n.Draining(), head, err)
	}
	close(words)
}
