package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/turnlog"
)

const (
	// parallel is the number of steps of a task that run at the same time.
	parallel = 4
	// maxAttempts is how often a task may be claimed without progress in between.
	maxAttempts = 5
)

// Machine is the state of one research task.
type Machine struct {
	spec     *researchlog.Spec
	limits   bounds
	task     protocol.ResearchTask // what is published
	sequence int64                 // of the last event
	entries  int64                 // that were applied

	questions []*question
	sources   []*source
	steps     []*step
	byKey     map[string]*step
	found     map[string]bool // identities of what searches have found
	inputs    []*input
	received  map[string]receipt // by the client's identifier

	round     int  // of searching and reading, from 1
	hurry     bool // no more sources: the user wants the report, or a budget is used up
	stopped   bool // the budget of seconds is used up: no model writes any more
	ready     bool // the report is written, and only has to be stored
	summary   string
	conflicts []conflict // contradictions between sources
	failing   string     // why a model could not write; empty: it could
	usage     protocol.Usage
}

// step is a step with its state.
type step struct {
	researchlog.Step
	digest  string
	started bool // by this owner
	dropped bool // nobody waits for its result
	result  *researchlog.Result
}

func (s *step) over() bool { return s.result != nil || s.dropped }

type receipt struct {
	protocol.ResearchReceipt
	digest string
}

// New returns the machine of a new task.
func New(spec *researchlog.Spec) *Machine {
	return &Machine{
		spec: spec, limits: depths[spec.Depth], byKey: map[string]*step{}, found: map[string]bool{}, received: map[string]receipt{},
		task: protocol.ResearchTask{
			TaskID: spec.TaskID, ConversationID: spec.ConversationID, TurnID: spec.TurnID, Question: spec.Question, Depth: spec.Depth, Sources: spec.Sources,
			State: protocol.ResearchQueued, Phase: protocol.ResearchPlanning, Budget: spec.Budget, Plan: []protocol.ResearchStep{}, CreatedAt: spec.CreatedAt,
		},
	}
}

// Spec returns the specification of the task.
func (m *Machine) Spec() *researchlog.Spec { return m.spec }

// State returns the state after the last decision.
func (m *Machine) State() protocol.ResearchState { return m.task.State }

// Waits reports whether the task waits for a slot. Such a task has no owner once a decision is stored.
func (m *Machine) Waits() bool { return m.task.State == protocol.ResearchQueued }

// Rests reports whether no owner works on the task after the last decision: it waits for a slot, or has ended.
func (m *Machine) Rests() bool { return m.Waits() || m.task.State.Terminal() }

// Seconds returns for how long the task has run, as of the last entry.
func (m *Machine) Seconds() int64 { return m.task.Spent.Seconds }

// Batch lets a machine decide on a series of triggers, which become one step of the actor. Its exported methods are the
// triggers. A trigger that comes too late changes nothing.
type Batch struct {
	*Machine
	Events   []protocol.Payload
	Effects  []Effect
	Entries  []researchlog.Entry
	changed  map[*source]bool
	report   *researchlog.Report
	returned []turnlog.ReturnedInput // inputs that were returned
	before   protocol.ResearchProgress
	spent    protocol.ResearchAmounts
}

// Effect is an action outside the machine that is performed after the commit: one of the fields is set.
type Effect struct {
	Run    *researchlog.Step // run this step; its result comes back as Result
	Drop   []string          // stop these steps: their results are not used
	Stop   bool              // stop all steps, because the task is cancelling; Stopped follows
	Finish bool              // check whether a report of Bytes can be stored; Complete or Reject follows
	Bytes  int
}

// NewBatch starts a batch. The decision of the batch before it must have been stored, or the machine be given up.
func (m *Machine) NewBatch() *Batch {
	return &Batch{Machine: m, changed: map[*source]bool{}, before: m.task.Progress, spent: m.task.Spent}
}

// Append returns the batch for the store, without the fields that the actor knows.
func (b *Batch) Append() *researchlog.Append {
	b.task.Version++
	b.task.LastSequence = b.sequence
	appended := &researchlog.Append{
		AccountID: b.spec.AccountID, TaskID: b.spec.TaskID, First: b.sequence - int64(len(b.Events)) + 1, Last: b.sequence,
		FirstEntry: b.entries - int64(len(b.Entries)) + 1, Entries: b.Entries, Task: b.task, Report: b.report, Returned: b.returned, Usage: b.usage,
	}
	for i, s := range b.sources {
		if b.changed[s] {
			appended.Sources = append(appended.Sources, researchlog.Source{ResearchKeptSource: s.ResearchKeptSource, Ordinal: i})
		}
	}
	return appended
}

func (b *Batch) emit(event protocol.Payload) {
	b.sequence++
	b.Events = append(b.Events, event)
}

// move makes a transition, with its event.
func (b *Batch) move(trigger protocol.ResearchTrigger) {
	to, legal := protocol.NextResearchState(b.task.State, trigger)
	if !legal {
		panic(fmt.Sprintf("research: no transition %s from %s", trigger, b.task.State))
	}
	if to != b.task.State {
		b.task.State = to
		b.emit(&protocol.ResearchStateChanged{State: to})
	}
}

// enter begins a phase, with its event.
func (b *Batch) enter(trigger protocol.ResearchPhaseTrigger) {
	to, legal := protocol.NextResearchPhase(b.task.Phase, trigger)
	if !legal {
		panic(fmt.Sprintf("research: no transition %s from %s of the phase", trigger, b.task.Phase))
	}
	b.task.Phase = to
	b.emit(&protocol.ResearchPhaseChanged{Phase: to})
}

// add adds a step, unless the task has one with the same key.
func (b *Batch) add(s researchlog.Step) {
	if b.byKey[s.Key] != nil {
		return
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // the type has no field that cannot be encoded
	}
	hash := sha256.Sum256(text)
	added := &step{Step: s, digest: hex.EncodeToString(hash[:])}
	b.byKey[s.Key] = added
	b.steps = append(b.steps, added)
}

// drop gives up the steps that a condition selects and that have no result.
func (b *Batch) drop(condition func(*step) bool) {
	var keys []string
	for _, s := range b.steps {
		if !s.over() && condition(s) {
			s.dropped = true
			keys = append(keys, s.Key)
		}
	}
	if len(keys) > 0 {
		b.Effects = append(b.Effects, Effect{Drop: keys})
	}
}

// allOver reports whether every step of the given kinds has a result or was dropped.
func (m *Machine) allOver(kinds ...researchlog.StepKind) bool {
	for _, s := range m.steps {
		for _, kind := range kinds {
			if s.Kind == kind && !s.over() {
				return false
			}
		}
	}
	return true
}

// noteProgress reports the progress, if it has changed since the beginning of the batch.
func (b *Batch) noteProgress() {
	p := &b.task.Progress
	p.Done, p.Total = 0, 0
	for _, s := range b.steps {
		if s.dropped {
			continue
		}
		p.Total++
		if s.result != nil {
			p.Done++
		}
	}
	if *p != b.before || b.task.Spent.Tokens != b.spent.Tokens || b.task.Spent.Pages != b.spent.Pages {
		b.before, b.spent = *p, b.task.Spent
		b.emit(&protocol.ResearchProgressed{Progress: *p, Spent: b.task.Spent})
	}
}
