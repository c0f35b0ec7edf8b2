package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol/clock"
)

func TestAContextEndsASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := clock.Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("slept %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := clock.Sleep(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("slept %s: %v", time.Since(began), err)
		}
		for _, none := range []time.Duration{0, -time.Second} {
			if live, ended := clock.Sleep(t.Context(), none), clock.Sleep(ctx, none); live != nil || ended == nil {
				t.Errorf("a sleep of %s returned %v, and after the end of its context %v", none, live, ended)
			}
		}
	})
}
