package machine

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("rapid.checks", "10000")
	}
	os.Exit(m.Run())
}

var machineTools = map[string]Tool{
	"look":  {Kind: "compute", Title: "Look", ReadOnly: true},
	"write": {Kind: "connector", Title: "Write"},
	"put":   {Kind: "artifact", Title: "Put", Repeatable: true},
	"send":  {Kind: "connector", Title: "Send", Plan: planSend},
}

// planSend asks for an approval of every call.
func planSend(call *policy.Call) policy.Plan {
	if string(call.Input) == `{"bad":1}` {
		return policy.Plan{Input: call.Input, Failure: &protocol.ToolError{Code: protocol.ToolCallInvalid, Detail: "It is not valid."}}
	}
	digest := "sha256:" + string(call.Input)
	return policy.Plan{Input: call.Input, Definition: "d", Ask: &protocol.ApprovalRequest{
		Action: "Send", Input: call.Input, InputDigest: digest, Options: []protocol.Decision{protocol.ApproveOnce, protocol.ApproveWithEdits, protocol.RejectCall},
	}}
}

func machineSpec() *turnlog.Spec {
	parent := protocol.NewMessageID()
	return &turnlog.Spec{
		AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ConversationID: protocol.NewConversationID(),
		BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(),
		ParentMessageID: &parent, Requested: protocol.ProfileAuto, CreatedAt: time.Now(),
		Routing: protocol.TurnRouting{Profile: protocol.ProfileBalanced, Completion: protocol.Completion{MaxOutputTokens: 8192, MaxToolRounds: 8}},
	}
}

// driver is a machine with the batch that collects its next decision.
type driver struct{ *Batch }

func drive(m *Machine) *driver { return &driver{m.NewBatch()} }

func newDriver(spec *turnlog.Spec, tools map[string]Tool, continues bool) *driver {
	return drive(New(spec, tools, continues))
}

// take returns the decision since the last take.
func (d *driver) take() Decision {
	decided := d.Decision
	d.Batch = d.NewBatch()
	return decided
}

// world simulates everything around a machine: the log, the running calls, and a reader that checks every event.
type world struct {
	t         *rapid.T
	spec      *turnlog.Spec
	m         *driver
	continues bool
	frames    []byte
	records   []turnlog.Record
	calls     int // the number of the last model call
	scopes    []protocol.CancelScope
	inRequest map[string]bool // the inputs in the request of the last model call
	running   map[protocol.ToolID]bool
	accepted  map[protocol.SteeringID]string // client ids
	outcomes  map[protocol.SteeringID]int    // how often each input was applied or returned
	started   map[protocol.ToolID]int
	state     protocol.TurnState
	cancelled bool
	finished  int
	clients   int
	now       time.Time
	asked     map[protocol.ApprovalID]protocol.ToolID
	resolved  map[protocol.ApprovalID]protocol.Decision
	effects   map[protocol.ToolID]int // how often a call that needs an approval was run
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, spec: machineSpec(), continues: rapid.Bool().Draw(t, "continues"), running: map[protocol.ToolID]bool{},
		accepted: map[protocol.SteeringID]string{}, outcomes: map[protocol.SteeringID]int{}, started: map[protocol.ToolID]int{},
		state: protocol.TurnQueued, now: time.Now(),
		asked: map[protocol.ApprovalID]protocol.ToolID{}, resolved: map[protocol.ApprovalID]protocol.Decision{}, effects: map[protocol.ToolID]int{},
	}
	w.m = newDriver(w.spec, machineTools, w.continues)
	w.m.Begin()
	w.m.Proceed()
	w.commit()
	return w
}

