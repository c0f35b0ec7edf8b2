package actors

import (
	"encoding/json"
	"fmt"

	"turnstone/protocol"
)

// turnMachine decides what a turn does. It is pure: no clock, store, goroutine or randomness; time and identifiers come
// in as values. It is also event-sourced: what must survive a crash changes only in apply and applyRecord, which run
// alike when an event is decided and when the log is read again after a takeover.
type turnMachine struct {
	// Set by newTurnMachine.
	spec      *protocol.TurnSpec
	tools     map[string]ToolSpec
	continues bool // the model goes on from a prefix

	// Durable: changed by apply and applyRecord only.
	state     protocol.TurnState
	accepts   bool
	sequence  int64 // of the last event
	fold      protocol.Fold
	parts     int // parts ever made: the next part's number
	calls     int // tool calls ever made: the next call's number
	stepParts []protocol.PartID
	activity  protocol.PartID // the activity that is shown for this step; zero: none
	open      protocol.PartID // the open text, code or reasoning part; zero: none
	openType  protocol.PartType
	steps     []stepResult
	toolCalls []*toolCall // of the last finished step
	results   map[protocol.ToolID]toolResult
	rounds    int // steps that called tools
	inputs    []*steeringInput
	cancels   []cancelRequest // the second one has the wider scope
	adoptions int
	output    int // bytes that the model said, the inputs of its calls included
	logged    int // bytes of the log; added by the shell, which encodes it
	ended     bool
	mended    bool // read from a log of which something is missing: good for nothing but the turn's end

	// Of the running process: lost with it, made anew by adopt.
	call     int  // number of the model call; chunks of another one are late
	calling  bool // a model call is out
	retried  bool // this step's one continuation was used
	cut      []protocol.PartID
	splitter fenceSplitter
	text     []byte // what the model said in this step, fences included
	pending  []ModelToolCall
	opaque   json.RawMessage
	owner    string // of opaque
	stepUsage
	d *decision
}

// stepResult is a finished model step: what later steps need to see of it. It is stored as a record before any of its
// tools runs.
type stepResult struct {
	Step   int               `json:"step"`
	Text   string            `json:"text"`
	Calls  []ModelToolCall   `json:"calls,omitempty"`
	Tools  []protocol.ToolID `json:"tools,omitempty"` // of Calls, in their order
	Opaque json.RawMessage   `json:"opaque,omitempty"`
	Owner  string            `json:"owner,omitempty"` // the provider family that made Opaque
	Cut    bool              `json:"cut,omitempty"`   // ended by an interrupt
	Usage  ModelUsage        `json:"usage"`
}

type toolCall struct {
	id       protocol.ToolID
	part     protocol.PartID
	name     string
	input    json.RawMessage
	state    protocol.ToolState
	readOnly bool
}

type steeringInput struct {
	id         protocol.SteeringID
	clientID   string
	text       string
	delivery   protocol.Delivery
	sequence   int64
	hash       string
	step       int    // > 0: applied in that step
	returned   string // the reason, when it was returned
	returnedAt int64  // the sequence, when it was returned

	asked int // of the running process: the number of the model call that contains it
}

// pending reports whether the input is neither applied nor returned yet.
func (i *steeringInput) pending() bool { return i.step == 0 && i.returned == "" }

const reasonWithdrawn = "withdrawn"

type cancelRequest struct {
	SteeringID protocol.SteeringID  `json:"steering_id"`
	Scope      protocol.CancelScope `json:"scope"`
	sequence   int64
}

// decision is what one run of triggers leads to: first the events and records become durable, then the events become
// visible, then the effects happen, then the answers are given.
type decision struct {
	events  []protocol.Payload
	records []protocol.TurnRecord
	effects []effect
	ending  *ending
	few     [2]protocol.Payload // where events begins: most decisions have one
}

func newDecision() *decision {
	d := new(decision)
	d.events = d.few[:0]
	return d
}

// effect is something to be done in the world after the commit.
type effect interface{ isEffect() }

type (
	callModel  struct{ call, step int }
	stopModel  struct{}
	runTool    struct{ call *toolCall }
	stopTools  struct{}
	startGrace struct{} // of cancelling
)

func (callModel) isEffect()  {}
func (stopModel) isEffect()  {}
func (runTool) isEffect()    {}
func (stopTools) isEffect()  {}
func (startGrace) isEffect() {}

// ending is how a turn ends.
type ending struct {
	state  protocol.TurnState
	reason protocol.StopReason
	usage  protocol.Usage
	err    *protocol.TurnError
	parked []protocol.ParkedInput
	drop   bool // the queue goes with it
	mended bool
	bare   bool // without the parts of the answer
}

