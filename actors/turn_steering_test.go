package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

func steering(client, text string) *Command {
	return &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: client, Text: text, Hash: text, Delivery: protocol.DeliverNextStep,
	}
}

// decided lists what a machine decided since the last look.
func decided(m *turnMachine) (events []protocol.Payload, list string) {
	events = m.take().events
	var all []string
	for _, event := range events {
		all = append(all, string(event.EventType()))
	}
	return events, strings.Join(all, " ")
}

// asking is a machine that has answered once and asks again with an input.
func asking(t *testing.T) *turnMachine {
	t.Helper()
	m := running(t)
	accept(t, m, steering("c1", "use JWT"))
	m.modelStopped(1, StopEndTurn)
	if _, list := decided(m); strings.Contains(list, "steering.applied") || !m.calling || m.call != 2 {
		t.Fatalf("before the model has answered: %s", list)
	}
	if texts := m.context().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Fatalf("the request contains %v", texts)
	}
	return m
}

func accept(t *testing.T, m *turnMachine, c *Command) protocol.SteeringReceipt {
	t.Helper()
	receipt, err := m.command(c)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// stalling is a model that says one word and then nothing until it is stopped.
func stalling() *script {
	return &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: "partial "}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func TestAnInputIsAppliedWithTheFirstEventOfTheAnswerToItsRequest(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*turnMachine)
		want   string
	}{
		"text":      {func(m *turnMachine) { m.modelText(2, "fine") }, "steering.applied answer.started answer.delta"},
		"code":      {func(m *turnMachine) { m.modelText(2, "```go\n") }, "steering.applied code.started"},
		"reasoning": {func(m *turnMachine) { m.modelReasoning(2, "hm") }, "steering.applied reasoning.started reasoning.delta"},
		"a call": {func(m *turnMachine) {
			m.modelNotes(2, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "1", Name: "look", Input: []byte(`{}`)}})
			m.modelStopped(2, StopToolCalls)
		}, "steering.applied tool.started tool.state"},
		"an answer without a word": {func(m *turnMachine) { m.modelStopped(2, StopEndTurn) }, "steering.applied turn.state turn.finished"},
		"what says nothing yet":    {func(m *turnMachine) { m.modelText(2, " \n``") }, ""},
	} {
		m := asking(t)
		test.answer(m)
		if _, list := decided(m); list != test.want {
			t.Errorf("%s: %s, want %s", name, list, test.want)
		}
		if applied := m.inputs[0].step == 2; applied != (test.want != "") {
			t.Errorf("%s: applied in step %d", name, m.inputs[0].step)
		}
	}
}

func TestAnInputWhoseRequestIsNotAnsweredIsReturned(t *testing.T) {
	for reason, end := range map[string]func(*turnMachine){
		"limit": func(m *turnMachine) { m.modelFailed(2, &ModelError{Code: "model_unavailable"}) },
		"cancelled": func(m *turnMachine) {
			_, _ = m.command(cancelling())
			m.modelFailed(2, &ModelError{Code: "model_unavailable"})
		},
	} {
		m := asking(t)
		end(m)
		d := m.take()
		if m.inputs[0].returned != reason || d.ending == nil || len(d.ending.parked) != 1 || d.ending.parked[0].Text != "use JWT" {
			t.Errorf("%s: the input is %+v, the end %+v", reason, m.inputs[0], d.ending)
		}
	}
}

func TestAnInputStaysPendingWhileItsRequestIsRepeated(t *testing.T) {
	m := asking(t)
	m.modelFailed(2, &ModelError{Code: "model_unavailable", Cut: true})
	if _, list := decided(m); list != "" || !slices.Equal(m.context().inputs[2], []string{"use JWT"}) {
		t.Errorf("the repeated request contains %v after %s", m.context().inputs, list)
	}
	m.modelText(3, "fine")
	if _, list := decided(m); list != "steering.applied answer.started answer.delta" {
		t.Errorf("events: %s", list)
	}
}

// taken is the machine of the next owner.
func taken(t *testing.T, m *turnMachine, events []protocol.Payload, records []protocol.TurnRecord) *turnMachine {
	t.Helper()
	frames, err := encodeEvents(m.spec.TurnID, 1, m.spec.CreatedAt, events)
	if err != nil {
		t.Fatal(err)
	}
	next, err := restoreTurnMachine(&protocol.StoredTurn{Spec: m.spec, Frames: frames, Records: records}, machineTools, m.continues)
	if err != nil {
		t.Fatal(err)
	}
	next.adopt("node_lost")
	return next
}

