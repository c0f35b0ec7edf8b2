package crash

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// The made-up round has a turn with an effect, a steering input that was applied and one that was returned; a turn that
// was cancelled; a start that was queued; a draft, a title, a created conversation, and writes against a limit.
const (
	plantedText         = "T00000000000a"
	plantedSteer        = "S00000000000b"
	plantedReturned     = "S00000000000c"
	plantedQueue        = "T00000000000d"
	plantedNote         = "N1"
	plantedTitle        = "C00000000000e"
	plantedConversation = "conv_planted"
)

// planted is the made-up round and the parts of it that the tests change.
type planted struct {
	record
	turn, cancelled protocol.TurnID
	events          []protocol.Payload
	tool            protocol.ToolID
	item            protocol.FollowUpID
}

// newPlanted returns a round in which every promise was kept.
func newPlanted() *planted {
	p := &planted{turn: protocol.NewTurnID(), cancelled: protocol.NewTurnID(), tool: protocol.DeriveToolID(protocol.NewTurnID(), 1), item: protocol.NewFollowUpID()}
	applied, returned, call := protocol.NewSteeringID(), protocol.NewSteeringID(), protocol.NewPartID()
	p.events = []protocol.Payload{
		started(),
		&protocol.ToolStarted{PartID: call, ToolID: p.tool, Input: []byte(`{"note":"` + plantedNote + `"}`)},
		&protocol.ToolCompleted{PartID: call, ToolID: p.tool, State: protocol.ToolSucceeded},
		&protocol.SteeringAccepted{SteeringID: applied, ClientSteeringID: plantedSteer},
		&protocol.ActivityProgress{PartID: protocol.NewPartID(), Activity: "applying_input"},
		&protocol.SteeringApplied{SteeringID: applied, PartID: protocol.NewPartID()},
		&protocol.SteeringAccepted{SteeringID: returned, ClientSteeringID: plantedReturned},
		&protocol.SteeringReturned{SteeringID: returned, FollowUpID: &p.item},
		finished(protocol.TurnCompleted),
	}
	p.Limit = limit{Burst: 2, PerSecond: 1}
	p.Stored = &snapshot{
		Turns: map[string]*storedTurn{
			p.turn.String():      {Question: plantedText, State: protocol.TurnCompleted},
			p.cancelled.String(): {Question: "T00000000000f", State: protocol.TurnCancelled, Cancelled: true},
		},
		FollowUps: []storedFollowUp{
			{ID: p.item.String(), State: protocol.FollowUpHeld, Content: plantedReturned},
			{ID: "fu_queued", State: protocol.FollowUpHeld, Content: plantedQueue},
		},
		Conversations: map[string]storedConversation{
			plantedConversation: {Title: plantedTitle, Version: 2, Draft: "two", DraftVersion: 2},
		},
		Messages: []storedMessage{{Text: plantedText, Turn: p.turn.String()}},
	}
	p.log(p.turn, p.events...)
	p.log(p.cancelled, started(), &protocol.TurnCancelRequested{}, finished(protocol.TurnCancelled))
	p.Witness = verify.NewWitness()
	p.saw(p.turn.String(), 1, p.event(1))
	p.Views = []view{
		{Turn: p.turn.String(), Where: "a page", Status: asQuestion, Parts: plantedText},
		{Turn: p.turn.String(), Where: "a page", Status: string(protocol.MessageComplete), Parts: p.stored().Answer},
		{Turn: p.turn.String(), Where: "a snapshot", Covers: 1, Status: string(protocol.MessageStreaming), Parts: "[]"},
	}
	p.Asked = []modelRequest{{Turn: plantedText, Steers: []string{plantedSteer}}}
	p.Effects = []string{plantedNote}
	turn, cancelled := p.turn.String(), p.cancelled.String()
	for n, o := range []operation{
		{Kind: opStart, Key: "K", Text: plantedText, Status: 200, ID: turn},
		{Kind: opStart, Key: "K", Text: plantedText, Status: 200, ID: turn, Replayed: true},
		{Kind: opStart, Key: "Q", Text: plantedQueue, Status: 202, ID: "fu_queued"},
		{Kind: opSteer, Turn: turn, Key: plantedSteer, Status: 202, Sequence: 4},
		{Kind: opApply, Turn: turn, Key: plantedSteer, Status: 202, Sequence: 5, Began: 1, Ended: 2},
		{Kind: opApply, Turn: turn, Key: plantedSteer, Status: 202, Sequence: 5, Began: 3, Ended: 4},
		{Kind: opSteer, Turn: turn, Key: plantedReturned, Status: 202, Sequence: 7},
		{Kind: opSteer, Turn: turn, Key: "S0", Status: 409, Code: string(protocol.CodeSteeringClosed)},
		{Kind: opSteer, Turn: turn, Key: "S1", Status: 503},
		{Kind: opCancel, Turn: cancelled, Status: 202, Sequence: 2},
		{Kind: opCreate, Key: "C", Text: plantedTitle, Status: 201, ID: plantedConversation},
		{Kind: opLook, Conversation: plantedConversation, Status: 200, Title: plantedTitle, TitleVersion: 2},
		{Kind: opDraft, Conversation: plantedConversation, Text: "one", Status: 200, Draft: "one", DraftVersion: 1},
		{Kind: opDraft, Conversation: plantedConversation, Text: "two", Status: 200, Draft: "two", DraftVersion: 2},
		{Kind: opFlood, Status: 200},
		{Kind: opFlood, Status: 200},
		{Kind: opFlood, Status: 429},
	} {
		o.Began = time.Duration(n) * 10 * time.Millisecond
		o.Ended = o.Began + time.Millisecond
		p.Operations = append(p.Operations, o)
	}
	return p
}

