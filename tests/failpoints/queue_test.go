package failpoints

import (
	"net/http"
	"slices"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// The changes of a queue.
const (
	createsItem  = "create"
	ordersItems  = "order"
	promotesItem = "promote"
)

// queueScenario is the scenario in which a change of a queue meets the fault. The queue has two items and waits behind a
// turn that ends only when it is cancelled.
type queueScenario struct {
	does   string
	status int  // of the first response
	stored bool // after the first request
}

// queueCase is the change of a queueScenario and its outcome.
type queueCase struct {
	method, path string
	body         map[string]any
	headers      []string
	before       []protocol.FollowUpID
	after        []protocol.FollowUpID // nil: a third item follows
}

func (want queueScenario) play(t *testing.T, s *installation, c cell) {
	k := s.newLiveTurn("an endless talk " + newKey())
	k.start(s)
	k.awaitText(s)
	q := want.prepare(s, k.conversation)
	s.user.HTTP.CloseIdleConnections()
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), q.method, q.path, q.body, q.headers...)
	s.awaitFailpoint(c)
	s.wantStatus(want.status, response, nil, err)
	if want.does == promotesItem {
		want.checkPromoted(s, k, q)
		return
	}
	if got := s.waiting(k.conversation); !q.matches(got, want.stored) {
		t.Errorf("the queue is %v after the first request, stored: %t; before it was %v", got, want.stored, q.before)
	}
	repeat := s.user.Do(t, q.method, q.path, q.body, q.headers...)
	switch {
	case want.does == createsItem:
		repeat.Want(t, http.StatusCreated, nil)
		if replayed := repeat.Header.Get("Idempotent-Replayed") == "true"; replayed != want.stored {
			t.Errorf("the repeat is a replay: %t", replayed)
		}
	case want.stored:
		repeat.WantProblem(t, http.StatusConflict, protocol.CodeStaleVersion)
	default:
		repeat.Want(t, http.StatusOK, nil)
	}
	if got := s.waiting(k.conversation); !q.matches(got, true) {
		t.Errorf("the queue is %v after the repeat; before it was %v", got, q.before)
	}
	cancel := sitetest.CancelBody(k.turn)
	cancel["scope"] = protocol.CancelTurnAndFollowUps
	s.user.Do(t, http.MethodPost, "/chat/steering", cancel).Want(t, http.StatusAccepted, nil)
	k.awaitEnd(s)
	if left := s.waiting(k.conversation); len(left) > 0 {
		t.Errorf("%v wait after the queue was cancelled", left)
	}
}

// prepare fills the queue and returns the change.
func (want queueScenario) prepare(s *installation, conversation string) queueCase {
	s.t.Helper()
	queue := "/conversations/" + conversation + "/follow-ups"
	for range 2 {
		s.user.Do(s.t, http.MethodPost, queue, map[string]any{"content": "an item " + newKey()}).Want(s.t, http.StatusCreated, nil)
	}
	before := s.waiting(conversation)
	turned := []protocol.FollowUpID{before[1], before[0]}
	switch want.does {
	case createsItem:
		return queueCase{http.MethodPost, queue, map[string]any{"content": "an item " + newKey()}, []string{"Idempotency-Key", newKey()}, before, nil}
	case ordersItems:
		version := s.user.Page(s.t, conversation).QueueVersion
		return queueCase{http.MethodPut, queue + "/order", map[string]any{"order": turned, "queue_version": version}, nil, before, turned}
	}
	return queueCase{http.MethodPost, queue + "/" + before[1].String() + "/promote", map[string]any{"mode": "interrupt"}, nil, before, turned}
}

// matches reports whether a queue is as it should be, with or without the change.
func (q *queueCase) matches(got []protocol.FollowUpID, changed bool) bool {
	switch {
	case !changed:
		return slices.Equal(got, q.before)
	case q.after == nil:
		return len(got) == len(q.before)+1 && slices.Equal(got[:len(q.before)], q.before)
	}
	return slices.Equal(got, q.after)
}

// waiting returns the waiting items of a queue.
func (s *installation) waiting(conversation string) (ids []protocol.FollowUpID) {
	s.t.Helper()
	for _, item := range s.user.Page(s.t, conversation).FollowUps {
		ids = append(ids, item.FollowUpID)
	}
	return ids
}

// checkPromoted repeats a promotion until its item has started. The interrupted turn was cancelled, the item became one
// turn, and the other item is held.
func (want queueScenario) checkPromoted(s *installation, k *liveTurn, q queueCase) {
	s.t.Helper()
	var item protocol.FollowUp
	sitetest.Eventually(s.t, "the promoted item starts", func() bool {
		s.user.Do(s.t, q.method, q.path, q.body).Want(s.t, http.StatusOK, &item)
		return item.TurnID != nil
	})
	for _, ended := range k.ended {
		sitetest.AwaitEnd(s.t, ended)
	}
	if _, end := s.user.WholeLog(s.t, k.turn); end.Status != protocol.TurnCancelled {
		s.t.Errorf("the interrupted turn ended %s", end.Status)
	}
	if err := s.user.Watch(sitetest.Within(s.t, sitetest.HangGuard), item.TurnID.String(), nil, nil); err != nil {
		s.t.Error(err)
	}
	if _, end := s.user.WholeLog(s.t, item.TurnID.String()); end.Status != protocol.TurnCompleted {
		s.t.Errorf("the turn of the promoted item ended %s", end.Status)
	}
	turns := queryOne[int](s, turnsSQL, rowID(s.t, k.conversation))
	page := s.user.Page(s.t, k.conversation)
	if turns != 2 || len(page.FollowUps) != 1 || page.FollowUps[0].FollowUpID != q.before[0] || page.FollowUps[0].State != protocol.FollowUpHeld {
		s.t.Errorf("%d turns, the queue is %+v", turns, page.FollowUps)
	}
}
