package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/persistence/accounts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/memory"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// A start, from top to bottom:
//
//	StartTurn        a start that can share a transaction runs in start_shared.go, any other in startAlone
//	startAlone       one transaction of two round trips; a running request may have claimed the key
//	queueRead        round trip 1: claims the key, locks the conversation and the account, reads the facts
//	run              repeats the response of an earlier request with the key, or does what decide.go returns:
//	                 starts a turn, queues a follow-up (follow_up.go), steers the live turn, or refuses
//	store            round trip 2: the rows of rows.go, the response of the key, the commit

// StartTurn starts a turn, in one transaction of two round trips. If a turn is live, it does what start.IfBusy
// specifies. Concurrent starts in one conversation lock its row in turn; the lock on the account's row protects the
// limit of live turns. Concurrent starts of new conversations share a transaction.
func (t *Store) StartTurn(ctx context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error) {
	if shareable(start) {
		return t.startShared(ctx, request{start, on})
	}
	return t.startAlone(ctx, request{start, on})
}

// request is a start and the node that is to run the turn.
type request struct {
	*turnlog.Start
	on turnlog.Runner
}

func (t *Store) startAlone(ctx context.Context, start request) (*turnlog.StartResult, error) {
	s := &turnStart{request: start}
	err := t.db.InTxAfter(ctx, start.AccountID, func(batch *pgx.Batch) {
		*s = turnStart{request: start, turn: protocol.NewTurnID()}
		s.queueRead(batch)
	}, func(ctx context.Context, tx *pg.Tx) error {
		s.tx = tx
		return s.run(ctx)
	})
	switch {
	case err == nil || errors.Is(err, errNoChange):
		return s.result, nil
	case s.claiming && pg.IsLockTimeout(err):
		return nil, idempotency.KeyBusy()
	default:
		return nil, fmt.Errorf("starting a turn: %w", err)
	}
}

// errNoChange ends a start or a finish that changes nothing: the transaction is rolled back, and its result is valid.
var errNoChange = errors.New("nothing was changed")

// turnStart is one attempt at a start.
type turnStart struct {
	request
	tx       *pg.Tx
	claiming bool // the claim of the Idempotency-Key is not decided yet
	result   *turnlog.StartResult

	turn    protocol.TurnID
	facts   startFacts
	earlier *idempotency.KeyRow // the row of an earlier request with the key

	steersAs string // the name that an earlier request with the key gave to its input for the live turn; empty: none
}

const (
	lockForTurnSQL = `
select active_branch_id, live_turn_id, profile, queue_version, project_id, temporary
from conversations c where c.account_id = $1 and c.conversation_id = $2 and ` + conversations.Visible + `
for update of c`
	// A separate statement, so that it sees what the previous holder of the lock committed.
	branchHeadSQL = `
select b.head_message_id, b.head_depth, m.role, m.parent_message_id, case when m.role = 'user' then m.parts end, coalesce(m.attachments, '{}'), m.profile
from conversations c
join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
left join messages m on m.account_id = b.account_id and m.message_id = b.head_message_id
where c.account_id = $1 and c.conversation_id = $2`
)

// accountFacts returns the columns that a start reads of its account and of the node.
func accountFacts(account, node string) string {
	return conversations.LiveTurnsOf(account) + `,
       ` + pg.NodeClaims(node) + `,
       (select settings ->> 'default_profile' from account_settings where account_id = ` + account + `),
       ` + memory.GrantedSQL(account) + `,
       ` + accounts.InstructionsVersionSQL(account)
}

// $3 is the conversation and $4 the project of a new one; either may be null. The project is read after the account was
// locked: a deletion of the project locks the account too.
var startFactsSQL = `
select ` + accountFacts("$1", "$2") + `,
       p.project_id, p.state, p.settings ->> 'default_profile', coalesce(p.instructions_version, 0), p.settings -> 'tools', coalesce(p.settings ->> 'approval_policy', '')
from (values (1)) one
left join lateral (
    select project_id, state, settings, instructions_version from projects
    where account_id = $1 and project_id = (
        select project_id from conversations where account_id = $1 and conversation_id = $3
        union all select $4::uuid where $3::uuid is null)
    limit 1) p on true`

func (s *turnStart) run(ctx context.Context) error {
	if s.earlier != nil {
		if err := s.replay(ctx); err != nil {
			return err
		}
	}
	does, plan, err := decide(s.Start, &s.facts, s.on.MaxLiveTurns)
	switch {
	case err != nil:
		return err
	case does == showsProject:
		return s.showProject(ctx)
	case does == queuesInput:
		return s.enqueue(ctx)
	case does == steersTurn:
		return s.steer(ctx, *s.facts.conversation.live)
	}
	if err := conversations.CheckFiles(ctx, s.tx, s.AccountID, s.Attachments); err != nil {
		return err
	}
	return s.store(ctx, plan)
}

