package http

import (
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"turnstone/actors/toolbox"
	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/http/exchange"
	"turnstone/http/feed"
	"turnstone/http/files"
	"turnstone/http/ready"
	"turnstone/http/research"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/http/shares"
	"turnstone/http/sse"
	"turnstone/http/transcriptions"
	"turnstone/http/usage"
	"turnstone/http/webapp"
	"turnstone/persistence"
	"turnstone/persistence/idempotency"
	"turnstone/protocol"
)

// Config has the dependencies and settings of a Server. It must not change after New.
type Config struct {
	DB        *persistence.Stores // nil: the routes can be described, but not used
	Sessions  Sessions            // nil: those of DB
	Secrets   [][]byte            // one secret; during a rotation two, the new one first
	Limiter   exchange.Limiter
	Turns     chat.Turns
	TurnStore TurnStore
	Uploads   files.Uploads
	Research  research.Tasks
	Node      protocol.NodeID // that runs the requests; zero: not a node of the cluster
	Log       *zap.Logger
	Now       func() time.Time // nil: time.Now
	Metrics   prometheus.Registerer
	Tracer    trace.Tracer // nil: no traces

	ContentURL         *url.URL // of the sandbox origin; nil: artifacts do not run
	RegistrationOpen   bool
	MailConfigured     bool             // the service sends mails
	PasswordCost       *argon2id.Params // of a password hash; nil: the cost that OWASP recommends
	Tools              *toolbox.Catalogue
	Transcriber        transcriptions.Transcriber // nil: speech cannot be turned into text
	ResearchAdmission  research.Admission
	MaxLiveTurns       int // limit of live turns per account, for GET /account
	MaxStreams         int // limit of open streams per account on this node; 0: 50
	MaxRequests        int // limit of concurrent requests per account on this node; 0: 32
	Providers          []auth.Provider
	Environment        string                      // for example production
	BuildSHA           string                      // empty: unknown
	ModelFamily        string                      // for example openai
	Abilities          []protocol.ProfileAbilities // for GET /profiles
	Ready              map[string]ready.Probe
	Draining           func() bool   // nil: never
	Isolated           func() bool   // see node.Node.Isolated; nil: never
	Scanner            string        // the engine that scans files for malware
	AttachmentWait     time.Duration // for texts that are being read; 0: files.DefaultTextWait
	AttachmentSpace    int           // how much text a model gets at most, in bytes
	AttachmentPictures bool          // every model accepts pictures
	MaxUploadBytes     int64         // of one file; 0: 100 MiB
	UploadLifetime     time.Duration // of an upload; 0: 1 h
	Budget             usage.Budget  // of model tokens; nil: no limit
	Web                fs.FS         // the built web app; nil: none

	BaseURL        *url.URL       // the address at which browsers reach the service; http only on loopback
	Listen         string         // the listen address; requests may name its host in Host
	AllowedOrigins []string       // other origins that may call with credentials
	TrustedProxies []netip.Prefix // the proxies whose X-Forwarded-For is trusted
}

// Server handles the requests of the API. Conversations and turns belong to the packages that it calls; a Server itself
// has only caches, counters and the open streams.
type Server struct {
	Config
	*router.Router
	log       *zap.Logger
	now       func() time.Time
	keys      *auth.Keys
	limits    *exchange.Limits
	auth      *auth.Service
	readiness *ready.Checker
	sse       *sse.Server
	streams   *exchange.Streams
	hub       *feed.Hub
	replays   *idempotency.Store
	shares    *shares.Handlers
}

// New returns a Server with its routes, the pages of the web app and the OpenAPI document.
func New(config Config) (*Server, error) { return newServer(config, (*Server).table) }

func newServer(config Config, table func(*Server) route.Table) (*Server, error) {
	s := &Server{Config: config, log: config.Log, now: config.Now}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.DB == nil {
		s.DB = &persistence.Stores{}
	}
	if s.Sessions == nil {
		s.Sessions = s.DB.Accounts
	}
	s.sse = sse.NewServer(s.log)
	s.readiness = ready.New(config.Ready, config.Scanner, s.log, s.now)
	metrics, err := router.NewMetrics(config.Metrics)
	if err != nil {
		return nil, err
	}
	s.limits = exchange.NewLimits(config.Limiter, metrics.Limited)
	s.streams = exchange.NewStreams(s.sse, s.limits, s.MaxStreams)
	s.keys, err = auth.NewKeys(config.Secrets)
	if err != nil {
		return nil, fmt.Errorf("deriving keys from the secrets: %w", err)
	}
	s.auth, err = auth.New(auth.Config{
		Sessions: s.Sessions, Credentials: s.DB.Accounts, Identities: s.DB.Accounts, Profiles: s.DB.Accounts, Recovery: s.DB.Recovery, Flows: s.DB.Accounts,
		Passkeys: s.DB.Passkeys, PasskeyFlows: s.DB.Passkeys, Audit: s.DB.Audit, Limits: s.limits, Keys: s.keys, Log: s.log, Now: s.now,
		BaseURL: config.BaseURL, AllowedOrigins: config.AllowedOrigins, Providers: config.Providers, RegistrationOpen: config.RegistrationOpen,
		MailConfigured: config.MailConfigured, PasswordCost: config.PasswordCost,
	})
	if err != nil {
		return nil, err
	}
	s.replays = s.DB.Idempotency
	if config.Node != (protocol.NodeID{}) {
		s.replays = s.replays.On(config.Node)
	}
	s.hub = feed.NewHub(s.DB.Feed, func() bool {
		return s.Draining != nil && s.Draining() || s.Isolated != nil && s.Isolated()
	}, s.log)
	s.shares = shares.New(shares.Config{Store: s.DB.Shares, Files: s.DB.Files, Limits: s.limits, Keys: s.keys, BaseURL: s.BaseURL, Now: s.now, Log: s.log, App: config.Web})
	s.Router, err = router.New(router.Config{
		Auth: s.auth, Keys: s.keys, Limits: s.limits, Idempotency: s.replays, Readiness: s.readiness, SessionEnds: s.sse, Log: s.log, Now: s.now,
		Created: resource.StoredCreated, Metrics: metrics, Tracer: config.Tracer, MaxRequests: config.MaxRequests, BaseURL: config.BaseURL, Listen: config.Listen,
		AllowedOrigins: config.AllowedOrigins,
		TrustedProxies: config.TrustedProxies,
	}, table(s))
	if err != nil {
		return nil, err
	}
	s.AddPage(shares.PagePattern, s.shares.GetPage)
	app, err := webapp.New(config.Web, webapp.Offers{
		Content: config.ContentURL, Registration: config.RegistrationOpen, Mail: config.MailConfigured,
		Transcription: config.Transcriber != nil, Providers: s.auth.ProviderNames(),
	}, s.Fail)
	if err != nil {
		return nil, fmt.Errorf("reading the web app: %w", err)
	}
	for pattern, page := range app.Pages() {
		s.AddPage(pattern, page)
	}
	s.UnknownPage = app.GetUnknown
	return s, nil
}
