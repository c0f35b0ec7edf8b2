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
	login := loginOf(&config)
	log := newLogger(p.stderr, config.Service.LogLevel, true)
	err = persistence.Migrate(ctx, config.Stores.MigrateDatabaseURL, persistence.MigrateOptions{Login: login, Logger: log})
	if err != nil {
		printRemedies(p.stdout, err)
		return err
	}
	if login == "" {
		fmt.Fprintln(p.stdout, "No login role was granted anything: DATABASE_URL names none. Set it and run migrate again.")
	}
	_, err = fmt.Fprintf(p.stdout, "The schema has version %d.\n", persistence.SchemaVersion())
	return err
}

// loginOf is the role that DATABASE_URL names; empty if it names none.
func loginOf(config *Config) string {
	address, err := url.Parse(config.Stores.DatabaseURL)
	if err != nil || address.User == nil {
		return ""
	}
	return address.User.Username()
}
