package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// queueClaim adds the statements that claim the key in the transaction of the start itself, so that both are committed
// or neither. They wait for a concurrent start with the same key.
func (s *turnStart) queueClaim(batch *pgx.Batch) {
	if s.Idempotency == nil {
		return
	}
	s.claiming = s.ConversationID != nil // in a new conversation, the callback of the account's lock sets it
	args := idempotency.KeyArgs(s.AccountID, *s.Idempotency)
	args["status"], args["resource"] = idempotency.Started, s.turn
	var claimed bool
	var at time.Time
	batch.Queue(idempotency.ClaimKeySQL, args).QueryRow(func(row pgx.Row) error {
		err := optional(&claimed, &at)(row)
		s.claiming = err != nil
		return err
	})
	batch.Queue(idempotency.SelectKeySQL, args).QueryRow(func(row pgx.Row) error {
		earlier := &idempotency.KeyRow{}
		var found bool
		if err := optional(&found, earlier.Targets()...)(row); err != nil {
			return err
		}
		if !claimed {
			s.earlier = earlier
			if !found { // released between the two statements: treated as in progress
				earlier.BodyHash = s.Idempotency.BodyHash[:]
			}
		}
		return nil
	})
}

const replayedSpecSQL = `
select t.spec, m.parts from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and ` + conversations.Visible + `
left join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id
where t.account_id = $1 and t.turn_id = $2`

// replay sets the result of a repeated start to what the first start did, and returns errNoChange. It returns nil if
// the key is free.
func (s *turnStart) replay(ctx context.Context) error {
	if s.earlier.Steers() {
		return s.replaySteering(ctx)
	}
	if err := s.earlier.Matches(*s.Idempotency); err != nil {
		return err
	}
	switch {
	case s.earlier.Status == nil:
		return idempotency.KeyBusy()
	case s.earlier.TurnID != nil:
		spec := &turnlog.Spec{}
		var parts []protocol.Part
		if err := s.tx.QueryRow(ctx, replayedSpecSQL, s.AccountID, *s.earlier.TurnID).Scan(spec, &parts); err != nil {
			return fmt.Errorf("reading the turn of an earlier request: %w", err)
		}
		spec.Input = userText(parts)
		s.result = &turnlog.StartResult{Spec: spec, Replayed: true}
	default:
		item, err := storedFollowUp(s.earlier)
		if err != nil {
			return err
		}
		s.result = &turnlog.StartResult{FollowUp: item, Replayed: true}
	}
	return errNoChange
}

// storedFollowUp returns the follow-up that an earlier request became.
func storedFollowUp(k *idempotency.KeyRow) (*protocol.FollowUp, error) {
	item := &protocol.FollowUp{}
	if err := json.Unmarshal(k.Body, item); err != nil {
		return nil, fmt.Errorf("reading the response to an earlier request: %w", err)
	}
	return item, nil
}

// replaySteering decides under the lock that ending the turn takes. A turn that has ended without the input never
// accepts it; then the key is free, for any body.
func (s *turnStart) replaySteering(ctx context.Context) error {
	rows, err := s.tx.Query(ctx, steeredSQL, s.AccountID, *s.earlier.TurnID, s.earlier.SteersAs(*s.Idempotency))
	if err != nil {
		return err
	}
	steered, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[steeredTurn])
	if err != nil {
		return fmt.Errorf("reading what an earlier request steered: %w", err)
	}
	receipt := steered.receipt(*s.earlier.TurnID)
	if receipt != nil || !steered.State.Terminal() {
		if err := s.earlier.Matches(*s.Idempotency); err != nil {
			return err
		}
	}
	if receipt != nil {
		s.result = &turnlog.StartResult{Receipt: receipt, Replayed: true}
		return errNoChange
	}
	if !steered.State.Terminal() { // the turn may be about to accept the input with this name
		s.steersAs = s.earlier.SteersAs(*s.Idempotency)
	}
	s.earlier = nil
	return s.bind(ctx, idempotency.Started, s.turn, nil)
}

// bind assigns the key to a turn, with the outcome and the body of the response.
func (s *turnStart) bind(ctx context.Context, outcome int, turn protocol.TurnID, body []byte) error {
	args := idempotency.KeyArgs(s.AccountID, *s.Idempotency)
	args["status"], args["resource"], args["body"] = outcome, turn, body
	_, err := s.tx.Exec(ctx, idempotency.BindKeySQL, args)
	return err
}

const steeredSQL = `
select t.state, r.sequence, r.body from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and ` + conversations.Visible + `
left join turn_records r on r.account_id = t.account_id and r.turn_id = t.turn_id and r.kind = 'steering' and r.key = $3
where t.account_id = $1 and t.turn_id = $2`

// steeredTurn is a turn with its record of one input.
type steeredTurn struct {
	State    protocol.TurnState
	Sequence *int64
	Body     *turnlog.SteeringRecord
}

// receipt returns the receipt of the input, as the first response had it; nil if the turn did not accept the input.
func (t *steeredTurn) receipt(turn protocol.TurnID) *protocol.SteeringReceipt {
	if t.Sequence == nil || t.Body == nil {
		return nil
	}
	receipt := protocol.Accepted(t.Body.SteeringID, turn, *t.Sequence, false)
	return &receipt
}

// queueFollowUpResponse adds the statement that stores the follow-up as the response to the start that became this
// follow-up.
func (s *turnStart) queueFollowUpResponse(batch *pgx.Batch, item *protocol.FollowUp) error {
	if s.Idempotency == nil {
		return nil
	}
	args := idempotency.KeyArgs(s.AccountID, *s.Idempotency)
	var err error
	args["status"] = idempotency.Accepted
	args["body"], err = pg.JSONText(item)
	args["headers"] = idempotency.LocatedAt(protocol.FollowUpsPath(*s.ConversationID)) // a purge of the conversation finds it by this
	batch.Queue(idempotency.StoreFollowUpResponseSQL, args)
	return err
}

// StoredStart returns what an earlier start with the key did; nil if it did nothing. If the key was used with another
// body, the error is protocol.CodeIdempotencyMismatch.
func (t *Store) StoredStart(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*turnlog.StoredStart, error) {
	row, mismatch := t.keys.FindKey(ctx, account, key)
	switch {
	case row == nil || row.Status == nil:
		return nil, mismatch
	case row.Steers():
		return t.storedSteering(ctx, account, key, row)
	case mismatch != nil:
		return nil, mismatch
	case row.TurnID != nil:
		return &turnlog.StoredStart{TurnID: row.TurnID}, nil
	}
	item, err := storedFollowUp(row)
	return &turnlog.StoredStart{FollowUp: item}, err
}

func (t *Store) storedSteering(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey, row *idempotency.KeyRow) (*turnlog.StoredStart, error) {
	found, err := pg.Rows(ctx, t.db, account, pgx.RowToStructByPos[steeredTurn], steeredSQL, account, *row.TurnID, row.SteersAs(key))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	receipt := found[0].receipt(*row.TurnID)
	if receipt == nil { // StartTurn decides whether the turn still accepts the input
		return nil, nil // the earlier start did nothing
	}
	return &turnlog.StoredStart{Receipt: receipt}, row.Matches(key)
}
