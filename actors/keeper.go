package actors

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// The rhythm of the lease. A node is dead when its counter stood still in deadLooks consecutive looks over at least
// deadAfter of the looker's own monotonic clock; clocks of two machines are never compared.
const (
	renewEvery    = 700 * time.Millisecond
	leaseSure     = 2 * time.Second         // after an own renewal nobody else can have taken a turn yet
	staleLook     = 1400 * time.Millisecond // more than this between two own renewals: what was seen says nothing
	deadLooks     = 5
	deadAfter     = 3 * time.Second
	keeperTimeout = time.Second            // of one call to the directory
	claimLimit    = 20                     // so that the nodes that are left share what a dead one had
	claimAgain    = 100 * time.Millisecond // between two claims while there are more orphans
	queueEvery    = 7                      // rounds between two looks at standing queues: about 5 s
	releaseWait   = 5 * time.Second        // for the appends that are in flight when a drain's grace is over
)

// sighting is what the reaper knows of another node.
type sighting struct {
	renewals int64
	looks    int
	since    time.Time
}

// keeper keeps the lease of this node, finds nodes that are dead, and turns that nobody runs.
type keeper struct {
	node    *Node
	seen    map[protocol.NodeID]sighting
	renewed time.Time
	missing map[protocol.TurnID]int32 // own turns without an actor at the last look, by epoch
	round   int
	full    bool // the last claim took as many as it may: there may be more
}

// keep runs until the node stops. The first round comes at once, so that a restart adopts without waiting.
func (n *Node) keep() {
	k := &keeper{node: n, seen: map[protocol.NodeID]sighting{}, missing: map[protocol.TurnID]int32{}}
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	work := k.turn
	for {
		k.full = false
		if err := work(time.Now()); errors.Is(err, protocol.ErrFenced) {
			n.log.Error("declared dead by others: giving up every turn")
			n.giveUp()
			return
		} else if err != nil && n.ctx.Err() == nil {
			n.log.Warn("lease round failed", zap.Error(err))
		}
		var more <-chan time.Time
		if k.full {
			more = time.After(claimAgain)
		}
		select {
		case <-ticker.C:
			work = k.turn
		case <-more:
			work = k.claimMore
		case <-n.ctx.Done():
			return
		}
	}
}

// turn is one round: renew, look at the others, take over, start what stands.
func (k *keeper) turn(now time.Time) error {
	n := k.node
	ctx, cancel := context.WithTimeout(n.ctx, keeperTimeout)
	defer cancel()
	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
		return err
	}
	if err := failpoint.After(failpoint.LeaseBeforeRenew, n.directory.Renew(ctx, n.id)); err != nil {
		return err
	}
	if now.Sub(k.renewed) > staleLook { // we were away ourselves: nobody else's silence means anything
		clear(k.seen)
	}
	k.renewed = now
	n.renewed.Store(&now)
	if err := k.reap(ctx, now); err != nil {
		return err
	}
	if n.Draining() {
		return nil
	}
	if err := k.adopt(ctx); err != nil {
		return err
	}
	k.round++
	if k.round%queueEvery == 0 {
		started, err := n.directory.StandingQueues(ctx, n.id, claimLimit, n.Begin)
		for _, turn := range started {
			n.run(turn)
		}
		return err
	}
	return nil
}

// reap buries nodes whose counter stands still.
func (k *keeper) reap(ctx context.Context, now time.Time) error {
	n := k.node
	renewals, err := n.directory.Renewals(ctx)
	if err != nil {
		return err
	}
	for id, counter := range renewals {
		if id == n.id {
			continue
		}
		s, known := k.seen[id]
		if !known || s.renewals != counter {
			k.seen[id] = sighting{renewals: counter, looks: 1, since: now}
			continue
		}
		s.looks++
		k.seen[id] = s
		if s.looks < deadLooks || now.Sub(s.since) < deadAfter {
			continue
		}
		buried, err := n.directory.Bury(ctx, id, counter)
		if err != nil {
			return err
		}
		if buried {
			n.log.Warn("declared a silent node dead", zap.Stringer("dead", id))
		}
		delete(k.seen, id)
	}
	for id := range k.seen {
		if _, there := renewals[id]; !there {
			delete(k.seen, id)
		}
	}
	return nil
}

// claimMore goes on with orphans of which one claim did not take all.
func (k *keeper) claimMore(time.Time) error {
	if k.node.Draining() {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.node.ctx, keeperTimeout)
	defer cancel()
	return k.claim(ctx)
}

// claim takes over orphans.
func (k *keeper) claim(ctx context.Context) error {
	n := k.node
	if err := failpoint.Before(failpoint.TurnBeforeClaim); err != nil {
		return err
	}
	claims, err := n.directory.ClaimOrphans(ctx, n.id, claimLimit)
	if err = failpoint.After(failpoint.TurnBeforeClaim, err); err != nil {
		return err
	}
	for _, claim := range claims {
		n.takeOver(claim)
	}
	k.full = len(claims) == claimLimit
	return nil
}

