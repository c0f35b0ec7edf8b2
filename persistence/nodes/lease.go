package nodes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// Directory manages the lease of this node and the turns that it takes over. It uses the engine's pool, so that the
// leases of a busy node do not wait behind requests.
type Directory struct{ db *pg.DB }

// NewDirectory returns a directory. It needs no closing.
func NewDirectory(db *pg.DB) *Directory { return &Directory{db} }

// run runs a batch as the engine: across accounts, as one implicit transaction.
func (d *Directory) run(ctx context.Context, doing string, batch *pgx.Batch) error {
	if err := pg.Classify(d.db.SendOn(ctx, d.db.Engine, pg.NoAccount, batch)); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

const (
	markPredecessorDeadSQL = `update nodes set dead = true where node_id = $1 and not dead`
	registerSQL            = `
insert into nodes (node_id, address, build) values ($1, $2, $3) on conflict (node_id) do nothing`
)

// Register adds a new node, and marks its predecessor dead, if it has one.
func (d *Directory) Register(ctx context.Context, node ownership.NewNode) error {
	batch := &pgx.Batch{}
	if node.Predecessor != nil {
		batch.Queue(markPredecessorDeadSQL, *node.Predecessor)
	}
	batch.Queue(registerSQL, node.NodeID, node.Address, node.Build)
	return d.run(ctx, "registering a node", batch)
}

const renewSQL = `
update nodes set renewals = renewals + 1, live = $2, capacity = $3 where node_id = $1 and not dead returning draining`

// Renew extends the lease, and reports whether the node has been asked to drain; ownership.ErrFenced if it was declared
// dead.
func (d *Directory) Renew(ctx context.Context, node protocol.NodeID, load ownership.NodeLoad) (draining bool, err error) {
	renewed := false
	batch := &pgx.Batch{}
	batch.Queue(renewSQL, node, load.Live, load.Capacity).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&draining}, func() error { renewed = true; return nil })
		return err
	})
	if err = d.run(ctx, "renewing the lease", batch); err == nil && !renewed {
		err = ownership.ErrFenced
	}
	return draining, err
}

const leasesSQL = `
select node_id, renewals, address, build, live, capacity, draining, started_at from nodes where not dead`

// Leases returns the leases of all nodes that are not dead.
func (d *Directory) Leases(ctx context.Context) (map[protocol.NodeID]ownership.Lease, error) {
	leases := map[protocol.NodeID]ownership.Lease{}
	batch := &pgx.Batch{}
	batch.Queue(leasesSQL).Query(func(rows pgx.Rows) error {
		var node protocol.NodeID
		var l ownership.Lease
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
	marked, err := pg.EngineExec(ctx, d.db, "declaring a node dead", markDeadSQL, node, seen)
	return marked == 1, err
}

const drainSQL = `update nodes set draining = true where node_id = $1 and not dead`

// Drain marks a node as draining: it claims and starts no more turns, and drains at its next renewal, unless it does
// already. The error is protocol.CodeNotFound if the node is dead or unknown.
func (d *Directory) Drain(ctx context.Context, node protocol.NodeID) error {
	marked, err := pg.EngineExec(ctx, d.db, "draining a node", drainSQL, node)
	if err == nil && marked == 0 {
		err = protocol.Errorf(protocol.CodeNotFound, "no node %s is running", node)
	}
	return err
}

const leaveSQL = `delete from nodes where node_id = $1`

// Leave deletes the row of the node. Turns that it still owned become orphans.
func (d *Directory) Leave(ctx context.Context, node protocol.NodeID) error {
	_, err := pg.EngineExec(ctx, d.db, "removing a node", leaveSQL, node)
	return err
}

const expireNodesSQL = `
	delete from nodes n using (
		select node_id from nodes d
		where dead and started_at < now() - interval '1 day'
		  and not exists (select from turns t where t.owner = d.node_id and t.` + open.Turns + `)
		limit $1) x
	where n.node_id = x.node_id`

// Expire deletes old nodes that are marked dead and own no live turn.
func (d *Directory) Expire(ctx context.Context) error { return d.db.DeleteExpired(ctx, expireNodesSQL) }
