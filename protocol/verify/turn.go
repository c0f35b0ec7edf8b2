package verify

import (
	"encoding/json"

	"turnstone/protocol"
)

// Event is one event of a log as a reader got it, or as it is stored.
type Event struct {
	Sequence int64
	Type     protocol.EventType
	Data     string // the event as JSON: the same bytes for every reader
}

// Payload decodes the event. It returns nil for a type that this version does not know.
func (e Event) Payload() (protocol.Payload, error) {
	_, payload, err := protocol.DecodeEvent([]byte(e.Data))
	return payload, err
}

// Turn is the whole log of a turn. Findings of its Reader has what is wrong with the log itself.
type Turn struct {
	Reader
	ID       string
	Events   []Event
	Payloads []protocol.Payload // of the events; nil for a type that this version does not know
	Parts    []protocol.Part    // that the events produce

	tools map[protocol.ToolID]bool
}

// ReadTurn reads the log of a turn that has ended, or its beginning. It checks that the events are contiguous from 1 and
// equal to their envelopes; that turn.started is the first and turn.finished the last one and that there is only one; that
// no tool call is started twice; that a delta continues an open part where it ended, and that a part ends with the text of
// its deltas; and that no part is open at the end.
func ReadTurn(id string, events []Event) *Turn {
	t := &Turn{ID: id, Events: events, Payloads: make([]protocol.Payload, len(events)), tools: map[protocol.ToolID]bool{}}
	var fold protocol.Fold
	for i, e := range events {
		if violated := t.Next(e.Sequence, e.Type == "turn.finished"); violated != "" {
			t.Findings.add(violated, "%s: event %d (%s) is event %d of the log", id, e.Sequence, e.Type, i+1)
		}
		t.Digest.add(e.Sequence, []byte(e.Type), []byte(e.Data))
		envelope, payload, err := protocol.DecodeEvent([]byte(e.Data))
		switch {
		case err != nil:
			t.Findings.add(Malformed, "%s: %v", id, err)
			continue
		case envelope.ProtocolVersion != protocol.Version || envelope.TurnID.String() != id || envelope.Sequence != e.Sequence || envelope.Type != e.Type:
			t.Findings.add(Malformed, "%s: event %d (%s) is %s", id, e.Sequence, e.Type, e.Data)
		case (i == 0) != (e.Type == "turn.started"):
			t.Findings.add(NotWhole, "%s: event %d is %s", id, e.Sequence, e.Type)
		}
		t.Payloads[i] = payload
		t.decoded(e.Sequence, payload)
		t.checkPart(e.Sequence, payload, &fold)
		fold.Apply(payload)
	}
	if t.Parts = fold.Parts(); t.End != nil {
		for _, part := range t.Parts {
			if part.Open {
				t.Findings.add(Order, "%s has ended, and part %s is open", id, part.PartID)
			}
		}
	}
	return t
}

// checkPart checks an event of a part against the part so far.
func (t *Turn) checkPart(sequence int64, payload protocol.Payload, fold *protocol.Fold) {
	continues := func(id protocol.PartID, offset int) {
		if !fold.Has(id) || fold.Len(id) != offset {
			t.Findings.add(Order, "%s: event %d continues part %s at %d; it has %d bytes (in the message: %t)", t.ID, sequence, id, offset, fold.Len(id), fold.Has(id))
		}
	}
	completes := func(id protocol.PartID, text string) {
		if fold.Has(id) && fold.Text(id) != text {
			t.Findings.add(Changed, "%s: event %d completes part %s as %q; its deltas have %q", t.ID, sequence, id, text, fold.Text(id))
		}
	}
	switch p := payload.(type) {
	case *protocol.AnswerDelta:
		continues(p.PartID, p.Offset)
	case *protocol.CodeDelta:
		continues(p.PartID, p.Offset)
	case *protocol.ReasoningDelta:
		continues(p.PartID, p.Offset)
	case *protocol.AnswerCompleted:
		completes(p.PartID, p.Text)
	case *protocol.CodeCompleted:
		completes(p.PartID, p.Code)
	case *protocol.ReasoningCompleted:
		completes(p.PartID, p.Text)
	case *protocol.ToolStarted:
		if t.tools[p.ToolID] {
			t.Findings.add(Doubled, "%s: tool call %s was started twice", t.ID, p.ToolID)
		}
		t.tools[p.ToolID] = true
	}
}

// CheckEnd checks that the turn has ended.
func (t *Turn) CheckEnd() (found Findings) {
	if t.End == nil {
		found.add(NotAtRest, "%s has %d events and no end", t.ID, len(t.Events))
	}
	return found
}

// CheckMessage checks the parts of a message, as JSON, that something shows: they are what the events up to the sequence
// covers produce, or all events if it is 0.
func (t *Turn) CheckMessage(where string, covers int64, parts string) (found Findings) {
	if covers > int64(len(t.Events)) {
		found.add(NotDurable, "%s shows %s up to event %d, but the log has %d", where, t.ID, covers, len(t.Events))
		return found
	}
	want := t.Parts
	if covers > 0 {
		var fold protocol.Fold
		for _, payload := range t.Payloads[:covers] {
			fold.Apply(payload)
		}
		want = fold.Parts()
	}
	if produced := PartsJSON(want); parts != produced {
		found.add(WrongMessage, "%s shows %s up to event %d as %s, but its events produce %s", where, t.ID, covers, parts, produced)
	}
	return found
}

// PartsJSON returns the parts of a message as they are stored and sent.
func PartsJSON(parts []protocol.Part) string {
	text, err := json.Marshal(append([]protocol.Part{}, parts...))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
