package turns

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/persistence/accounts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// A start, from top to bottom:
//
//	StartTurn        a start that can share a transaction runs in start_shared.go, any other in startAlone
//	startAlone       one transaction of two round trips, repeated if a running request has claimed the key
//	queueRead        round trip 1: claims the key, locks the conversation and the account, reads the facts
//	run              repeats the response of an earlier request with the key, or decides:
//	  busy             a turn is live: queues a follow-up, steers (steer), or refuses
//	  checkHead        refuses if the client has not seen the newest message
//	  refuse           refuses if the account is at its limit, or the node accepts no turns
//	  choose           the branch, and after which message; chooseSibling for an edit or a regeneration
//	store            round trip 2: the rows of plan.go, the response of the key, the commit

// claimWaits is the number of lock timeouts (2 s each) for which a request waits for another request with the same
// Idempotency-Key.
const claimWaits = 2

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
	for waited := 1; ; waited++ {
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
		case s.claiming && pg.IsState(err, pg.StateLockTimeout) && waited < claimWaits:
			continue
		case s.claiming && pg.IsState(err, pg.StateLockTimeout):
			return nil, idempotency.KeyBusy()
		default:
			return nil, fmt.Errorf("starting a turn: %w", err)
		}
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

	turn         protocol.TurnID
	conversation startConversation
	facts        startFacts
	earlier      *idempotency.KeyRow // the row of an earlier request with the key
	plan         turnPlan
}

// startConversation holds what a start reads under the lock of the conversation. The zero value is a new conversation.
type startConversation struct {
	found        bool
	branch       protocol.BranchID
	live         *protocol.TurnID
	profile      *protocol.Profile
	head         *protocol.MessageID
	headDepth    int
	headRole     *string
	headParent   *protocol.MessageID
	headParts    []protocol.Part
	headFiles    []protocol.FileID
	headProfile  *protocol.Profile // of an answer
	queueVersion int64
}

// startFacts holds what a start depends on in addition to its conversation.
type startFacts struct {
	liveTurns      int
	ownerAlive     bool
	defaultProfile *protocol.Profile // of the account
	project        projectFacts
}

// projectFacts holds what a start depends on in the project of its conversation. The zero value is no project.
type projectFacts struct {
	id             *protocol.ProjectID
	state          *protocol.ProjectState
	defaultProfile *protocol.Profile
	instructions   int64 // their current version
	tools          map[string]bool
}

func (f *startFacts) scan(row pgx.Row) error {
	p := &f.project
	return row.Scan(&f.liveTurns, &f.ownerAlive, &f.defaultProfile, &p.id, &p.state, &p.defaultProfile, &p.instructions, &p.tools)
}

// takesTurns reports whether turns may start: there is no project, or it is active.
func (p *projectFacts) takesTurns() bool { return p.state == nil || *p.state == protocol.ProjectActive }

const (
	lockForTurnSQL = `
select active_branch_id, live_turn_id, profile, queue_version
from conversations c where c.account_id = $1 and c.conversation_id = $2 and ` + conversations.Visible + `
for update of c`
	// A separate statement, so that it sees what the previous holder of the lock committed.
	branchHeadSQL = `
select b.head_message_id, b.head_depth, m.role, m.parent_message_id, case when m.role = 'user' then m.parts end, coalesce(m.attachments, '{}'), m.profile
from conversations c
join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
left join messages m on m.account_id = b.account_id and m.message_id = b.head_message_id
where c.account_id = $1 and c.conversation_id = $2`
	// $3 is the conversation and $4 the project of a new one; either may be null. The project is read after the account
	// was locked: a deletion of the project locks the account too.
	startFactsSQL = `
select (select count(*) from turns where account_id = $1 and ` + conversations.LiveStates + `),
       exists (select from nodes where node_id = $2 and not dead and not draining),
       (select settings ->> 'default_profile' from account_settings where account_id = $1),
       p.project_id, p.state, p.settings ->> 'default_profile', coalesce(p.instructions_version, 0), p.settings -> 'tools'
from (values (1)) one
left join lateral (
    select project_id, state, settings, instructions_version from projects
    where account_id = $1 and project_id = (
        select project_id from conversations where account_id = $1 and conversation_id = $3
        union all select $4::uuid where $3::uuid is null)
    limit 1) p on true`
)

