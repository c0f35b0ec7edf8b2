package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"turnstone/actors/cluster"
	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/modelinput"
	"turnstone/actors/node"
	"turnstone/actors/research"
	"turnstone/actors/research/work"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn"
	"turnstone/actors/upload"
	"turnstone/cmd/turnstone/admin"
	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/diskspace"
	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/socket"
	"turnstone/cmd/turnstone/telemetry"
	"turnstone/docs"
	ourhttp "turnstone/http"
	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/http/listener"
	"turnstone/http/ready"
	"turnstone/http/sandbox"
	"turnstone/persistence"
	"turnstone/persistence/files"
	"turnstone/persistence/journal"
	"turnstone/persistence/limits"
	"turnstone/persistence/nodes"
	"turnstone/persistence/objects"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/timelimit"
	"turnstone/providers/extract"
	"turnstone/providers/media"
	"turnstone/providers/model/scripted"
	"turnstone/providers/scanner"
	"turnstone/providers/tool"
	"turnstone/providers/transcription"
	"turnstone/web"
)

// service is a running Turnstone: everything that startService opened and started, and how it is shut down.
type service struct {
	// Set by startService.
	config     *settings.Config
	log        *zap.Logger
	metrics    *prometheus.Registry
	telemetry  *telemetry.Metrics
	tracing    *telemetry.Tracing
	db         *persistence.Stores
	objects    objects.Store
	metered    *metering.Model
	turns      *turns.Store
	nodes      *nodes.Directory
	model      llm.Model
	models     *settings.Models
	node       *node.Node
	tools      *toolbox.Catalogue
	turnHost   *turn.Host
	uploads    *upload.Host
	research   *research.Host
	admission  *research.Admission
	malware    scanner.Scanner
	extractor  *extract.Extractor
	web        *tool.Web
	code       *tool.Code
	api        *ourhttp.Server
	probes     map[string]ready.Probe
	internal   http.Handler
	docs       http.Handler // nil: not served
	limiter    *limits.Limiter
	budget     *limits.Budget   // nil: no limit
	disk       *diskspace.Guard // nil unless dev runs a private Postgres
	filesGuard func() error     // nil: files are not stored on a local disk
	spools     *diskspace.Guard // of the inputs of child processes
	failed     chan error       // receives the failure that ends the service, see fail

	undo []func(context.Context) error // owned by startService and close; see onClose
}

