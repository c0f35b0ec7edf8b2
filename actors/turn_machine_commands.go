package actors

import (
	"fmt"

	"turnstone/protocol"
)

// Command is what a client asks of a live turn. Exactly one of its kinds is set by the constructor's caller in http.
type Command struct {
	Kind       CommandKind
	SteeringID protocol.SteeringID // new for input and cancel; the input's own for withdraw
	ClientID   string              // input: client_steering_id
	Text       string              // input
	Delivery   protocol.Delivery   // input
	Hash       string              // input: of the body, to tell a replay from a reuse
	Scope      protocol.CancelScope
	By         protocol.CancelledBy
	Seen       *int64 // cancel: the sequence that the caller had seen
	RequestID  string // of the request that brought it, for the log
}

// CommandKind says what a Command asks.
type CommandKind uint8

// The kinds of commands.
const (
	CommandInput CommandKind = iota + 1
	CommandCancel
	CommandWithdraw
)

// command decides a client's command: a receipt that is true once the decision is durable, or why not.
func (m *turnMachine) command(c *Command) (protocol.SteeringReceipt, error) {
	switch c.Kind {
	case CommandInput:
		return m.steer(c)
	case CommandCancel:
		return m.cancel(c)
	}
	return m.withdraw(c)
}

func (m *turnMachine) receipt(id protocol.SteeringID, sequence int64, replayed bool) protocol.SteeringReceipt {
	return protocol.SteeringReceipt{
		SteeringID: id, TurnID: m.spec.TurnID, State: "accepted", Sequence: sequence, Replayed: replayed,
	}
}

// SteeringClosed is what a 409 tells of a turn that takes no input any more.
type SteeringClosed struct {
	TurnID protocol.TurnID    `json:"turn_id"`
	State  protocol.TurnState `json:"state"`
}

func steeringClosed(turn protocol.TurnID, state protocol.TurnState) error {
	return protocol.Conflict(protocol.CodeSteeringClosed, SteeringClosed{turn, state}, "The turn takes no more input.")
}

// steer accepts an input; it will end applied or returned, once.
func (m *turnMachine) steer(c *Command) (protocol.SteeringReceipt, error) {
	pending := 0
	for _, input := range m.inputs {
		if input.clientID == c.ClientID {
			if input.hash != c.Hash {
				return protocol.SteeringReceipt{}, errSteeringReused
			}
			return m.receipt(input.id, input.sequence, true), nil
		}
		if input.pending() {
			pending++
		}
	}
	if m.ended || !m.accepts || !m.state.TakesInput() {
		return protocol.SteeringReceipt{}, steeringClosed(m.spec.TurnID, m.state)
	}
	if len(m.inputs) >= protocol.MaxTurnInputs {
		return protocol.SteeringReceipt{}, protocol.Conflict(protocol.CodeNotDeliverable, SteeringClosed{m.spec.TurnID, m.state},
			fmt.Sprintf("The turn has taken %d inputs, which is the limit.", len(m.inputs)))
	}
	if pending >= protocol.MaxPendingInputs {
		return protocol.SteeringReceipt{}, protocol.Errorf(protocol.CodeTooManyInputs, "%d inputs are waiting already", pending)
	}
	m.emit(&protocol.SteeringAccepted{SteeringID: c.SteeringID, ClientSteeringID: c.ClientID, Text: c.Text, Delivery: c.Delivery})
	receipt := m.receipt(c.SteeringID, m.sequence, false)
	m.record(protocol.RecordSteering, c.ClientID, protocol.SteeringRecord{SteeringID: c.SteeringID, Hash: c.Hash})
	if c.Delivery == protocol.DeliverInterrupt && m.calling && m.step() < maxModelSteps {
		m.interrupt()
	}
	return receipt, nil
}

var errSteeringReused = protocol.Invalid("body.client_steering_id", "was used for another input")

// interrupt cuts the model's answer and asks again with what waits. What was said so far stays, marked as cut.
func (m *turnMachine) interrupt() {
	m.calling = false
	m.effect(stopModel{})
	m.splitter.end(m)
	m.splitter = newFenceSplitter()
	m.closePart(true)
	m.settleCut()
	if len(m.text) > 0 {
		m.pending = nil // calls that were not intended yet are not made
		m.endStep(true)
	}
	m.startStep()
}

// cancel makes the turn end cancelled. Nothing of it is effective before it is durable. One with a wider scope than those
// before widens them; any other gets the receipt of the cancel that covers it.
func (m *turnMachine) cancel(c *Command) (protocol.SteeringReceipt, error) {
	for _, earlier := range m.cancels {
		if earlier.Scope.Covers(c.Scope) {
			return m.receipt(earlier.SteeringID, earlier.sequence, true), nil
		}
	}
	if m.ended {
		return protocol.SteeringReceipt{}, steeringClosed(m.spec.TurnID, m.state)
	}
	key := "" // of the first one
	if len(m.cancels) > 0 {
		key = string(c.Scope)
	}
	m.emit(&protocol.TurnCancelRequested{By: c.By, Scope: c.Scope, SeenSequence: c.Seen})
	receipt := m.receipt(c.SteeringID, m.sequence, false)
	m.record(protocol.RecordCancel, key, cancelRequest{SteeringID: c.SteeringID, Scope: c.Scope})
	if m.state == protocol.TurnCancelling { // the wider scope counts when the turn ends
		return receipt, nil
	}
	m.move("cancel", false)
	m.effect(stopModel{})
	m.effect(stopTools{})
	m.effect(startGrace{})
	m.finishWhenQuiet()
	return receipt, nil
}

// withdraw takes back an input that was not applied. A request that contains it and was not answered yet is made again
// without it.
func (m *turnMachine) withdraw(c *Command) (protocol.SteeringReceipt, error) {
	input := m.input(c.SteeringID)
	switch {
	case input == nil:
		return protocol.SteeringReceipt{}, protocol.Errorf(protocol.CodeNotFound, "no such input")
	case input.returned == reasonWithdrawn:
		return m.receipt(input.id, input.returnedAt, true), nil
	case !input.pending() || m.ended || m.state == protocol.TurnCancelling:
		return protocol.SteeringReceipt{}, steeringClosed(m.spec.TurnID, m.state)
	}
	m.emit(&protocol.SteeringReturned{SteeringID: input.id, Reason: reasonWithdrawn})
	receipt := m.receipt(input.id, m.sequence, false)
	m.record(protocol.RecordWithdraw, input.id.String(), protocol.SteeringRecord{SteeringID: input.id})
	if m.calling && input.asked == m.call {
		m.effect(stopModel{})
		m.text, m.splitter = nil, newFenceSplitter() // nothing of it was shown
		m.startStep()
	}
	return receipt, nil
}
