package main

import (
	"context"
	"errors"
	"fmt"

	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/doctor"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/telemetry"
	"turnstone/persistence/pg"
)

type migrateCommand struct{}

// Run migrates the schema as its owner and grants the service's own role, which DATABASE_URL names, the privileges that
// it needs.
func (migrateCommand) Run(ctx context.Context, p *program) error {
	config, _, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return err
	}
	if config.Stores.MigrateDatabaseURL == "" {
		return errors.New("TURNSTONE_MIGRATE_DATABASE_URL is not set: migrate connects as the owner of the schema (dev migrates its own database)")
	}
	login := connect.Login(&config)
	log := telemetry.NewLogger(p.stderr, config.Service.LogLevel, true)
	err = pg.Migrate(ctx, config.Stores.MigrateDatabaseURL, pg.MigrateOptions{Login: login, Logger: log})
	if err != nil {
		doctor.PrintRemedies(p.stdout, err)
		return err
	}
	if login == "" {
		fmt.Fprintln(p.stdout, "No login role was granted privileges, because DATABASE_URL names none. Set it and run migrate again.")
	}
	_, err = fmt.Fprintf(p.stdout, "The schema is ready (version %d).\n", pg.SchemaVersion())
	return err
}
