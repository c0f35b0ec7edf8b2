package machine

import (
	"fmt"

	"turnstone/protocol"
)

// repeats answers a call from the ledger if identical calls had the same result before, and reports whether it did. The fifth
// of them ends the use of tools.
func (m *Batch) repeats(call *toolCall) bool {
	earlier := 0
	entry := m.ledger[ledgerKey(call.name, call.input)]
	if entry != nil {
		earlier = entry.calls
	}
	for _, other := range m.toolCalls {
		if other != call && other.state == protocol.ToolRunning && ledgerKey(other.name, other.input) == ledgerKey(call.name, call.input) {
			earlier++
		}
	}
	switch {
	case earlier+1 >= repeatsEnd:
		m.completeTool(call, protocol.ToolRefused, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolCallRepeated, Detail: fmt.Sprintf("This call was made %d times with the same result. Tools are not available any more: answer with what you have.", earlier),
		}, 0)
		return true
	case entry == nil || entry.calls < answeredAfter || m.tools[call.name].Consent != "":
		return false
	}
	m.answerAgain(call, entry.last)
	return true
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

// shares reports whether a call does not run because it gets the result of an identical one, now or when that ends.
func (m *Batch) shares(call *toolCall) bool {
	first := m.first(call)
	if first != nil && first.state.Terminal() {
		m.answerAgain(call, first.completed)
	}
	return first != nil
}
