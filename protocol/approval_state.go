package protocol

import "fmt"

// ApprovalState is the state of an approval.
type ApprovalState string

// The states of an approval. Every state but pending is final.
const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalRejected  ApprovalState = "rejected"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalCancelled ApprovalState = "cancelled" // the turn ended first
)

// ApprovalStates lists every state.
var ApprovalStates = []ApprovalState{ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, ApprovalCancelled}

// Decision is how an approval was resolved.
type Decision string

// The decisions. A user can take the first four; an approval that nobody decides in time expires, and the end of its turn
// cancels it.
const (
	ApproveOnce            Decision = "approve_once"
	ApproveForConversation Decision = "approve_for_conversation" // and further calls of the tool with the same resource
	ApproveWithEdits       Decision = "approve_with_edits"       // with another input
	RejectCall             Decision = "reject"
	DecisionExpired        Decision = "expired"
	DecisionCancelled      Decision = "cancelled"
)

// ApprovalTransitions lists every legal transition of an approval. Its triggers are the decisions.
var ApprovalTransitions = []Transition[ApprovalState, Decision]{
	{ApprovalPending, ApproveOnce, ApprovalApproved},
	{ApprovalPending, ApproveForConversation, ApprovalApproved},
	{ApprovalPending, ApproveWithEdits, ApprovalApproved},
	{ApprovalPending, RejectCall, ApprovalRejected},
	{ApprovalPending, DecisionExpired, ApprovalExpired},
	{ApprovalPending, DecisionCancelled, ApprovalCancelled},
}

// State returns the state of an approval with a decision. The error is about an unknown one, which a newer version may have stored.
func (d Decision) State() (ApprovalState, error) {
	state, known := next(ApprovalTransitions, ApprovalPending, d)
	if !known {
		return "", fmt.Errorf("unknown decision on an approval: %q", string(d))
	}
	return state, nil
}
