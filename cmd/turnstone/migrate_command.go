package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"turnstone/persistence"
)

type migrateCommand struct{}

// Run needs the owner's address; the service's own role, named by DATABASE_URL, is granted what it needs.
func (migrateCommand) Run(ctx context.Context, p *program) error {
	config, _, err := loadConfig(p.environment)
	if err != nil {
		return err
	}
	if err := config.check(); err != nil {
		return err
	}
	if config.Stores.MigrateDatabaseURL == "" {
		return errors.New("TURNSTONE_MIGRATE_DATABASE_URL is not set: migrate works as the owner of the database (dev migrates its own)")
	}
	login := ""
	if address, err := url.Parse(config.Stores.DatabaseURL); err == nil && address.User != nil {
		login = address.User.Username()
	}
	log := newLogger(p.stderr, config.Service.LogLevel, true)
	err = persistence.Migrate(ctx, config.Stores.MigrateDatabaseURL, persistence.MigrateOptions{Login: login, Logger: log})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "The schema has version %d.\n", persistence.SchemaVersion())
	return err
}
