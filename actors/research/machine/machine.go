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

// question is a question of the plan.
type question struct {
	protocol.ResearchStep
	round   int // in which it is searched; 0: not yet
	section string
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

// input is an input of the user that a step takes into account.
type input struct {
	*researchlog.Steering
	applied bool
}

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

// Restore returns the machine of a claimed task.
func Restore(claim *researchlog.Claim) *Machine {
	m := New(&claim.Spec)
	b := m.NewBatch()
	b.Start()
	for i := range claim.Entries {
		b.apply(&claim.Entries[i])
	}
	m.entries, m.sequence, m.task.Version = int64(len(claim.Entries)), claim.NextSequence-1, claim.Version
	if claim.State.Terminal() {
		m.task.State = claim.State // a former version ended some tasks without an entry of their end
	}
	return m
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

// end makes the last transition, with the last event.
func (b *Batch) end(trigger protocol.ResearchTrigger, failure *protocol.ResearchFailure) {
	b.returnInputs()
	b.leaveUnread()
	for _, q := range b.questions {
		if !q.State.Terminal() {
			b.changeQuestion(q, protocol.ResearchStepSkips)
		}
	}
	b.noteProgress()
	b.task.Failure = failure
	b.move(trigger)
	b.emit(&protocol.ResearchFinished{
		State: b.task.State, Failure: failure, ArtifactID: b.task.ArtifactID, MessageID: b.task.MessageID, LastSequence: b.sequence + 1,
	})
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

// Start is the first trigger of a task. It has no entry.
func (b *Batch) Start() {
	b.emit(&protocol.ResearchStarted{
		ConversationID: b.spec.ConversationID, Question: b.spec.Question, Depth: b.spec.Depth, Sources: b.spec.Sources, Budget: b.spec.Budget,
	})
}

// Resume is the first trigger of every owner. It begins a task that waits, if the owner has a slot for it, and continues any
// other one. attempts is how often the task was claimed without progress: after maxAttempts, it ends, because it is probably
// what ends the processes. Without tokens for a plan, a source and a report, a task fails when it begins: nothing is lost yet.
func (b *Batch) Resume(attempts int, slot bool) {
	entry := researchlog.Entry{Kind: researchlog.EntryAdopt}
	switch {
	case b.task.State.Terminal() || b.Waits() && !slot:
		return
	case attempts > maxAttempts:
		entry.Kind = researchlog.EntryGiveUp
	case b.Waits() && b.task.Budget.Tokens < leastBudget:
		entry.Kind = researchlog.EntryFail
		entry.Detail = fmt.Sprintf(
			"The budget of tokens (%d) does not suffice for a plan, a source and a report. Start the task again with at least %d tokens.", b.task.Budget.Tokens, leastBudget)
	case b.Waits():
		entry.Kind = researchlog.EntryBegin
	}
	b.enact(entry)
}

// Result reports the result of a step, and for how many seconds the task has run.
func (b *Batch) Result(key string, result *researchlog.Result, seconds int64) {
	if s := b.byKey[key]; b.task.State == protocol.ResearchRunning && s != nil && !s.over() {
		b.enact(researchlog.Entry{Kind: researchlog.EntryResult, Step: key, Digest: s.digest, Result: result, Seconds: seconds, AtOnce: true})
	}
}

// TimeOver reports that the budget of seconds is used up. A task without a plan fails.
func (b *Batch) TimeOver() {
	entry := researchlog.Entry{Kind: researchlog.EntryTimeOver, Seconds: b.spec.Budget.Seconds}
	switch {
	case b.task.State != protocol.ResearchRunning || b.stopped:
		return
	case len(b.questions) == 0:
		entry.Kind = researchlog.EntryFail
		entry.Detail = fmt.Sprintf("The model had not written a plan when the time for this task (%d s) was used up. Start the task again with more time.", b.spec.Budget.Seconds)
	}
	b.enact(entry)
}

// Cancel asks the task to end; one that waits ends at once, because nothing runs. It reports whether the task was open.
func (b *Batch) Cancel() bool {
	waited := b.Waits()
	if b.task.State.Terminal() {
		return false
	}
	if b.task.State != protocol.ResearchCancelling {
		b.enact(researchlog.Entry{Kind: researchlog.EntryCancel})
	}
	if waited {
		b.Stopped()
	}
	return true
}

// Stopped reports that the steps of a task that is cancelling have stopped.
func (b *Batch) Stopped() {
	if b.task.State == protocol.ResearchCancelling {
		b.enact(researchlog.Entry{Kind: researchlog.EntryStopped})
	}
}

// Complete reports that the report can be stored, with a new message.
func (b *Batch) Complete(message protocol.MessageID) {
	if b.task.State == protocol.ResearchRunning && b.ready {
		b.enact(researchlog.Entry{Kind: researchlog.EntryComplete, Message: &message})
	}
}

// Reject reports that the report cannot be stored, and why.
func (b *Batch) Reject(detail string) {
	if b.task.State == protocol.ResearchRunning && b.ready {
		b.enact(researchlog.Entry{Kind: researchlog.EntryReject, Detail: detail})
	}
}

// enact notes an entry, applies it and starts what follows from it.
func (b *Batch) enact(entry researchlog.Entry) {
	b.entries++
	b.Entries = append(b.Entries, entry)
	b.apply(&entry)
}

// apply changes the state as an entry demands. What it does for an entry of a kind must not change: stored journals have such entries.
// A new rule that ends a task, or chooses another course, is applied by the trigger, which then notes another entry.
func (b *Batch) apply(entry *researchlog.Entry) {
	b.task.Spent.Seconds = max(b.task.Spent.Seconds, entry.Seconds)
	switch entry.Kind {
	case researchlog.EntryBegin:
		b.move(protocol.ResearchBegins)
		b.addPlanStep()
	case researchlog.EntryResult:
		b.applyResult(entry)
	case researchlog.EntrySteering:
		b.applySteering(entry.Steering)
	case researchlog.EntryTimeOver:
		b.hurry, b.stopped = true, true
		b.drop(func(*step) bool { return true })
	case researchlog.EntryCancel:
		b.move(protocol.ResearchCancel)
		b.Effects = append(b.Effects, Effect{Stop: true})
	case researchlog.EntryStopped:
		b.end(protocol.ResearchStopped, nil)
	case researchlog.EntryAdopt:
		b.adopt()
	case researchlog.EntryComplete:
		b.complete(*entry.Message)
	case researchlog.EntryReject:
		b.end(protocol.ResearchFails, &protocol.ResearchFailure{Code: protocol.ResearchNotStored, Detail: entry.Detail})
	case researchlog.EntryFail:
		b.drop(func(*step) bool { return true })
		b.end(protocol.ResearchFails, &protocol.ResearchFailure{Code: protocol.ResearchBudgetExceeded, Detail: entry.Detail})
	case researchlog.EntryGiveUp:
		b.giveUp()
	}
	b.advance()
	b.dispatch()
	if !b.task.State.Terminal() {
		b.noteProgress()
	}
}

func (b *Batch) adopt() {
	switch b.task.State {
	case protocol.ResearchRunning, protocol.ResearchCancelling:
		b.move(protocol.ResearchAdopted)
	default:
		return
	}
	reused := 0
	for _, s := range b.steps {
		if s.result != nil {
			reused++
		}
		s.started = false
	}
	b.task.Progress.Reused = reused
	if b.task.State == protocol.ResearchCancelling {
		b.Effects = append(b.Effects, Effect{Stop: true})
	}
}

func (b *Batch) giveUp() {
	switch b.task.State {
	case protocol.ResearchCancelling:
		b.end(protocol.ResearchStopped, nil)
	case protocol.ResearchQueued, protocol.ResearchRunning:
		b.end(protocol.ResearchFails, &protocol.ResearchFailure{
			Code: protocol.ResearchInterrupted, Detail: "The service was interrupted too often while it worked on this task. Start it again.",
		})
	}
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

// dispatch starts steps that wait, in their order.
func (b *Batch) dispatch() {
	if b.task.State != protocol.ResearchRunning {
		return
	}
	running := 0
	for _, s := range b.steps {
		if s.started && !s.over() {
			running++
		}
	}
	for _, s := range b.steps {
		if running == parallel {
			return
		}
		if s.started || s.over() {
			continue
		}
		s.started = true
		running++
		b.Effects = append(b.Effects, Effect{Run: &s.Step})
		if s.Kind == researchlog.StepRead {
			b.noteReading(s)
		}
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

// applyResult notes a result, and what it has cost.
func (b *Batch) applyResult(entry *researchlog.Entry) {
	s := b.byKey[entry.Step]
	if s == nil || s.over() || s.digest != entry.Digest {
		return // a program of another version has stored it for another input: the step runs again
	}
	s.result = entry.Result
	used := &entry.Result.Usage
	b.usage.InputTokens += used.InputTokens
	b.usage.OutputTokens += used.OutputTokens
	b.usage.ReasoningTokens += used.ReasoningTokens
	b.usage.CachedInputTokens += used.CachedInputTokens
	b.usage.Estimated = b.usage.Estimated || used.Estimated
	b.task.Spent.Tokens = int64(b.usage.InputTokens + b.usage.OutputTokens)
	b.task.Spent.Pages += entry.Result.Pages
	switch s.Kind {
	case researchlog.StepPlan:
		b.planned(s)
	case researchlog.StepRevise:
		b.revised(s)
	case researchlog.StepGaps:
		b.gapsNamed(s)
	case researchlog.StepSummarize:
		b.summarized(s)
	case researchlog.StepWrite:
		b.written(s)
	case researchlog.StepRead:
		if entry.AtOnce {
			b.noteRead(s)
		}
	case researchlog.StepJudge:
		if entry.AtOnce {
			b.keepQuotesOf(b.sourceOf(s))
		}
	}
}

// advance takes a running task on, when all the steps that it waits for are over. It is called after every entry.
func (b *Batch) advance() {
	if b.task.State != protocol.ResearchRunning {
		return
	}
	if b.hurry && b.task.Phase != protocol.ResearchSynthesizing {
		b.beginWriting()
	}
	switch b.task.Phase {
	case protocol.ResearchPlanning:
		if b.allOver(researchlog.StepPlan) && !b.revise() && b.allOver(researchlog.StepRevise) {
			b.search()
		}
	case protocol.ResearchSearching:
		b.advanceSearch()
	case protocol.ResearchReading:
		b.advanceReading()
	case protocol.ResearchSynthesizing:
		b.advanceWriting()
	}
}
