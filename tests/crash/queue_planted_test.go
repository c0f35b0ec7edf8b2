package crash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"turnstone/protocol"
)

const plantedQueueStart, plantedQueueConversation = "T000000000010", "conv_queue"

// queueRound is a made-up round with a queue of three items that were started in their order.
type queueRound struct {
	*planted
	turns []protocol.TurnID // of the start and of the items
	items []int             // indexes in Stored.FollowUps
}

func newQueueRound() *queueRound {
	p := &queueRound{planted: newPlanted()}
	first := p.addTurn(plantedQueueStart, "")
	p.did(operation{Kind: opStart, Conversation: plantedQueueConversation, Key: "QS", Text: plantedQueueStart, Status: 200, ID: first.String()})
	for n := range 3 {
		p.addItem(fmt.Sprintf("T00000000002%d", n))
	}
	return p
}

// addItem adds an item that was acknowledged and started.
func (p *queueRound) addItem(token string) {
	id := protocol.NewFollowUpID().String()
	p.items = append(p.items, len(p.Stored.FollowUps))
	p.Stored.FollowUps = append(p.Stored.FollowUps, storedFollowUp{
		ID: id, Conversation: plantedQueueConversation, Content: token, State: protocol.FollowUpStarted, Position: int64(len(p.items)),
		Turn: p.addTurn(token, id).String(),
	})
	p.did(operation{Kind: opEnqueue, Conversation: plantedQueueConversation, Key: token, Text: token, Status: 201, ID: id})
}

// addTurn adds a turn at the end of the conversation.
func (p *queueRound) addTurn(question, item string) protocol.TurnID {
	id := protocol.NewTurnID()
	p.Stored.Turns[id.String()] = &storedTurn{
		Conversation: plantedQueueConversation, Question: question, FollowUp: item, State: protocol.TurnCompleted, Depth: 2*len(p.turns) + 1,
	}
	p.log(id, started(), finished(protocol.TurnCompleted))
	p.turns = append(p.turns, id)
	return id
}

// did adds an operation after all others.
func (p *queueRound) did(o operation) {
	o.Began = time.Hour + time.Duration(len(p.Operations))*10*time.Millisecond
	o.Ended = o.Began + time.Millisecond
	p.Operations = append(p.Operations, o)
}

func (p *queueRound) item(n int) *storedFollowUp { return &p.Stored.FollowUps[p.items[n]] }

// swapStarts makes two items start in the other order.
func (p *queueRound) swapStarts(n, m int) {
	a, b := p.Stored.Turns[p.item(n).Turn], p.Stored.Turns[p.item(m).Turn]
	a.Depth, b.Depth = b.Depth, a.Depth
}

func (p *queueRound) released(n int) {
	p.did(operation{Kind: opRelease, Conversation: plantedQueueConversation, Status: 200, ID: p.item(n).ID})
}

func TestTheCheckerFindsNothingInALegalQueue(t *testing.T) {
	for name, change := range map[string]func(*queueRound){
		"in order": func(*queueRound) {},
		"an item was held while a later one was added and started": func(p *queueRound) {
			p.swapStarts(0, 1)
			p.released(0)
		},
		"a replayed response after those of later items": func(p *queueRound) {
			late := *p.operation(opEnqueue, 0)
			late.Replayed = true
			p.did(late)
		},
	} {
		p, found := newQueueRound(), newFindings()
		change(p)
		check(&p.record, found)
		if !found.clean() {
			t.Errorf("%s: %v", name, found.violations)
		}
	}
}

func TestTheCheckerFindsEachViolationOfAQueue(t *testing.T) {
	for name, plant := range map[string]struct {
		breaks string
		how    func(*queueRound)
	}{
		"an item that was started twice":            {doubledEffects, func(p *queueRound) { p.addTurn(p.item(1).Content, p.item(1).ID) }},
		"a second turn that does not name its item": {doubledEffects, func(p *queueRound) { p.addTurn(p.item(1).Content, "") }},
		"an item that was stored twice":             {doubledEffects, func(p *queueRound) { p.addItem(p.item(2).Content) }},
		"a turn of nobody":                          {doubledEffects, func(p *queueRound) { p.addTurn("T000000000099", "") }},
		"an acknowledged item that is gone": {lost, func(p *queueRound) {
			p.Stored.FollowUps = slices.Delete(p.Stored.FollowUps, p.items[2], p.items[2]+1)
		}},
		"a started item without a turn":               {lost, func(p *queueRound) { delete(p.Stored.Turns, p.item(2).Turn) }},
		"an item that nobody cancelled":               {lost, func(p *queueRound) { p.item(2).State = protocol.FollowUpCancelled }},
		"a turn with the question of another item":    {lost, func(p *queueRound) { p.Stored.Turns[p.item(2).Turn].Question = "T000000000099" }},
		"two items that started in the wrong order":   {brokenOrder, func(p *queueRound) { p.swapStarts(0, 1) }},
		"released items in the wrong order":           {brokenOrder, func(p *queueRound) { p.swapStarts(0, 1); p.released(0); p.released(1) }},
		"an item that overtook one that was not held": {brokenOrder, func(p *queueRound) { p.swapStarts(0, 1); p.released(1) }},
		"an item before one that was added earlier": {brokenOrder, func(p *queueRound) {
			p.item(0).Position, p.item(1).Position = p.item(1).Position, p.item(0).Position
			p.swapStarts(0, 1)
		}},
		"a queue that is stalled":           {notAtRest, func(p *queueRound) { p.item(2).State, p.item(2).Turn = protocol.FollowUpQueued, "" }},
		"an item that is still held":        {notAtRest, func(p *queueRound) { p.item(2).State, p.item(2).Turn = protocol.FollowUpHeld, "" }},
		"an item that names the wrong turn": {notWhole, func(p *queueRound) { p.item(2).Turn = p.item(1).Turn }},
		"one key, two items":                {notIdempotent, func(p *queueRound) { repeat := *p.operation(opEnqueue, 0); repeat.ID = p.item(1).ID; p.did(repeat) }},
		"an item while the limiter is away": {limiterOpen, func(p *queueRound) { p.Outages = []outage{{From: time.Hour, To: 2 * time.Hour}} }},
		"a repeat not marked as a replay":   {illegalHistory, func(p *queueRound) { p.did(*p.operation(opEnqueue, 0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			p, found := newQueueRound(), newFindings()
			plant.how(p)
			check(&p.record, found)
			if found.count(plant.breaks) == 0 {
				t.Errorf("%s was not reported; the violations are %v", plant.breaks, found.violations)
			}
		})
	}
}

// TestAFaultHitsAQueueOnlyWhileAnItemWasSeenQueued checks the count of faults while queues drain.
func TestAFaultHitsAQueueOnlyWhileAnItemWasSeenQueued(t *testing.T) {
	w, item := newQueueWatch(), protocol.NewFollowUpID()
	w.sawQueued(item, 10, 20)
	w.sawQueued(item, 10, 30) // it still waits
	w.sawQueued(item, 50, 60) // it was held in between
	w.sawQueued(protocol.NewFollowUpID(), 12, 25)
	for at, want := range map[time.Duration]int{5: 0, 11: 1, 22: 1, 29: 1, 35: 0, 55: 1, 70: 0} {
		if got := w.hits([]fault{{At: at, Until: at + 1}}); got != want {
			t.Errorf("a fault at %d counts %d times, want %d", at, got, want)
		}
	}
}
