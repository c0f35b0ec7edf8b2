package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/clock"
)

// window holds the measurements of one period of steady load.
type window struct {
	load.Totals
	used       site.Usage
	took       time.Duration
	gaps       int
	othersCPUs float64 // processors that other work kept busy
}

func (w window) rate() float64 { return float64(w.Tokens) / w.took.Seconds() }

// perEvent returns the number of tokens per event.
func (w window) perEvent() float64 { return float64(w.Tokens) / float64(max(w.Events, 1)) }

// perToken returns the CPU time per token in microseconds.
func (w window) perToken(used time.Duration) float64 {
	return float64(used.Nanoseconds()) / 1e3 / float64(max(w.Tokens, 1))
}

// measureSide measures the service or its baseline. Of the service it also takes the profile, if one is due.
func (b *bench) measureSide(ctx context.Context, rec *load.Recorder, over time.Duration, service bool) (w window, err error) {
	if !service {
		return b.measure(ctx, rec, over)
	}
	err = b.profiled(ctx, over, func() (err error) {
		w, err = b.measure(ctx, rec, over)
		return err
	})
	return w, err
}

// measure records a steady load over a duration, with the CPU time that each part uses in it.
func (b *bench) measure(ctx context.Context, rec *load.Recorder, over time.Duration) (w window, err error) {
	before, err := b.site.CPU()
	if err != nil {
		return w, err
	}
	begun := time.Now()
	rec.Open.Store(true)
	if err := clock.Sleep(ctx, over); err != nil {
		return w, err
	}
	rec.Open.Store(false)
	w.took = time.Since(begun)
	after, err := b.site.CPU()
	if err != nil {
		return w, err
	}
	w.used, w.Totals = after.Minus(before), rec.Sum()
	w.othersCPUs = w.used.Others().Seconds() / w.took.Seconds()
	return w, nil
}

// accountsFor returns the accounts that share a number of streams: load.TurnsPerAccount for an account, and at most
// 128 accounts.
func (b *bench) accountsFor(ctx context.Context, streams int) ([]*load.Account, error) {
	return b.site.EnsureAccounts(ctx, min(load.AccountsFor(streams), 128))
}

const (
	warm        = time.Second
	beginWithin = 60 * time.Second
)

// relayed runs n streams, with a token per interval, through the service or through the proxy, and measures them. It calls
// the functions in after when the measurement is over.
func (b *bench) relayed(ctx context.Context, service bool, n int, interval, ramp, over time.Duration, after ...func() error) (w window, err error) {
	text := load.Script{Tokens: load.Endless, Interval: interval}.String()
	address, request := b.site.Proxy.Address, func(int) []byte { return load.CompletionRequest(b.site.Proxy.Address, text) }
	if service {
		accounts, err := b.accountsFor(ctx, n)
		if err != nil {
			return w, err
		}
		address, request = b.site.Public, func(i int) []byte { return accounts[i%len(accounts)].ChatRequest(text, "") }
	}
	rec := load.NewRecorder()
	f, err := load.Launch(ctx, address, n, ramp, rec, request)
	if err != nil {
		return w, err
	}
	defer f.Close()
	if err := f.AwaitFirst(ctx, beginWithin); err != nil {
		return w, err
	}
	if err := clock.Sleep(ctx, warm); err != nil {
		return w, err
	}
	w, err = b.measureSide(ctx, rec, over, service)
	for _, end := range after {
		err = errors.Join(err, end())
	}
	if err != nil {
		return w, err
	}
	if err := b.site.EndTurns(ctx); err != nil {
		return w, err
	}
	if err := f.Await(ctx, load.EndWithin); err != nil {
		return w, err
	}
	w.gaps = f.Gaps()
	if err := f.Check(); err != nil {
		return w, err
	}
	return w, b.site.AwaitQuiet(ctx)
}

// relayLoad is a load at which P1 and P2 are measured. A round does not count if the service put more tokens into an
// event, or delayed them for longer, than the goal allows.
type relayLoad struct {
	part           string
	turns, quick   int
	tokensPerEvent float64
	delay          float64 // limit of the p99, in milliseconds
}

var relayLoads = []relayLoad{
	{part: "(a)", turns: 300, quick: 30, tokensPerEvent: 1.1, delay: math.Inf(1)},
	{part: "(b)", turns: 1000, quick: 60, tokensPerEvent: math.Inf(1), delay: load.MaxDelay},
}

func (l relayLoad) counts(w window) bool {
	return w.perEvent() <= l.tokensPerEvent && w.Delay.P99 <= l.delay
}

// relay measures P1 and P2.
func (b *bench) relay(ctx context.Context) error {
	for _, one := range relayLoads {
		if err := b.measureRelay(ctx, one); err != nil {
			return fmt.Errorf("%s: %w", one.part, err)
		}
	}
	return nil
}

// relayTries limits the number of measured rounds, as a multiple of the number of rounds that must count.
const relayTries = 2

