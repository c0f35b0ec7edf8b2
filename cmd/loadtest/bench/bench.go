package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/promises"
	"turnstone/cmd/loadtest/site"
)

// Command measures the goals of docs/benchmarks.md.
type Command struct {
	Only    []string `help:"Measure only these goals, for example P1,'P10 token'; the document is not written."`
	Rounds  int      `default:"5" help:"Interleaved rounds of each measurement; with fewer than five the document is not written."`
	Quick   bool     `help:"Use short windows and small loads, for a quick check; the document is not written."`
	Profile string   `type:"path" help:"File for a CPU profile of the service, taken during a measured window (P1, P3, P4, P7, P8)."`
	Binary  string   `default:"tmp/bench/turnstone" help:"The turnstone program to measure."`
	Folder  string   `default:"tmp/bench" help:"Folder for the servers' data, on this host computer's own disk."`
	Out     string   `default:"docs/benchmarks.md" help:"The document to write."`
}

// bench is one run of the measurements.
type bench struct {
	*console.Console
	site    *site.Site
	rounds  int
	quick   bool
	profile string // file for the profile, taken in the first window of the service under load; empty afterwards
	report  goals.Report
}

// measurement measures one or more goals together. A goal is named whole ("P10 token"), or by its number for all that belong to it.
type measurement struct {
	goals []string
	run   func(*bench, context.Context) error
}

// measures reports whether a name is that of one of its goals, or the number of one.
func (m measurement) measures(name string) bool {
	return slices.ContainsFunc(m.goals, func(goal string) bool { return goal == name || strings.HasPrefix(goal, name+" ") })
}

var measurements = []measurement{
	{[]string{"P15"}, (*bench).boot},
	{[]string{"P1", "P2"}, (*bench).relay},
	{[]string{"P3"}, func(b *bench, ctx context.Context) error { return startBench{b}.firstToken(ctx) }},
	{[]string{"P4"}, func(b *bench, ctx context.Context) error { return startBench{b}.starts(ctx) }},
	{[]string{"P5"}, (*bench).journal},
	{[]string{"P6"}, (*bench).liveMemory},
	{[]string{"P7"}, func(b *bench, ctx context.Context) error { return readerBench{b}.readers(ctx) }},
	{[]string{"P8"}, (*bench).capacity},
	{[]string{"P9"}, func(b *bench, ctx context.Context) error { return readerBench{b}.resume(ctx) }},
	{[]string{"P11"}, (*bench).manyRows},
	{[]string{"P12"}, func(b *bench, ctx context.Context) error { return commandBench{b}.commands(ctx) }},
	{[]string{"P13"}, func(b *bench, ctx context.Context) error { return uploadBench{b}.uploads(ctx) }},
	{[]string{"P14"}, (*bench).log},
	{[]string{"P16"}, func(b *bench, ctx context.Context) error { return researchBench{b}.research(ctx) }},
	{[]string{"limits"}, func(b *bench, ctx context.Context) error { return promises.Measure(ctx, b.site, b.quick, &b.report) }},
	{[]string{"P10 token"}, (*bench).longTurn},
	{[]string{"P10 start", "P10 first token"}, (*bench).longConversation},
	{[]string{"P10 memory"}, (*bench).manyTurns},
}

// Run measures the goals, prints the results and, after a full run of all goals, writes the document.
func (c Command) Run(ctx context.Context, p *console.Console) (err error) {
	if c.Rounds < 1 {
		return errors.New("needs at least one round")
	}
	for _, goal := range c.Only {
		if !slices.ContainsFunc(measurements, func(m measurement) bool { return m.measures(goal) }) {
			return fmt.Errorf("there is no goal %q", goal)
		}
	}
	b := &bench{Console: p, rounds: c.Rounds, quick: c.Quick, profile: c.Profile}
	p.Say("waiting for other runs on this host computer to end")
	free, err := site.LockFolder(ctx, c.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	b.report.Host = figures.ThisHost()
	p.Say("starting the servers")
	if b.site, err = site.New(ctx, p, c.Binary, c.Folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.site.Close(context.WithoutCancel(ctx))) }()
	var failures []error
	for _, m := range measurements {
		if len(c.Only) > 0 && !slices.ContainsFunc(c.Only, m.measures) {
			continue
		}
		name := strings.Join(m.goals, ", ")
		p.Say("measuring %s", name)
		begun := time.Now()
		if err := m.run(b, ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
			p.Say("%s failed: %v", name, err)
			b.report.Failed(name, err)
			if err := b.site.EndAll(ctx); err != nil { // its turns would be a part of the next load
				failures = append(failures, fmt.Errorf("after %s: %w", name, err))
			}
		}
		p.Say("%s took %s", name, time.Since(begun).Round(time.Second))
	}
	b.report.Took = b.report.Host.Since()
	fmt.Fprint(p.Stdout, b.report.Text())
	if !c.Quick { // a quick run shows that the programs work, not how fast they are
		for _, missed := range b.report.Unmet() {
			failures = append(failures, fmt.Errorf("not met: %s", missed))
		}
	}
	if len(c.Only) == 0 && !c.Quick && c.Rounds >= leastRounds {
		failures = append(failures, b.report.Write(c.Out))
	}
	return errors.Join(failures...)
}

// leastRounds is the minimum number of rounds of a published median.
const leastRounds = 5

// pickDuration returns the duration for the kind of run: full or quick.
func (b *bench) pickDuration(full, quick time.Duration) time.Duration {
	if b.quick {
		return quick
	}
	return full
}

// pickCount returns the number for the kind of run: full or quick.
func (b *bench) pickCount(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// profiled runs a window. If a profile was requested and not taken yet, it takes the profile during the window.
func (b *bench) profiled(ctx context.Context, over time.Duration, window func() error) error {
	if b.profile == "" {
		return window()
	}
	to := b.profile
	b.profile = ""
	taken := make(chan error, 1)
	go func() { taken <- b.site.Profile(ctx, over, to) }()
	err := window()
	if err := errors.Join(err, <-taken); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err == nil {
		b.Say("profile: %s, %d bytes", to, info.Size())
	}
	return err
}
