package exchange

import (
	"testing"
	"time"

	"turnstone/protocol/timelimit"
)

// The deadline of the limiter counts from the start of the request, so that slow lookups before it do not delay a
// refusal beyond the promised time.
func TestSlowLookUpsShortenTheWaitForTheLimiter(t *testing.T) {
	began := time.Now()
	for before, want := range map[time.Duration]time.Duration{
		0:                      250 * time.Millisecond,
		120 * time.Millisecond: 130 * time.Millisecond,
		150 * time.Millisecond: 100 * time.Millisecond,
		time.Hour:              100 * time.Millisecond, // its body arrived slowly
	} {
		before, want = timelimit.OfShort(before), timelimit.OfShort(want)
		if got := limiterDeadline(began, began.Add(before)).Sub(began.Add(before)); got != want {
			t.Errorf("after %v the limiter gets %v, want %v", before, got, want)
		}
	}
}
