package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// runCommand drives a service that is there already. It signs up accounts of its own, so the service's limits have to
// allow for what is asked (TURNSTONE_LIMIT_SIGNIN, TURNSTONE_LIMIT_CHAT, TURNSTONE_MAX_LIVE_TURNS). Token delay is known
// only when its model is `loadtest upstream`.
type runCommand struct {
	URL      string        `arg:"" help:"Where the service is, as http://127.0.0.1:8080."`
	Turns    int           `default:"100" help:"Live turns to hold."`
	Accounts int           `help:"Accounts to spread them over. Left out: one for twenty turns."`
	Tokens   int           `default:"300" help:"Tokens of a turn."`
	Interval time.Duration `default:"33ms" help:"Time between tokens."`
	For      time.Duration `default:"30s" help:"How long to measure once so many turns are live."`
}

// Run prints the report; it fails when anything did.
func (c runCommand) Run(ctx context.Context, p *program) error {
	base := strings.TrimSuffix(c.URL, "/")
	address, plain := strings.CutPrefix(base, "http://")
	if !plain || c.Turns < 1 || c.Tokens < 1 || c.Interval <= 0 {
		return errors.New("needs a plain http address, and at least one turn and one token with a time between")
	}
	if c.Accounts == 0 {
		c.Accounts = accountsOf(c.Turns)
	}
	p.say("signing up %d accounts", c.Accounts)
	accounts, err := signUp(ctx, base, c.Accounts)
	if err != nil {
		return err
	}
	lifetime := time.Duration(c.Tokens) * c.Interval
	all := lifetime + c.For
	p.say("%s until %d turns are live, then %s", lifetime, c.Turns, c.For)
	rec := newRecorder()
	closed := make(chan error, 1)
	go func() {
		defer rec.open.Store(false)
		if err := wait(ctx, lifetime); err != nil {
			closed <- err
			return
		}
		rec.open.Store(true)
		closed <- wait(ctx, c.For)
	}()
	text := script{Tokens: c.Tokens, Interval: c.Interval}.String()
	n := max(c.Turns, int(float64(c.Turns)*all.Seconds()/lifetime.Seconds()))
	f, err := launch(ctx, address, n, all, rec, func(i int) []byte { return accounts[i%len(accounts)].chatRequest(text, "") })
	if err = errors.Join(err, <-closed); err != nil {
		return err
	}
	err = f.await(ctx, lifetime+endWithin)
	fmt.Fprint(p.stdout, runReport(f, c.For))
	return errors.Join(err, f.check())
}

// runReport is what a run saw.
func runReport(f *fleet, over time.Duration) string {
	w := f.rec.sum()
	var out strings.Builder
	fmt.Fprintf(&out, "turns %d, failed %d, gaps %d\n", len(f.streams), f.failed.Load(), f.gaps())
	fmt.Fprintf(&out, "tokens/s %.0f, events/s %.0f, kB/s %.0f\n", float64(w.Tokens)/over.Seconds(), float64(w.Events)/over.Seconds(),
		float64(w.Bytes)/over.Seconds()/1000)
	t := newTable("ms", "n", "p50", "p99", "max")
	for _, each := range []struct {
		name string
		of   spread
	}{{"until the head of the answer", w.Begin}, {"until the first token", w.First}, {"delay of a token", w.Delay}} {
		if each.of.N > 0 {
			t.add(each.name, each.of.N, each.of.P50, each.of.P99, each.of.Max)
		}
	}
	out.WriteString(t.aligned())
	for _, line := range f.rec.failures() {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// failures are the errors that were seen, each with its number.
func (r *recorder) failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(r.errors))
	for text, n := range r.errors {
		lines = append(lines, fmt.Sprintf("%d × %s", n, text))
	}
	slices.Sort(lines)
	return lines
}
