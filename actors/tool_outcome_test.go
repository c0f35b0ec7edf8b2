package actors

import (
	"encoding/json"
	"testing"
	"time"

	"turnstone/protocol"
)

// Only a tool can say that it did nothing. What is told by the time that it took, or by how it broke, may have happened.
func TestWhetherACallThatBrokeTookEffectIsUnknown(t *testing.T) {
	for _, c := range []struct {
		tool, code string
		want       protocol.ToolState
	}{
		{"look", toolBroke, protocol.ToolFailed},
		{"look", toolTimedOut, protocol.ToolFailed},
		{"write", toolBroke, protocol.ToolOutcomeUnknown},
		{"write", toolTimedOut, protocol.ToolOutcomeUnknown},
		{"write", "no_such_page", protocol.ToolFailed},
	} {
		m := newTurnMachine(machineSpec(), machineTools, true)
		m.begin()
		m.proceed()
		m.modelNotes(m.call, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "x", Name: c.tool, Input: json.RawMessage(`{}`)}})
		m.modelStopped(m.call, StopToolCalls)
		call := m.toolCalls[0]
		m.toolEnded(call.id, "", &protocol.ToolError{Code: c.code}, time.Second)
		if call.state != c.want {
			t.Errorf("%s with %s ended %s, want %s", c.tool, c.code, call.state, c.want)
		}
	}
}
