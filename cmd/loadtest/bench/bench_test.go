package bench

import (
	"slices"
	"strings"
	"testing"

	"turnstone/cmd/loadtest/goals"
)

func TestARoundCountsOnlyWithinTheLimitsOfItsLoad(t *testing.T) {
	of := func(tokens, events int64, p99 float64) (w window) {
		w.Tokens, w.Events, w.Delay.P99 = tokens, events, p99
		return w
	}
	for _, c := range []struct {
		load   relayLoad
		window window
		counts bool
	}{
		{relayLoads[0], of(110, 100, 500), true},
		{relayLoads[0], of(111, 100, 5), false},
		{relayLoads[1], of(300, 100, 100), true},
		{relayLoads[1], of(100, 100, 101), false},
	} {
		if got := c.load.counts(c.window); got != c.counts {
			t.Errorf("%s %+v counts: %t", c.load.part, c.window, got)
		}
	}
}

func TestTheCapacityIsFoundFromWhereverTheSearchBegins(t *testing.T) {
	for carried := -1; carried < 5; carried++ {
		for at := range 5 {
			tried := map[int]bool{}
			found, err := searchCapacity(5, at, func(level int) (bool, error) {
				if tried[level] {
					t.Errorf("level %d was tried twice", level)
				}
				tried[level] = true
				return level <= carried, nil
			})
			if err != nil || found != carried {
				t.Errorf("from %d: found %d, want %d (%v)", at, found, carried, err)
			}
		}
	}
}

func TestEveryGoalOfTheListIsMeasuredByOne(t *testing.T) {
	var measured []string
	for _, name := range goals.Names() {
		if !slices.ContainsFunc(measurements, func(m measurement) bool { return m.measures(name) }) {
			t.Errorf("nothing measures %s", name)
		}
	}
	for _, m := range measurements {
		for _, goal := range m.goals {
			if number, _, _ := strings.Cut(goal, " "); !slices.Contains(goals.Names(), number) || slices.Contains(measured, goal) {
				t.Errorf("%s is no goal, or is measured twice", goal)
			}
			measured = append(measured, goal)
		}
	}
}

func TestOutputOfPgbenchAndGoBenchmarksIsParsed(t *testing.T) {
	rate, latency, err := parsePgbench([]byte("latency average = 4.097 ms\ninitial connection time = 9.1 ms\ntps = 3905.25 (without initial connection time)\n"))
	if err != nil || rate != 3905.25 || latency != 4.097 {
		t.Errorf("%v %v %v", rate, latency, err)
	}
	if _, _, err := parsePgbench([]byte("nothing")); err == nil {
		t.Error("output without a rate was accepted")
	}
	if median, err := medianOfLog("0 1 900 0 1764115200 1\n0 2 1100 0 1764115200 2\n0 3 5000 0 1764115200 3\n"); err != nil || median != 1.1 {
		t.Errorf("%v %v", median, err)
	}
	for _, log := range []string{"", "0 1\n", "0 1 x 0 1 1\n"} {
		if _, err := medianOfLog(log); err == nil {
			t.Errorf("the log %q was accepted", log)
		}
	}
	rows := parseBenchmark("goos: linux\nBenchmarkJournal-2  \t 5\t 1234 ns/op\t 7575 alone/s\t 36652 grouped/s\nPASS\n")
	if len(rows) != 1 || rows[0]["grouped/s"] != 36652 || rows[0]["alone/s"] != 7575 {
		t.Errorf("%v", rows)
	}
}