func TestAPendingInputIsInTheRequestOfTheNextOwnerAndAppliedOnce(t *testing.T) {
	m := running(t)
	accept(t, m, steering("c1", "use JWT"))
	m.modelStopped(1, StopEndTurn)
	d := m.take()
	next := taken(t, m, d.events, d.records)
	adoption := next.take()
	if texts := next.context().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Fatalf("the new owner's request contains %v", texts)
	}
	next.modelText(1, "fine")
	more := next.take()
	events := append(append(d.events, adoption.events...), more.events...)
	third := taken(t, m, events, d.records)
	third.take()
	third.modelText(1, "again")
	third.modelStopped(1, StopEndTurn)
	events = append(events, third.take().events...)
	applied := 0
	for _, event := range events {
		if event.EventType() == "steering.applied" {
			applied++
		}
	}
	if applied != 1 || !slices.Equal(third.context().inputs[2], []string{"use JWT"}) {
		t.Errorf("applied %d times, the last request contains %v", applied, third.context().inputs)
	}
}

// A log of an earlier version has steering.applied before the request was made.
func TestAnInputThatAnEarlierVersionAppliedIsInTheRequestOfTheNextOwner(t *testing.T) {
	log := running(t)
	accept(t, log, steering("c1", "use JWT"))
	log.modelStopped(1, StopEndTurn)
	d := log.take()
	id := log.inputs[0].id
	events := append(d.events, &protocol.SteeringApplied{SteeringID: id, PartID: log.newPart(), Index: 1, Text: "use JWT", Step: 2})
	next := taken(t, log, events, d.records)
	if texts := next.context().inputs[2]; !slices.Equal(texts, []string{"use JWT"}) {
		t.Errorf("the request contains %v", texts)
	}
	next.modelText(1, "fine")
	if _, list := decided(next); strings.Contains(list, "steering.applied") {
		t.Errorf("applied again: %s", list)
	}
}

func TestAnInputThatIsWithdrawnBeforeTheAnswerIsTakenOutOfTheRequest(t *testing.T) {
	m := asking(t)
	withdraw := &Command{Kind: CommandWithdraw, SteeringID: m.inputs[0].id}
	receipt := accept(t, m, withdraw)
	d := m.take()
	if len(d.effects) != 2 || m.call != 3 || len(m.context().inputs[2]) != 0 {
		t.Errorf("the model is asked by call %d with %v: %+v", m.call, m.context().inputs, d.effects)
	}
	m.modelText(2, "late") // of the request that contained it
	m.modelText(3, "fine")
	if _, list := decided(m); list != "answer.started answer.delta" {
		t.Errorf("events: %s", list)
	}
	m.modelStopped(3, StopEndTurn)
	if again := accept(t, m, withdraw); again.Sequence != receipt.Sequence || !again.Replayed {
		t.Errorf("the repeat got %+v, the first one %+v", again, receipt)
	}
}

func TestAWiderCancelWidensTheFirst(t *testing.T) {
	m := running(t)
	first := accept(t, m, cancelling())
	all := cancelling()
	all.Scope, all.By = protocol.CancelTurnAndFollowUps, protocol.CancelledByOperator
	second := accept(t, m, all)
	events, _ := decided(m)
	widened, is := events[len(events)-1].(*protocol.TurnCancelRequested)
	if !is || widened.Scope != protocol.CancelTurnAndFollowUps || widened.By != protocol.CancelledByOperator || second.Replayed || second.Sequence != first.Sequence+2 {
		t.Fatalf("the second cancel got %+v, and is %+v", second, events[len(events)-1])
	}
	for scope, want := range map[protocol.CancelScope]int64{protocol.CancelTurn: first.Sequence, protocol.CancelTurnAndFollowUps: second.Sequence} {
		again := cancelling()
		again.Scope = scope
		if got := accept(t, m, again); got.Sequence != want || !got.Replayed {
			t.Errorf("the repeat of %s got %+v, want %d", scope, got, want)
		}
	}
	m.graceOver()
	if d := m.take(); d.ending == nil || !d.ending.drop {
		t.Errorf("the end is %+v", d.ending)
	}
}

func TestANarrowerCancelRepeatsTheWiderOne(t *testing.T) {
	m := running(t)
	all := cancelling()
	all.Scope = protocol.CancelTurnAndFollowUps
	first := accept(t, m, all)
	if again := accept(t, m, cancelling()); again.Sequence != first.Sequence || !again.Replayed {
		t.Errorf("the narrower cancel got %+v, the first one %+v", again, first)
	}
}

