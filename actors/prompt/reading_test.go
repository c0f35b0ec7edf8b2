package prompt

import (
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// private is a tool whose results are private. Its failures are if it has the name code.
type private struct{ named }

func (p private) Spec() toolbox.Spec {
	return toolbox.Spec{Name: string(p.named), Effect: protocol.EffectRead, Private: true, Untrusted: true, PrivateFailures: p.named == "code"}
}

// What code has thrown may be the text of a file, so it counts as read: in this turn, and in the messages before.
func TestAFailureThatMayShowPrivateTextCountsAsRead(t *testing.T) {
	tools, err := toolbox.NewCatalogue([]toolbox.Tool{private{"code"}, private{"files"}})
	if err != nil {
		t.Fatal(err)
	}
	const detail = "The code threw 7719-XK"
	for name, want := range map[string]bool{"code": true, "files": false, "removed": false} {
		spec := &turnlog.Spec{AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ParentMessageID: new(protocol.MessageID), Input: "and now?"}
		spec.Routing.Completion = protocol.Completion{MaxOutputTokens: 200, MaxToolRounds: 8}
		b := machine.New(spec, map[string]machine.Tool{name: {Kind: "compute", ReadOnly: true}}, true).NewBatch()
		b.Begin()
		b.Proceed()
		b.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "1", Name: name, Input: []byte(`{}`)}})
		b.ModelStopped(1, llm.StopToolCalls)
		for _, effect := range b.Effects {
			if call, is := effect.(machine.RunTool); is {
				b.ToolEnded(call.ID, machine.ToolResult{}, &protocol.ToolError{Code: "exception", Detail: detail}, time.Second)
			}
		}
		p, nothing := b.Prompt(), machine.Prompt{}
		failed := protocol.Part{Type: protocol.PartTool, ToolName: name, State: protocol.ToolFailed, Error: &protocol.ToolError{Code: "exception", Detail: detail}}
		history := []turnlog.HistoryMessage{{Role: protocol.RoleAssistant, Parts: []protocol.Part{failed}}}
		for from, r := range map[string]bool{
			"this turn": counts(reading(&p, tools, nil, nil, "").Private, detail),
			"a message": counts(reading(&nothing, tools, nil, history, "").Private, detail),
		} {
			if r != want {
				t.Errorf("a failure of %s in %s counts as private: %t", name, from, r)
			}
		}
	}
}

func counts(texts []string, detail string) bool {
	return strings.Contains(strings.Join(texts, "\n"), detail)
}
