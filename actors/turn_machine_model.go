package actors

import (
	"fmt"
	"slices"

	"turnstone/protocol"
)

// The triggers of a model call. Each carries the number of the call it belongs to.

func (m *turnMachine) late(call int) bool {
	return m.ended || call != m.call || !m.calling || m.state == protocol.TurnCancelling
}

// modelText takes more of the answer.
func (m *turnMachine) modelText(call int, delta string) {
	if m.late(call) || m.tooLarge(len(delta)) {
		return
	}
	m.answered += len(delta)
	m.text = append(m.text, delta...)
	m.splitter.feed(delta, m)
}

// modelReasoning takes more of a reasoning summary.
func (m *turnMachine) modelReasoning(call int, delta string) {
	if m.late(call) || delta == "" || m.tooLarge(len(delta)) {
		return
	}
	m.answered += len(delta)
	if m.open.IsZero() || m.openType != protocol.PartReasoning {
		m.closePart(false)
		m.applyInputs()
		m.emit(&protocol.ReasoningStarted{PartID: m.newPart(), Index: m.index(), Supersedes: m.supersede()})
	}
	m.emit(&protocol.ReasoningDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: delta})
}

// tooLarge ends a turn that would say more than a turn may, or whose log is too long.
func (m *turnMachine) tooLarge(more int) bool {
	if m.output+more <= maxTurnOutput && m.logged <= maxTurnLog {
		return false
	}
	m.effect(stopModel{})
	err := &protocol.TurnError{Code: "model_protocol", Detail: "The answer is larger than a turn may be."}
	if m.said() {
		m.finish("stop_short", protocol.StopError, err)
	} else {
		m.finish("fail", protocol.StopError, err)
	}
	return true
}

// modelNotes takes what says nothing to the reader: calls, usage, opaque state.
func (m *turnMachine) modelNotes(call int, chunk *ModelChunk) {
	if m.late(call) {
		return
	}
	m.add(chunk)
	switch chunk.Kind {
	case ChunkToolCall:
		size := len(chunk.ToolCall.Input)
		for _, pending := range m.pending {
			size += len(pending.Input)
		}
		if !m.tooLarge(size) {
			m.pending = append(m.pending, chunk.ToolCall)
		}
	case ChunkOpaque:
		m.opaque, m.owner = chunk.Opaque, chunk.Owner
	}
}

// contextTrimmed reports, once per turn, that older messages were not sent to the model. It precedes the first output in
// the same append, so that the first output does not wait for an append of its own.
func (m *turnMachine) contextTrimmed(call int) {
	if m.late(call) || m.step() > 1 || len(m.stepParts) > 0 || m.noticed(noticeTrimmed) {
		return
	}
	m.emit(&protocol.Notice{
		PartID: m.newPart(), Index: m.index(), Kind: noticeTrimmed,
		Text: "This conversation is longer than the model can read at once. Its oldest messages were left out of this answer.",
	})
}

const noticeTrimmed = "context_trimmed"

func (m *turnMachine) noticed(kind string) bool {
	return slices.ContainsFunc(m.fold.Parts(), func(part protocol.Part) bool { return part.Type == protocol.PartNotice && part.Kind == kind })
}

// stillWaiting tells the reader that a silent model is still being waited for; again says to look again later.
func (m *turnMachine) stillWaiting(call int) (again bool) {
	if m.late(call) || len(m.stepParts) > len(m.cut) {
		return false
	}
	part := m.activity
	if part.IsZero() {
		part = m.newPart()
	}
	m.emit(&protocol.ActivityProgress{PartID: part, Activity: "waiting_for_model", Label: "Waiting for the model"})
	return true
}

// modelStopped ends a step.
func (m *turnMachine) modelStopped(call int, stop ModelStop) {
	if m.state == protocol.TurnCancelling {
		m.modelGone(call)
		return
	}
	if m.late(call) {
		return
	}
	m.calling, m.final = false, true
	m.splitter.end(m)
	m.applyInputs() // the model has answered, if only that it has nothing to say
	m.closePart(stop == StopMaxTokens || stop == stopBudget)
	m.settleCut()
	switch {
	case stop == stopBudget, m.goesOn(stop) && m.overBudget():
		m.pending = nil
		m.finish("stop_short", protocol.StopBudgetReached, nil)
	case len(m.pending) > 0 && stop != StopRefusal && stop != StopMaxTokens:
		m.callTools()
	case stop == StopMaxTokens:
		m.finish("stop_short", protocol.StopMaxTokens, nil)
	case stop == StopRefusal:
		m.finish("complete", protocol.StopRefusal, nil)
	case m.waiting() && m.step() < maxModelSteps:
		m.endStep(false)
		m.startStep()
	default:
		m.finish("complete", protocol.StopEndTurn, nil)
	}
}

