package machine

import (
	"time"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// ask requests the approval of a call.
func (m *Batch) ask(call *toolCall, plan *policy.Plan) {
	request := *plan.Ask
	lifetime := m.spec.ApprovalLifetime
	if lifetime == 0 {
		lifetime = defaultApprovalLifetime
	}
	request.ApprovalID = protocol.DeriveApprovalID(m.spec.TurnID, call.number)
	request.ExpiresAt = protocol.Millis(m.Now.Add(lifetime))
	m.moveTool(call, protocol.ToolNeedsApproval)
	m.emit(&protocol.ApprovalRequested{PartID: call.part, ToolID: call.id, Approval: request})
	m.record(turnlog.RecordApproval, request.ApprovalID.String(), turnlog.ApprovalRecord{
		ID: request.ApprovalID.UUID(),
		Approval: protocol.Approval{
			ApprovalID: request.ApprovalID, State: protocol.ApprovalPending, ConversationID: m.spec.ConversationID, TurnID: m.spec.TurnID,
			ToolID: call.id, ToolName: call.name, Source: "builtin", Action: request.Action, Summary: request.Summary, Risk: request.Risk,
			Reversibility: request.Reversibility, Effects: request.Effects, Scope: request.Scope, Reasons: request.Reasons, Marked: request.Marked,
			Input: request.Input, InputDigest: request.InputDigest, Options: request.Options,
			CreatedAt: protocol.Millis(m.Now), ExpiresAt: request.ExpiresAt,
		},
		Definition: plan.Definition,
	})
}

// Parks reports whether the turn does nothing until an approval is decided, and until when: the first approval expires then.
func (m *Machine) Parks() (until time.Time, parks bool) {
	if m.ended || m.calling || m.state != protocol.TurnRequiresAction || m.toolRuns() || m.toolChecks() {
		return until, false
	}
	for _, a := range m.approvals {
		if a.pending() && (until.IsZero() || a.ExpiresAt.Before(until)) {
			until = a.ExpiresAt
		}
	}
	return until, !until.IsZero()
}

// expire resolves the approvals whose time has passed. Their calls get a result that says so.
func (m *Batch) expire() {
	for _, a := range m.approvals {
		call := m.tool(a.ToolID)
		if !a.pending() || call == nil || m.Now.Before(a.ExpiresAt) {
			continue
		}
		m.resolve(a, call, protocol.DecisionExpired, protocol.DecidedByTimeout)
		m.completeTool(call, protocol.ToolDenied, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolCallDenied, Detail: "Nobody decided in time whether this call may run, so it did not.",
		}, 0)
	}
}

// resolve decides an approval without the user.
func (m *Batch) resolve(a *approval, call *toolCall, decision protocol.Decision, by protocol.DecidedBy) {
	m.emit(&protocol.ApprovalResolved{PartID: call.part, ToolID: call.id, ApprovalID: a.ApprovalID, Decision: decision, By: by})
	m.record(turnlog.RecordDecision, a.ApprovalID.String(), turnlog.DecisionRecord{
		ID: a.ApprovalID.UUID(), Decision: decision, By: by, At: protocol.Millis(m.Now),
	})
}
