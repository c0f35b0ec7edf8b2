package machine

import (
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Repair restores the readable part of a turn, only to end it. The state is the one of the turn's row.
func Repair(stored *turnlog.Stored, tools map[string]Tool) *Machine {
	m := New(stored.Spec, tools, false)
	m.repaired = true
	bySequence := map[int64][]turnlog.Record{}
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
			_ = m.applyRecord(record) // an unreadable record is skipped
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

// GiveUp ends a turn that no actor can run: as cancelled if a cancel was accepted, otherwise as failed. withoutParts
// leaves the parts of the answer out of the stored message.
func (m *Batch) GiveUp(withoutParts bool) {
	if m.state.Terminal() {
		return
	}
	switch m.state {
	case protocol.TurnCancelling:
		m.finishCancelled()
	case protocol.TurnQueued:
		m.move(protocol.TurnAdopted, m.accepts)
		fallthrough
	default:
		m.finish(protocol.TurnFails, protocol.StopError, &protocol.TurnError{
			Code: protocol.TurnUnrecoverable, Detail: "The service could not continue this answer.", Retryable: true,
		})
	}
	m.End.WithoutParts = withoutParts
}

// ForceCancel ends a turn for an operator without waiting for its model or its tools.
func (m *Batch) ForceCancel(id protocol.SteeringID) {
	_, _ = m.cancel(&Command{Kind: CommandCancel, SteeringID: id, Scope: protocol.CancelTurn, By: protocol.CancelledByOperator}) // a turn that has ended stays as it is
	m.GraceOver()
}
