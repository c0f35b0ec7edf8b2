package machine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// situation is one of the ways in which a turn can be in a state.
type situation struct {
	state protocol.TurnState
	enter func(d *driver) // from the first model call
}

// The situations, in the order of the columns of turnTriggers. A turn that is new or queued, or that is recovering, is not reached from
// a model call; see inSituation.
var situations = []situation{
	{protocol.TurnQueued, nil},
	{protocol.TurnQueued, nil},
	{protocol.TurnRunning, func(*driver) {}},
	{protocol.TurnRunning, func(d *driver) { d.ModelText(1, "partial ") }},
	{protocol.TurnRunning, func(d *driver) { ask(d, "write", `{}`) }},
	{protocol.TurnRunning, func(d *driver) { ask(d, "check", `{}`) }},
	{protocol.TurnRequiresAction, func(d *driver) { ask(d, "send", `{}`) }},
	{protocol.TurnRecovering, nil},
	{protocol.TurnCancelling, func(d *driver) { d.ModelText(1, "partial "); mustCancel(d) }},
	{protocol.TurnCancelling, func(d *driver) { ask(d, "write", `{}`); mustCancel(d) }},
	{protocol.TurnCompleted, func(d *driver) {
		for !d.ended {
			d.ModelText(d.call, "answer")
			d.ModelStopped(d.call, llm.StopEndTurn)
		}
	}},
	{protocol.TurnFailed, func(d *driver) { d.ModelFailed(1, &llm.Error{Code: protocol.ModelUnavailable}) }},
	{protocol.TurnIncomplete, func(d *driver) { d.Deadline() }},
	{protocol.TurnCancelled, func(d *driver) { mustCancel(d); d.GraceOver() }},
}

func mustCancel(d *driver) {
	if _, err := d.Command(newCancel()); err != nil {
		panic(err)
	}
}

// stateTools are machineTools with a tool whose calls are checked before the user is asked.
func stateTools() map[string]Tool {
	tools := map[string]Tool{"check": {Kind: "connector", Title: "Check", Plan: planSend, Checks: true}}
	for name, tool := range machineTools {
		tools[name] = tool
	}
	return tools
}

// restored returns the machine of the next owner, without the volatile state.
func restored(t *testing.T, d *driver) *driver {
	t.Helper()
	decided := d.take()
	frames, err := protocol.AppendEvents(nil, d.spec.TurnID, 1, d.spec.CreatedAt, decided.Events)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Restore(&turnlog.Stored{Spec: d.spec, Frames: frames, Records: decided.Records}, stateTools(), false)
	if err != nil {
		t.Fatal(err)
	}
	return drive(m)
}

// inSituation returns a machine in a situation. With input, the turn had accepted an input before.
func inSituation(t *testing.T, column int, input bool) *driver {
	t.Helper()
	d := newDriver(machineSpec(), stateTools(), false)
	d.Now = d.spec.CreatedAt
	s := situations[column]
	switch {
	case column == 0: // before its first event
		return d
	case s.state == protocol.TurnQueued:
		d.emit(&protocol.TurnStarted{AcceptingSteering: true})
	default:
		d.Begin()
		d.Proceed()
	}
	if input {
		accept(t, d, newInput("c1", "use JWT"))
	}
	switch {
	case s.enter != nil:
		s.enter(d)
	case s.state == protocol.TurnRecovering:
		d = restored(t, d)
		d.Apply(&protocol.TurnRecoveringEvent{Attempt: 1, Cause: protocol.CauseNodeLost}, &protocol.TurnStateChanged{State: protocol.TurnRecovering, AcceptingSteering: true})
	}
	d.take()
	d.Now = d.spec.CreatedAt
	if d.state != s.state {
		t.Fatalf("column %d: the turn is %s, want %s", column, d.state, s.state)
	}
	return d
}

// command returns the trigger of a command.
func command(c func(d *driver) *Command) func(*driver) error {
	return func(d *driver) error {
		_, err := d.Command(c(d))
		return err
	}
}

// quiet returns a trigger that refuses nothing.
func quiet(fire func(d *driver)) func(*driver) error {
	return func(d *driver) error { fire(d); return nil }
}

// chunk returns the trigger of a chunk of the current model call.
func chunk(c llm.Chunk) func(*driver) error {
	return quiet(func(d *driver) { d.ModelChunk(d.call, &c) })
}

