package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
	"turnstone/providers/embedded"
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
	url, done, err := p.databaseURL(ctx, &config)
	if err != nil {
		return err
	}
	defer done()
	db, err := persistence.Open(ctx, persistence.Config{URL: url, Logger: newLogger(p.stderr, config.Service.LogLevel, true)})
	if err != nil {
		return err
	}
	defer db.Close()
	return work(db)
}

// databaseURL returns the configured URL or, if there is none, that of the data folder's private Postgres: the server
// of a running dev, or one that is started for this command. done releases what was started.
func (p *program) databaseURL(ctx context.Context, config *settings.Config) (url string, done func(), err error) {
	if config.Stores.DatabaseURL != "" {
		return config.Stores.DatabaseURL, func() {}, nil
	}
	folder, err := openFolder(config.Service.DataDir)
	ofDev := errors.Is(err, embedded.ErrLocked)
	if err != nil && !ofDev {
		return "", nil, err
	}
	server, err := startDatabase(ctx, filepath.Join(config.Service.DataDir, "postgres"), zap.NewNop())
	done = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server != nil {
			_ = server.Close(ctx) // the server ends with this process in any case
		}
		if folder != nil {
			_ = folder.close() // the lock ends with this process, too
		}
	}
	switch {
	case err != nil:
	case ofDev && server.Owned():
		err = errors.New("the turnstone that uses the data folder has its database elsewhere")
	default:
		return server.DSN(privateLogin, privateDatabase), done, nil
	}
	done()
	return "", nil, fmt.Errorf("DATABASE_URL is not set: %w", err)
}
