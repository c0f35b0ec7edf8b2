package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Directory manages the lease of this node and the turns that it takes over. It uses the engine's pool, so that the
// leases of a busy node do not wait behind requests.
type Directory struct {
	db  *pg.DB
	log *zap.Logger

	mu    sync.Mutex
	swept queuedItem // guarded by mu: the last queued item that a sweep examined; zero: start with the oldest
}

// NewDirectory returns a directory, whose log may be nil. It needs no closing.
func NewDirectory(db *pg.DB, log *zap.Logger) *Directory {
	if log == nil {
		log = zap.NewNop()
	}
	return &Directory{db: db, log: log}
}

// run runs a batch as the engine: across accounts, as one implicit transaction.
func (d *Directory) run(ctx context.Context, doing string, batch *pgx.Batch) error {
	if err := pg.Classify(d.db.SendOn(ctx, d.db.Engine, pg.NoAccount, batch)); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// touch runs one statement and returns the number of rows that it changed.
func (d *Directory) touch(ctx context.Context, doing, sql string, args ...any) (int64, error) {
	var touched int64
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		touched = tag.RowsAffected()
		return nil
	})
	return touched, d.run(ctx, doing, batch)
}

const (
	markPredecessorDeadSQL = `update nodes set dead = true where node_id = $1 and not dead`
	registerSQL            = `
insert into nodes (node_id, address, build) values ($1, $2, $3) on conflict (node_id) do nothing`
)

// Register adds a new node, and marks its predecessor dead, if it has one.
func (d *Directory) Register(ctx context.Context, node turnlog.NewNode) error {
	batch := &pgx.Batch{}
	if node.Predecessor != nil {
		batch.Queue(markPredecessorDeadSQL, *node.Predecessor)
	}
	batch.Queue(registerSQL, node.NodeID, node.Address, node.Build)
	return d.run(ctx, "registering a node", batch)
}

const renewSQL = `
update nodes set renewals = renewals + 1, live = $2, capacity = $3 where node_id = $1 and not dead returning draining`

// Renew extends the lease, and reports whether the node has been asked to drain; turnlog.ErrFenced if it was declared
// dead.
func (d *Directory) Renew(ctx context.Context, node protocol.NodeID, load turnlog.NodeLoad) (draining bool, err error) {
	renewed := false
	batch := &pgx.Batch{}
	batch.Queue(renewSQL, node, load.Live, load.Capacity).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&draining}, func() error { renewed = true; return nil })
		return err
	})
	if err = d.run(ctx, "renewing the lease", batch); err == nil && !renewed {
		err = turnlog.ErrFenced
	}
	return draining, err
}

const leasesSQL = `
select node_id, renewals, address, build, live, capacity, draining, started_at from nodes where not dead`

// Leases returns the leases of all nodes that are not dead.
func (d *Directory) Leases(ctx context.Context) (map[protocol.NodeID]turnlog.Lease, error) {
	leases := map[protocol.NodeID]turnlog.Lease{}
	batch := &pgx.Batch{}
	batch.Queue(leasesSQL).Query(func(rows pgx.Rows) error {
		var node protocol.NodeID
		var l turnlog.Lease
		into := []any{&node, &l.Renewals, &l.Address, &l.Build, &l.Load.Live, &l.Load.Capacity, &l.Draining, &l.StartedAt}
		_, err := pgx.ForEachRow(rows, into, func() error {
			leases[node] = l
			return nil
		})
		return err
	})
	return leases, d.run(ctx, "reading the leases", batch)
}

const markDeadSQL = `update nodes set dead = true where node_id = $1 and renewals = $2 and not dead`

// MarkDead marks a node dead if its renewal counter still equals seen, and reports whether it did.
func (d *Directory) MarkDead(ctx context.Context, node protocol.NodeID, seen int64) (bool, error) {
	marked, err := d.touch(ctx, "declaring a node dead", markDeadSQL, node, seen)
	return marked == 1, err
}

