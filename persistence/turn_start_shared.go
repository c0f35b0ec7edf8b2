package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/protocol"
)

const (
	// sharedStarts groups are under way at once, the second when the first takes long: two that hold starts of the same
	// accounts wait for each other anyway.
	sharedStarts  = 2
	startPatience = 50 * time.Millisecond
	// maxSharedStart bounds the transaction, and how many start alone when it fails.
	maxSharedStart = 64
)

// shareable says whether a start needs to look at nothing but its account: it makes a new conversation. What is wrong
// with a start is found out alone.
func shareable(start *protocol.TurnStart) bool {
	return start.ConversationID == nil && start.Branch == nil && start.Input != "" && (start.Expected == nil || start.Expected.ID == nil)
}

// sharedStart is a start that waits for its group.
type sharedStart struct {
	*protocol.TurnStart
	ctx   context.Context //nolint:containedctx // of the one who waits, for a start that has no company
	taken chan struct{}   // closed when its group begins
	done  chan struct{}   // closed when it was decided
	// Set before done is closed.
	alone  bool // nothing was stored: the caller starts by itself
	result *protocol.TurnStartResult
	err    error
}

// startShared begins a turn in a new conversation together with others that come at the same time. Each is refused, or
// fails, for itself: whatever goes wrong with the group makes each of them start alone, unless nobody knows whether the
// group was committed.
func (t *Turns) startShared(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	s := &sharedStart{TurnStart: start, ctx: ctx, taken: make(chan struct{}), done: make(chan struct{})}
	t.starts.add(s)
	select {
	case <-s.done:
	case <-ctx.Done():
		if err := s.leave(ctx); err != nil {
			return nil, err
		}
	}
	if s.alone {
		return t.startAlone(ctx, start)
	}
	return s.result, s.err
}

// leave waits no longer than whoever asked. A client that has gone waits for nothing, so what it began is seen to its end.
func (s *sharedStart) leave(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		<-s.done // bounded by the time of a transaction
		return nil
	}
	select {
	case <-s.taken:
		return outcomeUnknown(ctx.Err())
	default:
		return unavailable(ctx.Err()) // its group will find that nobody waits
	}
}

// startWaiting is the work of Turns.starts. A panic belongs to a request: the starts go on alone, each in its own.
func (t *Turns) startWaiting(waiting []*sharedStart) {
	group := make([]*sharedStart, 0, len(waiting))
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("a group of starts broke", zap.String("kind", fmt.Sprintf("%T", p)))
			startApart(group)
		}
		for _, s := range waiting {
			close(s.done)
		}
	}()
	for _, s := range waiting {
		close(s.taken)
		if s.ctx.Err() != nil {
			s.err = unavailable(s.ctx.Err())
			continue
		}
		group = append(group, s)
	}
	switch len(group) {
	case 0:
	case 1:
		group[0].result, group[0].err = t.startAlone(group[0].ctx, group[0].TurnStart)
	default:
		t.startTogether(group)
	}
}

// startApart sends everybody away to start alone.
func startApart(group []*sharedStart) {
	for _, s := range group {
		s.alone, s.result, s.err = true, nil, nil
	}
}

func (t *Turns) startTogether(group []*sharedStart) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	g := &startGroup{}
	err := t.db.inTxAfter(ctx, Nobody, func(batch *pgx.Batch) {
		g.reset(group)
		g.queueRead(batch)
	}, g.run)
	var unanswered *commitError
	switch {
	case err == nil || errors.Is(err, errAnswered):
	case errors.As(err, &unanswered):
		for _, s := range g.stored {
			s.result, s.err = nil, fmt.Errorf("starting a turn: %w", err)
		}
	case isOutage(err): // each of them alone would only find the same
		for _, s := range group {
			s.alone, s.result, s.err = false, nil, fmt.Errorf("starting a turn: %w", err)
		}
	default:
		startApart(group)
	}
}

// startGroup is one attempt at starting a group.
type startGroup struct {
	members []*sharedStart
	facts   []groupFacts
	columns startColumns
	stored  []*sharedStart
}

