package actors

import (
	"context"
	"sync"
	"time"
)

// Host runs actors other than turns on a node, under its lease. The node calls Adopt from one goroutine.
type Host interface {
	// Adopt takes over the work whose owner has ended. The node calls it after each renewal of its lease, unless it
	// drains. It must not take longer than ctx.
	Adopt(ctx context.Context) error
	// Drain refuses new work, waits up to grace for the work in progress, and ends the rest at a persisted boundary.
	Drain(ctx context.Context, grace time.Duration)
	// Abandon ends all work at once, because the node was declared dead.
	Abandon()
	// Stop ends all work at once and waits for its end. Another node or the next process continues it.
	Stop()
}

// drainHosts drains all hosts at the same time.
func (n *Node) drainHosts(ctx context.Context, grace time.Duration) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for _, h := range n.hosts {
		all.Go(func() { h.Drain(ctx, grace) })
	}
	return all
}
