package actors

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// The timing of the lease. A node is declared dead when its renewal counter was unchanged in deadReads consecutive
// reads over at least deadAfter of the reading node's own monotonic clock. Clocks of two machines are never compared.
const (
	// Five intervals are a little longer than deadAfter, so the end of a node is noticed in the round in which deadAfter
	// has passed: 2.8 to 3.7 s after it. With 700 ms that was one round, and up to 4.2 s, later (ADR 30).
	renewInterval = 620 * time.Millisecond
	leaseValidFor = 2 * time.Second         // for this long after an own renewal no other node can have taken a turn
	maxRenewGap   = 1400 * time.Millisecond // after a longer gap between two own renewals, earlier observations are discarded
	deadReads     = 5
	deadAfter     = 3 * time.Second
	keeperTimeout = time.Second // of one round of the keeper
	claimLimit    = 20          // per claim, so that the remaining nodes share the turns of a dead one
	// fullClaimLimit is the limit of a claim of a node without room for more turns, which claims once in each round.
	fullClaimLimit = 2
	claimPause     = 100 * time.Millisecond // between two claims while there are more orphans
	queueRounds    = 7                      // rounds from one check for stalled queues to the next: about 5 s
	releaseWait    = 5 * time.Second        // for the appends that are in flight when the grace of a drain is over
)

// observation is what the keeper has observed of another node: its counter, the number of reads that returned this
// value, and the time of the first one.
type observation struct {
	renewals int64
	reads    int
	since    time.Time
}

// leaseKeeper renews the lease of this node, declares other nodes dead, and adopts turns that no actor runs.
type leaseKeeper struct {
	node        *Node
	seen        map[protocol.NodeID]observation
	renewed     time.Time
	missing     map[protocol.TurnID]int32 // epochs of the own turns that had no actor in the last round
	untilQueues int                       // rounds until the next check for stalled queues; 0: this round checks
	moreOrphans bool                      // the last claim reached claimLimit: there may be more orphans
}

// keep runs the keeper until the node stops. The first round runs at once, so that a restarted process adopts without
// delay.
func (n *Node) keep() {
	k := &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}, missing: map[protocol.TurnID]int32{}}
	ticker := time.NewTicker(renewInterval)
	defer ticker.Stop()
	work := k.runRound
	for {
		k.moreOrphans = false
		if err := work(time.Now()); errors.Is(err, turnlog.ErrFenced) {
			n.log.Error("declared dead by others: giving up every turn")
			n.stopFenced()
			return
		} else if err != nil && n.ctx.Err() == nil {
			n.log.Warn("lease round failed", zap.Error(err))
		}
		var more <-chan time.Time
		if k.moreOrphans {
			more = time.After(claimPause)
		}
		select {
		case <-ticker.C:
			work = k.runRound
		case <-more:
			work = k.claimMore(claimLimit)
		case share := <-n.released:
			work = k.claimMore(share)
		case <-n.ctx.Done():
			return
		}
	}
}

// runRound runs one round: it renews the lease, declares nodes dead, adopts turns, and in some rounds starts stalled
// queues.
func (k *leaseKeeper) runRound(now time.Time) error {
	n := k.node
	ctx, cancel := context.WithTimeout(n.ctx, keeperTimeout)
	defer cancel()
	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
		return err
	}
	draining, err := n.directory.Renew(ctx, n.id, turnlog.NodeLoad{Live: n.registry.running(), Capacity: n.capacity})
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
		n.startGoroutine(k.drain)
	}
	if draining || n.Draining() {
		return nil
	}
	if err := k.adopt(ctx); err != nil {
		return err
	}
	return errors.Join(n.hosts.adopt(ctx), k.startStalledQueues(ctx))
}

// startStalledQueues starts stalled queues, if this round checks for them. The first round does: the previous process
// may have drained and left queues stalled, and a process that is restarted often may not reach a later round.
func (k *leaseKeeper) startStalledQueues(ctx context.Context) error {
	if k.untilQueues > 0 {
		k.untilQueues--
		return nil
	}
	n, limit := k.node, k.claimSize()
	started, err := n.directory.StartStalledQueues(ctx, n.id, limit, n.Begin)
	for _, turn := range started {
		n.run(ctx, turn)
	}
	if err == nil && len(started) < limit { // otherwise there may be more, and the next round checks again
		k.untilQueues = queueRounds - 1
	}
	return err
}