// measureRelay measures a load until enough rounds count. If no round counts, the score is empty and the goal is
// missed.
func (b *bench) measureRelay(ctx context.Context, at relayLoad) error {
	var ours, theirs, withPostgres, perEvent, p50, p99 figures.Samples
	table := figures.NewTable("round", "relay", "tokens/s", "tokens per event", "µs per token", "with Postgres", "delay p50 ms", "p99", "max", "gaps", "others' CPUs", "counts")
	for round := 0; round < b.pickCount(relayTries, 1)*b.rounds && len(ours) < b.rounds; round++ {
		var relayed, proxied window
		for _, service := range alternate(round) {
			w, err := b.relayedAt(ctx, at, service)
			if err != nil {
				return err
			}
			own, all, name, counts := w.perToken(w.used.Proxy), w.perToken(w.used.Proxy), "proxy", ""
			if service {
				own, all, name = w.perToken(w.used.Service), w.perToken(w.used.Service+w.used.Postgres), "turnstone"
				counts = map[bool]string{true: "yes", false: "no"}[at.counts(w)]
				relayed = w
			} else {
				proxied = w
			}
			table.Add(round+1, name, fmt.Sprintf("%.0f", w.rate()), w.perEvent(), own, all, w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs, counts)
			b.Say("  %s", table.Last())
		}
		if !at.counts(relayed) {
			continue
		}
		ours, withPostgres = append(ours, relayed.perToken(relayed.used.Service)), append(withPostgres, relayed.perToken(relayed.used.Service+relayed.used.Postgres))
		theirs = append(theirs, proxied.perToken(proxied.used.Proxy))
		perEvent, p50, p99 = append(perEvent, relayed.perEvent()), append(p50, relayed.Delay.P50), append(p99, relayed.Delay.P99)
	}
	note := fmt.Sprintf("%d rounds count; %s tokens per event, delay p50 %s, p99 %s", len(ours), figures.Show(perEvent, ""), figures.Show(p50, "ms"), figures.Show(p99, "ms"))
	b.report.Add(goals.Figure{Goal: "P1 " + at.part, Ours: ours, Baseline: theirs, Unit: "µs", Score: ours.DividedBy(theirs), Note: note})
	b.report.Add(goals.Figure{Goal: "P2 " + at.part, Ours: withPostgres, Baseline: theirs, Unit: "µs", Score: withPostgres.DividedBy(theirs)})
	b.report.Detail("P1, P2 "+at.part, fmt.Sprintf("%d live turns × %d tokens/s", b.pickCount(at.turns, at.quick), load.TokensPerSecond), table)
	return nil
}

// relayedAt measures the service or the proxy at a load.
func (b *bench) relayedAt(ctx context.Context, at relayLoad, service bool) (window, error) {
	return b.relayed(ctx, service, b.pickCount(at.turns, at.quick), load.TokenInterval,
		b.pickDuration(3*time.Second, time.Second), b.pickDuration(8*time.Second, 4*time.Second))
}

// alternate returns the order of the two sides in a round: true is the service, false the baseline. Each side is first
// in every other round.
func alternate(round int) []bool {
	if round%2 == 0 {
		return []bool{false, true}
	}
	return []bool{true, false}
}

// capacityLevels are the numbers of live turns that P8 tries.
var capacityLevels = []int{250, 500, 750, 1000, 1250, 1500, 1750, 2000, 2500}

// capacity measures P8: the median of several measurements, each of which finds the highest load that the service
// carries. A measurement starts at the load that the previous one found.
func (b *bench) capacity(ctx context.Context) error {
	table := figures.NewTable("measurement", "turns", "tokens/s", "share of due tokens", "tokens per event", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	over := b.pickDuration(15*time.Second, 4*time.Second)
	var capacities figures.Samples
	levels := capacityLevels
	if b.quick {
		levels = []int{50}
	}
	at := max(0, slices.Index(levels, 1000))
	for measurement := range b.pickCount(max(b.rounds, leastRounds), 1) {
		found, err := searchCapacity(len(levels), at, func(level int) (carried bool, err error) {
			n := levels[level]
			w, err := b.relayed(ctx, true, n, load.TokenInterval, time.Duration(n)*3*time.Millisecond, over)
			if errors.Is(err, load.ErrRefused) { // more than the service carries
				b.Say("  %d turns: %v", n, err)
				return false, b.site.EndAll(ctx)
			}
			if err != nil {
				return false, fmt.Errorf("%d turns: %w", n, err)
			}
			table.Add(measurement+1, n, fmt.Sprintf("%.0f", w.rate()), w.rate()/float64(n*load.TokensPerSecond), w.perEvent(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs)
			b.Say("  %s", table.Last())
			if w.gaps > 0 {
				return false, fmt.Errorf("%d turns: %d gaps", n, w.gaps)
			}
			return w.Delay.P99 <= load.MaxDelay, nil
		})
		if err != nil {
			return err
		}
		if found < 0 {
			capacities = append(capacities, 0)
			continue
		}
		capacities, at = append(capacities, float64(levels[found])), found
	}
	b.report.Add(goals.Figure{Goal: "P8", Ours: capacities, Unit: "turns", Score: capacities})
	b.report.Detail("P8", "live turns at 30 tokens/s, searched up or down for the highest load with a token delay p99 of at most 100 ms", table)
	return nil
}

// searchCapacity returns the highest of n levels that is carried, or -1 if the lowest is not. It starts at level at and
// goes up or down one level at a time.
func searchCapacity(n, at int, carries func(level int) (bool, error)) (found int, err error) {
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