// stopped returns the trigger of the end of an answer that calls a tool; without a name, it calls none.
func stopped(stop llm.Stop, tool string) func(*driver) error {
	return quiet(func(d *driver) {
		if tool != "" {
			d.ModelChunk(d.call, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: tool, Input: json.RawMessage(`{}`)}})
		}
		d.ModelStopped(d.call, stop)
	})
}

// firstTool returns the tool call of a situation; an unknown one if it has none.
func firstTool(d *driver) protocol.ToolID { return protocol.DeriveToolID(d.spec.TurnID, 1) }

func newDecision(kind protocol.Decision) func(d *driver) *Command {
	return func(d *driver) *Command {
		return &Command{
			Kind: CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: protocol.DeriveApprovalID(d.spec.TurnID, 1), Digest: "sha256:{}", Decision: kind, Hash: "h",
		}
	}
}

// ofInput returns the command about the input of the situation.
func ofInput(kind CommandKind) func(d *driver) *Command {
	return func(d *driver) *Command {
		id := protocol.NewSteeringID()
		if len(d.inputs) > 0 {
			id = d.inputs[0].id
		}
		return &Command{Kind: kind, SteeringID: id}
	}
}

func newGivenInput(delivery protocol.Delivery) func(d *driver) *Command {
	return func(*driver) *Command {
		c := newInput("c2", "and tests")
		c.Delivery = delivery
		return c
	}
}

// turnTrigger is a row of turnTriggers.
type turnTrigger struct {
	name  string // begins with the method of Batch
	input bool   // the turn has an input
	fire  func(d *driver) error
	cells string
}

