package persistence

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// A session is one sign-in of one browser. Its token is replaced now and then; each token is a row, found by its HMAC,
// and all rows of a session carry its identifier. A token that was replaced names its successor. A token that was handed
// out and never seen since has last_used_at before rotated_at.

// MaxSessions is how many an account may have; beyond it the oldest ends.
const MaxSessions = 20

// Session is what a token stands for.
type Session struct {
	protocol.Account
	Disabled          bool // the account is
	TokenHash         []byte
	SessionID         protocol.SessionID
	CreatedAt         time.Time
	LastUsedAt        time.Time
	ExpiresAt         time.Time
	RotatedAt         time.Time // when this token was made
	SuccessorHash     []byte
	SuccessorUsedAt   *time.Time
	RevokedAt         *time.Time
	ReauthenticatedAt *time.Time
}

// Fresh says whether the token was handed out and not seen since.
func (s *Session) Fresh() bool { return s.LastUsedAt.Before(s.RotatedAt) }

// NewSession is a token to store: of a new session, or the next one of a session that goes on.
type NewSession struct {
	SessionID         protocol.SessionID
	TokenHash         []byte
	KeyVersion        int16
	UserAgent         string
	At                time.Time
	ExpiresAt         time.Time
	ReauthenticatedAt *time.Time
}

func (s *NewSession) args(account protocol.AccountID) pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": account, "session": s.SessionID, "token": s.TokenHash, "version": s.KeyVersion, "agent": s.UserAgent,
		"at": s.At, "expires": s.ExpiresAt, "reauthenticated": s.ReauthenticatedAt, "limit": MaxSessions,
	}
}

// The first statement becomes the tokens' accounts, so that the second may read them.
const (
	becomeByTokenSQL = `
	select set_config('turnstone.account_ids',
		coalesce((select array_agg(distinct account_id)::text from sessions where token_hash = any ($1)), ''), true)`
	selectSessionSQL = `
	select a.account_id, a.email, a.display_name, a.disabled_at is not null as disabled,
		s.token_hash, s.session_id, s.created_at, s.last_used_at, s.expires_at, s.rotated_at, s.successor_hash,
		s.successor_used_at, s.revoked_at, s.reauthenticated_at
	from sessions s join accounts a on a.account_id = s.account_id
	where s.token_hash = any ($1)`
)

// FindSession reads what a token stands for, whether it is still good or not; hashes are its HMACs under the live keys.
// protocol.CodeNotFound when there is none. Those who ask at the same time share a trip.
func (db *DB) FindSession(ctx context.Context, hashes [][]byte) (*Session, error) {
	found, err := db.sessions.find(ctx, hashes)
	if err == nil && found == nil {
		err = classify(pgx.ErrNoRows)
	}
	return found, err
}

func (db *DB) findSessions(ctx context.Context, group []*question[[][]byte, *Session]) error {
	var hashes [][]byte
	for _, q := range group {
		hashes = append(hashes, q.asked...)
	}
	var found []*Session
	batch := &pgx.Batch{}
	batch.Queue(keepPlanSQL)
	batch.Queue(becomeByTokenSQL, hashes)
	batch.Queue(selectSessionSQL, hashes).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scanSession)
		return err
	})
	if err := db.Send(ctx, Nobody, batch); err != nil {
		return err
	}
	byHash := make(map[string]*Session, len(found))
	for _, session := range found {
		byHash[string(session.TokenHash)] = session
	}
	for _, q := range group {
		for _, hash := range q.asked {
			if session := byHash[string(hash)]; session != nil {
				own := *session // each asker's to change
				q.answer = &own
				break
			}
		}
	}
	return nil
}

func scanSession(row pgx.CollectableRow) (*Session, error) {
	s := &Session{}
	return s, row.Scan(&s.AccountID, &s.Email, &s.DisplayName, &s.Disabled, &s.TokenHash, &s.SessionID, &s.CreatedAt, &s.LastUsedAt,
		&s.ExpiresAt, &s.RotatedAt, &s.SuccessorHash, &s.SuccessorUsedAt, &s.RevokedAt, &s.ReauthenticatedAt)
}

const (
	touchSessionSQL = `
	update sessions set last_used_at = greatest(last_used_at, @at) where token_hash = @token`
	touchPredecessorSQL = `
	update sessions set successor_used_at = @at
	where account_id = @account and session_id = @session and successor_hash = @token and successor_used_at is null`
)

// TouchSession remembers that a token was used. Its first use starts the end of the token that it replaced.
func (db *DB) TouchSession(ctx context.Context, session *Session, now time.Time) error {
	args := pgx.NamedArgs{"account": session.AccountID, "session": session.SessionID, "token": session.TokenHash, "at": now}
	batch := &pgx.Batch{}
	batch.Queue(touchSessionSQL, args)
	if session.Fresh() {
		batch.Queue(touchPredecessorSQL, args)
	}
	return db.Send(ctx, Nobody, batch)
}

