package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	// sharedStarts limits the groups in flight; the second one starts if the first takes long. More would not help:
	// groups with starts of the same accounts wait for each other anyway.
	sharedStarts = 2
	maxStartWait = 50 * time.Millisecond
	// maxSharedStart limits the transaction, and the number of starts that run alone if it fails.
	maxSharedStart = 64
)

// shareable reports whether a start depends only on its account, because it creates a new conversation in no project, and
// its message has no files. A start with invalid input runs alone and is refused there.
func shareable(start *turnlog.Start) bool {
	return start.ConversationID == nil && start.ProjectID == nil && start.Branch == nil && start.Input != "" && len(start.Attachments) == 0 && (start.Expected == nil || start.Expected.ID == nil)
}

// sharedStart is a start that waits for its group.
type sharedStart struct {
	request
	ctx   context.Context // of the caller that waits; used if the start is alone in its group
	taken chan struct{}   // closed when its group starts
	done  chan struct{}   // closed when the start is decided
	// Set before done is closed.
	alone  bool // nothing was stored: the caller runs the start alone
	result *turnlog.StartResult
	err    error
}

// startShared starts a turn in a new conversation together with concurrent starts. Each start is refused or fails
// separately: if the group fails, each of its starts runs alone, unless it is unknown whether the group was committed.
func (t *Store) startShared(ctx context.Context, start request) (*turnlog.StartResult, error) {
	s := &sharedStart{request: start, ctx: ctx, taken: make(chan struct{}), done: make(chan struct{})}
	t.starts.Add(s)
	select {
	case <-s.done:
	case <-ctx.Done():
		if err := s.abandonWait(ctx); err != nil {
			return nil, err
		}
	}
	if s.alone {
		return t.startAlone(ctx, start)
	}
	return s.result, s.err
}

// abandonWait ends the wait of a caller whose context has ended. After a deadline it returns an error. If the client
// has gone, nothing else waits for the response, so it waits for the outcome: a start that has begun is completed.
func (s *sharedStart) abandonWait(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		<-s.done // bounded by the time of a transaction
		return nil
	}
	select {
	case <-s.taken:
		return pg.UnknownOutcome(ctx.Err())
	default:
		return pg.Unavailable(ctx.Err()) // the group skips a start whose context has ended
	}
}

// runStartGroup is the Work of Store.starts. After a panic, which one of the requests caused, each start runs alone, in
// its own request.
func (t *Store) runStartGroup(waiting []*sharedStart) {
	group := make([]*sharedStart, 0, len(waiting))
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("a group of starts failed unexpectedly", zap.String("kind", fmt.Sprintf("%T", p)))
			startSeparately(group)
		}
		for _, s := range waiting {
			close(s.done)
		}
	}()
	for _, s := range waiting {
		close(s.taken)
		if s.ctx.Err() != nil {
			s.err = pg.Unavailable(s.ctx.Err())
			continue
		}
		group = append(group, s)
	}
	switch len(group) {
	case 0:
	case 1:
		group[0].result, group[0].err = t.startAlone(group[0].ctx, group[0].request)
	default:
		t.startTogether(group)
	}
}

// startSeparately makes every start of a group run alone.
func startSeparately(group []*sharedStart) {
	for _, s := range group {
		s.alone, s.result, s.err = true, nil, nil
	}
}

// startTogether starts a group in one transaction.
func (t *Store) startTogether(group []*sharedStart) {
	ctx, cancel := context.WithTimeout(context.Background(), pg.RequestTimeout)
	defer cancel()
	g := &startGroup{}
	err := t.db.InTx(ctx, pg.NoAccount, func(ctx context.Context, tx *pg.Tx) error {
		g.reset(group)
		return g.run(ctx, tx)
	})
	var unanswered *pg.CommitError
	switch {
	case err == nil || errors.Is(err, errNoChange):
	case errors.As(err, &unanswered):
		for _, s := range g.stored {
			s.result, s.err = nil, fmt.Errorf("starting a turn: %w", err)
		}
	case pg.IsOutage(err): // each start alone would fail in the same way
		for _, s := range group {
			s.alone, s.result, s.err = false, nil, fmt.Errorf("starting a turn: %w", err)
		}
	default:
		startSeparately(group)
	}
}

// startGroup is one attempt at starting a group.
type startGroup struct {
	members []*sharedStart
	facts   []groupFacts
	rows    []*turnRow // of stored
	stored  []*sharedStart
}

