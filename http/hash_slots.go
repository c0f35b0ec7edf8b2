package http

import (
	"container/list"
	"context"
	"sync"
	"time"

	"turnstone/protocol"
)

// Password hashes that run at a time, since each takes a core and 19 MiB, and who may wait for a slot. With 50 ms for a
// hash, the last of maxHashWaiters waits 1.6 s on two cores.
const (
	hashesAtOnce   = 2
	hashPatience   = 2 * time.Second
	maxHashWaiters = 64 // of known callers, and as many of others
	maxHashesOfOne = 4  // running and waiting, of one key
)

// hasher is for whom a password is hashed. One key has at most one slot at a time, so that one address cannot fill them;
// known callers (a session, or a device that signed in before) go before others, so that no crowd keeps them out.
type hasher struct {
	key   string // a network, a device or a session
	known bool
}

// hashSlots hands the slots out.
type hashSlots struct {
	mu      sync.Mutex
	free    int             // guarded by mu
	running map[string]bool // guarded by mu: the keys that have a slot
	of      map[string]int  // guarded by mu: running and waiting, by key
	known   *list.List      // guarded by mu: of *hashWaiter, the longest waiting first
	others  *list.List      // guarded by mu
}

type hashWaiter struct {
	key  string
	turn chan struct{} // closed when the slot is its own
}

func newHashSlots() *hashSlots {
	return &hashSlots{free: hashesAtOnce, running: map[string]bool{}, of: map[string]int{}, known: list.New(), others: list.New()}
}

// acquire waits for a slot, for at most hashPatience. Over the bounds it refuses at once.
func (h *hashSlots) acquire(ctx context.Context, who hasher) (release func(), err error) {
	waiter, queue, place, err := h.enter(who)
	if err != nil {
		return nil, err
	}
	release = sync.OnceFunc(func() { h.leave(who.key) })
	ctx, cancel := context.WithTimeout(ctx, hashPatience)
	defer cancel()
	select {
	case <-waiter.turn:
		return release, nil
	case <-ctx.Done():
	}
	if h.giveUp(waiter, queue, place) {
		return nil, errTooManySignIns()
	}
	return release, nil // it was given its slot meanwhile
}

func (h *hashSlots) enter(who hasher) (*hashWaiter, *list.List, *list.Element, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := h.others
	if who.known {
		queue = h.known
	}
	switch {
	case h.of[who.key] >= maxHashesOfOne:
		return nil, nil, nil, &protocol.Error{Code: protocol.CodeRateLimited, Detail: "Too many sign-ins at once. Try again.", RetryAfter: retryDefault}
	case queue.Len() >= maxHashWaiters:
		return nil, nil, nil, errTooManySignIns()
	}
	h.of[who.key]++
	waiter := &hashWaiter{key: who.key, turn: make(chan struct{})}
	place := queue.PushBack(waiter)
	h.assign()
	return waiter, queue, place, nil
}

// assign gives free slots to those who have waited longest among the known, then among the others, passing over a key
// that has a slot; with mu locked.
func (h *hashSlots) assign() {
	for _, queue := range []*list.List{h.known, h.others} {
		for place := queue.Front(); place != nil && h.free > 0; {
			next := place.Next()
			if waiter, _ := place.Value.(*hashWaiter); !h.running[waiter.key] {
				queue.Remove(place)
				h.free--
				h.running[waiter.key] = true
				close(waiter.turn)
			}
			place = next
		}
	}
}

func (h *hashSlots) leave(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free++
	delete(h.running, key)
	h.forget(key)
	h.assign()
}

// giveUp takes a waiter out; false when it has its slot already.
func (h *hashSlots) giveUp(waiter *hashWaiter, queue *list.List, place *list.Element) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-waiter.turn:
		return false
	default:
	}
	queue.Remove(place)
	h.forget(waiter.key)
	return true
}

// forget counts one less of a key; with mu locked.
func (h *hashSlots) forget(key string) {
	if h.of[key]--; h.of[key] == 0 {
		delete(h.of, key)
	}
}

func errTooManySignIns() error {
	return protocol.Errorf(protocol.CodeUnavailable, "Too many sign-ins at once. Try again.")
}
