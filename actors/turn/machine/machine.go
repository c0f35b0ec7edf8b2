package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Machine is the state of a turn. It is event-sourced: state that must survive a crash changes in apply and applyRecord, which
// run in the same way when an event is decided and when the log is replayed after a takeover. Other functions change it only if
// the log leads to the same state again: writeText and writeCode extend the last event of a batch, and cutStep and closeCutParts
// set the open part as Adopt does. Repair also sets the state that the row of the turn has.
type Machine struct {
	// Set by New.
	spec      *turnlog.Spec
	tools     map[string]Tool
	continues bool // the model can continue from a prefix; see Model.Continues

	// Durable: changed by apply and applyRecord, and as the comment of Machine says.
	state     protocol.TurnState
	accepts   bool
	sequence  int64 // of the last event
	fold      protocol.Fold
	parts     int // number of parts created so far
	calls     int // number of tool calls created so far
	stepParts []protocol.PartID
	activity  protocol.PartID // the activity shown for the current step; zero: none
	open      protocol.PartID // the open text, code or reasoning part; zero: none
	openType  protocol.PartType
	steps     []stepResult
	toolCalls []*toolCall // of the last finished step
	results   map[protocol.ToolID]toolResult
	found     []protocol.Source // by tools
	rounds    int               // steps that called tools
	routing   protocol.TurnRouting
	inputs    []*steeringInput
	cancels   []cancelRequest // the second one has the wider scope
	adoptions int             // takeovers, whatever their cause
	losses    int             // takeovers from an owner that was lost, not drained
	output    int             // bytes of model output, including the inputs of tool calls
	// cutResults are the whole outputs of calls whose result was cut, by result_id.
	cutResults map[string]string
	// cutConsents are the sources to which the account has to consent before the model reads on in a result, by result_id.
	cutConsents map[string]protocol.MemorySource
	approvals   []*approval
	ledger      map[string]*ledgerEntry // of identical calls
	over        protocol.StopReason     // why no tool may be called any more; empty: they may
	toolTime    time.Duration           // that tool calls took together
	stored      int                     // bytes of cutResults
	ended       bool

	// Measured by Restore from the whole log: its bytes and its times are not in the payloads of events.
	logged    int           // bytes of the log; CountLogged adds those of every batch
	waited    time.Duration // for approvals, as far as the log shows it
	waitsFrom time.Time     // zero, unless the log ended while the turn waited for approvals: when that wait began. advance ends it

	repaired bool // set by Repair: the log is damaged, and the machine is usable only to end the turn

	// Volatile: lost with the process, rebuilt by adopt.
	call     int               // number of the current model call; chunks of any other call are ignored
	calling  bool              // a model call is in progress
	retried  bool              // the one retry of the current step was used
	cut      []protocol.PartID // parts of a cut-off attempt, to be superseded by the next attempt
	splitter fenceSplitter
	sentence sentenceScanner // of the text since an input waits for its end
	text     []byte          // the model's text in the current step, including fences
	pending  []llm.ToolCall
	opaque   json.RawMessage
	owner    string              // of opaque
	usage    llm.UsageCounter    // of the current step
	sources  []protocol.Source   // in the request of the current step
	web      []protocol.Citation // of the open text, or of the next one, as the provider reported them
	reading  *policy.Reading     // of the request of the current step
	grants   []turnlog.Grant     // of the conversation
}

// Tool is what the machine knows of a tool.
type Tool struct {
	Kind     string // a value of protocol.ToolStarted.Kind
	Title    string
	ReadOnly bool // it has no effect
	// Repeatable means that a second run has no second effect, so a call is run again after a crash. So is one of a tool that
	// only reads, unless the user has approved that call: a read can send its input out of the service.
	Repeatable bool
	// Consent is the source to which the account has to consent; empty: none. It can revoke the consent at any time, so no result
	// is given a second time.
	Consent protocol.MemorySource
	Plan    policy.Planner // nil: every call runs as it is
	// Checks means that a call is checked before the user is asked to approve it, because it may be unable to succeed.
	Checks bool
}

// stepResult is the data of a finished model step that later steps need. It is stored as a record before any of its
// tools runs.
type stepResult struct {
	Step   int               `json:"step"`
	Text   string            `json:"text"`
	Calls  []llm.ToolCall    `json:"calls,omitempty"`
	Tools  []protocol.ToolID `json:"tools,omitempty"` // the identifiers of Calls, in the same order
	Opaque json.RawMessage   `json:"opaque,omitempty"`
	Owner  string            `json:"owner,omitempty"` // the provider family that created Opaque
	Cut    bool              `json:"cut,omitempty"`   // ended by an interrupt
	Usage  llm.Usage         `json:"usage"`
}