// markDeadNodes declares nodes dead whose renewal counter does not change.
func (k *leaseKeeper) markDeadNodes(ctx context.Context, now time.Time) error {
	n := k.node
	leases, err := n.directory.Leases(ctx)
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
		marked, err := n.directory.MarkDead(ctx, id, lease.Renewals)
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
	n.peers.use(leases)
	return nil
}

// claimMore returns the work of claiming at most limit orphans between two rounds: after a claim that reached claimLimit,
// or because another node has released turns.
func (k *leaseKeeper) claimMore(limit int) func(time.Time) error {
	return func(time.Time) error {
		if k.node.Draining() {
			return nil
		}
		ctx, cancel := context.WithTimeout(k.node.ctx, keeperTimeout)
		defer cancel()
		return k.claim(ctx, limit)
	}
}

// claimSize returns the number of orphans that the next claim may take over, and of stalled queues that may be started. A
// node takes over what its capacity leaves room for, so that the nodes with most room adopt most. A full node still takes
// over some in each round: a turn that was accepted has to continue, even if all nodes are full.
func (k *leaseKeeper) claimSize() int {
	n := k.node
	if n.capacity == 0 {
		return claimLimit
	}
	return min(max(n.capacity-n.registry.load(), fullClaimLimit), claimLimit)
}

// claim takes over at most limit orphans.
func (k *leaseKeeper) claim(ctx context.Context, limit int) error {
	n := k.node
	if err := failpoint.Before(failpoint.TurnBeforeClaim); err != nil {
		return err
	}
	size := k.claimSize()
	limit = min(limit, size)
	claims, err := n.directory.ClaimOrphans(ctx, n.id, limit)
	if err = failpoint.After(failpoint.TurnBeforeClaim, err); err != nil {
		return err
	}
	for _, claim := range claims {
		n.takeOver(claim)
	}
	k.moreOrphans = len(claims) == size && size > fullClaimLimit
	return nil
}

// adopt takes over orphans, and own turns that had no actor in two consecutive rounds.
func (k *leaseKeeper) adopt(ctx context.Context) error {
	n := k.node
	if err := k.claim(ctx, claimLimit); err != nil {
		return err
	}
	own, err := n.directory.OwnTurns(ctx, n.id)
	if err != nil {
		return err
	}
	missing := map[protocol.TurnID]int32{}
	for _, turn := range own {
		if n.registry.runsOrAdopts(turn.TurnID, turn.Epoch) {
			continue
		}
		if epoch, twice := k.missing[turn.TurnID]; !twice || epoch != turn.Epoch {
			missing[turn.TurnID] = turn.Epoch
			continue
		}
		claim, err := n.directory.ReclaimTurn(ctx, n.id, turn.AccountID, turn.TurnID, turn.Epoch)
		if errors.Is(err, turnlog.ErrFenced) {
			continue // the turn ended or changed its owner in the meantime
		} else if err != nil {
			return err
		}
		n.takeOver(claim)
	}
	k.missing = missing
	return nil
}

// stopFenced stops every actor without writing to the store, then calls Config.Fenced.
func (n *Node) stopFenced() {
	for _, live := range n.registry.stop() {
		n.runtime.Send(live.pid, shell.Abandon{})
	}
	n.hosts.abandon()
	if n.fenced != nil {
		n.fenced()
	}
}

// drain drains the node because an operator has requested it. The keeper continues to renew the lease.
func (k *leaseKeeper) drain() {
	n := k.node
	n.log.Info("draining at the request of an operator", zap.Duration("grace", n.drainGrace))
	if err := n.Drain(n.ctx, n.drainGrace); err != nil && n.ctx.Err() == nil {
		n.log.Warn("draining failed", zap.Error(err))
	}
}
