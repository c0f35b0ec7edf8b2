package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
)

const (
	defaultKeyWait = 5 * time.Second
	keyPollMost    = 200 * time.Millisecond
	// keyMargin is the part of a request's time that is left when it stops waiting for a key, so that it can still
	// report the reason.
	keyMargin = 100 * time.Millisecond
)

// releaseTimeout limits how long an error response waits for the release of its key. A key that is not released
// expires by itself.
var releaseTimeout = timelimit.Of(time.Second)

// Store stores the first response to each creating request with an Idempotency-Key. Its methods may be called
// from any goroutine.
type Store struct {
	db   *pg.DB
	wait time.Duration
	keys *pg.Lookups[AccountKey, *KeyRow] // every request with a key needs one
	node *protocol.NodeID                 // that runs the requests; nil: not a node of the cluster
	left *leftClaims
}

// leftClaims are claims that could not be released, because the database was away.
type leftClaims struct {
	mu     sync.Mutex
	claims []*KeyClaim // guarded by mu; oldest first, at most maxLeft
}

// maxLeft bounds leftClaims. A claim beyond it is released when it is stale.
const maxLeft = 1000

// New returns a store. A request waits for another one with its key for at most wait; 0: 5 s.
func New(db *pg.DB, wait time.Duration) *Store {
	if wait == 0 {
		wait = defaultKeyWait
	}
	s := &Store{db: db, wait: wait, left: &leftClaims{}}
	s.keys = pg.NewLookups(s.findKeys)
	return s
}

// On returns the store for the requests of a node: once that node is dead, the keys that they have claimed are free.
func (s *Store) On(node protocol.NodeID) *Store {
	own := *s
	own.node = &node
	return &own
}

// retention is how long responses are stored.
const retention = "24 hours"

const expireKeysSQL = `
	delete from idempotency i using (
		select account_id, key_hash from idempotency where created_at < now() - '` + retention + `'::interval limit $1) x
	where i.account_id = x.account_id and i.key_hash = x.key_hash`

// Expire deletes the responses that are older than retention.
func (s *Store) Expire(ctx context.Context) error {
	return s.db.DeleteExpired(ctx, expireKeysSQL)
}

// StoredResponse is the stored first response to a creating request.
type StoredResponse struct {
	Status  int
	Headers map[string]string
	Body    []byte
	TurnID  *protocol.TurnID // POST /chat: the turn that it started; the response is the stream of that turn
	// BodyHash is the SHA-256 of the body of the first request.
	BodyHash []byte
}

// Outcomes of a start of a turn with a key, in the column of the statuses; package http sends them as 200 and 202.
const (
	Started  = 200 // a turn, which the row names
	Accepted = 202 // the live turn that the row names gets the input; without a turn: a follow-up, which is the body
)

// LocatedAt returns the headers of the response to a request that created something at a path.
func LocatedAt(path string) map[string]string { return map[string]string{"Location": path} }

// KeyRow is a row of idempotency. Status is nil while the first request is in progress.
type KeyRow struct {
	BodyHash  []byte
	Status    *int
	Headers   map[string]string
	Body      []byte
	TurnID    *protocol.TurnID
	CreatedAt time.Time
}

// Targets returns the scan targets of the columns of a key, in the order of selectKeysSQL.
func (k *KeyRow) Targets() []any {
	return []any{&k.BodyHash, &k.Status, &k.Headers, &k.Body, &k.TurnID, &k.CreatedAt}
}

// Matches returns an error if the key was used with another body, with the body of the first response; {}: none is stored. A
// body whose hash is not known yet is compared later, with SameBody.
func (k *KeyRow) Matches(key protocol.IdempotencyKey) error {
	if key.Streamed {
		return nil
	}
	err := SameBody(k.BodyHash, key.BodyHash)
	var mismatch *protocol.Error
	if errors.As(err, &mismatch) {
		if mismatch.Current = struct{}{}; k.Body != nil {
			mismatch.Current = json.RawMessage(k.Body)
		}
	}
	return err
}

// SameBody returns an error if the hash of a body is not that of the first request with its key.
func SameBody(first []byte, hash [sha256.Size]byte) error {
	if string(first) != string(hash[:]) {
		return protocol.Errorf(protocol.CodeIdempotencyMismatch, "the key was used with another body")
	}
	return nil
}

// Steers reports whether the key belongs to a steering input for the turn. Only the turn's record of that input shows
// whether it was accepted.
func (k *KeyRow) Steers() bool { return k.Status != nil && *k.Status == Accepted && k.TurnID != nil }

