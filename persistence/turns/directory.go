package turns

import (
	"context"
	"errors"
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

// stalledAge is the minimum age of a queued item that the sweep considers, so that the sweep does not interfere with
// turns that are just ending.
const stalledAge = 2 * time.Second

// DirectoryOptions are optional, except for MaxLiveTurns.
type DirectoryOptions struct {
	MaxLiveTurns int // per account, for turns that are started from stalled queues
	Logger       *zap.Logger
}

// Directory manages the lease of this node and the turns that it takes over. It uses the engine's pool, so that the
// leases of a busy node do not wait behind requests.
type Directory struct {
	db      *pg.DB
	options DirectoryOptions

	mu    sync.Mutex
	swept queuedItem // guarded by mu: the last queued item that a sweep examined; zero: start with the oldest
}

// NewDirectory returns a directory. It needs no closing.
func NewDirectory(db *pg.DB, options DirectoryOptions) *Directory {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	return &Directory{db: db, options: options}
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
insert into nodes (node_id, address) values ($1, $2) on conflict (node_id) do nothing`
)

// Register announces a new node. predecessorGone is an earlier node that is known to have ended, and is marked dead;
// nil if there is none.
func (d *Directory) Register(ctx context.Context, node protocol.NodeID, address string, predecessorGone *protocol.NodeID) error {
	batch := &pgx.Batch{}
	if predecessorGone != nil {
		batch.Queue(markPredecessorDeadSQL, *predecessorGone)
	}
	batch.Queue(registerSQL, node, address)
	return d.run(ctx, "registering a node", batch)
}

const renewSQL = `update nodes set renewals = renewals + 1 where node_id = $1 and not dead`

// Renew extends the lease; turnlog.ErrFenced if the node was declared dead.
func (d *Directory) Renew(ctx context.Context, node protocol.NodeID) error {
	renewed, err := d.touch(ctx, "renewing the lease", renewSQL, node)
	if err == nil && renewed == 0 {
		return turnlog.ErrFenced
	}
	return err
}

const renewalsSQL = `select node_id, renewals from nodes where not dead`

// Renewals returns the renewal counter of every node that is not dead.
func (d *Directory) Renewals(ctx context.Context) (map[protocol.NodeID]int64, error) {
	seen := map[protocol.NodeID]int64{}
	batch := &pgx.Batch{}
	batch.Queue(renewalsSQL).Query(func(rows pgx.Rows) error {
		var node protocol.NodeID
		var renewals int64
		_, err := pgx.ForEachRow(rows, []any{&node, &renewals}, func() error {
			seen[node] = renewals
			return nil
		})
		return err
	})
	return seen, d.run(ctx, "reading the leases", batch)
}

const markDeadSQL = `update nodes set dead = true where node_id = $1 and renewals = $2 and not dead`

// MarkDead marks a node dead if its renewal counter still equals seen, and reports whether it did.
func (d *Directory) MarkDead(ctx context.Context, node protocol.NodeID, seen int64) (bool, error) {
	marked, err := d.touch(ctx, "declaring a node dead", markDeadSQL, node, seen)
	return marked == 1, err
}

// claimOrphansSQL tests in a sub-query, not in a join, whether an owner is dead: if another node has claimed the row in
// the meantime, Postgres tests the new owner of the row only in a sub-query. If the dead owner had the same address as
// this node, the cause is a restart; otherwise another machine was lost.
const claimOrphansSQL = `
with orphans as (
    select t.account_id, t.turn_id,
           case when t.owner is null then 'drain'
                when (select address from nodes where node_id = t.owner) = (select address from nodes where node_id = $1) then 'restart'
                else 'node_lost' end as cause
    from turns t
    where t.` + conversations.LiveStates + `
      and (t.owner is null or not exists (select from nodes n where n.node_id = t.owner and not n.dead))
      and exists (select from nodes where node_id = $1 and not dead and not draining)
    limit $2
    for update of t skip locked
)
update turns t set owner = $1, owner_epoch = t.owner_epoch + 1, adoptions = t.adoptions + 1
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
update turns set owner = $1, owner_epoch = owner_epoch + 1, adoptions = adoptions + 1
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

// Drain marks this node as draining, so that it gets no more turns.
func (d *Directory) Drain(ctx context.Context, node protocol.NodeID) error {
	_, err := d.touch(ctx, "draining a node", drainSQL, node)
	return err
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

// stalledScanLimit is the number of queued items that one sweep examines. Most of them rightly wait behind a live turn,
// so a sweep continues where the last one ended, and starts again with the oldest item after the newest.
const stalledScanLimit = 1000

const stalledQueuesSQL = `
select f.account_id, f.conversation_id, f.created_at, f.follow_up_id,
       c.live_turn_id is null and ` + conversations.Visible + `
       and coalesce((select p.state from projects p where p.account_id = c.account_id and p.project_id = c.project_id), 'active') = 'active'
       and (select count(*) from turns t where t.account_id = f.account_id and t.` + conversations.LiveStates + `) < $2
from (
    select account_id, conversation_id, created_at, follow_up_id from follow_ups
    where state = 'queued' and created_at < now() - $1::interval and (created_at, follow_up_id) > ($3, $4)
    order by created_at, follow_up_id limit $5
) f
join conversations c on c.account_id = f.account_id and c.conversation_id = f.conversation_id
order by f.created_at, f.follow_up_id`

// queuedItem is a queued follow-up that a sweep examines, oldest first.
type queuedItem struct {
	Account      protocol.AccountID
	Conversation protocol.ConversationID
	CreatedAt    time.Time
	FollowUp     protocol.FollowUpID
	Stalled      bool // nothing prevents its start
}

// StartStalledQueues starts turns for stalled queues: queues that the end of a turn should have continued but could
// not.
func (d *Directory) StartStalledQueues(ctx context.Context, node protocol.NodeID, limit int,
	begin func(spec *turnlog.Spec) (turnlog.Begin, error),
) ([]turnlog.Started, error) {
	found, err := d.stalledQueues(ctx, limit)
	if err != nil {
		return nil, err
	}
	var started []turnlog.Started
	for _, queue := range found {
		turn, err := d.startQueue(ctx, node, queue.account, queue.id, begin)
		if err != nil {
			return started, fmt.Errorf("starting a turn for a stalled queue: %w", err)
		}
		if turn != nil {
			started = append(started, *turn)
		}
	}
	return started, nil
}

// stalledQueues returns at most limit conversations whose queue is stalled. It continues where the last sweep ended.
func (d *Directory) stalledQueues(ctx context.Context, limit int) (found []ownedConversation, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var items []queuedItem
	batch := &pgx.Batch{}
	args := []any{stalledAge, d.options.MaxLiveTurns, d.swept.CreatedAt, d.swept.FollowUp, stalledScanLimit}
	batch.Queue(stalledQueuesSQL, args...).Query(func(rows pgx.Rows) (err error) {
		items, err = pgx.CollectRows(rows, pgx.RowToStructByPos[queuedItem])
		return err
	})
	if err := d.run(ctx, "finding stalled queues", batch); err != nil {
		return nil, err
	}
	seen := map[ownedConversation]bool{}
	for _, item := range items {
		if len(found) == limit {
			return found, nil
		}
		d.swept = item
		queue := ownedConversation{item.Account, item.Conversation}
		if item.Stalled && !seen[queue] {
			found, seen[queue] = append(found, queue), true
		}
	}
	if len(items) < stalledScanLimit {
		d.swept = queuedItem{}
	}
	return found, nil
}

type ownedConversation struct {
	account protocol.AccountID
	id      protocol.ConversationID
}

// startQueue checks again under the lock of the conversation, as its account, and starts the next turn of the queue;
// nil if nothing is to be started.
func (d *Directory) startQueue(ctx context.Context, node protocol.NodeID, account protocol.AccountID, conversation protocol.ConversationID,
	begin func(spec *turnlog.Spec) (turnlog.Begin, error),
) (started *turnlog.Started, err error) {
	err = d.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		started = nil
		locked, err := conversations.LockConversation(ctx, tx, account, conversation)
		if err != nil || locked.LiveTurnID != nil {
			return err
		}
		queue := turnlog.Queue{
			AccountID: account, ConversationID: conversation, At: time.Now(), Owner: node, MaxLiveTurns: d.options.MaxLiveTurns, Begin: begin,
		}
		var batch *pgx.Batch
		if started, batch, err = StartNext(ctx, tx, &queue, d.options.Logger); err != nil || started == nil {
			return err
		}
		return tx.CommitWith(ctx, batch)
	})
	if err != nil {
		started = nil
	}
	if errors.Is(err, pgx.ErrNoRows) { // deleted in the meantime
		return nil, nil
	}
	return started, err
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
