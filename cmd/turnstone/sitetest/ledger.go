package sitetest

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/providers/embedded/embeddedtest"
)

// suite holds the totals of all ledgers of the test process.
var suite struct{ unexpected, planned atomic.Int64 }

// RunMain is the body of the TestMain of a suite of clients. It prints how many refusals the clients met.
func RunMain(m embeddedtest.Runner) {
	code := embeddedtest.Main(m).Run()
	fmt.Printf("clients: %d unexpected refusals, errors and broken connections; %d in planned faults\n", suite.unexpected.Load(), suite.planned.Load())
	os.Exit(code)
}

// Ledger records the failures that the clients of one test met outside of planned faults: refusals (503), errors (other
// 5xx) and broken connections. Each of them fails the test.
//
// Concurrency: its methods may be called from any goroutine.
type Ledger struct {
	of    string // named in the findings: what the clients used
	mu    sync.Mutex
	plans []*plan  // guarded by mu
	found []string // guarded by mu
}

// plan is a fault that the test causes itself. until is zero while the fault lasts.
type plan struct {
	from, until time.Time
}

// NewLedger returns a ledger that reports its findings when the test ends.
func NewLedger(t testing.TB) *Ledger {
	t.Helper()
	return NewLedgerOf(t, "the service")
}

// NewLedgerOf is NewLedger for one of several servers, which the findings name.
func NewLedgerOf(t testing.TB, server string) *Ledger {
	l := &Ledger{of: server}
	t.Cleanup(func() { l.report(t) })
	return l
}

// reporter is the part of testing.TB that a ledger needs.
type reporter interface {
	Helper()
	Errorf(format string, arguments ...any)
}

func (l *Ledger) report(t reporter) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.found {
		t.Errorf("no fault of %s was planned, and %s", l.of, one)
	}
	l.found = nil
}

// Plan declares a fault before it happens. Until over is called, refusals and broken connections are expected; errors
// that no contract allows are not.
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

// Planned reports whether a planned fault was active at any time since from.
func (l *Ledger) Planned(from time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.plans, func(p *plan) bool { return p.until.IsZero() || p.until.After(from) })
}

// Count records a request that started at began and ended with a status, or with err because its connection broke.
func (l *Ledger) Count(request string, began time.Time, status int, err error) {
	switch {
	case err == nil && status < 500:
	case l.Planned(began) && (err != nil || status == 503):
		suite.planned.Add(1)
	default:
		text := fmt.Sprintf("%s returned %d after %s", request, status, time.Since(began).Round(time.Millisecond))
		if err != nil {
			text = fmt.Sprintf("%s broke after %s: %v", request, time.Since(began).Round(time.Millisecond), err)
		}
		suite.unexpected.Add(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.found = append(l.found, text)
	}
}
