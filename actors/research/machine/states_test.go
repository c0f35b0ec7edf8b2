package machine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// inState returns a task in a state. A task that is running waits for its plan, and one that is cancelling for its steps.
func inState(t *testing.T, state protocol.ResearchState) *world {
	t.Helper()
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	if state != protocol.ResearchQueued {
		w.step(func(b *Batch) { b.Begin() })
	}
	switch state {
	case protocol.ResearchCompleted:
		w.run()
	case protocol.ResearchCancelling:
		w.holds = true
		w.step(func(b *Batch) { b.Cancel() })
	case protocol.ResearchCancelled:
		w.step(func(b *Batch) { b.Cancel() })
	case protocol.ResearchFailed:
		w.step(func(b *Batch) { b.GiveUp() })
	}
	if w.machine.State() != state || w.claim.State != state {
		t.Fatalf("the task is %s, and %s in the store, want %s", w.machine.State(), w.claim.State, state)
	}
	return w
}

// written returns a running task with a complete report that is not stored yet.
func written(t *testing.T) *world {
	t.Helper()
	w := inState(t, protocol.ResearchRunning)
	w.holds = true
	for !w.machine.ready && w.advance() {
	}
	if !w.machine.ready || w.machine.State() != protocol.ResearchRunning {
		t.Fatalf("the task is %s", w.machine.State())
	}
	return w
}

// trigger is a row of triggers.
type trigger struct {
	name  string // begins with the method of Batch
	fire  func(b *Batch) error
	cells string
}

// quiet returns a trigger that refuses nothing.
func quiet(fire func(b *Batch)) func(*Batch) error {
	return func(b *Batch) error { fire(b); return nil }
}

// planOf returns the result of the first step of a task.
func planOf(b *Batch) *researchlog.Result {
	if s := b.byKey["plan"]; s != nil {
		return resultOf(&s.Step)
	}
	return &researchlog.Result{}
}

func steer(command researchlog.Steering) func(*Batch) error {
	return func(b *Batch) error {
		sent := command
		sent.SteeringID, sent.ClientID = protocol.NewSteeringID(), "late"
		_, err := b.Steer(&sent)
		return err
	}
}

// triggers is what every trigger does in every state. A cell lists the states that follow one another, or is
//
//	.  nothing happens: no event, no entry, no effect
//	!  the command is refused, and nothing happens
//	=  the task goes on in the same state
//
// The columns: queued | running: it waits for the plan, its report is written | cancelling | completed | failed | cancelled.
var triggers = []trigger{
	{"Begin", quiet(func(b *Batch) { b.Begin() }), "running|.,.|.|.|.|."},
	{"Begin with few tokens", quiet(func(b *Batch) { b.task.Budget.Tokens = leastBudget - 1; b.Begin() }), "failed|.,.|.|.|.|."},
	{"Adopt", quiet(func(b *Batch) { b.Adopt() }), ".|=,=|=|.|.|."},
	{"GiveUp", quiet(func(b *Batch) { b.GiveUp() }), "failed|failed,failed|cancelled|.|.|."},
	{"Result", quiet(func(b *Batch) { b.Result("plan", planOf(b), 1) }), ".|=,.|.|.|.|."},
	{"Result of an unknown step", quiet(func(b *Batch) { b.Result("unknown", &researchlog.Result{}, 1) }), ".|.,.|.|.|.|."},
	{"TimeOver", quiet(func(b *Batch) { b.TimeOver() }), ".|failed,=|.|.|.|."},
	{"Cancel", quiet(func(b *Batch) { b.Cancel() }), "cancelling|cancelling,cancelling|.|.|.|."},
	{"Stopped", quiet(func(b *Batch) { b.Stopped() }), ".|.,.|cancelled|.|.|."},
	{"Complete", quiet(func(b *Batch) { b.Complete(protocol.NewMessageID()) }), ".|.,completed|.|.|.|."},
	{"Reject", quiet(func(b *Batch) { b.Reject("why") }), ".|.,failed|.|.|.|."},
	{"Steer with an input", steer(researchlog.Steering{Kind: protocol.ResearchInput, Text: "harbours"}), "=|=,!|!|!|!|!"},
	{"Steer with a change of the plan", steer(researchlog.Steering{Kind: protocol.ResearchPlan, Add: []string{"What do pilots say?"}}), "=|=,!|!|!|!|!"},
	{"Steer to write now", steer(researchlog.Steering{Kind: protocol.ResearchWriteNow}), "=|=,!|!|!|!|!"},
}

