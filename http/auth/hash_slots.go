package auth

import (
	"container/list"
	"context"
	"sync"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// Limits of the password hashes that run or wait at the same time. A hash takes a core and 19 MiB. If it takes 50 ms,
// the last of maxHashWaiters waits 1.6 s on two cores.
const (
	hashesAtOnce   = 2
	maxHashWaiters = 64 // known callers, and as many others
	maxHashesOfOne = 4  // running and waiting, per key
)

// hashWaitTimeout is about three times the time in which a full queue is served, because the host computer may do other work too.
var hashWaitTimeout = timelimit.Of(5 * time.Second)

// hashCaller identifies the caller for whom a password is hashed. A key has at most one slot at a time, so that one
// address cannot take all slots. Known callers (a session, or a device that has signed in before) get slots before
// others, so that many others cannot block them.
type hashCaller struct {
	key   string // a network, a device or a session
	known bool
}

// hashSlots assigns the slots for hashing.
type hashSlots struct {
	mu         sync.Mutex
	free       int             // guarded by mu
	running    map[string]bool // guarded by mu: the keys that have a slot
	countByKey map[string]int  // guarded by mu: running and waiting, by key
	known      *list.List      // guarded by mu: of *hashWaiter, the longest waiting first
	others     *list.List      // guarded by mu
}

type hashWaiter struct {
	key      string
	assigned chan struct{} // closed when the waiter has a slot
}

func newHashSlots() *hashSlots {
	return &hashSlots{free: hashesAtOnce, running: map[string]bool{}, countByKey: map[string]int{}, known: list.New(), others: list.New()}
}

// acquire waits for a slot, for at most hashWaitTimeout. It returns an error at once if the key or the queue has
// reached its limit. Its errors are protocol.CodeRateLimited: what is missing is the turn of the caller, not a part of the service.
func (h *hashSlots) acquire(ctx context.Context, caller hashCaller) (release func(), err error) {
	waiter, queue, element, err := h.enter(caller)
	if err != nil {
		return nil, err
	}
	release = sync.OnceFunc(func() { h.leave(caller.key) })
	ctx, cancel := context.WithTimeout(ctx, hashWaitTimeout)
	defer cancel()
	select {
	case <-waiter.assigned:
		return release, nil
	case <-ctx.Done():
	}
	if h.giveUp(waiter, queue, element) {
		return nil, errTooManySignIns(queueRetrySeconds)
	}
	return release, nil // the waiter got its slot in the meantime
}

func (h *hashSlots) enter(caller hashCaller) (*hashWaiter, *list.List, *list.Element, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := h.others
	if caller.known {
		queue = h.known
	}
	switch {
	case h.countByKey[caller.key] >= maxHashesOfOne:
		return nil, nil, nil, errTooManySignIns(1)
	case queue.Len() >= maxHashWaiters:
		return nil, nil, nil, errTooManySignIns(queueRetrySeconds)
	}
	h.countByKey[caller.key]++
	waiter := &hashWaiter{key: caller.key, assigned: make(chan struct{})}
	element := queue.PushBack(waiter)
	h.assign()
	return waiter, queue, element, nil
}

// assign gives free slots to known callers, then to others, in the order of their arrival. It skips a key that has a
// slot. mu must be held.
func (h *hashSlots) assign() {
	for _, queue := range []*list.List{h.known, h.others} {
		for element := queue.Front(); element != nil && h.free > 0; {
			next := element.Next()
			if waiter, _ := element.Value.(*hashWaiter); !h.running[waiter.key] {
				queue.Remove(element)
				h.free--
				h.running[waiter.key] = true
				close(waiter.assigned)
			}
			element = next
		}
	}
}

func (h *hashSlots) leave(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free++
	delete(h.running, key)
	h.decrement(key)
	h.assign()
}

// giveUp removes a waiter from its queue. It returns false if the waiter already has a slot.
func (h *hashSlots) giveUp(waiter *hashWaiter, queue *list.List, element *list.Element) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-waiter.assigned:
		return false
	default:
	}
	queue.Remove(element)
	h.decrement(waiter.key)
	return true
}

// decrement decrements the count of a key. mu must be held.
func (h *hashSlots) decrement(key string) {
	if h.countByKey[key]--; h.countByKey[key] == 0 {
		delete(h.countByKey, key)
	}
}

// queueRetrySeconds is about the time in which a full queue is served.
const queueRetrySeconds = 2

func errTooManySignIns(retrySeconds int) error {
	return &protocol.Error{Code: protocol.CodeRateLimited, Detail: "Too many sign-ins at once. Try again.", RetryAfter: retrySeconds}
}
