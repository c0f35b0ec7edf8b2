package machine

import (
	"fmt"
	"slices"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// startStep calls the model with every pending input. A call that continues a cut-off answer belongs to the same step,
// so pending inputs wait for the next step.
func (m *Batch) startStep() {
	m.call++
	m.calling = true
	if len(m.text) == 0 {
		for _, input := range m.inputs {
			if input.pending() {
				input.requestedIn = m.call
			}
		}
	}
	m.pending, m.opaque, m.owner, m.web = nil, nil, "", nil
	m.usage.NextCall()
	m.effect(CallModel{})
}

// endStep records a finished step, so that a takeover does not repeat it.
func (m *Batch) endStep(cut bool) {
	step := stepResult{
		Step: m.step(), Text: string(m.text), Calls: m.pending, Opaque: m.opaque, Owner: m.owner, Cut: cut, Usage: m.usage.Total(),
	}
	for i := range m.pending {
		step.Tools = append(step.Tools, protocol.DeriveToolID(m.spec.TurnID, m.calls+1+i))
	}
	m.record(turnlog.RecordStep, fmt.Sprint(step.Step), step)
	m.text, m.retried, m.splitter = nil, false, newFenceSplitter()
	m.pending, m.opaque, m.owner, m.usage = nil, nil, "", llm.UsageCounter{}
}

// hasPendingInput reports whether any input is pending.
func (m *Machine) hasPendingInput() bool {
	return slices.ContainsFunc(m.inputs, (*steeringInput).pending)
}

// overBudget reports whether the output tokens of the turn have reached their limit; see budgetFactor.
func (m *Machine) overBudget() bool {
	return m.totalUsage().OutputTokens >= budgetFactor*m.spec.Routing.Completion.MaxOutputTokens
}