// startService opens and starts every part of the service in the order of their dependencies. It does not accept
// clients yet; Serve does. If it fails, it has already closed what it opened.
func startService(ctx context.Context, config *settings.Config, in *folder.Folder, environment map[string]string, log *zap.Logger) (_ *service, err error) {
	s := &service{
		config: config, log: log, metrics: prometheus.NewRegistry(), probes: map[string]ready.Probe{}, failed: make(chan error, 1),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.openTelemetry(ctx, environment); err != nil {
		return nil, err
	}
	if in.Database != "" {
		s.disk = diskspace.New(in.Database, "new turns", log)
		s.probes["disk"] = s.disk.Probe
	}
	for _, open := range []func(context.Context) error{s.openObjects, s.openDatabase, s.openRedis, s.openScanner, s.openWeb, s.openCode, s.openModel} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}
	s.extractor.ShowPages = s.acceptsPictures()
	if err := s.openTools(); err != nil {
		return nil, err
	}
	if err := s.startNode(ctx, in); err != nil {
		return nil, err
	}
	if err := s.startJobs(ctx); err != nil {
		return nil, err
	}
	if err := s.createAPI(); err != nil {
		return nil, err
	}
	if err := s.registerMetrics(); err != nil {
		return nil, err
	}
	if s.internal, err = s.internalHandler(); err != nil {
		return nil, err
	}
	if s.config.Service.DocsListen != settings.Off {
		if s.docs, err = ourhttp.Documentation(docs.Pages); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Serve starts accepting clients. From then on the service closes the sockets.
func (s *service) Serve(sockets socket.Set) {
	s.onClose("the listeners", sockets.Close)
	if certificate := sockets.Public.Certificate(); certificate != nil {
		s.telemetry.CertificateExpires("public", certificate.NotAfter)
	}
	if sockets.Docs != nil {
		sockets.Docs.Run(s.docs, s.log, s.config.Limits.MaxConnections, s.fail)
	}
	sockets.Internal.Run(s.internal, s.log, socket.MaxInternalConnections, s.fail)
	sockets.Public.Run(s.api, s.log, s.config.Limits.MaxConnections, s.fail)
	if sockets.Content != nil {
		sockets.Content.Run(sandbox.New(s.config.Service.BaseURL.URL), s.log, s.config.Limits.MaxConnections, s.fail)
	}
}

// openTelemetry registers the metrics and starts the exporter of traces, which closes last.
func (s *service) openTelemetry(ctx context.Context, environment map[string]string) (err error) {
	if s.telemetry, err = telemetry.New(s.metrics, buildSHA); err != nil {
		return err
	}
	if s.tracing, err = telemetry.StartTracing(ctx, environment, buildSHA, s.log.Named("traces")); err != nil {
		return err
	}
	s.onClose("the exporter of traces", s.closeTracing)
	return nil
}

// closeTracing exports the spans that wait. A collector that does not respond does not delay or fail the shutdown.
func (s *service) closeTracing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tracingGrace)
	defer cancel()
	if err := s.tracing.Close(ctx); err != nil {
		s.log.Warn("the last traces were not exported", zap.Error(err))
	}
	return nil
}

func (s *service) openDatabase(ctx context.Context) (err error) {
	s.db, err = persistence.Open(ctx, persistence.Config{
		URL: s.config.Stores.DatabaseURL, Objects: s.objects, Logger: s.log, CheckSpace: s.checkSpace, Mail: s.config.Mail.URL != "",
		FileQuota: files.Quota{Bytes: s.config.Limits.MaxFileBytes, Files: s.config.Limits.MaxFiles, TextBytes: s.config.Limits.MaxTextBytes},
	})
	if err != nil {
		return err
	}
	s.onClose("Postgres", func(context.Context) error { s.db.Close(); return nil })
	s.turns = s.db.StartTurns(turns.Options{Logger: s.log, Journal: journal.Options{OnBatch: s.telemetry.Batched, OnAppend: s.telemetry.Appended}})
	s.onClose("the journal", func(context.Context) error { s.turns.Close(); return nil })
	s.probes["persistence"] = s.db.Ready
	return nil
}

func (s *service) openObjects(ctx context.Context) error {
	store, closeStore, err := connect.Objects(ctx, s.config)
	if err != nil {
		return fmt.Errorf("object store: %w", err)
	}
	s.objects = store
	if s.filesGuard = s.guardFiles(); s.filesGuard != nil {
		s.objects = diskspace.Store{Store: store, Check: s.filesGuard}
	}
	s.onClose("the object store", func(context.Context) error { return closeStore() })
	s.probes["object_storage"] = store.Ready
	return nil
}

// openRedis does not require that Redis responds. Without Redis the service starts, and refuses what the limits in
// Redis cover.
func (s *service) openRedis(ctx context.Context) error {
	limiter, err := connect.Limiter(s.config)
	if err != nil {
		return err
	}
	s.limiter = limiter
	s.onClose("Redis", func(context.Context) error { return limiter.Close() })
	s.probes["cache"] = limiter.Ready
	if err := limiter.Connect(ctx); err != nil {
		s.log.Warn("Redis does not respond; requests that it counts are refused until it does", zap.Error(err))
	}
	return nil
}

