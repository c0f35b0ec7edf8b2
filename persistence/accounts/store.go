package accounts

import (
	"context"

	"turnstone/persistence/mails"
	"turnstone/persistence/pg"
)

// Store stores accounts with their credentials, sessions and settings. Its methods may be called from any goroutine.
type Store struct {
	db       *pg.DB
	outbox   *mails.Outbox
	sessions *pg.Lookups[[][]byte, *Session] // every request needs one
}

// New returns a store without state of its own in memory.
func New(db *pg.DB, outbox *mails.Outbox) *Store {
	s := &Store{db: db, outbox: outbox}
	s.sessions = pg.NewLookups(s.findSessions)
	return s
}

// A revoked session stays until its absolute end: a token that is presented after it was revoked indicates theft.
const (
	expireSessionsSQL = `
	delete from sessions s using (select token_hash from sessions where expires_at < now() limit $1) x where s.token_hash = x.token_hash`
	expireFlowsSQL = `
	delete from oidc_flows f using (select state_hash from oidc_flows where expires_at < now() limit $1) x where f.state_hash = x.state_hash`
	expirePasskeyFlowsSQL = `
	delete from passkey_flows f using (select challenge_hash from passkey_flows where expires_at < now() limit $1) x where f.challenge_hash = x.challenge_hash`
)

// Expire deletes expired sessions, and expired sign-ins with a provider or a passkey.
func (s *Store) Expire(ctx context.Context) error {
	return s.db.DeleteExpired(ctx, expireSessionsSQL, expireFlowsSQL, expirePasskeyFlowsSQL)
}
