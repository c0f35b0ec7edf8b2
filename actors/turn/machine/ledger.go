package machine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

const (
	// answeredAfter is how many identical calls with identical results run; the next ones are answered from the ledger.
	answeredAfter = 2
	// repeatsEnd is the number of the identical call that ends the use of tools.
	repeatsEnd = 5

	maxToolTime = 10 * time.Minute // that the tool calls of a turn take together
	maxStored   = 4 << 20          // bytes of results that were cut, of one turn
	maxPiece    = 32 << 10         // bytes of a result that one call of policy.ReadMore returns
)

// ledgerEntry counts the calls of a tool with the same input and the same result, in a row.
type ledgerEntry struct {
	calls int
	last  *protocol.ToolCompleted
}

func sameResult(a, b *protocol.ToolCompleted) bool {
	return a.State == b.State && a.Output == b.Output && a.Bytes == b.Bytes && (a.Error == nil) == (b.Error == nil) && (a.Error == nil || *a.Error == *b.Error)
}

func ledgerKey(name string, input json.RawMessage) string { return name + "\x00" + string(input) }

// note counts a completed call.
func (m *Machine) note(call *toolCall, p *protocol.ToolCompleted) {
	m.toolTime += time.Duration(p.DurationMS) * time.Millisecond
	key := ledgerKey(call.name, call.input)
	entry := m.ledger[key]
	if !call.readOnly && (p.State == protocol.ToolSucceeded || p.State == protocol.ToolOutcomeUnknown) { // what was read before may have changed
		clear(m.ledger)
	}
	switch {
	case p.Error != nil && p.Error.Code == protocol.ToolCallOverLimit:
		m.over = protocol.StopToolLimit
		return
	case p.Error != nil && p.Error.Code == protocol.ToolCallRepeated:
		m.over = protocol.StopEndTurn
		return
	case p.State != protocol.ToolSucceeded && p.State != protocol.ToolFailed, m.first(call) != nil:
		return
	}
	if entry == nil || !p.Repeated && !sameResult(entry.last, p) {
		entry = &ledgerEntry{last: p}
	}
	entry.calls++
	m.ledger[key] = entry
}

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

// first returns the first of the identical calls of the step, if the call is another one of them and its tool only reads; nil
// otherwise. Only the first one runs, and the result of the others is its result: the model has made them together, so they
// are no repetition, and count as one call in the ledger.
func (m *Machine) first(call *toolCall) *toolCall {
	if !call.readOnly {
		return nil
	}
	key := ledgerKey(call.name, call.input)
	for _, other := range m.toolCalls {
		switch {
		case other == call:
			return nil
		case other.state != protocol.ToolCancelled && ledgerKey(other.name, other.input) == key:
			return other
		}
	}
	return nil
}

// shares reports whether a call does not run because it gets the result of an identical one, now or when that ends.
func (m *Batch) shares(call *toolCall) bool {
	first := m.first(call)
	if first != nil && first.state.Terminal() {
		m.answerAgain(call, first.completed)
	}
	return first != nil
}

// repeatedNote follows the result of a call that was answered from the ledger, in the request to the model.
const repeatedNote = "\n[The call was not made again: this is what the same call gave before.]"

func resultID(number int) string { return "r" + strconv.Itoa(number) }

// moreNote is the note to the model that says how to get the rest of a result.
func moreNote(id string, from, size int) string {
	return fmt.Sprintf("\n[This is the beginning of a result of %d bytes. To read on, call %s with {\"result_id\": %q, \"from\": %d}.]", size, policy.ReadMore, id, from)
}

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
