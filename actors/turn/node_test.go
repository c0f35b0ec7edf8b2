package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/cluster"
	"turnstone/actors/clustertest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/node"
	"turnstone/actors/routing"
	"turnstone/actors/tail"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

const testTimeout = clocktest.HangGuard

// testNode is a node with one host, which runs turns.
type testNode struct {
	*Host
	process *node.Node
}

// testConfig is the configuration of a testNode.
type testConfig struct {
	Config
	Cluster *cluster.Options
}

func (n *testNode) ID() protocol.NodeID { return n.node.ID }

func (n *testNode) Drain(ctx context.Context, grace time.Duration) error {
	return n.process.Drain(ctx, grace)
}

func (n *testNode) Stop() { n.process.Stop() }

func newNode(directory node.Directory, c testConfig) *testNode {
	process := node.New(node.Config{Directory: directory, Cluster: c.Cluster, Logger: c.Logger})
	c.Node, c.Link = process.Host(), process.Link()
	turns := New(c.Config)
	process.Attach(turns.Load, turns)
	return &testNode{turns, process}
}

func startNode(t *testing.T, store *actorstest.Memory, model llm.Model, change func(*testConfig)) *testNode {
	t.Helper()
	n := makeNode(t, store, model, change)
	if err := n.process.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// makeNode returns a node that is not started.
func makeNode(t *testing.T, store *actorstest.Memory, model llm.Model, change func(*testConfig)) *testNode {
	t.Helper()
	c := testConfig{Config: Config{
		Store: store, FollowUps: store, Log: store, Ownership: store, Approvals: store, Model: model, Routes: routing.Defaults("b", "d", "c"), MaxLiveTurns: 5,
		Logger: clustertest.Log(t),
	}}
	if change != nil {
		change(&c)
	}
	n := newNode(store, c)
	t.Cleanup(func() {
		n.Stop()
		store.Appends.Wait()
	})
	return n
}

// registered returns a node that is registered and has no keeper: the test calls Round.
func registered(t *testing.T, store *actorstest.Memory, model llm.Model, change func(*testConfig)) *testNode {
	t.Helper()
	n := makeNode(t, store, model, change)
	if err := store.Register(t.Context(), ownership.NewNode{NodeID: n.node.ID}); err != nil {
		t.Fatal(err)
	}
	return n
}

// adoptOnce lets the host of a node adopt once.
func adoptOnce(t *testing.T, n *testNode) (more bool) {
	t.Helper()
	more, err := n.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return more
}

func startTurn(t *testing.T, n *testNode, input string) *turnlog.Spec {
	t.Helper()
	result, err := n.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID(), Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return result.Spec
}

// read follows a turn until stop returns true for an event, or until the end of the turn. It returns the frames.
func read(t *testing.T, n *testNode, spec *turnlog.Spec, after int64, stop func(protocol.Payload) bool) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	reader := n.Follow(spec.AccountID, spec.TurnID, after)
	var all []byte
	for {
		frames, ended, err := reader.Next(ctx, nil)
		if err != nil {
			t.Fatalf("reading %s after %d: %v", spec.TurnID, reader.Cursor(), err)
		}
		all = append(all, frames...)
		for line := range protocol.FrameLines(frames) {
			_, payload, err := protocol.DecodeEvent(line)
			if err != nil {
				t.Fatal(err)
			}
			if stop != nil && stop(payload) {
				return all
			}
		}
		if ended {
			return all
		}
	}
}

// kinds returns the types of the events, separated by spaces.
func kinds(frames []byte) string {
	var list []string
	for line := range protocol.FrameLines(frames) {
		_, kind, _ := protocol.FrameHead(line)
		list = append(list, kind)
	}
	return strings.Join(list, " ")
}

func isDelta(p protocol.Payload) bool    { _, ok := p.(*protocol.AnswerDelta); return ok }
func isFinished(p protocol.Payload) bool { _, ok := p.(*protocol.TurnFinished); return ok }

