package shell

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/protocol/clocktest"
)

func TestALimitedNumberOfWorkersExecutesEveryRun(t *testing.T) {
	d := NewDispatcher(runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	var running, ran atomic.Int32
	const each, posters = 500, 8
	all.Add(2 * each * posters)
	for range posters {
		go func() {
			for range each {
				d.Schedule(func() {
					if n := int(running.Add(1)); n > d.limit {
						t.Errorf("%d runs at the same time, want at most %d", n, d.limit)
					}
					ran.Add(1)
					d.Schedule(func() { // from within a run, like an actor that sends to another one
						ran.Add(1)
						all.Done()
					})
					running.Add(-1)
					all.Done()
				})
			}
		}()
	}
	all.Wait()
	d.Close()
	if got := ran.Load(); got != 2*each*posters {
		t.Errorf("%d of %d runs were executed", got, 2*each*posters)
	}
	if d.workers > d.limit {
		t.Errorf("there are %d workers, want at most %d", d.workers, d.limit)
	}
	late := make(chan struct{})
	d.Schedule(func() { close(late) })
	select {
	case <-late:
	case <-time.After(clocktest.HangGuard):
		t.Error("a run that was scheduled after close was not executed: its messages must become dead letters")
	}
}

// A dispatcher that is never idle must not grow with the number of runs, and must keep their order.
func TestADispatcherThatIsNeverIdleDoesNotGrow(t *testing.T) {
	d := NewDispatcher(runtime.GOMAXPROCS(0))
	d.workers = d.limit // no worker starts: the test itself takes and executes the runs
	const waiting, all, most = 10, 20_000, 64
	var ran []int
	for i := range all {
		d.Schedule(func() { ran = append(ran, i) })
		if i >= waiting {
			d.take()()
		}
		if d.ready.Cap() > most {
			t.Fatalf("the queue has room for %d runs, and %d wait", d.ready.Cap(), waiting)
		}
	}
	for i, n := range ran {
		if i != n {
			t.Fatalf("run %d was executed at position %d", n, i)
		}
	}
}
