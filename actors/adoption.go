package actors

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/observe"
	"turnstone/actors/tail"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/turnlog"
)

// takeOver starts the adoption of a claimed turn. Until the adoption is over, the turn does not count as missing.
func (n *Node) takeOver(claim turnlog.Claim) {
	n.registry.beginAdoption(claim.TurnID, claim.Epoch)
	n.startGoroutine(func() {
		defer n.registry.endAdoption(claim.TurnID, claim.Epoch)
		(&adoption{node: n, claim: claim}).run()
	})
}

// adoption is the adoption of one claimed turn.
type adoption struct {
	node  *Node
	claim turnlog.Claim
}

// The number of claims of a turn after which a node ends it instead of running it.
const (
	unreadableAfter   = 3  // for a turn whose log cannot be read
	brokenAfter       = 6  // for a turn whose actor panics or cannot store its end; any other turn is given up earlier: see maxLosses in package turn
	withoutPartsAfter = 10 // from here on the end is stored without the parts of the answer
)

// run restores the turn from its log and starts its actor. When that fails, the keeper finds the turn without
// an actor and claims it again. A turn that was claimed too often is ended.
func (a *adoption) run() {
	n, claim := a.node, a.claim
	log := n.log.With(zap.Stringer("turn", claim.TurnID), zap.Int32("epoch", claim.Epoch))
	span := n.observer.StartAdoption(&claim)
	m, frames, err := a.restore()
	observe.End(span, err)
	if err != nil && n.ctx.Err() != nil { // the node stops: the error says nothing about the log
		return
	}
	var first any = adoptTurn{claim.Cause, span.SpanContext()}
	switch forced := claim.Cause == turnlog.CauseOperator; {
	case err != nil && !forced && claim.Adoptions < unreadableAfter:
		log.Error("a turn's log cannot be read", zap.Int("adoptions", claim.Adoptions), zap.Error(err))
		return
	case err != nil:
		log.Error("a turn whose log cannot be read is ended", zap.Int("adoptions", claim.Adoptions), zap.Error(err))
		if m, frames, err = a.repair(); err != nil {
			log.Error("no part of a turn's log can be read", zap.Error(err))
			return
		}
		first = giveUpTurn{}
	case claim.Adoptions > brokenAfter:
		log.Error("a turn that no actor can run is ended", zap.Int("adoptions", claim.Adoptions))
		first = giveUpTurn{withoutParts: claim.Adoptions > withoutPartsAfter}
	}
	if claim.Cause == turnlog.CauseOperator {
		first = forceCancelTurn{}
	}
	s := tail.New(m.Sequence())
	if len(frames) > 0 && len(frames) <= tail.MaxBytes {
		s.Publish(1, m.Sequence(), frames, false)
	}
	n.stats.adopted.Add(1)
	log.Info("turn adopted", zap.String("cause", string(claim.Cause)), zap.Int64("sequence", m.Sequence()))
	n.spawn(m, claim.Epoch, s, first)
	n.peers.announce(claim.TurnID)
}

// restore restores the turn from its log. It retries while the store is unavailable: an outage does not count as
// a failed adoption.
func (a *adoption) restore() (*turn.Machine, []byte, error) {
	stored, err := a.load(a.node.store.LoadTurn)
	if err != nil {
		return nil, nil, err
	}
	m, err := turn.Restore(stored, a.node.turnTools, a.node.model.Continues())
	return m, stored.Frames, err
}

// repair restores the readable part of a turn whose log restore cannot read.
func (a *adoption) repair() (*turn.Machine, []byte, error) {
	stored, err := a.load(a.node.store.RepairTurn)
	if err != nil {
		return nil, nil, err
	}
	return turn.Repair(stored, a.node.turnTools), stored.Frames, nil
}

// loadTimeout is the limit of one read of a claimed turn.
var loadTimeout = timelimit.Of(5 * time.Second)

type loadTurn func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)

// load reads the turn with LoadTurn or RepairTurn, and retries while the store is unavailable.
func (a *adoption) load(load loadTurn) (stored *turnlog.Stored, err error) {
	n, claim := a.node, a.claim
	for pause := storePause; ; pause = min(2*pause, maxStorePause) {
		err = n.storeSlots.use(n.ctx, func() (failed error) {
			ctx, cancel := context.WithTimeout(n.ctx, loadTimeout)
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
		n.log.Warn("reading a claimed turn failed, will retry", zap.Stringer("turn", claim.TurnID), zap.Error(err))
		if stopped := clock.Sleep(n.ctx, pause); stopped != nil {
			return nil, stopped
		}
	}
}
