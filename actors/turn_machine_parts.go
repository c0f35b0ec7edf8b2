package actors

import "turnstone/protocol"

// index is the place of the next part in the message: after what is there, less what it supersedes.
func (m *turnMachine) index() int { return m.fold.Count() - len(m.cut) }

// supersede names the parts of a cut attempt, for the first part of the next one.
func (m *turnMachine) supersede() []protocol.PartID {
	cut := m.cut
	m.cut = nil
	return cut
}

// lastEvent is the newest event that is decided and not yet handed out: a delta that follows a delta of the same batch
// becomes part of it.
func (m *turnMachine) lastEvent() protocol.Payload {
	if n := len(m.d.events); n > 0 {
		return m.d.events[n-1]
	}
	return nil
}

// writeText, openCode, writeCode and closeCode are what the fence splitter finds in the model's text.

func (m *turnMachine) writeText(text string) {
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

func (m *turnMachine) openCode(language string) {
	m.closePart(false)
	m.applyInputs()
	m.emit(&protocol.CodeStarted{PartID: m.newPart(), Index: m.index(), Language: language, Supersedes: m.supersede()})
}

func (m *turnMachine) writeCode(code string) {
	if last, ok := m.lastEvent().(*protocol.CodeDelta); ok && last.PartID == m.open {
		m.fold.Apply(&protocol.CodeDelta{PartID: m.open, Delta: code})
		m.output += len(code)
		last.Delta += code
		return
	}
	m.emit(&protocol.CodeDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: code})
}

func (m *turnMachine) closeCode() { m.closePart(false) }

// closePart ends the open part, if there is one.
func (m *turnMachine) closePart(truncated bool) {
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
		m.emit(&protocol.AnswerCompleted{PartID: id, Text: text, Citations: []protocol.Citation{}, Truncated: truncated})
	}
}

// cutStep prepares to go on after a cut in the middle of a step: from the prefix, where the model can and there is one;
// else the step is asked again, and its first part will supersede what the cut attempt left.
func (m *turnMachine) cutStep() {
	m.splitter = newFenceSplitter()
	m.text = m.prefix()
	if m.continues && len(m.text) > 0 {
		if m.openType == protocol.PartReasoning {
			m.closePart(true)
		}
		m.splitter.resume(m.text, !m.open.IsZero() && m.openType == protocol.PartCode)
		return
	}
	m.text = nil
	m.cut = m.stepParts
	m.open = protocol.PartID{}
}

// settleCut closes what a cut attempt left when nothing superseded it.
func (m *turnMachine) settleCut() {
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

// prefix is the model's text of the step under way, as far as it is durable.
func (m *turnMachine) prefix() []byte {
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

// appendPartText writes a part as the model wrote it.
func appendPartText(text []byte, part protocol.Part) []byte {
	switch part.Type {
	case protocol.PartText:
		return append(text, part.Text...)
	case protocol.PartCode:
		text = append(text, "```"...)
		text = append(text, part.Language...)
		text = append(text, '\n')
		text = append(text, part.Code...)
		if part.Open {
			return text
		}
		if n := len(text); text[n-1] != '\n' {
			text = append(text, '\n')
		}
		return append(text, "```\n"...)
	}
	return text
}
