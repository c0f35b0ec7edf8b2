package crash

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

// A kind that is rare, or that met a service with nothing to break, is owed until it happened.
func TestEveryKindOfFaultComesInARound(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.Soon)
	defer cancel()
	tried := map[string]int{}
	kind := func(name string, weight, idle int) way {
		return way{name, weight, func(*injector, context.Context, *rand.Rand) (bool, error) {
			tried[name]++
			if tried["rare"] > 0 && tried["idle at first"] > 3 {
				cancel()
			}
			return tried[name] > idle, nil
		}}
	}
	i := &injector{clock: func() time.Duration { return 0 }}
	l := lane{"a lane", 0, time.Nanosecond, []way{kind("common", 1_000_000_000, 0), kind("rare", 1, 0), kind("idle at first", 1, 3)}}
	if err := i.run(ctx, ctx, l, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"common", "rare", "idle at first"} {
		if !slices.ContainsFunc(i.faults, func(f fault) bool { return f.Kind == name }) {
			t.Errorf("%q did not come in %v tries", name, tried)
		}
	}
}

// A round whose time is over injects the kinds that are missing, and nothing else; not longer than its overtime.
func TestKindsThatAreMissingFollowAfterARound(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	overtime, cancel := context.WithTimeout(t.Context(), sitetest.Soon)
	defer cancel()
	tried := map[string]int{}
	kind := func(name string, weight, idle int) way {
		return way{name, weight, func(*injector, context.Context, *rand.Rand) (bool, error) {
			tried[name]++
			if name == "never" && tried[name] > 3 {
				cancel()
			}
			return tried[name] > idle, nil
		}}
	}
	for _, c := range []struct {
		ways []way
		want map[string]int
	}{
		{[]way{kind("common", 1_000_000_000, 0), kind("rare", 1, 0), kind("idle at first", 1, 3)}, map[string]int{"common": 1, "rare": 1, "idle at first": 4}},
		{[]way{kind("never", 1, 1000)}, map[string]int{"never": 4}},
	} {
		clear(tried)
		i := &injector{clock: func() time.Duration { return 0 }}
		if err := i.run(ended, overtime, lane{"a lane", 0, time.Nanosecond, c.ways}, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(tried, c.want) {
			t.Errorf("tried %v, want %v", tried, c.want)
		}
	}
}

func TestARunInWhichTooLittleHappenedFails(t *testing.T) {
	enough := func() *attack {
		a := &attack{t: t, notes: newNotes(), result: result{Faults: map[string]int{}, Acknowledged: leastAcknowledged, Adopted: leastTakeovers}}
		for _, l := range lanes {
			for _, w := range l.ways {
				a.result.Faults[w.name] = leastEach
			}
		}
		return a
	}
	for name, c := range map[string]struct {
		change func(*result)
		fails  bool
	}{
		"enough":                {func(*result) {}, false},
		"a kind never came":     {func(r *result) { delete(r.Faults, "SIGSTOP until taken over, SIGCONT") }, true},
		"too few acknowledged":  {func(r *result) { r.Acknowledged-- }, true},
		"too few were taken on": {func(r *result) { r.Adopted-- }, true},
	} {
		a := enough()
		c.change(&a.result)
		a.checkMinimums(time.Minute)
		if got := a.notes.count(tooFew) > 0; got != c.fails {
			t.Errorf("%s: %v", name, a.notes.violations)
		}
	}
}
