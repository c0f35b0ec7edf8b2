package turn

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// claimTimes lets the host adopt until the turn was claimed that many times and all these adoptions have ended. It is called in a
// bubble of package synctest.
func claimTimes(t *testing.T, n *testNode, store *actorstest.Memory, turn protocol.TurnID, times int32) {
	t.Helper()
	epoch := func() int32 {
		store.Mu.Lock()
		defer store.Mu.Unlock()
		return store.Turns[turn].Epoch
	}
	for epoch() < 1+times {
		adoptOnce(t, n)
		synctest.Wait()
	}
}

// orphaned stores a turn of a node that has ended, with an open part and a pending input.
func orphaned(t *testing.T, store *actorstest.Memory, n *testNode) *turnlog.Spec {
	t.Helper()
	result, err := store.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID()}, turnlog.Runner{NodeID: protocol.NewNodeID(), Begin: n.starter.Begin})
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(result.Spec, n.starter.Tools, false)
	m.Apply(result.Begin.Payloads...)
	b := m.NewBatch()
	b.Proceed()
	b.ModelText(1, "partial ")
	if _, err := b.Command(newInput("c1", "use JWT")); err != nil {
		t.Fatal(err)
	}
	stored := store.Turns[result.Spec.TurnID]
	frames, err := protocol.AppendEvents(nil, result.Spec.TurnID, stored.Last+1, result.Spec.CreatedAt, b.Events)
	if err != nil {
		t.Fatal(err)
	}
	stored.Frames, stored.Last, stored.Records = append(stored.Frames, frames...), stored.Last+int64(len(b.Events)), b.Records
	return result.Spec
}

func TestATurnWhoseLogCannotBeReadEndsAsFailedAfterThreeAdoptions(t *testing.T) {
	onFakeClock(t, func(t *testing.T) {
		store := actorstest.NewMemory()
		n := registered(t, store, llmtest.Answer("fine"), nil)
		spec := orphaned(t, store, n)
		store.LoadError = errors.New("the log of a turn has a gap")
		claimTimes(t, n, store, spec.TurnID, unreadableAfter-1)
		if turn := store.Turns[spec.TurnID]; turn.State.Terminal() {
			t.Fatalf("after %d claims the turn is already %s", turn.Epoch-1, turn.State)
		}
		claimTimes(t, n, store, spec.TurnID, unreadableAfter)
		all := read(t, n, spec, 0, nil)
		finish := store.Turns[spec.TurnID].Finishes[0]
		if store.Turns[spec.TurnID].Epoch != 1+unreadableAfter || finish.State != protocol.TurnFailed || !finish.Repaired || finish.Error.Code != "unrecoverable" {
			t.Errorf("the turn ended in epoch %d as %+v", store.Turns[spec.TurnID].Epoch, finish)
		}
		if !strings.HasSuffix(kinds(all), "answer.completed steering.returned turn.state turn.finished") || len(finish.Returned) != 1 {
			t.Errorf("events: %s, parked %+v", kinds(all), finish.Returned)
		}
		if claims := claimsOf(t, n, store, spec.TurnID); claims != unreadableAfter {
			t.Errorf("the turn was claimed %d times, want %d", claims, unreadableAfter)
		}
	})
}

// onFakeClock runs a test in a bubble, and ends the timers of its actor system.
func onFakeClock(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) })
		test(t)
	})
}

// claimsOf lets the host adopt three more times and returns the number of claims of a turn.
func claimsOf(t *testing.T, n *testNode, store *actorstest.Memory, turn protocol.TurnID) int32 {
	t.Helper()
	for range 3 {
		adoptOnce(t, n)
	}
	store.Mu.Lock()
	defer store.Mu.Unlock()
	return store.Turns[turn].Epoch - 1
}

