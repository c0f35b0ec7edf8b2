package machine

import (
	"time"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// callTools records the finished step and announces its tool calls, which run once this is durable.
func (m *Batch) callTools() {
	pending, calls := m.pending, m.calls
	m.endStep(false)
	first := len(m.toolCalls)
	plans := make([]policy.Plan, len(pending))
	for i, call := range pending {
		plans[i] = m.plan(call.Name, call.Input)
		if refused := m.limitRefusal(calls + i); refused != nil {
			plans[i].Failure = refused
		}
		id := protocol.DeriveToolID(m.spec.TurnID, m.calls+1)
		part := m.newPart()
		spec, known := m.tools[call.Name]
		kind, title := spec.Kind, spec.Title
		if !known { // the model named an unknown tool: the call fails, the turn continues
			kind, title = "compute", call.Name
		}
		m.emit(&protocol.ToolStarted{
			PartID: part, ToolID: id, Index: m.index(), ToolName: call.Name, Kind: kind, Title: title,
			Input: plans[i].Input, State: protocol.ToolPending,
		})
	}
	for i := range plans {
		if call := m.toolCalls[first+i]; call.state == protocol.ToolPending { // not answered by an identical one
			m.startTool(call, &plans[i])
		}
	}
}

// maxToolName limits the name of a tool that a model has made up, in characters. Real names are shorter.
const maxToolName = 100

// toolName returns the name that a model has given, as it is stored and shown.
func toolName(name string) string {
	clean := []rune(foreign.Clean(foreign.Storable(foreign.Cut(name, 4*maxToolName))))
	return string(clean[:min(len(clean), maxToolName)])
}

// maxToolTime is how long the tool calls of a turn may take together.
const maxToolTime = 10 * time.Minute

// limitRefusal returns why a call may not run after a number of others: the turn has reached a limit of its tools. nil: it has not.
func (m *Machine) limitRefusal(calls int) *protocol.ToolError {
	if m.rounds < m.spec.Routing.Completion.MaxToolRounds && calls < maxToolCalls && m.toolTime < maxToolTime {
		return nil
	}
	return &protocol.ToolError{
		Code: protocol.ToolCallOverLimit, Detail: "This answer has used all the tool calls it is allowed. Answer now with what you have, and say what is missing.",
	}
}

// startPending starts every call that has not started, except those that wait for an identical one.
func (m *Batch) startPending() {
	for _, call := range m.toolCalls {
		if call.state == protocol.ToolPending {
			plan := m.plan(call.name, call.input)
			m.startTool(call, &plan)
		}
	}
}

// startTool runs a call, asks for its approval (after a check, if the tool has one), or completes it without running it.
func (m *Batch) startTool(call *toolCall, plan *policy.Plan) {
	switch {
	case call.checking:
	case plan.Failure != nil:
		m.completeTool(call, protocol.ToolRefused, toolOutput{}, plan.Failure, 0)
	case m.answerShared(call):
	case m.answerRepeated(call):
	case call.name == policy.ReadMore:
		m.readMore(call)
	case plan.Ask != nil && m.tools[call.name].Checks && !call.checked:
		call.checking = true
		m.effect(CheckTool{ID: call.id, Name: call.name, Input: plan.Input})
	case plan.Ask != nil:
		m.ask(call, plan)
	default:
		m.moveTool(call, protocol.ToolRuns)
		if plan.Granted {
			m.record(turnlog.RecordUse, call.id.String(), turnlog.UseRecord{})
		}
		m.effect(call.run())
	}
}

// ToolChecked processes the result of a CheckTool: the call fails, or the user is asked.
func (m *Batch) ToolChecked(id protocol.ToolID, failure *protocol.ToolError) {
	call := m.tool(id)
	if m.ended || m.state == protocol.TurnCancelling || call == nil || !call.checking {
		return
	}
	call.checking, call.checked = false, true
	plan := m.plan(call.name, call.input)
	if failure != nil {
		plan.Failure = failure
	}
	m.startTool(call, &plan)
	m.advance()
}