func TestATurnStreamsItsAnswerAndReplaysTheSameBytes(t *testing.T) {
	store := actorstest.NewMemory()
	n := startNode(t, store, llmtest.Answer("Hello ", "there.\n", "```go\n", "x := 1\n", "```\n", "Done."), nil)
	spec := startTurn(t, n, "hi")
	live := read(t, n, spec, 0, nil)
	if !strings.HasPrefix(kinds(live), "turn.started turn.routing turn.state answer.started answer.delta") ||
		!strings.HasSuffix(kinds(live), "turn.state turn.finished") {
		t.Errorf("events: %s", kinds(live))
	}
	stored := store.Turns[spec.TurnID]
	if !bytes.Equal(live, stored.Frames) {
		t.Error("the frames that a reader got differ from the stored frames")
	}
	if again := read(t, n, spec, 0, nil); !bytes.Equal(again, live) {
		t.Error("the frames of the replay differ from the live frames")
	}
	if tail := read(t, n, spec, 5, nil); !bytes.Equal(tail, protocol.SkipFrames(live, 5)) {
		t.Error("the frames after resuming at 5 differ from the live frames")
	}
	parts := stored.Finishes[0].Parts
	if len(parts) != 3 || parts[0].Text != "Hello there.\n" || parts[1].Code != "x := 1\n" || parts[1].Language != "go" || parts[2].Text != "Done." {
		t.Errorf("the parts of the message: %+v", parts)
	}
}

func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	store := actorstest.NewMemory()
	held := make(chan func(), 16)
	store.OnAppend = func(_ *turnlog.Append, commit func() error, done func(error)) {
		held <- func() { done(commit()) }
	}
	proceed := make(chan struct{})
	model := &llmtest.Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "secret"})
		<-proceed // otherwise the text may become part of the turn's last transaction
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	defer close(proceed)
	spec := startTurn(t, n, "hi")
	release := <-held
	reader := n.Follow(spec.AccountID, spec.TurnID, 3)
	beat := make(chan time.Time, 1)
	beat <- time.Now()
	if frames, _, err := reader.Next(t.Context(), beat); err != nil || len(frames) > 0 {
		t.Fatalf("before the commit a reader saw %q, %v", frames, err)
	}
	release()
	if got := read(t, n, spec, 3, isDelta); !bytes.Contains(got, []byte("secret")) {
		t.Errorf("after the commit: %q", got)
	}
}

func TestCancelIsDurableBeforeItIsAcknowledged(t *testing.T) {
	store := actorstest.NewMemory()
	stopped := make(chan struct{})
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "partial"}); err != nil {
			return err
		}
		<-ctx.Done()
		close(stopped)
		return ctx.Err()
	}}
	var mu sync.Mutex
	var acknowledged bool
	store.OnAppend = func(batch *turnlog.Append, commit func() error, done func(error)) {
		if len(batch.Records) > 0 && batch.Records[0].Kind == turnlog.RecordCancel {
			mu.Lock()
			if acknowledged {
				t.Error("acknowledged before it was stored")
			}
			mu.Unlock()
		}
		go func() { done(commit()) }()
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	cancel := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
	receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel)
	mu.Lock()
	acknowledged = true
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	record, _ := store.TurnRecord(t.Context(), spec.AccountID, spec.TurnID, turnlog.RecordCancel, "")
	if record == nil || record.Sequence != receipt.Sequence {
		t.Errorf("record %+v, receipt %+v", record, receipt)
	}
	<-stopped // the model call was stopped
	all := read(t, n, spec, 0, nil)
	if !strings.HasSuffix(kinds(all), "turn.cancel_requested turn.state answer.completed turn.state turn.finished") {
		t.Errorf("events: %s", kinds(all))
	}
	again, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel)
	if err != nil || again.Sequence != receipt.Sequence || again.SteeringID != receipt.SteeringID || !again.Replayed {
		t.Errorf("the repeat of the cancel after the end: %+v, %v", again, err)
	}
}