func (s *turnStart) run(ctx context.Context) error {
	if s.earlier != nil {
		if err := s.replay(ctx); err != nil {
			return err
		}
	}
	if s.ConversationID != nil && !s.conversation.found {
		return pg.Classify(pgx.ErrNoRows)
	}
	if err := s.checkProject(ctx); err != nil {
		return err
	}
	if live := s.conversation.live; live != nil {
		return s.busy(ctx, *live)
	}
	if err := s.checkHead(); err != nil {
		return err
	}
	if err := s.facts.refuse(s.on.MaxLiveTurns); err != nil {
		return err
	}
	if err := s.choose(ctx); err != nil {
		return err
	}
	if err := conversations.CheckFiles(ctx, s.tx, s.AccountID, s.Attachments); err != nil {
		return err
	}
	return s.store(ctx)
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
		c := &s.conversation
		batch.Queue(lockForTurnSQL, s.AccountID, *s.ConversationID).QueryRow(optional(&c.found, &c.branch, &c.live, &c.profile, &c.queueVersion))
		var head bool
		batch.Queue(branchHeadSQL, s.AccountID, *s.ConversationID).
			QueryRow(optional(&head, &c.head, &c.headDepth, &c.headRole, &c.headParent, &c.headParts, &c.headFiles, &c.headProfile))
		batch.Queue(accounts.LockAccountSQL, s.AccountID)
	}
	batch.Queue(startFactsSQL, s.AccountID, s.on.NodeID, s.ConversationID, s.ProjectID).QueryRow(s.facts.scan)
}

// checkProject returns an error unless the project of the conversation, if there is one, takes turns.
func (s *turnStart) checkProject(ctx context.Context) error {
	id := s.facts.project.id
	switch {
	case id == nil && s.ConversationID == nil && s.ProjectID != nil:
		return pg.Classify(pgx.ErrNoRows)
	case s.facts.project.takesTurns():
		return nil
	}
	project, err := projects.Read(ctx, s.tx, s.AccountID, *id)
	if err != nil {
		return err
	}
	return projects.CheckActive(project)
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

// refuse returns an error if the account is at its limit or the node accepts no turns.
func (f *startFacts) refuse(maxLive int) error {
	if f.liveTurns >= maxLive {
		return protocol.Errorf(protocol.CodeTooManyLiveTurns, "%d turns are live, which is the limit", f.liveTurns)
	}
	if !f.ownerAlive {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "this node is not accepting new turns", RetryAfter: pg.RetrySeconds}
	}
	return nil
}

// checkHead returns a conflict if the head is not the one that the client expects.
func (s *turnStart) checkHead() error {
	if s.Expected == nil {
		return nil
	}
	head := s.conversation.head
	if head == nil && s.Expected.ID == nil || head != nil && s.Expected.ID != nil && *head == *s.Expected.ID {
		return nil
	}
	return protocol.Conflict(protocol.CodeHeadMoved, map[string]*protocol.MessageID{"head_message_id": head},
		"the head of the conversation has moved")
}

// busy does what the request specifies for the case that a turn is live.
func (s *turnStart) busy(ctx context.Context, live protocol.TurnID) error {
	if s.IfBusy != protocol.BusyQueue && s.IfBusy != protocol.BusySteer {
		return conversations.TurnInProgress(live)
	}
	if err := s.checkHead(); err != nil {
		return err
	}
	if s.Branch != nil { // neither a follow-up nor a steering input can start a sibling
		if err := s.chooseSibling(ctx); err != nil {
			return err
		}
		return conversations.TurnInProgress(live)
	}
	if s.isEmpty() {
		return noInput()
	}
	if s.IfBusy == protocol.BusyQueue {
		return s.enqueue(ctx)
	}
	if len(s.Attachments) > 0 {
		return protocol.Invalid("body.input", "must not contain files to steer a turn")
	}
	return s.steer(ctx, live)
}

// steer returns the live turn as the result. The key is bound to that turn before the turn gets the input, and the
// turn's record of the input is the receipt. So a repeated request finds either the receipt, or that the turn never
// accepted the input.
func (s *turnStart) steer(ctx context.Context, live protocol.TurnID) error {
	if utf8.RuneCountInString(s.Input) > protocol.MaxSteeringRunes {
		return protocol.Invalid("body.input", "is too long to steer a turn")
	}
	s.result = &turnlog.StartResult{Busy: &live}
	if s.Idempotency == nil {
		return errNoChange
	}
	return s.bind(ctx, 202, live)
}

