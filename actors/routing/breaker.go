package routing

import (
	"sync"
	"time"
)

const (
	// failuresToOpen is the number of failures in succession after which a route is not used for a time.
	failuresToOpen = 3
	// openFor is how long a route is not used. Then one call tries it.
	openFor = 30 * time.Second
)

// Key identifies a route.
type Key struct{ Name, Model string }

// Key returns the identity of a route.
func (r *Route) Key() Key { return Key{r.Name, r.Model} }

// Breakers are the circuit breakers of the routes of a node. The zero value is ready to use. There is one entry for each
// route that failed.
type Breakers struct {
	mu     sync.Mutex
	failed map[Key]*breaker // guarded by mu
}

type breaker struct {
	failures int
	until    time.Time // the route is not used before this time
}

// Choose returns the index of the first of a profile's routes, from the index from, that may be used now; -1 if there is
// none. When the time of a route has passed, one call gets it. Other calls get it after Succeeded, or after openFor.
func (b *Breakers) Choose(routes []Route, from int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := from; i < len(routes); i++ {
		known := b.failed[routes[i].Key()]
		if known == nil || known.failures < failuresToOpen {
			return i
		}
		if !now.Before(known.until) {
			known.until = now.Add(openFor)
			return i
		}
	}
	return -1
}

// Failed notes that a call of a route failed. A lasting failure, which no repetition can mend, opens the breaker at once.
func (b *Breakers) Failed(route Route, lasting bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.failed[route.Key()]
	if known == nil {
		known = &breaker{}
		if b.failed == nil {
			b.failed = map[Key]*breaker{}
		}
		b.failed[route.Key()] = known
	}
	known.failures++
	if lasting {
		known.failures = max(known.failures, failuresToOpen)
	}
	known.until = now.Add(openFor)
}

// Succeeded notes that a route answered.
func (b *Breakers) Succeeded(route Route) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failed, route.Key())
}
