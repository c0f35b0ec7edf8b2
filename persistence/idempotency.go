package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const (
	defaultKeyWait = 5 * time.Second
	keyPollMost    = 200 * time.Millisecond
	// keyMargin is left of a request's time when it stops waiting, so that it can still say why.
	keyMargin = 100 * time.Millisecond
	// releaseTimeout bounds how long a refusal waits for its key to be free: it is by itself after a while.
	releaseTimeout = time.Second
)

// Answer is a kept first answer to a creating request.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    []byte
	TurnID  *protocol.TurnID // POST /chat: the turn that it began; its stream is the answer
}

// keptAnswer is a row of idempotency. Status is null while the first request works.
type keptAnswer struct {
	BodyHash  []byte
	Status    *int
	Headers   map[string]string
	Body      []byte
	TurnID    *protocol.TurnID
	CreatedAt time.Time
}

func (k *keptAnswer) targets() []any {
	return []any{&k.BodyHash, &k.Status, &k.Headers, &k.Body, &k.TurnID, &k.CreatedAt}
}

func (k *keptAnswer) matches(key protocol.IdempotencyKey) error {
	if string(k.BodyHash) != string(key.BodyHash[:]) {
		return protocol.Errorf(protocol.CodeIdempotencyMismatch, "the key was used with another body")
	}
	return nil
}

// steers reports whether the key belongs to an input for the turn. Only the turn's record of that input says whether the
// input was accepted.
func (k *keptAnswer) steers() bool { return k.Status != nil && *k.Status == 202 && k.TurnID != nil }

func (k *keptAnswer) answer() *Answer {
	return &Answer{Status: *k.Status, Headers: k.Headers, Body: k.Body, TurnID: k.TurnID}
}

func keyBusy() error {
	return &protocol.Error{
		Code: protocol.CodeIdempotencyBusy, Detail: "another request with this key is being worked on", RetryAfter: retrySeconds,
		Current: struct{}{},
	}
}

// Answers are kept for 24 hours. A claim that is 30 seconds old belongs to a request that has died.
const (
	staleKey = `(idempotency.created_at < now() - interval '24 hours'
       or idempotency.status is null and idempotency.created_at < now() - interval '30 seconds')`
	claimKeySQL = `
insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, created_at)
values (@account, @key, @path, @hash, @status, @resource, clock_timestamp())
on conflict (account_id, key_hash) do update
set body_hash = excluded.body_hash, status = excluded.status, resource_id = excluded.resource_id,
    headers = null, body = null, created_at = excluded.created_at
where ` + staleKey + `
returning created_at`
	keptAnswerSQL = `
select body_hash, status, headers, body, resource_id, created_at from idempotency
where account_id = @account and key_hash = @key and not ` + staleKey
	completeKeySQL = `
update idempotency set status = @status, headers = @headers, body = @body, resource_id = @resource
where account_id = @account and key_hash = @key and created_at = @claim and status is null`
	releaseKeySQL = `
delete from idempotency
where account_id = @account and key_hash = @key and created_at = @claim and status is null`
	// bindKeySQL gives a claimed key to something else: the turn that is to be steered, or the turn that begins after all.
	bindKeySQL = `
update idempotency set status = @status, resource_id = @resource, body_hash = @hash, headers = null, body = null, created_at = clock_timestamp()
where account_id = @account and key_hash = @key`
	keepFollowUpSQL = `
update idempotency set status = 202, resource_id = null, headers = @headers, body = @body
where account_id = @account and key_hash = @key`
)

// keyHash is what a key is stored and found by. No part of it can hold a newline.
func keyHash(key protocol.IdempotencyKey) []byte {
	hash := sha256.Sum256([]byte(key.Method + "\n" + key.Path + "\n" + key.Key))
	return hash[:]
}

func keyArgs(account protocol.AccountID, key protocol.IdempotencyKey) pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": account, "key": keyHash(key), "path": key.Path, "hash": key.BodyHash[:], "status": nil, "resource": nil,
	}
}

// FindAnswer looks for a kept answer, for the look before the rate limiter: nil when there is none yet. The same key
// with another body is protocol.CodeIdempotencyMismatch.
func (db *DB) FindAnswer(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*Answer, error) {
	kept, err := db.findKept(ctx, account, key)
	if err != nil || kept == nil || kept.Status == nil {
		return nil, err
	}
	return kept.answer(), nil
}

