package connect

import (
	"testing"

	"turnstone/cmd/turnstone/settings"
	"turnstone/protocol"
)

func TestOnlyLocalLimitsDecideWithoutRedis(t *testing.T) {
	config, _, err := settings.Load(map[string]string{"REDIS_URL": "unix:///nowhere", "TURNSTONE_LIMIT_READS": "2/1h burst 2"})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := Limiter(&config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	for _, bucket := range []string{"chat", "cancel", "writes", "search", "signin", "signin_account", "signin_reserve"} {
		if decision, err := limiter.Take(t.Context(), bucket, "account"); decision.Allowed || protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Errorf("%s is allowed without Redis: %+v %v", bucket, decision, err)
		}
	}
	for bucket, burst := range map[string]int{"reads": 2, "replays": 30, "refusals": 300} {
		for range burst {
			if decision, err := limiter.Take(t.Context(), bucket, "account"); err != nil || !decision.Allowed {
				t.Fatalf("%s is not allowed without Redis: %+v %v", bucket, decision, err)
			}
		}
		if decision, err := limiter.Take(t.Context(), bucket, "account"); err != nil || decision.Allowed || decision.RetryAfter <= 0 {
			t.Errorf("%s after a burst of %d: %+v %v", bucket, burst, decision, err)
		}
	}
}
