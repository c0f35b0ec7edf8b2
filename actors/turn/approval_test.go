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
	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// sendingModel calls the tool send, and then answers.
func sendingModel() *llmtest.Script {
	return &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, emit func(llm.Chunk) error) error {
		if request.Step == 1 {
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p1", Name: "send", Input: json.RawMessage(`{}`)}})
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
		}
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "ok"})
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
}

// approvalHost returns a node that adopts only when the test asks it to. Its model calls a tool that needs an approval; runs counts
// the runs of the tool.
func approvalHost(t *testing.T, store *actorstest.Memory) (n *testNode, runs *atomic.Int32) {
	t.Helper()
	runs = &atomic.Int32{}
	tool := toolboxtest.Says(&toolbox.Spec{Name: "send", Kind: "connector", Title: "Send", Effect: protocol.EffectSend, Risk: protocol.RiskMedium}, func() (string, error) {
		runs.Add(1)
		return "sent", nil
	})
	return registered(t, store, sendingModel(), func(c *testConfig) { c.Tools = catalogue(t, tool) }), runs
}

func isWaiting(p protocol.Payload) bool {
	state, is := p.(*protocol.TurnStateChanged)
	return is && state.State == protocol.TurnRequiresAction
}

// decisionOn returns a command that decides on the only approval of a turn.
func decisionOn(t *testing.T, s *actorstest.Memory, spec *turnlog.Spec, decision protocol.Decision) *machine.Command {
	t.Helper()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, record := range s.Turns[spec.TurnID].Records {
		var body turnlog.ApprovalRecord
		if record.Kind == turnlog.RecordApproval && json.Unmarshal(record.Body, &body) == nil {
			return &machine.Command{
				Kind: machine.CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: body.Approval.ApprovalID, Digest: body.Approval.InputDigest, Decision: decision, Hash: string(decision),
			}
		}
	}
	t.Fatal("the turn has no approval")
	return nil
}

// The clock is a fake one.
func TestATurnThatWaitsForAnApprovalHasNoActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) }) // ends the remaining timers of the actor system
		store := actorstest.NewMemory()
		n, runs := approvalHost(t, store)
		var specs []*turnlog.Spec
		for range 50 {
			spec := startTurn(t, n, "hi")
			read(t, n, spec, 0, isWaiting)
			specs = append(specs, spec)
		}
		<-time.After(2 * parkDelay)
		synctest.Wait()
		if running := n.Running(); running != 0 {
			t.Fatalf("%d of %d turns that wait have an actor", running, len(specs))
		}
		if adoptOnce(t, n); n.Running() != 0 {
			t.Error("a turn that waits was adopted")
		}
		<-time.After(20 * time.Hour) // much longer than the deadline of a turn
		for i, spec := range specs[:3] {
			decision := []protocol.Decision{protocol.ApproveOnce, protocol.RejectCall, protocol.ApproveForConversation}[i]
			c := decisionOn(t, store, spec, decision)
			first, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, c)
			if err != nil {
				t.Fatalf("%s: %v", decision, err)
			}
			frames := string(read(t, n, spec, 0, nil))
			if !strings.Contains(frames, fmt.Sprintf(`"decision":%q`, decision)) || !strings.Contains(frames, `"status":"completed"`) || strings.Contains(frames, "turn.recovering") {
				t.Errorf("%s: %s", decision, frames)
			}
			again, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, c)
			if err != nil || again.SteeringID != first.SteeringID || !again.Replayed {
				t.Errorf("the repeat got %+v, %v", again, err)
			}
		}
		if runs.Load() != 2 {
			t.Errorf("the tool ran %d times", runs.Load())
		}
		<-time.After(4 * time.Hour) // the others expire
		for range 5 {               // each claims at most 20
			adoptOnce(t, n)
			synctest.Wait()
		}
		for _, spec := range specs[3:] {
			if frames := string(read(t, n, spec, 0, nil)); !strings.Contains(frames, `"decision":"expired","by":"timeout"`) || !strings.Contains(frames, `"status":"completed"`) {
				t.Fatalf("an approval that nobody decided: %s", frames)
			}
		}
		if runs.Load() != 2 {
			t.Errorf("an expired call ran")
		}
	})
}

