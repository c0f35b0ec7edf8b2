package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

// TestEveryKindOfFaultIsInjectedInARound checks that a round injects a rare kind, and a kind whose first faults took no
// effect.
func TestEveryKindOfFaultIsInjectedInARound(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.HangGuard)
	defer cancel()
	tried := map[string]int{}
	kind := func(name string, weight, idle int) faultKind {
		return faultKind{name, weight, func(*injector, context.Context, *rand.Rand) (bool, error) {
			tried[name]++
			if tried["rare"] > 0 && tried["idle at first"] > 3 {
				cancel()
			}
			return tried[name] > idle, nil
		}}
	}
	i := &injector{clock: func() time.Duration { return 0 }}
	l := lane{"a lane", 0, time.Nanosecond, []faultKind{kind("common", 1_000_000_000, 0), kind("rare", 1, 0), kind("idle at first", 1, 3)}}
	if err := i.run(ctx, ctx, l, always, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"common", "rare", "idle at first"} {
		if !slices.ContainsFunc(i.faults, func(f fault) bool { return f.Kind == name }) {
			t.Errorf("%q was not injected in %v tries", name, tried)
		}
	}
}

// After its planned time a round injects only the missing kinds, until its overtime ends.
func TestKindsThatAreMissingFollowAfterARound(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	overtime, cancel := context.WithTimeout(t.Context(), sitetest.HangGuard)
	defer cancel()
	tried := map[string]int{}
	kind := func(name string, weight, idle int) faultKind {
		return faultKind{name, weight, func(*injector, context.Context, *rand.Rand) (bool, error) {
			tried[name]++
			if name == "never" && tried[name] > 3 {
				cancel()
			}
			return tried[name] > idle, nil
		}}
	}
	for _, c := range []struct {
		kinds []faultKind
		want  map[string]int
	}{
		{[]faultKind{kind("common", 1_000_000_000, 0), kind("rare", 1, 0), kind("idle at first", 1, 3)}, map[string]int{"common": 1, "rare": 1, "idle at first": 4}},
		{[]faultKind{kind("never", 1, 1000)}, map[string]int{"never": 4}},
	} {
		clear(tried)
		i := &injector{clock: func() time.Duration { return 0 }}
		if err := i.run(ended, overtime, lane{"a lane", 0, time.Nanosecond, c.kinds}, always, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(tried, c.want) {
			t.Errorf("tried %v, want %v", tried, c.want)
		}
	}
}

func always() bool { return true }

// After its planned time a round continues until it has its minimums.
func TestARoundLastsUntilItHasItsMinimums(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	overtime, cancel := context.WithTimeout(t.Context(), sitetest.HangGuard)
	defer cancel()
	injected := 0
	kind := faultKind{"common", 1, func(*injector, context.Context, *rand.Rand) (bool, error) {
		injected++
		return true, nil
	}}
	i := &injector{clock: func() time.Duration { return 0 }}
	enough := func() bool { return injected >= 5 }
	if err := i.run(ended, overtime, lane{"a lane", 0, time.Nanosecond, []faultKind{kind}}, enough, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	if injected != 5 {
		t.Errorf("%d faults were injected, want 5", injected)
	}
}

func TestATurnThatWasTakenOverTwiceCountsOnce(t *testing.T) {
	n := newFindings()
	p := &process{}
	for _, turn := range []string{"turn_1", "turn_2", "turn_1"} {
		p.read(fmt.Appendf(nil, `{"msg":"turn adopted","turn":%q}`, turn), n)
	}
	if got := n.adoptedTurns(); got != 2 {
		t.Errorf("%d turns were taken over, want 2", got)
	}
	n.beginRound()
	if got := n.adoptedTurns(); got != 0 {
		t.Errorf("%d turns were taken over in a round that has just begun", got)
	}
}

func TestARunInWhichTooLittleHappenedFails(t *testing.T) {
	enough := func() *run {
		a := &run{t: t, notes: newFindings(), result: result{
			Faults: map[string]int{}, Acknowledged: leastAcknowledged, Decided: leastDecided, Adopted: leastTakeovers, Queues: leastQueues, QueueFaults: leastQueueFaults, Tasks: leastTasks,
			Shares: leastShares, Files: leastFiles, Imports: leastImports, Branches: leastBranches, Erased: leastErased,
		}}
		for _, l := range lanes {
			for _, kind := range l.kinds {
				a.result.Faults[kind.name] = leastEach
			}
		}
		return a
	}
	for name, c := range map[string]struct {
		change func(*result)
		fails  bool
	}{
		"enough":                      {func(*result) {}, false},
		"a kind was never injected":   {func(r *result) { delete(r.Faults, "SIGSTOP until taken over, SIGCONT") }, true},
		"too few acknowledged writes": {func(r *result) { r.Acknowledged-- }, true},
		"too few approvals decided":   {func(r *result) { r.Decided-- }, true},
		"too few turns taken over":    {func(r *result) { r.Adopted-- }, true},
		"too few research tasks":      {func(r *result) { r.Tasks-- }, true},
		"too few shares":              {func(r *result) { r.Shares-- }, true},
		"too few files":               {func(r *result) { r.Files-- }, true},
		"too few imports":             {func(r *result) { r.Imports-- }, true},
		"too few branches":            {func(r *result) { r.Branches-- }, true},
		"too few erasures":            {func(r *result) { r.Erased-- }, true},
		"too few queues drained":      {func(r *result) { r.Queues-- }, true},
		"too few faults meanwhile":    {func(r *result) { r.QueueFaults-- }, true},
	} {
		a := enough()
		c.change(&a.result)
		a.checkMinimums(time.Minute)
		if got := a.notes.count(tooFew) > 0; got != c.fails {
			t.Errorf("%s: %v", name, a.notes.violations)
		}
	}
}
