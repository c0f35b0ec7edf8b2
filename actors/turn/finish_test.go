package turn

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The line "turn appended" is logged when a step becomes visible.
func TestTheNextTurnOfTheQueueRunsAfterTheEndIsVisible(t *testing.T) {
	store := actorstest.NewMemory()
	store.Queued = 1
	var n *testNode
	var checked sync.Once
	nextAtEnd := make(chan *turnlog.Spec, 1)
	n = makeNode(t, store, llmtest.Answer("fine"), func(c *testConfig) {
		c.Logger = c.Logger.WithOptions(zap.Hooks(func(line zapcore.Entry) error {
			if line.Message != "turn appended" {
				return nil
			}
			store.Mu.Lock()
			defer store.Mu.Unlock()
			for _, turn := range store.Turns {
				if len(store.Turns) == 2 && !turn.State.Terminal() {
					checked.Do(func() {
						nextAtEnd <- turn.Spec
						if n.Find(turn.Spec.AccountID, turn.Spec.TurnID) != nil {
							t.Error("the next turn has an actor before the end of the turn is visible")
						}
					})
				}
			}
			return nil
		}))
	})
	if err := n.process.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := startTurn(t, n, "hi")
	next := <-nextAtEnd
	for _, spec := range []*turnlog.Spec{first, next} {
		if got := kinds(read(t, n, spec, 0, nil)); !strings.HasSuffix(got, "turn.finished") {
			t.Errorf("events: %s", got)
		}
	}
	if finished := n.Stats().Finished; finished != 2 {
		t.Errorf("%d turns have ended", finished)
	}
	if next.AccountID != first.AccountID {
		t.Error("the next turn is of another account")
	}
}

// The caller of a command waits for the step with its decision. A step that ends the turn is stored by a goroutine, and
// a host that is stopped starts none.
func TestAnEndThatAStoppedHostDoesNotStoreIsReported(t *testing.T) {
	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	n.Stop()
	done := make(chan error, 1)
	end := &machine.End{State: protocol.TurnCancelled}
	n.finish(n.starter.New(actorstest.NewSpec()), &turnlog.Append{}, end, func(_ *turnlog.Started, err error) { done <- err })
	select {
	case err := <-done:
		if !errors.Is(err, errNotHere) {
			t.Errorf("the actor got %v, want that it is gone", err)
		}
	default:
		t.Error("the actor gets no result")
	}
}