func TestSteeringIsAppliedInANamedStepAndTheModelSeesIt(t *testing.T) {
	store := actorstest.NewMemory()
	proceed := make(chan struct{})
	model := &llmtest.Script{}
	model.Play = func(_ context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: fmt.Sprintf("answer %d. ", call)}); err != nil {
			return err
		}
		if call == 1 {
			<-proceed
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	input := &machine.Command{Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep}
	first, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, input)
	if err != nil {
		t.Fatal(err)
	}
	close(proceed)
	all := read(t, n, spec, 0, nil)
	if !strings.Contains(kinds(all), "answer.completed steering.applied answer.started") {
		t.Errorf("events: %s", kinds(all))
	}
	last := model.Requests()[1].Messages
	if len(last) < 3 || last[len(last)-1].Text != "use JWT" || last[len(last)-2].Role != "assistant" || last[len(last)-2].Text != "answer 1. " {
		t.Errorf("the messages of the second request: %+v", last)
	}
	again, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, input)
	if err != nil || again.SteeringID != first.SteeringID || !again.Replayed {
		t.Errorf("the repeat of the input after the end: %+v, %v", again, err)
	}
}

func TestToolsRunAfterTheirIntentIsDurableAndTheModelSeesTheirResult(t *testing.T) {
	store := actorstest.NewMemory()
	model := &llmtest.Script{Play: func(_ context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if call == 1 {
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p1", Name: "probe", Input: json.RawMessage(`{"n":1}`)}})
			_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p2", Name: "nonsense", Input: json.RawMessage(`{}`)}})
			_ = emit(llm.Chunk{Kind: llm.ChunkOpaque, Opaque: json.RawMessage(`{"signed":true}`)})
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
		}
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "ok"})
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	tool := toolboxtest.Says(&toolbox.Spec{Name: "probe", Title: "Probe"}, func() (string, error) {
		for _, turn := range store.Turns {
			store.Mu.Lock()
			if !bytes.Contains(turn.Frames, []byte(`"type":"tool.state"`)) {
				t.Error("the tool ran before its intent was stored")
			}
			store.Mu.Unlock()
		}
		return "42", nil
	})
	n := startNode(t, store, model, func(c *testConfig) { c.Tools = catalogue(t, tool) })
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if got := kinds(all); strings.Count(got, "tool.completed") != 2 || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
	messages := model.Requests()[1].Messages
	if step := messages[len(messages)-3]; step.OpaqueOwner != "script" || string(step.Opaque) != `{"signed":true}` {
		t.Errorf("the provider did not get its own state back: %+v", step)
	}
	if a, b := messages[len(messages)-2], messages[len(messages)-1]; a.ToolCallID != "p1" || a.Text != "42" || b.ToolCallID != "p2" || !b.ToolFailed {
		t.Errorf("the tool results in the second request: %+v", messages)
	}
}

// catalogue returns a catalogue of tools.
func catalogue(t *testing.T, tools ...toolbox.Tool) *toolbox.Catalogue {
	t.Helper()
	c, err := toolbox.NewCatalogue(tools)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReleasingAFollowUpStartsItsTurnOnThisNode(t *testing.T) {
	n := startNode(t, actorstest.NewMemory(), llmtest.Answer("fine"), nil)
	change := &turnlog.FollowUpChange{Queue: turnlog.Queue{AccountID: protocol.NewAccountID()}, FollowUpID: protocol.NewFollowUpID()}
	change.State = protocol.FollowUpQueued
	item, err := n.ChangeFollowUp(t.Context(), change)
	if err != nil || item.TurnID == nil {
		t.Fatalf("%+v, %v", item, err)
	}
	if got := kinds(read(t, n, &turnlog.Spec{AccountID: change.AccountID, TurnID: *item.TurnID}, 0, nil)); !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
	if err := n.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if item, err := n.ChangeFollowUp(t.Context(), change); err != nil || item.TurnID != nil {
		t.Errorf("the change on a drained node: %+v, %v; want no turn", item, err)
	}
}

func TestAFencedActorWritesNothingAndAnotherNodeContinues(t *testing.T) {
	store := actorstest.NewMemory()
	hold := make(chan struct{})
	model := &llmtest.Script{Prefilled: false}
	model.Play = func(ctx context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: fmt.Sprintf("attempt %d ", call)}); err != nil {
			return err
		}
		if call == 1 {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
			_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "must never be seen"})
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}
	a := startNode(t, store, model, nil)
	spec := startTurn(t, a, "hi")
	seen := read(t, a, spec, 0, isDelta)
	store.Mu.Lock()
	store.Kill(a.node.ID) // the node itself does not know this yet
	store.Mu.Unlock()
	b := startNode(t, store, model, nil)
	whole := read(t, b, spec, 0, nil)
	close(hold)
	if !bytes.HasPrefix(whole, seen) {
		t.Error("frames that a reader had received have changed")
	}
	if bytes.Contains(whole, []byte("must never")) {
		t.Error("a fenced actor has written events")
	}
	if got := kinds(whole); !strings.Contains(got, "turn.recovering turn.state turn.state answer.started") || strings.Count(got, "turn.finished") != 1 {
		t.Errorf("events: %s", got)
	}
	parts := store.Turns[spec.TurnID].Finishes[0].Parts
	if len(parts) != 1 || parts[0].Text != "attempt 2 " {
		t.Errorf("the message still contains the superseded part: %+v", parts)
	}
}

