package turn

import (
	"context"
	"sync"
	"time"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

// waiters are the wakers of readers and commands that wait for a turn to run on this node. Its zero value is ready to use, and
// any goroutine may call its methods.
type waiters struct {
	mu     sync.Mutex
	wakers map[protocol.TurnID]map[tail.Waker]struct{} // guarded by mu
}

// wake notifies the wakers of a turn, and removes them, because the turn now runs on this node, or on another one.
func (w *waiters) wake(turn protocol.TurnID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waker := range w.wakers[turn] {
		waker.Wake()
	}
	delete(w.wakers, turn)
}

// add registers a waker; remove removes it.
func (w *waiters) add(turn protocol.TurnID, waker tail.Waker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wakers == nil {
		w.wakers = map[protocol.TurnID]map[tail.Waker]struct{}{}
	}
	if w.wakers[turn] == nil {
		w.wakers[turn] = map[tail.Waker]struct{}{}
	}
	w.wakers[turn][waker] = struct{}{}
}

func (w *waiters) remove(turn protocol.TurnID, waker tail.Waker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wakers[turn], waker)
	if len(w.wakers[turn]) == 0 {
		delete(w.wakers, turn)
	}
}

// await registers a waker that is woken when the turn starts to run here; waiting.remove removes it. It returns false, without
// registering, when the turn already runs here with a stream other than known.
func (h *Host) await(account protocol.AccountID, turn protocol.TurnID, known *tail.Stream, waker tail.Waker) bool {
	h.waiting.add(turn, waker) // before the actor is looked up: one that starts in between wakes it
	if running := h.Find(account, turn); running != nil && running.Work.stream != known {
		h.waiting.remove(turn, waker)
		return false
	}
	return true
}

// awaitRunning waits until the turn runs on this node with a stream other than known, or until atMost has passed. It returns
// ctx's error when ctx ends first.
func (h *Host) awaitRunning(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, known *tail.Stream, atMost time.Duration) error {
	running := make(tail.Signal, 1)
	if !h.await(account, turn, known, running) {
		return nil
	}
	defer h.waiting.remove(turn, running)
	timer := time.AfterFunc(atMost, running.Wake)
	defer timer.Stop()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
