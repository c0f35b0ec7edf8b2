package accounts

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// A session is one sign-in of one browser. Its token is replaced from time to time. Each token is a row, which is found
// by the HMAC of the token; all rows of a session have the same session identifier. The row of a replaced token names
// its successor. A token that was issued and never presented has last_used_at before rotated_at.

// MaxSessions limits the sessions of an account; a further session ends the oldest one.
const MaxSessions = 20

// Session is the row of a token, with its account.
type Session struct {
	protocol.Account
	Disabled          bool // the account is disabled
	TokenHash         []byte
	SessionID         protocol.SessionID
	CreatedAt         time.Time
	LastUsedAt        time.Time
	ExpiresAt         time.Time
	RotatedAt         time.Time // when this token was issued
	SuccessorHash     []byte
	SuccessorUsedAt   *time.Time
	RevokedAt         *time.Time
	ReauthenticatedAt *time.Time
}

// Fresh reports whether the token was issued and never presented.
func (s *Session) Fresh() bool { return s.LastUsedAt.Before(s.RotatedAt) }

// NewSession is a token to be stored: the first one of a new session, or the next one of an existing session.
type NewSession struct {
	SessionID         protocol.SessionID
	TokenHash         []byte
	KeyVersion        int16
	UserAgent         string
	At                time.Time
	ExpiresAt         time.Time
	ReauthenticatedAt *time.Time
	Checked           *string // the hash of the password that was checked; nil: none
}

func (s *NewSession) args(account protocol.AccountID) pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": account, "session": s.SessionID, "token": s.TokenHash, "version": s.KeyVersion, "agent": s.UserAgent,
		"at": s.At, "expires": s.ExpiresAt, "reauthenticated": s.ReauthenticatedAt, "limit": MaxSessions, "checked": s.Checked,
	}
}

// setAccountsByTokenSQL makes the accounts of the tokens those of the transaction, so that row-level security lets
// selectSessionSQL read them.
const (
	setAccountsByTokenSQL = `
	select set_config('turnstone.account_ids',
		coalesce((select array_agg(distinct account_id)::text from sessions where token_hash = any ($1)), ''), true)`
	selectSessionSQL = `
	select a.account_id, a.email, a.display_name, a.version, ` + pendingColumns + `, a.disabled_at is not null as disabled,
		s.token_hash, s.session_id, s.created_at, s.last_used_at, s.expires_at, s.rotated_at, s.successor_hash,
		s.successor_used_at, s.revoked_at, s.reauthenticated_at
	from sessions s join accounts a on a.account_id = s.account_id
	where s.token_hash = any ($1)`
)

// FindSession returns the row of a token, valid or not; hashes are its HMACs under the active keys. The error is
// protocol.CodeNotFound if there is none. Concurrent calls share a round trip.
func (s *Store) FindSession(ctx context.Context, hashes [][]byte) (*Session, error) {
	found, err := s.sessions.Find(ctx, hashes)
	if err == nil && found == nil {
		err = pg.NotFound()
	}
	return found, err
}

func (s *Store) findSessions(ctx context.Context, group []*pg.Lookup[[][]byte, *Session]) error {
	var hashes [][]byte
	for _, q := range group {
		hashes = append(hashes, q.Key...)
	}
	var found []*Session
	batch := &pgx.Batch{}
	batch.Queue(pg.GenericPlansSQL)
	batch.Queue(setAccountsByTokenSQL, hashes)
	batch.Queue(selectSessionSQL, hashes).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scanSession)
		return err
	})
	if err := s.db.Send(ctx, pg.NoAccount, batch); err != nil {
		return err
	}
	byHash := make(map[string]*Session, len(found))
	for _, session := range found {
		byHash[string(session.TokenHash)] = session
	}
	for _, q := range group {
		for _, hash := range q.Key {
			if session := byHash[string(hash)]; session != nil {
				own := *session // each caller may change its copy
				q.Result = &own
				break
			}
		}
	}
	return nil
}

func scanSession(row pgx.CollectableRow) (*Session, error) {
	s := &Session{}
	return s, row.Scan(&s.AccountID, &s.Email, &s.DisplayName, &s.Version, &s.PendingEmail, &s.PendingEmailExpiresAt, &s.Disabled, &s.TokenHash, &s.SessionID, &s.CreatedAt, &s.LastUsedAt,
		&s.ExpiresAt, &s.RotatedAt, &s.SuccessorHash, &s.SuccessorUsedAt, &s.RevokedAt, &s.ReauthenticatedAt)
}

