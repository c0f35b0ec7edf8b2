package verify

import (
	"encoding/json"
	"slices"

	"turnstone/protocol"
)

// Research is the log of a research task. Findings has what is wrong with the log itself.
type Research struct {
	Position
	ID       string
	Events   []Event
	End      *protocol.ResearchFinished
	Findings Findings
}

// ReadResearch reads the log of a task that has ended, or its beginning. It checks that the events are contiguous from 1 and
// name the task; that task.started is the first and task.finished the last one and that there is only one; that each state
// follows from the one before it; and that an input has one outcome after it was accepted.
func ReadResearch(id string, events []Event) *Research {
	r := &Research{ID: id, Events: events}
	state, inputs := protocol.ResearchQueued, map[protocol.SteeringID][]protocol.ResearchSteeringOutcome{}
	for i, e := range events {
		if violated := r.Next(e.Sequence, e.Type == "task.finished"); violated != "" {
			r.Findings.add(violated, "%s: event %d (%s) is event %d of the log", id, e.Sequence, e.Type, i+1)
		}
		var envelope protocol.ResearchEnvelope
		payload, err := e.Payload()
		if err != nil || json.Unmarshal([]byte(e.Data), &envelope) != nil || envelope.TaskID.String() != id || envelope.Sequence != e.Sequence {
			r.Findings.add(Malformed, "%s: %v: %s", id, err, e.Data)
			continue
		}
		if (i == 0) != (e.Type == "task.started") {
			r.Findings.add(NotWhole, "%s: event %d is %s", id, e.Sequence, e.Type)
		}
		switch p := payload.(type) {
		case *protocol.ResearchStateChanged:
			if !leadsResearch(state, p.State) {
				r.Findings.add(Order, "%s: event %d leads from %s to %s", id, e.Sequence, state, p.State)
			}
			state = p.State
		case *protocol.ResearchSteered:
			inputs[p.SteeringID] = append(inputs[p.SteeringID], p.Outcome)
		case *protocol.ResearchFinished:
			r.End = p
			r.checkEnd(e.Sequence, state)
		}
	}
	for input, outcomes := range inputs {
		if outcomes[0] != protocol.ResearchAccepted || len(outcomes) > 2 || len(outcomes) == 2 && outcomes[1] == protocol.ResearchAccepted || r.End != nil && len(outcomes) != 2 {
			r.Findings.add(Order, "%s: the outcomes of the input %s are %v", id, input, outcomes)
		}
	}
	return r
}

func (r *Research) checkEnd(sequence int64, state protocol.ResearchState) {
	switch {
	case r.End.LastSequence != sequence:
		r.Findings.add(Ends, "%s: event %d ends the log and says that event %d does", r.ID, sequence, r.End.LastSequence)
	case !r.End.State.Terminal() || r.End.State != state:
		r.Findings.add(Order, "%s ended %s; it was %s", r.ID, r.End.State, state)
	case (r.End.ArtifactID != nil) != (r.End.State == protocol.ResearchCompleted), (r.End.MessageID != nil) != (r.End.ArtifactID != nil):
		r.Findings.add(NotWhole, "%s ended %s with the report %v in the message %v", r.ID, r.End.State, r.End.ArtifactID, r.End.MessageID)
	}
}

// leadsResearch reports whether a transition leads from a state to another one.
func leadsResearch(from, to protocol.ResearchState) bool {
	return from != to && slices.ContainsFunc(protocol.ResearchTransitions, func(t protocol.Transition[protocol.ResearchState, protocol.ResearchTrigger]) bool {
		return t.From == from && t.To == to
	})
}

// CheckResource compares the log with the task as the service shows it. cancelled means that a cancel was acknowledged.
func (r *Research) CheckResource(shown *protocol.ResearchTask, cancelled bool) (found Findings) {
	switch {
	case r.End == nil:
		if shown.State.Terminal() {
			found.add(Lost, "%s is %s, and its log has no end", r.ID, shown.State)
		}
		return found
	case shown.State != r.End.State || shown.LastSequence != r.Last || (shown.ArtifactID == nil) != (r.End.ArtifactID == nil):
		found.add(WrongMessage, "%s is shown as %+v, its log ends with event %d: %+v", r.ID, shown, r.Last, r.End)
	}
	if cancelled && r.End.State != protocol.ResearchCancelled {
		found.add(Lost, "%s ended %s after its cancel was acknowledged", r.ID, r.End.State)
	}
	return found
}
