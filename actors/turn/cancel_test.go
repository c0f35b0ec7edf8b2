package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
)

// maxCancelling is the longest time that a turn may be in the state cancelling.
const maxCancelling = 5 * time.Second

// hangingModel returns a model that ignores the end of its context in one call, the one with the given number, until
// gate is closed.
func hangingModel(call int, gate <-chan struct{}) *llmtest.Script {
	return &llmtest.Script{Play: func(_ context.Context, current int, _ llm.Request, emit func(llm.Chunk) error) error {
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "partial"}) // fails when the turn has ended
		if current == call {
			<-gate
		}
		for _, name := range []string{"look", "write"} {
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: name, Name: name, Input: json.RawMessage(`{}`)}})
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
	}}
}

// The clock is a fake one, so the limit is checked exactly.
func TestCancellingLastsAtMostFiveSecondsWhateverIgnoresTheCancel(t *testing.T) {
	for name, c := range map[string]struct {
		call  int // the model call that hangs; 0: the tools hang
		ready func(protocol.Payload) bool
		tools map[string]protocol.ToolState
	}{
		"the model": {call: 1, ready: isDelta, tools: map[string]protocol.ToolState{}},
		"the tools": {
			ready: func(p protocol.Payload) bool {
				state, is := p.(*protocol.ToolStateChanged)
				return is && state.State == protocol.ToolRunning
			},
			tools: map[string]protocol.ToolState{"look": protocol.ToolCancelled, "write": protocol.ToolOutcomeUnknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { <-time.After(time.Minute) }) // on the fake clock: ends the remaining timers of the actor system
				gate := make(chan struct{})
				hang := func() (string, error) { <-gate; return "much too late", nil }
				store := actorstest.NewMemory()
				n := startNode(t, store, hangingModel(c.call, gate), func(config *testConfig) {
					config.Tools = catalogue(t,
						toolboxtest.Says(&toolbox.Spec{Name: "look", Kind: "compute", Title: "Look", Effect: protocol.EffectRead}, hang),
						toolboxtest.Says(&toolbox.Spec{Name: "write", Kind: "compute", Title: "Write", Effect: protocol.EffectWrite, Own: true}, hang),
					)
				})
				defer close(gate)
				spec := startTurn(t, n, "hi")
				read(t, n, spec, 0, c.ready)
				synctest.Wait() // until the other tool runs, too
				cancel := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
				if _, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				all := read(t, n, spec, 0, nil)
				if took := time.Since(began); took > maxCancelling {
					t.Errorf("the turn was cancelling for %s, want at most %s", took, maxCancelling)
				}
				if end := store.Turns[spec.TurnID].Finishes; len(end) != 1 || end[0].State != protocol.TurnCancelled {
					t.Errorf("the ends of the turn: %+v, want one with the state cancelled", end)
				}
				if got := endsOfTools(t, all); len(got) != len(c.tools) || got["look"] != c.tools["look"] || got["write"] != c.tools["write"] {
					t.Errorf("the final states of the tools: %v, want %v", got, c.tools)
				}
				if strings.Contains(string(all), "much too late") || !strings.HasSuffix(kinds(all), "turn.state turn.finished") {
					t.Errorf("events: %s", all)
				}
			})
		})
	}
}

// The clock is a fake one. A call that waits takes none of its own time, and has no effect when the turn is cancelled.
func TestATurnRunsAtMostEightToolsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) })
		const calls = 2*maxToolsAtOnce + 3
		model := &llmtest.Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
			for i := range calls {
				_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: fmt.Sprint(i), Name: "write", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}})
			}
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
		}}
		var started atomic.Int32
		spec := toolbox.Spec{Name: "write", Kind: "compute", Title: "Write", Effect: protocol.EffectWrite, Own: true, Timeout: 30 * time.Second}
		n := startNode(t, actorstest.NewMemory(), model, func(config *testConfig) {
			config.Tools = catalogue(t, toolboxtest.Says(&spec, func() (string, error) {
				started.Add(1)
				<-time.After(20 * time.Second)
				return "written", nil
			}))
		})
		turn := startTurn(t, n, "hi")
		for round := range int32(2) { // the second one begins after 20 s, and takes longer than 30 s after the start of the turn
			synctest.Wait()
			if got := started.Load(); got != (round+1)*maxToolsAtOnce {
				t.Fatalf("%d calls have started in round %d", got, round)
			}
			if round == 0 {
				<-time.After(20 * time.Second)
			}
		}
		cancel := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
		if _, err := n.Command(t.Context(), turn.AccountID, turn.TurnID, cancel); err != nil {
			t.Fatal(err)
		}
		all := string(read(t, n, turn, 0, nil))
		for state, want := range map[protocol.ToolState]int{protocol.ToolSucceeded: maxToolsAtOnce, protocol.ToolOutcomeUnknown: maxToolsAtOnce, protocol.ToolCancelled: calls - 2*maxToolsAtOnce} {
			ends := 0
			for line := range protocol.FrameLines([]byte(all)) {
				if _, payload, err := protocol.DecodeEvent(line); err != nil {
					t.Fatal(err)
				} else if end, is := payload.(*protocol.ToolCompleted); is && end.State == state {
					ends++
				}
			}
			if ends != want {
				t.Errorf("%d calls are %s, want %d", ends, state, want)
			}
		}
		if got := started.Load(); got != 2*maxToolsAtOnce {
			t.Errorf("%d calls have started", got)
		}
	})
}

// endsOfTools returns the final states of the tools in a log, by their names.
func endsOfTools(t *testing.T, frames []byte) map[string]protocol.ToolState {
	t.Helper()
	names, ends := map[protocol.ToolID]string{}, map[string]protocol.ToolState{}
	for line := range protocol.FrameLines(frames) {
		_, payload, err := protocol.DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		switch p := payload.(type) {
		case *protocol.ToolStarted:
			names[p.ToolID] = p.ToolName
		case *protocol.ToolCompleted:
			ends[names[p.ToolID]] = p.State
		}
	}
	return ends
}
