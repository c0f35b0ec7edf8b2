package main

import (
	"context"
	"fmt"
	"time"
)

// window is what one measured stretch of steady load showed.
type window struct {
	seen
	used    usage
	took    time.Duration
	gaps    int
	foreign float64 // processors that others kept busy
}

func (w window) rate() float64 { return float64(w.Tokens) / w.took.Seconds() }

// perToken is microseconds of processor time a token.
func (w window) perToken(used time.Duration) float64 {
	return float64(used.Nanoseconds()) / 1e3 / float64(max(w.Tokens, 1))
}

// measure opens the window over a load that stands.
func (b *bench) measure(ctx context.Context, rec *recorder, over time.Duration) (w window, err error) {
	before, err := b.site.cpu()
	if err != nil {
		return w, err
	}
	begun := time.Now()
	rec.open.Store(true)
	if err := wait(ctx, over); err != nil {
		return w, err
	}
	rec.open.Store(false)
	w.took = time.Since(begun)
	after, err := b.site.cpu()
	if err != nil {
		return w, err
	}
	w.used, w.seen = after.minus(before), rec.sum()
	w.foreign = w.used.foreign().Seconds() / w.took.Seconds()
	return w, nil
}

// endless is a turn that goes on until the model is told to end.
const endless = 1 << 30

// accountsFor spreads streams over accounts as over people: so many each.
func (b *bench) accountsFor(ctx context.Context, streams, each int) ([]*account, error) {
	return b.site.users(ctx, min(max(1, streams/each), 128))
}

const (
	turnsEach   = 20 // live turns of one account
	warm        = time.Second
	beginWithin = 60 * time.Second
	endWithin   = 120 * time.Second
)

// relayed holds n streams at a pace through the service, or through the proxy.
func (b *bench) relayed(ctx context.Context, service bool, n int, interval, ramp, over time.Duration) (w window, err error) {
	text := script{Tokens: endless, Interval: interval}.String()
	address, request := b.site.proxy.address, func(int) []byte { return completionRequest(b.site.proxy.address, text) }
	if service {
		accounts, err := b.accountsFor(ctx, n, turnsEach)
		if err != nil {
			return w, err
		}
		address, request = b.site.public, func(i int) []byte { return accounts[i%len(accounts)].chatRequest(text, "") }
	}
	rec := newRecorder()
	f, err := launch(ctx, address, n, ramp, rec, request)
	if err != nil {
		return w, err
	}
	defer f.close()
	if err := f.awaitFirst(ctx, beginWithin); err != nil {
		return w, err
	}
	if err := wait(ctx, warm); err != nil {
		return w, err
	}
	window := func() (err error) {
		w, err = b.measure(ctx, rec, over)
		return err
	}
	if service {
		err = b.profiled(ctx, over, window)
	} else {
		err = window()
	}
	if err != nil {
		return w, err
	}
	if err := b.site.endTurns(ctx); err != nil {
		return w, err
	}
	if err := f.await(ctx, endWithin); err != nil {
		return w, err
	}
	w.gaps = f.gaps()
	if err := f.check(); err != nil {
		return w, err
	}
	return w, b.site.settle(ctx)
}

// The load of P1, P2 and P8.
const (
	tokensASecond = 30
	tokenInterval = time.Second / tokensASecond
)

// relay is P1 and P2.
func (b *bench) relay(ctx context.Context) error {
	n, over, ramp := b.few(1000, 300), b.short(8*time.Second, 4*time.Second), b.short(3*time.Second, time.Second)
	var ours, theirs, withPostgres samples
	table := newTable("round", "relay", "tokens/s", "tokens an event", "µs a token", "with Postgres", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			w, err := b.relayed(ctx, service, n, tokenInterval, ramp, over)
			if err != nil {
				return err
			}
			own, all, name := w.perToken(w.used.proxy), w.perToken(w.used.proxy), "proxy"
			if service {
				own, all, name = w.perToken(w.used.service), w.perToken(w.used.service+w.used.postgres), "turnstone"
				ours, withPostgres = append(ours, own), append(withPostgres, all)
			} else {
				theirs = append(theirs, own)
			}
			table.add(round+1, name, fmt.Sprintf("%.0f", w.rate()), float64(w.Tokens)/float64(max(w.Events, 1)), own, all, w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.foreign)
			b.say("  %s", table.last())
		}
	}
	b.report.add(figure{Goal: "P1", Ours: ours, Baseline: theirs, Unit: "µs", Score: ours.by(theirs)})
	b.report.add(figure{Goal: "P2", Ours: withPostgres, Baseline: theirs, Unit: "µs", Score: withPostgres.by(theirs)})
	b.report.detail("P1, P2", fmt.Sprintf("%d live turns × %d tokens/s", n, tokensASecond), table)
	return nil
}

// alternate lets each side be first in turn.
func alternate(round int) []bool {
	if round%2 == 0 {
		return []bool{false, true}
	}
	return []bool{true, false}
}

// capacity is P8.
func (b *bench) capacity(ctx context.Context) error {
	table := newTable("turns", "tokens/s", "of those due", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	over := b.short(15*time.Second, 4*time.Second)
	held := 0.0
	for _, n := range []int{500, 1000, 1250, 1500, 1750, 2000, 2500} {
		carried := false
		for try := 0; try < capacityTries && !carried; try++ {
			w, err := b.relayed(ctx, true, n, tokenInterval, time.Duration(n)*3*time.Millisecond, over)
			if err != nil {
				return fmt.Errorf("%d turns: %w", n, err)
			}
			kept := w.rate() / float64(n*tokensASecond)
			table.add(n, fmt.Sprintf("%.0f", w.rate()), kept, w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.foreign)
			b.say("  %s", table.last())
			if w.gaps > 0 {
				return fmt.Errorf("%d turns: %d gaps", n, w.gaps)
			}
			carried = w.Delay.P99 <= capacityDelay
		}
		if !carried {
			break
		}
		held = float64(n)
	}
	b.report.add(figure{Goal: "P8", Ours: samples{held}, Unit: "turns", Score: samples{held}})
	b.report.detail("P8", "live turns at 30 tokens/s, more and more, until the p99 of the token delay is above 100 ms", table)
	return nil
}

const (
	// capacityDelay is the p99 of token delay up to which a load counts as carried, in milliseconds.
	capacityDelay = 100
	// capacityTries is how often a load is tried: a neighbour's work spoils a window, it never makes one better.
	capacityTries = 3
)