const insertSessionSQL = `
	insert into sessions (token_hash, key_version, session_id, account_id, user_agent, created_at, last_used_at, expires_at,
		rotated_at, reauthenticated_at)
	values (@token, @version, @session, @account, @agent, @at, @at, @expires, @at, @reauthenticated)`

// endOldestSQL ends what an account has beyond the limit, before one more is made.
const endOldestSQL = `
	with live as (
		select session_id from sessions
		where account_id = @account and revoked_at is null and expires_at > @at
		group by session_id order by min(created_at) desc, session_id desc offset @limit - 1
	)
	update sessions s set revoked_at = @at from live
	where s.account_id = @account and s.session_id = live.session_id and s.revoked_at is null
	returning pg_notify('` + sessionChannel + `', s.session_id::text)`

// CreateSession begins a session. The lock of the account keeps simultaneous sign-ins from passing the limit together.
func (db *DB) CreateSession(ctx context.Context, account protocol.AccountID, session *NewSession, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(lockAccountSQL, account)
		batch.Queue(endOldestSQL, session.args(account))
		batch.Queue(insertSessionSQL, session.args(account))
		by.queue(batch, account, EventSignedIn, &session.SessionID)
		by.queue(batch, account, EventSessionCreated, &session.SessionID)
		return tx.Run(ctx, batch)
	})
}

const (
	lockTokenSQL = `select from sessions where token_hash = $1 for update`
	// A statement of its own: the one that waited for the lock does not see what was made meanwhile.
	standingSQL = `
	select s.successor_hash, s.successor_used_at, n.rotated_at as successor_made_at
	from sessions s left join sessions n on n.token_hash = s.successor_hash
	where s.token_hash = $1 and s.revoked_at is null`
	dropUnusedSQL = `delete from sessions where token_hash = $1 and last_used_at < rotated_at`
	// A microsecond before rotated_at: not seen yet.
	insertNextSQL = `
	insert into sessions (token_hash, key_version, session_id, account_id, user_agent, created_at, last_used_at, expires_at,
		rotated_at, reauthenticated_at)
	select @token, @version, session_id, account_id, user_agent, created_at, @at::timestamptz - interval '1 microsecond',
		expires_at, @at, coalesce(@reauthenticated, reauthenticated_at)
	from sessions where token_hash = @old`
	nameSuccessorSQL = `update sessions set successor_hash = @token where token_hash = @old`
)

// RotateSession replaces a token and says whether it did: one whose successor is younger than patience, or was used, is
// left alone, since another request has just done it and its answer carries the new token. The old token stays good until
// a while after the new one was first used.
func (db *DB) RotateSession(ctx context.Context, account protocol.AccountID, old []byte, next *NewSession, patience time.Duration, by Requester) (rotated bool, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		rotated = false
		standing, err := lockToken(ctx, tx, old)
		if err != nil || standing == nil || standing.keeps(next.At, patience) {
			return err
		}
		rotated = true
		args := next.args(account)
		args["old"] = old
		batch := &pgx.Batch{}
		if standing.SuccessorHash != nil {
			batch.Queue(dropUnusedSQL, standing.SuccessorHash)
		}
		batch.Queue(insertNextSQL, args)
		batch.Queue(nameSuccessorSQL, args)
		if next.ReauthenticatedAt != nil {
			by.queue(batch, account, EventReauthenticated, &next.SessionID)
		}
		by.queue(batch, account, EventSessionRotated, &next.SessionID)
		return tx.Run(ctx, batch)
	})
	return rotated && err == nil, err
}

// lockToken reads what became of a token, and keeps others from replacing it; nil when it has ended.
func lockToken(ctx context.Context, tx *Tx, token []byte) (standing *successor, err error) {
	batch := &pgx.Batch{}
	batch.Queue(lockTokenSQL, token)
	batch.Queue(standingSQL, token).Query(collectOne(&standing))
	err = tx.Run(ctx, batch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // ended is no failure
	}
	return standing, err
}

// successor is what stands in the way of replacing a token.
type successor struct {
	SuccessorHash   []byte
	SuccessorUsedAt *time.Time
	SuccessorMadeAt *time.Time
}

// keeps says whether the present successor is left alone. One that nobody used for long was lost on its way.
func (s successor) keeps(now time.Time, patience time.Duration) bool {
	return s.SuccessorUsedAt != nil || s.SuccessorMadeAt != nil && now.Sub(*s.SuccessorMadeAt) < patience
}

// replaceSessionsSQL makes the next token of a session that goes on while all its tokens end; it reads what the session
// began with from its rows, which queueReplaced revokes after it.
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