// More turns may wait for approvals than may be live. Approved together, they continue one after the other.
func TestTurnsThatAreApprovedTogetherShareTheSlotsOfTheirAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) })
		const limit, turns = 2, 7
		store := actorstest.NewMemory()
		var inside, most atomic.Int32
		proceed := make(chan struct{})
		calling := sendingModel().Play
		model := &llmtest.Script{Play: func(ctx context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error {
			if request.Step > 1 {
				most.Store(max(most.Load(), inside.Add(1)))
				<-proceed
				inside.Add(-1)
			}
			return calling(ctx, call, request, emit)
		}}
		tool := toolboxtest.Says(&toolbox.Spec{Name: "send", Kind: "connector", Title: "Send", Effect: protocol.EffectSend}, func() (string, error) { return "sent", nil })
		n := registered(t, store, model, func(c *testConfig) { c.Tools, c.MaxLiveTurns = catalogue(t, tool), limit })
		account := protocol.NewAccountID()
		var specs []*turnlog.Spec
		for range turns {
			started, err := n.StartTurn(t.Context(), &turnlog.Start{AccountID: account, Input: "hi"})
			if err != nil {
				t.Fatal(err)
			}
			read(t, n, started.Spec, 0, isWaiting)
			specs = append(specs, started.Spec)
		}
		<-time.After(2 * parkDelay)
		for _, spec := range specs {
			if _, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, decisionOn(t, store, spec, protocol.ApproveOnce)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got := inside.Load(); got != limit {
			t.Errorf("%d turns call the model at the same time, want %d", got, limit)
		}
		cancel := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
		if _, err := n.Command(t.Context(), account, specs[turns-1].TurnID, cancel); err != nil {
			t.Fatal(err)
		}
		read(t, n, specs[turns-1], 0, nil) // one that waits ends at once
		close(proceed)
		for _, spec := range specs[:turns-1] {
			if frames := string(read(t, n, spec, 0, nil)); !strings.Contains(frames, `"status":"completed"`) {
				t.Errorf("%s", frames)
			}
		}
		synctest.Wait()
		if most.Load() != limit || len(n.modelCallSlots.accounts) != 0 {
			t.Errorf("%d turns called the model at the same time; %d accounts have slots at the end", most.Load(), len(n.modelCallSlots.accounts))
		}
	})
}

func TestAWaitingTurnCanBeSteeredAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) })
		store := actorstest.NewMemory()
		n, runs := approvalHost(t, store)
		spec := startTurn(t, n, "hi")
		read(t, n, spec, 0, isWaiting)
		<-time.After(2 * parkDelay)
		synctest.Wait()
		input := &machine.Command{Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "1", Text: "quickly", Delivery: protocol.DeliverInterrupt, Hash: "h"}
		if _, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, input); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * parkDelay)
		synctest.Wait()
		if n.Running() != 0 {
			t.Error("the turn keeps its actor after an input")
		}
		cancel := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
		if _, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel); err != nil {
			t.Fatal(err)
		}
		frames := string(read(t, n, spec, 0, nil))
		if !strings.Contains(frames, `"decision":"cancelled","by":"policy"`) || !strings.Contains(frames, "steering.returned") || !strings.Contains(frames, `"status":"cancelled"`) || runs.Load() != 0 {
			t.Errorf("%s", frames)
		}
	})
}

// The calls of one step are written before any of them runs, so an outward one among them cannot carry what another of them reads.
// In the next step it can, and asks.
func TestAnOutwardCallIsComparedWithWhatWasReadBeforeItWasWritten(t *testing.T) {
	var reads, searches atomic.Int32
	tools := catalogue(t,
		toolboxtest.Says(&toolbox.Spec{Name: "read", Kind: "compute", Effect: protocol.EffectRead, Private: true}, func() (string, error) {
			reads.Add(1)
			return "The code is 7391-4402.", nil
		}),
		toolboxtest.Says(&toolbox.Spec{Name: "search", Kind: "web_search", Describe: func(input json.RawMessage) policy.Description {
			return policy.Description{Outward: string(input)}
		}}, func() (string, error) { searches.Add(1); return "nothing", nil }))
	model := &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, emit func(llm.Chunk) error) error {
		if request.Step <= 2 {
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p1", Name: "read", Input: json.RawMessage(`{}`)}})
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p2", Name: "search", Input: json.RawMessage(`{"query":"7391-4402"}`)}})
			if read := int(reads.Load()); read != request.Step-1 {
				t.Errorf("step %d: when its calls are written, the file has been read %d times", request.Step, read)
			}
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
		}
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "ok"})
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	n := registered(t, actorstest.NewMemory(), model, func(c *testConfig) { c.Tools = tools })
	frames := string(read(t, n, startTurn(t, n, "hi"), 0, isWaiting))
	if searches.Load() != 1 || strings.Count(frames, "approval.requested") != 1 {
		t.Errorf("%d searches ran before the first approval: %s", searches.Load(), frames)
	}
}

func TestAReaderGetsAtMostFourReportsOfProgressASecondAndTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		gate := &progressGate{send: func(label string, _ *protocol.Progress) { sent = append(sent, label) }}
		for n := range 1000 {
			gate.report(fmt.Sprint(n), nil)
			<-time.After(time.Millisecond)
		}
		<-time.After(progressInterval)
		synctest.Wait()
		if len(sent) != 5 || sent[0] != "0" || sent[4] != "999" {
			t.Errorf("%v", sent)
		}
		gate.report("x\u202e\x00"+strings.Repeat("y", 1000), nil)
		if last := sent[len(sent)-1]; len(last) > maxProgressLabel || strings.ContainsAny(last, "\x00\u202e") {
			t.Errorf("%q", last)
		}
		gate.report("late", nil)
		gate.close()
		<-time.After(time.Second)
		if sent[len(sent)-1] == "late" {
			t.Error("a report followed the end of the call")
		}
	})
}
