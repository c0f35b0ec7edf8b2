package persistence_test

import (
	"context"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

func TestDisablingAnAccountHoldsItsQueuesAndCancelsItsLiveTurns(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	w.database.Admin(t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select account_id, gen_random_uuid(), conversation_id, 'queued', 'next', 1 from conversations`)
	w.must(w.db.DisableAccount(t.Context(), w.account, time.Now(), persistence.Requester{}))
	held := func() int { return w.count(`select count(*) from follow_ups where state = 'held' and version = 2`) }
	if held() != 1 {
		t.Error("the queue is not held at once")
	}
	cancelled := make(chan protocol.TurnID, 10)
	jobs, err := persistence.StartJobs(t.Context(), w.db, persistence.JobWorkers{
		CancelTurn: func(_ context.Context, account protocol.AccountID, id protocol.TurnID) error {
			if account != w.account {
				t.Errorf("a turn of %v is cancelled", account)
			}
			cancelled <- id
			return nil
		},
	})
	w.must(err)
	defer func() { w.must(jobs.Close(context.Background())) }()
	select {
	case id := <-cancelled:
		if id != turn.spec.TurnID {
			t.Errorf("cancelled %v", id)
		}
	case <-time.After(patience):
		t.Fatal("the live turn was not cancelled")
	}
	w.must(w.db.EnableAccount(t.Context(), w.account, persistence.Requester{}))
	if held() != 1 {
		t.Error("enabling the account has released its queue")
	}
}
