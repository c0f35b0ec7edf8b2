package operator_test

import (
	"context"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/operator"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestDisablingAnAccountHoldsItsQueuesAndCancelsItsLiveTurns(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	w.Database.Admin(t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select account_id, gen_random_uuid(), conversation_id, 'queued', 'next', 1 from conversations`)
	w.Must(w.DB.Operator.DisableAccount(t.Context(), w.Account, time.Now(), audit.Requester{}))
	held := func() int { return w.Count(`select count(*) from follow_ups where state = 'held' and version = 2`) }
	if held() != 1 {
		t.Error("the queue is not held when DisableAccount returns")
	}
	cancelled := make(chan protocol.TurnID, 10)
	jobs, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{
		Cancel: operator.Cancel{Turn: func(_ context.Context, account protocol.AccountID, id protocol.TurnID) error {
			if account != w.Account {
				t.Errorf("a turn of account %v was cancelled", account)
			}
			cancelled <- id
			return nil
		}},
	})
	w.Must(err)
	defer func() { w.Must(jobs.Close(context.Background())) }()
	select {
	case id := <-cancelled:
		if id != turn.Spec.TurnID {
			t.Errorf("cancelled turn %v", id)
		}
	case <-time.After(storetest.WaitLimit):
		t.Fatal("the live turn was not cancelled")
	}
	w.Must(w.DB.Operator.EnableAccount(t.Context(), w.Account, audit.Requester{}))
	if held() != 1 {
		t.Error("enabling the account released its queue")
	}
}
