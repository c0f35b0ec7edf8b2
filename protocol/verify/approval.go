package verify

import (
	"maps"
	"slices"

	"turnstone/protocol"
)

// Decision is a request of a client that decides an approval.
type Decision struct {
	Approval string // approval_id
	Decision protocol.Decision
	Outcome  Outcome // Closed: another decision was made before
	Sequence int64   // of an acknowledged one, from its receipt
}

// asked is what a log says about one approval.
type asked struct {
	request  protocol.ApprovalRequest
	resolved *protocol.ApprovalResolved
	sequence int64 // of resolved
}

// CheckApprovals checks the approvals in the log: each is resolved, once, by a decision that it offers; a call that needs one runs only
// after it was approved, and a rejected one never. It compares the responses of clients to decisions with the log: an acknowledged
// one is in it, under the sequence of its receipt; one that was only refused is not. Decisions of one kind on an approval are repeats of one another.
func (t *Turn) CheckApprovals(decisions []Decision) (found Findings) {
	approvals := t.readApprovals(&found)
	for _, id := range slices.Sorted(maps.Keys(approvals)) {
		if approvals[id].resolved == nil && t.End != nil {
			found.add(Order, "%s has ended, and approval %s is not resolved", t.ID, id)
		}
	}
	received := map[string][]Decision{}
	for _, d := range decisions {
		received[d.Approval] = append(received[d.Approval], d)
	}
	for _, id := range slices.Sorted(maps.Keys(received)) {
		t.checkDecisions(id, approvals[id], received[id], &found)
	}
	return found
}

// readApprovals reads the approvals of the log, by identifier, and checks the calls that they are for.
func (t *Turn) readApprovals(found *Findings) map[string]*asked {
	approvals, calls := map[string]*asked{}, map[protocol.ToolID]*asked{}
	for i, payload := range t.Payloads {
		sequence := int64(i + 1)
		switch p := payload.(type) {
		case *protocol.ApprovalRequested:
			one := &asked{request: p.Approval}
			if approvals[p.Approval.ApprovalID.String()] != nil || calls[p.ToolID] != nil {
				found.add(Doubled, "%s: event %d asks again for call %s", t.ID, sequence, p.ToolID)
			}
			approvals[p.Approval.ApprovalID.String()], calls[p.ToolID] = one, one
		case *protocol.ApprovalResolved:
			one := approvals[p.ApprovalID.String()]
			switch {
			case one == nil:
				found.add(Order, "%s: event %d resolves approval %s, which was not asked for", t.ID, sequence, p.ApprovalID)
				continue
			case one.resolved != nil:
				found.add(Doubled, "%s: event %d resolves approval %s again", t.ID, sequence, p.ApprovalID)
			case p.By == protocol.DecidedByUser && !slices.Contains(one.request.Options, p.Decision):
				found.add(Order, "%s: event %d resolves approval %s by %s, which it does not offer", t.ID, sequence, p.ApprovalID, p.Decision)
			}
			one.resolved, one.sequence = p, sequence
		case *protocol.ToolStateChanged:
			if one := calls[p.ToolID]; one != nil && p.State == protocol.ToolRunning && !one.approved() {
				found.add(Order, "%s: event %d runs call %s, which was not approved", t.ID, sequence, p.ToolID)
			}
		case *protocol.ToolCompleted:
			if one := calls[p.ToolID]; one != nil && p.State == protocol.ToolSucceeded && !one.approved() {
				found.add(Order, "%s: event %d completes call %s, which was not approved", t.ID, sequence, p.ToolID)
			}
		}
	}
	return approvals
}

// checkDecisions compares the responses of clients to decisions on one approval with the log.
func (t *Turn) checkDecisions(id string, logged *asked, received []Decision, found *Findings) {
	by := func(outcome Outcome, d protocol.Decision) bool {
		return slices.ContainsFunc(received, func(one Decision) bool { return one.Outcome == outcome && one.Decision == d })
	}
	var resolved protocol.ApprovalResolved // by nobody
	sequence := int64(0)
	if logged != nil && logged.resolved != nil {
		resolved, sequence = *logged.resolved, logged.sequence
	}
	for _, one := range received {
		if one.Outcome == Closed && resolved.By == protocol.DecidedByUser && resolved.Decision == one.Decision {
			found.add(NotIdempotent, "%s: event %d resolves approval %s by %s, which was refused as another decision", t.ID, sequence, id, one.Decision)
			return
		}
		if one.Outcome == Acknowledged && (resolved.By != protocol.DecidedByUser || resolved.Decision != one.Decision || sequence != one.Sequence) {
			found.add(Lost, "%s: %s of approval %s was acknowledged as event %d, but event %d resolves it by %q", t.ID, one.Decision, id, one.Sequence, sequence, resolved.Decision)
			return
		}
	}
	if resolved.By == protocol.DecidedByUser && !by(Acknowledged, resolved.Decision) && !by(Unknown, resolved.Decision) {
		found.add(Untruthful, "%s: event %d resolves approval %s by %s, which no client received", t.ID, sequence, id, resolved.Decision)
	}
}

func (a *asked) approved() bool {
	if a.resolved == nil {
		return false
	}
	state, err := a.resolved.Decision.State()
	return err == nil && state == protocol.ApprovalApproved
}