// adopt takes over orphans, and own turns whose actor is gone for two looks.
func (k *keeper) adopt(ctx context.Context) error {
	n := k.node
	if err := k.claim(ctx); err != nil {
		return err
	}
	own, err := n.directory.OwnTurns(ctx, n.id)
	if err != nil {
		return err
	}
	missing := map[protocol.TurnID]int32{}
	for _, turn := range own {
		if n.holds(turn.TurnID, turn.Epoch) {
			continue
		}
		if epoch, twice := k.missing[turn.TurnID]; !twice || epoch != turn.Epoch {
			missing[turn.TurnID] = turn.Epoch
			continue
		}
		claim, err := n.directory.ReclaimTurn(ctx, n.id, turn.AccountID, turn.TurnID, turn.Epoch)
		if errors.Is(err, protocol.ErrFenced) {
			continue // it ended, or moved, in between
		} else if err != nil {
			return err
		}
		n.takeOver(claim)
	}
	k.missing = missing
	return nil
}

// takeOver begins the adoption of a claimed turn. Until it is over the keeper does not miss the turn.
func (n *Node) takeOver(claim protocol.Claim) {
	n.mu.Lock()
	n.adopting[claim.TurnID] = claim.Epoch
	n.mu.Unlock()
	n.goes(func() { n.adopt(claim) })
}

// adopt runs a claimed turn from its log. When that is impossible, the keeper finds the turn without an actor and claims
// it again; a turn that was claimed too often is ended.
func (n *Node) adopt(claim protocol.Claim) {
	defer n.adopted(claim)
	log := n.log.With(zap.Stringer("turn", claim.TurnID), zap.Int32("epoch", claim.Epoch))
	m, frames, err := n.restore(claim)
	if err != nil && n.ctx.Err() != nil { // the node stops: that says nothing about the log
		return
	}
	var first any = adoptTurn{claim.Cause}
	switch forced := claim.Cause == causeOperator; {
	case err != nil && !forced && claim.Adoptions < unreadableAfter:
		log.Error("a turn's log cannot be read", zap.Int("adoptions", claim.Adoptions), zap.Error(err))
		return
	case err != nil:
		log.Error("a turn whose log cannot be read is ended", zap.Int("adoptions", claim.Adoptions), zap.Error(err))
		if m, frames, err = n.mend(claim); err != nil {
			log.Error("nothing of a turn can be read", zap.Error(err))
			return
		}
		first = giveUpTurn{}
	case claim.Adoptions > brokenAfter:
		log.Error("a turn that no actor can run is ended", zap.Int("adoptions", claim.Adoptions))
		first = giveUpTurn{bare: claim.Adoptions > bareAfter}
	}
	if claim.Cause == causeOperator {
		first = forceCancelTurn{}
	}
	s := newStream(m.sequence)
	if len(frames) > 0 && len(frames) <= maxTail {
		s.publish(1, m.sequence, frames, false)
	}
	n.stats.adopted.Add(1)
	log.Info("turn adopted", zap.String("cause", claim.Cause), zap.Int64("sequence", m.sequence))
	n.spawn(m, claim.Epoch, s, first)
}

// restore reads a claimed turn back from its log. While the store is away it waits: that is no failed adoption.
func (n *Node) restore(claim protocol.Claim) (*turnMachine, []byte, error) {
	stored, err := n.load(claim, n.store.LoadTurn)
	if err != nil {
		return nil, nil, err
	}
	m, err := restoreTurnMachine(stored, n.specs, n.model.Continues())
	return m, stored.Frames, err
}

// mend reads what can be read of it.
func (n *Node) mend(claim protocol.Claim) (*turnMachine, []byte, error) {
	stored, err := n.load(claim, n.store.MendTurn)
	if err != nil {
		return nil, nil, err
	}
	return mendTurnMachine(stored, n.specs), stored.Frames, nil
}

type loadTurn func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error)

func (n *Node) load(claim protocol.Claim, load loadTurn) (stored *protocol.StoredTurn, err error) {
	for pause := storePause; ; pause = min(2*pause, maxStorePause) {
		err = n.atStore(n.ctx, func() (failed error) {
			ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
			defer cancel()
			if failed = failpoint.Before(failpoint.TurnAfterClaim); failed == nil {
				stored, failed = load(ctx, claim.AccountID, claim.TurnID)
				failed = failpoint.After(failpoint.TurnAfterClaim, failed)
			}
			return failed
		})
		if protocol.CodeOf(err) != protocol.CodeUnavailable || err == nil {
			return stored, err
		}
		n.log.Warn("a claimed turn was not read yet", zap.Stringer("turn", claim.TurnID), zap.Error(err))
		if stopped := sleep(n.ctx, pause); stopped != nil {
			return nil, stopped
		}
	}
}

// adopted notes that an adoption is over: the turn lives, or the keeper may take it again.
func (n *Node) adopted(claim protocol.Claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.adopting[claim.TurnID] == claim.Epoch {
		delete(n.adopting, claim.TurnID)
	}
}

// giveUp ends every actor without a word to the store, then tells the process.
func (n *Node) giveUp() {
	n.mu.Lock()
	n.stopped = true
	for _, live := range n.turns {
		n.system.Root.Send(live.pid, abandonTurn{})
	}
	n.mu.Unlock()
	if n.fenced != nil {
		n.fenced()
	}
}
