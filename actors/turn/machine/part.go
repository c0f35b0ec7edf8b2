package machine

import "turnstone/protocol"

// index returns the position of the next part in the message: the number of current parts without those that the next
// part supersedes.
func (m *Machine) index() int { return m.fold.Count() - len(m.cut) }

// supersede returns the parts of a cut-off attempt, for the first part of the next attempt, and clears them.
func (m *Machine) supersede() []protocol.PartID {
	cut := m.cut
	m.cut = nil
	return cut
}

// lastEvent returns the last event of the current decision; nil when there is none. A delta that follows a delta of the
// same part is merged into it.
func (m *Batch) lastEvent() protocol.Payload {
	if n := len(m.Events); n > 0 {
		return m.Events[n-1]
	}
	return nil
}

func (m *Batch) writeText(text string) {
	if m.open.IsZero() || m.openType != protocol.PartText {
		m.closePart(false)
		m.applyInputs()
		m.emit(&protocol.AnswerStarted{PartID: m.newPart(), Index: m.index(), Format: "markdown", Supersedes: m.supersede()})
	}
	if last, ok := m.lastEvent().(*protocol.AnswerDelta); ok && last.PartID == m.open {
		m.fold.Apply(&protocol.AnswerDelta{PartID: m.open, Delta: text})
		m.output += len(text)
		last.Delta += text
		return
	}
	m.emit(&protocol.AnswerDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: text})
}

func (m *Batch) openCode(language string) {
	m.closePart(false)
	m.applyInputs()
	m.emit(&protocol.CodeStarted{PartID: m.newPart(), Index: m.index(), Language: language, Supersedes: m.supersede()})
}

func (m *Batch) writeCode(code string) {
	if last, ok := m.lastEvent().(*protocol.CodeDelta); ok && last.PartID == m.open {
		m.fold.Apply(&protocol.CodeDelta{PartID: m.open, Delta: code})
		m.output += len(code)
		last.Delta += code
		return
	}
	m.emit(&protocol.CodeDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: code})
}

func (m *Batch) closeCode() { m.closePart(false) }

// closePart ends the open part, if there is one.
func (m *Batch) closePart(truncated bool) {
	if m.open.IsZero() {
		return
	}
	id, text := m.open, m.fold.Text(m.open)
	switch m.openType {
	case protocol.PartCode:
		m.emit(&protocol.CodeCompleted{PartID: id, Code: text, Truncated: truncated})
	case protocol.PartReasoning:
		m.emit(&protocol.ReasoningCompleted{PartID: id, Text: text, Truncated: truncated})
	default:
		m.emit(&protocol.AnswerCompleted{PartID: id, Text: text, Citations: m.withWeb(m.cite(text)), Truncated: truncated})
	}
}

// cutStep prepares to continue a step whose answer was cut off. If the model can continue from a prefix and there is
// one, the step continues from the prefix. Otherwise the step is repeated, and its first part supersedes the parts of
// the cut-off attempt.
func (m *Batch) cutStep() {
	m.splitter = newFenceSplitter()
	m.text = m.prefix()
	if m.continues && len(m.text) > 0 {
		if m.openType == protocol.PartReasoning {
			m.closePart(true)
		}
		opener := ""
		if !m.open.IsZero() && m.openType == protocol.PartCode {
			opener = protocol.CodeFence(m.fold.Text(m.open))
		}
		m.splitter.resume(m.text, opener)
		m.sentence = newSentenceScanner(m.text)
		return
	}
	m.text, m.web = nil, nil
	m.cut = m.stepParts
	m.open = protocol.PartID{}
}

// closeCutParts closes the open parts of a cut-off attempt that no later part has superseded.
func (m *Batch) closeCutParts() {
	for _, id := range m.cut {
		for _, part := range m.fold.Parts() {
			if part.PartID == id && part.Open {
				m.open, m.openType = id, part.Type
				m.closePart(true)
			}
		}
	}
	m.cut = nil
}

// prefix returns the model's text of the current step, as far as it is durable.
func (m *Machine) prefix() []byte {
	inStep := make(map[protocol.PartID]bool, len(m.stepParts))
	for _, id := range m.stepParts {
		inStep[id] = true
	}
	var text []byte
	for _, part := range m.fold.Parts() {
		if inStep[part.PartID] {
			text = appendPartText(text, part)
		}
	}
	return text
}

// appendPartText appends a part in the form in which the model wrote it.
func appendPartText(text []byte, part protocol.Part) []byte {
	switch part.Type {
	case protocol.PartText:
		return append(text, part.Text...)
	case protocol.PartCode:
		fence := protocol.CodeFence(part.Code)
		text = append(text, fence...)
		text = append(text, part.Language...)
		text = append(text, '\n')
		text = append(text, part.Code...)
		if part.Open {
			return text
		}
		if n := len(text); text[n-1] != '\n' {
			text = append(text, '\n')
		}
		text = append(text, fence...)
		return append(text, '\n')
	}
	return text
}

// applyInputs marks the inputs of the current request as applied. It runs before the first event of the answer; until
// then these inputs are pending.
func (m *Batch) applyInputs() {
	for _, input := range m.inputs {
		if input.pending() && input.requestedIn == m.call {
			m.emit(&protocol.SteeringApplied{
				SteeringID: input.id, PartID: m.newPart(), Index: m.index(), Text: input.text, Step: m.step(),
			})
		}
	}
}
