package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnstone/cmd/turnstone/operate"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/users"
	"turnstone/protocol"
)

const (
	demoEmail = "demo@turnstone.localhost"
	demoName  = "Demo"
	// devGrace is the default drain grace of dev. It is short because the user who pressed Ctrl-C waits for it; turns
	// that are still live are resumed by the next start.
	devGrace = 2 * time.Second
)

type devCommand struct {
	Nodes int `default:"1" help:"Number of nodes. With more than one, each is a process of its own, behind a small load balancer."`
}

// Run starts everything that the environment does not name, prints the addresses, and stops it all when ctx ends.
func (c devCommand) Run(ctx context.Context, p *program) (err error) {
	config, warnings, err := settings.Load(p.environment)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return err
	}
	if err := c.check(&config); err != nil {
		return err
	}
	if config.Service.Environment == "" {
		config.Service.Environment = "development"
	}
	if p.environment["TURNSTONE_LOG_LEVEL"] == "" {
		config.Service.LogLevel = zapcore.WarnLevel // the output should contain only what a newcomer needs
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
	if err := ensureDevSecret(&config, folder); err != nil {
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
	s, err := startService(ctx, &config, folder, p.environment, log)
	if err != nil {
		return errors.Join(err, sockets.close(ctx))
	}
	password, err := s.seed(ctx, folder)
	if err != nil {
		return errors.Join(err, s.waitAndShutDown(cancelledContext(ctx), 0), sockets.close(ctx))
	}
	if c.Nodes > 1 {
		// This node was needed only to seed. The nodes of the cluster adopt the turns of the demonstration.
		if err := s.waitAndShutDown(cancelledContext(ctx), 0); err != nil {
			return errors.Join(err, sockets.close(ctx))
		}
		return p.runDevCluster(ctx, &config, folder, sockets, c.Nodes, password, log)
	}
	s.serve(sockets)
	p.welcome(&config, password)
	return s.waitAndShutDown(ctx, p.devGrace(&config))
}

// check checks what a development cluster needs.
func (c devCommand) check(config *settings.Config) error {
	switch {
	case c.Nodes < 1 || c.Nodes > maxDevNodes:
		return fmt.Errorf("--nodes: %d is not a number from 1 to %d", c.Nodes, maxDevNodes)
	case c.Nodes > 1 && config.Cluster.Listen != "":
		return errors.New("TURNSTONE_CLUSTER_LISTEN is set: dev --nodes sets the addresses of its nodes itself")
	case c.Nodes > 1 && config.Service.TLSCert != "":
		return errors.New("TURNSTONE_TLS_CERT_FILE is set: the balancer of dev --nodes serves plain HTTP")
	}
	return nil
}

// runDevCluster runs the nodes of a development cluster behind the public address until ctx ends.
func (p *program) runDevCluster(
	ctx context.Context, config *settings.Config, folder *dataFolder, sockets listeners, count int, password string, log *zap.Logger,
) error {
	if sockets.content != nil { // the first node listens there, and on the internal address
		if err := sockets.content.close(ctx); err != nil {
			return err
		}
	}
	if err := sockets.internal.close(ctx); err != nil {
		return errors.Join(err, sockets.public.close(ctx))
	}
	nodes, err := newDevCluster(p, config, folder, count, log)
	if err != nil {
		return errors.Join(err, sockets.public.close(ctx))
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sockets.public.run(nodes.balancer, log, config.Limits.MaxConnections, func(err error) { fail(err) })
	nodes.run(ctx, func() {
		p.welcome(config, password)
		nodes.welcome()
	})
	err = sockets.public.close(context.WithoutCancel(ctx))
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// devGrace returns the drain grace of dev.
func (p *program) devGrace(config *settings.Config) time.Duration {
	if p.environment["TURNSTONE_DRAIN_GRACE"] != "" {
		return time.Duration(config.Service.DrainGrace)
	}
	return devGrace
}

// cancelledContext returns a context that is already cancelled, so that the service stops at once.
func cancelledContext(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func ensureDevSecret(config *settings.Config, folder *dataFolder) error {
	if len(config.Access.Secret) > 0 {
		return nil
	}
	value, _, err := loadOrCreateSecret(folder.join(settings.GeneratedSecret), secretBytes)
	if err != nil {
		return fmt.Errorf("secret of the data folder: %w", err)
	}
	return config.Access.Secret.UnmarshalText([]byte(value))
}

// seed creates the demonstration account and, with the scripted model, its demonstration conversation. The password is
// generated once and stored in the data folder.
func (s *service) seed(ctx context.Context, folder *dataFolder) (string, error) {
	password, made, err := loadOrCreateSecret(folder.join(passwordFile), operate.PasswordBytes)
	if err != nil {
		return "", fmt.Errorf("password of the seeded account: %w", err)
	}
	isNew := made
	var account protocol.AccountID
	err = s.retryWhileBusy(ctx, "the account is not seeded yet", func(ctx context.Context) (err error) {
		account, made, err = users.Seed(ctx, s.db, demoEmail, demoName, password, isNew)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("seeding an account: %w", err)
	}
	if made && s.model.Family() == "scripted" { // a model that costs money is not used for a demonstration
		if err := s.demonstrate(ctx, account); err != nil {
			return "", err
		}
	}
	return password, nil
}

func (p *program) welcome(config *settings.Config, password string) {
	model := config.Model.Provider
	if config.Model.Config != "" {
		model = "the routes of " + config.Model.Config
	}
	fmt.Fprintf(p.stdout, `
Turnstone is running.

  open         %s   the web app, and the API
  operations   http://%s  (/ready, /metrics, /debug/pprof)
  sign in as   %s
  password     %s
  model        %s
  data         %s

Ctrl-C stops all of it; the data folder is kept.
`, config.Service.BaseURL, config.Service.InternalListen, demoEmail, password, model, config.Service.DataDir)
}
