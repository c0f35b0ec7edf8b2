package machine

import (
	"encoding/json"
	"slices"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// approval is the request for an approval of a tool call, with the decision on it.
type approval struct {
	protocol.Approval
	definition string // digest of the definition of the tool

	// Of a decision of the user, so that a repeat gets the same receipt.
	steeringID protocol.SteeringID
	sequence   int64
	hash       string
}

// pending reports whether the approval is not decided yet.
func (a *approval) pending() bool { return a.Decision == nil }

// defaultApprovalLifetime is the time after which an approval expires, for a turn whose specification names none.
const defaultApprovalLifetime = 24 * time.Hour

// approvalOf returns the approval with an identifier; nil if the turn has none.
func (m *Machine) approvalOf(id protocol.ApprovalID) *approval {
	for _, a := range m.approvals {
		if a.ApprovalID == id {
			return a
		}
	}
	return nil
}

// awaiting reports whether a call waits for an approval.
func (m *Machine) awaiting() bool {
	return slices.ContainsFunc(m.toolCalls, func(c *toolCall) bool { return c.state == protocol.ToolAwaitingApproval })
}

// ErrNoApproval is the 404 error of a decision on an approval that the turn does not have.
var ErrNoApproval = protocol.Errorf(protocol.CodeNotFound, "the turn has no such approval")

// applyApproval changes the state by the record of a request for an approval, or of a decision.
func (m *Machine) applyApproval(record turnlog.Record) error {
	if record.Kind == turnlog.RecordApproval {
		var body turnlog.ApprovalRecord
		if err := json.Unmarshal(record.Body, &body); err != nil {
			return err
		}
		m.approvals = append(m.approvals, &approval{Approval: body.Approval, definition: body.Definition})
		return nil
	}
	var body turnlog.DecisionRecord
	if err := json.Unmarshal(record.Body, &body); err != nil {
		return err
	}
	for _, a := range m.approvals {
		if a.ApprovalID.String() == record.Key {
			a.steeringID, a.sequence, a.hash = body.SteeringID, record.Sequence, body.Hash
			if err := a.Decide(body.Decision, &body.At); err != nil {
				return err
			}
		}
	}
	return nil
}
