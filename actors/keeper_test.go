package actors

import (
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