func started() protocol.Payload {
	return &protocol.TurnStarted{
		ConversationID: protocol.NewConversationID(), BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(),
		AssistantMessageID: protocol.NewMessageID(),
	}
}

func finished(status protocol.TurnState) protocol.Payload {
	return &protocol.TurnFinished{Status: status, MessageID: protocol.NewMessageID()}
}

// log stores each event as a chunk of its own.
func (p *planted) log(turn protocol.TurnID, events ...protocol.Payload) {
	stored := p.Stored.Turns[turn.String()]
	stored.ID, stored.Terminal, stored.Epoch, stored.Usages, stored.AnswerStatus = turn.String(), true, 1, 1, string(protocol.MessageComplete)
	stored.Chunks, stored.Replay = nil, nil
	for n, payload := range events {
		sequence := int64(n + 1)
		if end, is := payload.(*protocol.TurnFinished); is {
			end.LastSequence = sequence
		}
		frame, err := protocol.AppendEvent(nil, turn, sequence, time.Unix(0, 0), payload)
		if err != nil {
			panic(err)
		}
		frame = append(frame, '\n')
		stored.Chunks = append(stored.Chunks, verify.Chunk{First: sequence, Last: sequence, Epoch: 1, Frames: frame})
		stored.Replay = append(stored.Replay, frame...)
	}
	var fold protocol.Fold
	for _, payload := range events {
		fold.Apply(payload)
	}
	stored.Answer = verify.PartsJSON(fold.Parts())
	stored.Next, stored.ReplayLast = int64(len(events))+1, int64(len(events))
}

func (p *planted) stored() *storedTurn { return p.Stored.Turns[p.turn.String()] }

// event returns the stored bytes of an event of the turn.
func (p *planted) event(sequence int64) string {
	return strings.TrimSuffix(string(p.stored().Chunks[sequence-1].Frames), "\n")
}

func (p *planted) saw(turn string, sequence int64, data string) {
	_ = p.Witness.Saw(turn, sequence, data, time.Unix(0, 0)) // the checker reports it
}

// operation returns the nth operation of a kind, counted from 0.
func (p *planted) operation(kind string, n int) *operation {
	for i := range p.Operations {
		if p.Operations[i].Kind == kind {
			if n--; n < 0 {
				return &p.Operations[i]
			}
		}
	}
	panic(kind)
}

func TestTheCheckerFindsNothingInALegalRound(t *testing.T) {
	found := newFindings()
	check(&newPlanted().record, found)
	if !found.clean() {
		t.Error(found.violations)
	}
	if found.histories.histories < 6 {
		t.Errorf("only %d histories were checked", found.histories.histories)
	}
}

