package actors

import (
	"time"

	"turnstone/protocol"
)

// callTools records the finished step and intends its calls; they run once that is durable.
func (m *turnMachine) callTools() {
	if m.rounds >= m.spec.Routing.Completion.MaxToolRounds || m.calls+len(m.pending) > maxToolCalls {
		m.pending = nil
		m.finish("stop_short", protocol.StopToolLimit, nil)
		return
	}
	pending := m.pending
	m.endStep(false)
	for _, call := range pending {
		id := protocol.DeriveToolID(m.spec.TurnID, m.calls+1)
		part := m.newPart()
		spec, known := m.tools[call.Name]
		kind, title := spec.Kind, spec.Title
		if !known { // the model invented it: the call fails, the turn goes on
			kind, title = "compute", call.Name
		}
		m.emit(&protocol.ToolStarted{
			PartID: part, ToolID: id, Index: m.index(), ToolName: call.Name, Kind: kind, Title: title,
			Input: call.Input, State: protocol.ToolPending,
		})
	}
	m.runTools()
}

// runTools starts every call that has not started, and the next step when none is left.
func (m *turnMachine) runTools() {
	for _, call := range m.toolCalls {
		if call.state != protocol.ToolPending {
			continue
		}
		if _, known := m.tools[call.name]; !known {
			m.completeTool(call, "refuse", "", &protocol.ToolError{Code: "unknown_tool", Detail: "There is no tool of this name."}, 0)
			continue
		}
		m.moveTool(call, "run")
		m.effect(runTool{call})
	}
	if !m.toolsOut() {
		m.startStep()
	}
}

// next looks a call's move up. An illegal one is a defect: the actor stops before anything is stored.
func (c *toolCall) next(trigger string) protocol.ToolState {
	to, ok := protocol.NextToolState(c.state, trigger)
	if !ok {
		panic("actors: tool in " + string(c.state) + " cannot " + trigger)
	}
	return to
}

func (m *turnMachine) moveTool(call *toolCall, trigger string) {
	m.emit(&protocol.ToolStateChanged{PartID: call.part, ToolID: call.id, From: call.state, State: call.next(trigger)})
}

func (m *turnMachine) completeTool(call *toolCall, trigger, output string, failure *protocol.ToolError, took time.Duration) {
	m.emit(&protocol.ToolCompleted{
		PartID: call.part, ToolID: call.id, State: call.next(trigger), Output: output, Error: failure, DurationMS: took.Milliseconds(),
	})
}

func (m *turnMachine) toolsOut() bool {
	for _, call := range m.toolCalls {
		if !call.state.Terminal() {
			return true
		}
	}
	return false
}

// toolEnded takes the result of a call.
func (m *turnMachine) toolEnded(id protocol.ToolID, output string, failure *protocol.ToolError, took time.Duration) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	switch {
	case failure == nil:
		m.completeTool(call, "succeed", output, nil, took)
	case failure.Code == "cancelled" && call.readOnly:
		m.completeTool(call, "cancel", "", failure, took)
	case failure.Code == "cancelled":
		m.completeTool(call, "lose", "", failure, took)
	case !call.readOnly && (failure.Code == toolTimedOut || failure.Code == toolBroke): // it may have happened
		m.completeTool(call, "lose", "", &protocol.ToolError{
			Code: "outcome_unknown", Detail: "No result came. It may or may not have taken effect.",
		}, took)
	default:
		m.completeTool(call, "fail", "", failure, took)
	}
	if m.state == protocol.TurnCancelling {
		m.finishWhenQuiet()
		return
	}
	if !m.toolsOut() {
		m.startStep()
	}
}
