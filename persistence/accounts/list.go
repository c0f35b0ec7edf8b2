package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Listed is an account as operators see it in a list.
type Listed struct {
	AccountID    protocol.AccountID    `json:"account_id"`
	Email        string                `json:"email"` // empty: the account is being erased
	State        protocol.AccountState `json:"state" db:"-"`
	CreatedAt    time.Time             `json:"created_at"`
	LastActiveAt *time.Time            `json:"last_active_at"` // of its sessions that are still stored; null: none
	DisabledAt   *time.Time            `json:"disabled_at"`
	ErasingAt    *time.Time            `json:"-"`
}

// stateOf returns the state of an account. An account that is being erased is disabled, too.
func stateOf(disabled, erasing *time.Time) protocol.AccountState {
	switch {
	case erasing != nil:
		return protocol.AccountErasing
	case disabled != nil:
		return protocol.AccountDisabled
	default:
		return protocol.AccountActive
	}
}

const listAccountsSQL = `
	select account_id, email, created_at, last_active_at, disabled_at, erasing_at from list_accounts($1, $2)`

// ListAccounts returns the accounts after one of them, in the order of their identifiers and so of their creation, for
// operators. The zero account is before all.
func (s *Store) ListAccounts(ctx context.Context, after protocol.AccountID, limit int) ([]Listed, error) {
	rows, err := s.db.Engine.Query(ctx, listAccountsSQL, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing accounts: %w", pg.Classify(err))
	}
	page, err := pgx.CollectRows(rows, pgx.RowToStructByName[Listed])
	if err != nil {
		return nil, fmt.Errorf("listing accounts: %w", pg.Classify(err))
	}
	for i := range page {
		page[i].State = stateOf(page[i].DisabledAt, page[i].ErasingAt)
	}
	return page, nil
}

// Profile is an account as operators see it: its state and how it signs in.
type Profile struct {
	Listed
	HasPassword bool       `json:"has_password"`
	Passkeys    int        `json:"passkeys"`
	Identities  []Provider `json:"identities" db:"-"`
}

// Provider is an identity provider through which an account signs in.
type Provider struct {
	Issuer    string    `json:"issuer"`
	Subject   string    `json:"subject"`
	CreatedAt time.Time `json:"created_at"`
}

const (
	profileSQL = `
	select a.account_id, a.email, a.created_at, a.disabled_at, a.erasing_at, a.password_hash is not null as has_password,
		(select count(*) from passkeys p where p.account_id = a.account_id) as passkeys,
		(select max(s.last_used_at) from sessions s where s.account_id = a.account_id) as last_active_at
	from accounts a where a.account_id = $1`
	identitiesSQL = `
	select issuer, subject, created_at from account_identities where account_id = $1 order by created_at, issuer, subject`
)

// Profile returns an account, for operators.
func (s *Store) Profile(ctx context.Context, account protocol.AccountID) (*Profile, error) {
	var found *Profile
	var identities []Provider
	batch := &pgx.Batch{}
	batch.Queue(profileSQL, account).Query(collectOne(&found))
	batch.Queue(identitiesSQL, account).Query(func(rows pgx.Rows) (err error) {
		identities, err = pgx.CollectRows(rows, pgx.RowToStructByName[Provider])
		return err
	})
	if err := s.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("reading an account: %w", err)
	}
	found.State, found.Identities = stateOf(found.DisabledAt, found.ErasingAt), identities
	return found, nil
}
