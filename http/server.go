package http

import (
	"fmt"
	"io/fs"
	stdhttp "net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"turnstone/persistence"
)

// Config is what a Server needs. Nothing in it changes after New.
type Config struct {
	DB        *persistence.DB
	Secrets   [][]byte // one, or two while the first replaces the second
	Limiter   Limiter
	Turns     Turns
	TurnStore TurnStore
	Log       *zap.Logger
	Now       func() time.Time // nil: the clock
	Metrics   prometheus.Registerer

	RegistrationOpen bool
	MaxStreams       int // open streams of one account on this node; 0: 50
	MaxRequests      int // requests of one account that this node works on at once; 0: 32
	Providers        []OIDCProvider
	Environment      string // as production
	BuildSHA         string // empty: unknown
	ModelFamily      string // as openai
	Ready            map[string]Probe
	Draining         func() bool // nil: never
	Scanner          string      // the engine that judges files
	Web              fs.FS       // the built web app; nil: none

	BaseURL        *url.URL       // where browsers reach the service; http only on loopback
	Listen         string         // the address that is listened on: its host is a name of the service
	AllowedOrigins []string       // other origins that may call with credentials
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
}

// Server answers the API. It holds no state of requests; what lives is in the packages behind it.
type Server struct {
	Config
	log       *zap.Logger
	now       func() time.Time
	router    *chi.Mux
	api       huma.API
	origins   *stdhttp.CrossOriginProtection
	metrics   *metrics
	keys      *keys
	passwords *passwords
	providers *providers
	shell     *shell
	ready     *readiness
	watches   watches
	tallies   tallies
	streams   streams
	requests  perAccount // under way
	hosts     hosts
	live      liveStreams
	pump      pump
	routes    []route
	policies  map[string]Policy // by "METHOD /pattern"
}

// New builds the handler and the document of all routes.
func New(config Config) (*Server, error) { return newServer(config, (*Server).table) }

func newServer(config Config, table func(*Server) []route) (*Server, error) {
	s := &Server{Config: config, log: config.Log, now: config.Now}
	if s.MaxStreams == 0 {
		s.MaxStreams = defaultStreams
	}
	if s.MaxRequests == 0 {
		s.MaxRequests = defaultRequests
	}
	s.hosts = newHosts(config.Listen, config.BaseURL.Host)
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	var err error
	if s.keys, err = newKeys(config.Secrets); err != nil {
		return nil, fmt.Errorf("the secret: %w", err)
	}
	if s.passwords, err = newPasswords(); err != nil {
		return nil, err
	}
	if s.origins, err = s.originChecks(); err != nil {
		return nil, fmt.Errorf("approved origins: %w", err)
	}
	if s.metrics, err = newMetrics(config.Metrics); err != nil {
		return nil, fmt.Errorf("metrics of requests: %w", err)
	}
	s.providers = newProviders(config.Providers, strings.TrimSuffix(config.BaseURL.String(), "/"), s.now)
	if s.shell, err = newShell(config.Web); err != nil {
		return nil, fmt.Errorf("the web app: %w", err)
	}
	s.ready = &readiness{probes: config.Ready, scanner: config.Scanner, log: s.log, now: s.now}
	s.mount(table(s))
	return s, nil
}

// mount makes the router and the document from the table.
func (s *Server) mount(routes []route) {
	s.router = chi.NewMux()
	s.router.Use(s.begin, s.checkHost, s.cors(), s.checkForm, middleware.GetHead)
	s.router.NotFound(s.unknownPath)
	s.router.MethodNotAllowed(s.unknownMethod)
	s.api = huma.NewAPI(apiConfig(), adapter{s})
	s.api.UseMiddleware(s.checkPath, s.readBody)
	s.routes = routes
	s.policies = make(map[string]Policy, len(s.routes))
	for _, t := range s.routes {
		s.policies[t.method+" "+t.path] = t.policy
		t.register(s.api, t.operation(s.api))
	}
	s.mountShell()
	describeEvents(s.api.OpenAPI())
	describeIdentifiers(s.api.OpenAPI())
	describeService(s.api.OpenAPI())
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) { s.router.ServeHTTP(w, r) }

// adapter puts huma's operations into the router, each behind the guard that its policy asks for.
type adapter struct{ server *Server }

func (a adapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	policy := op.Metadata["policy"].(Policy)
	a.server.router.Method(op.Method, op.Path, a.server.guard(policy, op, handler))
}

func (a adapter) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	a.server.router.ServeHTTP(w, r)
}

func apiConfig() huma.Config {
	config := huma.DefaultConfig("Turnstone", "1")
	config.CreateHooks = nil // no $schema in answers
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.AllowAdditionalPropertiesByDefault = true // unknown fields are ignored
	config.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	return config
}
