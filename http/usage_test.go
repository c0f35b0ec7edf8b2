package http

import (
	"testing"
	"time"

	"turnstone/persistence/limits"
	"turnstone/protocol"
)

func TestUsageReportsTheTokenBudget(t *testing.T) {
	t.Parallel()
	const limit = 1000
	var budget *limits.Budget
	w := newWorld(t, func(c *testConfig) {
		budget = limits.NewBudget(c.DB.DB, limit)
		c.Budget = budget
	})
	u, other := signUp(t, w), signUp(t, w)
	call := protocol.NewUsageID()
	for range 2 {
		if granted, err := budget.Reserve(t.Context(), u.account.AccountID, call, 10, 300); err != nil || granted != 300 {
			t.Fatalf("%d (%v)", granted, err)
		}
	}
	before := time.Now().UTC()
	got := u.do(200, "GET", "/usage?from=2020-01-01&to=2020-01-02", nil)
	wantField(t, got, "budget.limit", 1000.0)
	wantField(t, got, "budget.used", 0.0)
	wantField(t, got, "budget.reserved", 300.0)
	reset, err := time.Parse(time.RFC3339, got.at("budget.resets_at").(string))
	if err != nil || reset.Before(before) || reset.Sub(before) > 24*time.Hour+time.Minute || !reset.Equal(reset.Truncate(24*time.Hour)) {
		t.Errorf("the budget resets at %v (%v)", reset, err)
	}
	if err := budget.Settle(t.Context(), u.account.AccountID, call, 120); err != nil {
		t.Fatal(err)
	}
	got = u.do(200, "GET", "/usage", nil)
	wantField(t, got, "budget.used", 120.0)
	wantField(t, got, "budget.reserved", 0.0)
	wantField(t, other.do(200, "GET", "/usage", nil), "budget.used", 0.0)
	s, _ := conversationWorld(t)
	wantField(t, signUp(t, s).do(200, "GET", "/usage", nil), "budget", nil)
}
