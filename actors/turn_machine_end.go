package actors

import "turnstone/protocol"

// finishWhenQuiet ends a cancelled turn once neither model nor tools are out.
func (m *turnMachine) finishWhenQuiet() {
	if m.calling || m.toolsOut() {
		return
	}
	m.finishCancelled()
}

// graceOver ends a cancelled turn whatever is still out.
func (m *turnMachine) graceOver() {
	if !m.ended && m.state == protocol.TurnCancelling {
		m.finishCancelled()
	}
}

func (m *turnMachine) finishCancelled() { m.finish("cancelled", protocol.StopCancelled, nil) }

// deadline ends a turn that took too long.
func (m *turnMachine) deadline() {
	if m.ended || m.state == protocol.TurnCancelling {
		return
	}
	m.effect(stopModel{})
	m.effect(stopTools{})
	m.finish("stop_short", protocol.StopDeadline, nil)
}

// finish closes everything that is open and decides the last event. What it decides is stored in one transaction with
// all that ends with the turn.
func (m *turnMachine) finish(trigger string, reason protocol.StopReason, err *protocol.TurnError) {
	state, ok := protocol.NextTurnState(m.state, trigger)
	if !ok {
		panic("actors: turn in " + string(m.state) + " cannot " + trigger)
	}
	if m.calling { // a step that no record will tell of
		m.splitter.end(m)
	}
	m.closePart(state != protocol.TurnCompleted)
	m.settleCut()
	m.endTools()
	end := &ending{state: state, reason: reason, err: err, usage: m.totalUsage(), mended: m.mended}
	for _, request := range m.cancels {
		end.drop = end.drop || request.Scope == protocol.CancelTurnAndFollowUps
	}
	for i, input := range m.inputs {
		if !input.pending() {
			continue
		}
		id := protocol.DeriveFollowUpID(m.spec.TurnID, i+1)
		m.emit(&protocol.SteeringReturned{SteeringID: input.id, Reason: returnReason(state), FollowUpID: &id})
		end.parked = append(end.parked, protocol.ParkedInput{FollowUpID: id, Text: input.text})
	}
	m.calling = false
	m.emit(&protocol.TurnStateChanged{State: state, AcceptingSteering: false})
	m.emit(&protocol.TurnFinished{
		Status: state, StopReason: reason, MessageID: m.spec.AssistantMessageID, LastSequence: m.sequence + 1,
		Usage: end.usage, Error: err,
	})
	m.d.ending = end
}

func returnReason(state protocol.TurnState) string {
	switch state {
	case protocol.TurnCancelled:
		return "cancelled"
	case protocol.TurnFailed:
		return "failed"
	}
	return "limit"
}

// endTools closes calls that are still out: one that may have had an effect is unknown, any other is cancelled.
func (m *turnMachine) endTools() {
	for _, call := range m.toolCalls {
		switch {
		case call.state.Terminal():
		case call.state == protocol.ToolRunning && !call.readOnly:
			m.completeTool(call, "lose", "", &protocol.ToolError{
				Code: "outcome_unknown", Detail: "The turn ended while this ran. It may or may not have taken effect.",
			}, 0)
		default:
			m.completeTool(call, "cancel", "", &protocol.ToolError{Code: "cancelled", Detail: "The turn ended first."}, 0)
		}
	}
}

// messageStatus is the status of the assistant's message of a turn that ended so.
func messageStatus(state protocol.TurnState) protocol.MessageStatus {
	switch state {
	case protocol.TurnCompleted:
		return protocol.MessageComplete
	case protocol.TurnCancelled:
		return protocol.MessageCancelled
	case protocol.TurnFailed:
		return protocol.MessageFailed
	}
	return protocol.MessageIncomplete
}
