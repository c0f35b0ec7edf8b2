package machine

import (
	"encoding/json"
	"fmt"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

type toolResult struct {
	output string
	failed bool
	edited json.RawMessage // the input that the user approved instead

	sources  []protocol.Source
	repeated bool   // it is that of an identical earlier call
	resultID string // output is the beginning of the whole one; empty: it is whole
	size     int    // of the whole output
}

// toolResultOf returns the result of a tool call in the form that the model gets.
func toolResultOf(p *protocol.ToolCompleted) toolResult {
	if p.Error != nil {
		return toolResult{output: string(p.Error.Code) + ": " + p.Error.Detail, failed: true, repeated: p.Repeated}
	}
	return toolResult{output: p.Output, sources: p.Sources, repeated: p.Repeated, resultID: p.ResultID, size: p.Bytes}
}

// text returns the result in the form that the model gets.
func (r toolResult) text() string {
	text := r.output
	if len(r.edited) > 0 {
		text = "[The user changed the input of this call to " + string(r.edited) + "]\n" + text
	}
	if r.resultID != "" {
		text = foreign.Close(text) + moreNote(r.resultID, len(r.output), r.size)
	}
	if r.repeated {
		text += repeatedNote
	}
	return text
}

// moreNote is the note to the model that says how to get the rest of a result.
func moreNote(id string, from, size int) string {
	return fmt.Sprintf("\n[This is the beginning of a result of %d bytes. To read on, call %s with {\"result_id\": %q, \"from\": %d}.]", size, policy.ReadMore, id, from)
}

// repeatedNote follows the result of a call that was answered from the ledger, in the request to the model.
const repeatedNote = "\n[The call was not made again: this is what the same call gave before.]"
