package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	researchAccounts = 3
	// researchEach is how many tasks an account runs at the same time: as many as it may, and one that waits.
	researchEach = protocol.MaxResearchRunning + 1
	researchRest = time.Second // at most, between two tasks of a client
)

// researchClient runs one research task after the other in a conversation. It reads the events of a task, from all positions at
// which its connections end, and cancels some.
type researchClient struct {
	*client
	conversation string
}

// researchClients returns the research clients of a round, without what work sets.
func (a *run) researchClients(round int) (all []*researchClient) {
	for n, account := range a.research {
		for m, conversation := range account.conversations {
			c := &client{name: fmt.Sprintf("%d.research.%d.%d", round, n, m), user: account.users[0], account: account, notes: a.notes, clock: a.clock}
			all = append(all, &researchClient{c, conversation})
		}
	}
	return all
}

func (c *researchClient) run() {
	for c.ctx.Err() == nil {
		if task := c.startTask(); task != "" {
			c.lookAfter(task)
		}
		_ = clock.Sleep(c.ctx, time.Duration(c.random.Int64N(int64(researchRest)))) // the loop checks ctx
	}
}

// startTask repeats the start of a task until its outcome is known, and returns the task; "": there is none.
func (c *researchClient) startTask() (task string) {
	start := operation{Kind: opTask, Conversation: c.conversation, Key: c.token("K"), Text: c.token("T")}
	body := map[string]any{"question": "Why do spring tides follow the moon, " + start.Text + "?", "depth": "quick", "budget": map[string]any{"pages": 1}}
	for range attempts {
		one := start
		response := c.send(&one, http.MethodPost, "/conversations/"+c.conversation+"/research-tasks", body, "Idempotency-Key", one.Key)
		if one.acknowledged() {
			var created protocol.ResearchTask
			if json.Unmarshal(response.Body, &created) != nil {
				c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
			}
			one.ID = created.TaskID.String()
			task = one.ID
		}
		c.history.add(one)
		if !one.repeatable() || clock.Sleep(c.ctx, queuePause) != nil {
			break
		}
	}
	return task
}

// lookAfter reads the events of a task up to its end, and sometimes cancels it meanwhile.
func (c *researchClient) lookAfter(task string) {
	reading, stop := context.WithCancel(c.ctx)
	defer stop()
	cancelAt := int64(-1)
	if c.random.IntN(4) == 0 {
		cancelAt = 1 + c.random.Int64N(40)
	}
	err := c.user.FollowResearch(reading, task, func(e verify.Event) {
		if e.Sequence == cancelAt {
			c.stopTask(task)
		}
	})
	if err != nil && c.ctx.Err() == nil {
		c.notes.violation(badResponse, "%v", err)
	}
}

// stopTask cancels a task, until the outcome is known.
func (c *researchClient) stopTask(task string) {
	for range attempts {
		one := operation{Kind: opStop, Turn: task}
		c.send(&one, http.MethodPost, "/research-tasks/"+task+"/cancel", nil)
		c.history.add(one)
		if !one.repeatable() || clock.Sleep(c.ctx, retryPause) != nil {
			return
		}
	}
}
