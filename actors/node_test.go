package actors

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

	"go.uber.org/zap/zaptest"

	"turnstone/protocol"
)

const patience = 20 * time.Second // for what must happen; never how fast

func startNode(t *testing.T, store *memory, model Model, change func(*Config)) *Node {
	t.Helper()
	n := makeNode(t, store, model, change)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// makeNode makes a node whose keeper does not run.
func makeNode(t *testing.T, store *memory, model Model, change func(*Config)) *Node {
	t.Helper()
	c := Config{
		Store: store, Log: store, Directory: store, Model: model, Routes: DefaultRoutes("b", "d", "c"), MaxLiveTurns: 5,
		Logger: zaptest.NewLogger(t),
	}
	if change != nil {
		change(&c)
	}
	n := NewNode(c)
	t.Cleanup(func() {
		n.Stop()
		store.wg.Wait()
	})
	return n
}

func startTurn(t *testing.T, n *Node, input string) *protocol.TurnSpec {
	t.Helper()
	result, err := n.StartTurn(t.Context(), &protocol.TurnStart{AccountID: protocol.NewAccountID(), Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return result.Spec
}

// read follows a turn until stop says so, or its end.
func read(t *testing.T, n *Node, spec *protocol.TurnSpec, after int64, stop func(protocol.Payload) bool) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	store := newMemory()
	n := startNode(t, store, saying("Hello ", "there.\n", "```go\n", "x := 1\n", "```\n", "Done."), nil)
	spec := startTurn(t, n, "hi")
	live := read(t, n, spec, 0, nil)
	if !strings.HasPrefix(kinds(live), "turn.started turn.routing turn.state answer.started answer.delta") ||
		!strings.HasSuffix(kinds(live), "turn.state turn.finished") {
		t.Errorf("events: %s", kinds(live))
	}
	stored := store.turns[spec.TurnID]
	if !bytes.Equal(live, stored.frames) {
		t.Error("what was seen is not what was stored")
	}
	if again := read(t, n, spec, 0, nil); !bytes.Equal(again, live) {
		t.Error("the replay differs")
	}
	if tail := read(t, n, spec, 5, nil); !bytes.Equal(tail, protocol.SkipFrames(live, 5)) {
		t.Error("resuming after 5 differs")
	}
	parts := stored.finishes[0].Parts
	if len(parts) != 3 || parts[0].Text != "Hello there.\n" || parts[1].Code != "x := 1\n" || parts[1].Language != "go" || parts[2].Text != "Done." {
		t.Errorf("parts: %+v", parts)
	}
}

func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	store := newMemory()
	held := make(chan func(), 16)
	store.onAppend = func(_ *protocol.TurnAppend, keep func() error, done func(error)) {
		held <- func() { done(keep()) }
	}
	goOn := make(chan struct{})
	model := &script{play: func(_ context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		_ = emit(ModelChunk{Kind: ChunkText, Text: "secret"})
		<-goOn // else the text may become part of the turn's last transaction
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	defer close(goOn)
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
	store := newMemory()
	stopped := make(chan struct{})
	model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: "partial"}); err != nil {
			return err
		}
		<-ctx.Done()
		close(stopped)
		return ctx.Err()
	}}
	var mu sync.Mutex
	var acknowledged bool
	store.onAppend = func(batch *protocol.TurnAppend, keep func() error, done func(error)) {
		if len(batch.Records) > 0 && batch.Records[0].Kind == protocol.RecordCancel {
			mu.Lock()
			if acknowledged {
				t.Error("acknowledged before it was stored")
			}
			mu.Unlock()
		}
		go func() { done(keep()) }()
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	cancel := &Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
	receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel)
	mu.Lock()
	acknowledged = true
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	record, _ := store.TurnRecord(t.Context(), spec.AccountID, spec.TurnID, protocol.RecordCancel, "")
	if record == nil || record.Sequence != receipt.Sequence {
		t.Errorf("record %+v, receipt %+v", record, receipt)
	}
	<-stopped // the provider hears of it
	all := read(t, n, spec, 0, nil)
	if !strings.HasSuffix(kinds(all), "turn.cancel_requested turn.state answer.completed turn.state turn.finished") {
		t.Errorf("events: %s", kinds(all))
	}
	again, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, cancel)
	if err != nil || again.Sequence != receipt.Sequence || again.SteeringID != receipt.SteeringID || !again.Replayed {
		t.Errorf("the repeat after the end: %+v, %v", again, err)
	}
}

