package turn

import (
	"errors"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// TestStalledQueuesAreStartedInTheFirstRound checks that a node starts the queues that its predecessor left, in as many
// rounds as that takes, and then looks for others only in every seventh round.
func TestStalledQueuesAreStartedInTheFirstRound(t *testing.T) {
	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	store.Stalled = 2*n.Room() + 1
	var checks []int
	for range 2*queueRounds + 3 {
		adoptOnce(t, n)
		checks = append(checks, store.QueueChecks)
	}
	if store.Stalled != 0 || checks[0] != 1 || checks[2] != 3 {
		t.Errorf("%d queues are still stalled; checks by round: %v", store.Stalled, checks)
	}
	if checks[1+queueRounds] != 3 || checks[2+queueRounds] != 4 || checks[len(checks)-1] != 5 {
		t.Errorf("checks by round: %v, want one in every %d rounds after the third", checks, queueRounds)
	}
}

func TestAFullNodeRefusesNewTurnsAndAdoptsFew(t *testing.T) {
	const claimLimit, fullClaimLimit = 20, 2
	store, words := actorstest.NewMemory(), make(chan string)
	n := registered(t, store, gated(words), func(c *testConfig) { c.Capacity, c.MaxLiveTurns = claimLimit+2, 100 })
	var sizes []int
	for range claimLimit + 2 {
		sizes = append(sizes, n.Room())
		startTurn(t, n, "hello")
	}
	if sizes[0] != claimLimit || sizes[2] != claimLimit || sizes[12] != claimLimit-10 || n.Room() != fullClaimLimit {
		t.Errorf("claims while turns start: %v, then %d", sizes, n.Room())
	}
	_, err := n.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "one more"})
	var refused *protocol.Error
	if !errors.As(err, &refused) || refused.Code != protocol.CodeUnavailable || refused.RetryAfter < 1 || n.Stats().Refused != 1 {
		t.Errorf("a start on a full node: %v, %d refused", err, n.Stats().Refused)
	}
	if got := n.Load(); got != (ownership.NodeLoad{Live: claimLimit + 2, Capacity: claimLimit + 2}) {
		t.Errorf("the load is %+v", got)
	}
	close(words)
}