func (s *service) openScanner(context.Context) (err error) {
	if s.extractor, err = newExtractor(); err != nil {
		return err
	}
	s.spools = diskspace.New(os.TempDir(), "contents that are read", s.log)
	s.extractor.CheckSpace = func() error { return s.spools.Refuse("The file is read when there is space.") }
	if s.malware, err = connect.Scanner(s.config); err != nil {
		return err
	}
	s.malware = s.telemetry.Scanner(s.malware)
	s.log.Info("malware scanner", zap.String("engine", s.malware.Engine()))
	s.probes["malware_scanning"] = s.malware.Ready
	return nil
}

func (s *service) openModel(context.Context) error {
	models, model, err := connect.Models(s.config, s.log)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	s.models, s.model = models, s.telemetry.Model(model)
	s.metered = &metering.Model{Model: s.model, Log: s.log.Named("budget")}
	if limit := s.config.Limits.TokensPerDay; limit > 0 {
		s.budget = limits.NewBudget(s.db.DB, limit)
		s.metered.Budget = s.budget
	}
	s.probes["model_access"] = cachedProbe(s.model.Ready)
	return nil
}

// startNode registers the node, which then starts to take over turns of dead nodes. The process holds the lock of the
// data folder, so the node that used the folder before has surely ended and is marked dead at registration.
func (s *service) startNode(ctx context.Context, in *folder.Folder) error {
	predecessor, err := in.Predecessor()
	if err != nil {
		return err
	}
	peers, err := clusterOptions(s.config, s.log)
	if err != nil {
		return err
	}
	s.nodes = nodes.NewDirectory(s.db.DB)
	s.node = node.New(node.Config{
		Directory: s.nodes, Cluster: peers, Predecessor: predecessor, DrainGrace: time.Duration(s.config.Service.DrainGrace), Build: buildSHA, Logger: s.log,
		Fenced: func() {
			s.fail(errors.New("this node was declared dead by the others, which take over its turns: restart it"))
		},
	})
	s.createHosts()
	s.node.Attach(s.turnHost.Load, s.turnHost, s.uploads, s.research)
	s.onClose("the node", func(ctx context.Context) error {
		s.node.Stop()
		return s.nodes.Leave(ctx, s.node.ID())
	})
	if err := s.RetryWhileBusy(ctx, "the node is not registered yet", s.node.Start); err != nil {
		return err
	}
	return in.RecordNode(s.node.ID())
}

// clusterOptions returns how the node communicates with other nodes; nil if it does not.
func clusterOptions(config *settings.Config, log *zap.Logger) (*cluster.Options, error) {
	secure, err := connect.ClusterTLS(config, log)
	if err != nil || secure == nil {
		return nil, err
	}
	return &cluster.Options{Listen: config.Cluster.Listen, Advertise: config.Cluster.Advertise, TLS: secure, Logger: log}, nil
}

// attachmentSpace returns how much text the first model of every profile can get.
func (s *service) attachmentSpace() int {
	least := math.MaxInt
	for _, routes := range s.models.Routes {
		least = min(least, modelinput.Space(routes[0]))
	}
	return least
}

// everyRouteAcceptsPictures reports whether the first models of all profiles accept pictures.
func (s *service) everyRouteAcceptsPictures() bool {
	for _, routes := range s.models.Routes {
		if !routes[0].Pictures {
			return false
		}
	}
	return true
}

// openTools creates the tools that turns can use.
func (s *service) openTools() (err error) {
	s.admission = &research.Admission{
		Consents: s.db.Memory, Files: s.db.Files, Conversations: s.db.Conversations, Settings: s.db.Accounts,
		Unavailable: map[protocol.ResearchSource]string{protocol.ResearchWeb: s.web.Unavailable},
	}
	if s.budget != nil {
		s.admission.Budget = s.budget
	}
	all := append(tool.All(&tool.Stores{
		Files: s.db.FileTexts, Artifacts: s.db.Artifacts, Projects: s.db.Projects, Past: s.db.Search, Locations: s.db.Memory, Kept: s.db.Research,
		Research: tool.Research{Admission: s.admission, Find: s.db.Research.Task, Create: func(ctx context.Context, spec *researchlog.Spec) (*protocol.ResearchTask, error) {
			return s.research.Create(ctx, spec) // the host is created after the tools
		}, CanCreate: s.db.Research.CanCreate},
		Web: s.web, Code: s.code,
	}), failpointTools()...)
	if s.model.Family() == scripted.Family {
		all = append(all, tool.DemoAction{})
	}
	s.tools, err = toolbox.NewCatalogue(s.telemetry.Tools(all))
	return err
}