// turnTriggers is what every trigger does in every situation. A cell lists the states that follow one another, separated by spaces, or is
//
//	.  nothing happens: no event, no record, no effect
//	!  the command is refused, and nothing happens
//	=  the turn goes on in the same state
//
// The columns: new, queued | running: the model was called, it answers, a tool runs, a call is checked | requires_action | recovering |
// cancelling: a model call, a tool | completed | failed | incomplete | cancelled.
var turnTriggers = []turnTrigger{
	{"Begin", false, quiet(func(d *driver) { d.Begin() }), "running,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"Proceed", false, quiet(func(d *driver) { d.Proceed() }), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{
		"Adopt", false, quiet(func(d *driver) { d.calling = false; d.Adopt(protocol.CauseNodeLost) }),
		"recovering running,recovering running|recovering running,recovering running,recovering running,recovering running|" +
			"recovering requires_action|running|cancelled,cancelled|.|.|.|.",
	},
	{
		"Adopt once too often", false, quiet(func(d *driver) { d.calling, d.losses = false, maxLosses; d.Adopt(protocol.CauseNodeLost) }),
		"recovering incomplete,recovering incomplete|recovering incomplete,recovering incomplete,recovering incomplete,recovering incomplete|" +
			"recovering incomplete|incomplete|cancelled,cancelled|.|.|.|.",
	},
	{"Command input", false, command(newGivenInput(protocol.DeliverNextStep)), "!,=|=,=,=,=|=|=|!,!|!|!|!|!"},
	{"Command input at once", false, command(newGivenInput(protocol.DeliverInterrupt)), "!,=|=,=,=,=|=|=|!,!|!|!|!|!"},
	{"Command cancel", false, command(func(*driver) *Command { return newCancel() }), "cancelling cancelled,cancelling cancelled|cancelling,cancelling,cancelling,cancelling cancelled|cancelling cancelled|cancelling cancelled|.,.|!|!|!|."},
	{
		"Command cancel with follow-ups", false, command(func(*driver) *Command { c := newCancel(); c.Scope = protocol.CancelTurnAndFollowUps; return c }),
		"cancelling cancelled,cancelling cancelled|cancelling,cancelling,cancelling,cancelling cancelled|cancelling cancelled|cancelling cancelled|=,=|!|!|!|!",
	},
	{"Command withdraw", true, command(ofInput(CommandWithdraw)), "!,=|=,=,=,=|=|=|!,!|!|!|!|!"},
	{"Command apply", true, command(ofInput(CommandApply)), "!,=|=,=,=,=|=|=|!,!|!|!|!|!"},
	{"Command approve", false, command(newDecision(protocol.ApproveOnce)), "!,!|!,!,!,!|running|!|!,!|!|!|!|!"},
	{"Command reject", false, command(newDecision(protocol.RejectCall)), "!,!|!,!,!,!|running|!|!,!|!|!|!|!"},
	{"Wake", false, quiet(func(d *driver) { d.Wake() }), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"Wake after the time of the approval", false, quiet(func(d *driver) { d.Now = d.Now.Add(2 * defaultApprovalLifetime); d.Wake() }), ".,.|.,.,.,.|running|.|.,.|.|.|.|."},
	{"GraceOver", false, quiet(func(d *driver) { d.GraceOver() }), ".,.|.,.,.,.|.|.|cancelled,cancelled|.|.|.|."},
	{"Deadline", false, quiet(func(d *driver) { d.Deadline() }), ".,.|incomplete,incomplete,incomplete,incomplete|incomplete|incomplete|.,.|.|.|.|."},
	{"RequestBuilt", false, quiet(func(d *driver) { d.RequestBuilt(9, nil, nil) }), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"GrantsRead", false, quiet(func(d *driver) { d.GrantsRead([]turnlog.Grant{{Tool: "send"}}) }), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"RouteChanged", false, quiet(func(d *driver) { d.RouteChanged(d.call, d.spec.Routing) }), ".,.|=,=,.,.|.|.|.,.|.|.|.|."},
	{"ModelText", false, quiet(func(d *driver) { d.ModelText(d.call, "more ") }), ".,.|=,=,.,.|.|.|.,.|.|.|.|."},
	{"ModelText of another call", false, quiet(func(d *driver) { d.ModelText(d.call-1, "more ") }), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{
		"ModelText over the limit of the log", false, quiet(func(d *driver) { d.CountLogged(maxTurnLog + 1); d.ModelText(d.call, "more ") }),
		".,.|failed,incomplete,.,.|.|.|.,.|.|.|.|.",
	},
	{"ModelReasoning", false, quiet(func(d *driver) { d.ModelReasoning(d.call, "hm") }), ".,.|=,=,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk with a tool call", false, chunk(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: "look", Input: json.RawMessage(`{}`)}}), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk with usage", false, chunk(llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{OutputTokens: 1}}), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk with opaque state", false, chunk(llm.Chunk{Kind: llm.ChunkOpaque, Opaque: json.RawMessage(`{}`)}), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk with a citation", false, chunk(llm.Chunk{Kind: llm.ChunkCitation, Text: "Page"}), ".,.|.,.,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk that was a thought", false, chunk(llm.Chunk{Kind: llm.ChunkThought}), ".,.|.,=,.,.|.|.|.,.|.|.|.|."},
	{"ModelChunk with a wait", false, chunk(llm.Chunk{Kind: llm.ChunkWaiting, Wait: time.Second}), ".,.|=,=,.,.|.|.|.,.|.|.|.|."},
	{"ModelStopped", false, quiet(func(d *driver) { d.ModelText(d.call, "."); d.ModelStopped(d.call, llm.StopEndTurn) }), ".,.|completed,completed,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped without an answer", false, stopped(llm.StopEndTurn, ""), ".,.|=,completed,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped with a pending input", true, stopped(llm.StopEndTurn, ""), ".,.|=,=,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped for a tool", false, stopped(llm.StopToolCalls, "write"), ".,.|=,=,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped for a tool to approve", false, stopped(llm.StopToolCalls, "send"), ".,.|requires_action,requires_action,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped at its limit", false, stopped(llm.StopMaxTokens, ""), ".,.|incomplete,incomplete,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped by the budget", false, stopped(llm.StopBudget, ""), ".,.|incomplete,incomplete,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelStopped with a refusal", false, stopped(llm.StopRefusal, ""), ".,.|completed,completed,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelFailed", false, quiet(func(d *driver) { d.ModelFailed(d.call, &llm.Error{Code: protocol.ModelUnavailable}) }), ".,.|failed,incomplete,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelFailed in the middle", false, quiet(func(d *driver) { d.ModelFailed(d.call, &llm.Error{Code: protocol.ModelUnavailable, Cut: true}) }), ".,.|=,=,.,.|.|.|cancelled,.|.|.|.|."},
	{"ModelFailed for the budget", false, quiet(func(d *driver) { d.ModelFailed(d.call, &llm.Error{Code: llm.CodeBudgetReached}) }), ".,.|incomplete,incomplete,.,.|.|.|cancelled,.|.|.|.|."},
	{"ContextTrimmed", false, quiet(func(d *driver) { d.ContextTrimmed(d.call) }), ".,.|=,.,.,.|.|.|.,.|.|.|.|."},
	{"StillWaiting", false, quiet(func(d *driver) { d.StillWaiting(d.call) }), ".,.|=,.,.,.|.|.|.,.|.|.|.|."},
	{"ToolChecked", false, quiet(func(d *driver) { d.ToolChecked(firstTool(d), nil) }), ".,.|.,.,.,requires_action|.|.|.,.|.|.|.|."},
	{"ToolChecked with a failure", false, quiet(func(d *driver) { d.ToolChecked(firstTool(d), &protocol.ToolError{Code: protocol.ToolCallInvalid}) }), ".,.|.,.,.,=|.|.|.,.|.|.|.|."},
	{"ToolProgressed", false, quiet(func(d *driver) { d.ToolProgressed(firstTool(d), "half", nil) }), ".,.|.,.,=,.|.|.|.,=|.|.|.|."},
	{"ToolEnded", false, quiet(func(d *driver) { d.ToolEnded(firstTool(d), ToolResult{Output: "out"}, nil, time.Second) }), ".,.|.,.,=,.|.|.|.,cancelled|.|.|.|."},
	{"ToolEnded with a failure", false, quiet(func(d *driver) {
		d.ToolEnded(firstTool(d), ToolResult{}, &protocol.ToolError{Code: "closed"}, time.Second)
	}), ".,.|.,.,=,.|.|.|.,cancelled|.|.|.|."},
	{"GiveUp", false, quiet(func(d *driver) { d.GiveUp(true) }), "recovering failed,recovering failed|failed,failed,failed,failed|failed|failed|cancelled,cancelled|.|.|.|."},
	{
		"ForceCancel", false, quiet(func(d *driver) { d.ForceCancel(protocol.NewSteeringID()) }),
		"cancelling cancelled,cancelling cancelled|cancelling cancelled,cancelling cancelled,cancelling cancelled,cancelling cancelled|" +
			"cancelling cancelled|cancelling cancelled|cancelled,cancelled|.|.|.|.",
	},
}