func TestSteeringIsAppliedInANamedStepAndTheModelSeesIt(t *testing.T) {
	store := newMemory()
	goOn := make(chan struct{})
	model := &script{}
	model.play = func(_ context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: fmt.Sprintf("answer %d. ", call)}); err != nil {
			return err
		}
		if call == 1 {
			<-goOn
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	input := &Command{Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep}
	first, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, input)
	if err != nil {
		t.Fatal(err)
	}
	close(goOn)
	all := read(t, n, spec, 0, nil)
	if !strings.Contains(kinds(all), "answer.completed steering.applied answer.started") {
		t.Errorf("events: %s", kinds(all))
	}
	last := model.requests[1].Messages
	if len(last) < 3 || last[len(last)-1].Text != "use JWT" || last[len(last)-2].Role != "assistant" || last[len(last)-2].Text != "answer 1. " {
		t.Errorf("the second request: %+v", last)
	}
	again, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, input)
	if err != nil || again.SteeringID != first.SteeringID || !again.Replayed {
		t.Errorf("the repeat after the end: %+v, %v", again, err)
	}
}

func TestToolsRunAfterTheirIntentIsDurableAndTheModelSeesTheirResult(t *testing.T) {
	store := newMemory()
	model := &script{play: func(_ context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		if call == 1 {
			_ = emit(ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "p1", Name: "probe", Input: json.RawMessage(`{"x":1}`)}})
			_ = emit(ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "p2", Name: "nonsense", Input: json.RawMessage(`{}`)}})
			_ = emit(ModelChunk{Kind: ChunkOpaque, Opaque: json.RawMessage(`{"signed":true}`)})
			return emit(ModelChunk{Kind: ChunkStop, Stop: StopToolCalls})
		}
		_ = emit(ModelChunk{Kind: ChunkText, Text: "ok"})
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	tool := &probe{spec: ToolSpec{Name: "probe", Kind: "compute", Title: "Probe", ReadOnly: true}}
	n := startNode(t, store, model, func(c *Config) { c.Tools = []Tool{tool} })
	tool.run = func() (string, error) {
		for _, turn := range store.turns {
			store.mu.Lock()
			if !bytes.Contains(turn.frames, []byte(`"type":"tool.state"`)) {
				t.Error("the tool ran before its intent was stored")
			}
			store.mu.Unlock()
		}
		return "42", nil
	}
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if got := kinds(all); strings.Count(got, "tool.completed") != 2 || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
	messages := model.requests[1].Messages
	if said := messages[len(messages)-3]; said.OpaqueOwner != "script" || string(said.Opaque) != `{"signed":true}` {
		t.Errorf("the provider did not get its own state back: %+v", said)
	}
	if a, b := messages[len(messages)-2], messages[len(messages)-1]; a.ToolCallID != "p1" || a.Text != "42" || b.ToolCallID != "p2" || !b.ToolFailed {
		t.Errorf("results: %+v", messages)
	}
}

type probe struct {
	spec ToolSpec
	run  func() (string, error)
}

func (p *probe) Spec() ToolSpec                                       { return p.spec }
func (p *probe) Run(context.Context, json.RawMessage) (string, error) { return p.run() }

func TestAReleasedFollowUpComesToLifeHere(t *testing.T) {
	n := startNode(t, newMemory(), saying("fine"), nil)
	change := &protocol.FollowUpChange{AccountID: protocol.NewAccountID(), FollowUpID: protocol.NewFollowUpID(), State: protocol.FollowUpQueued}
	item, err := n.ChangeFollowUp(t.Context(), change)
	if err != nil || item.TurnID == nil {
		t.Fatalf("%+v, %v", item, err)
	}
	if got := kinds(read(t, n, &protocol.TurnSpec{AccountID: change.AccountID, TurnID: *item.TurnID}, 0, nil)); !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
	if err := n.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if item, err := n.ChangeFollowUp(t.Context(), &protocol.FollowUpChange{State: protocol.FollowUpQueued}); err != nil || item.TurnID != nil {
		t.Errorf("while it drains: %+v, %v", item, err)
	}
}

func TestAFencedActorIsSilentAndAnotherNodeGoesOn(t *testing.T) {
	store := newMemory()
	hold := make(chan struct{})
	model := &script{continues: false}
	model.play = func(ctx context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: fmt.Sprintf("attempt %d ", call)}); err != nil {
			return err
		}
		if call == 1 {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
			_ = emit(ModelChunk{Kind: ChunkText, Text: "must never be seen"})
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}
	a := startNode(t, store, model, nil)
	spec := startTurn(t, a, "hi")
	seen := read(t, a, spec, 0, isDelta)
	store.mu.Lock()
	store.nodes[a.id].dead = true // others say so; the node itself does not know yet
	store.mu.Unlock()
	b := startNode(t, store, model, nil)
	whole := read(t, b, spec, 0, nil)
	close(hold)
	if !bytes.HasPrefix(whole, seen) {
		t.Error("what was seen changed")
	}
	if bytes.Contains(whole, []byte("must never")) {
		t.Error("a fenced actor wrote")
	}
	if got := kinds(whole); !strings.Contains(got, "turn.recovering turn.state turn.state answer.started") || strings.Count(got, "turn.finished") != 1 {
		t.Errorf("events: %s", got)
	}
	parts := store.turns[spec.TurnID].finishes[0].Parts
	if len(parts) != 1 || parts[0].Text != "attempt 2 " {
		t.Errorf("the cut part is still there: %+v", parts)
	}
}