// SteersAs returns the client_steering_id of the input of a key that steers a turn. The service chose it, so it differs
// from every name that the client gave to an input. In rows of earlier versions, the key itself was the name.
func (k *KeyRow) SteersAs(key protocol.IdempotencyKey) string {
	var name string
	if err := json.Unmarshal(k.Body, &name); err != nil {
		return key.Key
	}
	return name
}

func (k *KeyRow) response() *StoredResponse {
	return &StoredResponse{Status: *k.Status, Headers: k.Headers, Body: k.Body, TurnID: k.TurnID, BodyHash: k.BodyHash}
}

// KeyBusy returns the error for a key whose first request is still in progress.
func KeyBusy() error {
	return &protocol.Error{
		Code: protocol.CodeIdempotencyBusy, Detail: "another request with this key is in progress", RetryAfter: pg.RetrySeconds,
		Current: struct{}{},
	}
}

// A stored response is stale after retention. A claim that is older than 30 seconds belongs to a request that has ended without
// releasing it, and a claim of a dead node belongs to one that cannot complete it: completing compares claim_id.
var (
	staleKey = `(idempotency.created_at < now() - '` + retention + `'::interval
       or idempotency.status is null and (idempotency.created_at < now() - interval '30 seconds'
           or idempotency.node_id is not null and not ` + pg.NodeRuns("idempotency.node_id") + `))`
	ClaimKeySQL = `
insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, node_id, claim_id, created_at)
values (@account, @key, @path, @hash, @status, @resource, @node, @claim, clock_timestamp())
on conflict (account_id, key_hash) do update
set body_hash = excluded.body_hash, status = excluded.status, resource_id = excluded.resource_id, node_id = excluded.node_id,
    claim_id = excluded.claim_id, headers = null, body = null, created_at = excluded.created_at
where ` + staleKey + `
returning created_at`
	SelectKeySQL = `
select body_hash, status, headers, body, resource_id, created_at from idempotency
where account_id = @account and key_hash = @key and not ` + staleKey
)

const (
	completeKeySQL = `
update idempotency set status = @status, headers = @headers, body = @body, resource_id = @resource, body_hash = @hash
where account_id = @account and key_hash = @key and claim_id = @claim and status is null`
	renewKeySQL = `
update idempotency set created_at = clock_timestamp()
where account_id = @account and key_hash = @key and claim_id = @claim and status is null`
	releaseKeySQL = `
delete from idempotency
where account_id = @account and key_hash = @key and claim_id = @claim and status is null`
	// BindKeySQL assigns a claimed key to another turn: the turn to be steered, with the name of the input as the body (see
	// KeyRow.SteersAs), or the turn that is started after all.
	BindKeySQL = `
update idempotency set status = @status, resource_id = @resource, body_hash = @hash, headers = null, body = @body, created_at = clock_timestamp()
where account_id = @account and key_hash = @key`
	// StoreFollowUpResponseSQL stores the response to a request that was queued, with the status Accepted.
	StoreFollowUpResponseSQL = `
update idempotency set status = @status, resource_id = null, headers = @headers, body = @body
where account_id = @account and key_hash = @key`
)

// KeyHash returns the hash under which a key is stored and looked up. No part of the key can contain a newline.
func KeyHash(key protocol.IdempotencyKey) []byte {
	hash := sha256.Sum256([]byte(key.Method + "\n" + key.Path + "\n" + key.Key))
	return hash[:]
}

// KeyArgs returns the arguments of a statement that claims or reads a key.
func KeyArgs(account protocol.AccountID, key protocol.IdempotencyKey) pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": account, "key": KeyHash(key), "path": key.Path, "hash": key.BodyHash[:], "status": nil, "resource": nil, "node": nil, "claim": nil, "body": nil,
	}
}

// FindResponse returns the stored response for a key, for the check that precedes the rate limiter; nil if there is
// none yet. If the key was used with another body, the error is protocol.CodeIdempotencyMismatch.
func (s *Store) FindResponse(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*StoredResponse, error) {
	row, err := s.FindKey(ctx, account, key)
	if err != nil || row == nil || row.Status == nil {
		return nil, err
	}
	return row.response(), nil
}

// FindKey returns the row of a key; nil if there is none. Concurrent calls share a round trip.
func (s *Store) FindKey(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*KeyRow, error) {
	row, err := s.keys.Find(ctx, AccountKey{account, string(KeyHash(key))})
	if err != nil {
		return nil, fmt.Errorf("looking up a stored response: %w", err)
	}
	if row == nil {
		return nil, nil
	}
	return row, row.Matches(key)
}

