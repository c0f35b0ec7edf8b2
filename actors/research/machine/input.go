package machine

import (
	"slices"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/turnlog"
)

// input is an input of the user that a step takes into account.
type input struct {
	*researchlog.Steering
	applied bool
}

// waiting returns the number of inputs that no step takes into account yet.
func (m *Machine) waiting() (n int) {
	for _, in := range m.inputs {
		if in.Kind == protocol.ResearchInput && !in.applied {
			n++
		}
	}
	return n
}

// writeWaits reports whether the user wants the report as soon as there is something to write.
func (m *Machine) writeWaits() bool {
	return slices.ContainsFunc(m.inputs, func(in *input) bool { return in.Kind == protocol.ResearchWriteNow && !in.applied })
}

// writeNow ends the search, because the user wants the report.
func (b *Batch) writeNow() {
	b.hurry = true
	for _, in := range b.inputs {
		if in.Kind == protocol.ResearchWriteNow && !in.applied {
			b.applied(in, nil)
		}
	}
}

func (b *Batch) applied(in *input, step *string) {
	in.applied = true
	b.emit(&protocol.ResearchSteered{SteeringID: in.SteeringID, Outcome: protocol.ResearchApplied, Kind: in.Kind, Text: in.Text, StepID: step})
}

// applyInputs notes that a step takes all inputs so far into account, and returns them.
func (b *Batch) applyInputs(key string) (texts []string) {
	for _, in := range b.inputs {
		if in.Kind != protocol.ResearchInput {
			continue
		}
		texts = append(texts, in.Text)
		if !in.applied {
			b.applied(in, &key)
		}
	}
	return texts
}

// returnInputs reports the commands that were not applied. Their texts become held follow-ups.
func (b *Batch) returnInputs() {
	for i, in := range b.inputs {
		if in.applied {
			continue
		}
		in.applied = true
		returned := &protocol.ResearchSteered{SteeringID: in.SteeringID, Outcome: protocol.ResearchReturned, Kind: in.Kind, Text: in.Text}
		if in.Kind == protocol.ResearchInput {
			id := protocol.DeriveTaskFollowUpID(b.spec.TaskID, i+1)
			returned.FollowUpID = &id
			b.returned = append(b.returned, turnlog.ReturnedInput{FollowUpID: id, Text: in.Text})
		}
		b.emit(returned)
	}
}