// commit stores and publishes a decision, as the actor does, and checks it.
func (w *world) commit() {
	d := w.m.take()
	first := w.m.sequence - int64(len(d.Events)) + 1
	if w.finished > 0 && len(d.Events) > 0 {
		w.t.Fatalf("%d events after the end", len(d.Events))
	}
	for i, payload := range d.Events {
		w.see(payload)
		if applied, is := payload.(*protocol.SteeringApplied); is && i == len(d.Events)-1 && applied.Step == w.m.step() {
			w.t.Fatal("an input was applied before the model had answered")
		}
	}
	frames, err := protocol.AppendEvents(nil, w.spec.TurnID, first, time.Now(), d.Events)
	if err != nil {
		w.t.Fatal(err)
	}
	w.frames = append(w.frames, frames...)
	w.records = append(w.records, d.Records...)
	for _, e := range d.Effects {
		switch e := e.(type) {
		case CallModel:
			if w.cancelled || w.finished > 0 {
				w.t.Fatal("the model is called after the cancel or the end")
			}
			w.calls, w.inRequest = w.m.call, map[string]bool{}
			c := w.m.CallInput()
			for _, text := range c.inputs[c.Step] {
				w.inRequest[text] = true
			}
		case RunTool:
			w.running[e.ID] = true
			if e.Name == "send" {
				w.runSend(e.ID)
			}
		}
	}
	if (d.End != nil) != (w.finished == 1 && len(d.Events) > 0) {
		w.t.Fatal("the decision has an ending without turn.finished, or turn.finished without an ending")
	}
	if !w.m.ended && !w.m.calling && !w.m.toolsOpen() {
		w.t.Fatalf("no call is running in %s: the turn would never end", w.m.state)
	}
	if _, parks := w.m.Parks(); parks != (w.m.awaiting() && !w.m.toolRuns() && !w.m.ended && w.m.state == protocol.TurnRequiresAction) {
		w.t.Fatalf("in %s the turn parks: %v", w.m.state, parks)
	}
}