// AccountKey identifies a row of idempotency.
type AccountKey struct {
	Account protocol.AccountID
	Hash    string
}

// selectKeysSQL has a limit, because a plan that was made while the table was nearly empty would otherwise read the
// whole table.
var selectKeysSQL = `
select n, kept.*
from unnest($1::uuid[], $2::bytea[]) with ordinality as g (account_id, key_hash, n)
cross join lateral (
    select body_hash, status, headers, body, resource_id, created_at from idempotency
    where idempotency.account_id = g.account_id and idempotency.key_hash = g.key_hash and not ` + staleKey + `
    limit 1
) as kept`

func (s *Store) findKeys(ctx context.Context, group []*pg.Lookup[AccountKey, *KeyRow]) error {
	var accounts []protocol.AccountID
	var hashes [][]byte
	for _, q := range group {
		accounts, hashes = append(accounts, q.Key.Account), append(hashes, []byte(q.Key.Hash))
	}
	batch := &pgx.Batch{}
	batch.Queue(pg.SetAccountsSQL, pg.AccountArray(accounts))
	batch.Queue(selectKeysSQL, accounts, hashes).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			row := &KeyRow{}
			var n int
			if err := rows.Scan(append([]any{&n}, row.Targets()...)...); err != nil {
				return err
			}
			group[n-1].Result = row
		}
		return rows.Err()
	})
	return s.db.Send(ctx, pg.NoAccount, batch)
}

// KeyClaim is the right to process a request that carries an Idempotency-Key. Complete, CompleteIn and Release end it.
// A creating request stores its response with StoreResponseIn, in the transaction of its effect (see ResponseStorer); a
// later Complete changes nothing. If the process ends without an effect, the key is free again after 30 s.
type KeyClaim struct {
	db      *pg.DB
	left    *leftClaims
	account protocol.AccountID
	key     protocol.IdempotencyKey
	id      uuid.UUID
}

// ClaimKey claims a key. It returns a claim, or the stored response to be sent again, or an error:
// protocol.CodeIdempotencyMismatch, or protocol.CodeIdempotencyBusy if another request with the key is in progress for
// longer than the wait of the store or than the deadline of ctx allows, whether that deadline ends between two checks
// or during one.
func (s *Store) ClaimKey(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*KeyClaim, *StoredResponse, error) {
	deadline := time.Now().Add(s.wait)
	if ends, bounded := ctx.Deadline(); bounded && ends.Add(-keyMargin).Before(deadline) {
		deadline = ends.Add(-keyMargin)
	}
	waited := false // set when another request with the key was seen in progress
	for delay := pg.ResolvePause; ; delay = min(delay*2, keyPollMost) {
		claim, row, err := s.tryClaim(ctx, account, key)
		switch {
		case err != nil && waited && ctx.Err() != nil: // on a slow host computer one check can take longer than keyMargin
			return nil, nil, KeyBusy()
		case err != nil:
			return nil, nil, fmt.Errorf("claiming an idempotency key: %w", err)
		case claim != nil:
			return claim, nil, nil
		case row != nil && row.Status != nil:
			return nil, row.response(), nil
		}
		if time.Until(deadline) < delay || clock.Sleep(ctx, delay) != nil {
			return nil, nil, KeyBusy()
		}
		waited = true
	}
}

// tryClaim claims a key if it is free. Otherwise it returns the row of the key, whose Status is nil while another
// request is in progress; or neither, if that request holds the lock of the row or has just released the key.
func (s *Store) tryClaim(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*KeyClaim, *KeyRow, error) {
	claim := &KeyClaim{db: s.db, left: s.left, account: account, key: key, id: uuid.New()}
	args := claim.args(nil)
	args["node"] = s.node
	own, cancel := uncancelled(ctx)
	defer cancel()
	claimed, err := pg.Rows(own, s.db, account, pgx.RowTo[time.Time], ClaimKeySQL, args)
	switch {
	case pg.IsLockTimeout(err):
		return nil, nil, nil
	case err != nil:
		if pg.MayHaveRun(err) { // ReleaseLeft releases it
			s.left.add(claim)
		}
		return nil, nil, err
	case len(claimed) == 1:
		return claim, nil, nil
	}
	row, err := s.FindKey(ctx, account, key)
	return nil, row, err
}

// uncancelled returns a context with the deadline of ctx that does not end when the client disconnects: a claim of which the caller
// knows nothing would keep the key busy.
func uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	own := context.WithoutCancel(ctx)
	if ends, bounded := ctx.Deadline(); bounded {
		return context.WithDeadline(own, ends)
	}
	return own, func() {}
}

