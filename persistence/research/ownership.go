package research

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// The statements of the engine.
var (
	unowned = pg.Unowned("t.owner")
	// claimDueSQL lets one node at a time claim tasks that wait, so that no account runs more than its limit. It goes from
	// account to account in the index of waiting tasks.
	claimDueSQL = `
	with recursive orphans as (
		select t.account_id, t.task_id from research_tasks t
		where t.` + open.BusyTasks + ` and not t.hidden and ` + unowned + ` limit $2 for update of t skip locked
	), accounts as (
		(select account_id from research_tasks where state = 'queued' and $3 > 0 and pg_try_advisory_xact_lock(758193046) order by account_id limit 1)
		union all
		select (select r.account_id from research_tasks r where r.state = 'queued' and r.account_id > a.account_id order by r.account_id limit 1)
		from accounts a where a.account_id is not null
	), waiting as (
		select w.account_id, w.task_id from accounts a
		cross join lateral (
			select count(*) as n from research_tasks t
			where t.account_id = a.account_id and not t.hidden and (t.` + open.BusyTasks + ` or t.state = 'queued' and not ` + unowned + `)) running
		cross join lateral (
			select t.account_id, t.task_id, t.created_at from research_tasks t
			where t.account_id = a.account_id and t.state = 'queued' and not t.hidden and ` + unowned + `
			order by t.task_id limit greatest(0, $4 - running.n)) w
		order by w.created_at limit $3
	), due as (
		select account_id, task_id from orphans union all select account_id, task_id from waiting
	)
	update research_tasks t set owner = $1, owner_epoch = t.owner_epoch + 1, attempts = t.attempts + 1
	from due where t.account_id = due.account_id and t.task_id = due.task_id and ` + pg.NodeClaims("$1") + ` and ` + unowned + `
	returning t.account_id, t.task_id, t.owner_epoch`
	ownedSQL = `select account_id, task_id, owner_epoch from research_tasks where owner = $1 and not hidden and ` + open.Tasks
	// claimLostSQL releases a task that waits: its node has claimed it for a command, or had a slot for it that others may have now.
	claimLostSQL = `
	with claimed as (
		update research_tasks set owner_epoch = owner_epoch + 1, owner = case when state = 'queued' then null else owner end,
			attempts = case when state = 'queued' then attempts else attempts + 1 end
		where account_id = $2 and task_id = $3 and owner = $1 and owner_epoch = $4 and not hidden and ` + open.Tasks + ` and ` + pg.NodeRuns("$1") + `
		returning account_id, task_id, owner_epoch, owner
	)
	select account_id, task_id, owner_epoch from claimed where owner is not null`
	releaseSQL = `
	update research_tasks set owner = null, owner_epoch = owner_epoch + 1, attempts = greatest(0, attempts - 1)
	where owner = $1 and ` + open.Tasks
)

// ClaimDue implements the store of package actors/research.
func (s *Store) ClaimDue(ctx context.Context, node protocol.NodeID, adopted, begun int) ([]researchlog.Claimed, error) {
	return pg.EngineRows[researchlog.Claimed](ctx, s.db, "claiming research tasks", claimDueSQL, node, adopted, begun, protocol.MaxResearchRunning)
}

// Owned lists the tasks that a node works on.
func (s *Store) Owned(ctx context.Context, node protocol.NodeID) ([]researchlog.Claimed, error) {
	return pg.EngineRows[researchlog.Claimed](ctx, s.db, "listing own research tasks", ownedSQL, node)
}

// ClaimLost claims a task of this node again that has no actor. It releases one that waits for a slot, with ownership.ErrFenced.
func (s *Store) ClaimLost(ctx context.Context, claim researchlog.Claimed, node protocol.NodeID) (researchlog.Claimed, error) {
	return pg.EngineRow[researchlog.Claimed](ctx, s.db, ownership.ErrFenced, "claiming a lost research task", claimLostSQL, node, claim.AccountID, claim.TaskID, claim.Epoch)
}

// Release makes the tasks of a node free for others, and returns their number.
func (s *Store) Release(ctx context.Context, node protocol.NodeID) (released int, err error) {
	changed, err := pg.EngineExec(ctx, s.db, "releasing research tasks", releaseSQL, node)
	return int(changed), err
}

var claimAnySQL = `
	update research_tasks t set owner = @node, owner_epoch = owner_epoch + 1
	where account_id = @account and task_id = @task and ` + open.Tasks + ` and ` + visible + ` and ` + pg.NodeRuns("@node") + `
	returning account_id, task_id, owner_epoch`

const (
	claimColumns = `spec, owner_epoch, attempts, state, next_sequence, version`
	loadSQL      = `
	select ` + claimColumns + ` from research_tasks t
	where account_id = @account and task_id = @task and owner = @node and owner_epoch = @epoch and ` + open.Tasks
	readSQL    = `select ` + claimColumns + ` from research_tasks t where account_id = @account and task_id = @task and ` + visible
	entriesSQL = `select body from research_entries where account_id = @account and task_id = @task order by number`
)

// ClaimAny makes a node the owner of a task, whatever its owner; researchlog.ErrEnded if the task has ended.
func (s *Store) ClaimAny(ctx context.Context, account protocol.AccountID, id protocol.TaskID, node protocol.NodeID) (claim researchlog.Claimed, err error) {
	args := pgx.NamedArgs{"account": account, "task": id, "node": node}
	claims, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[researchlog.Claimed], claimAnySQL, args)
	if err != nil {
		return claim, fmt.Errorf("claiming a research task: %w", err)
	}
	if len(claims) == 1 {
		return claims[0], nil
	}
	current, err := s.Task(ctx, account, id)
	switch {
	case err != nil:
		return claim, err
	case current.State.Terminal():
		return claim, researchlog.ErrEnded
	}
	return claim, protocol.Errorf(protocol.CodeUnavailable, "The server is shutting down. Repeat the request.")
}

// Load reads a task that a node has claimed; ownership.ErrFenced if the task has ended or has another owner or epoch.
func (s *Store) Load(ctx context.Context, claim researchlog.Claimed, node protocol.NodeID) (*researchlog.Claim, error) {
	found, err := s.read(ctx, claim.AccountID, loadSQL, pgx.NamedArgs{"account": claim.AccountID, "task": claim.TaskID, "node": node, "epoch": claim.Epoch})
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil, ownership.ErrFenced
	}
	return found, err
}

// Read reads the journal of a task, whatever its state and its owner.
func (s *Store) Read(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*researchlog.Claim, error) {
	return s.read(ctx, account, readSQL, pgx.NamedArgs{"account": account, "task": id})
}

func (s *Store) read(ctx context.Context, account protocol.AccountID, sql string, args pgx.NamedArgs) (*researchlog.Claim, error) {
	claim := &researchlog.Claim{}
	batch := &pgx.Batch{}
	batch.Queue(sql, args).QueryRow(func(row pgx.Row) error {
		return row.Scan(&claim.Spec, &claim.Epoch, &claim.Attempts, &claim.State, &claim.NextSequence, &claim.Version)
	})
	batch.Queue(entriesSQL, args).Query(func(rows pgx.Rows) error {
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		claim.Entries = make([]researchlog.Entry, len(bodies))
		for i, body := range bodies {
			err = errors.Join(err, json.Unmarshal(body, &claim.Entries[i]))
		}
		return err
	})
	if err := pg.Classify(s.db.Send(ctx, account, batch)); err != nil {
		return nil, fmt.Errorf("reading the journal of a research task: %w", err)
	}
	return claim, nil
}
