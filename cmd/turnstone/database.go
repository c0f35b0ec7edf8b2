package main

import (
	"context"

	"turnstone/cmd/turnstone/private"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/telemetry"
	"turnstone/persistence"
)

// withDatabase opens the configured Postgres, or the private one of the data folder, for the duration of one command.
func (p *program) withDatabase(ctx context.Context, work func(*persistence.Stores) error) error {
	config, _, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return err
	}
	url, done, err := private.DatabaseURL(ctx, &config)
	if err != nil {
		return err
	}
	defer done()
	db, err := persistence.Open(ctx, persistence.Config{URL: url, Logger: telemetry.NewLogger(p.stderr, config.Service.LogLevel, true)})
	if err != nil {
		return err
	}
	defer db.Close()
	return work(db)
}
