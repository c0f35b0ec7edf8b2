package projects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const selectSettingsSQL = `
	select settings, settings_version from projects where account_id = @account and project_id = @project`

// Settings returns the settings of a project.
func (s *Store) Settings(ctx context.Context, account protocol.AccountID, project protocol.ProjectID) (*protocol.ProjectSettings, error) {
	return pg.Row(ctx, s.db, account, scanSettings, selectSettingsSQL, pgx.NamedArgs{"account": account, "project": project})
}

// scanSettings decodes stored settings over the defaults, so that a setting that was added later has its default.
func scanSettings(row pgx.CollectableRow) (*protocol.ProjectSettings, error) {
	settings := storedSettings{ProjectSettings: protocol.DefaultProjectSettings()}
	var stored []byte
	if err := row.Scan(&stored, &settings.Version); err != nil {
		return nil, err
	}
	version := settings.Version
	if err := json.Unmarshal(stored, &settings); err != nil {
		return nil, err
	}
	settings.ProjectSettings.Tools, settings.Version = settings.Tools.Choice(), version
	return settings.ProjectSettings, nil
}

// storedSettings is the stored form of settings. Tools have the form that nodes of earlier versions read, too.
type storedSettings struct {
	*protocol.ProjectSettings
	Tools protocol.ToolSwitches `json:"tools"`
}

const putSettingsSQL = `
	update projects set settings = @settings, settings_version = settings_version + 1, updated_at = now()
	where account_id = @account and project_id = @project`

// PutSettings replaces the settings of an active project. The version of change is that of the settings.
func (s *Store) PutSettings(ctx context.Context, account protocol.AccountID, change *Change, settings *protocol.ProjectSettings) (stored *protocol.ProjectSettings, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		project, err := Lock(ctx, tx, account, change.ProjectID)
		if err != nil {
			return err
		}
		args := pgx.NamedArgs{"account": account, "project": change.ProjectID}
		rows, err := tx.Query(ctx, selectSettingsSQL, args)
		if err != nil {
			return fmt.Errorf("reading the settings of a project: %w", err)
		}
		if stored, err = pgx.CollectExactlyOneRow(rows, scanSettings); err != nil {
			return err
		}
		same := sameSettings(stored, settings)
		if err := change.checkVersion(stored.Version, stored); err != nil || same {
			return err
		}
		if err := refuse(project); err != nil {
			return err
		}
		next := *settings
		next.Version = stored.Version + 1
		if args["settings"], err = pg.JSONText(storedSettings{&next, next.Tools.Switches()}); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(putSettingsSQL, args)
		Work{Kind: protocol.WorkSettingsChanged, SessionID: change.SessionID, Version: &next.Version}.Queue(batch, account, change.ProjectID)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("changing the settings of a project: %w", err)
		}
		stored = &next
		return nil
	})
	return stored, err
}

func sameSettings(a, b *protocol.ProjectSettings) bool {
	sameProfile := a.DefaultProfile == b.DefaultProfile ||
		a.DefaultProfile != nil && b.DefaultProfile != nil && *a.DefaultProfile == *b.DefaultProfile
	return sameProfile && a.MemoryScope == b.MemoryScope && a.ApprovalPolicy == b.ApprovalPolicy && maps.Equal(a.Tools.Switches(), b.Tools.Switches())
}