// TestEveryTriggerInEveryState compares every cell of triggers with what the machine decides. Each change of the state must also be
// one of protocol.ResearchTransitions.
func TestEveryTriggerInEveryState(t *testing.T) {
	columns := []*world{inState(t, protocol.ResearchQueued), inState(t, protocol.ResearchRunning), written(t)}
	for _, state := range protocol.ResearchStates[2:] {
		columns = append(columns, inState(t, state))
	}
	for _, trigger := range triggers {
		cells := strings.FieldsFunc(trigger.cells, func(r rune) bool { return r == ',' || r == '|' })
		if len(cells) != len(columns) {
			t.Fatalf("%s has %d cells, want %d", trigger.name, len(cells), len(columns))
		}
		for column, want := range cells {
			b := Restore(columns[column].claim).NewBatch()
			from := b.State()
			if got := fired(t, b, trigger.fire); got != want {
				t.Errorf("%s in %s (column %d): got %q, want %q", trigger.name, from, column+1, got, want)
			}
		}
	}
}

// fired fires a trigger and returns the cell that describes what it did.
func fired(t *testing.T, b *Batch, fire func(*Batch) error) (cell string) {
	t.Helper()
	defer func() {
		if defect := recover(); defect != nil {
			cell = fmt.Sprint(defect)
		}
	}()
	from := b.State()
	err := fire(b)
	var path []string
	for _, event := range b.Events {
		change, is := event.(*protocol.ResearchStateChanged)
		if !is {
			continue
		}
		if !slices.ContainsFunc(protocol.ResearchTransitions, func(tr protocol.Transition[protocol.ResearchState, protocol.ResearchTrigger]) bool {
			return tr.From == from && tr.To == change.State
		}) {
			t.Errorf("the table has no transition from %s to %s", from, change.State)
		}
		from = change.State
		path = append(path, string(from))
	}
	ends := false
	if len(b.Events) > 0 {
		_, ends = b.Events[len(b.Events)-1].(*protocol.ResearchFinished)
	}
	if from != b.State() || ends != (len(path) > 0 && from.Terminal()) {
		t.Errorf("the events end in %s, the task is %s; the end was reported: %v", from, b.State(), ends)
	}
	silent := len(b.Events)+len(b.Entries)+len(b.Effects) == 0
	switch {
	case err != nil && silent:
		return "!"
	case err != nil:
		return "refused, with a decision"
	case silent:
		return "."
	case len(path) == 0:
		return "="
	}
	return strings.Join(path, " ")
}

func TestTheTableHasEveryStateAndEveryTrigger(t *testing.T) {
	if want := []protocol.ResearchState{protocol.ResearchQueued, protocol.ResearchRunning, protocol.ResearchCancelling}; !slices.Equal(protocol.ResearchStates[:3], want) {
		t.Errorf("the columns begin with %v, the states with %v", want, protocol.ResearchStates)
	}
	for method := range reflect.TypeFor[*Batch]().Methods() {
		_, ofMachine := reflect.TypeFor[*Machine]().MethodByName(method.Name)
		// Start is the first trigger of every task (see newWorld), Append encodes the decision.
		if ofMachine || method.Name == "Start" || method.Name == "Append" {
			continue
		}
		if !slices.ContainsFunc(triggers, func(row trigger) bool { return strings.Fields(row.name)[0] == method.Name }) {
			t.Errorf("the table does not have the trigger %s", method.Name)
		}
	}
}
