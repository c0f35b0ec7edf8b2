package actors

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol"
)

// maxCancelling is how long a turn may be cancelling.
const maxCancelling = 5 * time.Second

// deaf is a model that ignores that it was stopped, in the call that its function names.
func deaf(call int, gate <-chan struct{}) *script {
	return &script{play: func(_ context.Context, current int, _ ModelRequest, emit func(ModelChunk) error) error {
		_ = emit(ModelChunk{Kind: ChunkText, Text: "partial"}) // nobody may listen any more
		if current == call {
			<-gate
		}
		for _, name := range []string{"look", "write"} {
			_ = emit(ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: name, Name: name, Input: json.RawMessage(`{}`)}})
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopToolCalls})
	}}
}

// The clock is a fake one, so the limit is checked to the second.
func TestCancellingLastsAtMostFiveSecondsWhateverIgnoresTheCancel(t *testing.T) {
	for name, c := range map[string]struct {
		call  int // of the model that hangs; 0: the tools do
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
				t.Cleanup(func() { <-time.After(time.Minute) }) // of the fake clock: timers of the actor system that still run
				gate := make(chan struct{})
				hang := func() (string, error) { <-gate; return "much too late", nil }
				store := newMemory()
				n := startNode(t, store, deaf(c.call, gate), func(config *Config) {
					config.Tools = []Tool{
						&probe{spec: ToolSpec{Name: "look", Kind: "compute", Title: "Look", ReadOnly: true}, run: hang},
						&probe{spec: ToolSpec{Name: "write", Kind: "compute", Title: "Write"}, run: hang},
					}
				})
				defer close(gate)
				spec := startTurn(t, n, "hi")
				read(t, n, spec, 0, c.ready)
				synctest.Wait() // the other tool runs, too
				cancel := &Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
				if _, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				all := read(t, n, spec, 0, nil)
				if took := time.Since(began); took > maxCancelling {
					t.Errorf("it was cancelling for %s", took)
				}
				if end := store.turns[spec.TurnID].finishes; len(end) != 1 || end[0].State != protocol.TurnCancelled {
					t.Errorf("it ended %+v", end)
				}
				if got := endsOfTools(t, all); len(got) != len(c.tools) || got["look"] != c.tools["look"] || got["write"] != c.tools["write"] {
					t.Errorf("the tools ended %v, want %v", got, c.tools)
				}
				if strings.Contains(string(all), "much too late") || !strings.HasSuffix(kinds(all), "turn.state turn.finished") {
					t.Errorf("events: %s", all)
				}
			})
		})
	}
}

// endsOfTools reads how the tools of a log ended, by their names.
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
