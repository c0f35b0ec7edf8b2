package pgtest

import (
	"testing"

	"turnstone/protocol"
)

// Object is one object whose state the database has.
type Object[State, Trigger ~string] struct {
	Fire  func(Trigger) // requests the change; whether that is refused is tested elsewhere
	State func() State
}

// CheckTransitions creates an object in each of its states for each trigger, fires the trigger, and fails the test unless the object is then
// in the state of the table, or in its old state if the table has no row. A trigger that depends on more than the state is one trigger for
// each case.
func CheckTransitions[State, Trigger ~string](t *testing.T, table []protocol.Transition[State, Trigger], states []State, triggers []Trigger,
	create func(State, Trigger) Object[State, Trigger],
) {
	t.Helper()
	fired := map[Trigger]bool{}
	for _, from := range states {
		for _, trigger := range triggers {
			fired[trigger] = true
			object := create(from, trigger)
			if state := object.State(); state != from {
				t.Fatalf("an object is %s, want %s", state, from)
			}
			want := from
			for _, row := range table {
				if row.From == from && row.Trigger == trigger {
					want = row.To
				}
			}
			object.Fire(trigger)
			if state := object.State(); state != want {
				t.Errorf("%s: what was %s is %s, want %s", trigger, from, state, want)
			}
		}
	}
	for _, row := range table {
		if !fired[row.Trigger] {
			t.Errorf("nothing fires %s", row.Trigger)
		}
	}
}
