package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"turnstone/persistence"
	"turnstone/providers/embedded"
)

// The names of a private Postgres.
const (
	privateDatabase = "turnstone"
	privateOwner    = "turnstone_owner"
	privateLogin    = "turnstone"
)

// restartPause keeps a private server that does not stay up from being restarted in a circle.
const restartPause = time.Second

// privateServers are the Postgres and the Redis of dev, each only where the configuration names none.
type privateServers struct {
	postgres *embedded.Postgres
	redis    *embedded.Redis
	log      *zap.Logger

	cancel context.CancelFunc
	group  errgroup.Group
}

// startPrivateServers starts what the configuration does not name and puts its address there.
func startPrivateServers(ctx context.Context, config *Config, folder *dataFolder, log *zap.Logger) (_ *privateServers, err error) {
	s := &privateServers{log: log.Named("private")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
	}()
	group, starting := errgroup.WithContext(ctx)
	if config.Stores.DatabaseURL == "" {
		group.Go(func() (err error) {
			s.postgres, err = startDatabase(starting, folder.join("postgres"), log)
			return err
		})
	}
	if config.Stores.RedisURL == "" {
		group.Go(func() (err error) {
			s.redis, err = embedded.StartRedis(starting, embedded.RedisOptions{DataDir: folder.join("redis"), Logger: log})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if s.postgres != nil {
		config.Stores.DatabaseURL = s.postgres.DSN(privateLogin, privateDatabase)
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
	err = persistence.Provision(ctx, server.DSN(embedded.Superuser, "postgres"), privateDatabase, privateOwner, privateLogin)
	if err == nil {
		err = persistence.Migrate(ctx, server.DSN(privateOwner, privateDatabase),
			persistence.MigrateOptions{Login: privateLogin, Logger: log})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("private Postgres: %w", err), server.Close(context.WithoutCancel(ctx)))
	}
	return server, nil
}

// privateServer is what both have.
type privateServer interface {
	Start(ctx context.Context) error
	Done() <-chan struct{}
}

// watch starts a server again that died by itself: a service rides that out.
func (s *privateServers) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.postgres != nil {
		s.group.Go(func() error { return s.keepUp(ctx, "Postgres", s.postgres) })
	}
	if s.redis != nil {
		s.group.Go(func() error { return s.keepUp(ctx, "Redis", s.redis) })
	}
}

func (s *privateServers) keepUp(ctx context.Context, name string, server privateServer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-server.Done():
		}
		s.log.Warn("a private server died and is started again", zap.String("server", name))
		if err := server.Start(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("a private server does not start", zap.String("server", name), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartPause):
		}
	}
}

// stop ends both. Nothing may use them any more.
func (s *privateServers) stop(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
	}
	err := s.group.Wait()
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close(ctx))
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Close(ctx))
	}
	return err
}
