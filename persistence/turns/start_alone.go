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
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// startAlone starts a turn in a transaction of its own.
func (t *Store) startAlone(ctx context.Context, start request) (*turnlog.StartResult, error) {
	var s *turnStart
	err := t.db.InTx(ctx, start.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		s = &turnStart{request: start, tx: tx, turn: protocol.NewTurnID()}
		return s.run(ctx)
	})
	switch {
	case err == nil || errors.Is(err, errNoChange):
		return s.result, nil
	case s != nil && s.claiming && pg.IsLockTimeout(err):
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

func (s *turnStart) run(ctx context.Context) error {
	if err := s.read(ctx); err != nil {
		return err
	}
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

// read claims the key, takes the locks and reads what the start depends on, in the round trip that begins the
// transaction. A start in a new conversation locks the account before it claims the key, as starts that share a transaction
// do.
func (s *turnStart) read(ctx context.Context) error {
	batch := &pgx.Batch{}
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
	return s.tx.Run(ctx, batch)
}

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
	return s.bind(ctx, idempotency.Accepted, live, body)
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
