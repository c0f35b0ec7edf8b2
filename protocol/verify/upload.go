package verify

import (
	"slices"

	"turnstone/protocol"
)

// Upload is the log of an upload. Findings has what is wrong with the log itself.
type Upload struct {
	Position
	ID       string
	Events   []Event
	End      *protocol.UploadFinished
	Findings Findings
}

// ReadUpload reads the log of an upload that has ended, or its beginning. It checks that the events are contiguous
// from 1; that upload.started is the first and upload.finished the last one and that there is only one; that each state
// follows from the one before it; and that the progress of an attempt grows up to the size of the file.
func ReadUpload(id string, events []Event) *Upload {
	u := &Upload{ID: id, Events: events}
	state, received, size := protocol.UploadState(""), int64(0), int64(0)
	for i, e := range events {
		if violated := u.Next(e.Sequence, e.Type == "upload.finished"); violated != "" {
			u.Findings.add(violated, "%s: event %d (%s) is event %d of the log", id, e.Sequence, e.Type, i+1)
		}
		payload, err := e.Payload()
		if err != nil {
			u.Findings.add(Malformed, "%s: %v", id, err)
			continue
		}
		if (i == 0) != (e.Type == "upload.started") {
			u.Findings.add(NotWhole, "%s: event %d is %s", id, e.Sequence, e.Type)
		}
		switch p := payload.(type) {
		case *protocol.UploadStarted:
			state, size = p.State, p.Size
		case *protocol.UploadStateChanged:
			if p.From != state || !leads(p.From, p.State) {
				u.Findings.add(Order, "%s: event %d leads from %s to %s; the state is %s", id, e.Sequence, p.From, p.State, state)
			}
			state, received = p.State, 0
		case *protocol.UploadProgress:
			if p.ReceivedBytes < received || p.ReceivedBytes > size {
				u.Findings.add(Order, "%s: event %d reports %d of %d bytes after %d", id, e.Sequence, p.ReceivedBytes, size, received)
			}
			received = p.ReceivedBytes
		case *protocol.UploadFinished:
			u.End = p
			u.checkEnd(e.Sequence, state)
		}
	}
	return u
}

func (u *Upload) checkEnd(sequence int64, state protocol.UploadState) {
	switch {
	case u.End.LastSequence != sequence:
		u.Findings.add(Ends, "%s: event %d ends the log and says that event %d does", u.ID, sequence, u.End.LastSequence)
	case !u.End.State.Terminal() || u.End.State != state && !leads(state, u.End.State):
		u.Findings.add(Order, "%s ended %s; it was %s", u.ID, u.End.State, state)
	case (u.End.FileID != nil) != (u.End.State == protocol.UploadReady):
		u.Findings.add(NotWhole, "%s ended %s with the file %v", u.ID, u.End.State, u.End.FileID)
	}
}

// leads reports whether a transition leads from a state to another one.
func leads(from, to protocol.UploadState) bool {
	return slices.ContainsFunc(protocol.UploadTransitions, func(t protocol.Transition[protocol.UploadState, protocol.UploadTrigger]) bool {
		return t.From == from && t.To == to
	})
}

// CheckResource compares the log with the upload as the service shows it.
func (u *Upload) CheckResource(shown *protocol.Upload) (found Findings) {
	if u.End == nil {
		if shown.State.Terminal() {
			found.add(Lost, "%s is %s, and its log has no end", u.ID, shown.State)
		}
		return found
	}
	file := func(id *protocol.FileID) protocol.FileID {
		if id == nil {
			return protocol.FileID{}
		}
		return *id
	}
	if shown.State != u.End.State || shown.LastSequence != u.Last || file(shown.FileID) != file(u.End.FileID) {
		found.add(WrongMessage, "%s is shown as %+v, its log ends with event %d: %+v", u.ID, shown, u.Last, u.End)
	}
	return found
}