func TestACutAnswerIsContinuedWhereTheModelCan(t *testing.T) {
	store := actorstest.NewMemory()
	model := &llmtest.Script{Prefilled: true}
	model.Play = func(_ context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error {
		if call == 1 {
			_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "one two "})
			return &llm.Error{Code: "model_unavailable", Cut: true, Retryable: true}
		}
		if last := request.Messages[len(request.Messages)-1]; last.Role != "assistant" || last.Text != "one two " {
			return errors.New("no prefix")
		}
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "three"})
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	parts := store.Turns[spec.TurnID].Finishes[0].Parts
	if len(parts) != 1 || parts[0].Text != "one two three" || parts[0].Truncated {
		t.Errorf("parts %+v of %s", parts, kinds(all))
	}
}

func TestATurnIsAdoptedAgainAfterItsActorFails(t *testing.T) {
	store := actorstest.NewMemory()
	var once sync.Once
	store.OnAppend = func(_ *turnlog.Append, commit func() error, done func(error)) {
		fail := false
		once.Do(func() { fail = true })
		if fail {
			done(errors.New("injected append error"))
			return
		}
		done(commit())
	}
	var calls sync.WaitGroup
	calls.Add(1)
	model := &llmtest.Script{Play: func(_ context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		_ = emit(llm.Chunk{Kind: llm.ChunkText, Text: "fine"})
		if call == 1 {
			calls.Wait() // so that the text is appended and does not become part of the turn's last transaction
		} else {
			calls.Done()
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	if got := kinds(read(t, n, spec, 0, nil)); !strings.Contains(got, "turn.recovering") || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
}

func TestATurnIsNotClaimedAgainWhileItIsRead(t *testing.T) {
	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	started, err := store.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "hi"}, turnlog.Runner{
		NodeID: protocol.NewNodeID(), Begin: n.starter.Begin,
	})
	if err != nil {
		t.Fatal(err)
	}
	reading, proceed := make(chan struct{}, 8), make(chan struct{})
	store.OnLoad = func() {
		reading <- struct{}{}
		<-proceed
	}
	for range 4 {
		adoptOnce(t, n)
	}
	<-reading
	if turn := store.Turns[started.Spec.TurnID]; turn.Epoch != 2 {
		t.Errorf("the turn is in epoch %d, want 2: it was claimed again while it was read", turn.Epoch)
	}
	close(proceed)
	if got := kinds(read(t, n, started.Spec, 0, nil)); strings.Count(got, "turn.recovering") != 1 || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
}

func TestManyOrphansAreAllTakenWithoutAnotherRound(t *testing.T) {
	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	orphans := 2*n.Room() + 1
	for range orphans {
		_, err := store.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID()}, turnlog.Runner{NodeID: protocol.NewNodeID(), Begin: n.starter.Begin})
		if err != nil {
			t.Fatal(err)
		}
	}
	for more := adoptOnce(t, n); more; {
		var err error
		if more, err = n.Claim(t.Context(), orphans); err != nil {
			t.Fatal(err)
		}
	}
	if taken := store.Taken(); taken != orphans {
		t.Errorf("%d of %d orphans were taken over", taken, orphans)
	}
}

