package machine

import (
	"cmp"
	"fmt"
	"maps"
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
		w.step(func(b *Batch) { b.Resume(1, true) })
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
		w.step(func(b *Batch) { b.Resume(maxAttempts+1, true) })
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
	{"Resume with a slot", quiet(func(b *Batch) { b.Resume(maxAttempts, true) }), "running|=,=|=|.|.|."},
	{"Resume with few tokens", quiet(func(b *Batch) { b.task.Budget.Tokens = leastBudget - 1; b.Resume(1, true) }), "failed|=,=|=|.|.|."},
	{"Resume for a command", quiet(func(b *Batch) { b.Resume(maxAttempts, false) }), ".|=,=|=|.|.|."},
	{"Resume too often", quiet(func(b *Batch) { b.Resume(maxAttempts+1, true) }), "failed|failed,failed|cancelled|.|.|."},
	{"Resume too often for a command", quiet(func(b *Batch) { b.Resume(maxAttempts+1, false) }), ".|failed,failed|cancelled|.|.|."},
	{"Result", quiet(func(b *Batch) { b.Result("plan", planOf(b), 1) }), ".|=,.|.|.|.|."},
	{"Result of an unknown step", quiet(func(b *Batch) { b.Result("unknown", &researchlog.Result{}, 1) }), ".|.,.|.|.|.|."},
	{"TimeOver", quiet(func(b *Batch) { b.TimeOver() }), ".|failed,=|.|.|.|."},
	{"Cancel", quiet(func(b *Batch) { b.Cancel() }), "cancelling cancelled|cancelling,cancelling|.|.|.|."},
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
		if !leads(protocol.ResearchTransitions, from, change.State) {
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

func TestOnlyATaskThatWaitsOrHasEndedRests(t *testing.T) {
	for _, state := range protocol.ResearchStates {
		m := inState(t, state).machine
		if waits, rests := state == protocol.ResearchQueued, state == protocol.ResearchQueued || state.Terminal(); m.Waits() != waits || m.Rests() != rests {
			t.Errorf("%s: waits %v, rests %v", state, m.Waits(), m.Rests())
		}
	}
}

// phases is what triggers do with the phase of a running task: the phases that follow one another, or "." for none.
//
// The columns: planning | searching, its last step | reading, its last step, that of the last round | synthesizing.
var phases = []struct {
	name  string
	fire  func(w *world, b *Batch)
	cells string
}{
	{"the result of a step", func(w *world, b *Batch) {
		result := resultOf(w.running[0])
		secondRound(w.running[0], result)
		b.Result(w.running[0].Key, result, 1)
	}, "searching|.,reading|.,searching,synthesizing|."},
	{"Steer to write now", func(_ *world, b *Batch) { _ = steer(researchlog.Steering{Kind: protocol.ResearchWriteNow})(b) }, ".|synthesizing,synthesizing|synthesizing,synthesizing,synthesizing|."},
	{"TimeOver", func(_ *world, b *Batch) { b.TimeOver() }, ".|synthesizing,synthesizing|synthesizing,synthesizing,synthesizing|."},
	{"Resume", func(_ *world, b *Batch) { b.Resume(1, true) }, ".|.,.|.,.,.|."},
	{"Resume too often", func(_ *world, b *Batch) { b.Resume(maxAttempts+1, true) }, ".|.,.|.,.,.|."},
	{"Cancel", func(_ *world, b *Batch) { b.Cancel() }, ".|.,.|.,.,.|."},
}

func TestEveryTriggerInEveryPhase(t *testing.T) {
	// in returns a task in a phase of a round. With a kind of step, only one step is left, of this kind.
	in := func(phase protocol.ResearchPhase, round int, last researchlog.StepKind) *world {
		w := newWorld(t, newSpec(protocol.ResearchStandard))
		w.holds = true
		w.change = secondRound
		w.step(func(b *Batch) { b.Resume(1, true) })
		for w.machine.task.Phase != phase || w.machine.round != round || last != "" && (len(w.running) > 1 || w.running[0].Kind != last) {
			if !w.advance() {
				t.Fatalf("no task in %s, round %d, with a last step %q", phase, round, last)
			}
		}
		return w
	}
	columns := []*world{
		in(protocol.ResearchPlanning, 0, ""), in(protocol.ResearchSearching, 1, ""), in(protocol.ResearchSearching, 1, researchlog.StepSearch),
		in(protocol.ResearchReading, 1, ""), in(protocol.ResearchReading, 1, researchlog.StepGaps), in(protocol.ResearchReading, 2, researchlog.StepRead),
		in(protocol.ResearchSynthesizing, 2, ""),
	}
	for _, row := range phases {
		for column, want := range strings.FieldsFunc(row.cells, func(r rune) bool { return r == ',' || r == '|' }) {
			w := columns[column]
			b := Restore(w.claim).NewBatch()
			row.fire(w, b)
			got := strings.Join(follow(t, maps.Clone(w.states), b.Events)[ofPhase], " ")
			if got == "" {
				got = "."
			}
			if got != want {
				t.Errorf("%s in %s (column %d): got %q, want %q", row.name, w.machine.task.Phase, column+1, got, want)
			}
		}
	}
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

// ofPhase is the identifier under which follow keeps the phase of the task.
const ofPhase = "phase"

// follow checks that each state of a question and of a source, and the phase, follows from the one before it, as the tables of protocol
// say. It changes states, by identifier, and returns the paths of those that have changed.
func follow(t *testing.T, states map[string]string, events []protocol.Payload) map[string][]string {
	t.Helper()
	paths := map[string][]string{}
	change := func(id, to string, legal bool) {
		if !legal {
			t.Errorf("the table has no transition of %s from %q to %s", id, states[id], to)
		}
		states[id] = to
		paths[id] = append(paths[id], to)
	}
	for _, event := range events {
		switch e := event.(type) {
		case *protocol.ResearchPlanned:
			for _, q := range e.Plan {
				if _, known := states[q.StepID]; !known {
					change(q.StepID, string(q.State), q.State == protocol.ResearchStepOpen)
				}
			}
		case *protocol.ResearchPhaseChanged:
			from := cmp.Or(protocol.ResearchPhase(states[ofPhase]), protocol.ResearchPlanning)
			change(ofPhase, string(e.Phase), leads(protocol.ResearchPhaseTransitions, from, e.Phase))
		case *protocol.ResearchStepChanged:
			change(e.StepID, string(e.State), leads(protocol.ResearchStepTransitions, protocol.ResearchStepState(states[e.StepID]), e.State))
		case *protocol.ResearchSourceChanged:
			_, known := states[e.SourceID]
			change(e.SourceID, string(e.State), !known && e.State == protocol.SourceFound ||
				leads(protocol.ResearchSourceTransitions, protocol.ResearchSourceState(states[e.SourceID]), e.State))
		}
	}
	return paths
}

// leads reports whether a table has a transition from a state to another one.
func leads[S, T ~string](table []protocol.Transition[S, T], from, to S) bool {
	return slices.ContainsFunc(table, func(tr protocol.Transition[S, T]) bool { return tr.From == from && tr.To == to })
}

func TestATransitionOfAPartThatTheTableDoesNotHaveIsADefect(t *testing.T) {
	everyTransition(t, protocol.ResearchStepStates, protocol.ResearchStepTransitions, func(from protocol.ResearchStepState, trigger protocol.ResearchStepTrigger) protocol.ResearchStepState {
		q := question{ResearchStep: protocol.ResearchStep{State: from}}
		return q.next(trigger)
	})
	everyTransition(t, protocol.ResearchPhases, protocol.ResearchPhaseTransitions, func(from protocol.ResearchPhase, trigger protocol.ResearchPhaseTrigger) protocol.ResearchPhase {
		m := New(&researchlog.Spec{})
		m.task.Phase = from
		m.NewBatch().enter(trigger)
		return m.task.Phase
	})
	everyTransition(t, protocol.ResearchSourceStates, protocol.ResearchSourceTransitions, func(from protocol.ResearchSourceState, trigger protocol.ResearchSourceTrigger) protocol.ResearchSourceState {
		s := source{state: from}
		return s.next(trigger)
	})
}

// everyTransition compares next with a table, for every trigger of the table in every state.
func everyTransition[S, T ~string](t *testing.T, states []S, table []protocol.Transition[S, T], next func(S, T) S) {
	t.Helper()
	for _, from := range states {
		for _, of := range table {
			at := slices.IndexFunc(table, func(tr protocol.Transition[S, T]) bool { return tr.From == from && tr.Trigger == of.Trigger })
			func() {
				defer func() {
					if defect := recover(); (defect == nil) != (at >= 0) {
						t.Errorf("%s in %s: %v", of.Trigger, from, defect)
					}
				}()
				if to := next(from, of.Trigger); at < 0 || to != table[at].To {
					t.Errorf("%s in %s leads to %s", of.Trigger, from, to)
				}
			}()
		}
	}
}

// gathering returns a task that searches. Its first question is running, the second one was struck, and the third one is open.
func gathering(t *testing.T) *world {
	w := inState(t, protocol.ResearchRunning)
	w.holds = true
	w.advance() // the plan
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchPlan, Strike: []string{"q2"}, Add: []string{"What do pilots say?"}, ClientID: "one"})
	return w
}

// writing returns a task that writes. Its first question is done, and the third one was skipped.
func writing(t *testing.T) *world {
	w := gathering(t)
	for !slices.Contains(w.ran, "judge-s1") && w.advance() {
	}
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "two"})
	return w
}