// findKept shares its trip with others who look at the same time.
func (db *DB) findKept(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*keptAnswer, error) {
	kept, err := db.keys.find(ctx, accountKey{account, string(keyHash(key))})
	if err != nil {
		return nil, fmt.Errorf("looking for a kept answer: %w", err)
	}
	if kept == nil {
		return nil, nil
	}
	return kept, kept.matches(key)
}

// accountKey names a row of idempotency.
type accountKey struct {
	account protocol.AccountID
	hash    string
}

// keptAnswersSQL has a limit, so that no plan reads the whole table once, as one does that was made while there was little
// in it.
const keptAnswersSQL = `
select n, kept.*
from unnest($1::uuid[], $2::bytea[]) with ordinality as g (account_id, key_hash, n)
cross join lateral (
    select body_hash, status, headers, body, resource_id, created_at from idempotency
    where idempotency.account_id = g.account_id and idempotency.key_hash = g.key_hash and not ` + staleKey + `
    limit 1
) as kept`

func (db *DB) findKeys(ctx context.Context, group []*question[accountKey, *keptAnswer]) error {
	var accounts []protocol.AccountID
	var hashes [][]byte
	for _, q := range group {
		accounts, hashes = append(accounts, q.asked.account), append(hashes, []byte(q.asked.hash))
	}
	batch := &pgx.Batch{}
	batch.Queue(setAccountsSQL, accountArray(accounts))
	batch.Queue(keptAnswersSQL, accounts, hashes).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			kept := &keptAnswer{}
			var n int
			if err := rows.Scan(append([]any{&n}, kept.targets()...)...); err != nil {
				return err
			}
			group[n-1].answer = kept
		}
		return rows.Err()
	})
	return db.Send(ctx, Nobody, batch)
}

// KeyClaim is the right to work on a request that carries an Idempotency-Key. Complete, CompleteIn and Release end it.
// What creates keeps its answer by CompleteIn, in the transaction of the effect (see Keeper); Complete after it changes
// nothing. When the process dies without an effect, the key is free again after 30 s.
type KeyClaim struct {
	db      *DB
	account protocol.AccountID
	key     protocol.IdempotencyKey
	claimed time.Time
}

// ClaimKey takes a key: a claim, or the first answer to be given again, or an error: protocol.CodeIdempotencyMismatch, or
// protocol.CodeIdempotencyBusy when another request with it works for longer than Config.KeyWait, or
// than ctx allows to wait, whether its end comes between two looks or during one.
func (db *DB) ClaimKey(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*KeyClaim, *Answer, error) {
	deadline := time.Now().Add(db.config.KeyWait)
	if ends, bounded := ctx.Deadline(); bounded && ends.Add(-keyMargin).Before(deadline) {
		deadline = ends.Add(-keyMargin)
	}
	waited := false // so another request was seen to work on it
	for delay := resolvePause; ; delay = min(delay*2, keyPollMost) {
		claim, kept, err := db.tryClaim(ctx, account, key)
		switch {
		case err != nil && waited && ctx.Err() != nil: // on a slow machine one look outlasts the margin
			return nil, nil, keyBusy()
		case err != nil:
			return nil, nil, fmt.Errorf("claiming an idempotency key: %w", err)
		case claim != nil:
			return claim, nil, nil
		case kept != nil && kept.Status != nil:
			return nil, kept.answer(), nil
		}
		if time.Until(deadline) < delay || !pause(ctx, delay) {
			return nil, nil, keyBusy()
		}
		waited = true
	}
}

