// Package dev runs everything on this host computer: private servers, a scripted model, a seeded account and, if wanted,
// several nodes behind a load balancer. Each node is a process of its own, with the command serve: this package never runs the
// service in its own process, and nothing in production uses it.
package dev

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/operate"
	"turnstone/cmd/turnstone/private"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/socket"
	"turnstone/cmd/turnstone/telemetry"
	"turnstone/cmd/turnstone/users"
	"turnstone/protocol"
	"turnstone/providers/model/scripted"
)

const (
	// DemoEmail is the address of the seeded account.
	DemoEmail = "demo@turnstone.localhost"
	demoName  = "Demo"
	// passwordFile has the password of the demonstration account, in the data folder.
	passwordFile = "demo-password"
	// shortGrace is the default drain grace of dev. It is short because the user who pressed Ctrl-C waits for it; turns
	// that are still live are resumed by the next start.
	shortGrace = 2 * time.Second
)

// Command is the command dev.
type Command struct {
	Nodes int `default:"1" help:"Number of nodes. With more than one, each is a process of its own, behind a small load balancer."`
}

// Run starts everything that the environment does not name, prints the addresses, and stops it all when ctx ends.
func (c Command) Run(ctx context.Context, p *Program) (err error) {
	config, log, err := c.load(p)
	if err != nil {
		return err
	}
	own, err := folder.Open(config.Service.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	if err := ensureSecret(config, own); err != nil {
		return err
	}
	sockets, err := socket.Open(ctx, config)
	if err != nil {
		return err
	}
	servers, err := private.Start(ctx, config, own, log)
	if err != nil {
		return errors.Join(err, sockets.Close(ctx))
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), settings.StopTimeout)
		defer cancel()
		err = errors.Join(err, servers.Stop(stopping))
		fmt.Fprintln(p.Stdout, "Turnstone has stopped.")
	}()
	if servers.Postgres != nil {
		own.Database = servers.Postgres.Folder()
	}
	s, err := p.StartService(ctx, config, own, log)
	if err != nil {
		return errors.Join(err, sockets.Close(ctx))
	}
	password, err := seed(ctx, s, own)
	if err != nil {
		return errors.Join(err, s.WaitAndShutDown(cancelledContext(ctx), 0), sockets.Close(ctx))
	}
	if c.Nodes > 1 {
		// This node was needed only to seed. The nodes of the cluster adopt the turns of the demonstration.
		if err := s.WaitAndShutDown(cancelledContext(ctx), 0); err != nil {
			return errors.Join(err, sockets.Close(ctx))
		}
		return p.runCluster(ctx, config, own, sockets, c.Nodes, password, log)
	}
	s.Serve(sockets)
	p.welcome(config, password)
	return s.WaitAndShutDown(ctx, p.grace(config))
}

// load returns the configuration with the defaults of development, and its logger.
func (c Command) load(p *Program) (*settings.Config, *zap.Logger, error) {
	config, warnings, err := settings.Load(p.Environment)
	if err != nil {
		return nil, nil, err
	}
	if config.Service.DocsListen == "" {
		config.Service.DocsListen = docsListen
	}
	if err := errors.Join(config.Check(), c.check(&config)); err != nil {
		return nil, nil, err
	}
	if config.Service.Environment == "" {
		config.Service.Environment = "development"
	}
	if len(config.Web.Providers) == 0 {
		config.Web.Providers = []string{settings.Bundled}
	}
	if p.Environment["TURNSTONE_LOG_LEVEL"] == "" {
		config.Service.LogLevel = zapcore.WarnLevel // the output should contain only what a newcomer needs
	}
	log := telemetry.NewLogger(p.Stderr, config.Service.LogLevel, true)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return &config, log, nil
}