// secondRound makes the first round ask a further question. The search for it finds other sources.
func secondRound(step *researchlog.Step, result *researchlog.Result) {
	const question = "What do pilots say?"
	switch {
	case step.Kind == researchlog.StepGaps:
		result.Questions = []string{question}
	case step.Kind == researchlog.StepSearch && step.About[0] == question:
		for i := range result.Candidates {
			result.Candidates[i].Title = fmt.Sprintf("Station %d", 20+i)
			result.Candidates[i].URL = fmt.Sprintf("https://www.tides.example/pilots/%d", i)
		}
	}
}

// reading returns a task that reads the sources of a second round. It has a source in each state.
func reading(t *testing.T) *world {
	w := newWorld(t, newSpec(protocol.ResearchStandard))
	w.change = func(step *researchlog.Step, result *researchlog.Result) {
		switch {
		case step.Key == "read-s2":
			*result = researchlog.Result{Failed: "The server refused the page."}
		case step.Key == "judge-s3":
			result.Quotes = nil
		default:
			secondRound(step, result)
		}
	}
	w.step(func(b *Batch) { b.Resume(1, true) })
	inEachState := func() bool {
		for _, state := range protocol.ResearchSourceStates {
			if sourceIn(w, state) == "" {
				return false
			}
		}
		return true
	}
	for !inEachState() {
		if !w.advance() {
			t.Fatalf("no source is in each state: %v", w.states)
		}
	}
	return w
}

