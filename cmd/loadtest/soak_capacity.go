package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	leastLevel    = 100
	levelGrowth   = 1.3
	mostLevel     = 3000
	levelSettle   = 2 * time.Second
	levelWindow   = 3500 * time.Millisecond
	levelPatience = 20 * time.Second
	levelTries    = 5 // a neighbour's work spoils a window, it never makes one better
)

// capacity raises the live turns of the run's own traffic step by step, until the p99 of a token's delay is above 100 ms.
func (k *soak) capacity(ctx context.Context) (held int, err error) {
	k.say("measuring the capacity")
	if _, err := k.site.users(ctx, accountsOf(mostLevel)); err != nil {
		return 0, err
	}
	trial := newSoak(k.program, k.command)
	trial.site, trial.result.Turns, trial.alive = k.site, mostLevel, make(chan struct{}, mostLevel)
	for range mostLevel - leastLevel {
		trial.alive <- struct{}{}
	}
	arriving, cease := context.WithCancel(ctx)
	arrived := make(chan struct{})
	go func() { defer close(arrived); trial.arrive(arriving, ctx) }()
	for level := leastLevel; level < mostLevel; {
		carried := false
		if carried, err = trial.carries(ctx, level); !carried || err != nil {
			break
		}
		held, level = level, int(float64(level)*levelGrowth)
		for range level - held {
			<-trial.alive
		}
	}
	cease()
	<-arrived
	close(trial.draining)
	if err = errors.Join(err, trial.end(ctx, 0)); err != nil {
		return 0, fmt.Errorf("measuring the capacity: %w", err)
	}
	for _, kind := range breachKinds {
		if times := trial.result.Breaches[kind]; times > 0 {
			return 0, fmt.Errorf("%d %s while the capacity was measured", times, kind)
		}
	}
	k.say("the capacity is %d live turns", held)
	return held, nil
}

// carries tells whether so many live turns get their tokens in time, once all places are taken.
func (k *soak) carries(ctx context.Context, level int) (bool, error) {
	err := until(ctx, levelPatience, func() (bool, error) { return len(k.alive) == cap(k.alive), nil })
	if ctx.Err() != nil || err != nil {
		return false, ctx.Err()
	}
	if err := wait(ctx, levelSettle); err != nil {
		return false, err
	}
	for range levelTries {
		k.meter.empty()
		if err := wait(ctx, levelWindow); err != nil {
			return false, err
		}
		times, _, _ := k.meter.empty()
		delay := spreadOf(times[tokenTime])
		k.say("  %d live turns: token delay p50 %.1f ms, p99 %.1f ms", level, delay.P50, delay.P99)
		if delay.P99 <= capacityDelay {
			return true, nil
		}
	}
	return false, nil
}