// claimOrphansSQL tests in a sub-query that has a value, which Postgres makes no join of, whether an owner is dead: if another node has
// claimed the row in the meantime, Postgres tests the new owner of the row only in such a sub-query. If the dead owner had the same address as
// this node, the cause is a restart; otherwise another host computer was lost. A turn that was released is not a failed adoption, so
// it does not count as one, and neither is one that waited for an approval whose time has passed.
const claimOrphansSQL = `
with released as (
    select t.account_id, t.turn_id, case when t.parked_until is null then 'drain' else 'wake' end as cause
    from turns t
    where t.` + conversations.LiveStates + ` and t.owner is null and (t.parked_until is null or t.parked_until <= now())
      and exists (select from nodes where node_id = $1 and not dead and not draining)
    limit $2
    for update of t skip locked
), lost as (
    select t.account_id, t.turn_id,
           case when (select address from nodes where node_id = t.owner) = (select address from nodes where node_id = $1) then 'restart'
                else 'node_lost' end as cause
    from turns t
    where t.` + conversations.LiveStates + ` and t.owner is not null and coalesce((select dead from nodes where node_id = t.owner), true)
      and exists (select from nodes where node_id = $1 and not dead and not draining)
    limit $2
    for update of t skip locked
), orphans as (
    select * from lost union all select * from released limit $2
)
update turns t set owner = $1, owner_epoch = t.owner_epoch + 1, adoptions = t.adoptions + (t.owner is not null)::int, parked_until = null
from orphans
where t.account_id = orphans.account_id and t.turn_id = orphans.turn_id
returning t.account_id, t.turn_id, t.owner_epoch, orphans.cause, t.adoptions`

// ClaimOrphans takes over at most limit unfinished turns that have no owner or whose owner is dead.
func (d *Directory) ClaimOrphans(ctx context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error) {
	return d.claims(ctx, "claiming orphans", claimOrphansSQL, node, limit)
}

const ownTurnsSQL = `
select account_id, turn_id, owner_epoch, '', adoptions from turns where owner = $1 and ` + conversations.LiveStates

// OwnTurns returns the unfinished turns of this node.
func (d *Directory) OwnTurns(ctx context.Context, node protocol.NodeID) ([]turnlog.Claim, error) {
	return d.claims(ctx, "listing own turns", ownTurnsSQL, node)
}

const reclaimSQL = `
update turns set owner_epoch = owner_epoch + 1, adoptions = adoptions + 1
where account_id = $2 and turn_id = $3 and owner = $1 and owner_epoch = $4 and ` + conversations.LiveStates + `
  and exists (select from nodes where node_id = $1 and not dead)
returning account_id, turn_id, owner_epoch, 'actor_lost', adoptions`

// ReclaimTurn raises the epoch of a turn of this node whose actor is gone. The error is turnlog.ErrFenced if the turn
// has ended or has another owner or epoch, or if the node was declared dead.
func (d *Directory) ReclaimTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error) {
	claims, err := d.claims(ctx, "reclaiming a turn", reclaimSQL, node, account, turn, epoch)
	if err != nil {
		return turnlog.Claim{}, err
	}
	if len(claims) == 0 {
		return turnlog.Claim{}, turnlog.ErrFenced
	}
	return claims[0], nil
}

const seizeSQL = `
update turns set owner = $1, owner_epoch = owner_epoch + 1, adoptions = adoptions + 1, parked_until = null
where account_id = $2 and turn_id = $3 and ` + conversations.LiveStates + `
  and exists (select from nodes where node_id = $1 and not dead)
returning account_id, turn_id, owner_epoch, 'operator', adoptions`

