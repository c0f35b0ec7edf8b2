package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
)

// runCommand drives a service that is already running. It signs up its own accounts, so the service's limits must allow
// for the load (TURNSTONE_LIMIT_SIGNIN, TURNSTONE_LIMIT_CHAT, TURNSTONE_MAX_LIVE_TURNS). Token delay is measured only
// if the service's model is `loadtest upstream`.
type runCommand struct {
	URL      string        `arg:"" help:"URL of the service, for example http://127.0.0.1:8080."`
	Turns    int           `default:"100" help:"Number of live turns."`
	Accounts int           `help:"Number of accounts that start them. Default: one for every twenty turns."`
	Tokens   int           `default:"300" help:"Tokens per turn."`
	Interval time.Duration `default:"33ms" help:"Time between tokens."`
	For      time.Duration `default:"30s" help:"How long to measure once that many turns are live."`
}

// Run drives the load and prints the report. It returns an error if signing up or any turn failed.
func (c runCommand) Run(ctx context.Context, p *console.Console) error {
	base := strings.TrimSuffix(c.URL, "/")
	address, plain := strings.CutPrefix(base, "http://")
	if !plain || c.Turns < 1 || c.Tokens < 1 || c.Interval <= 0 {
		return errors.New("needs an http:// URL, at least one turn, at least one token and a positive interval")
	}
	if c.Accounts == 0 {
		c.Accounts = load.AccountsFor(c.Turns)
	}
	p.Say("signing up %d accounts", c.Accounts)
	accounts, err := load.SignUp(ctx, base, c.Accounts)
	if err != nil {
		return err
	}
	lifetime := time.Duration(c.Tokens) * c.Interval
	all := lifetime + c.For
	p.Say("%s until %d turns are live, then measuring for %s", lifetime, c.Turns, c.For)
	rec := load.NewRecorder()
	closed := make(chan error, 1)
	go func() {
		defer rec.Open.Store(false)
		if err := clock.Sleep(ctx, lifetime); err != nil {
			closed <- err
			return
		}
		rec.Open.Store(true)
		closed <- clock.Sleep(ctx, c.For)
	}()
	text := load.Script{Tokens: c.Tokens, Interval: c.Interval}.String()
	n := max(c.Turns, int(float64(c.Turns)*all.Seconds()/lifetime.Seconds()))
	f, err := load.Launch(ctx, address, n, all, rec, func(i int) []byte { return accounts[i%len(accounts)].ChatRequest(text, "") })
	if err = errors.Join(err, <-closed); err != nil {
		return err
	}
	err = f.Await(ctx, lifetime+load.EndWithin)
	fmt.Fprint(p.Stdout, runReport(f, c.For))
	return errors.Join(err, f.Check())
}

// runReport formats the measurements of a run.
func runReport(f *load.Fleet, over time.Duration) string {
	w := f.Rec.Sum()
	var out strings.Builder
	fmt.Fprintf(&out, "turns %d, failed %d, gaps %d\n", len(f.Streams), f.Failed.Load(), f.Gaps())
	fmt.Fprintf(&out, "tokens/s %.0f, events/s %.0f, kB/s %.0f\n", float64(w.Tokens)/over.Seconds(), float64(w.Events)/over.Seconds(),
		float64(w.Bytes)/over.Seconds()/1000)
	t := figures.NewTable("ms", "n", "p50", "p99", "max")
	for _, each := range []struct {
		name string
		of   load.Spread
	}{{"time to response header", w.Begin}, {"time to first token", w.First}, {"token delay", w.Delay}} {
		if each.of.N > 0 {
			t.Add(each.name, each.of.N, each.of.P50, each.of.P99, each.of.Max)
		}
	}
	out.WriteString(t.Aligned())
	for _, line := range f.Rec.Failures() {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}