// check checks what a development cluster needs.
func (c Command) check(config *settings.Config) error {
	switch {
	case c.Nodes < 1 || c.Nodes > maxNodes:
		return fmt.Errorf("--nodes: %d is not a number from 1 to %d", c.Nodes, maxNodes)
	case c.Nodes > 1 && config.Cluster.Listen != "":
		return errors.New("TURNSTONE_CLUSTER_LISTEN is set: dev --nodes sets the addresses of its nodes itself")
	case c.Nodes > 1 && config.Service.TLSCert != "":
		return errors.New("TURNSTONE_TLS_CERT_FILE is set: the balancer of dev --nodes serves plain HTTP")
	}
	return nil
}

// runCluster runs the nodes of a development cluster behind the public address until ctx ends.
func (p *Program) runCluster(
	ctx context.Context, config *settings.Config, own *folder.Folder, sockets socket.Set, count int, password string, log *zap.Logger,
) error {
	// The first node listens on the other addresses.
	if err := (socket.Set{Internal: sockets.Internal, Content: sockets.Content, Docs: sockets.Docs}).Close(ctx); err != nil {
		return errors.Join(err, sockets.Public.Close(ctx))
	}
	nodes, err := newCluster(p, config, own, count, log)
	if err != nil {
		return errors.Join(err, sockets.Public.Close(ctx))
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sockets.Public.Run(nodes.balancer, log, config.Limits.MaxConnections, func(err error) { fail(err) })
	nodes.run(ctx, func() {
		p.welcome(config, password)
		nodes.welcome()
	})
	err = sockets.Public.Close(context.WithoutCancel(ctx))
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// cancelledContext returns a context that is already cancelled, so that the service stops at once.
func cancelledContext(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func ensureSecret(config *settings.Config, own *folder.Folder) error {
	if len(config.Access.Secret) > 0 {
		return nil
	}
	value, _, err := folder.LoadOrCreateSecret(own.Join(settings.GeneratedSecret), folder.SecretBytes)
	if err != nil {
		return fmt.Errorf("secret of the data folder: %w", err)
	}
	return config.Access.Secret.UnmarshalText([]byte(value))
}

// seed creates the demonstration account and, with the scripted model, its demonstration conversation. The password is
// generated once and stored in the data folder.
func seed(ctx context.Context, s Service, own *folder.Folder) (string, error) {
	password, made, err := folder.LoadOrCreateSecret(own.Join(passwordFile), operate.PasswordBytes)
	if err != nil {
		return "", fmt.Errorf("password of the seeded account: %w", err)
	}
	isNew := made
	var account protocol.AccountID
	err = s.RetryWhileBusy(ctx, "the account is not seeded yet", func(ctx context.Context) (err error) {
		account, made, err = users.Seed(ctx, s.Stores(), DemoEmail, demoName, password, isNew)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("seeding an account: %w", err)
	}
	if made && s.ModelFamily() == scripted.Family { // a model that costs money is not used for a demonstration
		if err := demonstrate(ctx, s, account); err != nil {
			return "", err
		}
	}
	return password, nil
}

// docsListen is the address of the documentation origin, unless the environment names another one.
const docsListen = "127.0.0.1:8081"

// docsLine returns the line of the welcome with the documentation; empty if it is off.
func docsLine(config *settings.Config) string {
	if config.Service.DocsListen == settings.Off {
		return ""
	}
	return "  read         " + config.Scheme() + "://" + config.Service.DocsListen + "  (the documentation)\n"
}

func (p *Program) welcome(config *settings.Config, password string) {
	model := config.Model.Provider
	if config.Model.Config != "" {
		model = "the routes of " + config.Model.Config
	}
	fmt.Fprintf(p.Stdout, `
Turnstone is running.

  open         %s   the web app, and the API
  operations   http://%s  (/ready, /metrics, /debug/pprof)
%s  sign in as   %s
  password     %s
  model        %s
  data         %s

Ctrl-C stops all of it; the data folder is kept.
`, config.Service.BaseURL, config.Service.InternalListen, docsLine(config), DemoEmail, password, model, config.Service.DataDir)
}
