package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"turnstone/providers/embedded"
)

// benchCommand measures the goals of docs/benchmarks.md.
type benchCommand struct {
	Only    []string `help:"Measure these goals only, as P1,P3; the document is not written."`
	Rounds  int      `default:"5" help:"Interleaved rounds of each measurement; with fewer than five the document is not written."`
	Quick   bool     `help:"Short windows and small crowds, for a first look; the document is not written."`
	Profile string   `type:"path" help:"Write the service's processor profile of a measured window here (P1, P3, P4, P7, P8)."`
	Binary  string   `default:"tmp/bench/turnstone" help:"The program that is measured."`
	Folder  string   `default:"tmp/bench" help:"Where the servers keep their data: on this machine's own disk."`
	Out     string   `default:"docs/benchmarks.md" help:"The document."`
}

// bench is a run of measurements.
type bench struct {
	*program
	site    *site
	rounds  int
	quick   bool
	profile string // taken in the first window that has a service under load, then empty
	report  report
}

// measurement is one of the list: some goals that are measured together.
type measurement struct {
	goals []string
	run   func(*bench, context.Context) error
}

var measurements = []measurement{
	{[]string{"P15"}, (*bench).boot},
	{[]string{"P1", "P2"}, (*bench).relay},
	{[]string{"P3"}, (*bench).firstToken},
	{[]string{"P4"}, (*bench).starts},
	{[]string{"P5"}, (*bench).journal},
	{[]string{"P6"}, (*bench).liveMemory},
	{[]string{"P7"}, (*bench).readers},
	{[]string{"P8"}, (*bench).capacity},
	{[]string{"P9"}, (*bench).resume},
	{[]string{"P14"}, (*bench).log},
	{[]string{"P10"}, (*bench).growth},
}

// Run measures, prints and, when the whole list was measured at length, writes the document.
func (c benchCommand) Run(ctx context.Context, p *program) (err error) {
	if c.Rounds < 1 {
		return errors.New("at least one round")
	}
	for _, goal := range c.Only {
		if !slices.ContainsFunc(measurements, func(m measurement) bool { return slices.Contains(m.goals, goal) }) {
			return fmt.Errorf("there is no goal %q", goal)
		}
	}
	b := &bench{program: p, rounds: c.Rounds, quick: c.Quick, profile: c.Profile}
	p.say("waiting until no other run measures on this machine")
	free, err := alone(ctx, c.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	b.report.machine = describeMachine()
	p.say("starting the servers")
	if b.site, err = newSite(ctx, p, c.Binary, c.Folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.site.close(context.WithoutCancel(ctx))) }()
	var failures []error
	for _, m := range measurements {
		if len(c.Only) > 0 && !slices.ContainsFunc(m.goals, func(goal string) bool { return slices.Contains(c.Only, goal) }) {
			continue
		}
		name := strings.Join(m.goals, ", ")
		p.say("measuring %s", name)
		begun := time.Now()
		if err := m.run(b, ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
			p.say("%s failed: %v", name, err)
			b.report.failed(name, err)
		}
		p.say("%s took %s", name, time.Since(begun).Round(time.Second))
	}
	b.report.took = b.report.machine.since()
	fmt.Fprint(p.stdout, b.report.text())
	if !c.Quick { // short windows and small crowds prove that the programs work, not how fast they are
		for _, missed := range b.report.unmet() {
			failures = append(failures, fmt.Errorf("not met: %s", missed))
		}
	}
	if len(c.Only) == 0 && !c.Quick && c.Rounds >= leastRounds {
		failures = append(failures, b.report.write(c.Out))
	}
	return errors.Join(failures...)
}

// leastRounds is how many rounds a published median has at least.
const leastRounds = 5

// alone waits until no other run uses the folder: two at once would measure each other.
func alone(ctx context.Context, folder string) (free func() error, err error) {
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	var lock *embedded.FolderLock
	err = until(ctx, lockPatience, func() (bool, error) {
		lock, err = embedded.LockFolder(folder)
		if errors.Is(err, embedded.ErrLocked) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("the folder %s: %w", folder, err)
	}
	return lock.Unlock, nil
}

const lockPatience = time.Hour

// short is the length of a window: the first in a full run, the second in a quick one.
func (b *bench) short(full, quick time.Duration) time.Duration {
	if b.quick {
		return quick
	}
	return full
}

func (b *bench) few(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// profiled runs a window, and takes the profile in it if that is still wanted.
func (b *bench) profiled(ctx context.Context, over time.Duration, window func() error) error {
	if b.profile == "" {
		return window()
	}
	to := b.profile
	b.profile = ""
	taken := make(chan error, 1)
	go func() { taken <- b.site.profile(ctx, over, to) }()
	err := window()
	if err := errors.Join(err, <-taken); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err == nil {
		b.say("profile: %s, %d bytes", to, info.Size())
	}
	return err
}