const (
	touchSessionSQL = `
	update sessions set last_used_at = greatest(last_used_at, @at) where account_id = @account and token_hash = @token`
	touchPredecessorSQL = `
	update sessions set successor_used_at = @at
	where account_id = @account and session_id = @session and successor_hash = @token and successor_used_at is null`
)

// TouchSession stores that a token was used. The first use of a token starts the expiry of the token that it replaced.
func (s *Store) TouchSession(ctx context.Context, session *Session, now time.Time) error {
	args := pgx.NamedArgs{"account": session.AccountID, "session": session.SessionID, "token": session.TokenHash, "at": now}
	batch := &pgx.Batch{}
	batch.Queue(touchSessionSQL, args)
	if session.Fresh() {
		batch.Queue(touchPredecessorSQL, args)
	}
	return s.db.Send(ctx, session.AccountID, batch)
}

const insertSessionSQL = `
	insert into sessions (token_hash, key_version, session_id, account_id, user_agent, created_at, last_used_at, expires_at,
		rotated_at, reauthenticated_at)
	values (@token, @version, @session, @account, @agent, @at, @at, @expires, @at, @reauthenticated)`

// endOldestSQL ends the oldest sessions of an account, so that one more stays within the limit.
const endOldestSQL = `
	with live as (
		select session_id from sessions
		where account_id = @account and revoked_at is null and expires_at > @at
		group by session_id order by min(created_at) desc, session_id desc offset @limit - 1
	)
	update sessions s set revoked_at = @at from live
	where s.account_id = @account and s.session_id = live.session_id and s.revoked_at is null
	returning pg_notify('` + sessionChannel + `', s.session_id::text)`

// CreateSession stores a new session. The error is protocol.CodeNotFound if session.Checked is not nil and the account has
// another password by now: otherwise a sign-in with the old one could outlive its change. The lock on the account prevents concurrent sign-ins from exceeding the limit
// together.
func (s *Store) CreateSession(ctx context.Context, account protocol.AccountID, session *NewSession, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if session.Checked != nil {
			if err := lockAll(ctx, tx, session.args(account), lockPasswordSQL); err != nil {
				return err
			}
		}
		batch := &pgx.Batch{}
		queueCreateSession(batch, account, session, by)
		return tx.Run(ctx, batch)
	})
}

func queueCreateSession(batch *pgx.Batch, account protocol.AccountID, session *NewSession, by audit.Requester) {
	batch.Queue(LockAccountSQL, account)
	batch.Queue(endOldestSQL, session.args(account))
	batch.Queue(insertSessionSQL, session.args(account))
	by.Queue(batch, account, audit.EventSignedIn, &session.SessionID)
	by.Queue(batch, account, audit.EventSessionCreated, &session.SessionID)
}

const (
	lockTokenSQL = `select from sessions where account_id = $1 and token_hash = $2 for update`
	// A separate statement: the one that waited for the lock does not see rows that were inserted in the meantime.
	selectSuccessorSQL = `
	select s.successor_hash, s.successor_used_at, n.rotated_at as successor_made_at
	from sessions s left join sessions n on n.account_id = s.account_id and n.token_hash = s.successor_hash
	where s.account_id = $1 and s.token_hash = $2 and s.revoked_at is null`
	dropUnusedSQL = `delete from sessions where account_id = $1 and token_hash = $2 and last_used_at < rotated_at`
	// last_used_at is a microsecond before rotated_at: the token was not presented yet.
	insertNextSQL = `
	insert into sessions (token_hash, key_version, session_id, account_id, user_agent, created_at, last_used_at, expires_at,
		rotated_at, reauthenticated_at)
	select @token, @version, session_id, account_id, user_agent, created_at, @at::timestamptz - interval '1 microsecond',
		expires_at, @at, coalesce(@reauthenticated, reauthenticated_at)
	from sessions where account_id = @account and token_hash = @old`
	nameSuccessorSQL = `update sessions set successor_hash = @token where account_id = @account and token_hash = @old`
)

