package machine

import (
	"fmt"

	"turnstone/protocol"
)

// answerRepeated answers a call from the ledger if identical calls had the same result before, and reports whether it did. The
// fifth of them is refused, and ends the use of tools.
func (m *Batch) answerRepeated(call *toolCall) bool {
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
			Code: protocol.ToolCallRepeated, Detail: fmt.Sprintf("This call was made %d times with the same result. Tools are no longer available: answer with what you have.", earlier),
		}, 0)
		return true
	case entry == nil || entry.calls < answeredAfter || m.tools[call.name].Consent != "":
		return false
	}
	m.answerAgain(call, entry.last)
	return true
}

// answerShared reports whether a call gets the result of an identical call of the step, and so does not run. If that call has
// ended, answerShared completes the call with its result; otherwise completeTool does it later.
func (m *Batch) answerShared(call *toolCall) bool {
	first := m.first(call)
	if first != nil && first.state.Terminal() {
		m.answerAgain(call, first.completed)
	}
	return first != nil
}