func TestCommandsGetTheirFirstReceiptAfterTheTurnHasEndedAndItsActorIsGone(t *testing.T) {
	store := newMemory()
	n := startNode(t, store, stalling(), nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	all := cancelling()
	all.Scope = protocol.CancelTurnAndFollowUps
	input := steering("c1", "use JWT")
	commands := []*Command{input, {Kind: CommandWithdraw, SteeringID: input.SteeringID}, cancelling(), all}
	var receipts []protocol.SteeringReceipt
	for _, c := range commands {
		receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, c)
		if err != nil && c != all { // the turn may have ended between the two cancels
			t.Fatal(err)
		}
		receipts = append(receipts, receipt)
	}
	read(t, n, spec, 0, nil)
	other := makeNode(t, store, stalling(), nil) // never had its actor
	for i, c := range commands[:3] {
		again, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, c)
		want := receipts[i]
		want.Replayed = true
		if err != nil || again != want {
			t.Errorf("command %d: %+v, %v, want %+v", i, again, err, want)
		}
	}
	input.Hash = "other"
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, input); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("the same name for another input got %v", err)
	}
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, steering("c2", "late")); protocol.CodeOf(err) != protocol.CodeSteeringClosed {
		t.Errorf("a new input got %v", err)
	}
}

func TestAnOperatorsCancelHoldsTheQueueAndADeletionDropsIt(t *testing.T) {
	for by, want := range map[protocol.CancelledBy]protocol.CancelScope{
		protocol.CancelledByOperator: protocol.CancelTurn, protocol.CancelledByDeletion: protocol.CancelTurnAndFollowUps,
	} {
		store := newMemory()
		n := startNode(t, store, stalling(), nil)
		spec := startTurn(t, n, "hi")
		read(t, n, spec, 0, isDelta)
		if err := n.CancelTurn(t.Context(), spec.AccountID, spec.TurnID, by); err != nil {
			t.Fatal(err)
		}
		log := string(read(t, n, spec, 0, nil))
		finish := store.turns[spec.TurnID].finishes[0]
		if !strings.Contains(log, fmt.Sprintf(`"by":%q,"scope":%q`, by, want)) || !finish.PauseQueue || finish.DropQueue != (want == protocol.CancelTurnAndFollowUps) {
			t.Errorf("%s: drop %v, pause %v, %s", by, finish.DropQueue, finish.PauseQueue, log)
		}
	}
}

func TestATurnTakesABoundedNumberOfInputs(t *testing.T) {
	m := running(t)
	for n := range protocol.MaxTurnInputs {
		receipt := accept(t, m, steering(fmt.Sprint(n), "again"))
		accept(t, m, &Command{Kind: CommandWithdraw, SteeringID: receipt.SteeringID})
	}
	_, err := m.command(steering("one more", "again"))
	if protocol.CodeOf(err) != protocol.CodeNotDeliverable {
		t.Errorf("one more got %v", err)
	}
	if again := accept(t, m, steering("0", "again")); !again.Replayed {
		t.Errorf("the repeat of the first got %+v", again)
	}
}

func TestATurnThatSaysTooMuchIsStopped(t *testing.T) {
	const piece = 1 << 20
	text := strings.Repeat("x", piece)
	for name, test := range map[string]struct {
		say  func(*turnMachine)
		want protocol.TurnState
	}{
		"text":      {func(m *turnMachine) { m.modelText(1, text) }, protocol.TurnIncomplete},
		"reasoning": {func(m *turnMachine) { m.modelReasoning(1, text) }, protocol.TurnFailed},
		"calls": {func(m *turnMachine) {
			m.modelNotes(1, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "x", Name: "look", Input: []byte(`"` + text + `"`)}})
		}, protocol.TurnFailed},
		"a long log": {func(m *turnMachine) {
			m.modelText(1, "a word")
			m.logged += maxTurnLog * piece / maxTurnOutput
		}, protocol.TurnIncomplete},
	} {
		m := newTurnMachine(machineSpec(), machineTools, false)
		m.begin()
		m.proceed()
		for n := 0; n <= maxTurnOutput/piece && !m.ended; n++ {
			test.say(m)
		}
		test.say(m)
		end := m.take().ending
		if end == nil || end.state != test.want || end.err.Code != "model_protocol" || end.reason != protocol.StopError {
			t.Errorf("%s: it ended %+v", name, end)
		}
		if m.output > maxTurnOutput {
			t.Errorf("%s: %d bytes were said", name, m.output)
		}
	}
}
