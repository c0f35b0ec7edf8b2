package machine

import (
	"time"

	"turnstone/protocol"
)

// callTools records the finished step and announces its tool calls, which run once this is durable.
func (m *Batch) callTools() {
	if m.rounds >= m.spec.Routing.Completion.MaxToolRounds || m.calls+len(m.pending) > maxToolCalls {
		m.pending = nil
		m.finish(protocol.TurnStopsShort, protocol.StopToolLimit, nil)
		return
	}
	pending := m.pending
	m.endStep(false)
	for _, call := range pending {
		id := protocol.DeriveToolID(m.spec.TurnID, m.calls+1)
		part := m.newPart()
		spec, known := m.tools[call.Name]
		kind, title := spec.Kind, spec.Title
		if !known { // the model named an unknown tool: the call fails, the turn continues
			kind, title = "compute", call.Name
		}
		m.emit(&protocol.ToolStarted{
			PartID: part, ToolID: id, Index: m.index(), ToolName: call.Name, Kind: kind, Title: title,
			Input: call.Input, State: protocol.ToolPending,
		})
	}
	m.runTools()
}

// runTools starts every call that has not started. When no call is running, it starts the next step.
func (m *Batch) runTools() {
	for _, call := range m.toolCalls {
		if call.state != protocol.ToolPending {
			continue
		}
		if _, known := m.tools[call.name]; !known {
			m.completeTool(call, protocol.ToolRefused, toolOutput{}, &protocol.ToolError{Code: protocol.ToolCallUnknown, Detail: "There is no tool with this name."}, 0)
			continue
		}
		m.moveTool(call, protocol.ToolRuns)
		m.effect(call.run())
	}
	if !m.toolsRunning() {
		m.startStep()
	}
}

// firstSource is the number of the first source that a tool finds. Those in requests have smaller ones: at most
// attachment.maxFiles of messages, and then those of the project.
const firstSource = 200

// run returns the effect that starts the call.
func (c *toolCall) run() RunTool {
	return RunTool{ID: c.id, Name: c.name, Input: c.input, FirstSource: firstSource + (c.number-1)*protocol.MaxToolSources}
}

// next returns the state that a trigger leads to. An illegal transition is a defect: next panics, so the actor stops
// before anything is stored.
func (c *toolCall) next(trigger protocol.ToolTrigger) protocol.ToolState {
	to, ok := protocol.NextToolState(c.state, trigger)
	if !ok {
		panic("turn: tool in " + string(c.state) + " cannot " + string(trigger))
	}
	return to
}

func (m *Batch) moveTool(call *toolCall, trigger protocol.ToolTrigger) {
	m.emit(&protocol.ToolStateChanged{PartID: call.part, ToolID: call.id, From: call.state, State: call.next(trigger)})
}

// toolOutput is what a call returns.
type toolOutput struct {
	text    string
	sources []protocol.Source
}

func (m *Batch) completeTool(call *toolCall, trigger protocol.ToolTrigger, result toolOutput, failure *protocol.ToolError, took time.Duration) {
	m.emit(&protocol.ToolCompleted{
		PartID: call.part, ToolID: call.id, State: call.next(trigger), Output: result.text, Sources: result.sources, Error: failure, DurationMS: took.Milliseconds(),
	})
}

// toolsRunning reports whether any tool call has not ended.
func (m *Machine) toolsRunning() bool {
	for _, call := range m.toolCalls {
		if !call.state.Terminal() {
			return true
		}
	}
	return false
}

// ToolEnded processes the result of a call.
func (m *Batch) ToolEnded(id protocol.ToolID, output string, sources []protocol.Source, failure *protocol.ToolError, took time.Duration) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	switch {
	case failure == nil:
		m.completeTool(call, protocol.ToolSucceeds, toolOutput{output, sources}, nil, took)
	case failure.Code == protocol.ToolCallCancelled && call.readOnly:
		m.completeTool(call, protocol.ToolCancel, toolOutput{}, failure, took)
	case failure.Code == protocol.ToolCallCancelled:
		m.completeTool(call, protocol.ToolLost, toolOutput{}, failure, took)
	case !call.readOnly && (failure.Code == protocol.ToolCallTimeout || failure.Code == protocol.ToolCallFailed): // the effect may have happened
		m.completeTool(call, protocol.ToolLost, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolOutcomeMissing, Detail: "The tool returned no result. It may or may not have taken effect.",
		}, took)
	default:
		m.completeTool(call, protocol.ToolFails, toolOutput{}, failure, took)
	}
	if m.state == protocol.TurnCancelling {
		m.finishWhenIdle()
		return
	}
	if !m.toolsRunning() {
		m.startStep()
	}
}
