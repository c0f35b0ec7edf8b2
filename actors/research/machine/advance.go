package machine

import (
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

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

// Start is the first trigger of a task. It has no entry.
func (b *Batch) Start() {
	b.emit(&protocol.ResearchStarted{
		ConversationID: b.spec.ConversationID, Question: b.spec.Question, Depth: b.spec.Depth, Sources: b.spec.Sources, Budget: b.spec.Budget,
	})
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
