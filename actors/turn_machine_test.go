package actors

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"turnstone/protocol"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("rapid.checks", "10000")
	}
	// The actor system's throttle of dead letters sleeps for a second after the system was shut down.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

var machineTools = map[string]ToolSpec{
	"look":  {Name: "look", Kind: "compute", Title: "Look", ReadOnly: true},
	"write": {Name: "write", Kind: "connector", Title: "Write"},
}

func machineSpec() *protocol.TurnSpec {
	parent := protocol.NewMessageID()
	return &protocol.TurnSpec{
		AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ConversationID: protocol.NewConversationID(),
		BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(),
		ParentMessageID: &parent, Requested: protocol.ProfileAuto, CreatedAt: time.Now(),
		Routing: DefaultRoutes("b", "d", "c").Resolve(protocol.ProfileAuto, "hello"),
	}
}

// world plays everything around a machine: the log, the calls that are out, and a reader who checks what he sees.
type world struct {
	t         *rapid.T
	spec      *protocol.TurnSpec
	m         *turnMachine
	continues bool
	frames    []byte
	records   []protocol.TurnRecord
	calls     int // model calls that were asked for
	scopes    []protocol.CancelScope
	inRequest map[string]bool // the inputs that the last one contained
	toolsOut  map[protocol.ToolID]bool
	accepted  map[protocol.SteeringID]string // client ids
	fates     map[protocol.SteeringID]int
	started   map[protocol.ToolID]int
	state     protocol.TurnState
	cancelled bool
	finished  int
	clients   int
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, spec: machineSpec(), continues: rapid.Bool().Draw(t, "continues"), toolsOut: map[protocol.ToolID]bool{},
		accepted: map[protocol.SteeringID]string{}, fates: map[protocol.SteeringID]int{}, started: map[protocol.ToolID]int{},
		state: protocol.TurnQueued,
	}
	w.m = newTurnMachine(w.spec, machineTools, w.continues)
	w.m.begin()
	w.m.proceed()
	w.commit()
	return w
}

// commit stores and shows a decision, as the shell does, and checks it.
func (w *world) commit() {
	d := w.m.take()
	first := w.m.sequence - int64(len(d.events)) + 1
	if w.finished > 0 && len(d.events) > 0 {
		w.t.Fatalf("%d events after the end", len(d.events))
	}
	for i, payload := range d.events {
		w.see(payload)
		if applied, is := payload.(*protocol.SteeringApplied); is && i == len(d.events)-1 && applied.Step == w.m.step() {
			w.t.Fatal("an input was applied before the model had answered")
		}
	}
	frames, err := encodeEvents(w.spec.TurnID, first, time.Now(), d.events)
	if err != nil {
		w.t.Fatal(err)
	}
	w.frames = append(w.frames, frames...)
	w.records = append(w.records, d.records...)
	for _, e := range d.effects {
		switch e := e.(type) {
		case callModel:
			if w.cancelled || w.finished > 0 {
				w.t.Fatal("the model is asked after the cancel")
			}
			w.calls, w.inRequest = e.call, map[string]bool{}
			c := w.m.context()
			for _, text := range c.inputs[c.step] {
				w.inRequest[text] = true
			}
		case runTool:
			w.toolsOut[e.call.id] = true
		}
	}
	if (d.ending != nil) != (w.finished == 1 && len(d.events) > 0) {
		w.t.Fatal("the ending and the last event differ")
	}
	if !w.m.ended && !w.m.calling && !w.m.toolsOut() {
		w.t.Fatalf("nothing is out in %s: the turn would stand for ever", w.m.state)
	}
}