// createHosts creates the hosts of the kinds of work that the node runs.
func (s *service) createHosts() {
	s.turnHost = turn.New(turn.Config{
		Node: s.node.Host(), Link: s.node.Link(), Store: s.turns, FollowUps: s.db.FollowUps, Log: s.turns, Ownership: s.turns, Files: s.db.FileTexts,
		Model: s.model, Budget: s.metered.Budget, Routes: s.models.Routes, Tools: s.tools, Approvals: s.db.Approvals, Consents: s.db.Memory,
		ApprovalLifetime: time.Duration(s.config.Limits.ApprovalLifetime),
		MaxLiveTurns:     s.config.Limits.MaxLiveTurns, Capacity: s.config.Limits.NodeLiveTurns, Logger: s.log, Observer: s.telemetry.Observer(s.tracing.Tracer),
	})
	s.uploads = upload.New(upload.Config{
		Node: s.node.Host(), Live: s.turnHost.Running, Store: s.db.Uploads, Objects: s.objects, Scanner: s.malware, Detector: media.Detector{},
		Inspector: s.extractor, Guard: s.filesGuard, Entered: s.telemetry.UploadEntered, Logger: s.log,
	})
	s.research = research.New(research.Config{
		Node: s.node.Host(), Store: s.db.Research, Capacity: s.config.Limits.NodeResearch, Entered: s.telemetry.ResearchEntered, Logger: s.log,
		Worker: &work.Worker{
			Places: tool.Places(s.web, s.db.FileTexts, s.db.Memory, s.db.Search), Model: s.metered, Route: s.models.Routes.First(protocol.ProfileBalanced), Log: s.log.Named("research"),
		},
	})
}

// busyTimeout limits how long a start step is repeated while the database responds, but not within a request's
// deadline: the host computer is busy, or everything on it starts at the same time. Giving up earlier would only repeat
// the whole start.
var busyTimeout = timelimit.Of(15 * time.Second)

const (
	busyPause = 100 * time.Millisecond
	// tracingGrace is how long a shutdown waits for the last traces.
	tracingGrace = 2 * time.Second
)

