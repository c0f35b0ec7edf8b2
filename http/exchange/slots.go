package exchange

import "sync"

// SlotCounter counts the slots that each holder has in use: an account, or an address. They are for streams, requests or
// downloads.
type SlotCounter[K comparable] struct {
	mu   sync.Mutex
	open map[K]int // guarded by mu
	all  int       // guarded by mu: the sum of open
}

// Open returns the number of slots in use.
func (c *SlotCounter[K]) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Take takes a slot for a holder, unless it already has limit slots in use, and reports whether it did. The caller
// releases the slot with Release.
func (c *SlotCounter[K]) Take(holder K, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[K]int{}
	}
	if c.open[holder] >= limit {
		return false
	}
	c.open[holder]++
	c.all++
	return true
}

// Release returns a slot that Take has taken.
func (c *SlotCounter[K]) Release(holder K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.open[holder]--; c.open[holder] <= 0 {
		delete(c.open, holder)
	}
}