// TestTheCheckerFindsEachPlantedViolation breaks the promises one by one. The checker must report the right kind of
// violation for each.
func TestTheCheckerFindsEachPlantedViolation(t *testing.T) {
	for name, plant := range map[string]struct {
		breaks string
		how    func(*planted)
	}{
		"an acknowledged start is gone": {lost, func(p *planted) { p.operation(opStart, 0).ID, p.operation(opStart, 1).ID = "turn_x", "turn_x" }},
		"a queued start is gone":        {lost, func(p *planted) { p.Stored.FollowUps = p.Stored.FollowUps[:1] }},
		"a steering input is gone":      {lost, func(p *planted) { p.operation(opSteer, 0).Key = "S9" }},
		"an apply is gone":              {lost, func(p *planted) { p.operation(opApply, 0).Sequence = 6 }},
		"the repeat of an apply is refused": {lost, func(p *planted) {
			p.operation(opApply, 1).Status, p.operation(opApply, 1).Code = 409, string(protocol.CodeSteeringClosed)
		}},
		"an apply has two receipts": {doubledEffects, func(p *planted) { p.operation(opApply, 1).Sequence = 6 }},
		"a cancel is gone": {lost, func(p *planted) {
			p.log(p.cancelled, started(), &protocol.TurnStateChanged{}, finished(protocol.TurnCompleted))
			stored := p.Stored.Turns[p.cancelled.String()]
			stored.State, stored.Cancelled = protocol.TurnCompleted, false
		}},
		"a created conversation is gone":    {lost, func(p *planted) { delete(p.Stored.Conversations, plantedConversation) }},
		"a tool reported as done never ran": {lost, func(p *planted) { p.Effects = nil }},
		"a gap in the log": {gaps, func(p *planted) {
			p.stored().Chunks = slices.Delete(p.stored().Chunks, 2, 3)
		}},
		"a log that ends early":                    {gaps, func(p *planted) { p.stored().Next++ }},
		"an event that changed":                    {changedBytes, func(p *planted) { p.saw(p.turn.String(), 2, p.event(3)) }},
		"two readers that disagree":                {changedBytes, func(p *planted) { p.saw(p.turn.String(), 1, p.event(2)) }},
		"a folded log with other bytes":            {changedBytes, func(p *planted) { p.stored().Replay[3]++ }},
		"a message that its events do not produce": {changedBytes, func(p *planted) { p.stored().Answer = "[]" }},
		"an event that is not stored":              {notDurable, func(p *planted) { p.saw(p.turn.String(), 99, p.event(1)) }},
		"a turn that is not stored":                {notDurable, func(p *planted) { p.saw("turn_x", 1, p.event(1)) }},
		"two ends": {doubleTerminal, func(p *planted) {
			p.log(p.turn, append(p.events, finished(protocol.TurnCompleted))...)
		}},
		"an end that differs from the turn's state": {doubleTerminal, func(p *planted) { p.stored().State = protocol.TurnFailed }},
		"a turn without an end":                     {notAtRest, func(p *planted) { p.stored().Terminal, p.stored().State = false, protocol.TurnRunning }},
		"a conversation with a live turn":           {notAtRest, func(p *planted) { p.Stored.Conversations["conv_y"] = storedConversation{Live: "turn_x"} }},
		"a stalled queue":                           {notAtRest, func(p *planted) { p.Stored.FollowUps[1].State = protocol.FollowUpQueued }},
		"an effect that happened twice":             {doubledEffects, func(p *planted) { p.Effects = append(p.Effects, plantedNote) }},
		"a start that started two turns": {doubledEffects, func(p *planted) {
			p.Stored.FollowUps = append(p.Stored.FollowUps, storedFollowUp{ID: "fu_2", State: protocol.FollowUpHeld, Content: plantedText})
		}},
		"two conversations of one request": {doubledEffects, func(p *planted) { p.Stored.Conversations["conv_y"] = p.Stored.Conversations[plantedConversation] }},
		"an input that was accepted twice": {doubledEffects, func(p *planted) { p.log(p.turn, slices.Insert(p.events, 5, p.events[3])...) }},
		"usage that was counted twice":     {doubledEffects, func(p *planted) { p.stored().Usages = 2 }},
		"an input applied and returned": {brokenOrder, func(p *planted) {
			p.log(p.turn, slices.Insert(p.events, 7, protocol.Payload(&protocol.SteeringReturned{SteeringID: p.events[3].(*protocol.SteeringAccepted).SteeringID}))...)
		}},
		"an input that no model request contains": {brokenOrder, func(p *planted) { p.Asked = nil }},
		"an input applied in a turn that ended before the model call": {brokenOrder, func(p *planted) {
			p.Asked = nil
			p.stored().State = protocol.TurnIncomplete
			p.log(p.turn, append(slices.Clone(p.events[:len(p.events)-1]), finished(protocol.TurnIncomplete))...)
		}},
		"a cancel whose repeat was refused": {illegalHistory, func(p *planted) {
			late := *p.operation(opCancel, 0)
			late.Status, late.Code, late.Began, late.Ended = 409, string(protocol.CodeSteeringClosed), late.Ended+1, late.Ended+2
			p.Operations = append(p.Operations, late)
		}},
		"an input accepted after its refusal": {brokenOrder, func(p *planted) {
			o := p.operation(opSteer, 1)
			o.Status, o.Code = 409, string(protocol.CodeSteeringClosed)
		}},
		"a refused input that was accepted": {untruthful503, func(p *planted) {
			o := p.operation(opSteer, 0)
			o.Status, o.Sequence = 503, 0
		}},
		"a refused cancel that took effect": {untruthful503, func(p *planted) {
			o := p.operation(opCancel, 0)
			o.Status, o.Sequence = 503, 0
		}},
		"a page without its answer":                {wrongPage, func(p *planted) { p.Views[1].Parts = "[]" }},
		"a page with a different question":         {wrongPage, func(p *planted) { p.Views[0].Parts = "else" }},
		"a page with a different status":           {wrongPage, func(p *planted) { p.Views[1].Status = string(protocol.MessageFailed) }},
		"a snapshot with text of later events":     {wrongPage, func(p *planted) { p.Views[2].Parts = p.stored().Answer }},
		"a snapshot of events that are not stored": {notDurable, func(p *planted) { p.Views[2].Covers = 99 }},
		"a page of a turn that is not stored":      {notDurable, func(p *planted) { p.Views[0].Turn = "turn_x" }},
		"an effect without an intent":              {brokenOrder, func(p *planted) { p.Effects = append(p.Effects, "N2") }},
		"an effect without an approval": {brokenOrder, func(p *planted) {
			p.events[1].(*protocol.ToolStarted).ToolName = "asked_effect"
			p.log(p.turn, p.events...)
		}},
		"a decision that is gone": {lost, func(p *planted) {
			p.Operations = append(p.Operations, operation{Kind: opDecide, Turn: p.turn.String(), Key: "ap_x", Text: string(protocol.ApproveOnce), Status: 202, Sequence: 2})
		}},
		"an append of an earlier owner": {brokenOrder, func(p *planted) { p.stored().Chunks[3].Epoch = 2 }},
		"text long after a cancel": {brokenOrder, func(p *planted) {
			part := protocol.NewPartID()
			p.log(p.cancelled, started(), &protocol.AnswerStarted{PartID: part}, &protocol.TurnCancelRequested{}, &protocol.AnswerDelta{PartID: part, Delta: "a"},
				&protocol.AnswerDelta{PartID: part, Offset: 1, Delta: "b"}, &protocol.AnswerCompleted{PartID: part, Text: "ab"}, finished(protocol.TurnCancelled))
			p.operation(opCancel, 0).Sequence = 3
		}},
		"a message without its turn":               {notWhole, func(p *planted) { p.Stored.Messages[0].Turn = "" }},
		"an answer that never ends":                {notWhole, func(p *planted) { p.stored().AnswerStatus = string(protocol.MessageStreaming) }},
		"one key, two responses":                   {notIdempotent, func(p *planted) { p.operation(opStart, 1).ID = p.cancelled.String() }},
		"a write while the limiter is unreachable": {limiterOpen, func(p *planted) { p.Outages = []outage{{From: 0, To: time.Hour}} }},
		"more writes than the limit":               {limiterOpen, func(p *planted) { p.Limit.Burst = 0 }},
		"a draft that was reverted": {illegalHistory, func(p *planted) {
			p.Stored.Conversations[plantedConversation] = storedConversation{Title: plantedTitle, Version: 2, Draft: "one", DraftVersion: 1}
		}},
		"a title that changed without a write":       {illegalHistory, func(p *planted) { p.operation(opLook, 0).TitleVersion = 1 }},
		"a refused write that took effect":           {illegalHistory, func(p *planted) { p.operation(opDraft, 1).Status = 503 }},
		"an input accepted after the window closed":  {illegalHistory, func(p *planted) { p.operation(opSteer, 2).Began, p.operation(opSteer, 2).Ended = -2, -1 }},
		"a repeat that is not marked as a replay":    {illegalHistory, func(p *planted) { p.operation(opStart, 1).Replayed = false }},
		"a write on the condition of an old version": {illegalHistory, func(p *planted) { p.operation(opDraft, 1).IfMatch = new(int64) }},
		"a cancel accepted after a refused one": {illegalHistory, func(p *planted) {
			early := *p.operation(opCancel, 0)
			early.Status, early.Code, early.Began, early.Ended = 409, string(protocol.CodeSteeringClosed), -2, -1
			p.Operations = append(p.Operations, early)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, found := newPlanted(), newFindings()
			plant.how(p)
			check(&p.record, found)
			if found.count(plant.breaks) == 0 {
				t.Errorf("%s was not reported; the violations are %v", plant.breaks, found.violations)
			}
		})
	}
}

