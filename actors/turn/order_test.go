package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// Each test of this file checks one step of the order durable → visible → effects → acknowledged, with a store that
// refuses at the right moment. A failure therefore names the step that is wrong.

// refusingOnce returns a store that reports the first matching batch as fenced and stores all others.
func refusingOnce(like func(*turnlog.Append) bool) *actorstest.Memory {
	store := actorstest.NewMemory()
	var once sync.Once
	store.OnAppend = func(batch *turnlog.Append, commit func() error, done func(error)) {
		refused := false
		if like(batch) {
			once.Do(func() { refused = true })
		}
		if refused {
			done(ownership.ErrFenced)
			return
		}
		done(commit())
	}
	return store
}

// The store refuses the batch with the accepted input. The caller may get a late reply, from the turn's next actor, but
// only for an input that is then stored.
func TestNothingIsAcknowledgedThatWasNotStored(t *testing.T) {
	store := refusingOnce(func(batch *turnlog.Append) bool {
		return len(batch.Records) > 0 && batch.Records[0].Kind == turnlog.RecordSteering
	})
	proceed := make(chan struct{})
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "partial "}); err != nil {
			return err
		}
		select {
		case <-proceed:
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, &machine.Command{
		Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	record, _ := store.TurnRecord(t.Context(), spec.AccountID, spec.TurnID, turnlog.RecordSteering, "c1")
	if err != nil || record == nil || record.Sequence != receipt.Sequence {
		t.Errorf("acknowledged as %+v (%v), stored as %+v", receipt, err, record)
	}
	close(proceed)
	read(t, n, spec, 0, nil)
}

// The store refuses the batch with tool.started, after a pause: the tool runs only after the turn's next actor has called the
// model again. The clock is a fake one, so whatever would run before the batch is stored has run when the pause ends.
func TestAToolWhoseIntentWasNotStoredDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) }) // ends the remaining timers of the actor system
		intent := []byte(`"type":"tool.started"`)
		store := refusingOnce(func(batch *turnlog.Append) bool {
			announces := bytes.Contains(batch.Frames, intent)
			if announces {
				<-time.After(time.Second)
			}
			return announces
		})
		model := &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, emit func(llm.Chunk) error) error {
			if request.Messages[len(request.Messages)-1].ToolCallID != "" {
				return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
			}
			call := llm.ToolCall{ID: "p1", Name: "write", Input: json.RawMessage(`{}`)}
			if err := emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: call}); err != nil {
				return err
			}
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
		}}
		var runs atomic.Int32
		tool := toolboxtest.Says(&toolbox.Spec{Name: "write", Kind: "connector", Title: "Write", Effect: protocol.EffectWrite, Own: true}, func() (string, error) {
			runs.Add(1)
			return "done", nil
		})
		n := startNode(t, store, model, func(c *testConfig) { c.Tools = catalogue(t, tool) })
		all := read(t, n, startTurn(t, n, "hi"), 0, nil)
		if intents := bytes.Count(all, intent); intents != 1 || runs.Load() != 1 {
			t.Errorf("%d intents were stored, and the tool ran %d times: %s", intents, runs.Load(), kinds(all))
		}
	})
}

// The account is checked for a turn that runs on this node, as it is for a turn that is read from the log.
func TestALiveTurnIsVisibleOnlyToItsAccount(t *testing.T) {
	proceed := make(chan struct{})
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "secret"})
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	n := startNode(t, actorstest.NewMemory(), model, nil)
	defer close(proceed)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	stranger := protocol.NewAccountID()
	frames, _, err := n.Follow(stranger, spec.TurnID, 0).Next(t.Context(), nil)
	if protocol.CodeOf(err) != protocol.CodeNotFound || len(frames) > 0 {
		t.Errorf("another account read %q (%v)", frames, err)
	}
	if _, err := n.Command(t.Context(), stranger, spec.TurnID, newCancel()); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("the cancel of another account returned %v", err)
	}
}
