// Package recent keeps the values that were used last, within a limit. It loads no value: its callers do, and they
// remove what is no longer true.
package recent

import (
	"container/list"
	"sync"
	"time"
)

// Cache maps keys to the values that were used last. Their sizes, in a unit that the caller chooses, have at most a given
// sum. Its methods may be called from any goroutine.
type Cache[K comparable, V any] struct {
	most int
	idle time.Duration

	mu    sync.Mutex
	byKey map[K]*list.Element // guarded by mu
	order list.List           // of *entry[K, V], the last one used first; guarded by mu
	size  int                 // guarded by mu
	timer *time.Timer         // removes what was not used for idle; guarded by mu; nil: nothing is kept, or idle is 0
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
	used  time.Time
}

// New returns an empty cache for values whose sizes have a sum of at most most. A value that was not used for idle is
// removed; 0: only others replace it.
func New[K comparable, V any](most int, idle time.Duration) *Cache[K, V] {
	return &Cache[K, V]{most: most, idle: idle, byKey: map[K]*list.Element{}}
}

// Get returns the value of a key, and counts as its use.
func (c *Cache[K, V]) Get(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[key]
	if element == nil {
		return value, false
	}
	return c.use(element).value, true
}

// GetOrPut returns the value of a key. If it has none, that is made, with a size of 1.
func (c *Cache[K, V]) GetOrPut(key K, made func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.byKey[key]; element != nil {
		return c.use(element).value
	}
	value := made()
	c.put(key, value, 1)
	return value
}

// Put sets the value of a key, and removes those that were not used for the longest time until all fit. A value of more than
// half of the limit is not kept, nor is the one that it replaces.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.byKey[key]; element != nil {
		c.remove(element)
	}
	if size <= c.most/2 {
		c.put(key, value, size)
	}
}

func (c *Cache[K, V]) use(element *list.Element) *entry[K, V] {
	c.order.MoveToFront(element)
	used := element.Value.(*entry[K, V]) // the list has nothing else
	if c.idle > 0 {
		used.used = time.Now()
	}
	return used
}

func (c *Cache[K, V]) put(key K, value V, size int) {
	c.byKey[key] = c.order.PushFront(&entry[K, V]{key: key, value: value, size: size})
	c.use(c.byKey[key])
	for c.size += size; c.size > c.most; {
		c.remove(c.order.Back())
	}
	if c.idle > 0 && c.timer == nil {
		c.timer = time.AfterFunc(c.idle, c.expire)
	}
}

func (c *Cache[K, V]) remove(element *list.Element) {
	removed := c.order.Remove(element).(*entry[K, V]) // the list has nothing else
	delete(c.byKey, removed.key)
	c.size -= removed.size
}

// expire removes what was not used for idle, and comes back when the next value may have to go.
func (c *Cache[K, V]) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for element := c.order.Back(); element != nil; element = c.order.Back() {
		left := c.idle - time.Since(element.Value.(*entry[K, V]).used)
		if left > 0 {
			c.timer.Reset(left)
			return
		}
		c.remove(element)
	}
	c.timer = nil
}
