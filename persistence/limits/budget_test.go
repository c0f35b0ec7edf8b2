package limits_test

import (
	"errors"
	"strings"
	"testing"

	"turnstone/persistence/limits"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestTokensAreReservedBeforeTheyAreUsed(t *testing.T) {
	w := storetest.NewWorld(t)
	budget := limits.NewBudget(w.DB.DB, 1000)
	first, second := protocol.NewUsageID(), protocol.NewUsageID()
	reserve := func(id protocol.UsageID, least, most, want int) {
		t.Helper()
		granted, err := budget.Reserve(t.Context(), w.Account, id, least, most)
		if want == 0 && protocol.CodeOf(err) != protocol.CodeBudgetReached || want > 0 && (err != nil || granted != want) {
			t.Errorf("granted %d, %v; want %d", granted, err, want)
		}
	}
	reserve(first, 100, 600, 600)
	reserve(second, 100, 600, 400) // the rest of the budget
	reserve(first, 100, 600, 600)  // a repeat, as after a lost reply
	reserve(protocol.NewUsageID(), 1, 1, 0)
	refusal := func() (refused *protocol.Error) {
		t.Helper()
		if err := budget.Check(t.Context(), w.Account); !errors.As(err, &refused) || refused.Code != protocol.CodeBudgetReached {
			t.Fatalf("Check returned %v", err)
		}
		return refused
	}
	if got := refusal(); got.RetryAfter > 60 || !strings.Contains(got.Detail, "have reserved") {
		t.Errorf("while calls have reserved the rest: %+v", got)
	}
	w.Must(budget.CheckUsed(t.Context(), w.Account))
	w.Must(budget.Settle(t.Context(), w.Account, first, 50))
	w.Must(budget.Settle(t.Context(), w.Account, first, 50)) // a repeat, as after a lost reply
	w.Must(budget.Check(t.Context(), w.Account))
	reserve(protocol.NewUsageID(), 551, 600, 0)
	reserve(protocol.NewUsageID(), 550, 600, 550)
	w.Must(budget.Settle(t.Context(), w.Account, second, 1200)) // more than was reserved
	reserve(protocol.NewUsageID(), 1, 1, 0)
	if got := refusal(); got.RetryAfter < 1 || got.RetryAfter > 24*3600 || !strings.Contains(got.Detail, "has used its 1000") {
		t.Errorf("when all are used: %+v", got)
	}
	if err := budget.CheckUsed(t.Context(), w.Account); protocol.CodeOf(err) != protocol.CodeBudgetReached {
		t.Errorf("CheckUsed returned %v", err)
	}
	other := w.OtherAccount()
	if _, err := budget.Reserve(t.Context(), other, protocol.NewUsageID(), 1000, 1000); err != nil {
		t.Errorf("another account: %v", err)
	}
	w.Database.Admin(t, `update token_days set day = day - 1; update token_reservations set day = day - 1`)
	reserve(protocol.NewUsageID(), 1000, 1000, 1000) // the next day
}

func TestConcurrentCallsDoNotPassTheBudget(t *testing.T) {
	w := storetest.NewWorld(t)
	budget := limits.NewBudget(w.DB.DB, 500)
	const calls = 12 // fewer than the connections of the pool, so that no call waits for a connection
	granted := make(chan int, calls)
	for range calls {
		go func() {
			tokens, err := budget.Reserve(t.Context(), w.Account, protocol.NewUsageID(), 100, 100)
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
	w := storetest.NewWorld(t)
	budget := limits.NewBudget(w.DB.DB, 1000)
	lost := protocol.NewUsageID()
	if _, err := budget.Reserve(t.Context(), w.Account, lost, 1, 1000); err != nil {
		t.Fatal(err)
	}
	w.Database.Admin(t, `update token_reservations set expires_at = now() - interval '1 second'`)
	w.Must(budget.Check(t.Context(), w.Account))
	w.Must(limits.ExpireTokens(t.Context(), w.DB.DB))
	if left := w.Count(`select count(*) from token_reservations`); left != 0 {
		t.Errorf("%d reservations are left", left)
	}
	w.Must(budget.Settle(t.Context(), w.Account, lost, 700)) // its reservation is gone, so nothing is counted
	if _, err := budget.Reserve(t.Context(), w.Account, protocol.NewUsageID(), 1000, 1000); err != nil {
		t.Error(err)
	}
}
