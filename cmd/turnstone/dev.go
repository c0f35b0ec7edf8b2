package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"turnstone/protocol"
)

const (
	demoEmail = "demo@turnstone.localhost"
	demoName  = "Demo"
	// devGrace: who pressed Ctrl-C waits. What lives is handed to the next start.
	devGrace = 2 * time.Second
)

type devCommand struct{}

// Run brings up everything that the environment does not name, tells where it is, and takes it down again.
func (devCommand) Run(ctx context.Context, p *program) (err error) {
	config, warnings, err := loadConfig(p.environment)
	if err != nil {
		return err
	}
	if err := config.check(); err != nil {
		return err
	}
	if config.Service.Environment == "" {
		config.Service.Environment = "development"
	}
	if p.environment["TURNSTONE_LOG_LEVEL"] == "" {
		config.Service.LogLevel = zapcore.WarnLevel // what is printed should be what a newcomer needs
	}
	log := newLogger(p.stderr, config.Service.LogLevel, true)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	folder, err := openFolder(config.Service.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.close()) }()
	if err := keepDevSecret(&config, folder); err != nil {
		return err
	}
	sockets, err := openListeners(ctx, &config)
	if err != nil {
		return err
	}
	private, err := startPrivateServers(ctx, &config, folder, log)
	if err != nil {
		return errors.Join(err, sockets.close(ctx))
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, private.stop(stopping))
		fmt.Fprintln(p.stdout, "Turnstone has stopped.")
	}()
	if private.postgres != nil {
		folder.database = private.postgres.Folder()
	}
	s, err := startService(ctx, &config, folder, log)
	if err != nil {
		return errors.Join(err, sockets.close(ctx))
	}
	password, err := s.seed(ctx, folder)
	if err != nil {
		return errors.Join(err, s.untilDone(ended(ctx), 0), sockets.close(ctx))
	}
	s.serve(sockets)
	p.welcome(&config, password)
	grace := devGrace
	if p.environment["TURNSTONE_DRAIN_GRACE"] != "" {
		grace = time.Duration(config.Service.DrainGrace)
	}
	return s.untilDone(ctx, grace)
}

// ended is a context that is over: the service stops at once.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func keepDevSecret(config *Config, folder *dataFolder) error {
	if len(config.Access.Secret) > 0 {
		return nil
	}
	value, _, err := keptSecret(folder.join(secretFile), secretBytes)
	if err != nil {
		return fmt.Errorf("the secret of the data folder: %w", err)
	}
	return config.Access.Secret.UnmarshalText([]byte(value))
}

// seed makes the account of a first look, with something to look at. Its password is made once and kept in the data
// folder.
func (s *service) seed(ctx context.Context, folder *dataFolder) (string, error) {
	password, made, err := keptSecret(folder.join(passwordFile), passwordBytes)
	if err != nil {
		return "", fmt.Errorf("the password of the seeded account: %w", err)
	}
	isNew := made
	var account protocol.AccountID
	err = s.outwait(ctx, "the account is not seeded yet", func(ctx context.Context) (err error) {
		account, made, err = seedAccount(ctx, s.db, demoEmail, demoName, password, isNew)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("seeding an account: %w", err)
	}
	if made && s.config.Model.Provider == "scripted" { // a model that costs money is not asked for a demonstration
		if err := s.demonstrate(ctx, account); err != nil {
			return "", err
		}
	}
	return password, nil
}

func (p *program) welcome(config *Config, password string) {
	fmt.Fprintf(p.stdout, `
Turnstone is up.

  open         %s   the web app, and the API
  operations   http://%s  (/ready, /metrics, /debug/pprof)
  sign in as   %s
  password     %s
  model        %s
  data         %s

Ctrl-C stops all of it; what is in the data folder stays.
`, config.Service.BaseURL, config.Service.InternalListen, demoEmail, password, config.Model.Provider, config.Service.DataDir)
}
