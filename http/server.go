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

	"turnstone/http/accounts"
	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/http/conversations"
	"turnstone/http/feed"
	"turnstone/http/feedback"
	"turnstone/http/files"
	"turnstone/http/portability"
	"turnstone/http/projects"
	"turnstone/http/ready"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/http/search"
	"turnstone/http/shares"
	"turnstone/http/sse"
	"turnstone/http/system"
	"turnstone/http/usage"
	"turnstone/http/webapp"
	"turnstone/protocol"
)

// Config has the dependencies and settings of a Server. It must not change after New.
type Config struct {
	Stores
	Secrets   [][]byte // one secret; during a rotation two, the new one first
	Limiter   router.Limiter
	Turns     chat.Turns
	TurnStore TurnStore
	Uploads   files.Uploads
	Log       *zap.Logger
	Now       func() time.Time // nil: time.Now
	Metrics   prometheus.Registerer
	Tracer    trace.Tracer // nil: no traces

	RegistrationOpen   bool
	MailConfigured     bool             // the service sends mails
	PasswordCost       *argon2id.Params // of a password hash; nil: the cost that OWASP recommends
	MaxLiveTurns       int              // limit of live turns per account, for GET /account
	MaxStreams         int              // limit of open streams per account on this node; 0: 50
	MaxRequests        int              // limit of concurrent requests per account on this node; 0: 32
	Providers          []auth.Provider
	Environment        string                      // for example production
	BuildSHA           string                      // empty: unknown
	ModelFamily        string                      // for example openai
	Abilities          []protocol.ProfileAbilities // for GET /profiles
	Ready              map[string]ready.Probe
	Draining           func() bool   // nil: never
	Scanner            string        // the engine that scans files for malware
	AttachmentWait     time.Duration // for texts that are being read; 0: files.DefaultTextWait
	AttachmentSpace    int           // how much text a model gets at most, in bytes
	AttachmentPictures bool          // every model accepts pictures
	MaxUploadBytes     int64         // of one file; 0: 100 MiB
	UploadLifetime     time.Duration // of an upload session; 0: 1 h
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
	auth      *auth.Service
	readiness *ready.Checker
	sse       *sse.Server
	streams   *router.Streams

	system        system.Handlers
	accounts      accounts.Handlers
	chat          chat.Handlers
	conversations conversations.Handlers
	usage         usage.Handlers
	portability   *portability.Handlers
	projects      projects.Handlers
	feedback      feedback.Handlers
	search        *search.Handlers
	feed          feed.Handlers
	shares        *shares.Handlers
	files         *files.Handlers
}

// New returns a Server with its routes, the pages of the web app and the OpenAPI document.
func New(config Config) (*Server, error) { return newServer(config, (*Server).table) }

func newServer(config Config, table func(*Server) []route.Route) (*Server, error) {
	s := &Server{Config: config, log: config.Log, now: config.Now}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.sse = sse.NewServer(s.log)
	s.streams = router.NewStreams(s.sse, s.MaxStreams)
	s.readiness = ready.New(config.Ready, config.Scanner, s.log, s.now)
	metrics, err := router.NewMetrics(config.Metrics)
	if err != nil {
		return nil, err
	}
	limits := router.NewLimits(config.Limiter, metrics)
	keys, err := auth.NewKeys(config.Secrets)
	if err != nil {
		return nil, fmt.Errorf("deriving keys from the secrets: %w", err)
	}
	s.auth, err = auth.New(auth.Config{
		Sessions: config.Sessions, Credentials: config.Credentials, Identities: config.Identities, Profiles: config.Profiles, Recovery: config.Recovery, Flows: config.Flows, Passkeys: config.Passkeys, PasskeyFlows: config.PasskeyFlows, Audit: config.Audit, Limits: limits, Keys: keys, Log: s.log, Now: s.now,
		BaseURL: config.BaseURL, AllowedOrigins: config.AllowedOrigins, Providers: config.Providers, RegistrationOpen: config.RegistrationOpen, MailConfigured: config.MailConfigured, PasswordCost: config.PasswordCost,
	})
	if err != nil {
		return nil, err
	}
	s.handlers(keys, limits)
	s.Router, err = router.New(router.Config{
		Auth: s.auth, Keys: keys, Limits: limits, Idempotency: config.Idempotency, Owners: config.Owners, Readiness: s.readiness, SessionEnds: s.sse, Log: s.log, Now: s.now,
		Created: resource.StoredCreated, Metrics: metrics, Tracer: config.Tracer, MaxRequests: config.MaxRequests, BaseURL: config.BaseURL, Listen: config.Listen, AllowedOrigins: config.AllowedOrigins,
		TrustedProxies: config.TrustedProxies,
	}, table(s))
	if err != nil {
		return nil, err
	}
	s.AddPage(shares.PagePattern, s.shares.GetPage)
	app, err := webapp.New(config.Web, config.RegistrationOpen, config.MailConfigured, s.auth.ProviderNames(), s.Fail)
	if err != nil {
		return nil, fmt.Errorf("reading the web app: %w", err)
	}
	for pattern, page := range app.Pages() {
		s.AddPage(pattern, page)
	}
	s.UnknownPage = app.GetUnknown
	return s, nil
}