func (c *KeyClaim) args(response *StoredResponse) pgx.NamedArgs {
	args := KeyArgs(c.account, c.key)
	args["claim"] = c.id
	if response != nil {
		args["status"], args["headers"], args["body"], args["resource"] = response.Status, response.Headers, response.Body, response.TurnID
	}
	return args
}

// Complete stores the response. Call it for committed successes only.
func (c *KeyClaim) Complete(ctx context.Context, response *StoredResponse) error {
	_, err := c.db.Exec(ctx, c.account, completeKeySQL, c.args(response))
	if err != nil {
		return fmt.Errorf("storing a response: %w", err)
	}
	return nil
}

// Bind sets the hash of a body that was streamed, before the response is stored.
func (c *KeyClaim) Bind(bodyHash [sha256.Size]byte) { c.key.BodyHash = bodyHash }

// Renew keeps the claim of the request of ctx, if it has a key, while a long body is received. The error is
// protocol.CodeUnavailable if the claim was taken over.
func Renew(ctx context.Context) error {
	storer, _ := ctx.Value(responseStorerKey{}).(*ResponseStorer)
	if storer == nil {
		return nil
	}
	c := storer.Claim
	renewed, err := c.db.Exec(ctx, c.account, renewKeySQL, c.args(nil))
	if err != nil {
		return fmt.Errorf("renewing the claim of a key: %w", err)
	}
	if renewed == 0 {
		return pg.Unavailable(errClaimLost)
	}
	return nil
}

// errClaimLost means that the request took so long that another request took over its key.
var errClaimLost = errors.New("the claim of an idempotency key was taken over")

// CompleteIn stores the response in the transaction of the effect. If the claim was taken over in the meantime, it
// fails, and the transaction with it.
func (c *KeyClaim) CompleteIn(ctx context.Context, tx *pg.Tx, response *StoredResponse) error {
	tag, err := tx.Exec(ctx, completeKeySQL, c.args(response))
	if err != nil {
		return fmt.Errorf("storing a response: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return pg.Unavailable(errClaimLost)
	}
	return nil
}

// ResponseStorer lets this package store the response to a request in the transaction of its effect, so that both are
// committed or neither. It is passed in the request's context, because only the outermost layer knows the form of a
// response.
type ResponseStorer struct {
	Claim *KeyClaim
	Build func(made any) (*StoredResponse, error) // builds the response from the created object, for example a *protocol.Branch
}

type responseStorerKey struct{}

// WithResponseStorer returns a context that carries the storer of a request's response.
func WithResponseStorer(ctx context.Context, storer *ResponseStorer) context.Context {
	return context.WithValue(ctx, responseStorerKey{}, storer)
}

// StoreResponseIn stores the response to the request that created made, if the request carries a key. It is the last
// statement of a creating transaction.
func StoreResponseIn(ctx context.Context, tx *pg.Tx, made any) error {
	storer, _ := ctx.Value(responseStorerKey{}).(*ResponseStorer)
	if storer == nil {
		return nil
	}
	response, err := storer.Build(made)
	if err != nil {
		return err
	}
	return storer.Claim.CompleteIn(ctx, tx, response)
}

// Release releases the key after a failure. It works after the request's own context has ended. After an error, ReleaseLeft releases the
// key.
func (c *KeyClaim) Release(ctx context.Context) error {
	err := c.release(ctx)
	if err != nil {
		c.left.add(c)
	}
	return err
}

func (c *KeyClaim) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, err := c.db.Exec(ctx, c.account, releaseKeySQL, c.args(nil))
	if err != nil {
		return fmt.Errorf("releasing an idempotency key: %w", err)
	}
	return nil
}

func (l *leftClaims) add(claims ...*KeyClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims = append(l.claims, claims[:min(len(claims), maxLeft-len(l.claims))]...)
}

// ReleaseLeft releases the keys whose release failed, and those of claims whose reply was lost, until the first error or the end of ctx. It is
// called from time to time: a key whose request met an outage is then free soon after it, and not only when its claim is stale.
func (s *Store) ReleaseLeft(ctx context.Context) error {
	s.left.mu.Lock()
	claims := s.left.claims
	s.left.claims = nil
	s.left.mu.Unlock()
	for i, c := range claims {
		err := ctx.Err()
		if err == nil {
			err = c.release(ctx)
		}
		if err != nil {
			s.left.add(claims[i:]...)
			return err
		}
	}
	return nil
}
