package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// newInput returns a new steering input.
func newInput(client, text string) *Command {
	return &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: client, Text: text, Hash: text, Delivery: protocol.DeliverNextStep,
	}
}

// decided returns the events that a machine decided since the last take, and their types.
func decided(m *driver) (events []protocol.Payload, list string) {
	events = m.take().Events
	var all []string
	for _, event := range events {
		all = append(all, string(event.EventType()))
	}
	return events, strings.Join(all, " ")
}

// machineWithInput returns a machine that has finished one step and calls the model again, with a steering input.
func machineWithInput(t *testing.T) *driver {
	t.Helper()
	m := runningMachine(t)
	accept(t, m, newInput("c1", "use JWT"))
	m.ModelStopped(1, llm.StopEndTurn)
	if _, list := decided(m); strings.Contains(list, "steering.applied") || !m.calling || m.call != 2 {
		t.Fatalf("before the model has answered, call %d: %s", m.call, list)
	}
	if texts := m.CallInput().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Fatalf("the request contains %v", texts)
	}
	return m
}

// accept decides a command that must be accepted.
func accept(t *testing.T, m *driver, c *Command) protocol.SteeringReceipt {
	t.Helper()
	receipt, err := m.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func TestAnInputIsAppliedWithTheFirstEventOfTheAnswerToItsRequest(t *testing.T) {
	for name, test := range map[string]struct {
		output func(*driver)
		want   string
	}{
		"text":      {func(m *driver) { m.ModelText(2, "fine") }, "steering.applied answer.started answer.delta"},
		"code":      {func(m *driver) { m.ModelText(2, "```go\n") }, "steering.applied code.started"},
		"reasoning": {func(m *driver) { m.ModelReasoning(2, "hm") }, "steering.applied reasoning.started reasoning.delta"},
		"a call": {func(m *driver) {
			m.ModelChunk(2, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "1", Name: "look", Input: []byte(`{}`)}})
			m.ModelStopped(2, llm.StopToolCalls)
		}, "steering.applied tool.started tool.state"},
		"an empty answer":           {func(m *driver) { m.ModelStopped(2, llm.StopEndTurn) }, "steering.applied turn.state turn.finished"},
		"only spaces and backticks": {func(m *driver) { m.ModelText(2, " \n``") }, ""},
	} {
		m := machineWithInput(t)
		test.output(m)
		if _, list := decided(m); list != test.want {
			t.Errorf("%s: events: %s, want %s", name, list, test.want)
		}
		if applied := m.inputs[0].step == 2; applied != (test.want != "") {
			t.Errorf("%s: the input was applied in step %d", name, m.inputs[0].step)
		}
	}
}

func TestAnInputWhoseRequestIsNotAnsweredIsReturned(t *testing.T) {
	for reason, end := range map[protocol.ReturnReason]func(*driver){
		protocol.ReturnLimit: func(m *driver) { m.ModelFailed(2, &llm.Error{Code: "model_unavailable"}) },
		protocol.ReturnCancelled: func(m *driver) {
			_, _ = m.Command(newCancel())
			m.ModelFailed(2, &llm.Error{Code: "model_unavailable"})
		},
	} {
		m := machineWithInput(t)
		end(m)
		d := m.take()
		if m.inputs[0].returned != reason || d.End == nil || len(d.End.Returned) != 1 || d.End.Returned[0].Text != "use JWT" {
			t.Errorf("%s: the input is %+v, the end %+v", reason, m.inputs[0], d.End)
		}
	}
}

