package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// standingAge keeps the sweep of queues away from turns that are ending right now.
const standingAge = 2 * time.Second

// DirectoryOptions are optional but for MaxLiveTurns.
type DirectoryOptions struct {
	MaxLiveTurns int // an account, for turns from standing queues
	Logger       *zap.Logger
}

// Directory is the lease of this node and what it may take over. It uses the engine's pool: the leases of a busy node do
// not wait behind requests.
type Directory struct {
	db      *DB
	options DirectoryOptions

	mu    sync.Mutex
	swept queuedItem // guarded by mu: the last queued item that a sweep looked at; zero: begin with the oldest
}

// NewDirectory makes a directory; it holds nothing that needs closing.
func NewDirectory(db *DB, options DirectoryOptions) *Directory {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	return &Directory{db: db, options: options}
}

// run sends a batch of the engine: across accounts, as one implicit transaction.
func (d *Directory) run(ctx context.Context, doing string, batch *pgx.Batch) error {
	if err := classify(d.db.send(ctx, d.db.engine, Nobody, batch)); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// touch runs one statement and tells how many rows it changed.
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
	buryPredecessorSQL = `update nodes set dead = true where node_id = $1 and not dead`
	registerSQL        = `
insert into nodes (node_id, address) values ($1, $2) on conflict (node_id) do nothing`
)

// Register announces a new node.
func (d *Directory) Register(ctx context.Context, node protocol.NodeID, address string, predecessorGone *protocol.NodeID) error {
	batch := &pgx.Batch{}
	if predecessorGone != nil {
		batch.Queue(buryPredecessorSQL, *predecessorGone)
	}
	batch.Queue(registerSQL, node, address)
	return d.run(ctx, "registering a node", batch)
}

const renewSQL = `update nodes set renewals = renewals + 1 where node_id = $1 and not dead`

// Renew extends the lease; protocol.ErrFenced when the node was declared dead.
func (d *Directory) Renew(ctx context.Context, node protocol.NodeID) error {
	renewed, err := d.touch(ctx, "renewing the lease", renewSQL, node)
	if err == nil && renewed == 0 {
		return protocol.ErrFenced
	}
	return err
}

const renewalsSQL = `select node_id, renewals from nodes where not dead`

// Renewals reads the counter of every node that is not dead.
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

const burySQL = `update nodes set dead = true where node_id = $1 and renewals = $2 and not dead`

// Bury marks a node dead if its counter still is what was seen.
func (d *Directory) Bury(ctx context.Context, node protocol.NodeID, seen int64) (bool, error) {
	buried, err := d.touch(ctx, "declaring a node dead", burySQL, node, seen)
	return buried == 1, err
}

// A sub-query and not a join decides who is dead: when another node has claimed the row meanwhile, Postgres looks at the
// row's new owner again in a sub-query only. Nodes that run at the same place one after the other tell a restart from the
// loss of another machine.
const claimOrphansSQL = `
with orphans as (
    select t.account_id, t.turn_id,
           case when t.owner is null then 'drain'
                when (select address from nodes where node_id = t.owner) = (select address from nodes where node_id = $1) then 'restart'
                else 'node_lost' end as cause
    from turns t
    where t.` + liveStates + `
      and (t.owner is null or not exists (select from nodes n where n.node_id = t.owner and not n.dead))
      and exists (select from nodes where node_id = $1 and not dead and not draining)
    limit $2
    for update of t skip locked
)
update turns t set owner = $1, owner_epoch = t.owner_epoch + 1, adoptions = t.adoptions + 1
from orphans
where t.account_id = orphans.account_id and t.turn_id = orphans.turn_id
returning t.account_id, t.turn_id, t.owner_epoch, orphans.cause, t.adoptions`

// ClaimOrphans takes over at most limit unfinished turns whose owner is dead or nobody.
func (d *Directory) ClaimOrphans(ctx context.Context, node protocol.NodeID, limit int) ([]protocol.Claim, error) {
	return d.claims(ctx, "claiming orphans", claimOrphansSQL, node, limit)
}

const ownTurnsSQL = `
select account_id, turn_id, owner_epoch, '', adoptions from turns where owner = $1 and ` + liveStates

// OwnTurns lists the unfinished turns of this node.
func (d *Directory) OwnTurns(ctx context.Context, node protocol.NodeID) ([]protocol.Claim, error) {
	return d.claims(ctx, "listing own turns", ownTurnsSQL, node)
}

const reclaimSQL = `
update turns set owner_epoch = owner_epoch + 1, adoptions = adoptions + 1
where account_id = $2 and turn_id = $3 and owner = $1 and owner_epoch = $4 and ` + liveStates + `
  and exists (select from nodes where node_id = $1 and not dead)
returning account_id, turn_id, owner_epoch, 'actor_lost', adoptions`

// ReclaimTurn raises the epoch of an own turn whose actor is gone; protocol.ErrFenced when it moved on meanwhile.
func (d *Directory) ReclaimTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (protocol.Claim, error) {
	claims, err := d.claims(ctx, "reclaiming a turn", reclaimSQL, node, account, turn, epoch)
	if err != nil {
		return protocol.Claim{}, err
	}
	if len(claims) == 0 {
		return protocol.Claim{}, protocol.ErrFenced
	}
	return claims[0], nil
}

const seizeSQL = `
update turns set owner = $1, owner_epoch = owner_epoch + 1, adoptions = adoptions + 1
where account_id = $2 and turn_id = $3 and ` + liveStates + `
  and exists (select from nodes where node_id = $1 and not dead)
returning account_id, turn_id, owner_epoch, 'operator', adoptions`

