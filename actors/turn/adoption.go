package turn

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/observe"
	"turnstone/actors/retry"
	"turnstone/actors/tail"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/turnlog"
)

// kind implements host.Kind for the turns of a host.
type kind struct{ host *Host }

// ClaimDue implements host.Kind.
func (o kind) ClaimDue(ctx context.Context, limit int) ([]turnlog.Claim, error) {
	if err := failpoint.Before(failpoint.TurnBeforeClaim); err != nil {
		return nil, err
	}
	claims, err := o.host.ownership.ClaimDue(ctx, o.host.node.ID, limit)
	return claims, failpoint.After(failpoint.TurnBeforeClaim, err)
}

// Owned implements host.Kind.
func (o kind) Owned(ctx context.Context) ([]turnlog.Claim, error) {
	return o.host.ownership.Owned(ctx, o.host.node.ID)
}

// ClaimLost implements host.Kind.
func (o kind) ClaimLost(ctx context.Context, claim turnlog.Claim) (turnlog.Claim, error) {
	return o.host.ownership.ClaimLost(ctx, o.host.node.ID, claim.AccountID, claim.TurnID, claim.Epoch)
}

// Continue implements host.Kind.
func (o kind) Continue(_ context.Context, claim turnlog.Claim) { (&adoption{o.host, claim}).run() }

// adoption is the adoption of one claimed turn.
type adoption struct {
	host  *Host
	claim turnlog.Claim
}

// The number of claims of a turn after which a node ends it instead of running it.
const (
	unreadableAfter   = 3  // for a turn whose log cannot be read
	brokenAfter       = 6  // for a turn whose actor panics or cannot store its end; any other turn is given up earlier: see maxLosses in package machine
	withoutPartsAfter = 10 // from here on the end is stored without the parts of the answer
)

// run restores the turn from its log and starts its actor. When that fails, the turn is found without
// an actor and claimed again. A turn that was claimed too often is ended.
func (a *adoption) run() {
	h, claim := a.host, a.claim
	log := h.log.With(zap.Stringer("turn", claim.TurnID), zap.Int32("epoch", claim.Epoch))
	span := h.observer.StartAdoption(&claim)
	m, frames, err := a.restore()
	observe.End(span, err)
	if err != nil && h.Context().Err() != nil { // the node stops: the error says nothing about the log
		return
	}
	var first any = adopt{claim.Cause, span.SpanContext()}
	if claim.Cause == turnlog.CauseWake {
		first = wake{span.SpanContext()}
	}
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
		first = giveUp{}
	case claim.Adoptions > brokenAfter:
		log.Error("a turn that no actor can run is ended", zap.Int("adoptions", claim.Adoptions))
		first = giveUp{withoutParts: claim.Adoptions > withoutPartsAfter}
	}
	if claim.Cause == turnlog.CauseOperator {
		first = forceCancel{}
	}
	s := tail.New(m.Sequence())
	if len(frames) > 0 && len(frames) <= tail.MaxBytes {
		s.Publish(1, m.Sequence(), frames, false)
	}
	h.stats.adopted.Add(1)
	log.Info("turn adopted", zap.String("cause", string(claim.Cause)), zap.Int64("sequence", m.Sequence()))
	h.spawn(m, claim.Epoch, s, first)
	h.peers.announce(claim.TurnID)
}

// restore restores the turn from its log. It retries while the store is unavailable: an outage does not count as
// a failed adoption.
func (a *adoption) restore() (*machine.Machine, []byte, error) {
	stored, err := a.load(a.host.store.LoadTurn)
	if err != nil {
		return nil, nil, err
	}
	m, err := machine.Restore(stored, a.host.starter.Tools, a.host.starter.Continues)
	return m, stored.Frames, err
}

// repair restores the readable part of a turn whose log restore cannot read.
func (a *adoption) repair() (*machine.Machine, []byte, error) {
	stored, err := a.load(a.host.store.RepairTurn)
	if err != nil {
		return nil, nil, err
	}
	return machine.Repair(stored, a.host.starter.Tools), stored.Frames, nil
}

// loadTimeout is the limit of one read of a claimed turn.
var loadTimeout = timelimit.Of(5 * time.Second)

type loadTurn func(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)

// load reads the turn with LoadTurn or RepairTurn, and retries while the store is unavailable.
func (a *adoption) load(load loadTurn) (stored *turnlog.Stored, err error) {
	h, claim := a.host, a.claim
	failed := func(err error) {
		h.log.Warn("reading a claimed turn failed, will retry", zap.Stringer("turn", claim.TurnID), zap.Error(err))
	}
	err = h.slots.retry(h.Context(), retry.Unavailable, failed, func() (failed error) {
		ctx, cancel := context.WithTimeout(h.Context(), loadTimeout)
		defer cancel()
		if failed = failpoint.Before(failpoint.TurnAfterClaim); failed == nil {
			stored, failed = load(ctx, claim.AccountID, claim.TurnID)
			failed = failpoint.After(failpoint.TurnAfterClaim, failed)
		}
		return failed
	})
	return stored, err
}
