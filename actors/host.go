package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"turnstone/actors/shell"
	"turnstone/protocol"
)

// Host runs actors other than turns on a node, under its lease. The node calls Adopt from one goroutine.
type Host interface {
	// Adopt takes over work from nodes that have ended. The node calls it after each renewal of its lease, unless it
	// drains. It must not take longer than ctx.
	Adopt(ctx context.Context) error
	// Drain refuses new work, waits up to grace for the work in progress, and ends the rest at a persisted boundary.
	Drain(ctx context.Context, grace time.Duration)
	// Abandon ends all work at once, because the node was declared dead.
	Abandon()
	// Stop ends all work at once and waits for its end. Another node or the next process continues it.
	Stop()
}

// NewHost creates a host for a node. The host starts its actors on runtime. live returns the number of turns that run on the
// node: they come before the work of the host.
type NewHost func(node protocol.NodeID, runtime *shell.Runtime, live func() int) Host

// hosts are the hosts of a node.
type hosts []Host

func (all hosts) adopt(ctx context.Context) (err error) {
	for _, h := range all {
		err = errors.Join(err, h.Adopt(ctx))
	}
	return err
}

// drain drains all hosts at the same time. The caller waits for the result.
func (all hosts) drain(ctx context.Context, grace time.Duration) *sync.WaitGroup {
	drained := new(sync.WaitGroup)
	for _, h := range all {
		drained.Go(func() { h.Drain(ctx, grace) })
	}
	return drained
}

func (all hosts) abandon() {
	for _, h := range all {
		h.Abandon()
	}
}

func (all hosts) stop() {
	for _, h := range all {
		h.Stop()
	}
}