// groupFacts is what one start of a group depends on.
type groupFacts struct {
	startFacts
	known, claimed bool // there is such an account; there is such a key
}

const (
	// A lock that somebody holds for long is worth no waiting: the starts go on alone.
	groupAccountsSQL = `
select set_config('turnstone.account_ids', $1, true), set_config('lock_timeout', '250ms', true), ` + keepPlans
	// In order, so that two groups never wait for each other in a circle.
	lockAccountsSQL = `
select account_id from accounts where account_id = any ($1) order by account_id for no key update`
	groupFactsSQL = `
select (select count(*) from turns where account_id = g.account_id and ` + liveStates + `),
       exists (select from nodes where node_id = g.owner and not dead and not draining),
       (select settings ->> 'default_profile' from account_settings where account_id = g.account_id),
       exists (select from accounts where account_id = g.account_id),
       coalesce((select true from idempotency i
           where i.account_id = g.account_id and i.key_hash = g.key_hash limit 1), false)
from unnest($1::uuid[], $2::uuid[], $3::bytea[]) with ordinality as g (account_id, owner, key_hash, n)
order by n`
)

func (g *startGroup) reset(group []*sharedStart) {
	*g = startGroup{members: group, facts: make([]groupFacts, 0, len(group))}
	for _, s := range group {
		s.alone, s.result, s.err = false, nil, nil
	}
}

// queueRead takes the locks and reads what decides. What the accounts' locks protect is read by a statement of its own.
func (g *startGroup) queueRead(batch *pgx.Batch) {
	var accounts []protocol.AccountID
	var owners []protocol.NodeID
	var hashes [][]byte // nil: no key
	for _, s := range g.members {
		accounts, owners = append(accounts, s.AccountID), append(owners, s.Owner)
		var hash []byte
		if s.Idempotency != nil {
			hash = keyHash(*s.Idempotency)
		}
		hashes = append(hashes, hash)
	}
	batch.Queue(groupAccountsSQL, accountArray(accounts))
	batch.Queue(lockAccountsSQL, accounts)
	batch.Queue(groupFactsSQL, accounts, owners, hashes).Query(func(rows pgx.Rows) error {
		var f groupFacts
		_, err := pgx.ForEachRow(rows, []any{&f.liveTurns, &f.ownerAlive, &f.defaultProfile, &f.known, &f.claimed}, func() error {
			g.facts = append(g.facts, f)
			f.defaultProfile = nil // the next row gets its own
			return nil
		})
		return err
	})
}

// run decides each start, then writes those that go on and commits.
func (g *startGroup) run(ctx context.Context, tx *Tx) error {
	if len(g.facts) != len(g.members) {
		return fmt.Errorf("the facts of %d starts are %d", len(g.members), len(g.facts))
	}
	begun := map[protocol.AccountID]int{}
	claimed := map[accountKey]bool{}
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
		return errAnswered
	}
	batch := &pgx.Batch{}
	batch.Queue(storeNewTurnsSQL, g.columns.arguments()...)
	return tx.CommitWith(ctx, batch)
}

func keyOf(s *sharedStart) accountKey {
	key := accountKey{account: s.AccountID}
	if s.Idempotency != nil {
		key.hash = string(keyHash(*s.Idempotency))
	}
	return key
}

// plan decides one start and adds its row.
func (g *startGroup) plan(s *sharedStart, f *groupFacts) error {
	if err := f.refuse(s.MaxLiveTurns); err != nil {
		return err
	}
	plan := &turnPlan{
		account: s.AccountID, turn: protocol.NewTurnID(), owner: s.Owner, at: millis(s.At), input: s.Input,
		requested:    firstProfile(&s.Profile, f.defaultProfile),
		conversation: protocol.NewConversationID(), branch: protocol.NewBranchID(), newConversation: true, temporary: s.Temporary,
	}
	spec, begin, err := plan.begin(s.Begin)
	if err != nil {
		return err
	}
	s.result = &protocol.TurnStartResult{Spec: spec, Begin: begin}
	return g.columns.add(plan, spec, begin, s.Idempotency)
}
