package upload

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

func TestTransfersLeaveTimeToLiveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, transfers = 8 << 20, 4
		live := 0
		receive := func() time.Duration {
			pace := rate.NewLimiter(whileTurnsRun, paceBurst)
			began := time.Now()
			done := make(chan time.Duration)
			for range transfers {
				go func() {
					body := &paced{t.Context(), bytes.NewReader(make([]byte, each)), pace, func() int { return live }}
					if n, err := io.Copy(io.Discard, struct{ io.Reader }{body}); n != each || err != nil {
						t.Errorf("read %d bytes, %v", n, err)
					}
					done <- time.Since(began)
				}()
			}
			first := <-done
			for range transfers - 1 {
				if last := <-done; last > first+time.Second/8 {
					t.Errorf("one transfer ended after %s, another after %s", first, last)
				}
			}
			return time.Since(began)
		}
		if took := receive(); took != 0 {
			t.Errorf("without turns, receiving took %s", took)
		}
		live = 1
		want := time.Duration(float64(transfers*each-paceBurst) / whileTurnsRun * float64(time.Second))
		if took := receive(); took < want-time.Millisecond || took > want+time.Second/10 {
			t.Errorf("while a turn was live, receiving took %s, want %s", took, want)
		}
	})
}
