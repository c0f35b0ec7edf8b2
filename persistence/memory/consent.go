package memory

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store stores consents and location contexts. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

const consentsSQL = `select source, granted, precise, changed_at from memory_consents where account_id = $1`

// Consents returns the consent of an account to every source, in the order of protocol.MemorySources.
func (s *Store) Consents(ctx context.Context, account protocol.AccountID) ([]protocol.MemoryConsent, error) {
	stored, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.MemoryConsent], consentsSQL, account)
	if err != nil {
		return nil, fmt.Errorf("reading consents: %w", err)
	}
	all := make([]protocol.MemoryConsent, 0, len(protocol.MemorySources))
	for _, source := range protocol.MemorySources {
		all = append(all, consentTo(source, stored))
	}
	return all, nil
}

// consentTo returns the stored consent to a source; by default, it is not granted.
func consentTo(source protocol.MemorySource, stored []protocol.MemoryConsent) protocol.MemoryConsent {
	for _, c := range stored {
		if c.Source == source {
			return c
		}
	}
	return protocol.MemoryConsent{Source: source}
}

// GrantedSQL selects the sources to which the account in the expression consents, as an array.
func GrantedSQL(account string) string {
	return `array(select source from memory_consents where account_id = ` + account + ` and granted)`
}

var grantedSQL = `select ` + GrantedSQL("$1")

// Granted returns the sources to which an account consents.
func (s *Store) Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error) {
	granted, err := pg.Row(ctx, s.db, account, pgx.RowTo[[]protocol.MemorySource], grantedSQL, account)
	if err != nil {
		return nil, fmt.Errorf("reading consents: %w", err)
	}
	return granted, nil
}

const (
	// A revocation of what was never granted stores nothing.
	putConsentSQL = `
	insert into memory_consents as m (account_id, source, granted, precise)
	select @account, @source, @granted, @precise
	where @granted or exists (select from memory_consents where account_id = @account and source = @source)
	on conflict (account_id, source) do update set granted = excluded.granted, precise = excluded.precise, changed_at = now()
	where (m.granted, m.precise) is distinct from (excluded.granted, excluded.precise)`
	consentSQL = consentsSQL + ` and source = $2`
)

// SetConsent grants or revokes the consent to a source. A repetition of the stored consent changes nothing. With the consent to
// the location, every location context ends; without the consent to the precise one, those that are stored are rounded.
func (s *Store) SetConsent(ctx context.Context, account protocol.AccountID, consent protocol.MemoryConsent) (stored protocol.MemoryConsent, err error) {
	args := pgx.NamedArgs{"account": account, "source": consent.Source, "granted": consent.Granted, "precise": consent.Precise}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(putConsentSQL, args)
		if consent.Source == protocol.SourceLocation {
			// The first statement waits for the contexts that are being stored; see PutLocation. These see them.
			batch.Queue(forgetLocationsSQL, args)
			batch.Queue(roundLocationsSQL, args)
		}
		batch.Queue(consentSQL, account, consent.Source).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[protocol.MemoryConsent])
			stored = consentTo(consent.Source, found)
			return err
		})
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("storing a consent: %w", err)
		}
		return nil
	})
	return stored, err
}
