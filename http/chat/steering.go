package chat

import (
	stdhttp "net/http"
	"strings"

	"turnstone/actors/turn"
	"turnstone/actors/turn/machine"
	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// steeringRequest is the body of POST /chat/steering. Its type determines which other fields apply.
type steeringRequest struct {
	Type             string               `json:"type" enum:"input,cancel,approval,withdraw,apply_now"`
	TurnID           protocol.TurnID      `json:"turn_id"`
	ClientSteeringID string               `json:"client_steering_id,omitempty" maxLength:"128" doc:"For input: required; a name for the input that the client chooses. An input that is repeated with the same name is accepted once."`
	Input            []protocol.InputItem `json:"input,omitempty" maxItems:"32" doc:"For input: text only, up to 16,000 characters."`
	Delivery         protocol.Delivery    `json:"delivery,omitempty" enum:"next_step,interrupt" doc:"For input: next_step (default) applies the input when the model has finished its current sentence, or after the tools that run; interrupt stops the model within the sentence."`
	SeenSequence     *int64               `json:"seen_sequence,omitempty" minimum:"0" doc:"For cancel: the sequence of the last event that the user has seen."`
	Scope            protocol.CancelScope `json:"scope,omitempty" enum:"turn,turn_and_follow_ups" doc:"For cancel: turn (default) cancels the turn and holds the queued follow-ups; turn_and_follow_ups cancels both."`
	SteeringID       *protocol.SteeringID `json:"steering_id,omitempty" doc:"For withdraw and apply_now: required; the input."`
	ApprovalID       *protocol.ApprovalID `json:"approval_id,omitempty" doc:"For approval: required."`
	Decision         protocol.Decision    `json:"decision,omitempty" enum:"approve_once,approve_for_conversation,approve_with_edits,reject" doc:"For approval: required, one of the options of the approval."`
	InputDigest      string               `json:"input_digest,omitempty" maxLength:"71" pattern:"^sha256:[0-9a-f]{64}$" patternDescription:"sha256: and 64 hexadecimal digits" doc:"For approval: required; that of the approval which the user has seen."`
	EditedInput      editedInput          `json:"edited_input,omitempty" doc:"For approve_with_edits: required; the input with which the call runs instead."`
	Reason           string               `json:"reason,omitempty" maxLength:"500" doc:"For reject: why; the model reads it."`
}

type steeringInput struct{ Body steeringRequest }

// postSteering sends a command to the owner of the turn, and responds 202 once the command is durable.
func (h *Handlers) postSteering(w stdhttp.ResponseWriter, r *stdhttp.Request, in *steeringInput) error {
	account := exchange.CallerOf(r.Context()).AccountID
	command, err := in.Body.command()
	if err != nil {
		return err
	}
	if err := exchange.CheckReservedSlot(r.Context(), cancels(command)); err != nil {
		return err
	}
	if err := h.drawCommand(r, command, account); err != nil {
		return err
	}
	if command.Kind == machine.CommandDecide {
		command.Session = exchange.CallerOf(r.Context()).SessionID
		// An approval of a deleted conversation cannot be decided any more, also if its turn is still ending.
		if _, err := h.Approvals.Get(r.Context(), account, command.ApprovalID); err != nil {
			return err
		}
	}
	return h.command(w, r, in.Body.TurnID, command)
}

// drawCommand draws from the chat bucket. A cancel first draws from its reserve: neither an exhausted chat quota nor
// many cancels prevent an account from stopping a turn, as long as the other bucket is not exhausted.
func (h *Handlers) drawCommand(r *stdhttp.Request, command *machine.Command, account protocol.AccountID) error {
	if cancels(command) {
		if err := h.Limits.Draw(r.Context(), route.BucketCancel, account.String()); protocol.CodeOf(err) != protocol.CodeRateLimited || err == nil {
			return err
		}
	}
	return h.Limits.Draw(r.Context(), route.BucketChat, account.String())
}

// cancels reports whether a command is a cancel.
func cancels(command *machine.Command) bool { return command.Kind == machine.CommandCancel }

func (h *Handlers) command(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, command *machine.Command) error {
	command.RequestID = exchange.RequestIDOf(r.Context())
	receipt, err := h.Turns.Command(r.Context(), exchange.CallerOf(r.Context()).AccountID, turn, command)
	if err = failpoint.Respond(acceptedPoint(command), err); err != nil {
		return err
	}
	return response.SendJSON(w, stdhttp.StatusAccepted, receipt)
}

func acceptedPoint(command *machine.Command) failpoint.Point {
	if command.Kind == machine.CommandCancel {
		return failpoint.CancelAfterCommit
	}
	return failpoint.SteerAfterCommit
}

// command returns the request as a command.
func (b *steeringRequest) command() (*machine.Command, error) {
	switch b.Type {
	case "approval":
		return b.decision()
	case "cancel":
		scope := b.Scope
		if scope == "" {
			scope = protocol.CancelTurn
		}
		return &machine.Command{
			Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: protocol.CancelledByUser, Seen: b.SeenSequence,
		}, nil
	case "withdraw", "apply_now":
		if b.SteeringID == nil {
			return nil, protocol.Invalid("body.steering_id", "is required")
		}
		kind := machine.CommandWithdraw
		if b.Type == "apply_now" {
			kind = machine.CommandApply
		}
		return &machine.Command{Kind: kind, SteeringID: *b.SteeringID}, nil
	}
	if strings.TrimSpace(b.ClientSteeringID) == "" {
		return nil, protocol.Invalid("body.client_steering_id", "is required")
	}
	text, attachments, err := readInput(b.Input)
	if err == nil {
		err = protocol.CheckSteering(text, len(attachments))
	}
	if err != nil {
		return nil, err
	}
	return turn.InputCommand(b.ClientSteeringID, text, b.Delivery), nil
}
