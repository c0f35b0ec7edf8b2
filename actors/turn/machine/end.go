package machine

import (
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// GraceOver ends a cancelled turn even if a model call or a tool is still running.
func (m *Batch) GraceOver() {
	if !m.ended && m.state == protocol.TurnCancelling {
		m.finishCancelled()
	}
}

func (m *Batch) finishCancelled() { m.finish(protocol.TurnCancelEnds, protocol.StopCancelled, nil) }

// Deadline ends a turn that took too long.
func (m *Batch) Deadline() {
	if _, legal := protocol.NextTurnState(m.state, protocol.TurnStopsShort); !legal {
		return
	}
	m.effect(StopModel{})
	m.effect(StopTools{})
	m.finish(protocol.TurnStopsShort, protocol.StopDeadline, nil)
}

// finish closes everything that is open and decides the last event. The Decision is stored in one transaction with the
// final message and the changes to the queue.
func (m *Batch) finish(trigger protocol.TurnTrigger, reason protocol.StopReason, err *protocol.TurnError) {
	state, ok := protocol.NextTurnState(m.state, trigger)
	if !ok {
		panic("turn: turn in " + string(m.state) + " cannot " + string(trigger))
	}
	if m.calling { // the unfinished step gets no record; its held text becomes part of the message
		m.splitter.end(m)
	}
	m.closePart(state != protocol.TurnCompleted)
	m.closeCutParts()
	m.endTools()
	end := &End{State: state, Reason: reason, Err: err, Usage: m.totalUsage(), Repaired: m.repaired}
	for _, request := range m.cancels {
		end.CancelQueue = end.CancelQueue || request.Scope == protocol.CancelTurnAndFollowUps
	}
	for i, input := range m.inputs {
		if !input.pending() {
			continue
		}
		id := protocol.DeriveFollowUpID(m.spec.TurnID, i+1)
		m.emit(&protocol.SteeringReturned{SteeringID: input.id, Reason: returnReason(state), FollowUpID: &id})
		end.Returned = append(end.Returned, turnlog.ReturnedInput{FollowUpID: id, Text: input.text})
	}
	m.calling = false
	m.emit(&protocol.TurnStateChanged{State: state, AcceptingSteering: false})
	m.emit(&protocol.TurnFinished{
		Status: state, StopReason: reason, MessageID: m.spec.AssistantMessageID, LastSequence: m.sequence + 1,
		Usage: end.Usage, Error: err,
	})
	m.End = end
}

func returnReason(state protocol.TurnState) protocol.ReturnReason {
	switch state {
	case protocol.TurnCancelled:
		return protocol.ReturnCancelled
	case protocol.TurnFailed:
		return protocol.ReturnFailed
	}
	return protocol.ReturnLimit
}

// endTools closes the tool calls that have not ended: a call that may have had an effect gets an unknown outcome, any
// other is cancelled.
func (m *Batch) endTools() {
	for _, a := range m.approvals {
		if call := m.tool(a.ToolID); a.pending() && call != nil {
			m.resolve(a, call, protocol.DecisionCancelled, protocol.DecidedByPolicy)
		}
	}
	for _, call := range m.toolCalls {
		switch {
		case call.state.Terminal():
		case call.state == protocol.ToolRunning && !call.readOnly:
			m.completeTool(call, protocol.ToolLost, toolOutput{}, &protocol.ToolError{
				Code: protocol.ToolOutcomeMissing, Detail: "The answer ended while this was running. It may or may not have taken effect.",
			}, 0)
		default:
			m.completeTool(call, protocol.ToolCancel, toolOutput{}, &protocol.ToolError{Code: protocol.ToolCallCancelled, Detail: "The answer ended first."}, 0)
		}
	}
}
