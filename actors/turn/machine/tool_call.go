package machine

import (
	"fmt"
	"slices"
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
	m.afterStarts()
}

// maxToolName limits the name of a tool that a model has made up, in characters. Real names are shorter.
const maxToolName = 100

// toolName returns the name that a model has given, as it is stored and shown.
func toolName(name string) string {
	clean := []rune(foreign.Clean(turnlog.Storable(foreign.Cut(name, 4*maxToolName))))
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
		Code: protocol.ToolCallOverLimit, Detail: "This answer has used all the tool calls that it may. Answer now with what you have, and say what is missing.",
	}
}

// runTools starts every call that has not started. When no call is running, it starts the next step.
func (m *Batch) runTools() {
	m.startPending()
	m.afterStarts()
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
	case m.shares(call):
	case m.repeats(call):
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
	m.afterStarts()
}

// toolChecks reports whether a call is checked before its approval is requested.
func (m *Machine) toolChecks() bool {
	return slices.ContainsFunc(m.toolCalls, func(c *toolCall) bool { return c.checking })
}

// afterStarts moves the turn to the state in which it waits for approvals, if any call needs one.
func (m *Batch) afterStarts() {
	if m.awaiting() && m.state == protocol.TurnRunning {
		m.move(protocol.TurnNeedsApproval, m.accepts)
	}
	m.continueTools()
}

// firstSource is the number of the first source that a tool finds. Those in requests have smaller ones: the files of messages, of
// which a request has at most 50, and then those of the project.
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
	text     string
	bytes    int  // of the whole output
	cut      bool // the rest of the output is not kept
	empty    bool // nothing was found
	repeated bool // it is that of an identical earlier call
	resultID string
	sources  []protocol.Source
}

func (m *Batch) completeTool(call *toolCall, trigger protocol.ToolTrigger, result toolOutput, failure *protocol.ToolError, took time.Duration) {
	state := call.next(trigger)
	m.emit(&protocol.ToolCompleted{
		PartID: call.part, ToolID: call.id, State: state, Outcome: outcome(state, result.empty), Output: result.text, Bytes: max(result.bytes, len(result.text)),
		Truncated: result.resultID != "" || result.cut, Repeated: result.repeated, ResultID: result.resultID, Sources: result.sources, Error: failure, DurationMS: took.Milliseconds(),
	})
	if state != protocol.ToolCancelled {
		for _, other := range m.toolCalls {
			if other.state == protocol.ToolPending && m.first(other) == call {
				m.answerAgain(other, call.completed)
			}
		}
	}
}

// outcome returns what the result of a call is that ends in a state; empty for a cancelled call.
func outcome(state protocol.ToolState, empty bool) protocol.ToolOutcome {
	switch {
	case state == protocol.ToolSucceeded && empty:
		return protocol.ResultEmpty
	case state == protocol.ToolSucceeded:
		return protocol.ResultOK
	case state == protocol.ToolFailed:
		return protocol.ResultFailed
	case state == protocol.ToolRejected:
		return protocol.ResultDenied
	case state == protocol.ToolOutcomeUnknown:
		return protocol.ResultUnknown
	}
	return ""
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

// toolRuns reports whether any tool call is running.
func (m *Machine) toolRuns() bool {
	return slices.ContainsFunc(m.toolCalls, func(c *toolCall) bool { return c.state == protocol.ToolRunning })
}

// ToolResult is what a tool call has returned.
type ToolResult struct {
	Output  string
	Whole   string // the whole output, if Output is only its beginning; empty: Output is whole
	Bytes   int    // of the whole output
	Empty   bool
	Sources []protocol.Source
	Events  []protocol.Payload // that are reported with the result
	// Unstarted means that the tool did not run, because the turn ended first: the call had no effect.
	Unstarted bool
}

// ToolProgressed reports the progress of a running call.
func (m *Batch) ToolProgressed(id protocol.ToolID, label string, progress *protocol.Progress) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	m.emit(&protocol.ToolProgress{PartID: call.part, ToolID: id, Label: label, Progress: progress})
}

// ToolEnded processes the result of a call.
func (m *Batch) ToolEnded(id protocol.ToolID, result ToolResult, failure *protocol.ToolError, took time.Duration) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	switch {
	case failure == nil:
		m.succeed(call, result, took)
	case failure.Code == protocol.ToolCallCancelled && (call.readOnly || result.Unstarted):
		m.completeTool(call, protocol.ToolCancel, toolOutput{}, failure, took)
	case failure.Code == protocol.ToolCallCancelled:
		m.completeTool(call, protocol.ToolLost, toolOutput{}, failure, took)
	case !call.readOnly && (failure.Code == protocol.ToolCallTimeout || failure.Code == protocol.ToolCallFailed): // the effect may have happened
		m.completeTool(call, protocol.ToolLost, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolOutcomeMissing, Detail: "The tool returned no result. It may or may not have taken effect.",
		}, took)
	case failure.Code == protocol.ToolCallDenied:
		m.completeTool(call, protocol.ToolDenied, toolOutput{}, failure, took)
	default:
		m.completeTool(call, protocol.ToolFails, toolOutput{}, failure, took)
	}
	if m.state == protocol.TurnCancelling {
		m.finishWhenIdle()
		return
	}
	m.continueTools()
}

// succeed stores the result of a call. The model can read on in one that was cut.
func (m *Batch) succeed(call *toolCall, result ToolResult, took time.Duration) {
	output := toolOutput{text: result.Output, bytes: result.Bytes, empty: result.Empty, sources: result.Sources}
	switch {
	case result.Whole == "":
	case m.stored+len(result.Whole) <= maxStored:
		output.resultID = resultID(call.number)
		output.bytes = len(result.Whole)
	default:
		output.cut = true
		output.text = foreign.Close(output.text) + fmt.Sprintf("\n[This is the beginning of a result of %d bytes. The rest is left out, because this answer keeps no more results.]", len(result.Whole))
	}
	for _, event := range result.Events {
		m.emit(event)
	}
	m.completeTool(call, protocol.ToolSucceeds, output, nil, took)
	if output.resultID != "" {
		m.record(turnlog.RecordResult, output.resultID, turnlog.ResultRecord{Text: result.Whole})
	}
}
