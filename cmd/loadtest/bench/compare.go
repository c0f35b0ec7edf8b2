package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/site"
)

// maxRatio is the highest ratio of a cost of the newer program to that of the older one.
const maxRatio = 1.15

// leastCompared is the minimum number of rounds of a median that is compared.
const leastCompared = 4

// Compare measures two programs in alternating rounds.
type Compare struct {
	Base   string `required:"" type:"path" help:"The older turnstone program."`
	Head   string `required:"" type:"path" help:"The newer turnstone program."`
	Rounds int    `default:"4" help:"Rounds of each program, at least four."`
	Quick  bool   `help:"Use short windows and small loads, for a quick check; the ratios are not judged."`
	Folder string `default:"tmp/compare" help:"Folder for the servers' data, on this host computer's own disk."`
}

// The costs that are compared. Each is better if it is lower.
const (
	relayCost      = "P1 (a): CPU per token, µs"
	relayAllCost   = "P2 (a): the same with Postgres, µs"
	firstTokenCost = "P3: time added to the first token, p50, ms"
	startCost      = "P4: time per start, 128 in flight, ms"
	memoryCost     = "memory at rest, MB"
	sizeCost       = "size of the binary, MB"
)

var comparedCosts = []string{relayCost, relayAllCost, firstTokenCost, startCost, memoryCost, sizeCost}

// costs are the samples of one program by cost.
type costs map[string]figures.Samples

func (c costs) add(name string, value float64) { c[name] = append(c[name], value) }

// program is one of the two programs, with servers of its own.
type program struct {
	startBench
	path  string
	costs costs
}

// Run measures the two programs and prints the ratio of each cost. A ratio above maxRatio is an error.
func (c Compare) Run(ctx context.Context, p *console.Console) (err error) {
	if c.Rounds < leastCompared && !c.Quick {
		return fmt.Errorf("needs at least %d rounds", leastCompared)
	}
	free, err := site.LockFolder(ctx, c.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	var programs [2]*program
	for i, path := range []string{c.Base, c.Head} {
		one := &program{startBench{&bench{Console: p, rounds: c.Rounds, quick: c.Quick}}, path, costs{}}
		p.Say("starting the servers of %s", path)
		if one.site, err = site.New(ctx, p, path, c.Folder); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, one.site.Close(context.WithoutCancel(ctx))) }()
		if _, err := one.site.EnsureAccounts(ctx, one.pickCount(startAccount, quickAccounts)); err != nil {
			return err
		}
		programs[i] = one
	}
	unfinished := func(one *program) bool { return len(one.costs[relayCost]) < c.Rounds }
	for round := 0; round < c.Rounds || round < relayTries*c.Rounds && slices.ContainsFunc(programs[:], unfinished); round++ {
		if err := compareRound(ctx, programs, round, round < c.Rounds); err != nil {
			return err
		}
	}
	table, above := compareCosts(programs[0].costs, programs[1].costs, c.Rounds)
	fmt.Fprint(p.Stdout, table.Aligned())
	if c.Quick {
		return nil
	}
	return above
}

// compareRound measures a round of both programs. Rounds of P1 that do not count are repeated in further rounds, which
// measure nothing else.
func compareRound(ctx context.Context, programs [2]*program, round int, whole bool) error {
	var direct float64
	if whole {
		w, err := programs[0].starting(ctx, false, programs[0].comparedLoad())
		if err != nil {
			return err
		}
		direct = w.First.P50
	}
	for _, newer := range alternate(round) {
		one := programs[0]
		if newer {
			one = programs[1]
		}
		if err := one.measureCosts(ctx, direct, whole); err != nil {
			return fmt.Errorf("%s: %w", one.path, err)
		}
	}
	return nil
}

// comparedLoad returns the load of P3, in a shorter window.
func (p *program) comparedLoad() startLoad {
	l := p.startingLoad()
	l.over = 8 * time.Second
	return l
}

// measureCosts measures a round of one program; direct is the time to the first token of the model itself.
func (p *program) measureCosts(ctx context.Context, direct float64, whole bool) error {
	if whole {
		if err := p.site.RestartService(ctx); err != nil {
			return err
		}
		memory, err := site.SettledMemory(ctx, p.site.Service.PID())
		if err != nil {
			return err
		}
		size, err := os.Stat(p.path)
		if err != nil {
			return err
		}
		p.costs.add(memoryCost, float64(memory)/1e6)
		p.costs.add(sizeCost, float64(size.Size())/1e6)
	}
	if at := relayLoads[0]; len(p.costs[relayCost]) < p.rounds {
		w, err := p.relayedAt(ctx, at, true)
		if err != nil {
			return err
		}
		if at.counts(w) {
			p.costs.add(relayCost, w.perToken(w.used.Service))
			p.costs.add(relayAllCost, w.perToken(w.used.Service+w.used.Postgres))
		}
	}
	if whole {
		w, err := p.starting(ctx, true, p.comparedLoad())
		if err != nil {
			return err
		}
		p.costs.add(firstTokenCost, w.First.P50-direct)
		accounts, err := p.site.EnsureAccounts(ctx, p.pickCount(startAccount, quickAccounts))
		if err != nil {
			return err
		}
		if w, err = p.startAll(ctx, accounts, p.startsFor()); err != nil {
			return err
		}
		p.costs.add(startCost, millis(w.took)/float64(max(w.Begin.N, 1)))
	}
	for _, name := range comparedCosts {
		if s := p.costs[name]; len(s) > 0 {
			p.Say("  %s, %s: %s", p.path, name, figures.Number(s[len(s)-1]))
		}
	}
	return nil
}

// compareCosts returns the table of ratios, and an error that lists those above maxRatio and costs with fewer rounds.
func compareCosts(base, head costs, rounds int) (*figures.Table, error) {
	table := figures.NewTable("cost", "base", "head", "head / base", "must", "")
	var failed []error
	for _, name := range comparedCosts {
		if n := min(len(base[name]), len(head[name])); n < rounds {
			failed = append(failed, fmt.Errorf("%s: only %d of %d rounds count", name, n, rounds))
		}
		ratio, verdict := head[name].Median()/base[name].Median(), "met"
		if math.IsNaN(ratio) || ratio > maxRatio {
			verdict = "**not met**"
			failed = append(failed, fmt.Errorf("%s: %s times the base, must be at most %v times", name, figures.Number(ratio), maxRatio))
		}
		table.Add(name, figures.Show(base[name], ""), figures.Show(head[name], ""), ratio, fmt.Sprintf("≤ %v ×", maxRatio), verdict)
	}
	return table, errors.Join(failed...)
}