// tryClaim answers nothing of both while another works, or when that one has just let go.
func (db *DB) tryClaim(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*KeyClaim, *keptAnswer, error) {
	claim := &KeyClaim{db: db, account: account, key: key}
	claimed, err := Rows(ctx, db, account, pgx.RowTo[time.Time], claimKeySQL, keyArgs(account, key))
	if err != nil {
		if isState(err, stateLockTimeout) {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	if len(claimed) == 1 {
		claim.claimed = claimed[0]
		return claim, nil, nil
	}
	kept, err := db.findKept(ctx, account, key)
	return nil, kept, err
}

func (c *KeyClaim) args(answer *Answer) pgx.NamedArgs {
	args := keyArgs(c.account, c.key)
	args["claim"] = c.claimed
	if answer != nil {
		args["status"], args["headers"], args["body"], args["resource"] = answer.Status, answer.Headers, answer.Body, answer.TurnID
	}
	return args
}

// Complete keeps the answer. Call it for committed successes only.
func (c *KeyClaim) Complete(ctx context.Context, answer *Answer) error {
	_, err := c.db.Exec(ctx, c.account, completeKeySQL, c.args(answer))
	if err != nil {
		return fmt.Errorf("keeping an answer: %w", err)
	}
	return nil
}

// errClaimLost says that the request took so long that another took its key over.
var errClaimLost = errors.New("the claim of an idempotency key was taken over")

// CompleteIn keeps the answer in the transaction of the effect, which fails when the claim was taken over meanwhile.
func (c *KeyClaim) CompleteIn(ctx context.Context, tx *Tx, answer *Answer) error {
	tag, err := tx.Exec(ctx, completeKeySQL, c.args(answer))
	if err != nil {
		return fmt.Errorf("keeping an answer: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return unavailable(errClaimLost)
	}
	return nil
}

// Keeper makes the stores keep the answer to a request in the transaction of its effect, so that both are committed or
// neither. It travels in the request's context, because only the outermost layer knows what an answer looks like.
type Keeper struct {
	Claim  *KeyClaim
	Answer func(made any) (*Answer, error) // of what the effect made: a *protocol.Conversation, *protocol.Branch …
}

type keeperKey struct{}

// WithKeeper gives a request's context its keeper.
func WithKeeper(ctx context.Context, keeper *Keeper) context.Context {
	return context.WithValue(ctx, keeperKey{}, keeper)
}

// keepIn keeps the answer to the request that made something, if it brought a key. It is the last statement of what
// creates.
func keepIn(ctx context.Context, tx *Tx, made any) error {
	keeper, _ := ctx.Value(keeperKey{}).(*Keeper)
	if keeper == nil {
		return nil
	}
	answer, err := keeper.Answer(made)
	if err != nil {
		return err
	}
	return keeper.Claim.CompleteIn(ctx, tx, answer)
}

// Release frees the key after a failure. It works after the request's own context has ended.
func (c *KeyClaim) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, err := c.db.Exec(ctx, c.account, releaseKeySQL, c.args(nil))
	if err != nil {
		return fmt.Errorf("freeing an idempotency key: %w", err)
	}
	return nil
}

// queueClaim claims the key in the transaction of the start itself: both are committed or neither. A start with the
// same key that is under way makes it wait.
func (s *turnStart) queueClaim(batch *pgx.Batch) {
	if s.Idempotency == nil {
		return
	}
	s.claiming = s.ConversationID != nil // else the account's lock comes first, and says when
	args := keyArgs(s.AccountID, *s.Idempotency)
	args["status"], args["resource"] = 200, s.turn
	var claimed bool
	var at time.Time
	batch.Queue(claimKeySQL, args).QueryRow(func(row pgx.Row) error {
		err := optional(&claimed, &at)(row)
		s.claiming = err != nil
		return err
	})
	batch.Queue(keptAnswerSQL, args).QueryRow(func(row pgx.Row) error {
		kept := &keptAnswer{}
		var found bool
		if err := optional(&found, kept.targets()...)(row); err != nil {
			return err
		}
		if !claimed {
			s.kept = kept
			if !found { // let go between the two statements: as good as worked on
				kept.BodyHash = s.Idempotency.BodyHash[:]
			}
		}
		return nil
	})
}

const replayedSpecSQL = `
select t.spec, m.parts from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and c.deleted_at is null
left join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id
where t.account_id = $1 and t.turn_id = $2`

// replay answers a repeated start with what the first one did; nil when the key turned out to be free.
func (s *turnStart) replay(ctx context.Context) error {
	if s.kept.steers() {
		return s.replaySteering(ctx)
	}
	if err := s.kept.matches(*s.Idempotency); err != nil {
		return err
	}
	switch {
	case s.kept.Status == nil:
		return keyBusy()
	case s.kept.TurnID != nil:
		spec := &protocol.TurnSpec{}
		var parts []protocol.Part
		if err := s.tx.QueryRow(ctx, replayedSpecSQL, s.AccountID, *s.kept.TurnID).Scan(spec, &parts); err != nil {
			return fmt.Errorf("reading the turn of an earlier request: %w", err)
		}
		spec.Input = userText(parts)
		s.result = &protocol.TurnStartResult{Spec: spec, Replayed: true}
	default:
		item, err := s.kept.followUp()
		if err != nil {
			return err
		}
		s.result = &protocol.TurnStartResult{FollowUp: item, Replayed: true}
	}
	return errAnswered
}

func (k *keptAnswer) followUp() (*protocol.FollowUp, error) {
	item := &protocol.FollowUp{}
	if err := json.Unmarshal(k.Body, item); err != nil {
		return nil, fmt.Errorf("reading the answer to an earlier request: %w", err)
	}
	return item, nil
}

// replaySteering decides under the lock that ending the turn takes. A turn that has ended without the input never takes
// it: the key is free, for any body.
func (s *turnStart) replaySteering(ctx context.Context) error {
	rows, err := s.tx.Query(ctx, steeredSQL, s.AccountID, *s.kept.TurnID, s.Idempotency.Key)
	if err != nil {
		return err
	}
	steered, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[steeredTurn])
	if err != nil {
		return fmt.Errorf("reading what an earlier request steered: %w", err)
	}
	receipt := steered.receipt(*s.kept.TurnID)
	if receipt != nil || !steered.State.Terminal() {
		if err := s.kept.matches(*s.Idempotency); err != nil {
			return err
		}
	}
	if receipt != nil {
		s.result = &protocol.TurnStartResult{Receipt: receipt, Replayed: true}
		return errAnswered
	}
	s.kept = nil
	return s.bind(ctx, 200, s.turn)
}

func (s *turnStart) bind(ctx context.Context, status int, turn protocol.TurnID) error {
	args := keyArgs(s.AccountID, *s.Idempotency)
	args["status"], args["resource"] = status, turn
	_, err := s.tx.Exec(ctx, bindKeySQL, args)
	return err
}

const steeredSQL = `
select t.state, r.sequence, r.body from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and c.deleted_at is null
left join turn_records r on r.account_id = t.account_id and r.turn_id = t.turn_id and r.kind = 'steering' and r.key = $3
where t.account_id = $1 and t.turn_id = $2`

// steeredTurn is a turn and its record of one input.
type steeredTurn struct {
	State    protocol.TurnState
	Sequence *int64
	Body     *protocol.SteeringRecord
}

// receipt repeats the first receipt of the input; nil when the turn did not accept it.
func (t *steeredTurn) receipt(turn protocol.TurnID) *protocol.SteeringReceipt {
	if t.Sequence == nil || t.Body == nil {
		return nil
	}
	return &protocol.SteeringReceipt{SteeringID: t.Body.SteeringID, TurnID: turn, State: "accepted", Sequence: *t.Sequence, Replayed: true}
}

// queueKept keeps the follow-up as the answer to the start that became one.
func (s *turnStart) queueKept(batch *pgx.Batch, item *protocol.FollowUp) error {
	if s.Idempotency == nil {
		return nil
	}
	args := keyArgs(s.AccountID, *s.Idempotency)
	var err error
	args["body"], err = jsonText(item)
	// A purge of the conversation finds by this what was kept of it.
	args["headers"] = map[string]string{"Location": "/conversations/" + s.ConversationID.String() + "/follow-ups"}
	batch.Queue(keepFollowUpSQL, args)
	return err
}

// KeptStart finds what an earlier start with the key did; nil when it did nothing. The same key with another body is
// protocol.CodeIdempotencyMismatch.
func (t *Turns) KeptStart(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*protocol.KeptStart, error) {
	kept, mismatch := t.db.findKept(ctx, account, key)
	switch {
	case kept == nil || kept.Status == nil:
		return nil, mismatch
	case kept.steers():
		return t.keptSteering(ctx, account, key, kept)
	case mismatch != nil:
		return nil, mismatch
	case kept.TurnID != nil:
		return &protocol.KeptStart{TurnID: kept.TurnID}, nil
	}
	item, err := kept.followUp()
	return &protocol.KeptStart{FollowUp: item}, err
}

func (t *Turns) keptSteering(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey, kept *keptAnswer) (*protocol.KeptStart, error) {
	found, err := Rows(ctx, t.db, account, pgx.RowToStructByPos[steeredTurn], steeredSQL, account, *kept.TurnID, key.Key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	receipt := found[0].receipt(*kept.TurnID)
	if receipt == nil { // StartTurn decides
		return nil, nil //nolint:nilnil // nothing was done
	}
	return &protocol.KeptStart{Receipt: receipt}, kept.matches(key)
}
