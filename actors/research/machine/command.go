package machine

import (
	"fmt"
	"slices"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

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

// Steer accepts a command of the user. It returns the receipt; protocol.CodeSteeringClosed once the report is being written,
// and the first receipt for a repeated command.
func (b *Batch) Steer(command *researchlog.Steering) (*protocol.ResearchReceipt, error) {
	if earlier, known := b.received[command.ClientID]; known {
		if earlier.digest != command.Digest {
			return nil, protocol.Invalid("body.client_steering_id", "was sent before with another command")
		}
		receipt := earlier.ResearchReceipt
		receipt.Replayed = true
		return &receipt, nil
	}
	switch waiting := b.waiting(); {
	case b.task.State != protocol.ResearchQueued && b.task.State != protocol.ResearchRunning, b.task.Phase == protocol.ResearchSynthesizing, b.hurry:
		return nil, errSteeringClosed(&b.task)
	case command.Kind == protocol.ResearchWriteNow && b.task.Phase == protocol.ResearchPlanning && b.writeWaits():
		current := b.task
		return nil, protocol.Conflict(protocol.CodeConflict, &current, "The report was already requested. It is written after the first search.")
	case command.Kind == protocol.ResearchInput && waiting >= protocol.MaxResearchInputs:
		return nil, &protocol.Error{Code: protocol.CodeTooManyInputs, RetryAfter: 5, Detail: fmt.Sprintf("At most %d inputs can wait to be taken into account.", protocol.MaxResearchInputs)}
	case slices.ContainsFunc(command.Strike, func(id string) bool { return !b.has(id) }):
		return nil, protocol.Invalid("body.strike", "names a question that is not in the plan")
	case command.Kind == protocol.ResearchPlan:
		if err := b.checkPlan(command); err != nil {
			return nil, err
		}
	}
	b.enact(researchlog.Entry{Kind: researchlog.EntrySteering, Steering: command})
	receipt := b.received[command.ClientID].ResearchReceipt
	return &receipt, nil
}

// checkPlan returns an error if a change of the plan has no room for all that it adds, or leaves nothing to search.
func (b *Batch) checkPlan(command *researchlog.Steering) error {
	added := 0
	for i, text := range command.Add {
		text = planned(text)
		if text != "" && !b.asks(text) && !slices.ContainsFunc(command.Add[:i], func(other string) bool { return strings.EqualFold(planned(other), text) }) {
			added++
		}
	}
	if room := protocol.MaxResearchPlan - len(b.questions); added > room {
		return protocol.Invalid("body.add", fmt.Sprintf("adds %d questions, and the plan has room for %d: it can have %d, with those that were struck", added, room, protocol.MaxResearchPlan))
	}
	left := slices.ContainsFunc(b.questions, func(q *question) bool {
		return q.State == protocol.ResearchStepDone || q.State != protocol.ResearchStepStruck && !slices.Contains(command.Strike, q.StepID)
	})
	if len(command.Strike) > 0 && added == 0 && !left {
		return protocol.Invalid("body.strike", "leaves no question in the plan. Add one, or cancel the task")
	}
	return nil
}

func errSteeringClosed(task *protocol.ResearchTask) error {
	detail := "The task has ended, and cannot be steered any more."
	if !task.State.Terminal() {
		detail = "The report is being written, so the task cannot be steered any more."
	}
	current := *task
	return protocol.Conflict(protocol.CodeSteeringClosed, &current, detail)
}
