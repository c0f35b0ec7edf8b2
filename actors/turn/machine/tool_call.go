package machine

import (
	"slices"
	"time"

	"turnstone/protocol"
)

// run returns the effect that starts the call.
func (c *toolCall) run() RunTool {
	return RunTool{ID: c.id, Name: c.name, Input: c.input, FirstSource: protocol.FirstToolSource + (c.number-1)*protocol.MaxToolSources}
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

// completeTool records the end of a call, and of the calls that get its result. advance decides how the turn continues.
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

// answerAgain completes a call, which does not run, with the result of an identical one.
func (m *Batch) answerAgain(call *toolCall, last *protocol.ToolCompleted) {
	if last.Error != nil {
		failure := *last.Error
		m.emit(&protocol.ToolCompleted{PartID: call.part, ToolID: call.id, State: call.next(protocol.ToolRefused), Outcome: protocol.ResultFailed, Error: &failure, Repeated: true})
		return
	}
	m.moveTool(call, protocol.ToolRuns)
	m.completeTool(call, protocol.ToolSucceeds, toolOutput{
		text: last.Output, bytes: last.Bytes, empty: last.Outcome == protocol.ResultEmpty, repeated: true, resultID: last.ResultID,
	}, nil, 0)
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

// toolsOpen reports whether any tool call has not ended.
func (m *Machine) toolsOpen() bool {
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

// toolChecks reports whether a call is checked before its approval is requested.
func (m *Machine) toolChecks() bool {
	return slices.ContainsFunc(m.toolCalls, func(c *toolCall) bool { return c.checking })
}
