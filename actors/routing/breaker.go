package routing

import (
	"maps"
	"sync"
	"time"

	"turnstone/protocol"
)

const (
	// failuresToOpen is the number of failures in succession after which a route is not used for a time.
	failuresToOpen = 3
	// openFor is how long a route is not used. Then one call tries it.
	openFor = 30 * time.Second
	// maxBreakers limits the breakers. One more is not remembered, unless the time of others has passed.
	maxBreakers = 4096
)

// Key identifies a route.
type Key struct{ Name, Model string }

// Key returns the identity of a route.
func (r *Route) Key() Key { return Key{r.Name, r.Model} }

// Breakers are the circuit breakers of the routes of a node. The zero value is ready to use.
//
// What a provider does not answer may be its fault or that of the request: one that is too long for it also times out. So
// failures of one account open the route's breaker for this account only. Without a success in between, those of several
// accounts open it for all; the failures of the account that failed first count as one there.
type Breakers struct {
	mu     sync.Mutex
	failed map[breakerKey]*breaker // guarded by mu; of routes that failed
}

// breakerKey is a route and an account or, with the zero account, all.
type breakerKey struct {
	route   Key
	account protocol.AccountID
}

type breaker struct {
	failures int
	first    protocol.AccountID // the account whose call failed first
	until    time.Time          // the route is not used before this time
}

func (b *breaker) open() bool { return b != nil && b.failures >= failuresToOpen }

// Choose returns the index of the first of a profile's routes, from the index from, that the account may use now; -1 if
// there is none. When the time of a route has passed, one call gets it. Other calls get it after Succeeded, or after openFor.
func (b *Breakers) Choose(routes []Route, from int, account protocol.AccountID, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := from; i < len(routes); i++ {
		own, all := b.failed[breakerKey{routes[i].Key(), account}], b.failed[breakerKey{route: routes[i].Key()}]
		forOne, forAll := own.open(), all.open()
		if forOne && now.Before(own.until) || forAll && now.Before(all.until) {
			continue
		}
		if forOne {
			own.until = now.Add(openFor)
		}
		if forAll {
			all.until = now.Add(openFor)
		}
		return i
	}
	return -1
}

// Failed notes that a call of a route failed. A lasting failure, which no repetition can repair, opens the breaker for all
// accounts at once.
func (b *Breakers) Failed(route Route, account protocol.AccountID, lasting bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range []breakerKey{{route: route.Key()}, {route.Key(), account}} {
		known := b.failed[key]
		if known == nil {
			if known = b.add(key, now); known == nil {
				continue
			}
			known.first = account
		}
		if key.account == account || known.first != account || known.failures == 0 {
			known.failures++
		}
		if lasting {
			known.failures = max(known.failures, failuresToOpen)
		}
		known.until = now.Add(openFor)
	}
}

// add adds a breaker. It returns nil if there are too many.
func (b *Breakers) add(key breakerKey, now time.Time) *breaker {
	if b.failed == nil {
		b.failed = map[breakerKey]*breaker{}
	}
	if len(b.failed) >= maxBreakers {
		maps.DeleteFunc(b.failed, func(_ breakerKey, known *breaker) bool { return now.After(known.until) })
	}
	if len(b.failed) >= maxBreakers {
		return nil
	}
	b.failed[key] = &breaker{}
	return b.failed[key]
}

// Succeeded notes that a route answered a call of an account.
func (b *Breakers) Succeeded(route Route, account protocol.AccountID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failed, breakerKey{route: route.Key()})
	delete(b.failed, breakerKey{route.Key(), account})
}
