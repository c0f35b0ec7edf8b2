package machine

import (
	"slices"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// decide processes the user's decision on an approval. A repeat gets the first receipt.
func (m *Batch) decide(c *Command) (protocol.SteeringReceipt, error) {
	a := m.approvalOf(c.ApprovalID)
	if a == nil {
		return protocol.SteeringReceipt{}, ErrNoApproval
	}
	if a.pending() && !m.ended && !m.Now.Before(a.ExpiresAt) {
		m.expire()
		m.advance()
	}
	if !a.pending() || m.ended || m.state == protocol.TurnCancelling {
		return Decided(m.spec.TurnID, a.Approval, &turnlog.DecisionRecord{SteeringID: a.steeringID, Hash: a.hash}, a.sequence, c)
	}
	if c.Digest != a.InputDigest {
		return protocol.SteeringReceipt{}, protocol.Conflict(protocol.CodeApprovalChanged, a.Brief(), "The decision names a different input from the one that the approval shows.")
	}
	if !slices.Contains(a.Options, c.Decision) {
		return protocol.SteeringReceipt{}, protocol.Invalid("body.decision", "is not among the options of this approval")
	}
	call, input := m.tool(a.ToolID), a.Input
	if c.Decision == protocol.ApproveWithEdits {
		input = c.EditedInput
	}
	plan := m.plan(a.ToolName, input)
	if plan.Failure != nil && c.Decision == protocol.ApproveWithEdits {
		return protocol.SteeringReceipt{}, protocol.Invalid("body.edited_input", "is not an input of the tool: "+plan.Failure.Detail)
	}
	input = plan.Input
	resolved := protocol.ApprovalResolved{
		PartID: call.part, ToolID: call.id, ApprovalID: c.ApprovalID, Decision: c.Decision, By: protocol.DecidedByUser, Reason: c.Reason,
	}
	// The input that was asked about has been encoded again since, so it is compared in its canonical form.
	if c.Decision == protocol.ApproveWithEdits && string(input) != string(m.plan(a.ToolName, a.Input).Input) {
		resolved.Input = input
	}
	m.emit(&resolved)
	receipt := m.receipt(c.SteeringID, m.sequence, false)
	session := ""
	if !c.Session.IsZero() {
		session = c.Session.UUID()
	}
	m.record(turnlog.RecordDecision, c.ApprovalID.String(), turnlog.DecisionRecord{
		ID: c.ApprovalID.UUID(), SteeringID: c.SteeringID, Decision: c.Decision, By: protocol.DecidedByUser, Session: session, Hash: c.Hash, At: protocol.Millis(m.Now),
	})
	if c.Decision == protocol.RejectCall {
		m.completeTool(call, protocol.ToolDenied, toolOutput{}, denied(c.Reason), 0)
	} else {
		m.runApproved(call, a, &plan)
		m.startPending() // an edited call is not identical to others any more
	}
	m.advance()
	return receipt, nil
}

// runApproved runs a call that the user has approved, unless the tool is not what it was when the user was asked: the node that
// asked may have been another one.
func (m *Batch) runApproved(call *toolCall, a *approval, plan *policy.Plan) {
	m.moveTool(call, protocol.ToolApproved)
	switch {
	case plan.Failure != nil:
		m.completeTool(call, protocol.ToolFails, toolOutput{}, plan.Failure, 0)
	case plan.Definition != a.definition:
		m.completeTool(call, protocol.ToolFails, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolCallFailed, Detail: "The tool has changed since its call was approved, so the call did not run.",
		}, 0)
	default:
		m.record(turnlog.RecordUse, call.id.String(), turnlog.UseRecord{ApprovalID: a.ApprovalID})
		m.effect(call.run())
	}
}

// Decided returns the receipt of a repeated decision on an approval that was decided before, or the 409 error of another
// one. sequence is that of the record of the decision.
func Decided(turn protocol.TurnID, a protocol.Approval, decided *turnlog.DecisionRecord, sequence int64, c *Command) (protocol.SteeringReceipt, error) {
	if decided.Hash != "" && decided.Hash == c.Hash {
		return protocol.Accepted(decided.SteeringID, turn, sequence, true), nil
	}
	detail := "Another decision was made on this approval before."
	switch a.State {
	case protocol.ApprovalExpired:
		detail = "The approval has expired, and the call did not run."
	case protocol.ApprovalCancelled, protocol.ApprovalPending:
		detail = "The answer ended before the approval was decided, and the call did not run."
	}
	return protocol.SteeringReceipt{}, protocol.Conflict(protocol.CodeApprovalDecided, a.Brief(), detail)
}

// denied returns the result of a call that the user has rejected.
func denied(reason string) *protocol.ToolError {
	if reason == "" {
		return &protocol.ToolError{Code: protocol.ToolCallDenied, Detail: "The user rejected this call. Do not try it again in another way."}
	}
	return &protocol.ToolError{Code: protocol.ToolCallDenied, Detail: "The user rejected this call, and said: " + reason}
}

// Wake continues a turn that waited for an approval without an actor. It first expires the approvals whose time has passed.
func (m *Batch) Wake() {
	if m.ended || m.state != protocol.TurnRequiresAction {
		return
	}
	m.expire()
	m.advance()
}
