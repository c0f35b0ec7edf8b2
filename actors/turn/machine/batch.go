package machine

import (
	"encoding/json"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Batch lets a machine decide on a series of triggers, which become one step of the actor. Its methods are the
// triggers. They change the machine and add to the decision; a trigger that comes too late changes nothing.
type Batch struct {
	*Machine
	Decision
	Now    time.Time           // of the decisions; zero: a turn without tools that need an approval
	inline [2]protocol.Payload // initial storage of Events: most decisions have one event
}

// Decision is the result of a batch. First the events and records become durable, then the events become visible, then
// the effects start, then the callers get their replies.
type Decision struct {
	Events  []protocol.Payload
	Records []turnlog.Record
	Effects []Effect
	End     *End // nil: the turn continues
}

// NewBatch starts a batch. The decision of the batch before it must have been stored, or the machine be given up.
func (m *Machine) NewBatch() *Batch {
	b := &Batch{Machine: m}
	b.Events = b.inline[:0]
	return b
}

// OnlyText reports whether the decision contains nothing but more text of one part.
func (d *Decision) OnlyText() bool {
	if len(d.Events) != 1 || len(d.Records) > 0 || len(d.Effects) > 0 || d.End != nil {
		return false
	}
	switch d.Events[0].(type) {
	case *protocol.AnswerDelta, *protocol.CodeDelta, *protocol.ReasoningDelta:
		return true
	}
	return false
}

// Effect is an action outside the machine that is performed after the commit.
type Effect interface{ isEffect() }

type (
	// CallModel starts the model call Machine.Call, with the request that Machine.CallInput describes. Its output comes
	// back as triggers that name the call.
	CallModel struct{}
	// StopModel ends the current model call.
	StopModel struct{}
	// RunTool starts a tool call. Its result comes back as ToolEnded.
	RunTool struct {
		ID          protocol.ToolID
		Name        string
		Input       json.RawMessage
		FirstSource int // see toolbox.Call

		// Of a call of policy.ReadMore: Output is its output, if the account consents to the source.
		Consent protocol.MemorySource
		Output  string
	}
	// CheckTool checks a call before its approval is requested. The result comes back as ToolChecked.
	CheckTool struct {
		ID    protocol.ToolID
		Name  string
		Input json.RawMessage
	}
	// StopTools ends all tool calls.
	StopTools struct{}
	// StartGrace starts the grace period of a cancel. Its end comes back as GraceOver.
	StartGrace struct{}
)

func (CallModel) isEffect()  {}
func (StopModel) isEffect()  {}
func (RunTool) isEffect()    {}
func (CheckTool) isEffect()  {}
func (StopTools) isEffect()  {}
func (StartGrace) isEffect() {}

// End is the end of a turn. It is stored in one transaction with the last events, the final message and the changes to
// the queue.
type End struct {
	State        protocol.TurnState
	Reason       protocol.StopReason
	Usage        protocol.Usage
	Err          *protocol.TurnError
	Returned     []turnlog.ReturnedInput
	CancelQueue  bool // the queue is cancelled too
	Repaired     bool // the turn was restored from a damaged log
	WithoutParts bool // the message is stored without the parts of the answer
}

// MessageStatus returns the status of the assistant's message.
func (e *End) MessageStatus() protocol.MessageStatus {
	switch e.State {
	case protocol.TurnCompleted:
		return protocol.MessageComplete
	case protocol.TurnCancelled:
		return protocol.MessageCancelled
	case protocol.TurnFailed:
		return protocol.MessageFailed
	}
	return protocol.MessageIncomplete
}