// RotateSession replaces a token and reports whether it did. A token is not replaced if its successor was used, or is
// younger than overlap: then another request has just replaced it, and the response to that request has the new token.
// The old token stays valid for a while after the first use of the new one.
func (s *Store) RotateSession(ctx context.Context, account protocol.AccountID, old []byte, next *NewSession, overlap time.Duration, by audit.Requester) (rotated bool, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		rotated = false
		current, err := lockToken(ctx, tx, account, old)
		if err != nil || current == nil || current.stays(next.At, overlap) {
			return err
		}
		rotated = true
		args := next.args(account)
		args["old"] = old
		batch := &pgx.Batch{}
		if current.SuccessorHash != nil {
			batch.Queue(dropUnusedSQL, account, current.SuccessorHash)
		}
		batch.Queue(insertNextSQL, args)
		batch.Queue(nameSuccessorSQL, args)
		if next.ReauthenticatedAt != nil {
			by.Queue(batch, account, audit.EventReauthenticated, &next.SessionID)
		}
		by.Queue(batch, account, audit.EventSessionRotated, &next.SessionID)
		return tx.Run(ctx, batch)
	})
	return rotated && err == nil, err
}

// lockToken locks the row of a token, so that no other request replaces the token, and returns its successor; nil if
// the token has ended.
func lockToken(ctx context.Context, tx *pg.Tx, account protocol.AccountID, token []byte) (current *successor, err error) {
	batch := &pgx.Batch{}
	batch.Queue(lockTokenSQL, account, token)
	batch.Queue(selectSuccessorSQL, account, token).Query(collectOne(&current))
	err = tx.Run(ctx, batch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // an ended token is not an error
	}
	return current, err
}

// successor is the token that replaced another one; its fields are nil if there is none.
type successor struct {
	SuccessorHash   []byte
	SuccessorUsedAt *time.Time
	SuccessorMadeAt *time.Time
}

// stays reports whether the current successor remains. A successor that is older than overlap and was never used was lost
// on its way to the client.
func (s successor) stays(now time.Time, overlap time.Duration) bool {
	return s.SuccessorUsedAt != nil || s.SuccessorMadeAt != nil && now.Sub(*s.SuccessorMadeAt) < overlap
}

// replaceSessionsSQL inserts the next token of a session that continues while all its earlier tokens end. It reads the
// creation time of the session from the rows that queueReplaceSessions revokes afterwards.
const replaceSessionsSQL = `
	insert into sessions (token_hash, key_version, session_id, account_id, user_agent, created_at, last_used_at, expires_at,
		rotated_at, reauthenticated_at)
	select @token, @version, @session, @account, @agent, min(created_at), @at, @expires, @at, @reauthenticated
	from sessions where account_id = @account and session_id = @session`

const sessionChannel = "turnstone_sessions"

const (
	endSessionSQL = `
	update sessions set revoked_at = @at
	where account_id = @account and session_id = @session and revoked_at is null and expires_at > @at
	returning pg_notify('` + sessionChannel + `', session_id::text)`
	endOthersSQL = `
	update sessions set revoked_at = @at
	where account_id = @account and session_id <> @session and revoked_at is null
	returning pg_notify('` + sessionChannel + `', session_id::text)`
	endOldTokensSQL = `
	update sessions set revoked_at = @at
	where account_id = @account and session_id = @session and revoked_at is null and token_hash <> @token`
)

func endArgs(account protocol.AccountID, session protocol.SessionID, now time.Time) pgx.NamedArgs {
	return pgx.NamedArgs{"account": account, "session": session, "at": now}
}

// QueueEndSessions adds the statement that ends every session of an account.
func QueueEndSessions(batch *pgx.Batch, account protocol.AccountID, now time.Time) {
	batch.Queue(endOthersSQL, endArgs(account, protocol.SessionID{}, now))
}

// queueReplaceSessions adds the statements that end every session but one, and all tokens of that one except the given
// token. The streams of that session continue.
func queueReplaceSessions(batch *pgx.Batch, account protocol.AccountID, by *NewSession) {
	args := endArgs(account, by.SessionID, by.At)
	args["token"] = by.TokenHash
	batch.Queue(endOthersSQL, args)
	batch.Queue(endOldTokensSQL, args)
}

// EndSession revokes a session; protocol.CodeNotFound if the account has no such live session. Every node is notified.
func (s *Store) EndSession(ctx context.Context, account protocol.AccountID, session protocol.SessionID, event audit.SecurityEvent, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, endSessionSQL, endArgs(account, session, now))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		batch := &pgx.Batch{}
		by.Queue(batch, account, event, &session)
		return tx.Run(ctx, batch)
	})
}

