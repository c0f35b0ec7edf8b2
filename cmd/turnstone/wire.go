package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"turnstone/actors"
	ourhttp "turnstone/http"
	"turnstone/persistence"
	"turnstone/protocol"
	"turnstone/providers/tool"
	"turnstone/web"
)

// service is a running Turnstone: everything that startService brought up, and how it is taken down.
type service struct {
	// Set by startService.
	config   *Config
	log      *zap.Logger
	metrics  *prometheus.Registry
	db       *persistence.DB
	metered  *actors.MeteredModel
	turns    *persistence.Turns
	model    actors.Model
	node     *actors.Node
	api      *ourhttp.Server
	probes   map[string]ourhttp.Probe
	scanner  string
	internal http.Handler
	limiter  *persistence.Limiter
	disk     *diskGuard // nil without a private Postgres
	failed   chan error // what ends the service although nobody asked

	undo []func(context.Context) error // owned by startService and close
}

// startService brings everything up, in the order in which one thing needs another; serve then lets clients in. When it
// fails it has taken down again what it brought up.
func startService(ctx context.Context, config *Config, folder *dataFolder, log *zap.Logger) (_ *service, err error) {
	s := &service{
		config: config, log: log, metrics: prometheus.NewRegistry(), probes: map[string]ourhttp.Probe{}, failed: make(chan error, 1),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if folder.database != "" {
		s.disk = newDiskGuard(folder.database, log)
		s.probes["disk"] = s.disk.probe
	}
	for _, open := range []func(context.Context) error{s.openDatabase, s.openRedis, s.openObjects, s.openScanner, s.openModel} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.startNode(ctx, folder); err != nil {
		return nil, err
	}
	if err := s.startJobs(ctx); err != nil {
		return nil, err
	}
	if err := s.makeAPI(); err != nil {
		return nil, err
	}
	if err := s.measure(); err != nil {
		return nil, err
	}
	if s.internal, err = s.internalHandler(); err != nil {
		return nil, err
	}
	return s, nil
}

// serve lets clients in. The sockets are the service's from here on.
func (s *service) serve(sockets listeners) {
	s.onClose("the listeners", sockets.close)
	sockets.internal.run(s.internal, s.log, maxInternalConnections, s.fail)
	sockets.public.run(s.api, s.log, s.config.Limits.MaxConnections, s.fail)
}

func (s *service) openDatabase(ctx context.Context) (err error) {
	s.db, err = persistence.Open(ctx, persistence.Config{URL: s.config.Stores.DatabaseURL, Logger: s.log})
	if err != nil {
		return err
	}
	s.onClose("Postgres", func(context.Context) error { s.db.Close(); return nil })
	s.turns = persistence.NewTurns(s.db, persistence.TurnsOptions{Logger: s.log})
	s.onClose("the journal", func(context.Context) error { s.turns.Close(); return nil })
	s.probes["persistence"] = s.db.Ready
	return nil
}

func (s *service) openObjects(ctx context.Context) error {
	store, closeStore, err := openObjects(ctx, s.config)
	if err != nil {
		return fmt.Errorf("object store: %w", err)
	}
	s.onClose("the object store", func(context.Context) error { return closeStore() })
	s.probes["object_storage"] = store.Ready
	return nil
}

func (s *service) openScanner(context.Context) error {
	scanner, err := openScanner(s.config)
	if err != nil {
		return err
	}
	s.log.Info("malware scanner", zap.String("engine", scanner.Engine()))
	s.probes["malware_scanning"], s.scanner = scanner.Ready, scanner.Engine()
	return nil
}

func (s *service) openModel(context.Context) (err error) {
	if s.model, err = openModel(s.config); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	s.metered = &actors.MeteredModel{Model: s.model, Log: s.log.Named("budget")}
	if limit := s.config.Limits.TokensPerDay; limit > 0 {
		s.metered.Budget = persistence.NewBudget(s.db, limit)
	}
	s.probes["model_access"] = seldom(s.model.Ready)
	return nil
}

// startNode registers the node and begins to take turns over. The node that ran on the folder before is surely gone.
func (s *service) startNode(ctx context.Context, folder *dataFolder) error {
	predecessor, err := folder.predecessor()
	if err != nil {
		return err
	}
	directory := persistence.NewDirectory(s.db, persistence.DirectoryOptions{MaxLiveTurns: s.config.Limits.MaxLiveTurns, Logger: s.log})
	s.node = actors.NewNode(actors.Config{
		Store: s.turns, Log: s.turns, Directory: directory, Model: s.model, Budget: s.metered.Budget, Routes: s.routes(), Tools: append(tool.All(), failpointTools()...),
		MaxLiveTurns: s.config.Limits.MaxLiveTurns, Predecessor: predecessor, Logger: s.log,
		Fenced: func() {
			s.fail(errors.New("this node was declared dead by the others, which go on with its turns: start it again"))
		},
	})
	s.onClose("the node", func(ctx context.Context) error {
		s.node.Stop()
		return directory.Leave(ctx, s.node.ID())
	})
	if err := s.outwait(ctx, "the node is not registered yet", s.node.Start); err != nil {
		return err
	}
	return folder.recordNode(s.node.ID())
}

const (
	// busyPatience is for a database that answers, but not as soon as a request has to hear from it: a machine that is
	// busy, or on which everything starts at once. To give up would be to begin anew.
	busyPatience = 15 * time.Second
	busyPause    = 100 * time.Millisecond
)

// outwait repeats a step of the start while the database is too busy for it; yet is what is logged meanwhile. The step
// may be done twice.
func (s *service) outwait(ctx context.Context, yet string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, busyPatience)
	defer cancel()
	for {
		err := step(ctx)
		if protocol.CodeOf(err) != protocol.CodeUnavailable {
			return err
		}
		s.log.Warn(yet, zap.Error(err))
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *service) routes() actors.Routes {
	models := s.config.Model
	if models.Balanced == "" { // the scripted model has one name
		models.Balanced = s.model.Family()
	}
	if models.DeepReasoning == "" {
		models.DeepReasoning = models.Balanced
	}
	if models.Coding == "" {
		models.Coding = models.Balanced
	}
	return actors.DefaultRoutes(models.Balanced, models.DeepReasoning, models.Coding)
}

func (s *service) makeAPI() (err error) {
	var turns ourhttp.Turns = s.node
	if s.disk != nil {
		turns = guardedTurns{s.node, s.disk}
	}
	s.api, err = ourhttp.New(ourhttp.Config{
		DB: s.db, Turns: turns, TurnStore: turnStore{s.turns, s.db}, Limiter: s.limiter, Ready: s.probes, Draining: s.node.Draining, Scanner: s.scanner, Log: s.log, Metrics: s.metrics,
		Secrets: s.config.Access.Secret, BaseURL: s.config.Service.BaseURL.URL,
		Listen: s.config.Service.Listen, AllowedOrigins: s.config.Access.AllowedOrigins, TrustedProxies: s.config.Access.TrustedProxies,
		RegistrationOpen: s.config.Access.Registration == "open", MaxStreams: s.config.Limits.MaxStreams, Providers: s.providers(),
		Environment: s.config.Service.Environment, BuildSHA: buildSHA, ModelFamily: s.model.Family(),
		Web: web.Files(),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.api.Run(ctx)
	}()
	s.onClose("the watch over sessions", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
	return nil
}

func (s *service) providers() []ourhttp.OIDCProvider {
	var list []ourhttp.OIDCProvider
	for _, name := range slices.Sorted(maps.Keys(s.config.OIDC)) {
		one := s.config.OIDC[name]
		list = append(list, ourhttp.OIDCProvider{
			Name: name, Issuer: one.Issuer, ClientID: one.ClientID, ClientSecret: one.ClientSecret, Scopes: one.Scopes,
		})
	}
	return list
}

func (s *service) internalHandler() (http.Handler, error) {
	token, err := adminToken(s.config.Access.Secret[0])
	if err != nil {
		return nil, err
	}
	handler := internalHandler(s.api.InternalHandler(), s.metrics, operator{turns: s.turns, node: s.node}, token, s.log)
	return ourhttp.OnlyHosts(s.config.Service.InternalListen, s.config.Service.InternalHosts, withFailpoints(handler)), nil
}

// measure registers what /metrics shows besides requests. No label is ever made of what clients send.
func (s *service) measure() error {
	var disk error
	if s.disk != nil {
		disk = s.metrics.Register(s.disk)
	}
	return errors.Join(
		disk,
		s.metrics.Register(collectors.NewGoCollector()),
		s.metrics.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		s.metrics.Register(gauges{node: s.node.Stats, pools: s.db.Stats, journal: s.turns.JournalStats}),
	)
}

// turnStore is what http reads of turns: their rows and the message that each becomes.
type turnStore struct {
	*persistence.Turns
	db *persistence.DB
}

// GetMessage implements http.TurnStore.
func (t turnStore) GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error) {
	return t.db.GetMessage(ctx, account, message)
}