type toolCall struct {
	id       protocol.ToolID
	part     protocol.PartID
	name     string
	input    json.RawMessage
	state    protocol.ToolState
	edited   json.RawMessage // the input after the user has changed it; nil: unchanged
	readOnly bool
	again    bool // it is run again after a crash; see Tool.Repeatable
	number   int  // of the call in the turn, from 1

	checking, checked bool // volatile: CheckTool runs, or has found nothing

	completed *protocol.ToolCompleted // nil: it has not ended
}

type steeringInput struct {
	id         protocol.SteeringID
	clientID   string
	text       string
	delivery   protocol.Delivery
	sequence   int64
	hash       string
	state      protocol.InputState
	step       int                   // set in the state applied: the step whose request contains the input
	returned   protocol.ReturnReason // set in the state returned
	returnedAt int64                 // the sequence of the event that returned the input
	applyAt    int64                 // the sequence of the event with which RecordApply was stored; 0: none

	requestedIn int // volatile: number of the model call whose request contains the input
}

// pending reports whether the input is neither applied nor returned yet.
func (i *steeringInput) pending() bool { return i.state == protocol.InputPending }

// move moves the input, and reports whether the table allows it.
func (i *steeringInput) move(trigger protocol.InputTrigger) bool {
	to, ok := protocol.NextInputState(i.state, trigger)
	if ok {
		i.state = to
	}
	return ok
}

type cancelRequest struct {
	SteeringID protocol.SteeringID  `json:"steering_id"`
	Scope      protocol.CancelScope `json:"scope"`
	sequence   int64
}

// Limits of one turn, in addition to those of its route.
const (
	maxModelSteps = 64 // model steps of one turn, so that steering cannot extend a turn without limit
	maxToolCalls  = 50 // tool calls of one turn
	// maxTurnOutput limits the model output of one turn, in bytes; a longer answer is of no use. maxTurnLog limits the
	// log of a turn, in bytes, because a takeover and the end of the turn hold it in memory. It suffices for the budget
	// of the largest profile with one event for each token.
	maxTurnOutput = 8 << 20
	maxTurnLog    = 32 << 20

	// maxLosses is how often a turn may lose its owner before it is given up as incomplete, because the turn itself may be
	// the cause. A drain does not count: a rolling deploy can drain the owner of a turn once for each node.
	maxLosses    = 3
	budgetFactor = 4 // a turn starts no further step once its output tokens reach this multiple of its MaxOutputTokens
)

// allowed returns the tools that were not switched off when the turn started, by the project of the conversation or by the
// request. A call of any other tool fails; plan says why.
func allowed(tools map[string]Tool, spec *turnlog.Spec) map[string]Tool {
	if len(spec.DisabledTools) == 0 {
		return tools
	}
	tools = maps.Clone(tools)
	for _, name := range spec.DisabledTools {
		delete(tools, name)
	}
	return tools
}

// New returns the machine of a new turn. continues reports whether the model can continue a cut-off answer.
func New(spec *turnlog.Spec, tools map[string]Tool, continues bool) *Machine {
	return &Machine{
		spec: spec, tools: allowed(tools, spec), continues: continues,
		state: protocol.TurnQueued, results: map[protocol.ToolID]toolResult{}, ledger: map[string]*ledgerEntry{}, cutResults: map[string]string{},
		cutConsents: map[string]protocol.MemorySource{}, splitter: newFenceSplitter(),
	}
}

// Spec returns the specification of the turn. It never changes.
func (m *Machine) Spec() *turnlog.Spec { return m.spec }

// State returns the state of the turn, and whether it accepts steering.
func (m *Machine) State() (state protocol.TurnState, accepts bool) { return m.state, m.accepts }

// Sequence returns the sequence of the last event.
func (m *Machine) Sequence() int64 { return m.sequence }

// Ended reports whether the last event was decided.
func (m *Machine) Ended() bool { return m.ended }

// Parts returns the parts of the assistant's message so far.
func (m *Machine) Parts() []protocol.Part { return m.fold.Parts() }

// Routing returns the profile and the model that produce the answer.
func (m *Machine) Routing() protocol.TurnRouting {
	if m.routing.ModelID == "" { // the log is damaged
		return m.spec.Routing
	}
	return m.routing
}