func TestATurnWhoseLogBecomesReadableBeforeTheThirdAdoptionContinues(t *testing.T) {
	for unreadable := int32(1); unreadable < unreadableAfter; unreadable++ {
		onFakeClock(t, func(t *testing.T) {
			store := actorstest.NewMemory()
			n := registered(t, store, llmtest.Answer("fine"), nil)
			spec := orphaned(t, store, n)
			store.LoadError = errors.New("the log of a turn has a gap")
			claimTimes(t, n, store, spec.TurnID, unreadable)
			store.Mu.Lock()
			store.LoadError = nil
			store.Mu.Unlock()
			claimTimes(t, n, store, spec.TurnID, unreadable+1)
			all := read(t, n, spec, 0, nil)
			finish := store.Turns[spec.TurnID].Finishes[0]
			if finish.State != protocol.TurnCompleted || finish.Repaired || strings.Count(kinds(all), "turn.recovering") != 1 {
				t.Errorf("a turn that was readable after %d claims ended as %s: %s", unreadable, finish.State, kinds(all))
			}
			if claims := claimsOf(t, n, store, spec.TurnID); claims != unreadable+1 {
				t.Errorf("a turn that was readable after %d claims was claimed %d times", unreadable, claims)
			}
		})
	}
}

// Claims by other nodes, and claims after an actor panicked, count too.
func TestATurnThatWasClaimedOftenEndsAtTheFirstClaimThatCannotReadIt(t *testing.T) {
	for _, before := range []int32{unreadableAfter - 2, unreadableAfter - 1, unreadableAfter, brokenAfter, withoutPartsAfter} {
		onFakeClock(t, func(t *testing.T) {
			store := actorstest.NewMemory()
			n := registered(t, store, llmtest.Answer("fine"), nil)
			spec := orphaned(t, store, n)
			store.LoadError = errors.New("the log of a turn has a gap")
			store.Turns[spec.TurnID].Epoch = 1 + before
			claimTimes(t, n, store, spec.TurnID, before+1)
			if before+1 < unreadableAfter {
				if turn := store.Turns[spec.TurnID]; turn.State.Terminal() {
					t.Errorf("claim %d ended the turn", before+1)
				}
				return
			}
			read(t, n, spec, 0, nil)
			turn := store.Turns[spec.TurnID]
			if finish := turn.Finishes[0]; turn.Epoch != before+2 || finish.State != protocol.TurnFailed || !finish.Repaired || !finish.PauseQueue {
				t.Errorf("after %d earlier claims the turn ended in epoch %d as %+v", before, turn.Epoch, finish)
			}
		})
	}
}

func TestATurnWhoseEndTheStoreRefusesIsAdoptedAgain(t *testing.T) {
	store := actorstest.NewMemory()
	refused := 0
	store.OnFinish = func() error {
		if refused++; refused > finishAttempts {
			return nil
		}
		return errors.New("injected refusal")
	}
	n := startNode(t, store, llmtest.Answer("fine"), nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if got := strings.Count(kinds(all), "turn.recovering"); got != 1 {
		t.Errorf("the turn was taken over %d times, want once", got)
	}
	if end := store.Turns[spec.TurnID]; len(end.Finishes) != 1 || end.Epoch != 2 {
		t.Errorf("the turn has %d ends and is in epoch %d, want one end in epoch 2", len(end.Finishes), end.Epoch)
	}
}

func TestAnOperatorEndsATurnThatNoActorCanRun(t *testing.T) {
	for name, damaged := range map[string]error{"a damaged log": errors.New("damaged"), "a silent owner": nil} {
		store := actorstest.NewMemory()
		n := registered(t, store, llmtest.Answer("fine"), nil)
		spec := orphaned(t, store, n)
		store.LoadError = damaged
		if err := n.ForceCancel(t.Context(), spec.AccountID, spec.TurnID); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := string(read(t, n, spec, 0, nil))
		finish := store.Turns[spec.TurnID].Finishes[0]
		if finish.State != protocol.TurnCancelled || !finish.PauseQueue || finish.DropQueue || len(finish.Returned) != 1 {
			t.Errorf("%s: the turn ended as %+v", name, finish)
		}
		if !strings.Contains(all, `"by":"operator","scope":"turn"`) {
			t.Errorf("%s: the log has no cancel by the operator: %s", name, all)
		}
		if err := n.ForceCancel(t.Context(), spec.AccountID, spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: a second ForceCancel returned %v", name, err)
		}
	}
}
