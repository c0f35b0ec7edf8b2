package machine

import (
	"encoding/json"
	"time"

	"turnstone/protocol"
)

const (
	// answeredAfter is how many identical calls with identical results run; the next ones are answered from the ledger.
	answeredAfter = 2
	// repeatsEnd is the number of the identical call that ends the use of tools.
	repeatsEnd = 5
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
