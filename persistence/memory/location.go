package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// The coarse form of coordinates and of their accuracy. Rounding to 0.01° moves a place by up to 790 m.
func coarse(degrees string) string { return `round((` + degrees + `)::numeric, 2)::float8` }

const coarseAccuracy = `ceil((%[1]s + 790) / 1000) * 1000`

var (
	putLocationSQL = `
	insert into location_contexts as l (account_id, conversation_id, latitude, longitude, accuracy_m, place, precise, expires_at)
	select @account, @conversation, ` + either("@latitude::float8", coarse("@latitude::float8")) + `, ` + either("@longitude::float8", coarse("@longitude::float8")) + `,
		` + either("@accuracy::float8", fmt.Sprintf(coarseAccuracy, "@accuracy::float8")) + `,
		` + either("@place::text", "@coarse_place::text") + `, @precise, @expires
	on conflict (account_id, conversation_id) do update
	set latitude = excluded.latitude, longitude = excluded.longitude, accuracy_m = excluded.accuracy_m, place = excluded.place,
		precise = excluded.precise, expires_at = excluded.expires_at, updated_at = now()
	returning ` + locationColumns

	// The name of a place may be as precise as its coordinates.
	roundLocationsSQL = `
	update location_contexts
	set latitude = ` + coarse("latitude") + `, longitude = ` + coarse("longitude") + `, accuracy_m = ` + fmt.Sprintf(coarseAccuracy, "accuracy_m") + `,
		place = null, precise = false, updated_at = now()
	where account_id = @account and not @precise::bool and precise`
)

func either(precise, rounded string) string {
	return `case when @precise::bool then ` + precise + ` else ` + rounded + ` end`
}

const (
	locationColumns    = `l.latitude, l.longitude, l.accuracy_m, l.place, l.precise, l.expires_at, l.updated_at`
	forgetLocationsSQL = `delete from location_contexts where account_id = @account and not @granted::bool`

	// The lock lets a revocation of the consent wait, so that it deletes what is stored now.
	lockConsentSQL = `
	select source, granted, precise, changed_at from memory_consents where account_id = @account and source = 'location' for share`
	// A deletion of the conversation waits for the lock, so its purge finds the location, or it has happened.
	lockConversationSQL = `select count(*) > 0
	from (select from conversations c where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + ` for share) c`
)

// PutLocation stores where the user of a conversation is, rounded unless the user consents to the precise location. The error
// is protocol.CodeConsentRequired, with the consent, without a consent.
func (s *Store) PutLocation(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, at *protocol.LocationContext) (stored *protocol.LocationContext, err error) {
	args := pgx.NamedArgs{
		"account": account, "conversation": conversation, "latitude": at.Latitude, "longitude": at.Longitude,
		"accuracy": at.AccuracyM, "place": at.Place, "coarse_place": at.Place, "expires": at.ExpiresAt,
	}
	if at.Place != nil && strings.IndexFunc(*at.Place, unicode.IsDigit) >= 0 { // it may be an address
		args["coarse_place"] = nil
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		consent, err := lockConsent(ctx, tx, args)
		if err != nil {
			return err
		}
		args["precise"] = consent.Precise
		rows, err := tx.Query(ctx, putLocationSQL, args)
		if err != nil {
			return err
		}
		stored, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.LocationContext])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("storing a location: %w", err)
	}
	return stored, nil
}

// lockConsent locks the conversation and the consent to the location. It returns an error if there is none, or no such conversation.
func lockConsent(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (consent protocol.MemoryConsent, err error) {
	var exists bool
	batch := &pgx.Batch{}
	batch.Queue(lockConversationSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&exists) })
	batch.Queue(lockConsentSQL, args).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[protocol.MemoryConsent])
		consent = consentTo(protocol.SourceLocation, found)
		return err
	})
	if err := tx.Run(ctx, batch); err != nil {
		return consent, err
	}
	if !exists {
		return consent, pgx.ErrNoRows
	}
	return consent, required(consent)
}

// required returns an error without a consent.
func required(consent protocol.MemoryConsent) error {
	if consent.Granted {
		return nil
	}
	return protocol.Conflict(protocol.CodeConsentRequired, consent, "You have not allowed the use of your location.")
}

const locationSQL = `
	select coalesce(m.granted, false) as granted, coalesce(m.precise, false), m.changed_at, l.latitude is not null,
		coalesce(l.latitude, 0), coalesce(l.longitude, 0), coalesce(l.accuracy_m, 0), l.place, coalesce(l.precise, false), coalesce(l.expires_at, 'epoch'), coalesce(l.updated_at, 'epoch')
	from conversations c
	left join memory_consents m on m.account_id = c.account_id and m.source = 'location'
	left join location_contexts l on l.account_id = c.account_id and l.conversation_id = c.conversation_id and l.expires_at > now()
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible

// Location returns where the user of a conversation is. The error is protocol.CodeConsentRequired, with the consent, without a
// consent, and protocol.CodeNotFound if no location is stored, or only one that has expired.
func (s *Store) Location(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) (*protocol.LocationContext, error) {
	at, err := pg.Row(ctx, s.db, account, scanLocation, locationSQL, pgx.NamedArgs{"account": account, "conversation": conversation})
	if err != nil {
		return nil, fmt.Errorf("reading a location: %w", err)
	}
	return at, nil
}

func scanLocation(row pgx.CollectableRow) (*protocol.LocationContext, error) {
	consent, at, found := protocol.MemoryConsent{Source: protocol.SourceLocation}, &protocol.LocationContext{}, false
	err := row.Scan(&consent.Granted, &consent.Precise, &consent.ChangedAt, &found, &at.Latitude, &at.Longitude, &at.AccuracyM, &at.Place, &at.Precise, &at.ExpiresAt, &at.UpdatedAt)
	if err = errors.Join(err, required(consent)); err != nil {
		return nil, err
	}
	if !found {
		return nil, protocol.Errorf(protocol.CodeNotFound, "The conversation has no location.")
	}
	return at, nil
}

const deleteLocationSQL = `delete from location_contexts where account_id = @account and conversation_id = @conversation`

// DeleteLocation forgets where the user of a conversation is. It needs no consent, and no location.
func (s *Store) DeleteLocation(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) error {
	args := pgx.NamedArgs{"account": account, "conversation": conversation}
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var exists bool
		batch := &pgx.Batch{}
		batch.Queue(lockConversationSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&exists) })
		batch.Queue(deleteLocationSQL, args)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("deleting a location: %w", err)
		}
		if !exists {
			return pgx.ErrNoRows
		}
		return nil
	})
}

// ExportedLocation is the location context of a conversation in an archive.
type ExportedLocation struct {
	ConversationID protocol.ConversationID `json:"conversation_id"`
	protocol.LocationContext
}

const locationsSQL = `
	select l.conversation_id, ` + locationColumns + `
	from location_contexts l
	join conversations c on c.account_id = l.account_id and c.conversation_id = l.conversation_id
	where l.account_id = @account and l.conversation_id > @after and l.expires_at > now() and ` + conversations.Visible + ` and not c.temporary
	order by l.conversation_id
	limit @limit`

// Locations returns the location contexts of an account after a conversation, for its archive.
func (s *Store) Locations(ctx context.Context, account protocol.AccountID, after protocol.ConversationID, limit int) ([]ExportedLocation, error) {
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[ExportedLocation], locationsSQL, pgx.NamedArgs{"account": account, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("reading locations: %w", err)
	}
	return found, nil
}

const expireLocationsSQL = `
	delete from location_contexts l using (
		select account_id, conversation_id from location_contexts where expires_at < now() order by expires_at limit $1) x
	where l.account_id = x.account_id and l.conversation_id = x.conversation_id`

// Expire deletes the location contexts that have expired.
func (s *Store) Expire(ctx context.Context) error { return s.db.DeleteExpired(ctx, expireLocationsSQL) }