func (w *world) see(payload protocol.Payload) {
	if w.finished > 0 {
		w.t.Fatalf("%s after turn.finished", payload.EventType())
	}
	switch p := payload.(type) {
	case *protocol.TurnStateChanged:
		if !legal(w.state, p.State) {
			w.t.Fatalf("%s → %s is in no table", w.state, p.State)
		}
		if p.AcceptingSteering && !p.State.TakesInput() {
			w.t.Fatalf("steering is open in %s", p.State)
		}
		w.state = p.State
	case *protocol.SteeringAccepted:
		w.accepted[p.SteeringID] = p.ClientSteeringID
	case *protocol.SteeringApplied:
		w.fates[p.SteeringID]++
		if !w.inRequest[p.Text] {
			w.t.Fatalf("%q was applied, and the model was asked with %v", p.Text, w.inRequest)
		}
	case *protocol.SteeringReturned:
		w.fates[p.SteeringID]++
	case *protocol.ToolStarted:
		w.started[p.ToolID]++
	case *protocol.ToolCompleted:
		delete(w.toolsOut, p.ToolID)
	case *protocol.TurnCancelRequested:
		w.cancelled = true
	case *protocol.AnswerStarted, *protocol.AnswerDelta, *protocol.CodeDelta, *protocol.ReasoningDelta:
		if w.cancelled && w.state == protocol.TurnCancelling && p.EventType() != "answer.delta" && p.EventType() != "answer.started" && p.EventType() != "code.delta" {
			w.t.Fatalf("%s after the cancel", p.EventType())
		}
	case *protocol.TurnFinished:
		w.finished++
		if p.LastSequence != w.m.sequence {
			w.t.Fatalf("last_sequence %d, want %d", p.LastSequence, w.m.sequence)
		}
	}
}

func legal(from, to protocol.TurnState) bool {
	for _, t := range protocol.TurnTransitions {
		if t.From == from && t.To == to {
			return true
		}
	}
	return false
}

// crash loses the process and takes the turn over from the log.
func (w *world) crash() {
	stored := &protocol.StoredTurn{Spec: w.spec, Frames: w.frames, Records: w.records}
	restored, err := restoreTurnMachine(stored, machineTools, w.continues)
	if err != nil {
		w.t.Fatal(err)
	}
	w.same(restored)
	w.m = restored
	w.toolsOut = map[protocol.ToolID]bool{}
	w.m.adopt("restart")
	w.commit()
}

// same holds a machine that was read back from the log against the one that wrote it.
func (w *world) same(r *turnMachine) {
	type durable struct {
		State             protocol.TurnState
		Accepts           bool
		Sequence          int64
		Parts             []protocol.Part
		Made, Calls       int
		Steps             []stepResult
		Rounds, Adoptions int
		Ended             bool
		Open              protocol.PartID
		StepParts         []protocol.PartID
		Activity          protocol.PartID
	}
	view := func(m *turnMachine) string {
		b, _ := json.Marshal(durable{
			m.state, m.accepts, m.sequence, m.fold.Parts(), m.parts, m.calls, m.steps, m.rounds, m.adoptions, m.ended, m.open,
			append([]protocol.PartID{}, m.stepParts...), m.activity,
		})
		return string(b)
	}
	was, is := view(w.m), view(r)
	if w.m.cut != nil { // a cut part is open in the log and given up in the process
		return
	}
	if was != is {
		w.t.Fatalf("read back differently:\n%s\n%s", was, is)
	}
}

var textPieces = []string{"hello ", "world\n", "\n", "`", "``", "```", "```go\n", "func main() {}\n", "```\n", "  ", "ü€😀", "a```b", "\n```py\nx=1", "\n```"}

