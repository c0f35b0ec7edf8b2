package turns

import (
	"context"
	"time"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// claimDueSQL tests in a sub-query that has a value, which Postgres makes no join of, whether an owner is dead: if another node has
// claimed the row in the meantime, Postgres tests the new owner of the row only in such a sub-query. If the dead owner had the same address as
// this node, the cause is a restart; otherwise another host computer was lost. A turn that was released is not a failed adoption, so
// it does not count as one, and neither is one that waited for an approval whose time has passed.
var claimDueSQL = `
with released as (
    select t.account_id, t.turn_id, case when t.parked_until is null then '` + string(protocol.CauseDrain) + `' else '` + string(turnlog.CauseWake) + `' end as cause
    from turns t
    where t.` + open.Turns + ` and t.owner is null and (t.parked_until is null or t.parked_until <= now())
      and ` + pg.NodeClaims("$1") + `
    limit $2
    for update of t skip locked
), lost as (
    select t.account_id, t.turn_id,
           case when (select address from nodes where node_id = t.owner) = (select address from nodes where node_id = $1) then '` + string(protocol.CauseRestart) + `'
                else '` + string(protocol.CauseNodeLost) + `' end as cause
    from turns t
    where t.` + open.Turns + ` and t.owner is not null and coalesce((select dead from nodes where node_id = t.owner), true)
      and ` + pg.NodeClaims("$1") + `
    limit $2
    for update of t skip locked
), orphans as (
    select * from lost union all select * from released limit $2
)
update turns t set owner = $1, owner_epoch = t.owner_epoch + 1, adoptions = t.adoptions + (t.owner is not null)::int, parked_until = null
from orphans
where t.account_id = orphans.account_id and t.turn_id = orphans.turn_id
returning t.account_id, t.turn_id, t.owner_epoch, orphans.cause, t.adoptions`

// ClaimDue claims at most limit unfinished turns that have no owner or whose owner is dead.
func (t *Store) ClaimDue(ctx context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error) {
	return pg.EngineRows[turnlog.Claim](ctx, t.db, "claiming due turns", claimDueSQL, node, limit)
}

const ownedSQL = `
select account_id, turn_id, owner_epoch, '', adoptions from turns where owner = $1 and ` + open.Turns

// Owned returns the unfinished turns of this node.
func (t *Store) Owned(ctx context.Context, node protocol.NodeID) ([]turnlog.Claim, error) {
	return pg.EngineRows[turnlog.Claim](ctx, t.db, "listing own turns", ownedSQL, node)
}

var claimLostSQL = `
update turns set owner_epoch = owner_epoch + 1, adoptions = adoptions + 1
where account_id = $2 and turn_id = $3 and owner = $1 and owner_epoch = $4 and ` + open.Turns + ` and ` + pg.NodeRuns("$1") + `
returning account_id, turn_id, owner_epoch, '` + string(protocol.CauseActorLost) + `', adoptions`

// ClaimLost claims a turn of this node again whose actor is gone. The error is ownership.ErrFenced if the turn
// has ended or has another owner or epoch, or if the node was declared dead.
func (t *Store) ClaimLost(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error) {
	return pg.EngineRow[turnlog.Claim](ctx, t.db, ownership.ErrFenced, "claiming a lost turn", claimLostSQL, node, account, turn, epoch)
}

var claimAnySQL = `
update turns set owner = $1, owner_epoch = owner_epoch + 1, adoptions = adoptions + 1, parked_until = null
where account_id = $2 and turn_id = $3 and ` + open.Turns + ` and ` + pg.NodeRuns("$1") + `
returning account_id, turn_id, owner_epoch, '` + string(turnlog.CauseOperator) + `', adoptions`

// ClaimAny claims an unfinished turn, whatever its owner; protocol.CodeNotFound if there is no such turn.
func (t *Store) ClaimAny(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	return pg.EngineRow[turnlog.Claim](ctx, t.db, protocol.Errorf(protocol.CodeNotFound, "no unfinished turn %s", turn), "claiming a turn", claimAnySQL, node, account, turn)
}

const parkSQL = `
update turns set owner = null, parked_until = $6
where account_id = $2 and turn_id = $3 and (owner = $1 or owner is null and parked_until is not null)
  and owner_epoch = $4 and next_sequence = $5 + 1 and state = 'requires_action'`

// Park removes the owner of a turn that waits for an approval. The turn is no orphan before until, the time at which an approval
// of it expires. A repeat changes nothing.
func (t *Store) Park(
	ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time,
) error {
	parked, err := pg.EngineExec(ctx, t.db, "parking a turn", parkSQL, node, account, turn, epoch, sequence, until)
	if err == nil && parked == 0 {
		err = ownership.ErrFenced
	}
	return err
}

var claimParkedSQL = `
update turns set owner = $1, owner_epoch = owner_epoch + 1, parked_until = null
where account_id = $2 and turn_id = $3 and owner is null and parked_until is not null and ` + open.Turns + ` and ` + pg.NodeClaims("$1") + `
returning account_id, turn_id, owner_epoch, '` + string(turnlog.CauseWake) + `', adoptions`

// ClaimParked claims a turn that was parked. The error is ownership.ErrFenced if it is not parked, or if the node drains.
func (t *Store) ClaimParked(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	return pg.EngineRow[turnlog.Claim](ctx, t.db, ownership.ErrFenced, "claiming a parked turn", claimParkedSQL, node, account, turn)
}

const releaseSQL = `update turns set owner = null where owner = $1 and ` + open.Turns

// Release removes this node as the owner of its unfinished turns and keeps their epochs. It fences the appends that the
// node still has in flight.
func (t *Store) Release(ctx context.Context, node protocol.NodeID) (int, error) {
	released, err := pg.EngineExec(ctx, t.db, "releasing turns", releaseSQL, node)
	return int(released), err
}
