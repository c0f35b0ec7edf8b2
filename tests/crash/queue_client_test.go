package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
)

const (
	queueAccounts = 5  // several, because the ends of the turns of an account wait for each other
	queuesEach    = 11 // of each account: more than a round needs, so that it need not wait for the slowest
	queueItems    = 3
	// queuePause is how long a client waits before it repeats a request or looks at its queue again. There are many of these
	// clients, and they must leave the service time for the others.
	queuePause = 500 * time.Millisecond
	looksEach  = 6 // pauses between two looks at a queue
	// queueRest is the longest time that a queue stays empty before it is filled again.
	queueRest = 15 * time.Second
	// queueTimeout is how long clients wait for their queues after the faults have stopped. By then every turn has been taken
	// over, and the service has looked for stalled queues several times.
	queueTimeout = 30 * time.Second
	// queueQuiet is the end of a round in which no queue is filled again, so that the round does not wait for it.
	queueQuiet = 8 * time.Second
	// firstWords is the length of the answer during which a queue is filled: 0.2 s.
	firstWords = 60
)

// queueClient fills the queue of a conversation with follow-ups, and looks after it while the service drains it.
type queueClient struct {
	*client
	conversation string
	watch        *queueWatch
	since        map[protocol.FollowUpID]time.Duration // when an item was known to be queued; it stays queued until it starts or is held
	busy         []enqueuing                           // to be repeated before the queue is filled again
	added        int                                   // items that were acknowledged
}

// enqueuing is a request that adds a follow-up.
type enqueuing struct {
	operation
	body map[string]string
}

// queueClients returns the clients of the queues of a round, without what work sets.
func (a *run) queueClients(round int) (all []*queueClient) {
	for n, account := range a.queues {
		for m, conversation := range account.conversations {
			c := &client{name: fmt.Sprintf("%d.queue.%d.%d", round, n, m), user: account.users[0], account: account, notes: a.notes, clock: a.clock}
			all = append(all, &queueClient{client: c, conversation: conversation, since: map[protocol.FollowUpID]time.Duration{}})
		}
	}
	return all
}

// run fills the queue. When the queue is drained, run waits, and fills it again while another returns true. After the
// end of the round it waits until the queue is empty, at most queueTimeout.
func (c *queueClient) run(another func() bool) {
	late, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	defer cancel()
	defer context.AfterFunc(c.ctx, func() { time.AfterFunc(queueTimeout, cancel) })()
	for first := true; first || another(); first = false {
		c.fill()
		c.drain(late)
		if clock.Sleep(c.ctx, time.Duration(c.random.Int64N(int64(queueRest)))) != nil {
			return
		}
	}
}

// fill starts a turn and queues follow-ups behind it, one after the other, until the round ends.
func (c *queueClient) fill() {
	again := c.busy
	c.busy = nil
	for _, one := range again {
		c.enqueue(one)
	}
	start := operation{Kind: opStart, Conversation: c.conversation, Key: c.token("K"), Text: c.token("T")}
	body := sitetest.NewChatBody(fmt.Sprintf("%s words=%d", start.Text, firstWords)).In(c.conversation)
	c.untilKnown(func() (again bool) {
		one := start
		return c.tryStart(&one, body, 0)
	})
	for n := 0; n < queueItems && c.ctx.Err() == nil; n++ {
		o := operation{Kind: opEnqueue, Conversation: c.conversation, Key: c.token("K"), Text: c.token("T")}
		content := fmt.Sprintf("%s %s words=%d", sitetest.Canary, o.Text, 3+c.random.IntN(8))
		c.enqueue(enqueuing{o, map[string]string{"content": content}})
	}
}

// untilKnown repeats a request until its outcome is known or the round ends.
func (c *queueClient) untilKnown(send func() (again bool)) {
	for send() && clock.Sleep(c.ctx, queuePause) == nil {
	}
}

// enqueue adds a follow-up to the queue. After a crash a key can be busy for 30 s; then enqueue leaves the request for the
// next time that the queue is filled.
func (c *queueClient) enqueue(e enqueuing) {
	c.untilKnown(func() (again bool) {
		one := e.operation
		response := c.send(&one, http.MethodPost, "/conversations/"+c.conversation+"/follow-ups", e.body, "Idempotency-Key", one.Key)
		if one.acknowledged() {
			var item protocol.FollowUp
			_ = json.Unmarshal(response.Body, &item) // the checker reports a missing identifier
			one.ID, c.since[item.FollowUpID] = item.FollowUpID.String(), one.Ended
			c.added++
		}
		c.history.add(one)
		if one.Code == string(protocol.CodeIdempotencyBusy) {
			c.busy = append(c.busy, e)
			return false
		}
		return one.repeatable()
	})
}

// drain looks at the queue until it is empty and no turn is live.
func (c *queueClient) drain(late context.Context) {
	for !c.look() {
		if clock.Sleep(late, looksEach*queuePause) != nil {
			return
		}
	}
}

// look reports whether the queue is empty and no turn is live. After a turn that did not complete, the service holds the
// items of the queue, and look releases the first one, so that they start in their order.
func (c *queueClient) look() (empty bool) {
	began := c.clock()
	page := c.lookAt(c.conversation)
	switch {
	case page == nil:
		return false
	case len(page.FollowUps) > 0:
		c.sawQueued(page.FollowUps, began)
		if first := &page.FollowUps[0]; first.State == protocol.FollowUpHeld {
			c.release(first)
		}
		return false
	case page.LiveTurn != nil:
		return false
	}
	if c.added >= queueItems {
		c.watch.sawEmpty(c.conversation)
	}
	return true
}

// release sets a held item to queued. If the outcome is unknown, the next look at the queue shows it.
func (c *queueClient) release(item *protocol.FollowUp) {
	o := operation{Kind: opRelease, Conversation: c.conversation, ID: item.FollowUpID.String()}
	path := "/conversations/" + c.conversation + "/follow-ups/" + o.ID
	c.send(&o, http.MethodPatch, path, map[string]any{"state": protocol.FollowUpQueued, "version": item.Version})
	if o.acknowledged() {
		c.since[item.FollowUpID] = o.Ended
	}
	c.history.add(o)
}

// sawQueued records that items were still queued when a client looked. An item that is held waits for its release.
func (c *queueClient) sawQueued(items []protocol.FollowUp, at time.Duration) {
	for _, item := range items {
		from, known := c.since[item.FollowUpID]
		switch {
		case item.State == protocol.FollowUpHeld:
			delete(c.since, item.FollowUpID)
		case known && from < at:
			c.watch.sawQueued(item.FollowUpID, from, at)
		}
	}
}
