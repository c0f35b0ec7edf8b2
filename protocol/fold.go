package protocol

import (
	"fmt"
	"strings"
)

// Fold turns a turn's events into the parts of its message. The turn's state machine, snapshots, readers of a streaming
// message and the web app all apply the same rules. It is not safe for concurrent use.
type Fold struct {
	parts []*foldPart
	byID  map[PartID]*foldPart
}

type foldPart struct {
	Part
	text strings.Builder // Text or Code while the part is open
}

// Apply folds one event. Events that do not change the message are ignored.
func (f *Fold) Apply(payload Payload) {
	switch p := payload.(type) {
	case *AnswerStarted:
		f.open(Part{Type: PartText, PartID: p.PartID}, p.Supersedes)
	case *AnswerDelta:
		f.appendDelta(p.PartID, p.Delta)
	case *AnswerCompleted:
		f.close(p.PartID, p.Text, p.Truncated)
		if part := f.byID[p.PartID]; part != nil && len(p.Citations) > 0 {
			part.Citations = p.Citations
		}
	case *CodeStarted:
		f.open(Part{Type: PartCode, PartID: p.PartID, Language: p.Language, Filename: p.Filename}, p.Supersedes)
	case *CodeDelta:
		f.appendDelta(p.PartID, p.Delta)
	case *CodeCompleted:
		f.close(p.PartID, p.Code, p.Truncated)
	case *ReasoningStarted:
		f.open(Part{Type: PartReasoning, PartID: p.PartID}, p.Supersedes)
	case *ReasoningDelta:
		f.appendDelta(p.PartID, p.Delta)
	case *ReasoningCompleted:
		f.close(p.PartID, p.Text, p.Truncated)
	case *ToolStarted:
		f.open(Part{
			Type: PartTool, PartID: p.PartID, ToolID: &p.ToolID, ToolName: p.ToolName, Kind: p.Kind,
			Title: p.Title, Input: p.Input, State: p.State,
		}, p.Supersedes)
	case *ToolStateChanged:
		if part := f.byID[p.PartID]; part != nil {
			part.State = p.State
		}
	case *ToolCompleted:
		if part := f.byID[p.PartID]; part != nil {
			part.State, part.Output, part.Sources, part.Error, part.DurationMS, part.Open = p.State, p.Output, p.Sources, p.Error, p.DurationMS, false
			part.Outcome, part.Truncated, part.Repeated = p.Outcome, p.Truncated, p.Repeated
		}
	case *ApprovalRequested:
		if part := f.byID[p.PartID]; part != nil {
			part.Approval = &PartApproval{ApprovalRequest: p.Approval}
		}
	case *ApprovalResolved:
		if part := f.byID[p.PartID]; part != nil && part.Approval != nil {
			decided := *part.Approval // a slice that Parts has returned shares the former value
			decided.Decision, decided.By, decided.Reason = p.Decision, p.By, p.Reason
			part.Approval = &decided
			if len(p.Input) > 0 {
				part.Input = p.Input
			}
		}
	case *SteeringApplied:
		id := p.SteeringID
		f.add(Part{Type: PartNotice, PartID: p.PartID, Kind: "steering", Text: p.Text, SteeringID: &id})
	case *ArtifactUpdated:
		f.update(p)
	case *Notice:
		f.add(Part{Type: PartNotice, PartID: p.PartID, Kind: p.Kind, Text: p.Text})
	}
}

func (f *Fold) add(part Part) *foldPart {
	if f.byID == nil {
		f.byID = map[PartID]*foldPart{}
	}
	p := &foldPart{Part: part}
	f.parts = append(f.parts, p)
	f.byID[part.PartID] = p
	return p
}

// update sets the version of an artifact in its part, which an earlier version has added at its position.
func (f *Fold) update(p *ArtifactUpdated) {
	id := p.ArtifactID
	part := Part{
		Type: PartArtifact, PartID: p.PartID, ArtifactID: &id, Version: p.Version, Kind: string(p.Kind), Title: p.Title, Language: p.Language, CreatedBy: p.CreatedBy,
	}
	for _, known := range f.parts {
		if known.ArtifactID != nil && *known.ArtifactID == id {
			part.PartID = known.PartID
			known.Part = part
			return
		}
	}
	f.add(part)
}

func (f *Fold) open(part Part, supersedes []PartID) {
	for _, id := range supersedes {
		f.drop(id)
	}
	f.add(part).Open = true
}

func (f *Fold) drop(id PartID) {
	if f.byID[id] == nil {
		return
	}
	delete(f.byID, id)
	for i, p := range f.parts {
		if p.PartID == id {
			f.parts = append(f.parts[:i], f.parts[i+1:]...)
			return
		}
	}
}

func (f *Fold) appendDelta(id PartID, delta string) {
	if p := f.byID[id]; p != nil && p.Open {
		p.text.WriteString(delta)
	}
}

func (f *Fold) close(id PartID, whole string, truncated bool) {
	p := f.byID[id]
	if p == nil {
		return
	}
	p.text = strings.Builder{}
	p.Open, p.Truncated = false, truncated
	if p.Type == PartCode {
		p.Code = whole
	} else {
		p.Text = whole
	}
}

// Text returns the text or code of a part, open or closed; "" when the message does not contain the part.
func (f *Fold) Text(id PartID) string {
	p := f.byID[id]
	if p == nil {
		return ""
	}
	return p.current().Text + p.current().Code
}

// Len returns the number of bytes of an open part so far; 0 for any other part.
func (f *Fold) Len(id PartID) int {
	if p := f.byID[id]; p != nil {
		return p.text.Len()
	}
	return 0
}

// Has reports whether the message contains the part. A superseded part is removed from the message.
func (f *Fold) Has(id PartID) bool { return f.byID[id] != nil }

// Count returns the current number of parts in the message.
func (f *Fold) Count() int { return len(f.parts) }

// current returns the part with the text or code that it has so far.
func (p *foldPart) current() Part {
	part := p.Part
	if p.Open {
		if part.Type == PartCode {
			part.Code = p.text.String()
		} else if part.Type != PartTool {
			part.Text = p.text.String()
		}
	}
	return part
}

// Parts returns the current parts of the message; never nil. Later events do not change the returned slice.
func (f *Fold) Parts() []Part {
	parts := make([]Part, 0, len(f.parts))
	for _, p := range f.parts {
		parts = append(parts, p.current())
	}
	return parts
}

// FoldFrames folds the log lines after the event covers, and returns the sequence of the last one. It stops with an error at a line
// that cannot be decoded, and at a gap.
func (f *Fold) FoldFrames(covers int64, frames []byte) (last int64, err error) {
	for line := range FrameLines(frames) {
		envelope, payload, err := DecodeEvent(line)
		switch {
		case err != nil:
			return covers, err
		case envelope.Sequence <= covers:
			continue
		case envelope.Sequence != covers+1:
			return covers, fmt.Errorf("the log jumps from %d to %d", covers, envelope.Sequence)
		}
		f.Apply(payload)
		covers = envelope.Sequence
	}
	return covers, nil
}