// profile returns the profile of the turn: the requested one, else the conversation's, else the project's, else the
// account's, else auto.
func (s *turnStart) profile() protocol.Profile {
	return firstProfile(&s.Profile, s.conversation.profile, s.facts.project.defaultProfile, s.facts.defaultProfile)
}

func firstProfile(candidates ...*protocol.Profile) protocol.Profile {
	for _, p := range candidates {
		if p != nil && p.Valid() {
			return *p
		}
	}
	return protocol.ProfileAuto
}

// choose decides on which branch the turn is, after which message, and which message it answers.
func (s *turnStart) choose(ctx context.Context) error {
	s.plan = turnPlan{
		account: s.AccountID, turn: s.turn, owner: s.on.NodeID, at: millis(s.At), requested: s.profile(), input: s.Input, attachments: s.Attachments,
		branch: s.conversation.branch, parent: s.conversation.head, depth: s.conversation.headDepth, previous: s.conversation.headProfile,
		project: &s.facts.project, session: s.SessionID,
	}
	switch {
	case s.ConversationID == nil:
		s.plan.conversation, s.plan.branch = protocol.NewConversationID(), protocol.NewBranchID()
		s.plan.newConversation, s.plan.temporary = true, s.Temporary
	default:
		s.plan.conversation = *s.ConversationID
	}
	if s.Branch != nil {
		return s.chooseSibling(ctx)
	}
	if s.isEmpty() {
		if s.conversation.headRole == nil || *s.conversation.headRole != protocol.RoleUser {
			return noInput()
		}
		s.plan.answerExisting(*s.conversation.head, s.conversation.headParent, s.conversation.headParts, s.conversation.headFiles)
	}
	return nil
}

func (s *turnStart) isEmpty() bool { return s.Input == "" && len(s.Attachments) == 0 }

func noInput() error { return protocol.Invalid("body.input", "must contain a text or a file") }

var siblingPointSQL = `
select m.branch_id, m.depth, m.role, m.parent_message_id, ` + conversations.NestingSQL + `, p.parent_message_id, case when p.role = 'user' then p.parts end, coalesce(p.attachments, '{}'), coalesce(p.profile, m.profile)
from messages m
left join messages p on p.account_id = m.account_id and p.message_id = m.parent_message_id
where m.account_id = $1 and m.conversation_id = $2 and m.message_id = $3`

// chooseSibling plans a new branch that leaves the present one before the named message.
func (s *turnStart) chooseSibling(ctx context.Context) error {
	if s.ConversationID == nil {
		return protocol.Invalid("body.branch", "needs the conversation of its message")
	}
	var point conversations.BranchPoint
	var grandparent *protocol.MessageID
	var parentParts []protocol.Part
	var parentFiles []protocol.FileID
	s.plan.previous = nil
	err := s.tx.QueryRow(ctx, siblingPointSQL, s.AccountID, *s.ConversationID, s.Branch.MessageID).
		Scan(&point.BranchID, &point.Depth, &point.Role, &point.ParentMessageID, &point.Nesting, &grandparent, &parentParts, &parentFiles, &s.plan.previous)
	if err != nil {
		return fmt.Errorf("reading the message to branch at: %w", err)
	}
	if err := point.CheckMode(s.Branch.Mode, "body.branch"); err != nil {
		return err
	}
	p := &s.plan
	p.branch, p.forkedFrom, p.parent, p.depth = protocol.NewBranchID(), &point.BranchID, point.ParentMessageID, point.Depth-1
	if s.Branch.Mode == protocol.BranchRegenerate {
		if !s.isEmpty() {
			return protocol.Invalid("body.input", "must be empty to regenerate: the message that is answered stays the same")
		}
		p.answerExisting(*point.ParentMessageID, grandparent, parentParts, parentFiles)
		return nil
	}
	if s.isEmpty() {
		return noInput()
	}
	return nil
}

// store writes the turn and commits.
func (s *turnStart) store(ctx context.Context) error {
	spec, begin, err := s.plan.begin(s.on.Begin)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if err := s.plan.queue(batch, spec, begin); err != nil {
		return err
	}
	s.result = &turnlog.StartResult{Spec: spec, Begin: begin}
	return s.tx.CommitWith(ctx, batch)
}