// TestEveryTriggerInEveryState compares every cell of turnTriggers with what the machine decides. Each change of the state must also be
// one of protocol.TurnTransitions.
func TestEveryTriggerInEveryState(t *testing.T) {
	for _, trigger := range turnTriggers {
		cells := strings.FieldsFunc(trigger.cells, func(r rune) bool { return r == ',' || r == '|' })
		if len(cells) != len(situations) {
			t.Fatalf("%s has %d cells", trigger.name, len(cells))
		}
		for column, want := range cells {
			d := inSituation(t, column, trigger.input)
			from := d.state
			if got := fired(t, d, trigger.fire); got != want {
				t.Errorf("%s in %s (column %d): got %q, want %q", trigger.name, from, column+1, got, want)
			}
		}
	}
}

// fired fires a trigger and returns the cell that describes what it did.
func fired(t *testing.T, d *driver, fire func(*driver) error) (cell string) {
	t.Helper()
	defer func() {
		if defect := recover(); defect != nil {
			cell = fmt.Sprint(defect)
		}
	}()
	from := d.state
	err := fire(d)
	var path []string
	for _, event := range d.Events {
		change, is := event.(*protocol.TurnStateChanged)
		if !is || change.State == from {
			continue
		}
		if !legal(from, change.State) {
			t.Errorf("the table has no transition from %s to %s", from, change.State)
		}
		from = change.State
		path = append(path, string(from))
	}
	if from != d.state || d.state.Terminal() != d.ended || (d.End != nil) != (d.ended && len(path) > 0) {
		t.Errorf("the events end in %s, the machine is in %s, ended %v, with the end %+v", from, d.state, d.ended, d.End)
	}
	silent := len(d.Events)+len(d.Records)+len(d.Effects) == 0 && d.End == nil
	switch {
	case err != nil && silent:
		return "!"
	case err != nil:
		return "refused, with a decision"
	case silent:
		return "."
	case len(path) == 0:
		return "="
	}
	return strings.Join(path, " ")
}