func (w *world) random() {
	m, t := w.m, w.t
	switch rapid.IntRange(0, 15).Draw(t, "trigger") {
	case 0, 1, 2, 3:
		m.modelText(w.calls, rapid.SampledFrom(textPieces).Draw(t, "text"))
	case 4:
		m.modelReasoning(w.calls, rapid.SampledFrom([]string{"think", "hm\n"}).Draw(t, "reasoning"))
	case 5:
		name := rapid.SampledFrom([]string{"look", "write", "invented"}).Draw(t, "tool")
		m.modelNotes(w.calls, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "x", Name: name, Input: json.RawMessage(`{}`)}})
	case 6:
		m.modelNotes(w.calls, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 3, OutputTokens: rapid.SampledFrom([]int{2, 2, 2, 40_000}).Draw(t, "output")}})
	case 7, 8:
		m.modelStopped(w.calls, rapid.SampledFrom([]ModelStop{StopEndTurn, StopToolCalls, StopToolCalls, StopMaxTokens, StopRefusal}).Draw(t, "stop"))
	case 9:
		m.modelFailed(w.calls, &ModelError{Code: "model_unavailable", Cut: rapid.Bool().Draw(t, "cut"), Retryable: true})
	case 10, 11:
		for _, call := range m.toolCalls {
			if w.toolsOut[call.id] {
				var failure *protocol.ToolError
				if rapid.Bool().Draw(t, "failed") {
					failure = &protocol.ToolError{Code: "broken"}
				}
				m.toolEnded(call.id, "out", failure, time.Second)
				break
			}
		}
	case 12:
		w.steer()
	case 13:
		w.crash()
		return
	case 14:
		w.rare()
		return
	case 15:
		m.modelText(w.calls-1, "late") // a chunk of an older call
	}
	w.commit()
}

func (w *world) steer() {
	w.clients++
	c := &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: fmt.Sprint("c", w.clients), Text: fmt.Sprint("do this ", w.clients), Hash: "h",
		Delivery: rapid.SampledFrom([]protocol.Delivery{protocol.DeliverNextStep, protocol.DeliverInterrupt}).Draw(w.t, "delivery"),
	}
	open := w.m.accepts && !w.m.ended
	receipt, err := w.m.command(c)
	if open != (err == nil) && protocol.CodeOf(err) != protocol.CodeTooManyInputs {
		w.t.Fatalf("window open %v, answer %v", open, err)
	}
	if err != nil {
		return
	}
	again, err := w.m.command(c)
	if err != nil || again.SteeringID != receipt.SteeringID || !again.Replayed {
		w.t.Fatalf("the repeat got %v, %v", again, err)
	}
	c.Hash = "other"
	if _, err := w.m.command(c); protocol.CodeOf(err) != protocol.CodeInvalid {
		w.t.Fatalf("the same id with another body got %v", err)
	}
}

// cancel cancels with one of the scopes: a wider one widens, any other repeats.
func (w *world) cancel() {
	scope := rapid.SampledFrom([]protocol.CancelScope{protocol.CancelTurn, protocol.CancelTurnAndFollowUps}).Draw(w.t, "scope")
	before := w.m.sequence
	receipt, err := w.m.command(&Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: protocol.CancelledByUser})
	covered := slices.ContainsFunc(w.scopes, func(s protocol.CancelScope) bool { return s.Covers(scope) })
	switch {
	case covered && (err != nil || !receipt.Replayed || w.m.sequence != before):
		w.t.Fatalf("the repeat of a cancel got %+v, %v", receipt, err)
	case !covered && (err != nil) != (w.finished > 0):
		w.t.Fatalf("cancel: %v", err)
	case !covered && err == nil && receipt.Replayed:
		w.t.Fatalf("a new cancel got %+v", receipt)
	case !covered && err == nil:
		w.scopes = append(w.scopes, scope)
	}
}

func (w *world) rare() {
	switch rapid.IntRange(0, 5).Draw(w.t, "rare") {
	case 0:
		w.cancel()
	case 1:
		w.m.deadline()
	case 2:
		w.m.graceOver()
	case 3:
		w.m.contextTrimmed(w.calls)
		w.m.stillWaiting(w.calls)
	default:
		for _, input := range w.m.inputs {
			if _, err := w.m.command(&Command{Kind: CommandWithdraw, SteeringID: input.id}); err == nil && input.step > 0 {
				w.t.Fatal("an applied input was withdrawn")
			}
		}
	}
	w.commit()
}

