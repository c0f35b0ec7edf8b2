package node

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Host runs the work of one kind on a node, under its lease. Package host implements most of it.
type Host interface {
	// Round claims and adopts work of nodes that have ended, and own work that no actor runs. more reports that there may be
	// other work to claim. The node calls it after each renewal of its lease, unless it drains, from one goroutine. It must
	// not take longer than ctx.
	Round(ctx context.Context) (more bool, err error)
	// Claim claims and adopts at most limit pieces of work of nodes that have ended. The node calls it between two rounds.
	Claim(ctx context.Context, limit int) (more bool, err error)
	// StartDrain refuses new work.
	StartDrain()
	// Drain gives the work in progress until grace to end, and ends the rest at a persisted boundary. It returns the number
	// of pieces of work that other nodes can take over now.
	Drain(ctx context.Context, grace time.Duration) (released int, err error)
	// Isolate notes whether the node is isolated (see Node.Isolated). While it is, the host sends the readers of its work to another
	// node. The node calls it after each round, also after a failed one, from the same goroutine as Round.
	Isolate(isolated bool)
	// Abandon ends all work at once, because the node was declared dead.
	Abandon()
	// Stop ends all work at once and waits for its end. Another node or the next process continues it.
	Stop()
}

// hosts are the hosts of a node.
type hosts []Host

// round lets all hosts claim and adopt. It returns those that may claim more.
func (all hosts) round(ctx context.Context) (more hosts, err error) {
	return all.each(func(h Host) (bool, error) { return h.Round(ctx) })
}

// claim lets all hosts claim. It returns those that may claim more.
func (all hosts) claim(ctx context.Context, limit int) (more hosts, err error) {
	return all.each(func(h Host) (bool, error) { return h.Claim(ctx, limit) })
}

func (all hosts) each(claim func(Host) (bool, error)) (more hosts, err error) {
	for _, h := range all {
		others, failed := claim(h)
		if err = errors.Join(err, failed); others {
			more = append(more, h)
		}
	}
	return more, err
}

func (all hosts) startDrain() {
	for _, h := range all {
		h.StartDrain()
	}
}

// drain drains all hosts at the same time. announce is called with what each host has released, as soon as it has.
func (all hosts) drain(ctx context.Context, grace time.Duration, announce func(released int)) (released int, err error) {
	var mu sync.Mutex
	all.atOnce(func(h Host) {
		count, failed := h.Drain(ctx, grace)
		announce(count)
		mu.Lock()
		defer mu.Unlock()
		released, err = released+count, errors.Join(err, failed)
	})
	return released, err
}

func (all hosts) isolate(isolated bool) {
	for _, h := range all {
		h.Isolate(isolated)
	}
}

func (all hosts) abandon() {
	for _, h := range all {
		h.Abandon()
	}
}

func (all hosts) stop() { all.atOnce(Host.Stop) }

// atOnce calls do with every host at the same time, and waits.
func (all hosts) atOnce(do func(Host)) {
	var calls sync.WaitGroup
	for _, h := range all {
		calls.Go(func() { do(h) })
	}
	calls.Wait()
}
