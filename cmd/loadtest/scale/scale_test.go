package scale

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/loadtest/console"
)

// benched is a site as in the benchmarks: everything on two processors.
func benched(turns int) Site { return Site{Turns: turns, Nodes: 1, NodeCPUs: 2, Shared: true} }

// TestTheNumberOfTokensInTheSystemFollowsLittlesLaw: in a stable system it is the rate of tokens times their mean delay.
// Tokens that are in the system at the beginning or the end of the measured time are counted partly: less than a hundredth.
func TestTheNumberOfTokensInTheSystemFollowsLittlesLaw(t *testing.T) {
	for _, site := range []Site{benched(100), benched(300), benched(900), {Turns: 2000, Nodes: 3, NodeCPUs: 2, PostgresCPUs: 2}} {
		r := Simulate(site, Measured(), 7, time.Second, 5*time.Second)
		rate := float64(r.Tokens) / r.Measured.Seconds()
		if want := rate * r.Mean.Seconds(); math.Abs(r.InSystem/want-1) > 0.01 {
			t.Errorf("%+v: %.1f tokens are in the system; %.0f/s with a delay of %s should be %.1f", site, r.InSystem, rate, r.Mean, want)
		}
		if due := Measured().Rate * float64(site.Turns); math.Abs(rate/due-1) > 0.01 {
			t.Errorf("%+v: %.0f tokens/s were read, %.0f/s were due", site, rate, due)
		}
	}
}

func TestTheSameSeedHasTheSameResult(t *testing.T) {
	first := Simulate(benched(500), Measured(), 3, time.Second, time.Second)
	if again := Simulate(benched(500), Measured(), 3, time.Second, time.Second); again != first {
		t.Errorf("the second run has %+v, the first had %+v", again, first)
	}
	if other := Simulate(benched(500), Measured(), 4, time.Second, time.Second); other == first {
		t.Error("another seed has the same result")
	}
}

// TestMoreLoadNeverLowersTheDelay compares the means, for several seeds, with and without separate machines. Once the pacing
// has its longest interval, more turns change the delay by less than the phases of their models do: three hundredths.
func TestMoreLoadNeverLowersTheDelay(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		for _, separate := range []bool{false, true} {
			before := Result{}
			for _, turns := range []int{50, 200, 400, 600, 800, 1000, 1200, 1600} {
				site := benched(turns)
				if separate {
					site = Site{Turns: turns, Nodes: 1, NodeCPUs: 1, PostgresCPUs: 1}
				}
				r := Simulate(site, Measured(), seed, time.Second, 2*time.Second)
				if float64(r.Mean) < 0.97*float64(before.Mean) {
					t.Errorf("seed %d, %+v: the mean delay is %s, and was %s with fewer turns", seed, site, r.Mean, before.Mean)
				}
				before = r
			}
		}
	}
}

func TestABusierSiteNeedsMoreMachines(t *testing.T) {
	var before Plan
	for _, turns := range []int{100, 3000, 20_000, 40_000} {
		p := NewPlan(turns, Measured(), 1, 100*time.Millisecond, 100*time.Millisecond)
		if p.Nodes < before.Nodes || p.Shards < before.Shards || p.Nodes < leastNodes {
			t.Errorf("%+v needs less than %+v", p, before)
		}
		if p.NodeTurns*p.Nodes < turns || p.ShardTurns*p.Shards < turns {
			t.Errorf("%+v has too few places", p)
		}
		before = p
	}
}

// TestAnIdleSiteShowsATokenAfterOneCommit: without load, nothing waits for a grid point or for another append.
func TestAnIdleSiteShowsATokenAfterOneCommit(t *testing.T) {
	c := Measured()
	r := Simulate(benched(1), c, 1, time.Second, 20*time.Second)
	path := c.LoadTokenCPU + c.TokenCPU + c.EventCPU + c.StatementCPU + c.RowCPU + c.LoadEventCPU
	if want := path + c.Flush; r.TokensPerEvent() != 1 || r.Mean < want*8/10 || r.Mean > want*12/10 {
		t.Errorf("the mean delay is %s, and the costs are %s; %.2f tokens per event", r.Mean, want, r.TokensPerEvent())
	}
}

func TestThePageHasWhatTheCommandWrites(t *testing.T) {
	const path = "../../../docs/scaling.md"
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(t.TempDir(), "scaling.md")
	if err := os.WriteFile(written, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Command{Seed: 1, Out: written}).Run(&console.Console{Stdout: t.Output(), Stderr: t.Output()}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Error("docs/scaling.md is not up to date: run loadtest scale")
	}
	if err := (Command{Out: filepath.Join(t.TempDir(), "none.md")}).Run(&console.Console{Stdout: t.Output(), Stderr: t.Output()}); err == nil {
		t.Error("a missing page was written")
	}
	if _, err := replaceGenerated([]byte("# A page"), ""); err == nil || !strings.Contains(err.Error(), "loadtest scale") {
		t.Errorf("a page without marks: %v", err)
	}
}
