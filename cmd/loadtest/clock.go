package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// A token carries the time at which it was due, and another process reads it: so time here is that of the machine's
// monotonic clock, which all processes share.
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

// monotonic is the nanoseconds of the machine's monotonic clock.
func monotonic() int64 { return clockBase + int64(time.Since(clockStart)) }

// waitUntil waits for a moment, or the end of ctx.
func waitUntil(ctx context.Context, at time.Time) error {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func wait(ctx context.Context, d time.Duration) error { return waitUntil(ctx, time.Now().Add(d)) }

// until asks every few milliseconds until the answer is yes.
func until(ctx context.Context, patience time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if yes, err := done(); yes || err != nil {
			return err
		}
		if err := wait(ctx, pollEvery); err != nil {
			return err
		}
	}
}

const pollEvery = 5 * time.Millisecond

// pace begins n things at even distances over a time, each when it is due. What is late is not left out: it begins at
// once, and the next one when that is due.
func pace(ctx context.Context, n int, over time.Duration, begin func(i int)) error {
	start := time.Now()
	for i := range n {
		if err := waitUntil(ctx, start.Add(over*time.Duration(i)/time.Duration(n))); err != nil {
			return err
		}
		begin(i)
	}
	return nil
}
