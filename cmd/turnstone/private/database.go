package private

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/settings"
	"turnstone/providers/embedded"
)

// DatabaseURL returns the configured URL or, if there is none, that of the data folder's private Postgres: the server
// of a running dev, or one that is started for this command. done releases what was started.
func DatabaseURL(ctx context.Context, config *settings.Config) (url string, done func(), err error) {
	if config.Stores.DatabaseURL != "" {
		return config.Stores.DatabaseURL, func() {}, nil
	}
	locked, err := folder.Open(config.Service.DataDir)
	ofDev := errors.Is(err, embedded.ErrLocked)
	if err != nil && !ofDev {
		return "", nil, err
	}
	server, err := startDatabase(ctx, filepath.Join(config.Service.DataDir, "postgres"), zap.NewNop())
	done = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settings.StopTimeout)
		defer cancel()
		if server != nil {
			_ = server.Close(ctx) // the server ends with this process in any case
		}
		if locked != nil {
			_ = locked.Close() // the lock ends with this process, too
		}
	}
	switch {
	case err != nil:
	case ofDev && server.Owned():
		err = errors.New("the turnstone that uses the data folder has its database elsewhere")
	default:
		return server.DSN(loginRole, databaseName), done, nil
	}
	done()
	return "", nil, fmt.Errorf("DATABASE_URL is not set: %w", err)
}
