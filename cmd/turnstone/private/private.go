// Package private runs the private Postgres and Redis of an installation that names none. It only chooses their settings and
// folders; package embedded runs the programs. An address that the configuration names is never replaced.
package private

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence/pg"
	"turnstone/providers/embedded"
)

// The database and the roles of a private Postgres.
const (
	databaseName = "turnstone"
	ownerRole    = "turnstone_owner"
	loginRole    = "turnstone"
)

// restartPause is the pause before a private server that ended again is restarted. It prevents a tight restart loop.
const restartPause = time.Second

// Servers are the private Postgres and Redis of dev. Each one runs only if the configuration does not name a
// server.
type Servers struct {
	Postgres *embedded.Postgres // nil: the configuration names one
	redis    *embedded.Redis
	log      *zap.Logger

	cancel context.CancelFunc
	group  errgroup.Group
}

// Start starts the servers that the configuration does not name and sets their URLs in it.
func Start(ctx context.Context, config *settings.Config, in *folder.Folder, log *zap.Logger) (_ *Servers, err error) {
	s := &Servers{log: log.Named("private")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	group, starting := errgroup.WithContext(ctx)
	if config.Stores.DatabaseURL == "" {
		group.Go(func() (err error) {
			s.Postgres, err = startDatabase(starting, in.Join("postgres"), log)
			return err
		})
	}
	if config.Stores.RedisURL == "" {
		group.Go(func() (err error) {
			s.redis, err = embedded.StartRedis(starting, embedded.RedisOptions{DataDir: in.Join("redis"), Logger: log})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if s.Postgres != nil {
		config.Stores.DatabaseURL = s.Postgres.DSN(loginRole, databaseName)
	}
	if s.redis != nil {
		config.Stores.RedisURL = s.redis.URL()
	}
	s.watch()
	return s, nil
}

// startDatabase starts a Postgres with the roles and the schema of the service.
func startDatabase(ctx context.Context, dir string, log *zap.Logger) (*embedded.Postgres, error) {
	server, err := embedded.StartPostgres(ctx, embedded.PostgresOptions{DataDir: dir, Logger: log})
	if err != nil {
		return nil, err
	}
	err = pg.Provision(ctx, server.DSN(embedded.Superuser, "postgres"), databaseName, ownerRole, loginRole)
	if err == nil {
		err = pg.Migrate(ctx, server.DSN(ownerRole, databaseName),
			pg.MigrateOptions{Login: loginRole, Logger: log})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("private Postgres: %w", err), server.Close(context.WithoutCancel(ctx)))
	}
	return server, nil
}

// privateServer is implemented by both servers.
type privateServer interface {
	Start(ctx context.Context) error
	Done() <-chan struct{}
}

// watch restarts a private server that ends by itself. The service tolerates such an interruption.
func (s *Servers) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.Postgres != nil {
		s.group.Go(func() error { return s.restartLoop(ctx, "Postgres", s.Postgres) })
	}
	if s.redis != nil {
		s.group.Go(func() error { return s.restartLoop(ctx, "Redis", s.redis) })
	}
}

func (s *Servers) restartLoop(ctx context.Context, name string, server privateServer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-server.Done():
		}
		s.log.Warn("a private server ended unexpectedly and is restarted", zap.String("server", name))
		if err := server.Start(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("a private server could not be restarted", zap.String("server", name), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartPause):
		}
	}
}

// Stop stops both servers. The caller ensures that nothing uses them any more.
func (s *Servers) Stop(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
	}
	err := s.group.Wait()
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close(ctx))
	}
	if s.Postgres != nil {
		err = errors.Join(err, s.Postgres.Close(ctx))
	}
	return err
}
