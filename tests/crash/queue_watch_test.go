package crash

import (
	"sync"
	"time"

	"turnstone/protocol"
)

// queueWatch records what the clients of a round see of its queues.
//
// Concurrency: its methods may be called from any goroutine.
type queueWatch struct {
	mu      sync.Mutex
	waits   map[queuedSince]time.Duration // guarded by mu: when the item was last seen queued
	drained map[string]bool               // guarded by mu: conversations whose queue had at least queueItems items and was seen empty
}

// queuedSince is an item and the time since when it is queued without interruption.
type queuedSince struct {
	item protocol.FollowUpID
	from time.Duration
}

func newQueueWatch() *queueWatch {
	return &queueWatch{waits: map[queuedSince]time.Duration{}, drained: map[string]bool{}}
}

func (w *queueWatch) sawQueued(item protocol.FollowUpID, from, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[queuedSince{item, from}] = at
}

func (w *queueWatch) sawEmpty(conversation string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained[conversation] = true
}

// drainedQueues returns the number of queues that were drained.
func (w *queueWatch) drainedQueues() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.drained)
}

// hits returns the number of faults that began while an item was queued. An item counts only until a client saw it for
// the last time, so there may have been more.
func (w *queueWatch) hits(faults []fault) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range faults {
		for wait, until := range w.waits {
			if wait.from < f.At && f.At < until {
				n++
				break
			}
		}
	}
	return n
}
