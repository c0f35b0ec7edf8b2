package machine

import (
	"encoding/json"
	"fmt"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Command is a command to a live turn. Kind determines which fields are used.
type Command struct {
	Kind       CommandKind
	SteeringID protocol.SteeringID // new for input, cancel and decision; the input's own for withdraw and apply
	ClientID   string              // input: client_steering_id
	Text       string              // input
	Delivery   protocol.Delivery   // input
	Hash       string              // input, decision: hash of the body, to distinguish a repeat from another command of that name
	Scope      protocol.CancelScope
	By         protocol.CancelledBy
	Seen       *int64 // cancel: the sequence that the caller had seen

	// Of a decision on an approval, together with Hash.
	ApprovalID  protocol.ApprovalID
	Decision    protocol.Decision
	Digest      string          // of the input that the user has seen
	EditedInput json.RawMessage // approve_with_edits
	Reason      string          // reject
	Session     protocol.SessionID

	RequestID string // of the HTTP request, for the log
}

// CommandKind is the kind of a Command.
type CommandKind uint8

// The kinds of commands.
const (
	CommandInput CommandKind = iota + 1
	CommandCancel
	CommandWithdraw
	CommandApply
	CommandDecide
)

// commandKinds are the names of the kinds, as nodes send them.
var commandKinds = map[CommandKind]string{CommandInput: "input", CommandCancel: "cancel", CommandWithdraw: "withdraw", CommandApply: "apply", CommandDecide: "decide"}

func (k CommandKind) String() string { return commandKinds[k] }

// CommandKindOf returns the kind with a name; 0 if there is none.
func CommandKindOf(name string) CommandKind {
	for kind, of := range commandKinds {
		if of == name {
			return kind
		}
	}
	return 0
}

// Command decides on a command. It returns a receipt, valid once the decision is durable, or the reason for a refusal.
func (m *Batch) Command(c *Command) (protocol.SteeringReceipt, error) {
	switch c.Kind {
	case CommandInput:
		return m.steer(c)
	case CommandCancel:
		return m.cancel(c)
	case CommandApply:
		return m.applyNow(c)
	case CommandDecide:
		return m.decide(c)
	}
	return m.withdraw(c)
}

// SteeringClosed is the current state in a 409 error for a turn that accepts no more input.
type SteeringClosed struct {
	TurnID protocol.TurnID    `json:"turn_id"`
	State  protocol.TurnState `json:"state"`
}

// NewSteeringClosed returns the 409 error for a turn that accepts no more input.
func NewSteeringClosed(turn protocol.TurnID, state protocol.TurnState) error {
	return protocol.Conflict(protocol.CodeSteeringClosed, SteeringClosed{turn, state}, "The turn no longer accepts input.")
}

// steer accepts an input, which will be applied or returned, exactly once. A repeat gets the first receipt.
func (m *Batch) steer(c *Command) (protocol.SteeringReceipt, error) {
	pending := 0
	for _, input := range m.inputs {
		if input.clientID == c.ClientID {
			if input.hash != c.Hash {
				return protocol.SteeringReceipt{}, ErrSteeringReused
			}
			return m.receipt(input.id, input.sequence, true), nil
		}
		if input.pending() {
			pending++
		}
	}
	if m.ended || !m.accepts || !m.state.AcceptsSteering() {
		return protocol.SteeringReceipt{}, NewSteeringClosed(m.spec.TurnID, m.state)
	}
	if len(m.inputs) >= protocol.MaxTurnInputs {
		return protocol.SteeringReceipt{}, protocol.Conflict(protocol.CodeNotDeliverable, SteeringClosed{m.spec.TurnID, m.state},
			fmt.Sprintf("The turn has accepted %d inputs, which is the limit.", len(m.inputs)))
	}
	if pending >= protocol.MaxPendingInputs {
		return protocol.SteeringReceipt{}, protocol.Errorf(protocol.CodeTooManyInputs, "%d inputs are already pending", pending)
	}
	if !m.hasLaterInput() {
		m.sentence = newSentenceScanner(m.text)
	}
	m.emit(&protocol.SteeringAccepted{SteeringID: c.SteeringID, ClientSteeringID: c.ClientID, Text: c.Text, Delivery: c.Delivery})
	receipt := m.receipt(c.SteeringID, m.sequence, false)
	m.record(turnlog.RecordSteering, c.ClientID, turnlog.SteeringRecord{SteeringID: c.SteeringID, Hash: c.Hash})
	if c.Delivery == protocol.DeliverInterrupt && m.calling && m.step() < maxModelSteps {
		m.interrupt()
	}
	return receipt, nil
}

// ErrSteeringReused means that a client used the name of one input for another.
var ErrSteeringReused = protocol.Invalid("body.client_steering_id", "was used for another input")

// cancel decides that the turn ends as cancelled. It has no effect before it is durable. A cancel with a wider scope
// than the earlier ones widens the scope; any other repeat gets the receipt of the cancel that covers it.
func (m *Batch) cancel(c *Command) (protocol.SteeringReceipt, error) {
	for _, earlier := range m.cancels {
		if earlier.Scope.Covers(c.Scope) {
			return m.receipt(earlier.SteeringID, earlier.sequence, true), nil
		}
	}
	if m.ended {
		return protocol.SteeringReceipt{}, NewSteeringClosed(m.spec.TurnID, m.state)
	}
	key := "" // of the first one
	if len(m.cancels) > 0 {
		key = string(c.Scope)
	}
	m.emit(&protocol.TurnCancelRequested{By: c.By, Scope: c.Scope, SeenSequence: c.Seen})
	receipt := m.receipt(c.SteeringID, m.sequence, false)
	m.record(turnlog.RecordCancel, key, cancelRequest{SteeringID: c.SteeringID, Scope: c.Scope})
	if m.state == protocol.TurnCancelling { // the wider scope counts when the turn ends
		return receipt, nil
	}
	m.move(protocol.TurnCancel, false)
	m.effect(StopModel{})
	m.effect(StopTools{})
	m.effect(StartGrace{})
	m.advance()
	return receipt, nil
}

// withdraw returns an input that was not applied. If the current model request contains the input and was not answered
// yet, the request is repeated without it.
func (m *Batch) withdraw(c *Command) (protocol.SteeringReceipt, error) {
	input := m.input(c.SteeringID)
	switch {
	case input == nil:
		return protocol.SteeringReceipt{}, protocol.Errorf(protocol.CodeNotFound, "no such input")
	case input.returned == protocol.ReturnWithdrawn:
		return m.receipt(input.id, input.returnedAt, true), nil
	case !input.pending() || m.ended || m.state == protocol.TurnCancelling:
		return protocol.SteeringReceipt{}, NewSteeringClosed(m.spec.TurnID, m.state)
	}
	m.emit(&protocol.SteeringReturned{SteeringID: input.id, Reason: protocol.ReturnWithdrawn})
	receipt := m.receipt(input.id, m.sequence, false)
	m.record(turnlog.RecordWithdraw, input.id.String(), turnlog.SteeringRecord{SteeringID: input.id})
	if m.calling && input.requestedIn == m.call {
		m.calling = false
		m.effect(StopModel{})
		m.text, m.splitter = nil, newFenceSplitter() // readers have seen none of this text
		m.advance()
	}
	return receipt, nil
}

// applyNow interrupts the model's answer, so that a pending input is applied at once. If the current model request
// already contains the input, or tools are running, nothing is interrupted: this request or the next step applies the
// input. A repeat gets the first receipt.
func (m *Batch) applyNow(c *Command) (protocol.SteeringReceipt, error) {
	input := m.input(c.SteeringID)
	switch {
	case input == nil:
		return protocol.SteeringReceipt{}, protocol.Errorf(protocol.CodeNotFound, "no such input")
	case input.applyAt > 0:
		return m.receipt(input.id, input.applyAt, true), nil
	case !input.pending() || m.ended || m.state == protocol.TurnCancelling:
		return protocol.SteeringReceipt{}, NewSteeringClosed(m.spec.TurnID, m.state)
	}
	if m.calling && input.requestedIn != m.call && m.step() < maxModelSteps {
		m.interrupt()
	}
	// Readers show the activity until the answer continues. The record is stored with this event.
	part := m.activity
	if part.IsZero() {
		part = m.newPart()
	}
	m.emit(&protocol.ActivityProgress{PartID: part, Activity: "applying_input", Label: "Applying your message"})
	m.record(turnlog.RecordApply, input.id.String(), turnlog.SteeringRecord{SteeringID: input.id})
	return m.receipt(input.id, m.sequence, false), nil
}