// handlers sets the handlers of each resource, with their dependencies.
func (s *Server) handlers(keys *auth.Keys, limits *router.Limits) {
	s.system = system.Handlers{Readiness: s.readiness, Draining: s.Draining, Environment: s.Environment, BuildSHA: s.BuildSHA, ModelFamily: s.ModelFamily, Profiles: s.Abilities}
	s.accounts = accounts.Handlers{
		Auth: s.auth, Sessions: s.Sessions, Settings: s.Settings, SecurityLog: s.SecurityLog, Files: s.StoredFiles, Turns: s.TurnStore,
		Budget: s.Budget, MaxLiveTurns: s.MaxLiveTurns, Keys: keys, Now: s.now,
	}
	s.chat = chat.Handlers{Turns: s.Turns, Store: s.TurnStore, Messages: s.Messages, FollowUps: s.FollowUps, Streams: s.streams, Limits: limits, Keys: keys, Now: s.now}
	s.conversations = conversations.Handlers{
		Store: s.Conversations, Organiser: s.Organiser, Branches: s.Branches, Messages: s.Messages, Drafts: s.Drafts, Turns: s.Turns,
		Confirmations: resource.Confirmations{Keys: keys, Now: s.now}, Keys: keys,
	}
	s.usage = usage.Handlers{Store: s.Usage, Budget: s.Budget, Keys: keys, Now: s.now}
	s.portability = portability.New(portability.Config{Stores: s.Portability, Sessions: s.sse, Keys: keys, ExpiredCookie: s.auth.ExpiredCookie, Log: s.log, Now: s.now})
	s.projects = projects.Handlers{
		Store: s.Projects, Texts: s.ProjectTexts, Conversations: s.ProjectConversations, Organiser: s.ProjectOrganiser, Turns: s.Turns, Uploads: s.Uploads,
		Confirmations: resource.Confirmations{Keys: keys, Now: s.now}, Keys: keys,
	}
	s.feedback = feedback.Handlers{Store: s.Feedback}
	s.search = search.New(s.Search, s.Projects, keys)
	s.feed = feed.Handlers{Hub: feed.NewHub(s.Feed, s.Draining, s.log), Store: s.Feed, Keys: keys, Streams: s.streams}
	s.files = files.New(files.Config{
		Uploads: s.Uploads, Store: s.Files, Texts: s.FileTexts, Projects: s.ProjectFiles, ProjectReader: s.Projects, Streams: s.streams, Sessions: s.sse, Keys: keys, Log: s.log, Now: s.now,
		TextWait: s.AttachmentWait, Space: s.AttachmentSpace, Pictures: s.AttachmentPictures, MaxBytes: s.MaxUploadBytes, Lifetime: s.UploadLifetime,
	})
	s.shares = shares.New(shares.Config{Store: s.Shares, Files: s.Files, Keys: keys, BaseURL: s.BaseURL, Now: s.now, Log: s.log})
}