func TestTheEndOfATurnIsRetriedDuringAnOutage(t *testing.T) {
	store := actorstest.NewMemory()
	failures := 3
	store.OnFinish = func() error {
		if failures--; failures >= 0 {
			return &protocol.Error{Code: protocol.CodeUnavailable}
		}
		return nil
	}
	n := startNode(t, store, llmtest.Answer("fine"), nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if len(store.Turns[spec.TurnID].Finishes) != 1 || strings.Count(kinds(all), "turn.finished") != 1 {
		t.Errorf("events: %s", kinds(all))
	}
}

func TestATurnWaitsForTheStoreBeforeAModelCall(t *testing.T) {
	store := actorstest.NewMemory()
	failures := 3
	store.OnRead = func() error {
		if failures--; failures >= 0 {
			return &protocol.Error{Code: protocol.CodeUnavailable}
		}
		return nil
	}
	n := startNode(t, store, llmtest.Answer("fine"), nil)
	spec := startTurn(t, n, "hi")
	if got := kinds(read(t, n, spec, 0, nil)); store.Turns[spec.TurnID].State != protocol.TurnCompleted {
		t.Errorf("the turn ended %s: %s", store.Turns[spec.TurnID].State, got)
	}
}

func TestANoticeReportsThatOlderMessagesWereLeftOut(t *testing.T) {
	store := actorstest.NewMemory()
	store.Messages = []turnlog.HistoryMessage{{Role: "user", Parts: []protocol.Part{{Type: protocol.PartText, Text: "the last of many"}}}}
	model := llmtest.Answer("fine")
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	got := kinds(read(t, n, spec, 0, nil))
	parts := store.Turns[spec.TurnID].Finishes[0].Parts
	if !strings.Contains(got, "notice answer.started") || len(parts) != 2 || parts[0].Kind != "context_trimmed" {
		t.Errorf("events: %s, parts: %+v", got, parts)
	}
	if !strings.Contains(model.Requests()[0].System, "left out") {
		t.Errorf("the system prompt does not mention the omitted messages: %s", model.Requests()[0].System)
	}
}

func TestTurnsOfADrainedNodeAreAdopted(t *testing.T) {
	store := actorstest.NewMemory()
	started := make(chan struct{}, 8)
	model := &llmtest.Script{Prefilled: true}
	model.Play = func(ctx context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "x"}); err != nil {
			return err
		}
		started <- struct{}{}
		if call == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}
	a := startNode(t, store, model, nil)
	spec := startTurn(t, a, "hi")
	<-started
	read(t, a, spec, 0, isDelta)
	if err := a.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.StartTurn(t.Context(), &turnlog.Start{AccountID: spec.AccountID}); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("StartTurn on a draining node returned %v", err)
	}
	if _, _, err := a.Follow(spec.AccountID, spec.TurnID, 0).Next(t.Context(), nil); !errors.Is(err, tail.ErrMoved) {
		t.Errorf("a reader of a drained node got %v, want ErrMoved", err)
	}
	b := startNode(t, store, model, nil)
	if got := kinds(read(t, b, spec, 0, nil)); strings.Count(got, "turn.finished") != 1 {
		t.Errorf("events: %s", got)
	}
}

func TestALaggingLogGathersTokensIntoFewChunks(t *testing.T) {
	store := actorstest.NewMemory()
	const tokens = 2000
	sent, released := make(chan struct{}), make(chan struct{})
	first := make(chan func(), 1)
	var once sync.Once
	store.OnAppend = func(_ *turnlog.Append, commit func() error, done func(error)) {
		held := false
		once.Do(func() { held = true; first <- func() { done(commit()) } })
		if !held {
			go func() { done(commit()) }()
		}
	}
	model := &llmtest.Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for range tokens {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "token "}); err != nil {
				return err
			}
		}
		close(sent)
		<-released
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	release := <-first
	<-sent
	release()
	close(released)
	read(t, n, spec, 0, isFinished)
	if appends := store.Turns[spec.TurnID].Appends; appends > 5 {
		t.Errorf("%d appends for %d tokens that arrived while one append was in flight", appends, tokens)
	}
	if text := store.Turns[spec.TurnID].Finishes[0].Parts[0].Text; text != strings.Repeat("token ", tokens) {
		t.Error("text was lost")
	}
}
