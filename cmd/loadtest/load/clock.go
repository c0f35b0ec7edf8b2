package load

import (
	"context"
	"time"

	"turnstone/protocol/clock"

	"golang.org/x/sys/unix"
)

// A token carries the time at which it was due, and another process reads it. Times are therefore those of the
// machine's monotonic clock, which all processes share.
var (
	clockBase  = machineClock()
	clockStart = time.Now()
)

func machineClock() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic("loadtest: no monotonic clock: " + err.Error())
	}
	return at.Nano()
}

// Monotonic returns the time of the host computer's monotonic clock in nanoseconds.
func Monotonic() int64 { return clockBase + int64(time.Since(clockStart)) }

// Until calls done every pollInterval until it returns true or an error. If ctx ends or timeout has passed, it returns
// the context's error.
func Until(ctx context.Context, timeout time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

const pollInterval = 5 * time.Millisecond

// pace calls begin n times at even intervals over a duration, each time when the call is due. A late call is not
// skipped: it is made immediately, and the next one when it is due.
func pace(ctx context.Context, n int, over time.Duration, begin func(i int)) error {
	start := time.Now()
	for i := range n {
		if err := clock.Sleep(ctx, time.Until(start.Add(over*time.Duration(i)/time.Duration(n)))); err != nil {
			return err
		}
		begin(i)
	}
	return nil
}
