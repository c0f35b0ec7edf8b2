package accounts

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// DefaultSettings returns the settings of an account that has not stored any. They have version 0.
func DefaultSettings() *protocol.Settings {
	return &protocol.Settings{
		Language: "en", Theme: "system", SendKey: "enter", BusyAction: "queue",
		SteeringDelivery: protocol.DeliverNextStep, DefaultProfile: protocol.ProfileAuto,
	}
}

const selectSettingsSQL = `select settings, version from account_settings where account_id = $1`

// Settings returns an account's preferences.
func (s *Store) Settings(ctx context.Context, account protocol.AccountID) (*protocol.Settings, error) {
	found, err := pg.Rows(ctx, s.db, account, scanSettings, selectSettingsSQL, account)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return DefaultSettings(), nil
	}
	return found[0], nil
}

// scanSettings decodes stored settings over the defaults, so that a preference that was added later has its default.
func scanSettings(row pgx.CollectableRow) (*protocol.Settings, error) {
	settings := DefaultSettings()
	var stored []byte
	var version int64
	if err := row.Scan(&stored, &version); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stored, settings); err != nil {
		return nil, err
	}
	settings.Version = version
	return settings, nil
}

const (
	lockSettingsSQL = `select settings, version from account_settings where account_id = $1 for update`
	putSettingsSQL  = `
	insert into account_settings (account_id, settings, version) values (@account, @settings, 1)
	on conflict (account_id) do update
	set settings = excluded.settings, version = account_settings.version + 1, updated_at = now()
	returning settings, version`
)

// PutSettings replaces an account's preferences. version is the version that they are based on; nil: the last writer
// wins. A stale version is protocol.CodeStaleVersion.
func (s *Store) PutSettings(ctx context.Context, account protocol.AccountID, settings *protocol.Settings, version *int64) (stored *protocol.Settings, err error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		// There may be no settings row to lock yet, so the account's row is locked.
		if _, err := tx.Exec(ctx, LockAccountSQL, account); err != nil {
			return err
		}
		if err := checkSettingsVersion(ctx, tx, account, version); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, putSettingsSQL, pgx.NamedArgs{"account": account, "settings": text})
		if err != nil {
			return err
		}
		stored, err = pgx.CollectExactlyOneRow(rows, scanSettings)
		return err
	})
	return stored, err
}

func checkSettingsVersion(ctx context.Context, tx *pg.Tx, account protocol.AccountID, version *int64) error {
	if version == nil {
		return nil
	}
	rows, err := tx.Query(ctx, lockSettingsSQL, account)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, scanSettings)
	if err != nil {
		return err
	}
	current := DefaultSettings()
	if len(found) > 0 {
		current = found[0]
	}
	if current.Version != *version {
		return protocol.Conflict(protocol.CodeStaleVersion, current, "The settings have changed since that version.")
	}
	return nil
}
