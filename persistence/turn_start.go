package persistence

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/protocol"
)

// claimWaits is how many lock timeouts (2 s each) one request waits for another with the same Idempotency-Key.
const claimWaits = 2

// StartTurn begins a turn, in one transaction of two round trips, or does what start.IfBusy says. Two starts in a
// conversation take turns at its row; the account's row guards the number of live turns. Starts of new conversations
// share a transaction when several come at once.
func (t *Turns) StartTurn(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	if shareable(start) {
		return t.startShared(ctx, start)
	}
	return t.startAlone(ctx, start)
}

func (t *Turns) startAlone(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	for waited := 1; ; waited++ {
		s := &turnStart{TurnStart: start}
		err := t.db.inTxAfter(ctx, start.AccountID, func(batch *pgx.Batch) {
			*s = turnStart{TurnStart: start, turn: protocol.NewTurnID()}
			s.queueRead(batch)
		}, func(ctx context.Context, tx *Tx) error {
			s.tx = tx
			return s.run(ctx)
		})
		switch {
		case err == nil || errors.Is(err, errAnswered):
			return s.result, nil
		case s.claiming && isState(err, stateLockTimeout) && waited < claimWaits:
			continue
		case s.claiming && isState(err, stateLockTimeout):
			return nil, keyBusy()
		default:
			return nil, fmt.Errorf("starting a turn: %w", err)
		}
	}
}

// errAnswered ends a start that changes nothing: the transaction is rolled back and the result stands.
var errAnswered = errors.New("answered without a change")

// turnStart is one attempt at a start.
type turnStart struct {
	*protocol.TurnStart
	tx       *Tx
	claiming bool // the Idempotency-Key was not decided yet
	result   *protocol.TurnStartResult

	turn         protocol.TurnID
	conversation startConversation
	facts        startFacts
	kept         *keptAnswer // what an earlier request with the key left
	plan         turnPlan
}

// startConversation is what a start finds under the conversation's lock. The zero value is a new conversation.
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
	queueVersion int64
}

// startFacts is what a start depends on beside its conversation.
type startFacts struct {
	liveTurns      int
	ownerAlive     bool
	defaultProfile *protocol.Profile
}

const (
	lockForTurnSQL = `
select active_branch_id, live_turn_id, profile, queue_version
from conversations where account_id = $1 and conversation_id = $2 and deleted_at is null
for update`
	// A statement of its own, so that it sees what the lock's last holder committed.
	branchHeadSQL = `
select b.head_message_id, b.head_depth, m.role, m.parent_message_id, case when m.role = 'user' then m.parts end
from conversations c
join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
left join messages m on m.account_id = b.account_id and m.message_id = b.head_message_id
where c.account_id = $1 and c.conversation_id = $2`
	startFactsSQL = `
select (select count(*) from turns where account_id = $1 and ` + liveStates + `),
       exists (select from nodes where node_id = $2 and not dead and not draining),
       (select settings ->> 'default_profile' from account_settings where account_id = $1)`
)

func (s *turnStart) run(ctx context.Context) error {
	if s.kept != nil {
		if err := s.replay(ctx); err != nil {
			return err
		}
	}
	if s.ConversationID != nil && !s.conversation.found {
		return classify(pgx.ErrNoRows)
	}
	if live := s.conversation.live; live != nil {
		return s.busy(ctx, *live)
	}
	if err := s.checkHead(); err != nil {
		return err
	}
	if err := s.facts.refuse(s.MaxLiveTurns); err != nil {
		return err
	}
	if err := s.choose(ctx); err != nil {
		return err
	}
	return s.store(ctx)
}