// Limits of one turn, beside those that its route sets.
const (
	maxModelSteps = 64 // model calls of one turn, so that steering cannot keep one alive for ever
	maxToolCalls  = 50 // tool calls of one turn
	// maxTurnOutput is what a model may say in one turn, in bytes; more is no answer that anybody reads. maxTurnLog bounds what a
	// takeover and the end of the turn hold in memory: the budget of the largest profile with an event for each token.
	maxTurnOutput = 8 << 20
	maxTurnLog    = 32 << 20

	maxAdoptions = 3 // takeovers before a turn is given up as incomplete
	budgetFactor = 4 // a turn begins no further step once its output reached so many times what one step may say
)

func newTurnMachine(spec *protocol.TurnSpec, tools map[string]ToolSpec, continues bool) *turnMachine {
	return &turnMachine{
		spec: spec, tools: tools, continues: continues,
		state: protocol.TurnQueued, results: map[protocol.ToolID]toolResult{}, d: newDecision(), splitter: newFenceSplitter(),
	}
}

// restoreTurnMachine reads a turn back from its log.
func restoreTurnMachine(stored *protocol.StoredTurn, tools map[string]ToolSpec, continues bool) (*turnMachine, error) {
	m := newTurnMachine(stored.Spec, tools, continues)
	bySequence := map[int64][]protocol.TurnRecord{}
	for _, record := range stored.Records {
		bySequence[record.Sequence] = append(bySequence[record.Sequence], record)
	}
	for line := range protocol.FrameLines(stored.Frames) {
		envelope, payload, err := protocol.DecodeEvent(line)
		if err != nil {
			return nil, err
		}
		if envelope.Sequence != m.sequence+1 {
			return nil, fmt.Errorf("the log of %s jumps from %d to %d", m.spec.TurnID, m.sequence, envelope.Sequence)
		}
		if payload == nil { // of a later version: what it changed is not known here
			return nil, fmt.Errorf("the log of %s has an event of the unknown type %s", m.spec.TurnID, envelope.Type)
		}
		m.apply(payload)
		m.logged += len(line) + 1
		for _, record := range bySequence[m.sequence] {
			if err := m.applyRecord(record); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// take hands out what was decided since the last take.
func (m *turnMachine) take() *decision {
	d := m.d
	m.d = newDecision()
	return d
}

// emit decides an event.
func (m *turnMachine) emit(payload protocol.Payload) {
	m.apply(payload)
	m.d.events = append(m.d.events, payload)
}

// record decides a private record, which goes with the last event.
func (m *turnMachine) record(kind, key string, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic("actors: a record cannot be encoded: " + err.Error())
	}
	record := protocol.TurnRecord{Kind: kind, Key: key, Sequence: m.sequence, Body: encoded}
	if err := m.applyRecord(record); err != nil {
		panic("actors: a record cannot be applied: " + err.Error())
	}
	m.d.records = append(m.d.records, record)
}

func (m *turnMachine) effect(e effect) { m.d.effects = append(m.d.effects, e) }

// move makes a legal move and tells it. An illegal one is a defect: the actor stops before anything is stored.
func (m *turnMachine) move(trigger string, accepts bool) {
	to, ok := protocol.NextTurnState(m.state, trigger)
	if !ok {
		panic(fmt.Sprintf("actors: turn in %s cannot %s", m.state, trigger))
	}
	if to != m.state || accepts != m.accepts {
		m.emit(&protocol.TurnStateChanged{State: to, AcceptingSteering: accepts})
	}
}

// apply changes the durable state by one event.
func (m *turnMachine) apply(payload protocol.Payload) {
	m.sequence++
	m.fold.Apply(payload)
	switch p := payload.(type) {
	case *protocol.TurnStarted:
		m.accepts = p.AcceptingSteering
	case *protocol.TurnStateChanged:
		m.state, m.accepts = p.State, p.AcceptingSteering
	case *protocol.AnswerDelta:
		m.output += len(p.Delta)
	case *protocol.CodeDelta:
		m.output += len(p.Delta)
	case *protocol.ReasoningDelta:
		m.output += len(p.Delta)
	case *protocol.AnswerStarted:
		m.opened(p.PartID, protocol.PartText, p.Supersedes)
	case *protocol.CodeStarted:
		m.opened(p.PartID, protocol.PartCode, p.Supersedes)
	case *protocol.ReasoningStarted:
		m.opened(p.PartID, protocol.PartReasoning, p.Supersedes)
	case *protocol.AnswerCompleted, *protocol.CodeCompleted, *protocol.ReasoningCompleted:
		m.open = protocol.PartID{}
	case *protocol.ToolStarted:
		m.parts++
		m.calls++
		m.output += len(p.Input)
		m.toolCalls = append(m.toolCalls, &toolCall{
			id: p.ToolID, part: p.PartID, name: p.ToolName, input: p.Input, state: p.State,
			readOnly: m.tools[p.ToolName].ReadOnly,
		})
	case *protocol.ToolStateChanged:
		if call := m.tool(p.ToolID); call != nil {
			call.state = p.State
		}
	case *protocol.ToolCompleted:
		if call := m.tool(p.ToolID); call != nil {
			call.state = p.State
		}
		m.results[p.ToolID] = toolResultOf(p)
	case *protocol.SteeringAccepted:
		m.inputs = append(m.inputs, &steeringInput{
			id: p.SteeringID, clientID: p.ClientSteeringID, text: p.Text, delivery: p.Delivery, sequence: m.sequence,
		})
	case *protocol.SteeringApplied:
		m.parts++
		if input := m.input(p.SteeringID); input != nil {
			input.step = p.Step
		}
	case *protocol.SteeringReturned:
		if input := m.input(p.SteeringID); input != nil {
			input.returned, input.returnedAt = p.Reason, m.sequence
		}
	case *protocol.Notice:
		m.parts++
	case *protocol.ActivityProgress:
		if m.activity != p.PartID {
			m.parts++
			m.activity = p.PartID
		}
	case *protocol.TurnRecoveringEvent:
		m.adoptions = p.Attempt
	case *protocol.TurnFinished:
		m.ended = true
	}
}

func (m *turnMachine) opened(id protocol.PartID, kind protocol.PartType, supersedes []protocol.PartID) {
	m.parts++
	if len(supersedes) > 0 {
		m.stepParts = nil
	}
	m.stepParts = append(m.stepParts, id)
	m.open, m.openType = id, kind
}

// applyRecord changes the durable state by one private record.
func (m *turnMachine) applyRecord(record protocol.TurnRecord) error {
	var err error
	switch record.Kind {
	case protocol.RecordStep:
		var step stepResult
		if err = json.Unmarshal(record.Body, &step); err == nil {
			m.steps = append(m.steps, step)
			m.stepParts, m.toolCalls, m.activity = nil, nil, protocol.PartID{}
			if len(step.Calls) > 0 {
				m.rounds++
			}
		}
	case protocol.RecordSteering:
		var body protocol.SteeringRecord
		if err = json.Unmarshal(record.Body, &body); err == nil {
			if input := m.input(body.SteeringID); input != nil {
				input.hash = body.Hash
			}
		}
	case protocol.RecordCancel:
		request := cancelRequest{sequence: record.Sequence}
		err = json.Unmarshal(record.Body, &request)
		m.cancels = append(m.cancels, request)
	}
	if err != nil {
		return fmt.Errorf("reading record %s %q of %s: %w", record.Kind, record.Key, m.spec.TurnID, err)
	}
	return nil
}

func (m *turnMachine) tool(id protocol.ToolID) *toolCall {
	for _, call := range m.toolCalls {
		if call.id == id {
			return call
		}
	}
	return nil
}

func (m *turnMachine) input(id protocol.SteeringID) *steeringInput {
	for _, input := range m.inputs {
		if input.id == id {
			return input
		}
	}
	return nil
}

// step is the number of the model step under way: one more than those that finished.
func (m *turnMachine) step() int { return len(m.steps) + 1 }

func (m *turnMachine) newPart() protocol.PartID {
	return protocol.DerivePartID(m.spec.TurnID, m.parts+1)
}

// begin makes the first transition: it is stored together with the turn itself.
func (m *turnMachine) begin() {
	s := m.spec
	m.emit(&protocol.TurnStarted{
		ConversationID: s.ConversationID, BranchID: s.BranchID, UserMessageID: s.UserMessageID,
		AssistantMessageID: s.AssistantMessageID, ParentMessageID: s.ParentMessageID, AcceptingSteering: true,
	})
	routing := s.Routing
	m.emit(&routing)
	m.move("begin", true)
}

// proceed goes on from the durable state: after begin, and after a takeover.
func (m *turnMachine) proceed() {
	if len(m.toolCalls) > 0 {
		m.runTools()
		return
	}
	m.startStep()
}

// adopt takes a turn over from a process that is gone.
func (m *turnMachine) adopt(cause string) {
	if m.ended {
		return
	}
	m.emit(&protocol.TurnRecoveringEvent{Attempt: m.adoptions + 1, Cause: cause})
	if m.state == protocol.TurnCancelling {
		m.finishCancelled()
		return
	}
	m.move("adopt", m.accepts)
	if m.adoptions > maxAdoptions {
		m.finish("stop_short", protocol.StopError, &protocol.TurnError{
			Code: "interrupted", Detail: "The service was restarted too often while this answer was written.", Retryable: true,
		})
		return
	}
	m.move("resume", m.accepts)
	m.lose(len(m.prefix()))
	m.cutStep()
	for _, call := range m.toolCalls {
		if call.state != protocol.ToolRunning {
			continue
		}
		if !call.readOnly { // it may have happened; asking again could do it twice
			m.completeTool(call, "lose", "", &protocol.ToolError{
				Code: "outcome_unknown", Detail: "The service was interrupted while this ran. It may or may not have taken effect.",
			}, 0)
			continue
		}
		m.moveTool(call, "rerun")
		m.effect(runTool{call})
	}
	m.proceed()
}