// goesOn says whether the turn would ask the model again.
func (m *turnMachine) goesOn(stop ModelStop) bool {
	return stop != StopRefusal && stop != StopMaxTokens && (len(m.pending) > 0 || m.waiting())
}

func (m *turnMachine) overBudget() bool {
	return m.totalUsage().OutputTokens >= budgetFactor*m.spec.Routing.Completion.MaxOutputTokens
}

// modelFailed ends a step without its end. A cut answer is continued, or asked again, once.
func (m *turnMachine) modelFailed(call int, failure *ModelError) {
	if m.state == protocol.TurnCancelling {
		m.modelGone(call)
		return
	}
	if m.late(call) {
		return
	}
	m.calling = false
	if failure.Code == codeBudgetReached {
		m.finish("stop_short", protocol.StopBudgetReached, nil)
		return
	}
	if failure.Cut && !m.retried && failure.Code != "model_protocol" {
		m.cutStep()
		m.retried = true
		m.startStep()
		return
	}
	err := &protocol.TurnError{Code: failure.Code, Detail: modelFailureDetail(failure.Code), Retryable: failure.Retryable}
	if m.said() {
		m.finish("stop_short", protocol.StopError, err)
		return
	}
	m.finish("fail", protocol.StopError, err)
}

func modelFailureDetail(code string) string {
	switch code {
	case "model_rate_limited":
		return "The model is overloaded. Try again in a moment."
	case "model_unauthorized":
		return "The service's access to the model was refused."
	case "model_rejected":
		return "The model refused the request."
	case "model_context_exceeded":
		return "The conversation is too long for the model."
	case "model_protocol":
		return "The model's answer could not be understood."
	}
	return "The model could not be reached, or stopped answering."
}

// modelGone hears that a cancelled call is over.
func (m *turnMachine) modelGone(call int) {
	if call == m.call && m.calling {
		m.calling = false
		m.finishWhenQuiet()
	}
}

// said tells whether the reader has any of the answer.
func (m *turnMachine) said() bool {
	for _, part := range m.fold.Parts() {
		if part.Type == protocol.PartText || part.Type == protocol.PartCode {
			return true
		}
	}
	return false
}

// startStep asks the model, with every input that is pending. A request that continues a cut answer belongs to the same
// step: what is pending waits for the next.
func (m *turnMachine) startStep() {
	m.call++
	m.calling = true
	if len(m.text) == 0 {
		for _, input := range m.inputs {
			if input.pending() {
				input.asked = m.call
			}
		}
	}
	m.pending, m.opaque, m.owner = nil, nil, ""
	m.nextCall()
	m.effect(callModel{call: m.call, step: m.step()})
}

// applyInputs goes with the first event of an answer: until then the inputs that its request contains are pending.
func (m *turnMachine) applyInputs() {
	for _, input := range m.inputs {
		if input.pending() && input.asked == m.call {
			m.emit(&protocol.SteeringApplied{
				SteeringID: input.id, PartID: m.newPart(), Index: m.index(), Text: input.text, Step: m.step(),
			})
		}
	}
}

// endStep records a finished step, so that a takeover does not ask for it again.
func (m *turnMachine) endStep(cut bool) {
	step := stepResult{
		Step: m.step(), Text: string(m.text), Calls: m.pending, Opaque: m.opaque, Owner: m.owner, Cut: cut, Usage: m.stepUsage.total(),
	}
	for i := range m.pending {
		step.Tools = append(step.Tools, protocol.DeriveToolID(m.spec.TurnID, m.calls+1+i))
	}
	m.record(protocol.RecordStep, fmt.Sprint(step.Step), step)
	m.text, m.retried, m.splitter = nil, false, newFenceSplitter()
	m.pending, m.opaque, m.owner, m.stepUsage = nil, nil, "", stepUsage{}
}

func (m *turnMachine) waiting() bool {
	return slices.ContainsFunc(m.inputs, (*steeringInput).pending)
}
