package main

import (
	"context"
	"fmt"
	"math"
	"slices"
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

// perEvent is how many tokens an event carried.
func (w window) perEvent() float64 { return float64(w.Tokens) / float64(max(w.Events, 1)) }

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
func (b *bench) accountsFor(ctx context.Context, streams int) ([]*account, error) {
	return b.site.users(ctx, min(accountsOf(streams), 128))
}

const (
	turnsEach   = 20 // live turns of one account; they may all begin at once, and an account may have 32 requests under way
	warm        = time.Second
	beginWithin = 60 * time.Second
	endWithin   = 120 * time.Second
)

// relayed holds n streams at a pace through the service, or through the proxy.
func (b *bench) relayed(ctx context.Context, service bool, n int, interval, ramp, over time.Duration) (w window, err error) {
	text := script{Tokens: endless, Interval: interval}.String()
	address, request := b.site.proxy.address, func(int) []byte { return completionRequest(b.site.proxy.address, text) }
	if service {
		accounts, err := b.accountsFor(ctx, n)
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

// relayLoad is a load at which P1 and P2 are measured. A round in which the service gathered more tokens in an event, or
// delayed them more, than the goal allows does not count.
type relayLoad struct {
	part           string
	turns, quick   int
	tokensPerEvent float64
	delay          float64 // p99, in milliseconds
}

var relayLoads = []relayLoad{
	{part: "(a)", turns: 300, quick: 30, tokensPerEvent: 1.1, delay: math.Inf(1)},
	{part: "(b)", turns: 1000, quick: 60, tokensPerEvent: math.Inf(1), delay: capacityDelay},
}

func (l relayLoad) counts(w window) bool {
	return w.perEvent() <= l.tokensPerEvent && w.Delay.P99 <= l.delay
}

// relay is P1 and P2.
func (b *bench) relay(ctx context.Context) error {
	for _, load := range relayLoads {
		if err := b.relayUnder(ctx, load); err != nil {
			return fmt.Errorf("%s: %w", load.part, err)
		}
	}
	return nil
}

// relayTries is how many times as many rounds are measured as have to count, at most.
const relayTries = 2

// relayUnder measures until enough rounds count. Without one that counts the score is none, which meets no goal.
func (b *bench) relayUnder(ctx context.Context, load relayLoad) error {
	n, over, ramp := b.few(load.turns, load.quick), b.short(8*time.Second, 4*time.Second), b.short(3*time.Second, time.Second)
	var ours, theirs, withPostgres, perEvent, p50, p99 samples
	table := newTable("round", "relay", "tokens/s", "tokens per event", "µs per token", "with Postgres", "delay p50 ms", "p99", "max", "gaps", "others' CPUs", "counts")
	for round := 0; round < b.few(relayTries, 1)*b.rounds && len(ours) < b.rounds; round++ {
		var relayed, proxied window
		for _, service := range alternate(round) {
			w, err := b.relayed(ctx, service, n, tokenInterval, ramp, over)
			if err != nil {
				return err
			}
			own, all, name, counts := w.perToken(w.used.proxy), w.perToken(w.used.proxy), "proxy", ""
			if service {
				own, all, name = w.perToken(w.used.service), w.perToken(w.used.service+w.used.postgres), "turnstone"
				counts = map[bool]string{true: "yes", false: "no"}[load.counts(w)]
				relayed = w
			} else {
				proxied = w
			}
			table.add(round+1, name, fmt.Sprintf("%.0f", w.rate()), w.perEvent(), own, all, w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.foreign, counts)
			b.say("  %s", table.last())
		}
		if !load.counts(relayed) {
			continue
		}
		ours, withPostgres = append(ours, relayed.perToken(relayed.used.service)), append(withPostgres, relayed.perToken(relayed.used.service+relayed.used.postgres))
		theirs = append(theirs, proxied.perToken(proxied.used.proxy))
		perEvent, p50, p99 = append(perEvent, relayed.perEvent()), append(p50, relayed.Delay.P50), append(p99, relayed.Delay.P99)
	}
	note := fmt.Sprintf("%d of the rounds count; %s tokens per event, delay p50 %s, p99 %s", len(ours), show(perEvent, ""), show(p50, "ms"), show(p99, "ms"))
	b.report.add(figure{Goal: "P1 " + load.part, Ours: ours, Baseline: theirs, Unit: "µs", Score: ours.by(theirs), Note: note})
	b.report.add(figure{Goal: "P2 " + load.part, Ours: withPostgres, Baseline: theirs, Unit: "µs", Score: withPostgres.by(theirs)})
	b.report.detail("P1, P2 "+load.part, fmt.Sprintf("%d live turns × %d tokens/s", n, tokensASecond), table)
	return nil
}

// alternate lets each side be first in turn.
func alternate(round int) []bool {
	if round%2 == 0 {
		return []bool{false, true}
	}
	return []bool{true, false}
}

// capacityLevels are the loads at which P8 is looked for.
var capacityLevels = []int{250, 500, 750, 1000, 1250, 1500, 1750, 2000, 2500}

// capacity is P8: the median of the measurements, each of which finds the highest load that is carried. A measurement begins
// where the one before it ended.
func (b *bench) capacity(ctx context.Context) error {
	table := newTable("measurement", "turns", "tokens/s", "of those due", "tokens per event", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	over := b.short(15*time.Second, 4*time.Second)
	var held samples
	levels := capacityLevels
	if b.quick {
		levels = []int{50}
	}
	at := max(0, slices.Index(levels, 1000))
	for measurement := range b.few(max(b.rounds, leastRounds), 1) {
		found, err := climb(len(levels), at, func(level int) (carried bool, err error) {
			n := levels[level]
			w, err := b.relayed(ctx, true, n, tokenInterval, time.Duration(n)*3*time.Millisecond, over)
			if err != nil {
				return false, fmt.Errorf("%d turns: %w", n, err)
			}
			table.add(measurement+1, n, fmt.Sprintf("%.0f", w.rate()), w.rate()/float64(n*tokensASecond), w.perEvent(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.foreign)
			b.say("  %s", table.last())
			if w.gaps > 0 {
				return false, fmt.Errorf("%d turns: %d gaps", n, w.gaps)
			}
			return w.Delay.P99 <= capacityDelay, nil
		})
		if err != nil {
			return err
		}
		if found < 0 {
			held = append(held, 0)
			continue
		}
		held, at = append(held, float64(levels[found])), found
	}
	b.report.add(figure{Goal: "P8", Ours: held, Unit: "turns", Score: held})
	b.report.detail("P8", "live turns at 30 tokens/s, up or down until the highest load whose token delay p99 is at most 100 ms", table)
	return nil
}

// climb finds the highest of n levels that is carried, beginning at one of them; -1 if the lowest is not.
func climb(n, at int, carries func(level int) (bool, error)) (found int, err error) {
	found = -1
	for step := 0; at >= 0 && at < n; at += step {
		carried, err := carries(at)
		if err != nil {
			return -1, err
		}
		if carried {
			found = at
		}
		switch {
		case carried && step >= 0:
			step = 1
		case !carried && step <= 0:
			step = -1
		default:
			return found, nil
		}
	}
	return found, nil
}

// capacityDelay is the p99 of token delay up to which a load counts as carried, in milliseconds.
const capacityDelay = 100