func TestEveryTurnEndsOnceAndEveryInputEndsAppliedOrReturnedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "length") {
			w.random()
		}
		if w.finished == 0 {
			_, _ = w.m.command(&Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser})
			w.commit()
			w.m.graceOver()
			w.commit()
		}
		w.check()
	})
}

func (w *world) check() {
	if w.finished != 1 || !w.m.ended || !w.state.Terminal() {
		w.t.Fatalf("%d ends in %s", w.finished, w.state)
	}
	for id := range w.accepted {
		if w.fates[id] != 1 {
			w.t.Fatalf("an accepted input ended %d times", w.fates[id])
		}
	}
	for id, n := range w.started {
		if n != 1 {
			w.t.Fatalf("tool %s was intended %d times", id, n)
		}
	}
	var fold protocol.Fold
	last, err := fold.FoldFrames(w.frames)
	if err != nil || last != w.m.sequence {
		w.t.Fatalf("the log ends at %d (%v), the machine at %d", last, err, w.m.sequence)
	}
	for _, part := range fold.Parts() {
		if part.Open || part.Type == protocol.PartTool && !part.State.Terminal() {
			w.t.Fatalf("a part of a finished turn is open: %+v", part)
		}
	}
	if !protocol.EndsTurn(w.frames) || bytes.Count(w.frames, []byte(`"type":"turn.finished"`)) != 1 {
		w.t.Fatal("the log does not end with its one end")
	}
}

func TestTextSurvivesAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom(textPieces)).Draw(t, "pieces")
		whole := strings.Join(pieces, "")
		if got, want := splitText(pieces), splitText([]string{whole}); got != want {
			t.Fatalf("in pieces %q, whole %q", got, want)
		}
		bytewise := strings.Split(whole, "")
		if got, want := splitText(bytewise), splitText([]string{whole}); got != want {
			t.Fatalf("by characters %q, whole %q", got, want)
		}
	})
}

type sketch struct{ strings.Builder }

func (s *sketch) writeText(text string)    { s.WriteString(text) }
func (s *sketch) openCode(language string) { s.WriteString("<" + language + ">") }
func (s *sketch) writeCode(code string)    { s.WriteString(code) }
func (s *sketch) closeCode()               { s.WriteString("</>") }

func splitText(pieces []string) string {
	var out sketch
	splitter := newFenceSplitter()
	for _, piece := range pieces {
		splitter.feed(piece, &out)
	}
	splitter.end(&out)
	return out.String()
}

func TestTransitionTablesAreClosed(t *testing.T) {
	for _, state := range protocol.TurnStates {
		leaves := 0
		for _, move := range protocol.TurnTransitions {
			if move.From == state {
				leaves++
			}
		}
		if state.Terminal() != (leaves == 0) {
			t.Errorf("%s: terminal %v, but %d ways out", state, state.Terminal(), leaves)
		}
	}
	for _, state := range protocol.ToolStates {
		leaves := 0
		for _, move := range protocol.ToolTransitions {
			if move.From == state {
				leaves++
			}
		}
		if state.Terminal() != (leaves == 0) {
			t.Errorf("tool %s: terminal %v, but %d ways out", state, state.Terminal(), leaves)
		}
	}
}

func TestATurnOverItsBudgetBeginsNoFurtherStep(t *testing.T) {
	m := newTurnMachine(machineSpec(), machineTools, false)
	m.begin()
	m.proceed()
	budget := budgetFactor * m.spec.Routing.Completion.MaxOutputTokens
	m.modelText(1, "long")
	m.modelNotes(1, &ModelChunk{Kind: ChunkToolCall, ToolCall: ModelToolCall{ID: "x", Name: "look", Input: json.RawMessage(`{}`)}})
	m.modelNotes(1, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{OutputTokens: budget}})
	m.modelStopped(1, StopToolCalls)
	if end := m.take().ending; end == nil || end.reason != protocol.StopBudgetReached || end.state != protocol.TurnIncomplete || end.usage.OutputTokens != budget {
		t.Errorf("the turn ended as %+v", end)
	}
}