func TestEveryTriggerMovesAnInputAsItsTableAllows(t *testing.T) {
	triggers := map[protocol.InputTrigger]func(*driver){
		protocol.InputAnswered: func(m *driver) { m.ModelText(m.call, "fine") },
		protocol.InputWithdrawn: func(m *driver) {
			_, _ = m.Command(&Command{Kind: CommandWithdraw, SteeringID: m.inputs[0].id}) // is refused unless the input is pending
		},
		protocol.InputLeft: func(m *driver) {
			_, _ = m.Command(newCancel())
			m.ModelFailed(m.call, &llm.Error{Code: "model_unavailable"})
		},
	}
	reach := map[protocol.InputState]protocol.InputTrigger{protocol.InputApplied: protocol.InputAnswered, protocol.InputReturned: protocol.InputWithdrawn}
	made := map[protocol.InputTrigger]bool{}
	for _, from := range protocol.InputStates {
		for trigger, fire := range triggers {
			m := machineWithInput(t)
			if first, moved := reach[from]; moved {
				triggers[first](m)
			}
			want, legal := protocol.NextInputState(from, trigger)
			if !legal {
				want = from
			}
			if m.inputs[0].state != from {
				t.Fatalf("the input is %s, want %s", m.inputs[0].state, from)
			}
			fire(m)
			if m.inputs[0].state != want {
				t.Errorf("%s: an input that was %s is %s, want %s", trigger, from, m.inputs[0].state, want)
			}
			made[trigger] = made[trigger] || legal
		}
	}
	for _, row := range protocol.InputTransitions {
		if !made[row.Trigger] {
			t.Errorf("nothing makes the transition %s", row.Trigger)
		}
	}
}

func TestAnInputStaysPendingWhileItsRequestIsRepeated(t *testing.T) {
	m := machineWithInput(t)
	m.ModelFailed(2, &llm.Error{Code: "model_unavailable", Cut: true})
	if _, list := decided(m); list != "" || !slices.Equal(m.CallInput().inputs[2], []string{"use JWT"}) {
		t.Errorf("the repeated request contains %v; events: %s", m.CallInput().inputs, list)
	}
	m.ModelText(3, "fine")
	if _, list := decided(m); list != "steering.applied answer.started answer.delta" {
		t.Errorf("events: %s", list)
	}
}

// adoptedMachine returns the machine of the turn's next owner, restored from the log.
func adoptedMachine(t *testing.T, m *driver, events []protocol.Payload, records []turnlog.Record) *driver {
	t.Helper()
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.spec.CreatedAt, events)
	if err != nil {
		t.Fatal(err)
	}
	next, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: records}, machineTools, m.continues)
	if err != nil {
		t.Fatal(err)
	}
	adopted := drive(next)
	adopted.Adopt("node_lost")
	return adopted
}

func TestAPendingInputIsInTheRequestOfTheNextOwnerAndAppliedOnce(t *testing.T) {
	m := runningMachine(t)
	accept(t, m, newInput("c1", "use JWT"))
	m.ModelStopped(1, llm.StopEndTurn)
	d := m.take()
	next := adoptedMachine(t, m, d.Events, d.Records)
	adoption := next.take()
	if texts := next.CallInput().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Fatalf("the new owner's request contains %v", texts)
	}
	next.ModelText(1, "fine")
	more := next.take()
	events := append(append(d.Events, adoption.Events...), more.Events...)
	third := adoptedMachine(t, m, events, d.Records)
	third.take()
	third.ModelText(1, "again")
	third.ModelStopped(1, llm.StopEndTurn)
	events = append(events, third.take().Events...)
	applied := 0
	for _, event := range events {
		if event.EventType() == "steering.applied" {
			applied++
		}
	}
	if applied != 1 || !slices.Equal(third.CallInput().inputs[2], []string{"use JWT"}) {
		t.Errorf("the input was applied %d times, the last request contains %v", applied, third.CallInput().inputs)
	}
}

// In the log of an earlier version, steering.applied comes before the model was called.
func TestAnInputThatAnEarlierVersionAppliedIsInTheRequestOfTheNextOwner(t *testing.T) {
	log := runningMachine(t)
	accept(t, log, newInput("c1", "use JWT"))
	log.ModelStopped(1, llm.StopEndTurn)
	d := log.take()
	id := log.inputs[0].id
	events := append(d.Events, &protocol.SteeringApplied{SteeringID: id, PartID: log.newPart(), Index: 1, Text: "use JWT", Step: 2})
	next := adoptedMachine(t, log, events, d.Records)
	if texts := next.CallInput().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Errorf("the request contains %v", texts)
	}
	next.ModelText(1, "fine")
	if _, list := decided(next); strings.Contains(list, "steering.applied") {
		t.Errorf("the input was applied again: %s", list)
	}
}

