package research

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/host"
	"turnstone/actors/research/machine"
	"turnstone/actors/research/researchtest"
	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// waitingTask is the store of one task that waits for a slot. It notes what is stored and, as Config.Entered, what is shown.
type waitingTask struct {
	*researchtest.Memory
	others
	spec researchlog.Spec

	mu     sync.Mutex
	faults []error  // guarded by mu: of the next appends, which store nothing
	notes  []string // guarded by mu
}

// others has the methods of a Store that Memory does not have.
type others struct{ Store } // nil: they are not called

func (w *waitingTask) Append(ctx context.Context, batch *researchlog.Append) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) > 0 {
		fault := w.faults[0]
		w.faults = w.faults[1:]
		w.notes = append(w.notes, "failed")
		return fault
	}
	err := w.Memory.Append(ctx, batch)
	if err == nil {
		w.notes = append(w.notes, "stored")
	}
	return err
}

// entered is Config.Entered, which is called for a task that has ended, once that is visible.
func (w *waitingTask) entered(state protocol.ResearchState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, "shown "+string(state))
}

// newWaitingTask returns a host, and the store of a task that waits.
func newWaitingTask(t *testing.T, faults ...error) (*Host, *waitingTask) {
	t.Helper()
	w := &waitingTask{Memory: &researchtest.Memory{}, faults: faults}
	w.spec = researchlog.Spec{
		AccountID: protocol.NewAccountID(), TaskID: protocol.NewTaskID(), ConversationID: protocol.NewConversationID(), Question: "Why?",
		Depth: protocol.ResearchQuick, Sources: []protocol.ResearchSource{protocol.ResearchWeb}, Budget: protocol.ResearchBudgets[protocol.ResearchQuick],
	}
	b := machine.New(&w.spec).NewBatch()
	b.Start()
	if _, err := w.Create(t.Context(), &w.spec, b.Append()); err != nil {
		t.Fatal(err)
	}
	runtime := shell.NewRuntime(zap.NewNop(), 2)
	h := New(Config{Node: host.Node{ID: protocol.NewNodeID(), Runtime: runtime}, Store: w, Entered: w.entered, Logger: zap.NewNop()})
	t.Cleanup(func() {
		h.Stop()
		runtime.Close()
	})
	return h, w
}

func (w *waitingTask) noted() (notes []string, owned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes), w.HasOwner(w.spec.AccountID, w.spec.TaskID)
}

func TestACommandForAWaitingTaskIsStoredThenShownThenAcknowledged(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, c := range map[string]struct {
		fault error
		err   error
		notes []string
	}{
		"stored":      {nil, nil, []string{"stored", "shown cancelled"}},
		"not stored":  {broken, broken, []string{"failed"}},
		"unavailable": {&protocol.Error{Code: protocol.CodeUnavailable}, nil, []string{"failed", "stored", "shown cancelled"}},
		"fenced":      {ownership.ErrFenced, nil, []string{"failed", "stored", "shown cancelled"}},
	} {
		var faults []error
		if c.fault != nil {
			faults = []error{c.fault}
		}
		h, w := newWaitingTask(t, faults...)
		cancelled, err := h.Cancel(t.Context(), w.spec.AccountID, w.spec.TaskID)
		if !errors.Is(err, c.err) || err == nil && cancelled.State != protocol.ResearchCancelled {
			t.Errorf("%s: the caller got %+v, %v", name, cancelled, err)
		}
		if notes, _ := w.noted(); !slices.Equal(notes, c.notes) {
			t.Errorf("%s: %v, want %v", name, notes, c.notes)
		}
	}
}

// A node that owns a task that waits would begin it, although it has no slot for it.
func TestATaskThatWaitsHasNoOwnerAfterACommand(t *testing.T) {
	h, w := newWaitingTask(t)
	steer := func(client string, strike ...string) (*protocol.ResearchReceipt, error) {
		return h.Steer(t.Context(), w.spec.AccountID, w.spec.TaskID, &researchlog.Steering{
			Kind: protocol.ResearchPlan, SteeringID: protocol.NewSteeringID(), ClientID: client, Digest: client, Add: []string{"Where?"}, Strike: strike,
		})
	}
	if _, err := steer("refused", "q9"); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("the command got %v", err)
	}
	first, err := steer("one")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := steer("one"); err != nil || !again.Replayed || again.SteeringID != first.SteeringID {
		t.Errorf("the repeat got %+v, %v", again, err)
	}
	if notes, owned := w.noted(); owned || !slices.Equal(notes, []string{"stored", "stored", "stored"}) || h.Running() != 0 {
		t.Errorf("%v, owned %v, %d actors run", notes, owned, h.Running())
	}
}

func TestCommandsForATaskThatWaitsDoNotFenceOneAnother(t *testing.T) {
	h, w := newWaitingTask(t)
	const n = 8
	results := make(chan error, n)
	for i := range n {
		go func() {
			_, err := h.Steer(t.Context(), w.spec.AccountID, w.spec.TaskID, &researchlog.Steering{
				Kind: protocol.ResearchInput, Text: "harbours", SteeringID: protocol.NewSteeringID(), ClientID: string(rune('a' + i)),
			})
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil {
			t.Errorf("a command got %v", err)
		}
	}
	if notes, owned := w.noted(); owned || len(notes) != n {
		t.Errorf("%v, owned %v", notes, owned)
	}
}