// Call returns the number of the current model call. Triggers of any other call are ignored.
func (m *Machine) Call() int { return m.call }

// CountLogged counts bytes of the encoded log. A turn whose log exceeds its limit ends.
func (m *Machine) CountLogged(bytes int) { m.logged += bytes }

// OpenKind returns the kind of chunk that adds text to a part which readers see; 0: there is no such part.
func (m *Machine) OpenKind() llm.ChunkKind {
	switch {
	case m.state != protocol.TurnRunning || m.open.IsZero():
		return 0
	case m.openType == protocol.PartReasoning:
		return llm.ChunkReasoning
	}
	return llm.ChunkText
}

// Apply applies the payloads of events that are stored already.
func (m *Machine) Apply(payloads ...protocol.Payload) {
	for _, payload := range payloads {
		m.apply(payload)
	}
}

// Restore restores a turn from its log. It fails when the log has a gap, or an event or a record that it
// cannot read.
func Restore(stored *turnlog.Stored, tools map[string]Tool, continues bool) (*Machine, error) {
	m := New(stored.Spec, tools, continues)
	bySequence := map[int64][]turnlog.Record{}
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
		if payload == nil { // written by a later version: its effect on the state is unknown
			return nil, fmt.Errorf("the log of %s has an event of the unknown type %s", m.spec.TurnID, envelope.Type)
		}
		m.apply(payload)
		m.noteWait(payload, envelope.At)
		m.logged += len(line) + 1
		for _, record := range bySequence[m.sequence] {
			if err := m.applyRecord(record); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// noteWait measures how long the turn waits for approvals, from the times of its events.
func (m *Machine) noteWait(payload protocol.Payload, at time.Time) {
	change, is := payload.(*protocol.TurnStateChanged)
	switch {
	case !is:
	case change.State == protocol.TurnRequiresAction:
		m.waitsFrom = at
	case !m.waitsFrom.IsZero():
		m.waited, m.waitsFrom = m.waited+at.Sub(m.waitsFrom), time.Time{}
	}
}

// Waited returns how long the turn has waited for approvals: this time does not count towards its deadline.
func (m *Machine) Waited(now time.Time) time.Duration {
	if m.waitsFrom.IsZero() {
		return m.waited
	}
	return m.waited + now.Sub(m.waitsFrom)
}

// emit applies an event and adds it to the decision.
func (m *Batch) emit(payload protocol.Payload) {
	m.apply(payload)
	m.Events = append(m.Events, payload)
}

// record applies a private record and adds it to the decision. The record is stored with the last event.
func (m *Batch) record(kind, key string, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic("turn: a record cannot be encoded: " + err.Error())
	}
	record := turnlog.Record{Kind: kind, Key: key, Sequence: m.sequence, Body: encoded}
	if err := m.applyRecord(record); err != nil {
		panic("turn: a record cannot be applied: " + err.Error())
	}
	m.Records = append(m.Records, record)
}

func (m *Batch) effect(e Effect) { m.Effects = append(m.Effects, e) }

// move makes a legal transition and emits it if anything changes. An illegal transition is a defect: move panics, so
// the actor stops before anything is stored.
func (m *Batch) move(trigger protocol.TurnTrigger, accepts bool) {
	to, ok := protocol.NextTurnState(m.state, trigger)
	if !ok {
		panic(fmt.Sprintf("turn: turn in %s cannot %s", m.state, trigger))
	}
	if to != m.state || accepts != m.accepts {
		m.emit(&protocol.TurnStateChanged{State: to, AcceptingSteering: accepts})
	}
}

// apply changes the durable state by one event.
func (m *Machine) apply(payload protocol.Payload) {
	m.sequence++
	m.fold.Apply(payload)
	switch p := payload.(type) {
	case *protocol.TurnStarted:
		m.accepts = p.AcceptingSteering
	case *protocol.TurnRouting:
		m.routing = *p
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
			readOnly: m.tools[p.ToolName].ReadOnly, again: m.tools[p.ToolName].ReadOnly || m.tools[p.ToolName].Repeatable, number: m.calls,
		})
	case *protocol.ToolStateChanged:
		if call := m.tool(p.ToolID); call != nil {
			call.state = p.State
		}
	case *protocol.ToolCompleted:
		call := m.tool(p.ToolID)
		result := toolResultOf(p)
		if call != nil {
			call.state, call.completed = p.State, p
			result.edited = call.edited
			m.note(call, p)
			if consent := m.tools[call.name].Consent; consent != "" && p.ResultID != "" {
				m.cutConsents[p.ResultID] = consent
			}
		}
		m.results[p.ToolID] = result
		m.found = append(m.found, p.Sources...)
	case *protocol.ApprovalResolved:
		if call := m.tool(p.ToolID); call != nil {
			call.again = m.tools[call.name].Repeatable
			if len(p.Input) > 0 {
				call.input, call.edited = p.Input, p.Input
			}
		}
	case *protocol.SteeringAccepted:
		m.inputs = append(m.inputs, &steeringInput{
			id: p.SteeringID, clientID: p.ClientSteeringID, text: p.Text, delivery: p.Delivery, sequence: m.sequence, state: protocol.InputPending,
		})
	case *protocol.SteeringApplied:
		m.parts++
		if input := m.input(p.SteeringID); input != nil && input.move(protocol.InputAnswered) {
			input.step = p.Step
		}
	case *protocol.SteeringReturned:
		if input := m.input(p.SteeringID); input != nil && input.move(p.Reason.Trigger()) {
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
		if p.Cause != protocol.CauseDrain {
			m.losses++
		}
	case *protocol.TurnFinished:
		m.ended = true
	}
}