// SeizeTurn takes an unfinished turn from whatever node owns it; protocol.CodeNotFound when there is none.
func (d *Directory) SeizeTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (protocol.Claim, error) {
	claims, err := d.claims(ctx, "seizing a turn", seizeSQL, node, account, turn)
	if err != nil {
		return protocol.Claim{}, err
	}
	if len(claims) == 0 {
		return protocol.Claim{}, protocol.Errorf(protocol.CodeNotFound, "no unfinished turn %s", turn)
	}
	return claims[0], nil
}

func (d *Directory) claims(ctx context.Context, doing, sql string, args ...any) ([]protocol.Claim, error) {
	var claims []protocol.Claim
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		claims, err = pgx.CollectRows(rows, pgx.RowToStructByPos[protocol.Claim])
		return err
	})
	return claims, d.run(ctx, doing, batch)
}

const drainSQL = `update nodes set draining = true where node_id = $1 and not dead`

// Drain stops this node from being given turns.
func (d *Directory) Drain(ctx context.Context, node protocol.NodeID) error {
	_, err := d.touch(ctx, "draining a node", drainSQL, node)
	return err
}

const releaseSQL = `update turns set owner = null where owner = $1 and ` + liveStates

// Release gives unfinished turns back: owner nobody, epoch kept. What this node still has under way is fenced by it.
func (d *Directory) Release(ctx context.Context, node protocol.NodeID) (int, error) {
	released, err := d.touch(ctx, "releasing turns", releaseSQL, node)
	return int(released), err
}

const leaveSQL = `delete from nodes where node_id = $1`

// Leave removes the node. A turn that it still had becomes an orphan.
func (d *Directory) Leave(ctx context.Context, node protocol.NodeID) error {
	_, err := d.touch(ctx, "leaving", leaveSQL, node)
	return err
}

// standingLooks is how many queued items one sweep looks at. Most of them wait rightly, behind a live turn, so a sweep goes
// on where the last one ended, and begins again after the newest.
const standingLooks = 1000

const standingQueuesSQL = `
select f.account_id, f.conversation_id, f.created_at, f.follow_up_id,
       c.live_turn_id is null and c.deleted_at is null
       and (select count(*) from turns t where t.account_id = f.account_id and t.` + liveStates + `) < $2
from (
    select account_id, conversation_id, created_at, follow_up_id from follow_ups
    where state = 'queued' and created_at < now() - $1::interval and (created_at, follow_up_id) > ($3, $4)
    order by created_at, follow_up_id limit $5
) f
join conversations c on c.account_id = f.account_id and c.conversation_id = f.conversation_id
order by f.created_at, f.follow_up_id`

// queuedItem is what a sweep finds, the oldest first.
type queuedItem struct {
	Account      protocol.AccountID
	Conversation protocol.ConversationID
	CreatedAt    time.Time
	FollowUp     protocol.FollowUpID
	Standing     bool // nothing keeps it from being started
}

// StandingQueues begins turns for queues that were left standing: the end that should have gone on with them could not.
func (d *Directory) StandingQueues(ctx context.Context, node protocol.NodeID, limit int,
	begin func(spec *protocol.TurnSpec) (protocol.TurnBegin, error),
) ([]protocol.StartedTurn, error) {
	found, err := d.standing(ctx, limit)
	if err != nil {
		return nil, err
	}
	var started []protocol.StartedTurn
	for _, queue := range found {
		turn, err := d.startQueue(ctx, node, queue.account, queue.id, begin)
		if err != nil {
			return started, fmt.Errorf("starting a standing queue: %w", err)
		}
		if turn != nil {
			started = append(started, *turn)
		}
	}
	return started, nil
}

// standing looks for at most limit conversations whose queue stands, from where the last look ended.
func (d *Directory) standing(ctx context.Context, limit int) (found []ownedConversation, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var items []queuedItem
	batch := &pgx.Batch{}
	args := []any{standingAge, d.options.MaxLiveTurns, d.swept.CreatedAt, d.swept.FollowUp, standingLooks}
	batch.Queue(standingQueuesSQL, args...).Query(func(rows pgx.Rows) (err error) {
		items, err = pgx.CollectRows(rows, pgx.RowToStructByPos[queuedItem])
		return err
	})
	if err := d.run(ctx, "looking for standing queues", batch); err != nil {
		return nil, err
	}
	seen := map[ownedConversation]bool{}
	for _, item := range items {
		if len(found) == limit {
			return found, nil
		}
		d.swept = item
		queue := ownedConversation{item.Account, item.Conversation}
		if item.Standing && !seen[queue] {
			found, seen[queue] = append(found, queue), true
		}
	}
	if len(items) < standingLooks {
		d.swept = queuedItem{}
	}
	return found, nil
}

type ownedConversation struct {
	account protocol.AccountID
	id      protocol.ConversationID
}

// startQueue looks again under the conversation's lock, as its account.
func (d *Directory) startQueue(ctx context.Context, node protocol.NodeID, account protocol.AccountID, conversation protocol.ConversationID,
	begin func(spec *protocol.TurnSpec) (protocol.TurnBegin, error),
) (started *protocol.StartedTurn, err error) {
	err = d.db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		started = nil
		locked, err := lockConversation(ctx, tx, account, conversation)
		if err != nil || locked.LiveTurnID != nil {
			return err
		}
		plan := turnPlan{account: account, conversation: conversation, owner: node, at: millis(time.Now())}
		var batch *pgx.Batch
		if started, batch, err = startNext(ctx, tx, plan, d.options.MaxLiveTurns, begin, d.options.Logger); err != nil || started == nil {
			return err
		}
		return tx.CommitWith(ctx, batch)
	})
	if err != nil {
		started = nil
	}
	if errors.Is(err, pgx.ErrNoRows) { // deleted meanwhile
		return nil, nil
	}
	return started, err
}
