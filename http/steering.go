package http

import (
	"crypto/sha256"
	"encoding/hex"
	stdhttp "net/http"
	"strings"

	"turnstone/actors"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// steeringRequest is the body of POST /chat/steering; type says which fields count.
type steeringRequest struct {
	Type             string               `json:"type" enum:"input,cancel,approval,withdraw"`
	TurnID           protocol.TurnID      `json:"turn_id"`
	ClientSteeringID string               `json:"client_steering_id,omitempty" maxLength:"128" doc:"input: names it, so that a repeat is harmless."`
	Input            []protocol.InputItem `json:"input,omitempty" maxItems:"32" doc:"input: text only, 16,000 characters."`
	Delivery         protocol.Delivery    `json:"delivery,omitempty" enum:"next_step,interrupt" doc:"input: at the next model step (default), or at once."`
	SeenSequence     *int64               `json:"seen_sequence,omitempty" minimum:"0" doc:"cancel: the last event that the user had seen."`
	Scope            protocol.CancelScope `json:"scope,omitempty" enum:"turn,turn_and_follow_ups" doc:"cancel: turn (default) holds the queue, turn_and_follow_ups cancels it too."`
	SteeringID       *protocol.SteeringID `json:"steering_id,omitempty" doc:"withdraw: the input to take back."`
	ApprovalID       string               `json:"approval_id,omitempty" maxLength:"64"`
	Decision         string               `json:"decision,omitempty" enum:"approve_once,approve_for_conversation,approve_with_edits,reject"`
	InputDigest      string               `json:"input_digest,omitempty" maxLength:"128"`
}

type steeringInput struct{ Body steeringRequest }

// bucketCancel is a reserve beside the chat bucket: Stop works for one who is over quota.
const bucketCancel bucket = "cancel"

// postSteering hands a command to the turn's owner and answers 202 once it is durable.
func (s *Server) postSteering(w stdhttp.ResponseWriter, r *stdhttp.Request, in *steeringInput) error {
	account := callerOf(r.Context()).AccountID
	command, err := in.Body.command()
	if err != nil {
		return err
	}
	if err := s.keepSlot(exchangeOf(r.Context()), cancels(command)); err != nil {
		return err
	}
	if err := s.drawCommand(w, r, command, account); err != nil {
		return err
	}
	if command == nil { // no tool that exists asks for an approval, so there is none to decide
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	return s.command(w, r, in.Body.TurnID, command)
}

// drawCommand draws from the chat boundary, a cancel from its reserve first: neither the chat quota nor many cancels keep
// anybody from stopping a turn while the other has something left.
func (s *Server) drawCommand(w stdhttp.ResponseWriter, r *stdhttp.Request, command *actors.Command, account protocol.AccountID) error {
	if cancels(command) {
		if err := s.draw(w, r, bucketCancel, account.String()); protocol.CodeOf(err) != protocol.CodeRateLimited || err == nil {
			return err
		}
	}
	return s.draw(w, r, bucketChat, account.String())
}

// cancels reports whether a command, nil for an approval, is a cancel.
func cancels(command *actors.Command) bool {
	return command != nil && command.Kind == actors.CommandCancel
}

func (s *Server) command(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, command *actors.Command) error {
	receipt, err := s.ask(r, turn, command)
	if err != nil {
		return err
	}
	return s.answerJSON(w, stdhttp.StatusAccepted, receipt)
}

func (s *Server) ask(r *stdhttp.Request, turn protocol.TurnID, command *actors.Command) (protocol.SteeringReceipt, error) {
	command.RequestID = requestIDOf(r.Context())
	receipt, err := s.Turns.Command(r.Context(), callerOf(r.Context()).AccountID, turn, command)
	return receipt, failpoint.Answer(acceptedPoint(command), err)
}

func acceptedPoint(command *actors.Command) failpoint.Point {
	if command.Kind == actors.CommandCancel {
		return failpoint.CancelAfterCommit
	}
	return failpoint.SteerAfterCommit
}

// command reads the request as one command; nil for an approval.
func (b *steeringRequest) command() (*actors.Command, error) {
	switch b.Type {
	case "approval":
		if b.ApprovalID == "" || b.Decision == "" {
			return nil, protocol.Invalid("body.approval_id", "and decision are needed")
		}
		return nil, nil //nolint:nilnil // see postSteering
	case "cancel":
		scope := b.Scope
		if scope == "" {
			scope = protocol.CancelTurn
		}
		return &actors.Command{
			Kind: actors.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: protocol.CancelledByUser, Seen: b.SeenSequence,
		}, nil
	case "withdraw":
		if b.SteeringID == nil {
			return nil, protocol.Invalid("body.steering_id", "is needed")
		}
		return &actors.Command{Kind: actors.CommandWithdraw, SteeringID: *b.SteeringID}, nil
	}
	if strings.TrimSpace(b.ClientSteeringID) == "" {
		return nil, protocol.Invalid("body.client_steering_id", "is needed")
	}
	text, err := inputText(b.Input, protocol.MaxSteeringRunes)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, protocol.Invalid("body.input", "holds no text")
	}
	return inputCommand(b.ClientSteeringID, text, b.Delivery), nil
}

func inputCommand(clientID, text string, delivery protocol.Delivery) *actors.Command {
	if delivery == "" {
		delivery = protocol.DeliverNextStep
	}
	hash := sha256.Sum256([]byte(string(delivery) + "\x00" + text))
	return &actors.Command{
		Kind: actors.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: clientID, Text: text, Delivery: delivery,
		Hash: hex.EncodeToString(hash[:]),
	}
}

// steerInstead is POST /chat with if_busy steer while a turn is live. Its idempotency key names the input, so that a
// repeat steers once.
func (s *Server) steerInstead(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, start *protocol.TurnStart) error {
	name := protocol.NewSteeringID().String()
	if start.Idempotency != nil {
		name = start.Idempotency.Key
	}
	receipt, err := s.ask(r, turn, inputCommand(name, start.Input, protocol.DeliverNextStep))
	if err != nil {
		return err
	}
	if receipt.Replayed {
		return s.repeatAccepted(w, nil, &receipt)
	}
	return s.answerJSON(w, stdhttp.StatusAccepted, receipt)
}

// answerJSON is for stream routes whose answer turned out to be none.
func (s *Server) answerJSON(w stdhttp.ResponseWriter, status int, value any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return writeJSON(w, value)
}

var _ Turns = (*actors.Node)(nil)
