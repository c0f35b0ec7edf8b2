package protocol

import (
	"encoding/json"
	"fmt"
	"time"
)

// Decide notes the decision on an approval. The error is about a decision that the table of states does not allow: an unknown one, which
// a newer version may have stored, or a second one.
func (a *Approval) Decide(d Decision, at *time.Time) error {
	state, legal := next(ApprovalTransitions, a.State, d)
	if !legal {
		return fmt.Errorf("the decision %q on an approval that is %s", string(d), a.State)
	}
	a.State, a.Decision, a.DecidedAt = state, &d, at
	return nil
}

// DecidedBy is the cause of a decision.
type DecidedBy string

// The causes: the user; the service, which cancels approvals of a turn that ends; the time.
const (
	DecidedByUser    DecidedBy = "user"
	DecidedByPolicy  DecidedBy = "policy"
	DecidedByTimeout DecidedBy = "timeout"
)

// ApprovalScope is what a call has access to.
type ApprovalScope struct {
	Resource string `json:"resource" doc:"What the call acts on, for example a host or an artifact; empty: nothing in particular."`
}

// ApprovalRequest asks the user whether a tool call may run. An approval is bound to exactly this input.
type ApprovalRequest struct {
	ApprovalID    ApprovalID      `json:"approval_id"`
	Action        string          `json:"action" doc:"The title of the tool."`
	Summary       string          `json:"summary" doc:"What the call does, in a sentence."`
	Risk          Risk            `json:"risk" enum:"low,medium,high,critical"`
	Reversibility Reversibility   `json:"reversibility" enum:"reversible,compensable,irreversible"`
	Effects       []string        `json:"effects" doc:"What changes if the call runs, each in a sentence."`
	Scope         ApprovalScope   `json:"scope"`
	Reasons       []string        `json:"reasons" doc:"Why it is asked, each in a sentence."`
	Marked        []string        `json:"marked,omitempty" doc:"Parts of the input that contain data of the account that would leave the service."`
	Input         json.RawMessage `json:"input" doc:"The input with which the call runs."`
	InputDigest   string          `json:"input_digest" doc:"Of the tool, its definition, its input and the turn: sha256: and 64 hexadecimal digits. A decision names it."`
	Options       []Decision      `json:"options" doc:"The decisions that are possible."`
	ExpiresAt     time.Time       `json:"expires_at"`
}

// Approval is the durable state of a request for approval.
type Approval struct {
	ApprovalID     ApprovalID      `json:"approval_id"`
	State          ApprovalState   `json:"state" enum:"pending,approved,rejected,expired,cancelled"`
	ConversationID ConversationID  `json:"conversation_id"`
	TurnID         TurnID          `json:"turn_id"`
	ToolID         ToolID          `json:"tool_id"`
	ToolName       string          `json:"tool_name"`
	Source         string          `json:"source" doc:"builtin, or the identifier of the binding that the tool comes from."`
	Action         string          `json:"action"`
	Summary        string          `json:"summary"`
	Risk           Risk            `json:"risk" enum:"low,medium,high,critical"`
	Reversibility  Reversibility   `json:"reversibility" enum:"reversible,compensable,irreversible"`
	Effects        []string        `json:"effects"`
	Scope          ApprovalScope   `json:"scope"`
	Reasons        []string        `json:"reasons" doc:"Why it is asked, each in a sentence."`
	Marked         []string        `json:"marked,omitempty" doc:"Parts of the input that contain data of the account that would leave the service."`
	Input          json.RawMessage `json:"input" doc:"Null if it has more than 64 KiB, except in the response of GET /approvals/{approval_id}."`
	InputDigest    string          `json:"input_digest"`
	Options        []Decision      `json:"options"`
	CreatedAt      time.Time       `json:"created_at"`
	ExpiresAt      time.Time       `json:"expires_at"`
	DecidedAt      *time.Time      `json:"decided_at"`
	Decision       *Decision       `json:"decision" doc:"Null while the approval is pending."`
}

// maxBriefInput is the size of an input, in bytes, that an approval has where it is not read by itself.
const maxBriefInput = 64 << 10

// Brief returns the approval without its input if that is long.
func (a Approval) Brief() Approval {
	if len(a.Input) > maxBriefInput {
		a.Input = nil
	}
	return a
}

// ApprovalRequested asks for an approval. The call runs only after a decision of the user.
type ApprovalRequested struct {
	PartID   PartID          `json:"part_id"`
	ToolID   ToolID          `json:"tool_id"`
	Approval ApprovalRequest `json:"approval"`
}

// ApprovalResolved reports the decision on an approval.
type ApprovalResolved struct {
	PartID     PartID          `json:"part_id"`
	ToolID     ToolID          `json:"tool_id"`
	ApprovalID ApprovalID      `json:"approval_id"`
	Decision   Decision        `json:"decision" enum:"approve_once,approve_for_conversation,approve_with_edits,reject,expired,cancelled"`
	By         DecidedBy       `json:"by" enum:"user,policy,timeout"`
	Input      json.RawMessage `json:"input,omitempty" doc:"With approve_with_edits: the input with which the call runs instead."`
	Reason     string          `json:"reason,omitempty" doc:"The reason that the user gave for a rejection."`
}

// EventType implements Payload.
func (*ApprovalRequested) EventType() EventType { return "approval.requested" }

// EventType implements Payload.
func (*ApprovalResolved) EventType() EventType { return "approval.resolved" }