// RetryWhileBusy repeats a step of the start while it fails with protocol.CodeUnavailable, until busyTimeout has
// passed. It logs message after each such failure. The step must be safe to repeat.
func (s *service) RetryWhileBusy(ctx context.Context, message string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for {
		err := step(ctx)
		if protocol.CodeOf(err) != protocol.CodeUnavailable {
			return err
		}
		s.log.Warn(message, zap.Error(err))
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *service) createAPI() (err error) {
	var turns chat.Turns = s.turnHost
	if s.disk != nil {
		turns = diskspace.Turns{Turns: s.turnHost, Disk: s.disk}
	}
	config := ourhttp.Config{
		DB: s.db, Node: s.node.ID(), Turns: turns, TurnStore: s.turns, Uploads: s.uploads, Research: s.research, ResearchAdmission: s.admission,
		Limiter: s.telemetry.Limiter(s.limiter), Ready: s.probes, Draining: s.node.Draining, Isolated: s.node.Isolated, Scanner: s.malware.Engine(), Log: s.log, Metrics: s.metrics,
		Tracer:  s.tracing.Tracer,
		Secrets: s.config.Access.Secret, BaseURL: s.config.Service.BaseURL.URL,
		Listen: s.config.Service.Listen, AllowedOrigins: s.config.Access.AllowedOrigins, TrustedProxies: s.config.Access.TrustedProxies,
		ContentURL: s.config.Service.ContentURL.URL, RegistrationOpen: s.config.Access.Registration == "open", MailConfigured: s.config.Mail.URL != "",
		MaxLiveTurns: s.config.Limits.MaxLiveTurns, MaxStreams: s.config.Limits.MaxStreams, Providers: s.providers(),
		Environment: s.config.Service.Environment, BuildSHA: buildSHA, ModelFamily: s.model.Family(), Abilities: s.models.Routes.Abilities(), Tools: s.tools,
		AttachmentSpace: s.attachmentSpace(), AttachmentPictures: s.everyRouteAcceptsPictures(), MaxUploadBytes: s.config.Limits.MaxUploadBytes,
		UploadLifetime: time.Duration(s.config.Limits.UploadLifetime), Web: web.Files(),
	}
	if s.budget != nil {
		config.Budget = s.budget
	}
	if dictation := s.config.Dictation; dictation.URL != "" {
		config.Transcriber = transcription.New(transcription.Options{URL: dictation.URL, Key: dictation.Key, Model: dictation.Model, Log: s.log})
	}
	if s.api, err = ourhttp.New(config); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.api.Run(ctx)
	}()
	s.onClose("the session watcher", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
	return nil
}

func (s *service) providers() []auth.Provider {
	var list []auth.Provider
	for _, name := range slices.Sorted(maps.Keys(s.config.OIDC)) {
		one := s.config.OIDC[name]
		list = append(list, auth.Provider{
			Name: name, Issuer: one.Issuer, ClientID: one.ClientID, ClientSecret: one.ClientSecret, Scopes: one.Scopes,
		})
	}
	return list
}

func (s *service) internalHandler() (http.Handler, error) {
	token, err := admin.Token(s.config.Access.Secret[0])
	if err != nil {
		return nil, err
	}
	handler := admin.New(admin.Config{
		Health: s.api.InternalHandler(), Metrics: s.metrics, Turns: admin.NewTurns(s.turns, s.turnHost),
		Nodes: admin.NewNodes(s.nodes, s.node.ID()), Token: token, Log: s.log,
	})
	return listener.OnlyHosts(s.config.Service.InternalListen, s.config.Service.InternalHosts, withFailpoints(handler)), nil
}

// registerMetrics registers the metrics that /metrics reports in addition to those of requests. No label is derived
// from what clients send.
func (s *service) registerMetrics() error {
	return s.telemetry.Collect(telemetry.Sources{
		Turns: s.turnHost.Stats, Renewed: s.node.Renewed, Draining: s.node.Draining, Pools: s.db.Stats, Journal: s.turns.JournalStats,
		Streams: s.api.AllStreams, Readiness: s.checks, Disk: s.diskOfFolder,
	})
}

// checks returns which dependencies work.
func (s *service) checks(ctx context.Context) map[string]bool {
	works := map[string]bool{}
	for name, result := range s.api.Readiness(ctx).Checks {
		works[name] = result != ready.CheckDown
	}
	return works
}

// diskOfFolder describes the disk of the data folder. It is nearly full if its free space cannot be read.
func (s *service) diskOfFolder() telemetry.Disk {
	read := func() (diskspace.Space, error) {
		found, err := diskspace.Read(s.config.Service.DataDir)
		return found, errors.Join(err, found.Check())
	}
	if s.disk != nil {
		read = s.disk.Check
	}
	found, err := read()
	return telemetry.Disk{Free: found.Free, Size: found.All, Full: err != nil}
}

// checkSpace returns an error while the disk of a private Postgres is nearly full.
func (s *service) checkSpace() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.Refuse("The work continues when there is space.")
}

// guardFiles returns the function that refuses files while the disk of the local object store is nearly full; nil if the
// files are stored in a bucket.
func (s *service) guardFiles() func() error {
	if s.config.Stores.S3Bucket != "" {
		return nil
	}
	guard := diskspace.New(s.config.FilesFolder(), "new files", s.log)
	return func() error { return guard.Refuse("New files are refused.") }
}