// SeizeTurn takes over an unfinished turn from any owner; protocol.CodeNotFound if there is no such turn.
func (d *Directory) SeizeTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	claims, err := d.claims(ctx, "seizing a turn", seizeSQL, node, account, turn)
	if err != nil {
		return turnlog.Claim{}, err
	}
	if len(claims) == 0 {
		return turnlog.Claim{}, protocol.Errorf(protocol.CodeNotFound, "no unfinished turn %s", turn)
	}
	return claims[0], nil
}

func (d *Directory) claims(ctx context.Context, doing, sql string, args ...any) ([]turnlog.Claim, error) {
	var claims []turnlog.Claim
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		claims, err = pgx.CollectRows(rows, pgx.RowToStructByPos[turnlog.Claim])
		return err
	})
	return claims, d.run(ctx, doing, batch)
}

const drainSQL = `update nodes set draining = true where node_id = $1 and not dead`

// Drain marks a node as draining: it claims and starts no more turns, and drains at its next renewal, unless it does
// already. The error is protocol.CodeNotFound if the node is dead or unknown.
func (d *Directory) Drain(ctx context.Context, node protocol.NodeID) error {
	marked, err := d.touch(ctx, "draining a node", drainSQL, node)
	if err == nil && marked == 0 {
		err = protocol.Errorf(protocol.CodeNotFound, "no node %s is running", node)
	}
	return err
}

const parkSQL = `
update turns set owner = null, parked_until = $6
where account_id = $2 and turn_id = $3 and (owner = $1 or owner is null and parked_until is not null)
  and owner_epoch = $4 and next_sequence = $5 + 1 and state = 'requires_action'`

// Park removes the owner of a turn that waits for an approval. The turn is no orphan before until, the time at which an approval
// of it expires. A repeat changes nothing.
func (d *Directory) Park(
	ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time,
) error {
	parked, err := d.touch(ctx, "parking a turn", parkSQL, node, account, turn, epoch, sequence, until)
	if err == nil && parked == 0 {
		err = turnlog.ErrFenced
	}
	return err
}

const wakeSQL = `
update turns set owner = $1, owner_epoch = owner_epoch + 1, parked_until = null
where account_id = $2 and turn_id = $3 and owner is null and parked_until is not null and ` + conversations.LiveStates + `
  and exists (select from nodes where node_id = $1 and not dead and not draining)
returning account_id, turn_id, owner_epoch, 'wake', adoptions`

// WakeTurn takes over a turn that was parked. The error is turnlog.ErrFenced if it is not parked, or if the node drains.
func (d *Directory) WakeTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	claims, err := d.claims(ctx, "waking a turn", wakeSQL, node, account, turn)
	if err != nil {
		return turnlog.Claim{}, err
	}
	if len(claims) == 0 {
		return turnlog.Claim{}, turnlog.ErrFenced
	}
	return claims[0], nil
}

const releaseSQL = `update turns set owner = null where owner = $1 and ` + conversations.LiveStates

// Release removes this node as the owner of its unfinished turns and keeps their epochs. It fences the appends that the
// node still has in flight.
func (d *Directory) Release(ctx context.Context, node protocol.NodeID) (int, error) {
	released, err := d.touch(ctx, "releasing turns", releaseSQL, node)
	return int(released), err
}

const leaveSQL = `delete from nodes where node_id = $1`

// Leave deletes the row of the node. Turns that it still owned become orphans.
func (d *Directory) Leave(ctx context.Context, node protocol.NodeID) error {
	_, err := d.touch(ctx, "removing a node", leaveSQL, node)
	return err
}

const expireNodesSQL = `
	delete from nodes n using (
		select node_id from nodes d
		where dead and started_at < now() - interval '1 day'
		  and not exists (select from turns t where t.owner = d.node_id and t.` + conversations.LiveStates + `)
		limit $1) x
	where n.node_id = x.node_id`

// Expire deletes old nodes that are marked dead and own no live turn.
func (d *Directory) Expire(ctx context.Context) error { return d.db.DeleteExpired(ctx, expireNodesSQL) }
