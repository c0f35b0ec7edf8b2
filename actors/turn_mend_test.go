package actors

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"turnstone/protocol"
)

// claimTimes lets a node look after its turns until one was claimed so many times, and each of these adoptions is over.
func claimTimes(t *testing.T, n *Node, store *memory, turn protocol.TurnID, times int32) {
	t.Helper()
	epoch := func() int32 {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.turns[turn].epoch
	}
	k := &keeper{node: n, missing: map[protocol.TurnID]int32{}}
	for epoch() < 1+times {
		if err := k.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n.holds(turn, epoch()) && n.live(turn) == nil {
			runtime.Gosched()
		}
	}
}

// orphaned is a turn of a node that is gone, which has an open part, a pending input and a tool that runs.
func orphaned(t *testing.T, store *memory, n *Node) *protocol.TurnSpec {
	t.Helper()
	if err := store.Register(t.Context(), n.id, "", nil); err != nil {
		t.Fatal(err)
	}
	result, err := store.StartTurn(t.Context(), &protocol.TurnStart{AccountID: protocol.NewAccountID(), Owner: protocol.NewNodeID(), Begin: n.Begin})
	if err != nil {
		t.Fatal(err)
	}
	m := newTurnMachine(result.Spec, machineTools, false)
	m.begin()
	m.proceed()
	m.take()
	m.modelText(1, "partial ")
	accept(t, m, steering("c1", "use JWT"))
	d := m.take()
	turn := store.turns[result.Spec.TurnID]
	frames, err := encodeEvents(result.Spec.TurnID, turn.last+1, result.Spec.CreatedAt, d.events)
	if err != nil {
		t.Fatal(err)
	}
	turn.frames, turn.last, turn.records = append(turn.frames, frames...), turn.last+int64(len(d.events)), d.records
	return result.Spec
}

func TestATurnWhoseLogCannotBeReadEndsAsFailedAfterThreeAdoptions(t *testing.T) {
	store := newMemory()
	n := makeNode(t, store, saying("fine"), nil)
	spec := orphaned(t, store, n)
	store.damaged = errors.New("the log of a turn has a gap")
	claimTimes(t, n, store, spec.TurnID, unreadableAfter-1)
	if turn := store.turns[spec.TurnID]; turn.state.Terminal() {
		t.Fatalf("after %d claims it is %s", turn.epoch-1, turn.state)
	}
	claimTimes(t, n, store, spec.TurnID, unreadableAfter)
	all := read(t, n, spec, 0, nil)
	finish := store.turns[spec.TurnID].finishes[0]
	if store.turns[spec.TurnID].epoch != 1+unreadableAfter || finish.State != protocol.TurnFailed || !finish.Mended || finish.Error.Code != "unrecoverable" {
		t.Errorf("in epoch %d it ended %+v", store.turns[spec.TurnID].epoch, finish)
	}
	if !strings.HasSuffix(kinds(all), "answer.completed steering.returned turn.state turn.finished") || len(finish.Parked) != 1 {
		t.Errorf("events: %s, parked %+v", kinds(all), finish.Parked)
	}
	if claims := claimsOf(t, n, store, spec.TurnID); claims != unreadableAfter {
		t.Errorf("it was claimed %d times", claims)
	}
}

