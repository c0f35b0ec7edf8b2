package limitstest_test

import (
	"context"
	"testing"

	"turnstone/persistence/limits"
	"turnstone/persistence/limits/limitstest"
)

func TestTheChosenDecisionsArePossible(t *testing.T) {
	var l limitstest.Chosen
	limitstest.Suite(t, limitstest.Limiter{
		Take:   func(ctx context.Context) (limits.Decision, error) { return l.Take(ctx, "chat", "somebody") },
		Refuse: l.Refuse, BreakDown: l.BreakDown,
	})
	l.Allow()
	if decision, err := l.Take(t.Context(), "chat", "somebody"); err != nil || !decision.Allowed {
		t.Errorf("after Allow: %+v, %v", decision, err)
	}
}
