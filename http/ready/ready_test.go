package ready

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol/timelimit"
)

// limit is the time within which /ready reports that a dependency has failed, and that it works again.
var limit = timelimit.Of(3 * time.Second)

// A dependency stops responding, and responds again, at different times after the last check. The clock is a fake one, so
// the limit is checked exactly.
func TestAFailureIsReportedAndItsEndToo(t *testing.T) {
	const step = 50 * time.Millisecond // also between two callers
	for offset := step / 2; offset < readyFor+probeTimeout; offset += step {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { <-time.After(time.Second) }) // until the last probe has ended
			var hangs atomic.Bool
			checker := New(map[string]Probe{"cache": func(context.Context) error { // ignores the end of its context
				for hangs.Load() {
					<-time.After(10 * time.Millisecond)
				}
				return nil
			}}, "", zap.NewNop(), time.Now)
			for _, change := range []struct {
				hangs  bool
				status string
			}{{true, StatusNotReady}, {false, StatusReady}} {
				changes := time.Now().Add(offset)
				time.AfterFunc(offset, func() { hangs.Store(change.hangs) })
				for checker.Check(t.Context()).Status != change.status {
					<-time.After(step)
				}
				if took := time.Since(changes); took < 0 || took > limit {
					t.Errorf("%s %s after the change, want at most %s", change.status, took, limit)
				}
			}
		})
	}
}
