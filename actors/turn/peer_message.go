package turn

import (
	"encoding/json"
	"errors"

	"turnstone/actors/turn/machine"
	"turnstone/protocol"
)

// What nodes send to each other about turns. Nodes of two releases run at the same time, so the names of fields and kinds do
// not change, and a later release only adds to them: testdata/peer_message.golden has one of each.
const (
	askCommand  = "command" // the ask that passes a command to a turn of another node
	kindAdopted = "adopted" // the message that a turn has a new owner
)

// The bodies of kindAdopted, and of askCommand and its reply.
type (
	adoptedMessage struct {
		TurnID protocol.TurnID `json:"turn_id"`
		Owner  string          `json:"owner,omitempty"` // address of the sender
	}
	commandAsk struct {
		AccountID protocol.AccountID `json:"account_id"`
		TurnID    protocol.TurnID    `json:"turn_id"`
		Command   *peerCommand       `json:"command"`
		Span      string             `json:"span,omitempty"` // of the sender, see observe.Encode
	}
	commandResponse struct {
		Receipt protocol.SteeringReceipt `json:"receipt"`
		Gone    bool                     `json:"gone,omitempty"` // the turn does not run on the node that was asked
		Error   *peerError               `json:"error,omitempty"`
	}
	peerError struct {
		Code       protocol.Code         `json:"code"`
		Detail     string                `json:"detail"`
		Fields     []protocol.FieldError `json:"fields,omitempty"`
		Current    json.RawMessage       `json:"current,omitempty"`
		RetryAfter int                   `json:"retry_after,omitempty"`
	}
)

// peerCommand is a machine.Command between nodes. The fields of the previous release have the names and the number of its Go
// type; they are sent until no node of it can run at the same time as this one.
type peerCommand struct {
	Kind       string               `json:"command_kind,omitempty"` // as machine.CommandKind.String; empty from the previous release
	SteeringID protocol.SteeringID  `json:"steering_id,omitzero"`
	ClientID   string               `json:"client_steering_id,omitempty"`
	Text       string               `json:"text,omitempty"`
	Delivery   protocol.Delivery    `json:"delivery,omitempty"`
	Hash       string               `json:"hash,omitempty"`
	Scope      protocol.CancelScope `json:"scope,omitempty"`
	By         protocol.CancelledBy `json:"by,omitempty"`
	Seen       *int64               `json:"seen,omitempty"`
	RequestID  string               `json:"request_id,omitempty"`

	ApprovalID  protocol.ApprovalID `json:"approval_id,omitzero"`
	Decision    protocol.Decision   `json:"decision,omitempty"`
	Digest      string              `json:"input_digest,omitempty"`
	EditedInput json.RawMessage     `json:"edited_input,omitempty"`
	Reason      string              `json:"reason,omitempty"`
	Session     protocol.SessionID  `json:"session_id,omitzero"`

	FormerKind       machine.CommandKind `json:"Kind"`
	FormerSteeringID protocol.SteeringID `json:"SteeringID"`
	FormerClientID   string              `json:"ClientID,omitempty"`
	FormerRequestID  string              `json:"RequestID,omitempty"`
}

func peerCommandOf(c *machine.Command) *peerCommand {
	return &peerCommand{
		Kind: c.Kind.String(), SteeringID: c.SteeringID, ClientID: c.ClientID, Text: c.Text, Delivery: c.Delivery, Hash: c.Hash, Scope: c.Scope, By: c.By,
		Seen: c.Seen, RequestID: c.RequestID,
		ApprovalID: c.ApprovalID, Decision: c.Decision, Digest: c.Digest, EditedInput: c.EditedInput, Reason: c.Reason, Session: c.Session,
		FormerKind: c.Kind, FormerSteeringID: c.SteeringID, FormerClientID: c.ClientID, FormerRequestID: c.RequestID,
	}
}

// command returns the command; nil for a kind of a later release.
func (w *peerCommand) command() *machine.Command {
	c := &machine.Command{
		Kind: w.FormerKind, SteeringID: w.FormerSteeringID, ClientID: w.FormerClientID, Text: w.Text, Delivery: w.Delivery, Hash: w.Hash, Scope: w.Scope, By: w.By,
		Seen: w.Seen, RequestID: w.FormerRequestID,
		ApprovalID: w.ApprovalID, Decision: w.Decision, Digest: w.Digest, EditedInput: w.EditedInput, Reason: w.Reason, Session: w.Session,
	}
	if w.Kind != "" {
		c.Kind, c.SteeringID, c.ClientID, c.RequestID = machine.CommandKindOf(w.Kind), w.SteeringID, w.ClientID, w.RequestID
	}
	if c.Kind == 0 {
		return nil
	}
	return c
}

// encode encodes a body, which always succeeds.
func encode(body any) []byte {
	text, _ := json.Marshal(body)
	return text
}

// peerErrorOf encodes an error, except errNotHere, for another node. The cause of the error is not sent.
func peerErrorOf(err error) *peerError {
	if err == nil || errors.Is(err, errNotHere) {
		return nil
	}
	failed := &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: 1}
	errors.As(err, &failed)
	encoded := &peerError{Code: failed.Code, Detail: failed.Detail, Fields: failed.Fields, RetryAfter: failed.RetryAfter}
	if failed.Current != nil {
		encoded.Current, _ = json.Marshal(failed.Current) // it is encoded for the client anyway
	}
	return encoded
}

// formerOutcomeUnknown is protocol.OutcomeUnknown of a node of an earlier version.
const formerOutcomeUnknown = "outcome_unknown"

// asError returns the error that another node has encoded; nil for nil.
func (e *peerError) asError() error {
	if e == nil {
		return nil
	}
	failed := &protocol.Error{Code: e.Code, Detail: e.Detail, Fields: e.Fields, RetryAfter: e.RetryAfter}
	if failed.Detail == formerOutcomeUnknown {
		failed.Detail = protocol.OutcomeUnknown
	}
	if e.Current != nil {
		failed.Current = e.Current
	}
	return failed
}