// claimsOf lets a node look after its turns three times more and returns how often a turn was claimed.
func claimsOf(t *testing.T, n *Node, store *memory, turn protocol.TurnID) int32 {
	t.Helper()
	k := &keeper{node: n, missing: map[protocol.TurnID]int32{}}
	for range 3 {
		if err := k.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	return store.turns[turn].epoch - 1
}

func TestATurnWhoseLogBecomesReadableBeforeTheThirdAdoptionContinues(t *testing.T) {
	for unreadable := int32(1); unreadable < unreadableAfter; unreadable++ {
		store := newMemory()
		n := makeNode(t, store, saying("fine"), nil)
		spec := orphaned(t, store, n)
		store.damaged = errors.New("the log of a turn has a gap")
		claimTimes(t, n, store, spec.TurnID, unreadable)
		store.mu.Lock()
		store.damaged = nil
		store.mu.Unlock()
		claimTimes(t, n, store, spec.TurnID, unreadable+1)
		all := read(t, n, spec, 0, nil)
		finish := store.turns[spec.TurnID].finishes[0]
		if finish.State != protocol.TurnCompleted || finish.Mended || strings.Count(kinds(all), "turn.recovering") != 1 {
			t.Errorf("readable after %d claims, it ended %s: %s", unreadable, finish.State, kinds(all))
		}
		if claims := claimsOf(t, n, store, spec.TurnID); claims != unreadable+1 {
			t.Errorf("readable after %d claims, it was claimed %d times", unreadable, claims)
		}
	}
}

// Adoptions of other nodes, and of actors that broke, count too.
func TestATurnThatWasClaimedOftenEndsAtTheFirstClaimThatCannotReadIt(t *testing.T) {
	for _, before := range []int32{unreadableAfter - 2, unreadableAfter - 1, unreadableAfter, brokenAfter, bareAfter} {
		store := newMemory()
		n := makeNode(t, store, saying("fine"), nil)
		spec := orphaned(t, store, n)
		store.damaged = errors.New("the log of a turn has a gap")
		store.turns[spec.TurnID].epoch = 1 + before
		claimTimes(t, n, store, spec.TurnID, before+1)
		if before+1 < unreadableAfter {
			if turn := store.turns[spec.TurnID]; turn.state.Terminal() {
				t.Errorf("claim %d ended it", before+1)
			}
			continue
		}
		read(t, n, spec, 0, nil)
		turn := store.turns[spec.TurnID]
		if finish := turn.finishes[0]; turn.epoch != before+2 || finish.State != protocol.TurnFailed || !finish.Mended || !finish.PauseQueue {
			t.Errorf("after %d claims it ended in epoch %d: %+v", before, turn.epoch, finish)
		}
	}
}

func TestAnEventOfALaterVersionMakesALogUnreadable(t *testing.T) {
	m := running(t)
	frames, err := encodeEvents(m.spec.TurnID, 1, m.spec.CreatedAt, m.take().events)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(frames), `"type":"answer.started"`, `"type":"answer.foreseen"`, 1)
	stored := &protocol.StoredTurn{Spec: m.spec, Frames: []byte(text), Head: protocol.TurnHead{State: protocol.TurnRunning, Accepts: true}}
	if _, err := restoreTurnMachine(stored, machineTools, false); err == nil {
		t.Error("it was read")
	}
	mended := mendTurnMachine(stored, machineTools)
	if mended.giveUp(); mended.sequence != m.sequence+2 || mended.state != protocol.TurnFailed {
		t.Errorf("it ended %s at %d, after %d", mended.state, mended.sequence, m.sequence)
	}
}

// Every state from which a turn may have to be given up, with a cancel that was accepted before.
func TestATurnCanBeGivenUpInEveryState(t *testing.T) {
	for _, state := range protocol.TurnStates {
		if state.Terminal() {
			continue
		}
		stored := &protocol.StoredTurn{Spec: machineSpec(), Head: protocol.TurnHead{State: state, Accepts: state.TakesInput()}}
		want := protocol.TurnFailed
		if state == protocol.TurnCancelling {
			want = protocol.TurnCancelled
		}
		given := mendTurnMachine(stored, machineTools)
		if given.giveUp(); given.state != want || given.take().ending == nil {
			t.Errorf("%s: given up as %s", state, given.state)
		}
		forced := mendTurnMachine(stored, machineTools)
		if forced.forceCancel(protocol.NewSteeringID()); forced.state != protocol.TurnCancelled || forced.take().ending == nil {
			t.Errorf("%s: cancelled as %s", state, forced.state)
		}
	}
}

func TestAnEndThatTheStoreRefusesGoesToTheNextActor(t *testing.T) {
	store := newMemory()
	refused := 0
	store.onFinish = func() error {
		if refused++; refused > finishAttempts {
			return nil
		}
		return errors.New("the value is refused")
	}
	n := startNode(t, store, saying("fine"), nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if got := strings.Count(kinds(all), "turn.recovering"); got != 1 {
		t.Errorf("%d takeovers", got)
	}
	if end := store.turns[spec.TurnID]; len(end.finishes) != 1 || end.epoch != 2 {
		t.Errorf("in epoch %d there are %d ends", end.epoch, len(end.finishes))
	}
}

func TestAnOperatorEndsATurnThatNoActorCanRun(t *testing.T) {
	for name, damaged := range map[string]error{"a damaged log": errors.New("damaged"), "a silent owner": nil} {
		store := newMemory()
		n := makeNode(t, store, saying("fine"), nil)
		spec := orphaned(t, store, n)
		store.damaged = damaged
		if err := n.ForceCancel(t.Context(), spec.AccountID, spec.TurnID); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := string(read(t, n, spec, 0, nil))
		finish := store.turns[spec.TurnID].finishes[0]
		if finish.State != protocol.TurnCancelled || !finish.PauseQueue || finish.DropQueue || len(finish.Parked) != 1 {
			t.Errorf("%s: it ended %+v", name, finish)
		}
		if !strings.Contains(all, `"by":"operator","scope":"turn"`) {
			t.Errorf("%s: %s", name, all)
		}
		if err := n.ForceCancel(t.Context(), spec.AccountID, spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: once more: %v", name, err)
		}
	}
}
