package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verdicts is a Reporter that records its calls.
type verdicts struct{ failed, logged []string }

func (*verdicts) Helper()                     {}
func (*verdicts) Name() string                { return "TestOfATimeLimit" }
func (v *verdicts) Errorf(f string, a ...any) { v.failed = append(v.failed, fmt.Sprintf(f, a...)) }
func (v *verdicts) Logf(f string, a ...any)   { v.logged = append(v.logged, fmt.Sprintf(f, a...)) }

func TestALimitThatWasMissedFailsUnlessTheMachineWasSlow(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	began := time.Unix(1000, 0)
	at := func(n int) time.Time { return began.Add(time.Duration(n) * time.Millisecond) }
	slow := MostDelay + time.Millisecond
	for name, c := range map[string]struct {
		took                 time.Duration
		slowAt               int // ms; when a thread was late
		computeAt            int // ms; when a computation was slow; 0: never
		failed, inconclusive bool
	}{
		"in time":                             {took: 900 * time.Millisecond, slowAt: 100},
		"late on a good machine":              {took: 1100 * time.Millisecond, slowAt: -1, failed: true},
		"late on a machine that was slow":     {took: 1100 * time.Millisecond, slowAt: 100, inconclusive: true},
		"late, the machine was slow at first": {took: 1100 * time.Millisecond, slowAt: -500, failed: true},
		"late, the machine was slow later":    {took: 1100 * time.Millisecond, slowAt: 1200, failed: true},
		"late, computations were slow":        {took: 1100 * time.Millisecond, slowAt: -1, computeAt: 100, inconclusive: true},
	} {
		var m Meter
		m.delays.add(sample{at(50), at(51), time.Millisecond})
		if c.slowAt != -1 {
			m.delays.add(sample{at(c.slowAt), at(c.slowAt).Add(slow), slow})
		}
		if c.computeAt != 0 {
			m.computations.add(sample{at(c.computeAt), at(c.computeAt).Add(2 * MostCompute), 2 * MostCompute})
		}
		var v verdicts
		m.Check(&v, "a refusal", began, c.took, time.Second)
		if (len(v.failed) > 0) != c.failed || (len(v.logged) > 0) != c.inconclusive {
			t.Errorf("%s: failed %q, logged %q", name, v.failed, v.logged)
		}
	}
	text, err := os.ReadFile(noticeFile)
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), "inconclusive: TestOfATimeLimit: a refusal took 1.1s, the limit is 1s") {
		t.Errorf("the notices are %q (%v)", text, err)
	}
}

func TestAMeterMeasuresWhileItRuns(t *testing.T) {
	m := Start()
	began := time.Now()
	for deadline := time.After(time.Minute); ; {
		m.mu.Lock()
		enough := len(m.delays.ring) > 2 && len(m.roundTrips.ring) > 2 && len(m.computations.ring) > 2
		m.mu.Unlock()
		if enough {
			break
		}
		select {
		case <-deadline:
			t.Fatal("nothing was measured")
		case <-time.After(time.Millisecond):
		}
	}
	m.Stop()
	if got := m.Between(began, time.Now()); got.Samples == 0 || got.RoundTrip <= 0 || got.Compute < computation {
		t.Errorf("measured %+v", got)
	}
	if got := m.Between(began.Add(-time.Hour), began.Add(-time.Minute)); got.Samples != 0 {
		t.Errorf("samples from before the start: %+v", got)
	}
}

func TestAMachineIsSlowOnAverageNotForAMoment(t *testing.T) {
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		took []time.Duration
		mean time.Duration
		slow bool
	}{
		"nothing measured": {nil, 0, false},
		"one slow moment":  {[]time.Duration{computation, computation, computation, 5 * computation}, 2 * computation, false},
		"slow throughout":  {[]time.Duration{4 * computation, 3 * computation, 5 * computation}, 4 * computation, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Meter{}
			m.computations.add(sample{began.Add(-time.Minute), began, time.Hour}) // before the range
			for i, took := range c.took {
				from := began.Add(time.Duration(i) * time.Second)
				m.computations.add(sample{from, from.Add(took), took})
			}
			if mean, slow := m.SlowFor(began, began.Add(time.Minute)); mean != c.mean || slow != c.slow {
				t.Errorf("mean %s, slow: %t", mean, slow)
			}
		})
	}
}