// sourceIn returns the first source in a state; empty: there is none.
func sourceIn(w *world, state protocol.ResearchSourceState) string {
	for _, s := range w.machine.sources {
		if s.state == state {
			return s.SourceID
		}
	}
	return ""
}

// partTriggers is what triggers do with a question in each state, and with a source in each state: the states that follow one another,
// "." for none, "!" if the command is refused.
var partTriggers = []struct {
	name      string
	fire      func(b *Batch, id string) error
	questions string // open | running | done | struck | skipped; empty: the trigger is about a source
	sources   string // found | reading | read | kept | unused | failed | merged; empty: the trigger is about a question
}{
	{"strike", func(b *Batch, id string) error {
		return steer(researchlog.Steering{Kind: protocol.ResearchPlan, Strike: []string{id}})(b)
	}, "struck|struck|!|.|!", ""},
	{"its text", func(b *Batch, id string) error {
		b.Result("read-"+id, resultOf(&b.byKey["read-"+id].Step), 1)
		return nil
	}, "", "reading read|read|.|.|.|.|."},
	{"no text", func(b *Batch, id string) error {
		b.Result("read-"+id, &researchlog.Result{Failed: "The server refused the page."}, 1)
		return nil
	}, "", "reading failed|failed|.|.|.|.|."},
	{"Resume", func(b *Batch, _ string) error { b.Resume(1, false); return nil }, ".|.|.|.|.", ".|.|.|.|.|.|."},
	{"Cancel", func(b *Batch, _ string) error { b.Cancel(); return nil }, ".|.|.|.|.", ".|.|.|.|.|.|."},
	{"Stopped after a cancel", func(b *Batch, _ string) error { b.Cancel(); b.Stopped(); return nil }, "skipped|skipped|.|.|.", "unused|unused|unused|.|.|.|."},
	{"Resume too often", func(b *Batch, _ string) error { b.Resume(maxAttempts+1, false); return nil }, "skipped|skipped|.|.|.", "unused|unused|unused|.|.|.|."},
	{"TimeOver", func(b *Batch, _ string) error { b.TimeOver(); return nil }, "skipped|skipped|.|.|.", "unused|unused|merged|.|.|.|."},
	{"Steer to write now", func(b *Batch, _ string) error { return steer(researchlog.Steering{Kind: protocol.ResearchWriteNow})(b) }, "skipped|skipped|!|.|!", "unused|unused|merged|.|.|.|."},
}

func TestEveryTriggerWithAQuestionAndASourceInEveryState(t *testing.T) {
	gathering, writing, reading := gathering(t), writing(t), reading(t)
	type column struct {
		world *world
		id    string
		state string
	}
	var questions, sources []column
	for i, id := range []string{"q3", "q1", "q1", "q2", "q3"} {
		w := gathering
		if i == 2 || i == 4 {
			w = writing
		}
		questions = append(questions, column{w, id, string(protocol.ResearchStepStates[i])})
	}
	for _, state := range protocol.ResearchSourceStates {
		sources = append(sources, column{reading, sourceIn(reading, state), string(state)})
	}
	for _, trigger := range partTriggers {
		for cells, columns := range map[string][]column{trigger.questions: questions, trigger.sources: sources} {
			for i, want := range strings.Split(cells, "|") {
				if cells == "" {
					continue
				}
				of := columns[i]
				if of.world.states[of.id] != of.state {
					t.Fatalf("%s is %s, want %s", of.id, of.world.states[of.id], of.state)
				}
				b := Restore(of.world.claim).NewBatch()
				got := "!"
				if err := trigger.fire(b, of.id); err == nil {
					if got = strings.Join(follow(t, maps.Clone(of.world.states), b.Events)[of.id], " "); got == "" {
						got = "."
					}
				}
				if got != want {
					t.Errorf("%s with %s, which is %s: got %q, want %q", trigger.name, of.id, of.state, got, want)
				}
			}
		}
	}
}
