package actors

import "turnstone/protocol"

// How often a turn is claimed before no further attempt is made to run it.
const (
	unreadableAfter = 3  // claims of a turn whose log cannot be read
	brokenAfter     = 6  // claims of a turn whose actor breaks or cannot store its end; a machine that runs ends it before
	bareAfter       = 10 // then its end is stored without the parts of the answer
)

// mendTurnMachine reads what can be read of a turn, for nothing but its end. The state is the one of its row.
func mendTurnMachine(stored *protocol.StoredTurn, tools map[string]ToolSpec) *turnMachine {
	m := newTurnMachine(stored.Spec, tools, false)
	m.mended = true
	bySequence := map[int64][]protocol.TurnRecord{}
	for _, record := range stored.Records {
		bySequence[record.Sequence] = append(bySequence[record.Sequence], record)
	}
	for line := range protocol.FrameLines(stored.Frames) {
		if _, payload, err := protocol.DecodeEvent(line); err == nil && payload != nil {
			m.apply(payload)
		} else {
			m.sequence++
		}
		for _, record := range bySequence[m.sequence] {
			_ = m.applyRecord(record) // one that cannot be read is lost
		}
	}
	m.state, m.accepts = stored.Head.State, stored.Head.Accepts
	m.open, m.toolCalls = protocol.PartID{}, nil
	for _, part := range m.fold.Parts() {
		switch {
		case !part.Open:
		case part.Type != protocol.PartTool:
			m.cut = append(m.cut, part.PartID)
		case part.ToolID != nil:
			m.toolCalls = append(m.toolCalls, &toolCall{
				id: *part.ToolID, part: part.PartID, name: part.ToolName, state: part.State, readOnly: m.tools[part.ToolName].ReadOnly,
			})
		}
	}
	return m
}

// giveUp ends a turn that no actor can run. A cancel that was accepted holds.
func (m *turnMachine) giveUp() {
	switch m.state {
	case protocol.TurnCancelling:
		m.finishCancelled()
		return
	case protocol.TurnQueued:
		m.move("adopt", m.accepts)
	}
	m.finish("fail", protocol.StopError, &protocol.TurnError{
		Code: "unrecoverable", Detail: "The service could not go on with this answer.", Retryable: true,
	})
}

// forceCancel ends a turn for an operator without waiting for its model or its tools.
func (m *turnMachine) forceCancel(id protocol.SteeringID) {
	_, _ = m.cancel(&Command{Kind: CommandCancel, SteeringID: id, Scope: protocol.CancelTurn, By: protocol.CancelledByOperator}) // a turn that has ended stays as it is
	m.graceOver()
}
