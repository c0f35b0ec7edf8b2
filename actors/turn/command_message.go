package turn

import (
	"go.opentelemetry.io/otel/trace"

	"turnstone/actors/turn/machine"
	"turnstone/protocol"
)

// commandMessage passes a command to the actor of a turn.
type commandMessage struct {
	command *machine.Command
	from    trace.SpanContext
	reply   func(commandReply) // is called once, and does not block
}

type commandReply struct {
	receipt protocol.SteeringReceipt
	err     error
}

// send sends a command to a turn's actor. from is the span of the sender. reply is called once, with the decision after it
// is durable, or with errNotHere. It must not block.
func (h *Host) send(to *running, c *machine.Command, from trace.SpanContext, reply func(commandReply)) {
	if c.Kind == machine.CommandCancel && c.By == protocol.CancelledByDeletion {
		to.Work.deleting.Store(true)
	}
	h.Send(to, commandMessage{command: c, from: from, reply: reply})
}