func TestAnInputThatIsWithdrawnBeforeTheAnswerIsTakenOutOfTheRequest(t *testing.T) {
	m := machineWithInput(t)
	withdraw := &Command{Kind: CommandWithdraw, SteeringID: m.inputs[0].id}
	receipt := accept(t, m, withdraw)
	d := m.take()
	if len(d.Effects) != 2 || m.call != 3 || len(m.CallInput().inputs[2]) != 0 {
		t.Errorf("the model is called by call %d with %v: %+v", m.call, m.CallInput().inputs, d.Effects)
	}
	m.ModelText(2, "late") // of the request that contained the input
	m.ModelText(3, "fine")
	if _, list := decided(m); list != "answer.started answer.delta" {
		t.Errorf("events: %s", list)
	}
	m.ModelStopped(3, llm.StopEndTurn)
	if again := accept(t, m, withdraw); again.Sequence != receipt.Sequence || !again.Replayed {
		t.Errorf("the repeat got %+v, the first one %+v", again, receipt)
	}
}

func TestAPendingInputIsAppliedAtOnceOnRequest(t *testing.T) {
	for name, write := range map[string]func(*driver){
		"while text streams":         func(m *driver) { m.ModelText(1, "a long ") },
		"after a complete code part": func(m *driver) { m.ModelText(1, "```go\nx\n```\n") },
		"before the first text":      func(*driver) {},
	} {
		m := runningMachine(t)
		write(m)
		input := accept(t, m, newInput("c1", "use JWT"))
		apply := &Command{Kind: CommandApply, SteeringID: input.SteeringID}
		receipt := accept(t, m, apply)
		d := m.take()
		if m.call != 2 || receipt.Replayed || receipt.Sequence != m.sequence {
			t.Fatalf("%s: the model is called by call %d; receipt %+v", name, m.call, receipt)
		}
		if last := d.Records[len(d.Records)-1]; last.Kind != turnlog.RecordApply || last.Sequence != m.sequence {
			t.Errorf("%s: the last record is %+v, want it stored with event %d", name, last, m.sequence)
		}
		m.ModelText(1, "late")
		if again := accept(t, m, apply); again.Sequence != receipt.Sequence || !again.Replayed || m.call != 2 {
			t.Errorf("%s: the repeat got %+v and the model is called by call %d", name, again, m.call)
		}
		next := adoptedMachine(t, m, d.Events, d.Records)
		if again := accept(t, next, apply); again.Sequence != receipt.Sequence || !again.Replayed {
			t.Errorf("%s: the next owner gives the receipt %+v", name, again)
		}
		m.ModelText(2, "fine")
		if _, list := decided(m); !strings.HasPrefix(list, "steering.applied answer.started") {
			t.Errorf("%s: events: %s", name, list)
		}
		if _, err := m.Command(&Command{Kind: CommandApply, SteeringID: protocol.NewSteeringID()}); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: an unknown input got %v", name, err)
		}
	}
}

func TestAnInputThatTheRequestContainsIsNotInterruptedFor(t *testing.T) {
	m := machineWithInput(t)
	accept(t, m, &Command{Kind: CommandApply, SteeringID: m.inputs[0].id})
	if d := m.take(); m.call != 2 || len(d.Effects) != 0 {
		t.Errorf("the model is called by call %d, effects %+v", m.call, d.Effects)
	}
	m.ModelText(2, "fine")
	m.take()
	m.ModelStopped(2, llm.StopEndTurn)
	m.take()
	late := newInput("c2", "late")
	if _, err := m.Command(late); protocol.CodeOf(err) != protocol.CodeSteeringClosed {
		t.Fatalf("the turn still runs: %v", err)
	}
}

func TestAnInputThatWasAppliedOrWithdrawnCannotBeAppliedAgain(t *testing.T) {
	m := runningMachine(t)
	withdrawn := accept(t, m, newInput("c1", "use JWT"))
	accept(t, m, &Command{Kind: CommandWithdraw, SteeringID: withdrawn.SteeringID})
	applied := accept(t, m, newInput("c2", "use TLS"))
	m.ModelStopped(1, llm.StopEndTurn)
	m.ModelText(2, "fine")
	m.take()
	for _, receipt := range []protocol.SteeringReceipt{withdrawn, applied} {
		if _, err := m.Command(&Command{Kind: CommandApply, SteeringID: receipt.SteeringID}); protocol.CodeOf(err) != protocol.CodeSteeringClosed {
			t.Errorf("applying the input %v got %v", receipt.SteeringID, err)
		}
	}
}

