package machine

import (
	"encoding/json"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// Only an error of the tool itself proves that the call had no effect. After a timeout or a panic the effect may have
// happened.
func TestTheOutcomeOfAFailedCallWithEffectsIsUnknown(t *testing.T) {
	for _, c := range []struct {
		tool string
		code protocol.ToolErrorCode
		want protocol.ToolState
	}{
		{"look", protocol.ToolCallFailed, protocol.ToolFailed},
		{"look", protocol.ToolCallTimeout, protocol.ToolFailed},
		{"write", protocol.ToolCallFailed, protocol.ToolOutcomeUnknown},
		{"write", protocol.ToolCallTimeout, protocol.ToolOutcomeUnknown},
		{"write", "no_such_page", protocol.ToolFailed},
		{"put", protocol.ToolCallTimeout, protocol.ToolOutcomeUnknown},
	} {
		m := newDriver(machineSpec(), machineTools, true)
		m.Begin()
		m.Proceed()
		m.ModelChunk(m.call, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: c.tool, Input: json.RawMessage(`{}`)}})
		m.ModelStopped(m.call, llm.StopToolCalls)
		call := m.toolCalls[0]
		m.ToolEnded(call.id, ToolResult{}, &protocol.ToolError{Code: c.code}, time.Second)
		if call.state != c.want {
			t.Errorf("%s with %s ended %s, want %s", c.tool, c.code, call.state, c.want)
		}
	}
}
