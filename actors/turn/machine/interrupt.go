package machine

import (
	"slices"

	"turnstone/protocol"
)

// interrupt cuts off the model's answer and calls the model again with the pending inputs. The text so far stays in the
// message, marked as truncated.
func (m *Batch) interrupt() {
	m.calling = false
	m.effect(StopModel{})
	m.splitter.end(m)
	m.splitter = newFenceSplitter()
	m.closePart(true)
	m.closeCutParts()
	if len(m.text) > 0 {
		m.pending = nil // tool calls that were not announced yet are dropped
		m.endStep(true)
	}
	m.advance()
}

// untilSentence calls write with delta. If an input waits for the end of the sentence and delta contains it, write gets only
// that much, and the answer is interrupted there.
func (m *Batch) untilSentence(delta string, write func(string)) {
	for m.waitsForSentence() {
		end := m.sentence.find(delta, m.inCode())
		if end < 0 {
			break
		}
		write(delta[:end])
		if !m.inCode() || m.fold.Len(m.open) > 0 {
			m.interrupt()
			return
		}
		m.sentence, delta = sentenceScanner{}, delta[end:] // the line was the fence of a code block, which is still empty
	}
	write(delta)
}

// inCode reports whether the open part is code.
func (m *Machine) inCode() bool { return m.openType == protocol.PartCode && !m.open.IsZero() }

// waitsForSentence reports whether the answer is interrupted at the end of its sentence, to apply an input that the current
// request does not contain. Tool calls are not dropped: the input is applied after their results.
func (m *Machine) waitsForSentence() bool {
	return m.hasLaterInput() && len(m.pending) == 0 && m.step() < maxModelSteps && !m.overBudget()
}

// hasLaterInput reports whether an input is pending that the current model request does not contain.
func (m *Machine) hasLaterInput() bool {
	return slices.ContainsFunc(m.inputs, func(input *steeringInput) bool { return input.pending() && input.requestedIn != m.call })
}