func TestAWiderCancelWidensTheFirst(t *testing.T) {
	m := runningMachine(t)
	first := accept(t, m, newCancel())
	all := newCancel()
	all.Scope, all.By = protocol.CancelTurnAndFollowUps, protocol.CancelledByOperator
	second := accept(t, m, all)
	events, _ := decided(m)
	widened, is := events[len(events)-1].(*protocol.TurnCancelRequested)
	if !is || widened.Scope != protocol.CancelTurnAndFollowUps || widened.By != protocol.CancelledByOperator || second.Replayed || second.Sequence != first.Sequence+2 {
		t.Fatalf("the second cancel got %+v with the event %+v", second, events[len(events)-1])
	}
	for scope, want := range map[protocol.CancelScope]int64{protocol.CancelTurn: first.Sequence, protocol.CancelTurnAndFollowUps: second.Sequence} {
		again := newCancel()
		again.Scope = scope
		if got := accept(t, m, again); got.Sequence != want || !got.Replayed {
			t.Errorf("the repeat of %s got %+v, want %d", scope, got, want)
		}
	}
	m.GraceOver()
	if d := m.take(); d.End == nil || !d.End.CancelQueue {
		t.Errorf("the turn ended as %+v, want an end that drops the queue", d.End)
	}
}

func TestANarrowerCancelRepeatsTheWiderOne(t *testing.T) {
	m := runningMachine(t)
	all := newCancel()
	all.Scope = protocol.CancelTurnAndFollowUps
	first := accept(t, m, all)
	if again := accept(t, m, newCancel()); again.Sequence != first.Sequence || !again.Replayed {
		t.Errorf("the narrower cancel got %+v, the first one %+v", again, first)
	}
}

func TestATurnTakesABoundedNumberOfInputs(t *testing.T) {
	m := runningMachine(t)
	for n := range protocol.MaxTurnInputs {
		receipt := accept(t, m, newInput(fmt.Sprint(n), "again"))
		accept(t, m, &Command{Kind: CommandWithdraw, SteeringID: receipt.SteeringID})
	}
	_, err := m.Command(newInput("one more", "again"))
	if protocol.CodeOf(err) != protocol.CodeNotDeliverable {
		t.Errorf("an input over the limit got %v", err)
	}
	if again := accept(t, m, newInput("0", "again")); !again.Replayed {
		t.Errorf("the repeat of the first input got %+v", again)
	}
}

func TestATurnWithTooMuchOutputIsStopped(t *testing.T) {
	const piece = 1 << 20
	text := strings.Repeat("x", piece)
	for name, test := range map[string]struct {
		emit func(*driver)
		want protocol.TurnState
	}{
		"text":      {func(m *driver) { m.ModelText(1, text) }, protocol.TurnIncomplete},
		"reasoning": {func(m *driver) { m.ModelReasoning(1, text) }, protocol.TurnFailed},
		"calls": {func(m *driver) {
			m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: "look", Input: []byte(`"` + text + `"`)}})
		}, protocol.TurnFailed},
		"a long log": {func(m *driver) {
			m.ModelText(1, "a word")
			m.logged += maxTurnLog * piece / maxTurnOutput
		}, protocol.TurnIncomplete},
	} {
		m := newDriver(machineSpec(), machineTools, false)
		m.Begin()
		m.Proceed()
		for n := 0; n <= maxTurnOutput/piece && !m.ended; n++ {
			test.emit(m)
		}
		test.emit(m)
		end := m.take().End
		if end == nil || end.State != test.want || end.Err.Code != "model_protocol" || end.Reason != protocol.StopError {
			t.Errorf("%s: the turn ended as %+v", name, end)
		}
		if m.output > maxTurnOutput {
			t.Errorf("%s: the output has %d bytes, want at most %d", name, m.output, maxTurnOutput)
		}
	}
}

// runningMachine returns a machine whose model has started to answer.
func runningMachine(t *testing.T) *driver {
	t.Helper()
	m := newDriver(machineSpec(), machineTools, false)
	m.Begin()
	m.Proceed()
	m.ModelText(1, "partial ")
	return m
}