func TestTheTableHasEveryStateAndEveryTrigger(t *testing.T) {
	for _, state := range protocol.TurnStates {
		if !slices.ContainsFunc(situations, func(s situation) bool { return s.state == state }) {
			t.Errorf("no situation has the state %s", state)
		}
	}
	batch, machine, decision := reflect.TypeFor[*Batch](), reflect.TypeFor[*Machine](), reflect.TypeFor[*Decision]()
	for method := range batch.Methods() {
		_, ofMachine := machine.MethodByName(method.Name)
		_, ofDecision := decision.MethodByName(method.Name)
		if ofMachine || ofDecision {
			continue
		}
		found := false
		for _, trigger := range turnTriggers {
			found = found || strings.Fields(trigger.name)[0] == method.Name
		}
		if !found {
			t.Errorf("the table does not have the trigger %s", method.Name)
		}
	}
	for kind, name := range commandKinds {
		if name == "decide" {
			name = "approve"
		}
		if !slices.ContainsFunc(turnTriggers, func(trigger turnTrigger) bool { return trigger.name == "Command "+name }) {
			t.Errorf("the table does not have the command %v", kind)
		}
	}
}

// callSituations are the ways in which a tool call can be in a state, in the order of the columns of callTriggers.
var callSituations = []struct {
	state protocol.ToolState
	tool  string
	enter func(d *driver, id protocol.ToolID)
}{
	{protocol.ToolPending, "check", nil},
	{protocol.ToolAwaitingApproval, "send", nil},
	{protocol.ToolRunning, "look", nil},
	{protocol.ToolRunning, "write", nil},
	{protocol.ToolSucceeded, "look", func(d *driver, id protocol.ToolID) { d.ToolEnded(id, ToolResult{}, nil, 0) }},
	{protocol.ToolFailed, "look", func(d *driver, id protocol.ToolID) {
		d.ToolEnded(id, ToolResult{}, &protocol.ToolError{Code: "closed"}, 0)
	}},
	{protocol.ToolRejected, "send", func(d *driver, _ protocol.ToolID) { _ = command(newDecision(protocol.RejectCall))(d) }},
	{protocol.ToolCancelled, "look", func(d *driver, id protocol.ToolID) {
		d.ToolEnded(id, ToolResult{}, &protocol.ToolError{Code: protocol.ToolCallCancelled}, 0)
	}},
	{protocol.ToolOutcomeUnknown, "write", func(d *driver, id protocol.ToolID) {
		d.ToolEnded(id, ToolResult{}, &protocol.ToolError{Code: protocol.ToolCallTimeout}, 0)
	}},
}

// toolEnds returns the trigger of a call that fails with a code.
func toolEnds(code protocol.ToolErrorCode, unstarted bool) func(*driver) error {
	return quiet(func(d *driver) {
		d.ToolEnded(firstTool(d), ToolResult{Unstarted: unstarted}, &protocol.ToolError{Code: code}, 0)
	})
}

// callTriggers is what every trigger that concerns a tool call does with it. The columns: it is checked, it waits for an approval, it
// runs and only reads, it runs and has an effect, it has ended. A cell is the state that follows; "." is the same one, without an event.
var callTriggers = []struct {
	name  string
	fire  func(d *driver) error
	cells [5]string
}{
	{"proceed", quiet(func(d *driver) { d.Proceed() }), [5]string{".", ".", ".", ".", "."}},
	{"checked", quiet(func(d *driver) { d.ToolChecked(firstTool(d), nil) }), [5]string{"awaiting_approval", ".", ".", ".", "."}},
	{"check failed", quiet(func(d *driver) { d.ToolChecked(firstTool(d), &protocol.ToolError{Code: protocol.ToolCallInvalid}) }), [5]string{"failed", ".", ".", ".", "."}},
	{"approve", command(newDecision(protocol.ApproveOnce)), [5]string{".", "running", ".", ".", "."}},
	{"reject", command(newDecision(protocol.RejectCall)), [5]string{".", "rejected", ".", ".", "."}},
	{"expire", quiet(func(d *driver) { d.Now = d.Now.Add(2 * defaultApprovalLifetime); d.Wake() }), [5]string{".", "rejected", ".", ".", "."}},
	{"progress", quiet(func(d *driver) { d.ToolProgressed(firstTool(d), "half", nil) }), [5]string{".", ".", ".", ".", "."}},
	{"ended", quiet(func(d *driver) { d.ToolEnded(firstTool(d), ToolResult{Output: "out"}, nil, 0) }), [5]string{".", ".", "succeeded", "succeeded", "."}},
	{"ended with an error of the tool", toolEnds("closed", false), [5]string{".", ".", "failed", "failed", "."}},
	{"ended with a timeout", toolEnds(protocol.ToolCallTimeout, false), [5]string{".", ".", "failed", "outcome_unknown", "."}},
	{"ended with a panic", toolEnds(protocol.ToolCallFailed, false), [5]string{".", ".", "failed", "outcome_unknown", "."}},
	{"ended without consent", toolEnds(protocol.ToolCallDenied, false), [5]string{".", ".", "rejected", "rejected", "."}},
	{"stopped", toolEnds(protocol.ToolCallCancelled, false), [5]string{".", ".", "cancelled", "outcome_unknown", "."}},
	{"stopped before it ran", toolEnds(protocol.ToolCallCancelled, true), [5]string{".", ".", "cancelled", "cancelled", "."}},
	{"adopt", quiet(func(d *driver) { d.calling = false; d.Adopt(protocol.CauseNodeLost) }), [5]string{".", ".", "running", "outcome_unknown", "."}},
	{"cancel", command(func(*driver) *Command { return newCancel() }), [5]string{"cancelled", "cancelled", ".", ".", "."}},
	{"grace over", quiet(func(d *driver) { mustCancel(d); d.GraceOver() }), [5]string{"cancelled", "cancelled", "cancelled", "outcome_unknown", "."}},
	{"deadline", quiet(func(d *driver) { d.Deadline() }), [5]string{"cancelled", "cancelled", "cancelled", "outcome_unknown", "."}},
	{"give up", quiet(func(d *driver) { d.GiveUp(false) }), [5]string{"cancelled", "cancelled", "cancelled", "outcome_unknown", "."}},
}

