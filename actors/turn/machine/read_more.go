package machine

import (
	"encoding/json"
	"fmt"
	"strconv"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

const (
	maxStored = 4 << 20  // bytes of results that were cut, of one turn
	maxPiece  = 32 << 10 // bytes of a result that one call of policy.ReadMore returns
)

func resultID(number int) string { return "r" + strconv.Itoa(number) }

// readMore answers a call of policy.ReadMore. The call runs if the consent to the source of the result has to be checked.
func (m *Batch) readMore(call *toolCall) {
	id, output, refusal := m.piece(call)
	if refusal != "" {
		m.completeTool(call, protocol.ToolRefused, toolOutput{}, &protocol.ToolError{Code: protocol.ToolCallInvalid, Detail: refusal}, 0)
		return
	}
	m.moveTool(call, protocol.ToolRuns)
	if m.cutConsents[id] != "" {
		m.effect(m.runReadMore(call))
		return
	}
	m.completeTool(call, protocol.ToolSucceeds, toolOutput{text: output}, nil, 0)
}

// runReadMore returns the effect that runs a call of policy.ReadMore.
func (m *Machine) runReadMore(call *toolCall) RunTool {
	run := call.run()
	id, output, _ := m.piece(call)
	run.Consent, run.Output = m.cutConsents[id], output
	return run
}

// piece returns the part of a result for which a call of policy.ReadMore asks: {"result_id", "from"}; or why there is none.
func (m *Machine) piece(call *toolCall) (id, output, refusal string) {
	var in struct {
		ResultID string `json:"result_id"`
		From     int    `json:"from"`
	}
	if err := json.Unmarshal(call.input, &in); err != nil {
		return "", "", "The input is not an object with result_id and from."
	}
	text, known := m.cutResults[in.ResultID]
	switch {
	case !known:
		return "", "", "There is no result with this id to read on in."
	case in.From < 0 || in.From >= len(text):
		return "", "", fmt.Sprintf("The result has %d bytes.", len(text))
	}
	piece := foreign.Cut(text[in.From:], maxPiece)
	output = foreign.Frame(foreign.Result, foreign.Attribute("id", in.ResultID)+foreign.Attribute("from", strconv.Itoa(in.From)), piece)
	if end := in.From + len(piece); end < len(text) {
		output += moreNote(in.ResultID, end, len(text))
	}
	return in.ResultID, output, ""
}