// see checks an event against the events before it.
func (w *world) see(payload protocol.Payload) {
	if w.finished > 0 {
		w.t.Fatalf("%s after turn.finished", payload.EventType())
	}
	switch p := payload.(type) {
	case *protocol.TurnStateChanged:
		if !legal(w.state, p.State) {
			w.t.Fatalf("the transition %s → %s is not legal", w.state, p.State)
		}
		if p.AcceptingSteering && !p.State.AcceptsSteering() {
			w.t.Fatalf("the turn accepts steering in %s", p.State)
		}
		w.state = p.State
	case *protocol.SteeringAccepted:
		w.accepted[p.SteeringID] = p.ClientSteeringID
	case *protocol.SteeringApplied:
		w.outcomes[p.SteeringID]++
		if !w.inRequest[p.Text] {
			w.t.Fatalf("%q was applied, but the model's request contained %v", p.Text, w.inRequest)
		}
	case *protocol.SteeringReturned:
		w.outcomes[p.SteeringID]++
	case *protocol.ToolStarted:
		w.started[p.ToolID]++
	case *protocol.ToolCompleted:
		delete(w.running, p.ToolID)
	case *protocol.ApprovalRequested:
		w.asked[p.Approval.ApprovalID] = p.ToolID
	case *protocol.ApprovalResolved:
		if before, decided := w.resolved[p.ApprovalID]; decided || w.asked[p.ApprovalID] != p.ToolID {
			w.t.Fatalf("the approval of %s was resolved before as %q", p.ToolID, before)
		}
		w.resolved[p.ApprovalID] = p.Decision
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

// crash discards the machine and takes the turn over from the log.
func (w *world) crash() {
	stored := &turnlog.Stored{Spec: w.spec, Frames: w.frames, Records: w.records}
	restored, err := Restore(stored, machineTools, w.continues)
	if err != nil {
		w.t.Fatal(err)
	}
	w.same(restored)
	w.m = drive(restored)
	w.m.Now = w.now
	w.running = map[protocol.ToolID]bool{}
	w.m.Adopt("restart")
	w.commit()
}

// same compares a machine that was restored from the log with the one that wrote the log.
func (w *world) same(r *Machine) {
	type durable struct {
		State             protocol.TurnState
		Accepts           bool
		Sequence          int64
		Parts             []protocol.Part
		Made, Calls       int
		Steps             []stepResult
		Rounds            int
		Adoptions, Losses int
		Ended             bool
		Open              protocol.PartID
		StepParts         []protocol.PartID
		Activity          protocol.PartID
		Approvals         []approval
		Over              protocol.StopReason
		Stored            int
	}
	view := func(m *Machine) string {
		b, _ := json.Marshal(durable{
			m.state, m.accepts, m.sequence, m.fold.Parts(), m.parts, m.calls, m.steps, m.rounds, m.adoptions, m.losses, m.ended, m.open,
			append([]protocol.PartID{}, m.stepParts...), m.activity, approvalsOf(m), m.over, m.stored,
		})
		return string(b)
	}
	was, is := view(w.m.Machine), view(r)
	if w.m.cut != nil { // a cut-off part is still open in the log, but no longer in the machine
		return
	}
	if was != is {
		w.t.Fatalf("the restored machine differs:\nwas %s\nis  %s", was, is)
	}
}

func approvalsOf(m *Machine) (all []approval) {
	for _, a := range m.approvals {
		all = append(all, *a)
	}
	return all
}

var textPieces = []string{"hello ", "world\n", "\n", "`", "``", "```", "```go\n", "````md\n", "````\n", "~~~", "~\n", " ", "   ```\n", "func main() {}\n", "```\n", "  ", "ü€😀", "a```b", "\n```py\nx=1", "\n```"}

// random triggers the machine once, at random, and commits the decision.
func (w *world) random() {
	m, t := w.m, w.t
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 13}).Draw(t, "hours")) * time.Hour)
	m.Now = w.now
	switch rapid.IntRange(0, 18).Draw(t, "trigger") {
	case 0, 1, 2, 3:
		m.ModelText(w.calls, rapid.SampledFrom(textPieces).Draw(t, "text"))
	case 4:
		m.ModelReasoning(w.calls, rapid.SampledFrom([]string{"think", "hm\n"}).Draw(t, "reasoning"))
	case 5:
		name := rapid.SampledFrom([]string{"look", "write", "send", "send", "invented"}).Draw(t, "tool")
		m.ModelChunk(w.calls, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: name, Input: json.RawMessage(`{}`)}})
	case 6:
		m.ModelChunk(w.calls, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 3, OutputTokens: rapid.SampledFrom([]int{2, 2, 2, 40_000}).Draw(t, "output")}})
	case 7, 8:
		m.ModelStopped(w.calls, rapid.SampledFrom([]llm.Stop{llm.StopEndTurn, llm.StopToolCalls, llm.StopToolCalls, llm.StopMaxTokens, llm.StopRefusal}).Draw(t, "stop"))
	case 9:
		m.ModelFailed(w.calls, &llm.Error{Code: "model_unavailable", Cut: rapid.Bool().Draw(t, "cut"), Retryable: true})
	case 10, 11:
		for _, call := range m.toolCalls {
			if w.running[call.id] {
				var failure *protocol.ToolError
				if rapid.Bool().Draw(t, "failed") {
					failure = &protocol.ToolError{Code: "broken"}
				}
				m.ToolEnded(call.id, ToolResult{Output: "out"}, failure, time.Second)
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
	case 16, 17:
		w.decide()
	case 18:
		m.Wake()
	case 15:
		m.ModelText(w.calls-1, "late") // a chunk of an older call
	}
	w.commit()
}

// runSend checks that a call which needs an approval runs once, after the user has approved it.
func (w *world) runSend(id protocol.ToolID) {
	if w.effects[id]++; w.effects[id] > 1 {
		w.t.Fatalf("the call %s has run %d times", id, w.effects[id])
	}
	for approval, call := range w.asked {
		if call == id && w.resolved[approval] != protocol.ApproveOnce && w.resolved[approval] != protocol.ApproveWithEdits {
			w.t.Fatalf("the call %s ran, and its approval is %q", id, w.resolved[approval])
		}
	}
}

