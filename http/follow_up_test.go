package http

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/protocol"
)

// endless is a message whose turn ends only when it is cancelled, or with its node.
const endless = "[[script tokens=100000 interval=50ms]]"

// queueWorld returns a client with a conversation that has an endless turn, the path of its queue, and the turn.
func queueWorld(t *testing.T) (c *client, queue string, turn protocol.TurnID) {
	t.Helper()
	c = newWorld(t, func(c *testConfig) { liveOn(t, c) }).client().register("owner@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{"title": "Queue"}).into(t, &made)
	queue = "/conversations/" + made.ConversationID.String() + "/follow-ups"
	item := c.createFollowUp(queue, endless)
	if item.State != protocol.FollowUpStarted || item.TurnID == nil {
		t.Fatalf("created while no turn is live: %+v", item)
	}
	return c, queue, *item.TurnID
}

func (c *client) createFollowUp(queue, content string) (item protocol.FollowUp) {
	c.t.Helper()
	c.expect(201, "POST", queue, route.Object{"content": content}).into(c.t, &item)
	return item
}

// interrupt promotes an item, which starts when the live turn ends, and waits for the ends of both turns.
func (c *client) interrupt(path string, live protocol.FollowUp) {
	c.t.Helper()
	c.expect(200, "POST", path+"/promote", route.Object{"mode": "interrupt"})
	c.expect(200, "GET", "/chat/turns/"+live.TurnID.String()+"/events", nil)
	var item protocol.FollowUp
	c.expect(200, "GET", path, nil).into(c.t, &item)
	if item.State != protocol.FollowUpStarted {
		c.t.Fatalf("after the end of the live turn: %+v", item)
	}
	c.expect(200, "GET", "/chat/turns/"+item.TurnID.String()+"/events", nil)
}

// waiting returns the waiting items of a queue.
func (c *client) waiting(queue string) (list protocol.FollowUpList) {
	c.t.Helper()
	c.expect(200, "GET", queue+"?state=open", nil).into(c.t, &list)
	return list
}

func TestAFollowUpIsCreatedOnceForAKey(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	body := route.Object{"content": "And in Celsius?", "profile": "coding"}
	var first, again protocol.FollowUp
	made := c.expect(201, "POST", queue, body, keyField, "k1")
	made.into(t, &first)
	repeat := c.expect(201, "POST", queue, body, keyField, "k1")
	repeat.into(t, &again)
	if first.State != protocol.FollowUpQueued || *first.Profile != protocol.ProfileCoding || first.FollowUpID != again.FollowUpID || made.header.Get("ETag") != `"v1"` {
		t.Errorf("created %+v with %v, again %+v", first, made.header, again)
	}
	if repeat.header.Get(replayedField) != "true" || repeat.header.Get("ETag") != `"v1"` || len(c.waiting(queue).Data) != 1 {
		t.Errorf("the repeat has %v, the queue %+v", repeat.header, c.waiting(queue))
	}
	if other := c.expect(422, "POST", queue, route.Object{"content": "Something else"}, keyField, "k1"); other.Code != protocol.CodeIdempotencyMismatch {
		t.Errorf("the key with another body: %s", other.body)
	}
	for _, wrong := range []route.Object{
		{}, {"content": " \n"}, {"content": strings.Repeat("x", protocol.MaxInputRunes+1)}, {"content": 1}, {"content": "x", "profile": "fast"},
	} {
		c.expect(422, "POST", queue, wrong)
	}
	if missing := c.expect(404, "POST", "/conversations/"+protocol.NewConversationID().String()+"/follow-ups", body); missing.Code != protocol.CodeNotFound {
		t.Errorf("in a conversation that does not exist: %s", missing.body)
	}
}

func TestAFullQueueRefusesFollowUps(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	for n := range protocol.MaxFollowUps {
		c.createFollowUp(queue, fmt.Sprint("later ", n))
	}
	full := c.expect(429, "POST", queue, route.Object{"content": "one too many"}, keyField, "k1")
	if full.Code != protocol.CodeTooManyFollowUps || !strings.Contains(full.Detail, "50") {
		t.Errorf("over the limit: %s", full.body)
	}
	item := c.waiting(queue).Data[0]
	c.expect(200, "PATCH", queue+"/"+item.FollowUpID.String(), route.Object{"state": "cancelled", "version": item.Version})
	c.expect(201, "POST", queue, route.Object{"content": "one too many"}, keyField, "k1") // a refusal does not use up the key
}

func TestCreatingAFollowUpDrawsFromTheLimitOfChat(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	c.drawn()
	c.createFollowUp(queue, "next")
	if drawn := c.drawn(); !slices.Equal(drawn, []string{string(route.BucketChat)}) {
		t.Errorf("drawn from %v", drawn)
	}
}

func TestReleasingAndPromotingAFollowUpDrawFromTheLimitOfChat(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	item := c.createFollowUp(queue, "next")
	path := queue + "/" + item.FollowUpID.String()
	for _, request := range []struct {
		method, path string
		body         route.Object
		want         []string
	}{
		{"PATCH", path, route.Object{"state": "held", "version": 1}, []string{"writes"}},
		{"PATCH", path, route.Object{"state": "queued", "version": 2}, []string{"writes", "chat"}},
		{"POST", path + "/promote", route.Object{}, []string{"chat"}},
	} {
		c.drawn()
		c.expect(200, request.method, request.path, request.body)
		if drawn := c.drawn(); !slices.Equal(drawn, request.want) {
			t.Errorf("%s %v drew from %v, want %v", request.method, request.body, drawn, request.want)
		}
	}
	c.localBucket(route.BucketChat, limits.Limit{Rate: 1, Period: time.Hour, Burst: 1})
	c.createFollowUp(queue, "after")
	c.expect(200, "PATCH", path, route.Object{"state": "held", "version": 3})
	c.expect(429, "PATCH", path, route.Object{"state": "queued", "version": 4})
	c.expect(429, "POST", path+"/promote", route.Object{})
	if now := c.waiting(queue).Data[0]; now.State != protocol.FollowUpHeld || now.Version != 4 {
		t.Errorf("over the limit: %+v", now)
	}
}

func TestAStaleOrderOfFollowUpsGetsTheCurrentOne(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	var ids []string
	for n := range 3 {
		ids = append(ids, c.createFollowUp(queue, fmt.Sprint("later ", n)).FollowUpID.String())
	}
	version := c.waiting(queue).QueueVersion
	wanted := []string{ids[2], ids[0], ids[1]}
	ordered := c.expect(200, "PUT", queue+"/order", route.Object{"order": wanted, "queue_version": version})
	var now protocol.FollowUpOrder
	ordered.into(t, &now)
	if now.QueueVersion != version+1 || now.Order[0].String() != ids[2] {
		t.Errorf("ordered: %s", ordered.body)
	}
	stale := c.expect(409, "PUT", queue+"/order", route.Object{"order": ids, "queue_version": version})
	current := fmt.Sprintf(`"current":{"order":["%s"],"queue_version":%d}`, strings.Join(wanted, `","`), version+1)
	if stale.Code != protocol.CodeStaleVersion || !strings.Contains(string(stale.body), current) {
		t.Errorf("stale: %s, want %s", stale.body, current)
	}
	var page protocol.ConversationPage
	c.expect(200, "GET", strings.TrimSuffix(queue, "/follow-ups"), nil).into(t, &page)
	if page.QueueVersion != version+1 || page.FollowUps[0].FollowUpID.String() != ids[2] {
		t.Errorf("the page has version %d and the queue %+v", page.QueueVersion, page.FollowUps)
	}
	version++
	if missing := c.expect(409, "PUT", queue+"/order", route.Object{"order": ids}); missing.Code != protocol.CodeVersionRequired {
		t.Errorf("without a version: %s", missing.body)
	}
	for what, order := range map[string][]string{"incomplete": ids[:2], "empty": {}, "repeated": {ids[0], ids[1], ids[2], ids[0]}, "malformed": {"fu_1"}} {
		if wrong := c.expect(422, "PUT", queue+"/order", route.Object{"order": order, "queue_version": version}); !strings.HasPrefix(wrong.Errors[0].Field, "body.order") {
			t.Errorf("%s: %s", what, wrong.body)
		}
	}
	c.expect(422, "PUT", queue+"/order", route.Object{"order": make([]string, protocol.MaxFollowUpOrder+1), "queue_version": version})
	c.expect(422, "PUT", queue+"/order", route.Object{"queue_version": version})
}

func TestAnOrderWithAFollowUpOfAnotherAccountIsNotFound(t *testing.T) {
	t.Parallel()
	c, queue, _ := queueWorld(t)
	mine := c.createFollowUp(queue, "mine").FollowUpID
	stranger := c.client().register("stranger@example.com")
	var made protocol.Conversation
	stranger.expect(201, "POST", "/conversations", route.Object{"title": "Theirs"}).into(t, &made)
	theirs := "/conversations/" + made.ConversationID.String() + "/follow-ups"
	stranger.createFollowUp(theirs, endless)
	own := stranger.createFollowUp(theirs, "theirs").FollowUpID
	version := stranger.waiting(theirs).QueueVersion
	foreign := stranger.expect(404, "PUT", theirs+"/order", route.Object{"order": []protocol.FollowUpID{own, mine}, "queue_version": version})
	missing := stranger.expect(404, "PUT", theirs+"/order", route.Object{"order": []protocol.FollowUpID{own, protocol.NewFollowUpID()}, "queue_version": version})
	if !alike(foreign, missing) {
		t.Errorf("foreign %s, missing %s", foreign.body, missing.body)
	}
	for _, path := range []string{queue + "/order", queue, queue + "/" + mine.String() + "/promote"} {
		method := "POST"
		if strings.HasSuffix(path, "order") {
			method = "PUT"
		}
		stranger.expect(404, method, path, route.Object{"order": []protocol.FollowUpID{mine}, "queue_version": 1, "content": "x"})
	}
	stranger.expect(404, "POST", theirs+"/"+mine.String()+"/promote", route.Object{})
}

func TestAFollowUpIsPromotedOverTheLiveTurn(t *testing.T) {
	t.Parallel()
	c, queue, turn := queueWorld(t)
	first, second := c.createFollowUp(queue, "first"), c.createFollowUp(queue, "What is 6*7?")
	path := queue + "/" + second.FollowUpID.String() + "/promote"
	c.expect(422, "POST", path, route.Object{"mode": "now"})
	var item protocol.FollowUp
	next := c.expect(200, "POST", path, route.Object{})
	next.into(t, &item)
	if waiting := c.waiting(queue).Data; item.State != protocol.FollowUpQueued || waiting[0].FollowUpID != second.FollowUpID || next.header.Get("ETag") != `"v1"` {
		t.Errorf("promoted %s, the queue is %+v", next.body, waiting)
	}
	c.expect(200, "POST", path, route.Object{"mode": "interrupt"})
	events := string(c.expect(200, "GET", "/chat/turns/"+turn.String()+"/events", nil).body)
	if strings.Count(events, "event: turn.cancel_requested") != 1 || !strings.Contains(events, `"status":"cancelled"`) {
		t.Errorf("the interrupted turn: %s", events[max(0, len(events)-1000):])
	}
	c.expect(200, "POST", path, route.Object{"mode": "interrupt"}).into(t, &item)
	if item.State != protocol.FollowUpStarted || item.TurnID == nil {
		t.Fatalf("after the end of the turn: %+v", item)
	}
	if events := string(c.expect(200, "GET", "/chat/turns/"+item.TurnID.String()+"/events", nil).body); !strings.Contains(events, `"status":"completed"`) {
		t.Errorf("the repeated promotion changed the turn of the follow-up: %s", events)
	}
	held := c.waiting(queue).Data
	if len(held) != 1 || held[0].FollowUpID != first.FollowUpID || held[0].State != protocol.FollowUpHeld {
		t.Errorf("the queue is %+v", held)
	}
	c.expect(200, "PATCH", queue+"/"+first.FollowUpID.String(), route.Object{"state": "cancelled"}, "If-Match", fmt.Sprintf(`"v%d"`, held[0].Version))
	if refused := c.expect(409, "POST", queue+"/"+first.FollowUpID.String()+"/promote", route.Object{}); refused.Code != protocol.CodeConflict || !strings.Contains(string(refused.body), `"current":{"follow_up_id"`) {
		t.Errorf("a cancelled follow-up: %s", refused.body)
	}
	c.expect(404, "POST", queue+"/"+protocol.NewFollowUpID().String()+"/promote", route.Object{})
}
