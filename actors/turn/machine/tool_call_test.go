package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

func TestTheNameOfAToolThatTheModelMadeUpIsLimitedAndCleaned(t *testing.T) {
	for name, want := range map[string]string{
		"no\u202e\x00thing": "no\ufffdthing", strings.Repeat("潮", 2000): strings.Repeat("潮", maxToolName), "look": "look",
	} {
		m := begun(machineSpec())
		m.take()
		ask(m, name, `{}`)
		for _, event := range m.take().Events {
			if started, is := event.(*protocol.ToolStarted); is && (started.ToolName != want || utf8.RuneCountInString(started.Title) > maxToolName || name != "look" && started.Title != want) {
				t.Errorf("%.40q became %.200q with the title %.200q", name, started.ToolName, started.Title)
			}
		}
		if got := m.steps[0].Calls[0].Name; got != want {
			t.Errorf("%.40q is stored as %.200q", name, got)
		}
	}
}