// decide decides on an approval at random: some are decided before, have expired, or are decided with another digest.
func (w *world) decide() {
	if len(w.m.approvals) == 0 {
		return
	}
	a := rapid.SampledFrom(w.m.approvals).Draw(w.t, "approval")
	c := &Command{
		Kind: CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: a.ApprovalID, Digest: a.InputDigest,
		Decision: rapid.SampledFrom([]protocol.Decision{protocol.ApproveOnce, protocol.ApproveWithEdits, protocol.RejectCall}).Draw(w.t, "decision"),
	}
	if c.Decision == protocol.ApproveWithEdits {
		c.EditedInput = json.RawMessage(rapid.SampledFrom([]string{`{"n":2}`, `{"bad":1}`}).Draw(w.t, "edits"))
	}
	c.Hash = string(c.Decision) + string(c.EditedInput)
	if rapid.IntRange(0, 9).Draw(w.t, "outdated") == 0 {
		c.Digest = "sha256:0"
	}
	pending := a.pending()
	receipt, err := w.m.Command(c)
	if err != nil {
		return
	}
	if again, err := w.m.Command(c); err != nil || again.SteeringID != receipt.SteeringID || !again.Replayed || pending && receipt.Replayed {
		w.t.Fatalf("the repeat of %+v got %+v, %v", receipt, again, err)
	}
	c.Hash = "other"
	if _, err := w.m.Command(c); protocol.CodeOf(err) != protocol.CodeApprovalDecided {
		w.t.Fatalf("another decision got %v", err)
	}
}

func (w *world) steer() {
	w.clients++
	c := &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: fmt.Sprint("c", w.clients), Text: fmt.Sprint("do this ", w.clients), Hash: "h",
		Delivery: rapid.SampledFrom([]protocol.Delivery{protocol.DeliverNextStep, protocol.DeliverInterrupt}).Draw(w.t, "delivery"),
	}
	open := w.m.accepts && !w.m.ended
	receipt, err := w.m.Command(c)
	if open != (err == nil) && protocol.CodeOf(err) != protocol.CodeTooManyInputs {
		w.t.Fatalf("the turn accepts steering: %v, the input got %v", open, err)
	}
	if err != nil {
		return
	}
	again, err := w.m.Command(c)
	if err != nil || again.SteeringID != receipt.SteeringID || !again.Replayed {
		w.t.Fatalf("the repeat got %v, %v", again, err)
	}
	c.Hash = "other"
	if _, err := w.m.Command(c); protocol.CodeOf(err) != protocol.CodeInvalid {
		w.t.Fatalf("the same client id with another input got %v", err)
	}
}

// cancel cancels with a random scope: a wider one widens the scope, any other gets the receipt of an earlier cancel.
func (w *world) cancel() {
	scope := rapid.SampledFrom([]protocol.CancelScope{protocol.CancelTurn, protocol.CancelTurnAndFollowUps}).Draw(w.t, "scope")
	before := w.m.sequence
	receipt, err := w.m.Command(&Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: protocol.CancelledByUser})
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
		w.m.Deadline()
	case 2:
		w.m.GraceOver()
	case 3:
		w.m.ContextTrimmed(w.calls)
		w.m.StillWaiting(w.calls)
	default:
		for _, input := range w.m.inputs {
			if rapid.Bool().Draw(w.t, "apply") {
				if _, err := w.m.Command(&Command{Kind: CommandApply, SteeringID: input.id}); err == nil && input.applyAt == 0 {
					w.t.Fatal("an applied input has no record")
				}
				continue
			}
			if _, err := w.m.Command(&Command{Kind: CommandWithdraw, SteeringID: input.id}); err == nil && input.step > 0 {
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
			_, _ = w.m.Command(&Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser})
			w.commit()
			w.m.GraceOver()
			w.commit()
		}
		w.check()
	})
}

func (w *world) check() {
	if w.finished != 1 || !w.m.ended || !w.state.Terminal() {
		w.t.Fatalf("the turn ended %d times and is %s", w.finished, w.state)
	}
	for id := range w.accepted {
		if w.outcomes[id] != 1 {
			w.t.Fatalf("an accepted input ended %d times", w.outcomes[id])
		}
	}
	if len(w.resolved) != len(w.asked) {
		w.t.Fatalf("%d of %d approvals were resolved", len(w.resolved), len(w.asked))
	}
	for id, n := range w.started {
		if n != 1 {
			w.t.Fatalf("tool call %s was started %d times", id, n)
		}
	}
	var fold protocol.Fold
	last, err := fold.FoldFrames(0, w.frames)
	if err != nil || last != w.m.sequence {
		w.t.Fatalf("the log ends at %d (%v), the machine at %d", last, err, w.m.sequence)
	}
	for _, part := range fold.Parts() {
		if part.Open || part.Type == protocol.PartTool && !part.State.Terminal() {
			w.t.Fatalf("a part of a finished turn is open: %+v", part)
		}
	}
	if !protocol.EndsTurn(w.frames) || bytes.Count(w.frames, []byte(`"type":"turn.finished"`)) != 1 {
		w.t.Fatal("the log does not end with its only turn.finished")
	}
}

func TestTextSurvivesAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom(textPieces)).Draw(t, "pieces")
		whole := strings.Join(pieces, "")
		if got, want := splitText(pieces), splitText([]string{whole}); got != want {
			t.Fatalf("split in pieces: %q, split at once: %q", got, want)
		}
		bytewise := strings.Split(whole, "")
		if got, want := splitText(bytewise), splitText([]string{whole}); got != want {
			t.Fatalf("split by characters: %q, split at once: %q", got, want)
		}
	})
}

// sketch is a fenceSink that writes code blocks as <language>code</>.
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

func TestBlocksOfCodeEndWithTheirOwnFence(t *testing.T) {
	for text, want := range map[string]string{
		"````md\n```go\nx\n```\n````\nafter": "<md>```go\nx\n```\n</>after",
		"```\n````\nafter":                   "<></>after",
		"~~~py\n```\n~~~~\n":                 "<py>```\n</>",
		"``` a`b\n~~~ a`b c\n":               "``` a`b\n<ab>",
		"  ```go\nx\n  ```\n":                "  ```go\nx\n  ```\n",
		"```\nx\n   ```\nafter":              "<>x\n</>after",
		"```\nx\n    ```\n \n":               "<>x\n    ```\n \n",
		"```go\tfoo\nx\n ```":                "<go>x\n</>",
		"```go\n~~~\n```x\n```":              "<go>~~~\n```x\n</>",
	} {
		if got := splitText([]string{text}); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := splitText(strings.Split(text, "")); got != want {
			t.Errorf("%q, by characters: got %q, want %q", text, got, want)
		}
	}
}

// What a model gets of its own code is split into the same code.
func TestCodeIsWrittenWithAFenceThatItDoesNotHave(t *testing.T) {
	for _, code := range []string{"x\n", "```\n", "  ```\n", "   ````\n", "````\n```\n", "a `b` c\n"} {
		var out sketch
		splitter := newFenceSplitter()
		text := appendPartText(nil, protocol.Part{Type: protocol.PartCode, Language: "go", Code: code})
		splitter.feed(string(text), &out)
		splitter.end(&out)
		if want := "<go>" + code + "</>"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}

func TestTransitionTablesAreClosed(t *testing.T) {
	for _, state := range protocol.TurnStates {
		exits := 0
		for _, move := range protocol.TurnTransitions {
			if move.From == state {
				exits++
			}
		}
		if state.Terminal() != (exits == 0) {
			t.Errorf("%s: terminal is %v, but the table has %d transitions from it", state, state.Terminal(), exits)
		}
	}
	for _, state := range protocol.ToolStates {
		exits := 0
		for _, move := range protocol.ToolTransitions {
			if move.From == state {
				exits++
			}
		}
		if state.Terminal() != (exits == 0) {
			t.Errorf("tool %s: terminal is %v, but the table has %d transitions from it", state, state.Terminal(), exits)
		}
	}
}

func TestATurnOverItsBudgetBeginsNoFurtherStep(t *testing.T) {
	m := newDriver(machineSpec(), machineTools, false)
	m.Begin()
	m.Proceed()
	budget := budgetFactor * m.spec.Routing.Completion.MaxOutputTokens
	m.ModelText(1, "long")
	m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: "look", Input: json.RawMessage(`{}`)}})
	m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{OutputTokens: budget}})
	m.ModelStopped(1, llm.StopToolCalls)
	if end := m.take().End; end == nil || end.Reason != protocol.StopBudgetReached || end.State != protocol.TurnIncomplete || end.Usage.OutputTokens != budget {
		t.Errorf("the turn ended as %+v", end)
	}
}
