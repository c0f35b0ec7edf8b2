package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"turnstone/protocol"
)

// The tests of this file hold single steps of the one promise by a store that refuses at the right moment, so that each
// says at once, and alone, what is wrong when it fails.

// refusingOnce is a store that gives the first batch that is like this up as fenced, and stores all others.
func refusingOnce(like func(*protocol.TurnAppend) bool) *memory {
	store := newMemory()
	var once sync.Once
	store.onAppend = func(batch *protocol.TurnAppend, keep func() error, done func(error)) {
		refused := false
		if like(batch) {
			once.Do(func() { refused = true })
		}
		if refused {
			done(protocol.ErrFenced)
			return
		}
		done(keep())
	}
	return store
}

// The batch with the accepted input is refused. Whoever asked may be answered late, by the turn's next actor, but only
// for what is stored then.
func TestNothingIsAcknowledgedThatWasNotStored(t *testing.T) {
	store := refusingOnce(func(batch *protocol.TurnAppend) bool {
		return len(batch.Records) > 0 && batch.Records[0].Kind == protocol.RecordSteering
	})
	goOn := make(chan struct{})
	model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: "partial "}); err != nil {
			return err
		}
		select {
		case <-goOn:
			return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	record, _ := store.TurnRecord(t.Context(), spec.AccountID, spec.TurnID, protocol.RecordSteering, "c1")
	if err != nil || record == nil || record.Sequence != receipt.Sequence {
		t.Errorf("acknowledged as %+v (%v), stored as %+v", receipt, err, record)
	}
	close(goOn)
	read(t, n, spec, 0, nil)
}

// The batch with the intent is refused: the tool waits for the turn's next actor, who asks the model again.
func TestAToolWhoseIntentWasNotStoredDoesNotRun(t *testing.T) {
	intent := []byte(`"type":"tool.started"`)
	store := refusingOnce(func(batch *protocol.TurnAppend) bool { return bytes.Contains(batch.Frames, intent) })
	model := &script{play: func(_ context.Context, _ int, request ModelRequest, emit func(ModelChunk) error) error {
		if request.Messages[len(request.Messages)-1].ToolCallID != "" {
			return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
		}
		call := ModelToolCall{ID: "p1", Name: "write", Input: json.RawMessage(`{}`)}
		if err := emit(ModelChunk{Kind: ChunkToolCall, ToolCall: call}); err != nil {
			return err
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopToolCalls})
	}}
	var runs atomic.Int32
	tool := &probe{spec: machineTools["write"], run: func() (string, error) {
		runs.Add(1)
		return "done", nil
	}}
	n := startNode(t, store, model, func(c *Config) { c.Tools = []Tool{tool} })
	all := read(t, n, startTurn(t, n, "hi"), 0, nil)
	if intents := bytes.Count(all, intent); intents != 1 || runs.Load() != 1 {
		t.Errorf("%d intents were stored, and the tool ran %d times: %s", intents, runs.Load(), kinds(all))
	}
}

// running is a machine whose model has begun to answer.
func running(t *testing.T) *turnMachine {
	t.Helper()
	m := newTurnMachine(machineSpec(), machineTools, false)
	m.begin()
	m.proceed()
	m.modelText(1, "partial ")
	return m
}

func cancelling() *Command {
	return &Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
}

func TestInputIsRefusedOnceTheWindowHasClosed(t *testing.T) {
	m := running(t)
	if _, err := m.command(cancelling()); err != nil || m.ended {
		t.Fatalf("the cancel: %v, ended %v", err, m.ended)
	}
	receipt, err := m.command(&Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "too late", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	if protocol.CodeOf(err) != protocol.CodeSteeringClosed || len(m.inputs) != 0 {
		t.Errorf("the input got %+v, %v", receipt, err)
	}
}

// What ends a turn may come in the same batch as its end, before the actor has settled it.
func TestATurnEndsOnceWhateverComesAfterItsEnd(t *testing.T) {
	for name, late := range map[string]func(*turnMachine){
		"the deadline":           func(m *turnMachine) { m.deadline() },
		"the end of the grace":   func(m *turnMachine) { m.graceOver() },
		"a failure of the model": func(m *turnMachine) { m.modelFailed(1, &ModelError{Code: "model_unavailable"}) },
		"another stop":           func(m *turnMachine) { m.modelStopped(1, StopMaxTokens) },
		"a cancel":               func(m *turnMachine) { _, _ = m.command(cancelling()) },
		"an adoption":            func(m *turnMachine) { m.adopt("restart") },
	} {
		m := running(t)
		m.modelStopped(1, StopEndTurn)
		late(m)
		ends := 0
		events := m.take().events
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

func TestAToolWithEffectsIsNotRunAgainAfterATakeover(t *testing.T) {
	m := running(t)
	for _, name := range []string{"look", "write"} {
		m.modelNotes(1, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: name, Name: name, Input: json.RawMessage(`{}`)}})
	}
	m.modelStopped(1, StopToolCalls)
	d := m.take()
	frames, err := encodeEvents(m.spec.TurnID, 1, m.spec.CreatedAt, d.events)
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := restoreTurnMachine(&protocol.StoredTurn{Spec: m.spec, Frames: frames, Records: d.records}, machineTools, false)
	if err != nil {
		t.Fatal(err)
	}
	adopted.adopt("restart")
	var again []string
	for _, e := range adopted.take().effects {
		if run, ok := e.(runTool); ok {
			again = append(again, run.call.name)
		}
	}
	if len(again) != 1 || again[0] != "look" {
		t.Errorf("run again: %v", again)
	}
	if call := adopted.toolCalls[1]; !call.state.Terminal() || !adopted.results[call.id].failed {
		t.Errorf("the call with effects is %s, its result %+v", call.state, adopted.results[call.id])
	}
}

// Whoever follows a turn that lives here is asked whose it is, as one who reads its log is.
func TestALiveTurnIsThereForItsAccountOnly(t *testing.T) {
	goOn := make(chan struct{})
	model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		_ = emit(ModelChunk{Kind: ChunkText, Text: "secret"})
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	n := startNode(t, newMemory(), model, nil)
	defer close(goOn)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	stranger := protocol.NewAccountID()
	frames, _, err := n.Follow(stranger, spec.TurnID, 0).Next(t.Context(), nil)
	if protocol.CodeOf(err) != protocol.CodeNotFound || len(frames) > 0 {
		t.Errorf("a stranger read %q (%v)", frames, err)
	}
	if _, err := n.Command(t.Context(), stranger, spec.TurnID, cancelling()); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("a stranger's cancel: %v", err)
	}
}