// EndOtherSessions revokes every session of the account except one.
func (s *Store) EndOtherSessions(ctx context.Context, account protocol.AccountID, except protocol.SessionID, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(endOthersSQL, endArgs(account, except, now))
		by.Queue(batch, account, audit.EventSessionsEnded, &except)
		return tx.Run(ctx, batch)
	})
}

// EndSessions revokes every session of the account, for an operator.
func (s *Store) EndSessions(ctx context.Context, account protocol.AccountID, now time.Time, by audit.Requester) error {
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		QueueEndSessions(batch, account, now)
		by.Queue(batch, account, audit.EventSessionsEnded, nil)
		return tx.Run(ctx, batch)
	})
}

const listSessionsSQL = `
	select session_id, (array_agg(user_agent order by rotated_at desc))[1] as user_agent, session_id = @session as current,
		min(created_at) as created_at, max(last_used_at) as last_used_at, max(expires_at) as expires_at
	from sessions
	where account_id = @account and revoked_at is null and expires_at > @at
	group by session_id
	having max(last_used_at) > @idle_since and (max(last_used_at), session_id) < (@after_time, @after)
	order by max(last_used_at) desc, session_id desc
	limit @limit`

// SessionQuery selects a page of an account's live sessions.
type SessionQuery struct {
	Current   protocol.SessionID // the session of the request
	Now       time.Time
	IdleSince time.Time // a session that was not used after this time has ended
	After     *SessionPosition
	Limit     int
}

// SessionPosition is a position between two sessions of the list.
type SessionPosition struct {
	LastUsedAt time.Time          `json:"t"`
	SessionID  protocol.SessionID `json:"s"`
}

// ListSessions returns a page of the account's live sessions, the most recently used first. next is nil at the end.
func (s *Store) ListSessions(ctx context.Context, account protocol.AccountID, query *SessionQuery) (
	page []protocol.Device, next *SessionPosition, err error,
) {
	after := query.After
	if after == nil {
		after = &SessionPosition{LastUsedAt: pg.Latest, SessionID: pg.HighestID}
	}
	args := endArgs(account, query.Current, query.Now)
	args["idle_since"], args["limit"] = query.IdleSince, query.Limit+1
	args["after_time"], args["after"] = after.LastUsedAt, after.SessionID
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Device], listSessionsSQL, args)
	if err != nil {
		return nil, nil, err
	}
	return pg.NextPage(page, query.Limit, func(last *protocol.Device) SessionPosition {
		return SessionPosition{LastUsedAt: last.LastUsedAt, SessionID: last.SessionID}
	})
}

const liveSessionsSQL = `
	select distinct s.session_id
	from unnest($1::uuid[], $2::uuid[]) as o (account_id, session_id)
	cross join lateral (
		select session_id, revoked_at, expires_at from sessions where account_id = o.account_id and session_id = o.session_id offset 0) s
	where s.revoked_at is null and s.expires_at > $3`

// LiveSessions returns those of the given sessions that have not ended. owners maps each session to its account.
func (s *Store) LiveSessions(ctx context.Context, owners map[protocol.SessionID]protocol.AccountID, now time.Time) ([]protocol.SessionID, error) {
	accounts, sessions := make([]protocol.AccountID, 0, len(owners)), make([]protocol.SessionID, 0, len(owners))
	for session, account := range owners {
		accounts, sessions = append(accounts, account), append(sessions, session)
	}
	return pg.Rows(ctx, s.db, pg.NoAccount, pgx.RowTo[protocol.SessionID], liveSessionsSQL, accounts, sessions, now)
}

// ListenSessions calls ended with every session that any node ends, until ctx ends or the connection breaks. A
// notification may be lost, so callers must not rely on it alone.
func (s *Store) ListenSessions(ctx context.Context, ended func(protocol.SessionID)) error {
	conn, err := pgx.ConnectConfig(ctx, s.db.App.Config().ConnConfig)
	if err != nil {
		return pg.Unavailable(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.ProbeTimeout)
		defer cancel()
		_ = conn.Close(closing) // the result does not matter
	}()
	if _, err := conn.Exec(ctx, "listen "+sessionChannel); err != nil {
		return pg.Unavailable(err)
	}
	for {
		note, err := conn.WaitForNotification(ctx)
		if err != nil {
			return pg.Unavailable(err)
		}
		if id, err := uuid.Parse(note.Payload); err == nil {
			ended(protocol.SessionID(id))
		}
	}
}