// TestAnOperationWithoutAResponseMayHaveHappened checks that an operation without a response is accepted as legal
// whether it happened or not.
func TestAnOperationWithoutAResponseMayHaveHappened(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint(happened), func(t *testing.T) {
			p, found := newPlanted(), newFindings()
			o := *p.operation(opDraft, 1)
			o.Text, o.Status, o.Unknown = "three", 503, true
			o.Began, o.Ended = o.Ended+1, o.Ended+2
			p.Operations = append(p.Operations, o)
			if happened {
				p.Stored.Conversations[plantedConversation] = storedConversation{Title: plantedTitle, Version: 2, Draft: "three", DraftVersion: 3}
			}
			check(&p.record, found)
			if !found.clean() {
				t.Error(found.violations)
			}
		})
	}
}

// However many writes got no response, the search ends: both in a legal history and in an illegal one.
func TestHistoriesWithManyUnknownWritesAreDecided(t *testing.T) {
	for version, want := range map[int64]porcupine.CheckResult{
		20: porcupine.Ok,
		42: porcupine.Illegal, // more than there were writes
	} {
		last := registerOutput{value: "last", version: version}
		h := objectHistory{model: registerModel, operations: []porcupine.Operation{
			{Input: registerInput{}, Output: registerOutput{value: "first", version: 1}, Call: 0, Return: 1},
			{Input: registerInput{write: true, text: "last", ifMatch: -1}, Output: last, Call: 100, Return: 101},
			{Input: registerInput{last: true}, Output: last, Call: 102, Return: 103},
		}}
		for n := range 40 {
			in := registerInput{write: true, text: fmt.Sprint("unknown ", n), ifMatch: -1}
			if n%4 == 0 {
				in.ifMatch = int64(n % 16)
			}
			h.operations = append(h.operations, porcupine.Operation{Input: in, Output: registerOutput{open: true}, Call: int64(2 * n), Return: never})
		}
		h.orderAlike()
		if got := porcupine.CheckOperationsTimeout(h.model, h.operations, linearTime); got != want {
			t.Errorf("version %d: %s, want %s", version, got, want)
		}
	}
}