// groupFacts holds what one start of a group depends on.
type groupFacts struct {
	startFacts
	known, claimed bool // the account exists; the key exists
}

const (
	// If a lock is held for long, waiting is not worthwhile: the starts run alone. InTx tries three times.
	groupAccountsSQL = `
select set_config('turnstone.account_ids', $1, true), set_config('lock_timeout', '80ms', true), ` + pg.GenericPlans
	// Locked in order, so that two groups cannot deadlock.
	lockAccountsSQL = `
select account_id from accounts where account_id = any ($1) order by account_id for no key update`
)

var groupFactsSQL = `
select ` + accountFacts("g.account_id", "g.owner") + `,
       exists (select from accounts where account_id = g.account_id),
       coalesce((select true from idempotency i
           where i.account_id = g.account_id and i.key_hash = g.key_hash limit 1), false)
from unnest($1::uuid[], $2::uuid[], $3::bytea[]) with ordinality as g (account_id, owner, key_hash, n)
order by n`

func (g *startGroup) reset(group []*sharedStart) {
	*g = startGroup{members: group, facts: make([]groupFacts, 0, len(group))}
	for _, s := range group {
		s.alone, s.result, s.err = false, nil, nil
	}
}

// read takes the locks and reads what the starts depend on, in the round trip that begins the transaction. What the locks of
// the accounts protect is read by a statement after the one that locks.
func (g *startGroup) read(ctx context.Context, tx *pg.Tx) error {
	var accounts []protocol.AccountID
	var owners []protocol.NodeID
	var hashes [][]byte // nil element: no key
	for _, s := range g.members {
		accounts, owners = append(accounts, s.AccountID), append(owners, s.on.NodeID)
		var hash []byte
		if s.Idempotency != nil {
			hash = idempotency.KeyHash(*s.Idempotency)
		}
		hashes = append(hashes, hash)
	}
	batch := &pgx.Batch{}
	batch.Queue(groupAccountsSQL, pg.AccountArray(accounts))
	batch.Queue(lockAccountsSQL, accounts)
	batch.Queue(groupFactsSQL, accounts, owners, hashes).Query(func(rows pgx.Rows) error {
		var f groupFacts
		_, err := pgx.ForEachRow(rows, append(f.account(), &f.known, &f.claimed), func() error {
			g.facts = append(g.facts, f)
			f.defaultProfile, f.granted = nil, nil // the next row must not share them
			return nil
		})
		return err
	})
	return tx.Run(ctx, batch)
}

// run decides each start, then stores the accepted ones and commits.
func (g *startGroup) run(ctx context.Context, tx *pg.Tx) error {
	if err := g.read(ctx, tx); err != nil {
		return err
	}
	if len(g.facts) != len(g.members) {
		return fmt.Errorf("%d starts have %d rows of facts", len(g.members), len(g.facts))
	}
	begun := map[protocol.AccountID]int{}
	claimed := map[idempotency.AccountKey]bool{}
	for i, s := range g.members {
		f := &g.facts[i]
		f.liveTurns += begun[s.AccountID]
		key := keyOf(s)
		if !f.known || f.claimed || claimed[key] {
			s.alone = true
			continue
		}
		if s.err = g.plan(s, f); s.err != nil {
			continue
		}
		begun[s.AccountID]++
		claimed[key] = s.Idempotency != nil
		g.stored = append(g.stored, s)
	}
	if len(g.stored) == 0 {
		return errNoChange
	}
	batch := &pgx.Batch{}
	queueNewTurns(batch, g.rows)
	return tx.CommitWith(ctx, batch)
}

func keyOf(s *sharedStart) idempotency.AccountKey {
	key := idempotency.AccountKey{Account: s.AccountID}
	if s.Idempotency != nil {
		key.Hash = string(idempotency.KeyHash(*s.Idempotency))
	}
	return key
}

// plan decides one start and adds its row.
func (g *startGroup) plan(s *sharedStart, f *groupFacts) error {
	_, plan, err := decide(s.Start, &f.startFacts, s.on.MaxLiveTurns) // a start that is shareable starts a turn, or is refused
	if err != nil {
		return err
	}
	plan.turn = protocol.NewTurnID()
	row, err := plan.begin(s.on)
	if err != nil {
		return err
	}
	row.key = s.Idempotency
	if err := row.encode(); err != nil {
		return err
	}
	s.result, g.rows = &turnlog.StartResult{Spec: row.spec, Begin: row.begin}, append(g.rows, row)
	return nil
}
