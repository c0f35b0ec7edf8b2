package clocktest

import (
	"sync"
	"testing"
	"time"
)

// Changes wakes a test that waits for a condition whenever the condition may have changed. Its zero value is ready to use, and any
// goroutine may call its methods.
type Changes struct {
	mu    sync.Mutex
	next  chan struct{}  // guarded by mu: closed by the next Notify; nil: no test waits
	ended map[string]int // guarded by mu: jobs, by their kinds
}

// Notify wakes the tests that wait.
func (c *Changes) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Job is Notify for a job that has ended; see jobs.Observe.
func (c *Changes) Job(kind string, _ time.Duration, _ error) {
	defer c.Notify()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = map[string]int{}
	}
	c.ended[kind]++
}

// Jobs returns the number of runs of a kind of job that have ended.
func (c *Changes) Jobs(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[kind]
}

// Await waits until a condition holds. It checks the condition at once, and after each Notify.
func (c *Changes) Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.After(HangGuard)
	for {
		c.mu.Lock()
		if c.next == nil {
			c.next = make(chan struct{})
		}
		next := c.next
		c.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-next:
		case <-late:
			t.Fatal("timed out waiting until " + what)
		}
	}
}