// However many commands got no response, the search ends. An input that the turn has must have been sent.
func TestHistoriesWithManyUnknownCommandsAreDecided(t *testing.T) {
	for accepted, want := range map[string]porcupine.CheckResult{"": porcupine.Ok, "S3": porcupine.Ok, "S99": porcupine.Illegal} {
		h := objectHistory{model: commandModel}
		add := func(call, end int64, in commandInput, out commandOutput) {
			h.operations = append(h.operations, porcupine.Operation{Input: in, Output: out, Call: call, Return: end})
		}
		for n := range int64(30) {
			add(2*n, never, commandInput{id: fmt.Sprint("S", n)}, commandOutput{open: true})
			add(2*n, never, commandInput{cancel: true}, commandOutput{open: true})
		}
		add(40, 41, commandInput{cancel: true}, commandOutput{refused: true})
		add(100, 101, commandInput{read: true}, commandOutput{accepted: accepted})
		h.dropWithoutEffect()
		if got := porcupine.CheckOperationsTimeout(h.model, h.operations, linearTime); got != want {
			t.Errorf("accepted %q: %s, want %s", accepted, got, want)
		}
	}
}

// A client reads an upload that is still scanned; when that request gets no response, nothing is known of the file.
func TestARequestWithoutAResponseDoesNotKeepTheStatusOfTheOneBefore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			panic(http.ErrAbortHandler) // closes the connection
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	user := sitetest.NewGuest(t, server.URL)
	defer user.Ledger.Plan()()
	c := &client{user: user, notes: newFindings(), clock: func() time.Duration { return 0 }, ctx: t.Context()}
	var o operation
	if c.send(&o, http.MethodPut, "/files/uploads/u/content", nil); !o.acknowledged() {
		t.Fatalf("status %d, want 202", o.Status)
	}
	if c.send(&o, http.MethodGet, "/files/uploads/u", nil); !o.open() {
		t.Errorf("status %d after a request without a response", o.Status)
	}
}
