package chaos

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/embedded/embeddedtest"
)

// An asynchronous standby that is promoted lacks what it had not received, although clients got responses and events. The nodes must
// not end, repeat what is lost when clients repeat it, and continue the turn whose log became shorter.
func TestAClusterServesWithoutWhatAnAsynchronousStandbyHadNotReceived(t *testing.T) {
	const writes, ahead = 20, 10
	s := newSite(t, sitetest.Standard)
	u := sitetest.NewUser(t, s.nodes[0].base)
	via := func(u *sitetest.User, i int) *sitetest.User {
		return u.ViaLedger(t, s.nodes[i].base, s.nodes[i].others)
	}
	kept := u.NewConversation(t)
	live := via(u, 1).Live(t, kept, "[[script tokens=200 interval=50ms]]")
	standby := s.newStandby()
	received := live.After()
	embeddedtest.Disconnect(t, s.postgres, standby)

	create := func(u *sitetest.User, key string) string {
		var made protocol.Conversation
		u.Do(t, http.MethodPost, "/conversations", map[string]string{"title": key}, "Idempotency-Key", key).Want(t, http.StatusCreated, &made)
		return made.ConversationID.String()
	}
	lost := map[string]string{} // conversations, by their keys
	for i := range writes {
		key := uuid.NewString()
		lost[key] = create(via(u, i%nodeCount), key)
	}
	chatKey := uuid.NewString()
	ask := sitetest.NewChatBody(queuedScript)
	answered := via(u, 2).Chat(t, ask, "Idempotency-Key", chatKey)
	answered.ReadToEnd(t)
	cursor, _ := firstOfFeed(t, via(u, 0), "")
	seen := live.Await(t, "the turn is ahead of the standby", func(e sitetest.Event) bool { return e.Sequence > received+ahead }).Sequence

	r := &run{site: s}
	over := r.planAll()
	killed := time.Now()
	s.failOver(standby)
	promoted := time.Now()
	over() // waits until all nodes are ready
	t.Logf("promoted after %s; all nodes were ready %s after that", promoted.Sub(killed).Round(time.Millisecond), time.Since(promoted).Round(time.Millisecond))
	r.checkRunning()

	after := u.Device(t)
	after.Witness = sitetest.NewWitness(t) // the log of the turn differs from what was seen
	for i := range nodeCount {
		if _, event := firstOfFeed(t, via(after, i), cursor); event != protocol.FeedReset {
			t.Errorf("a reader of the feed got %s from %s, want %s", event, s.nodes[i].name, protocol.FeedReset)
		}
	}
	gone := 0
	for key, id := range lost {
		if via(after, gone%nodeCount).Do(t, http.MethodGet, "/conversations/"+id, nil).Status == http.StatusNotFound {
			gone++
		}
		again := create(via(after, 0), key)
		if again == id {
			t.Errorf("the repeated request returned %s, which is lost", id)
		}
		if third := create(via(after, 1), key); third != again {
			t.Errorf("a key made %s and %s", again, third)
		}
	}
	ctx := sitetest.Within(t, sitetest.HangGuard)
	if _, refused, err := via(after, 1).Follow(ctx, answered.Turn, 0, ""); err != nil || refused == nil || refused.Status != http.StatusNotFound {
		t.Errorf("the lost turn: %+v, %v", refused, err)
	}
	via(after, 2).Chat(t, ask, "Idempotency-Key", chatKey).ReadToEnd(t)
	if _, refused, err := via(after, 0).Follow(ctx, live.Turn, seen+1000, ""); err != nil || refused == nil || refused.Problem() == nil || refused.Problem().Code != protocol.CodeSequenceAhead {
		t.Errorf("a reader beyond the log: %+v, %v", refused, err)
	}
	events, end := via(after, 1).WholeLog(t, live.Turn)
	if end.Status != protocol.TurnCompleted {
		t.Errorf("the turn ended %s: %+v", end.Status, end.Error)
	}
	if gone != writes {
		t.Errorf("%d of %d conversations that the standby had not received are gone", gone, writes)
	}
	t.Logf("lost: %d of %d acknowledged conversations, an answered turn, and the events of a live turn from about %d to %d; that turn went on and has %d",
		gone, writes, received, seen, len(events))
}

// firstOfFeed opens the account feed after a cursor and returns the cursor and the type of its first item.
func firstOfFeed(t *testing.T, u *sitetest.User, after string) (cursor, event string) {
	t.Helper()
	path := "/events"
	if after != "" {
		path += "?after=" + after
	}
	response, err := u.Open(sitetest.Within(t, sitetest.HangGuard), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	frame, err := client.NewFrameReader(response.Body).Next()
	if err != nil {
		t.Fatalf("the account feed: %d, %v", response.StatusCode, err)
	}
	return string(frame.ID), string(frame.Event)
}