// opened notes that a text, code or reasoning part was opened.
func (m *Machine) opened(id protocol.PartID, kind protocol.PartType, supersedes []protocol.PartID) {
	m.parts++
	if len(supersedes) > 0 {
		m.stepParts = nil
	}
	m.stepParts = append(m.stepParts, id)
	m.open, m.openType = id, kind
}

// applyRecord changes the durable state by one private record.
func (m *Machine) applyRecord(record turnlog.Record) error {
	var err error
	switch record.Kind {
	case turnlog.RecordStep:
		var step stepResult
		if err = json.Unmarshal(record.Body, &step); err == nil {
			m.steps = append(m.steps, step)
			m.stepParts, m.toolCalls, m.activity = nil, nil, protocol.PartID{}
			if len(step.Calls) > 0 {
				m.rounds++
			}
		}
	case turnlog.RecordSteering:
		var body turnlog.SteeringRecord
		if err = json.Unmarshal(record.Body, &body); err == nil {
			if input := m.input(body.SteeringID); input != nil {
				input.hash = body.Hash
			}
		}
	case turnlog.RecordApply:
		var body turnlog.SteeringRecord
		if err = json.Unmarshal(record.Body, &body); err == nil {
			if input := m.input(body.SteeringID); input != nil {
				input.applyAt = record.Sequence
			}
		}
	case turnlog.RecordApproval, turnlog.RecordDecision:
		err = m.applyApproval(record)
	case turnlog.RecordResult:
		var body turnlog.ResultRecord
		err = json.Unmarshal(record.Body, &body)
		m.cutResults[record.Key], m.stored = body.Text, m.stored+len(body.Text)
	case turnlog.RecordCancel:
		request := cancelRequest{sequence: record.Sequence}
		err = json.Unmarshal(record.Body, &request)
		m.cancels = append(m.cancels, request)
	}
	if err != nil {
		return fmt.Errorf("reading record %s %q of %s: %w", record.Kind, record.Key, m.spec.TurnID, err)
	}
	return nil
}

func (m *Machine) tool(id protocol.ToolID) *toolCall {
	for _, call := range m.toolCalls {
		if call.id == id {
			return call
		}
	}
	return nil
}

func (m *Machine) input(id protocol.SteeringID) *steeringInput {
	for _, input := range m.inputs {
		if input.id == id {
			return input
		}
	}
	return nil
}

// totalUsage returns the usage of the turn so far.
func (m *Machine) totalUsage() protocol.Usage {
	total := m.usage.Total() // of the current step; zero directly after endStep
	for _, step := range m.steps {
		total = step.Usage.Plus(total)
	}
	return protocol.Usage(total)
}

// step returns the number of the current model step: one more than the number of finished steps.
func (m *Machine) step() int { return len(m.steps) + 1 }

func (m *Machine) newPart() protocol.PartID {
	return protocol.DerivePartID(m.spec.TurnID, m.parts+1)
}

func (m *Machine) receipt(id protocol.SteeringID, sequence int64, replayed bool) protocol.SteeringReceipt {
	return protocol.Accepted(id, m.spec.TurnID, sequence, replayed)
}
