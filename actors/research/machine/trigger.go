package machine

import (
	"fmt"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

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
