package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
)

const (
	leastLevel   = 100
	levelGrowth  = 1.3
	mostLevel    = 3000
	levelSettle  = 2 * time.Second
	levelWindow  = 3500 * time.Millisecond
	levelTimeout = 20 * time.Second
	levelWindows = 3
)

// capacity raises the number of live turns step by step, with the traffic of the soak, until the p99 of the token delay
// is above 100 ms. It returns the highest number below that.
func (k *soak) capacity(ctx context.Context) (highest int, err error) {
	k.Say("measuring the capacity")
	if _, err := k.site.EnsureAccounts(ctx, load.AccountsFor(mostLevel)); err != nil {
		return 0, err
	}
	trial := newSoak(k.Console, k.command)
	trial.site, trial.result.Turns, trial.slots = k.site, mostLevel, make(chan struct{}, mostLevel)
	for range mostLevel - leastLevel {
		trial.slots <- struct{}{}
	}
	starting, stopStarting := context.WithCancel(ctx)
	allStarted := make(chan struct{})
	go func() { defer close(allStarted); trial.startTurns(starting, ctx) }()
	for level := leastLevel; level < mostLevel; {
		carried := false
		if carried, err = trial.carries(ctx, level); !carried || err != nil {
			break
		}
		highest, level = level, int(float64(level)*levelGrowth)
		for range level - highest {
			<-trial.slots
		}
	}
	stopStarting()
	<-allStarted
	close(trial.draining)
	if err = errors.Join(err, trial.end(ctx, 0)); err != nil {
		return 0, fmt.Errorf("measuring the capacity: %w", err)
	}
	for _, kind := range breachKinds {
		if times := trial.result.Breaches[kind]; times > 0 && kind != outsideKind { // a refusal ended the search
			return 0, fmt.Errorf("%d breaches while the capacity was measured: %s", times, kind)
		}
	}
	k.Say("the capacity is %d live turns", highest)
	return highest, nil
}

// carries waits until all slots are taken and reports whether a number of live turns gets its tokens in time, in the
// median of several windows, and no request is refused.
func (k *soak) carries(ctx context.Context, level int) (bool, error) {
	err := load.Until(ctx, levelTimeout, func() (bool, error) { return len(k.slots) == cap(k.slots), nil })
	if ctx.Err() != nil || err != nil {
		return false, ctx.Err()
	}
	if err := clock.Sleep(ctx, levelSettle); err != nil {
		return false, err
	}
	var p99s figures.Samples
	for range levelWindows {
		k.meter.empty()
		if err := clock.Sleep(ctx, levelWindow); err != nil {
			return false, err
		}
		times, _, _ := k.meter.empty()
		delay := load.SpreadOf(times[tokenTime])
		k.Say("  %d live turns: token delay p50 %.1f ms, p99 %.1f ms", level, delay.P50, delay.P99)
		p99s = append(p99s, delay.P99)
	}
	k.result.mu.Lock()
	defer k.result.mu.Unlock()
	return p99s.Median() <= load.MaxDelay && k.result.Breaches[outsideKind] == 0, nil
}