func TestEveryTriggerInEveryStateOfAToolCall(t *testing.T) {
	for _, trigger := range callTriggers {
		for column, s := range callSituations {
			d := newDriver(machineSpec(), stateTools(), false)
			d.Now = d.spec.CreatedAt
			d.Begin()
			d.Proceed()
			call := ask(d, s.tool, `{}`)[0]
			if s.enter != nil {
				s.enter(d, call.id)
			}
			if call.state != s.state {
				t.Fatalf("column %d: the call is %s, want %s", column+1, call.state, s.state)
			}
			now := d.Now
			d.take()
			d.Now = now
			_ = trigger.fire(d)
			want := trigger.cells[min(column, 4)]
			if got := callPath(t, d, call.id, s.state); got != want {
				t.Errorf("%s in %s (%s): got %q, want %q", trigger.name, s.state, s.tool, got, want)
			}
		}
	}
}

// callPath returns the states that the events of a call lead to. Each change must be one of protocol.ToolTransitions.
func callPath(t *testing.T, d *driver, id protocol.ToolID, from protocol.ToolState) string {
	t.Helper()
	var path []string
	for _, event := range d.Events {
		to := from
		switch e := event.(type) {
		case *protocol.ToolStateChanged:
			to = e.State
		case *protocol.ToolCompleted:
			to = e.State
		default:
			continue
		}
		if !slices.ContainsFunc(protocol.ToolTransitions, func(tr protocol.Transition[protocol.ToolState, protocol.ToolTrigger]) bool {
			return tr.From == from && tr.To == to
		}) {
			t.Errorf("the table has no transition from %s to %s", from, to)
		}
		from = to
		path = append(path, string(to))
	}
	if state := d.tool(id).state; state != from {
		t.Errorf("the events end in %s, the call is %s", from, state)
	}
	if len(path) == 0 {
		return "."
	}
	return strings.Join(path, " ")
}

func TestATransitionOfAToolCallThatTheTableDoesNotHaveIsADefect(t *testing.T) {
	for _, from := range protocol.ToolStates {
		for _, trigger := range []protocol.ToolTrigger{
			protocol.ToolRuns, protocol.ToolNeedsApproval, protocol.ToolRefused, protocol.ToolCancel, protocol.ToolApproved, protocol.ToolDenied,
			protocol.ToolSucceeds, protocol.ToolFails, protocol.ToolLost, protocol.ToolRerun,
		} {
			want, isLegal := protocol.NextToolState(from, trigger)
			call := toolCall{state: from}
			func() {
				defer func() {
					if defect := recover(); (defect != nil) == isLegal {
						t.Errorf("%s in %s: %v", trigger, from, defect)
					}
				}()
				if to := call.next(trigger); to != want {
					t.Errorf("%s in %s leads to %s, want %s", trigger, from, to, want)
				}
			}()
		}
	}
}
