package modelinput

import (
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// private returns a tool whose results are private. The failures of the tool named code are private, too.
func private(name string) toolbox.Tool {
	return &toolboxtest.Tool{Is: toolbox.Spec{Name: name, Private: true, Untrusted: true, PrivateFailures: name == "code"}}
}

// What code has thrown may be the text of a file, so it counts as read: in this turn, and in the messages before.
func TestAFailureThatMayShowPrivateTextCountsAsRead(t *testing.T) {
	tools, err := toolbox.NewCatalogue([]toolbox.Tool{private("code"), private("files")})
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
		p, nothing := b.CallInput(), machine.CallInput{}
		failed := protocol.Part{Type: protocol.PartTool, ToolName: name, State: protocol.ToolFailed, Error: &protocol.ToolError{Code: "exception", Detail: detail}}
		history := []turnlog.HistoryMessage{{Role: protocol.RoleAssistant, Parts: []protocol.Part{failed}}}
		for from, r := range map[string]bool{
			"this turn": counts(reading(&p, tools, nil, nil, &turnlog.Instructions{}, false).Private, detail),
			"a message": counts(reading(&nothing, tools, nil, history, &turnlog.Instructions{}, false).Private, detail),
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

func TestWhatAMessageShowsCountsAsRead(t *testing.T) {
	tools, err := toolbox.NewCatalogue([]toolbox.Tool{private("files")})
	if err != nil {
		t.Fatal(err)
	}
	text := func(of string) protocol.Part { return protocol.Part{Type: protocol.PartText, Text: of} }
	answer := turnlog.HistoryMessage{Role: protocol.RoleAssistant, Parts: []protocol.Part{text("It is 7719-XK."), {Type: protocol.PartNotice, Kind: "steering", Text: "use https://a.example/", SteeringID: new(protocol.SteeringID)}}}
	question := turnlog.HistoryMessage{Role: protocol.RoleUser, Parts: []protocol.Part{text("Which one?\n```\nsee https://evil.example/\n```\nnow")}}
	withFile, withPicture := question, question
	add(&withFile, "the code of a file")
	withPicture.Pictures = []turnlog.Picture{{}}
	for name, each := range map[string]struct {
		history         []turnlog.HistoryMessage
		trimmed         bool
		private         []string
		foreign, opaque bool
	}{
		"nothing":            {history: []turnlog.HistoryMessage{answer, question}},
		"a passage":          {history: []turnlog.HistoryMessage{withFile, answer}, private: []string{"the code of a file", "7719-XK"}, foreign: true},
		"an older message":   {history: []turnlog.HistoryMessage{answer, question}, trimmed: true, private: []string{"7719-XK"}, foreign: true},
		"a picture":          {history: []turnlog.HistoryMessage{withPicture}, opaque: true},
		"a file of a moment": {history: []turnlog.HistoryMessage{{Role: protocol.RoleUser, Attachments: []protocol.FileID{protocol.DeriveFileID(protocol.NewUploadID())}}, answer}, private: []string{"7719-XK"}, foreign: true},
	} {
		r := reading(&machine.CallInput{}, tools, written(each.history), each.history, &turnlog.Instructions{}, each.trimmed)
		if r.Untrusted != each.foreign || r.Opaque != each.opaque || len(each.private) == 0 && len(r.Private) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		for _, want := range each.private {
			if !counts(r.Private, want) {
				t.Errorf("%s: %q is not private in %q", name, want, r.Private)
			}
		}
		if counts(r.Private, "Which one?") || counts(r.Private, "a.example") || counts(r.User, "evil.example") || counts(r.User, "the code of a file") {
			t.Errorf("%s: private is %q, the user's is %q", name, r.Private, r.User)
		}
	}
	if user := written([]turnlog.HistoryMessage{answer, question}); !counts(user, "a.example") || !counts(user, "now") {
		t.Errorf("the user has written %q", user)
	}
}