// newCancel returns a new cancel of the turn.
func newCancel() *Command {
	return &Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
}

func TestInputIsRefusedOnceTheWindowHasClosed(t *testing.T) {
	m := runningMachine(t)
	if _, err := m.Command(newCancel()); err != nil || m.ended {
		t.Fatalf("the cancel: %v, ended %v", err, m.ended)
	}
	receipt, err := m.Command(&Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "too late", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	if protocol.CodeOf(err) != protocol.CodeSteeringClosed || len(m.inputs) != 0 {
		t.Errorf("the input got %+v, %v", receipt, err)
	}
}

// A trigger that ends a turn may arrive in the same batch as the turn's end, before the step of the actor is complete.
func TestATurnEndsOnceWhateverComesAfterItsEnd(t *testing.T) {
	for name, late := range map[string]func(*driver){
		"the deadline":           func(m *driver) { m.Deadline() },
		"the end of the grace":   func(m *driver) { m.GraceOver() },
		"a failure of the model": func(m *driver) { m.ModelFailed(1, &llm.Error{Code: "model_unavailable"}) },
		"another stop":           func(m *driver) { m.ModelStopped(1, llm.StopMaxTokens) },
		"a cancel":               func(m *driver) { _, _ = m.Command(newCancel()) },
		"an adoption":            func(m *driver) { m.Adopt("restart") },
	} {
		m := runningMachine(t)
		m.ModelStopped(1, llm.StopEndTurn)
		late(m)
		ends := 0
		events := m.take().Events
		for _, event := range events {
			if isFinished(event) {
				ends++
			}
		}
		if ends != 1 || !isFinished(events[len(events)-1]) || m.state != protocol.TurnCompleted {
			t.Errorf("%s: the turn ended %d times, and is %s", name, ends, m.state)
		}
	}
}

// A rolling deploy may drain the owner of a turn as often as the cluster has nodes. A turn that loses its owner again and
// again may be the cause.
func TestATurnIsGivenUpAfterLossesOfItsOwnerButNotAfterDrains(t *testing.T) {
	m := runningMachine(t)
	var frames []byte
	takeover := func(cause protocol.RecoveryCause) (incomplete bool) {
		d := m.take()
		var err error
		frames, err = protocol.AppendEvents(frames, m.spec.TurnID, m.sequence-int64(len(d.Events))+1, m.spec.CreatedAt, d.Events)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: d.Records}, machineTools, false)
		if err != nil {
			t.Fatal(err)
		}
		m = drive(restored)
		m.Adopt(cause)
		return m.state == protocol.TurnIncomplete
	}
	for range 3 * maxLosses {
		if takeover(protocol.CauseDrain) {
			t.Fatalf("the turn was given up after %d drains", m.adoptions)
		}
	}
	for loss := 1; loss <= maxLosses+1; loss++ {
		if takeover(protocol.CauseNodeLost) != (loss > maxLosses) {
			t.Fatalf("after loss %d the turn is %s", loss, m.state)
		}
	}
}

func TestAToolWithEffectsIsNotRunAgainAfterATakeover(t *testing.T) {
	m := runningMachine(t)
	for _, name := range []string{"look", "write"} {
		m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: name, Name: name, Input: json.RawMessage(`{}`)}})
	}
	m.ModelStopped(1, llm.StopToolCalls)
	d := m.take()
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.spec.CreatedAt, d.Events)
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: d.Records}, machineTools, false)
	if err != nil {
		t.Fatal(err)
	}
	next := drive(adopted)
	next.Adopt("restart")
	var again []string
	for _, e := range next.take().Effects {
		if run, ok := e.(RunTool); ok {
			again = append(again, run.Name)
		}
	}
	if len(again) != 1 || again[0] != "look" {
		t.Errorf("run again: %v", again)
	}
	if call := adopted.toolCalls[1]; !call.state.Terminal() || !adopted.results[call.id].failed {
		t.Errorf("the call with effects is %s with the result %+v, want a failed final state", call.state, adopted.results[call.id])
	}
}

func isFinished(p protocol.Payload) bool { _, ok := p.(*protocol.TurnFinished); return ok }
