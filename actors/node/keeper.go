package node

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/ownership"
)

// The timing of the lease. A node is declared dead when its renewal counter was unchanged in deadReads consecutive
// reads over at least deadAfter of the reading node's own monotonic clock. Clocks of two host computers are never compared.
const (
	// Five intervals are a little longer than deadAfter, so the end of a node is noticed in the round in which deadAfter
	// has passed: 2.8 to 3.7 s after it. With 700 ms that was one round, and up to 4.2 s, later (ADR 30).
	RenewInterval = 620 * time.Millisecond
	LeaseValidFor = 2 * time.Second         // for this long after an own renewal no other node can have taken work
	maxRenewGap   = 1400 * time.Millisecond // after a longer gap between two own renewals, earlier observations are discarded
	deadReads     = 5
	deadAfter     = 3 * time.Second
	keeperTimeout = time.Second            // of one round of the keeper
	claimPause    = 100 * time.Millisecond // between two claims while there is more to claim
)

// observation is what the keeper has observed of another node: its counter, the number of reads that returned this
// value, and the time of the first one.
type observation struct {
	renewals int64
	reads    int
	since    time.Time
}

// leaseKeeper renews the lease of this node, declares other nodes dead, and lets the hosts adopt work that no actor runs.
type leaseKeeper struct {
	node    *Node
	seen    map[protocol.NodeID]observation
	renewed time.Time
	more    hosts // those that may claim more at once
}

// keep runs the keeper until the node stops. The first round runs at once, so that a restarted process adopts without
// delay.
func (n *Node) keep() {
	k := &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
	ticker := time.NewTicker(RenewInterval)
	defer ticker.Stop()
	work := k.runRound
	for {
		k.more = nil
		if err := work(time.Now()); errors.Is(err, ownership.ErrFenced) {
			n.log.Error("declared dead by others: giving up all work")
			n.stopFenced()
			return
		} else if err != nil && n.ctx.Err() == nil {
			n.log.Warn("lease round failed", zap.Error(err))
		}
		n.hosts.isolate(n.Isolated())
		var more <-chan time.Time
		rest := k.more
		if len(rest) > 0 {
			more = time.After(claimPause)
		}
		select {
		case <-ticker.C:
			work = k.runRound
		case <-more:
			work = k.claimMore(rest, math.MaxInt)
		case share := <-n.released:
			work = k.claimMore(n.hosts, share)
		case <-n.ctx.Done():
			return
		}
	}
}

// Isolated reports whether the node has not renewed its lease for so long that others may have declared it dead and continue its
// work. It learns that only when it reaches the store again. Until then its work stores nothing, so its readers have to go to
// another node.
func (n *Node) Isolated() bool {
	renewed := n.renewed.Load()
	return renewed != nil && n.others.Load() && time.Since(*renewed) >= deadAfter
}

// runRound runs one round: it renews the lease, declares nodes dead, and lets the hosts adopt.
func (k *leaseKeeper) runRound(now time.Time) (err error) {
	n := k.node
	ctx, cancel := context.WithTimeout(n.ctx, keeperTimeout)
	defer cancel()
	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
		return err
	}
	draining, err := n.config.Directory.Renew(ctx, n.id, n.load())
	if err = failpoint.After(failpoint.LeaseBeforeRenew, err); err != nil {
		return err
	}
	if now.Sub(k.renewed) > maxRenewGap { // this node was stalled itself, so an unchanged counter proves nothing
		clear(k.seen)
	}
	k.renewed = now
	n.renewed.Store(&now)
	if err := k.markDeadNodes(ctx, now); err != nil {
		return err
	}
	if draining && !n.Draining() {
		n.keeper.Go(k.drain)
	}
	if draining || n.Draining() {
		return nil
	}
	k.more, err = n.hosts.round(ctx)
	return err
}

// markDeadNodes declares the nodes dead whose renewal counters have not changed for deadAfter.
func (k *leaseKeeper) markDeadNodes(ctx context.Context, now time.Time) error {
	n := k.node
	leases, err := n.config.Directory.Leases(ctx)
	if err != nil {
		return err
	}
	for id, lease := range leases {
		if id == n.id {
			continue
		}
		s, known := k.seen[id]
		if !known || s.renewals != lease.Renewals {
			k.seen[id] = observation{renewals: lease.Renewals, reads: 1, since: now}
			continue
		}
		s.reads++
		k.seen[id] = s
		if s.reads < deadReads || now.Sub(s.since) < deadAfter {
			continue
		}
		marked, err := n.config.Directory.MarkDead(ctx, id, lease.Renewals)
		if err != nil {
			return err
		}
		if marked {
			n.log.Warn("declared a silent node dead", zap.Stringer("dead", id))
		}
		delete(k.seen, id)
	}
	for id := range k.seen {
		if _, listed := leases[id]; !listed {
			delete(k.seen, id)
		}
	}
	n.others.Store(len(leases) > 1)
	n.notePeers(leases)
	return nil
}

// notePeers notes the addresses of the other nodes.
func (n *Node) notePeers(leases map[protocol.NodeID]ownership.Lease) {
	if n.link == nil {
		return
	}
	var addresses []string
	for id, lease := range leases {
		if id != n.id && lease.Address != "" {
			addresses = append(addresses, lease.Address)
		}
	}
	n.link.SetPeers(addresses)
}

// claimMore returns the work of claiming between two rounds: by the hosts whose last claim left more, or by all of them because
// another node has released work.
func (k *leaseKeeper) claimMore(of hosts, limit int) func(time.Time) error {
	return func(time.Time) (err error) {
		if k.node.Draining() {
			return nil
		}
		ctx, cancel := context.WithTimeout(k.node.ctx, keeperTimeout)
		defer cancel()
		k.more, err = of.claim(ctx, limit)
		return err
	}
}

// stopFenced ends all work without writing to the store, then calls Config.Fenced.
func (n *Node) stopFenced() {
	n.draining.Store(true)
	n.hosts.abandon()
	if n.config.Fenced != nil {
		n.config.Fenced()
	}
}

// drain drains the node because an operator has requested it. The keeper continues to renew the lease.
func (k *leaseKeeper) drain() {
	n := k.node
	n.log.Info("draining at the request of an operator", zap.Duration("grace", n.config.DrainGrace))
	if err := n.Drain(n.ctx, n.config.DrainGrace); err != nil && n.ctx.Err() == nil {
		n.log.Warn("draining failed", zap.Error(err))
	}
}
