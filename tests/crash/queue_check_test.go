package crash

import (
	"cmp"
	"maps"
	"slices"

	"turnstone/protocol"
)

// queues returns the items of the conversations that queue clients used, in queue order.
func (r *record) queues() map[string][]storedFollowUp {
	queues := map[string][]storedFollowUp{}
	for _, o := range r.Operations {
		if o.Kind == opEnqueue {
			queues[o.Conversation] = nil
		}
	}
	for _, item := range r.Stored.FollowUps {
		if items, known := queues[item.Conversation]; known {
			queues[item.Conversation] = append(items, item)
		}
	}
	for _, items := range queues {
		slices.SortFunc(items, func(a, b storedFollowUp) int { return cmp.Compare(a.Position, b.Position) })
	}
	return queues
}

// checkQueues checks that every item of a queue became exactly one turn, in the order of the queue. checkStarts checks
// that every acknowledged item is stored once, and checkWhole that no item is still queued.
func (c *checker) checkQueues() {
	queues := c.queues()
	for _, conversation := range slices.Sorted(maps.Keys(queues)) {
		items := queues[conversation]
		var started []startedItem
		for _, item := range items {
			turns := c.turnsOf(item)
			c.checkItem(item, turns)
			if len(turns) > 0 {
				started = append(started, startedItem{item, turns[0]})
			}
		}
		c.checkStartOrder(conversation, started)
		c.checkPositions(conversation, items)
	}
	c.checkOrigins(queues)
}

// startedItem is an item of a queue and its first turn.
type startedItem struct {
	storedFollowUp
	turn *loggedTurn
}

// turnsOf returns the turns that an item became, oldest first: those that name it, and those that ask its question.
func (c *checker) turnsOf(item storedFollowUp) (turns []*loggedTurn) {
	token := turnToken.FindString(item.Content)
	for _, turn := range c.logs {
		if turn.FollowUp == item.ID || slices.Contains(c.text[token], turn) {
			turns = append(turns, turn)
		}
	}
	slices.SortFunc(turns, func(a, b *loggedTurn) int { return cmp.Compare(a.Depth, b.Depth) })
	return turns
}

func (c *checker) checkItem(item storedFollowUp, turns []*loggedTurn) {
	switch {
	case len(turns) > 1:
		c.fail(doubledEffects, "follow-up %s was started %d times, as %s and %s", item.ID, len(turns), turns[0].ID, turns[1].ID)
	case item.State == protocol.FollowUpHeld:
		c.fail(notAtRest, "follow-up %s is still held", item.ID)
	case item.State == protocol.FollowUpCancelled:
		c.fail(lost, "follow-up %s was cancelled, although no client cancelled it", item.ID)
	case item.State == protocol.FollowUpStarted && len(turns) == 0:
		c.fail(lost, "follow-up %s was started, but no turn is stored", item.ID)
	case len(turns) == 1 && turns[0].Question != item.Content:
		c.fail(lost, "follow-up %s is %q, but its turn %s has the question %q", item.ID, item.Content, turns[0].ID, turns[0].Question)
	}
}

// checkStartOrder checks that the items of a queue started in the order of the queue. There is one exception: an item
// that was held, and that a client had to release, may start after an item that was added meanwhile and never held.
func (c *checker) checkStartOrder(conversation string, items []startedItem) {
	released := map[string]bool{}
	for _, o := range c.Operations {
		if o.Kind == opRelease {
			released[o.ID] = true
		}
	}
	for n, later := range items {
		for _, earlier := range items[:n] {
			if later.turn.Depth < earlier.turn.Depth && !(released[earlier.ID] && !released[later.ID]) {
				c.fail(brokenOrder, "queue of %s: follow-up %s at position %d started before %s at position %d", conversation, later.ID, later.Position, earlier.ID, earlier.Position)
			}
		}
	}
}

// checkPositions checks that the items have the order in which they were added. A client adds one after the other; a
// replayed response says nothing about when its item was added.
func (c *checker) checkPositions(conversation string, items []storedFollowUp) {
	at := map[string]int{}
	for n, item := range items {
		at[item.ID] = n
	}
	last := operation{}
	for _, o := range c.Operations {
		if o.Kind != opEnqueue || o.Conversation != conversation || !o.acknowledged() || o.Replayed {
			continue
		}
		if position, stored := at[o.ID]; stored && last.ID != "" && position < at[last.ID] {
			c.fail(brokenOrder, "queue of %s: follow-up %s was added after %s but is before it", conversation, o.ID, last.ID)
		}
		last = o
	}
}

// checkOrigins checks that every turn in the conversation of a queue comes from an item of the queue or from a start.
func (c *checker) checkOrigins(queues map[string][]storedFollowUp) {
	starts := c.grouped(opStart)
	for id, turn := range c.logs {
		if _, queue := queues[turn.Conversation]; queue && turn.FollowUp == "" && starts[turnToken.FindString(turn.Question)] == nil {
			c.fail(doubledEffects, "%s in the conversation of a queue has neither a follow-up nor a start: %s", id, turn.Question)
		}
	}
}

// countQueues adds the queues of a round that had at least queueItems items and were drained, and the faults that hit them.
func (r *result) countQueues(of *record, faults int) {
	for _, items := range of.queues() {
		started := func(item storedFollowUp) bool { return item.State == protocol.FollowUpStarted }
		if len(items) >= queueItems && !slices.ContainsFunc(items, func(item storedFollowUp) bool { return !started(item) }) {
			r.Queues++
			r.QueueItems += len(items)
		}
	}
	r.QueueFaults += faults
}
