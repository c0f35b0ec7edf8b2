package sitetest

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/cmd/machine"
	"turnstone/providers/embedded/embeddedtest"
)

// Meter measures this machine as long as the test process runs.
var Meter = sync.OnceValue(machine.Start)

// suite counts for all ledgers of the test process.
var suite struct{ unexpected, planned atomic.Int64 }

// RunMain is the body of the TestMain of a suite of clients. It prints what the clients were refused.
func RunMain(m embeddedtest.Runner) {
	code := embeddedtest.Main(m).Run()
	fmt.Printf("clients: %d unexpected refusals, errors and cuts; %d in planned faults\n", suite.unexpected.Load(), suite.planned.Load())
	os.Exit(code)
}

// Ledger counts what the clients of one test met although no fault was planned: refusals (503), errors (other 5xx), and
// connections that broke. Each of them fails the test; on a machine outside its bounds it is reported as inconclusive. It
// may be used from any goroutine.
type Ledger struct {
	mu    sync.Mutex
	plans []*plan   // guarded by mu
	found []finding // guarded by mu
}

// plan is a fault of the test's own; until is zero while it lasts.
type plan struct {
	from, until time.Time
}

type finding struct {
	text    string
	machine machine.Measurement
}

// NewLedger reports when the test ends.
func NewLedger(t testing.TB) *Ledger {
	Meter()
	l := &Ledger{}
	t.Cleanup(func() { l.report(t) })
	return l
}

func (l *Ledger) report(t machine.Reporter) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.found {
		one.machine.Judge(t, "no fault was planned, and "+one.text)
	}
	l.found = nil
}

// Plan declares a fault before it happens. Until over is called, refusals and cuts are part of the test; errors that no
// contract allows are not.
func (l *Ledger) Plan() (over func()) {
	p := &plan{from: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plans = append(l.plans, p)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		p.until = time.Now()
	}
}

// Planned reports whether a fault was planned at some time since from.
func (l *Ledger) Planned(from time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.plans, func(p *plan) bool { return p.until.IsZero() || p.until.After(from) })
}

// Count notes a request that began at a time and ended with a status, or with none because its connection broke.
func (l *Ledger) Count(request string, began time.Time, status int, err error) {
	switch {
	case err == nil && status < 500:
	case l.Planned(began) && (err != nil || status == 503):
		suite.planned.Add(1)
	default:
		text := fmt.Sprintf("%s was answered %d after %s", request, status, time.Since(began).Round(time.Millisecond))
		if err != nil {
			text = fmt.Sprintf("%s broke after %s: %v", request, time.Since(began).Round(time.Millisecond), err)
		}
		suite.unexpected.Add(1)
		measured := Meter().Between(began, time.Now())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.found = append(l.found, finding{text, measured})
	}
}