// showProject returns the error of a project that takes no turns, which has the project.
func (s *turnStart) showProject(ctx context.Context) error {
	project, err := projects.Read(ctx, s.tx, s.AccountID, *s.facts.project.id)
	if err != nil {
		return err
	}
	return projects.CheckActive(project)
}

// queueRead adds the statements that claim the key, take the locks and read what the start depends on, in the round
// trip that begins the transaction. A start in a new conversation locks the account before it claims the key, as starts
// that share a transaction do.
func (s *turnStart) queueRead(batch *pgx.Batch) {
	if s.ConversationID == nil {
		batch.Queue(accounts.LockAccountSQL, s.AccountID).Exec(func(pgconn.CommandTag) error {
			s.claiming = s.Idempotency != nil
			return nil
		})
		s.queueClaim(batch)
	} else {
		s.queueClaim(batch)
		s.queueConversation(batch, &s.facts.conversation)
		if s.Branch != nil {
			batch.Queue(siblingPointSQL, s.AccountID, *s.ConversationID, s.Branch.MessageID).QueryRow(s.facts.scanSibling)
		}
		batch.Queue(accounts.LockAccountSQL, s.AccountID)
	}
	s.queueFacts(batch, &s.facts)
}

// queueConversation adds the statements that lock an existing conversation and read what a start depends on in it.
func (r request) queueConversation(batch *pgx.Batch, c *startConversation) {
	var head bool
	batch.Queue(lockForTurnSQL, r.AccountID, *r.ConversationID).QueryRow(optional(&c.found, &c.branch, &c.live, &c.profile, &c.queueVersion, &c.project, &c.temporary))
	batch.Queue(branchHeadSQL, r.AccountID, *r.ConversationID).
		QueryRow(optional(&head, &c.head, &c.headDepth, &c.headRole, &c.headParent, &c.headParts, &c.headFiles, &c.headProfile))
}

// queueFacts adds the statement that reads what a start depends on outside of its conversation.
func (r request) queueFacts(batch *pgx.Batch, f *startFacts) {
	batch.Queue(startFactsSQL, r.AccountID, r.on.NodeID, r.ConversationID, r.ProjectID).QueryRow(func(row pgx.Row) error {
		p := &f.project
		return row.Scan(append(f.account(), &p.id, &p.state, &p.defaultProfile, &p.instructions, &p.tools, &p.approvals)...)
	})
}

// account returns the targets of the columns of accountFacts.
func (f *startFacts) account() []any {
	return []any{&f.liveTurns, &f.ownerAlive, &f.defaultProfile, &f.granted, &f.instructions}
}

// scanSibling scans the row of siblingPointSQL, which may be missing.
func (f *startFacts) scanSibling(row pgx.Row) error {
	p := &siblingPoint{}
	var found bool
	err := optional(&found, &p.BranchID, &p.Depth, &p.Role, &p.ParentMessageID, &p.Nesting, &p.grandparent, &p.parentParts, &p.parentFiles, &p.previous)(row)
	if found {
		f.sibling = p
	}
	return err
}

// optional returns a callback that scans a row that may be missing.
func optional(found *bool, targets ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(targets...)
		*found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}

var siblingPointSQL = `
select m.branch_id, m.depth, m.role, m.parent_message_id, ` + conversations.NestingSQL + `, p.parent_message_id, case when p.role = 'user' then p.parts end, coalesce(p.attachments, '{}'), coalesce(p.profile, m.profile)
from messages m
left join messages p on p.account_id = m.account_id and p.message_id = m.parent_message_id
where m.account_id = $1 and m.conversation_id = $2 and m.message_id = $3`

// steer returns the live turn as the result. The key is bound to that turn before the turn gets the input, and the
// turn's record of the input is the receipt. So a repeated request finds either the receipt, or that the turn never
// accepted the input.
func (s *turnStart) steer(ctx context.Context, live protocol.TurnID) error {
	name := cmp.Or(s.steersAs, protocol.NewSteeringID().String())
	s.result = &turnlog.StartResult{Busy: &live, SteersAs: name}
	if s.Idempotency == nil {
		return errNoChange
	}
	body, err := json.Marshal(name)
	if err != nil {
		return err
	}
	return s.bind(ctx, 202, live, body)
}

// store writes the turn and commits.
func (s *turnStart) store(ctx context.Context, plan *turnPlan) error {
	plan.turn = s.turn
	row, err := plan.begin(s.on)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if err := row.queue(batch); err != nil {
		return err
	}
	s.result = &turnlog.StartResult{Spec: row.spec, Begin: row.begin}
	return s.tx.CommitWith(ctx, batch)
}