// queueRead claims the key, takes the locks and reads what decides, in the trip that begins the transaction. A start in a
// new conversation locks the account before it claims, as those do that share a transaction.
func (s *turnStart) queueRead(batch *pgx.Batch) {
	if s.ConversationID == nil {
		batch.Queue(lockAccountSQL, s.AccountID).Exec(func(pgconn.CommandTag) error {
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
			QueryRow(optional(&head, &c.head, &c.headDepth, &c.headRole, &c.headParent, &c.headParts))
		batch.Queue(lockAccountSQL, s.AccountID)
	}
	f := &s.facts
	batch.Queue(startFactsSQL, s.AccountID, s.Owner).QueryRow(func(row pgx.Row) error {
		return row.Scan(&f.liveTurns, &f.ownerAlive, &f.defaultProfile)
	})
}

// optional scans a row that may not be there.
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

func (f *startFacts) refuse(maxLive int) error {
	if f.liveTurns >= maxLive {
		return protocol.Errorf(protocol.CodeTooManyLiveTurns, "%d turns are live, which is the limit", f.liveTurns)
	}
	if !f.ownerAlive {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "this node takes no new turns", RetryAfter: retrySeconds}
	}
	return nil
}

func (s *turnStart) checkHead() error {
	if s.Expected == nil {
		return nil
	}
	head := s.conversation.head
	if head == nil && s.Expected.ID == nil || head != nil && s.Expected.ID != nil && *head == *s.Expected.ID {
		return nil
	}
	return protocol.Conflict(protocol.CodeHeadMoved, map[string]*protocol.MessageID{"head_message_id": head},
		"the conversation has gone on since")
}

// busy does what the request asked for in case a turn is live.
func (s *turnStart) busy(ctx context.Context, live protocol.TurnID) error {
	if s.IfBusy != protocol.BusyQueue && s.IfBusy != protocol.BusySteer {
		return turnInProgress(live)
	}
	if err := s.checkHead(); err != nil {
		return err
	}
	if s.Branch != nil { // neither a follow-up nor an input can begin a sibling
		if err := s.chooseSibling(ctx); err != nil {
			return err
		}
		return turnInProgress(live)
	}
	if s.Input == "" {
		return protocol.Invalid("body.input", "must hold text")
	}
	if s.IfBusy == protocol.BusyQueue {
		return s.enqueue(ctx)
	}
	return s.steer(ctx, live)
}

// steer names the live turn. The key is bound to it before the turn gets the input, whose record is the receipt: so a
// repeat finds either the receipt, or that the turn never took the input.
func (s *turnStart) steer(ctx context.Context, live protocol.TurnID) error {
	if utf8.RuneCountInString(s.Input) > protocol.MaxSteeringRunes {
		return protocol.Invalid("body.input", "is too long to steer a turn")
	}
	s.result = &protocol.TurnStartResult{Busy: &live}
	if s.Idempotency == nil {
		return errAnswered
	}
	return s.bind(ctx, 202, live)
}

// profile is the one that answers: asked for, or the conversation's, or the account's, or auto.
func (s *turnStart) profile() protocol.Profile {
	return firstProfile(&s.Profile, s.conversation.profile, s.facts.defaultProfile)
}

func firstProfile(candidates ...*protocol.Profile) protocol.Profile {
	for _, p := range candidates {
		if p != nil && p.Valid() {
			return *p
		}
	}
	return protocol.ProfileAuto
}

// choose decides where the turn stands: which branch, after which message, answering what.
func (s *turnStart) choose(ctx context.Context) error {
	s.plan = turnPlan{
		account: s.AccountID, turn: s.turn, owner: s.Owner, at: millis(s.At), requested: s.profile(), input: s.Input,
		branch: s.conversation.branch, parent: s.conversation.head, depth: s.conversation.headDepth,
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
	if s.Input == "" {
		if s.conversation.headRole == nil || *s.conversation.headRole != protocol.RoleUser {
			return protocol.Invalid("body.input", "must hold text")
		}
		s.plan.answer(*s.conversation.head, s.conversation.headParent, s.conversation.headParts)
	}
	return nil
}

var siblingPointSQL = `
select m.branch_id, m.depth, m.role, m.parent_message_id, ` + nestingSQL + `, p.parent_message_id, case when p.role = 'user' then p.parts end
from messages m
left join messages p on p.account_id = m.account_id and p.message_id = m.parent_message_id
where m.account_id = $1 and m.conversation_id = $2 and m.message_id = $3`

// chooseSibling plans a new branch that leaves the old one before the named message.
func (s *turnStart) chooseSibling(ctx context.Context) error {
	if s.ConversationID == nil {
		return protocol.Invalid("body.branch", "needs the conversation of its message")
	}
	var point BranchPoint
	var grandparent *protocol.MessageID
	var parentParts []protocol.Part
	err := s.tx.QueryRow(ctx, siblingPointSQL, s.AccountID, *s.ConversationID, s.Branch.MessageID).
		Scan(&point.BranchID, &point.Depth, &point.Role, &point.ParentMessageID, &point.Nesting, &grandparent, &parentParts)
	if err != nil {
		return fmt.Errorf("reading the message to branch at: %w", err)
	}
	if err := point.nests("body.branch.message_id"); err != nil {
		return err
	}
	p := &s.plan
	p.branch, p.leaves, p.parent, p.depth = protocol.NewBranchID(), &point.BranchID, point.ParentMessageID, point.Depth-1
	switch {
	case s.Branch.Mode == protocol.BranchEdit && point.Role == protocol.RoleUser:
		if s.Input == "" {
			return protocol.Invalid("body.input", "must hold text")
		}
		return nil
	case s.Branch.Mode == protocol.BranchRegenerate && point.Role == protocol.RoleAssistant && point.ParentMessageID != nil:
		if s.Input != "" {
			return protocol.Invalid("body.input", "must be empty to regenerate: the message that is answered stays the same")
		}
		p.answer(*point.ParentMessageID, grandparent, parentParts)
		return nil
	case s.Branch.Mode != protocol.BranchEdit && s.Branch.Mode != protocol.BranchRegenerate:
		return protocol.Invalid("body.branch.mode", "must be edit or regenerate")
	default:
		return protocol.Invalid("body.branch.message_id", "must name a message of the user to edit, an answer to regenerate")
	}
}

// store writes the turn and commits.
func (s *turnStart) store(ctx context.Context) error {
	spec, begin, err := s.plan.begin(s.Begin)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if err := s.plan.queue(batch, spec, begin); err != nil {
		return err
	}
	s.result = &protocol.TurnStartResult{Spec: spec, Begin: begin}
	return s.tx.CommitWith(ctx, batch)
}