// queueEnded ends every session of an account.
func queueEnded(batch *pgx.Batch, account protocol.AccountID, now time.Time) {
	batch.Queue(endOthersSQL, endArgs(account, protocol.SessionID{}, now))
}

// queueReplaced ends every session but one, of which only the given token stays. Its streams go on.
func queueReplaced(batch *pgx.Batch, account protocol.AccountID, by *NewSession) {
	args := endArgs(account, by.SessionID, by.At)
	args["token"] = by.TokenHash
	batch.Queue(endOthersSQL, args)
	batch.Queue(endOldTokensSQL, args)
}

// EndSession revokes a session; protocol.CodeNotFound when the account has no such live one. Every node hears of it.
func (db *DB) EndSession(ctx context.Context, account protocol.AccountID, session protocol.SessionID, event SecurityEvent, now time.Time, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		tag, err := tx.Exec(ctx, endSessionSQL, endArgs(account, session, now))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		batch := &pgx.Batch{}
		by.queue(batch, account, event, &session)
		return tx.Run(ctx, batch)
	})
}

// EndOtherSessions revokes every session of the account but one.
func (db *DB) EndOtherSessions(ctx context.Context, account protocol.AccountID, but protocol.SessionID, now time.Time, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(endOthersSQL, endArgs(account, but, now))
		by.queue(batch, account, EventSessionsEnded, &but)
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

// SessionQuery asks for a page of an account's live sessions.
type SessionQuery struct {
	Current   protocol.SessionID // the session that asks
	Now       time.Time
	IdleSince time.Time // a session that was not used since has ended
	After     *SessionPosition
	Limit     int
}

// SessionPosition is a position between two sessions of the list.
type SessionPosition struct {
	LastUsedAt time.Time          `json:"t"`
	SessionID  protocol.SessionID `json:"s"`
}

// ListSessions reads a page of the account's live sessions, the last used first. next is nil at the end.
func (db *DB) ListSessions(ctx context.Context, account protocol.AccountID, query *SessionQuery) (
	page []protocol.Device, next *SessionPosition, err error,
) {
	after := query.After
	if after == nil {
		after = &SessionPosition{LastUsedAt: beforeAll.LastActivityAt, SessionID: protocol.SessionID(beforeAll.ConversationID)}
	}
	args := endArgs(account, query.Current, query.Now)
	args["idle_since"], args["limit"] = query.IdleSince, query.Limit+1
	args["after_time"], args["after"] = after.LastUsedAt, after.SessionID
	page, err = Rows(ctx, db, account, pgx.RowToStructByName[protocol.Device], listSessionsSQL, args)
	if err != nil {
		return nil, nil, err
	}
	page, more, err := cutPage(page, query.Limit)
	if err != nil || !more {
		return page, nil, err
	}
	last := &page[len(page)-1]
	return page, &SessionPosition{LastUsedAt: last.LastUsedAt, SessionID: last.SessionID}, nil
}

const liveSessionsSQL = `
	select distinct s.session_id
	from unnest($1::uuid[], $2::uuid[]) as o (account_id, session_id)
	cross join lateral (
		select session_id, revoked_at, expires_at from sessions where account_id = o.account_id and session_id = o.session_id offset 0) s
	where s.revoked_at is null and s.expires_at > $3`

// LiveSessions tells which of the sessions, given with their accounts, have not ended.
func (db *DB) LiveSessions(ctx context.Context, owners map[protocol.SessionID]protocol.AccountID, now time.Time) ([]protocol.SessionID, error) {
	accounts, sessions := make([]protocol.AccountID, 0, len(owners)), make([]protocol.SessionID, 0, len(owners))
	for session, account := range owners {
		accounts, sessions = append(accounts, account), append(sessions, session)
	}
	return Rows(ctx, db, Nobody, pgx.RowTo[protocol.SessionID], liveSessionsSQL, accounts, sessions, now)
}

// ListenSessions calls heard with every session that any node ends, until ctx ends or the connection breaks. A
// notification may be lost, so nobody may rely on it alone.
func (db *DB) ListenSessions(ctx context.Context, heard func(protocol.SessionID)) error {
	conn, err := pgx.ConnectConfig(ctx, db.app.Config().ConnConfig)
	if err != nil {
		return unavailable(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		_ = conn.Close(closing) // nothing is owed to its end
	}()
	if _, err := conn.Exec(ctx, "listen "+sessionChannel); err != nil {
		return unavailable(err)
	}
	for {
		note, err := conn.WaitForNotification(ctx)
		if err != nil {
			return unavailable(err)
		}
		if id, err := uuid.Parse(note.Payload); err == nil {
			heard(protocol.SessionID(id))
		}
	}
}
