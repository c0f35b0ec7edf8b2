package persistence_test

import (
	"errors"
	"testing"

	"turnstone/persistence"
	"turnstone/protocol"
)

func TestTokensAreReservedBeforeTheyAreUsed(t *testing.T) {
	w := newWorld(t)
	budget := persistence.NewBudget(w.db, 1000)
	first, second := protocol.NewUsageID(), protocol.NewUsageID()
	reserve := func(id protocol.UsageID, least, most, want int) {
		t.Helper()
		granted, err := budget.Reserve(t.Context(), w.account, id, least, most)
		if want == 0 && protocol.CodeOf(err) != protocol.CodeBudgetReached || want > 0 && (err != nil || granted != want) {
			t.Errorf("granted %d, %v; want %d", granted, err, want)
		}
	}
	reserve(first, 100, 600, 600)
	reserve(second, 100, 600, 400) // what is left
	reserve(first, 100, 600, 600)  // its reply was lost
	reserve(protocol.NewUsageID(), 1, 1, 0)
	err := budget.Check(t.Context(), w.account)
	var refused *protocol.Error
	if !errors.As(err, &refused) || refused.Code != protocol.CodeBudgetReached || refused.RetryAfter < 1 || refused.RetryAfter > 24*3600 {
		t.Errorf("a start is answered %v", err)
	}
	w.must(budget.Settle(t.Context(), w.account, first, 50))
	w.must(budget.Settle(t.Context(), w.account, first, 50)) // its reply was lost
	w.must(budget.Check(t.Context(), w.account))
	reserve(protocol.NewUsageID(), 551, 600, 0)
	reserve(protocol.NewUsageID(), 550, 600, 550)
	w.must(budget.Settle(t.Context(), w.account, second, 1200)) // more than was reserved
	reserve(protocol.NewUsageID(), 1, 1, 0)
	other := w.otherAccount()
	if _, err := budget.Reserve(t.Context(), other, protocol.NewUsageID(), 1000, 1000); err != nil {
		t.Errorf("another account: %v", err)
	}
	w.database.Admin(t, `update token_days set day = day - 1; update token_reservations set day = day - 1`)
	reserve(protocol.NewUsageID(), 1000, 1000, 1000) // the next day
}

func TestConcurrentCallsDoNotPassTheBudget(t *testing.T) {
	w := newWorld(t)
	budget := persistence.NewBudget(w.db, 500)
	const calls = 12 // fewer than the connections of the pool, so that none waits for one
	granted := make(chan int, calls)
	for range calls {
		go func() {
			tokens, err := budget.Reserve(t.Context(), w.account, protocol.NewUsageID(), 100, 100)
			if err != nil && protocol.CodeOf(err) != protocol.CodeBudgetReached {
				t.Error(err)
			}
			granted <- tokens
		}()
	}
	sum := 0
	for range calls {
		sum += <-granted
	}
	if sum != 500 {
		t.Errorf("%d tokens were granted of 500", sum)
	}
}

func TestTokensThatADeadNodeReservedAreFreed(t *testing.T) {
	w := newWorld(t)
	budget := persistence.NewBudget(w.db, 1000)
	lost := protocol.NewUsageID()
	if _, err := budget.Reserve(t.Context(), w.account, lost, 1, 1000); err != nil {
		t.Fatal(err)
	}
	w.database.Admin(t, `update token_reservations set expires_at = now() - interval '1 second'`)
	w.must(budget.Check(t.Context(), w.account))
	w.must(w.db.Expire(t.Context()))
	if left := w.count(`select count(*) from token_reservations`); left != 0 {
		t.Errorf("%d reservations are kept", left)
	}
	w.must(budget.Settle(t.Context(), w.account, lost, 700)) // its reservation is gone, so nothing is counted
	if _, err := budget.Reserve(t.Context(), w.account, protocol.NewUsageID(), 1000, 1000); err != nil {
		t.Error(err)
	}
}