func TestACutAnswerIsContinuedWhereTheModelCan(t *testing.T) {
	store := newMemory()
	model := &script{continues: true}
	model.play = func(_ context.Context, call int, request ModelRequest, emit func(ModelChunk) error) error {
		if call == 1 {
			_ = emit(ModelChunk{Kind: ChunkText, Text: "one two "})
			return &ModelError{Code: "model_unavailable", Cut: true, Retryable: true}
		}
		if last := request.Messages[len(request.Messages)-1]; last.Role != "assistant" || last.Text != "one two " {
			return errors.New("no prefix")
		}
		_ = emit(ModelChunk{Kind: ChunkText, Text: "three"})
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	parts := store.turns[spec.TurnID].finishes[0].Parts
	if len(parts) != 1 || parts[0].Text != "one two three" || parts[0].Truncated {
		t.Errorf("parts %+v of %s", parts, kinds(all))
	}
}

func TestAContinuedAnswerIsFinishedBeforeWhatWaitsIsApplied(t *testing.T) {
	m := newTurnMachine(machineSpec(), machineTools, true)
	m.begin()
	m.proceed()
	m.modelText(1, "one two ")
	_, err := m.command(&Command{Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c", Text: "shorter", Hash: "h", Delivery: protocol.DeliverNextStep})
	if err != nil {
		t.Fatal(err)
	}
	m.modelFailed(1, &ModelError{Code: "model_unavailable", Cut: true})
	if m.inputs[0].step != 0 || string(m.text) != "one two " {
		t.Errorf("applied in step %d, prefix %q", m.inputs[0].step, m.text)
	}
	m.modelText(2, "three")
	m.modelStopped(2, StopEndTurn)
	m.modelText(3, "short")
	if m.inputs[0].step != 2 || m.fold.Parts()[0].Text != "one two three" {
		t.Errorf("applied in step %d after %+v", m.inputs[0].step, m.fold.Parts())
	}
}

func TestAnActorThatBreaksIsTakenUpAgain(t *testing.T) {
	store := newMemory()
	var once sync.Once
	store.onAppend = func(_ *protocol.TurnAppend, keep func() error, done func(error)) {
		broke := false
		once.Do(func() { broke = true })
		if broke {
			done(errors.New("a defect"))
			return
		}
		done(keep())
	}
	var calls sync.WaitGroup
	calls.Add(1)
	model := &script{play: func(_ context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		_ = emit(ModelChunk{Kind: ChunkText, Text: "fine"})
		if call == 1 {
			calls.Wait() // so that the text is appended, not part of the end
		} else {
			calls.Done()
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	if got := kinds(read(t, n, spec, 0, nil)); !strings.Contains(got, "turn.recovering") || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
}

func TestATurnIsNotClaimedAgainWhileItIsRead(t *testing.T) {
	store := newMemory()
	n := makeNode(t, store, saying("fine"), nil)
	if err := store.Register(t.Context(), n.id, "", nil); err != nil {
		t.Fatal(err)
	}
	started, err := store.StartTurn(t.Context(), &protocol.TurnStart{
		AccountID: protocol.NewAccountID(), Input: "hi", Owner: protocol.NewNodeID(), Begin: n.Begin,
	})
	if err != nil {
		t.Fatal(err)
	}
	reading, goOn := make(chan struct{}, 8), make(chan struct{})
	store.onLoad = func() {
		reading <- struct{}{}
		<-goOn
	}
	k := &keeper{node: n}
	for range 4 {
		if err := k.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-reading
	if turn := store.turns[started.Spec.TurnID]; turn.epoch != 2 {
		t.Errorf("it is in epoch %d", turn.epoch)
	}
	close(goOn)
	if got := kinds(read(t, n, started.Spec, 0, nil)); strings.Count(got, "turn.recovering") != 1 || !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
}

func TestManyOrphansAreAllTakenWithoutAnotherRound(t *testing.T) {
	store := newMemory()
	n := makeNode(t, store, saying("fine"), nil)
	if err := store.Register(t.Context(), n.id, "", nil); err != nil {
		t.Fatal(err)
	}
	const orphans = 2*claimLimit + 1
	for range orphans {
		_, err := store.StartTurn(t.Context(), &protocol.TurnStart{AccountID: protocol.NewAccountID(), Owner: protocol.NewNodeID(), Begin: n.Begin})
		if err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{node: n, seen: map[protocol.NodeID]sighting{}}
	if err := k.turn(time.Now()); err != nil {
		t.Fatal(err)
	}
	for k.full {
		if err := k.claimMore(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if taken := store.taken(); taken != orphans {
		t.Errorf("%d of %d were taken over", taken, orphans)
	}
}

func TestAnOutageHoldsTheEndUntilItIsStored(t *testing.T) {
	store := newMemory()
	failures := 3
	store.onFinish = func() error {
		if failures--; failures >= 0 {
			return &protocol.Error{Code: protocol.CodeUnavailable}
		}
		return nil
	}
	n := startNode(t, store, saying("fine"), nil)
	spec := startTurn(t, n, "hi")
	all := read(t, n, spec, 0, nil)
	if len(store.turns[spec.TurnID].finishes) != 1 || strings.Count(kinds(all), "turn.finished") != 1 {
		t.Errorf("events: %s", kinds(all))
	}
}

func TestAnOutageBeforeAModelCallHoldsTheTurn(t *testing.T) {
	store := newMemory()
	failures := 3
	store.onRead = func() error {
		if failures--; failures >= 0 {
			return &protocol.Error{Code: protocol.CodeUnavailable}
		}
		return nil
	}
	n := startNode(t, store, saying("fine"), nil)
	spec := startTurn(t, n, "hi")
	if got := kinds(read(t, n, spec, 0, nil)); store.turns[spec.TurnID].state != protocol.TurnCompleted {
		t.Errorf("the turn ended %s: %s", store.turns[spec.TurnID].state, got)
	}
}

func TestOlderMessagesAreNamedWhenTheyAreLeftOut(t *testing.T) {
	store := newMemory()
	store.history = []protocol.HistoryMessage{{Role: "user", Parts: []protocol.Part{{Type: protocol.PartText, Text: "the last of many"}}}}
	model := saying("fine")
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	got := kinds(read(t, n, spec, 0, nil))
	parts := store.turns[spec.TurnID].finishes[0].Parts
	if !strings.Contains(got, "notice answer.started") || len(parts) != 2 || parts[0].Kind != "context_trimmed" {
		t.Errorf("%s, %+v", got, parts)
	}
	if !strings.Contains(model.requests[0].System, "left out") {
		t.Errorf("the model was not told: %s", model.requests[0].System)
	}
}

func TestADrainedNodeHandsItsTurnsOn(t *testing.T) {
	store := newMemory()
	started := make(chan struct{}, 8)
	model := &script{continues: true}
	model.play = func(ctx context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: "x"}); err != nil {
			return err
		}
		started <- struct{}{}
		if call == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}
	a := startNode(t, store, model, nil)
	spec := startTurn(t, a, "hi")
	<-started
	read(t, a, spec, 0, isDelta)
	if err := a.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.StartTurn(t.Context(), &protocol.TurnStart{AccountID: spec.AccountID}); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a draining node took a turn: %v", err)
	}
	if _, _, err := a.Follow(spec.AccountID, spec.TurnID, 0).Next(t.Context(), nil); !errors.Is(err, ErrMoved) {
		t.Errorf("a reader of a drained node got %v", err)
	}
	b := startNode(t, store, model, nil)
	if got := kinds(read(t, b, spec, 0, nil)); strings.Count(got, "turn.finished") != 1 {
		t.Errorf("events: %s", got)
	}
}

func TestALaggingLogGathersTokensIntoFewChunks(t *testing.T) {
	store := newMemory()
	const tokens = 2000
	said, released := make(chan struct{}), make(chan struct{})
	first := make(chan func(), 1)
	var once sync.Once
	store.onAppend = func(_ *protocol.TurnAppend, keep func() error, done func(error)) {
		held := false
		once.Do(func() { held = true; first <- func() { done(keep()) } })
		if !held {
			go func() { done(keep()) }()
		}
	}
	model := &script{play: func(_ context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		for range tokens {
			if err := emit(ModelChunk{Kind: ChunkText, Text: "token "}); err != nil {
				return err
			}
		}
		close(said)
		<-released
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	release := <-first
	<-said
	release()
	close(released)
	read(t, n, spec, 0, isFinished)
	if appends := store.turns[spec.TurnID].appends; appends > 5 {
		t.Errorf("%d appends for %d tokens that came while one was in flight", appends, tokens)
	}
	if text := store.turns[spec.TurnID].finishes[0].Parts[0].Text; text != strings.Repeat("token ", tokens) {
		t.Error("text was lost")
	}
}
