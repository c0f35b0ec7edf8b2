package router

import (
	stdhttp "net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/listener"
	"turnstone/http/ready"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/persistence/idempotency"
)

// Config has the dependencies and settings of a Router. It must not change after New.
type Config struct {
	Auth        *auth.Service
	Keys        *auth.Keys
	Limits      *exchange.Limits
	Idempotency Idempotency
	Readiness   *ready.Checker
	SessionEnds exchange.Sessions
	Log         *zap.Logger
	Now         func() time.Time
	Metrics     *Metrics
	Tracer      trace.Tracer // nil: no traces
	// Created returns the response to a request that has created a resource, for the path of the request and the status that
	// its route has. It is stored in the transaction of the effect if the request has an Idempotency-Key.
	Created     func(path string, status int, resource any) (*idempotency.StoredResponse, error)
	MaxRequests int // limit of concurrent requests per account on this node; 0: 32

	BaseURL        *url.URL       // the address at which browsers reach the service
	Listen         string         // the listen address; requests may name its host in Host
	AllowedOrigins []string       // other origins that may call with credentials
	TrustedProxies []netip.Prefix // the proxies whose X-Forwarded-For is trusted
}

// Router passes each request through the checks that the policy of its route requires, and then to the handler of the
// route. It writes the errors of all of them, and logs and measures every request.
type Router struct {
	Config
	// UnknownPage responds to a browser that navigates to a path without a route for GET. Every other request for such a
	// path gets a problem document. Set before the first request; nil: there is no such page.
	UnknownPage stdhttp.HandlerFunc

	mux      *chi.Mux
	api      huma.API
	requests *exchange.RequestSlots
	heavy    map[route.Bucket]*exchange.Queues
	replays  replays
	hosts    listener.Hosts
	table    route.Table
	params   map[string]route.Param // of table
	hidden   map[string]bool        // methods and patterns of hideParameters
}

// New returns a Router for a table of routes.
func New(config Config, table route.Table) (*Router, error) {
	params, err := paramsOf(table)
	if err != nil {
		return nil, err
	}
	rt := &Router{Config: config, mux: chi.NewMux(), heavy: heavyQueues(), hosts: listener.NewHosts(config.Listen, config.BaseURL.Host), table: table, params: params}
	rt.requests = exchange.NewRequestSlots(config.MaxRequests)
	rt.replays = replays{config.Idempotency, config.Created, config.Log}
	rt.mux.Use(rt.frameRequest, rt.checkHost, rt.cors(), rt.checkForm, middleware.GetHead)
	rt.mux.NotFound(rt.unknownPath)
	rt.mux.MethodNotAllowed(rt.unknownMethod)
	rt.api = huma.NewAPI(apiConfig(), adapter{rt})
	rt.api.UseMiddleware(rt.checkPath, rt.readBody, rt.enterQueue)
	for _, t := range table.Routes {
		t.Register(rt.api, t.Operation(rt.api), rt.failStream)
	}
	rt.hideParameters()
	route.DescribeIdentifiers(rt.api.OpenAPI())
	return rt, rt.checkTable()
}

// AddPage adds a public page. It is not in the OpenAPI document.
func (rt *Router) AddPage(pattern string, handler stdhttp.HandlerFunc) {
	rt.mux.Get(pattern, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		ex := stateOf(r.Context())
		ex.pattern, ex.public = pattern, true
		compress(w, r, handler)
	})
}

// Document returns the OpenAPI document of the routes as a tree of JSON values.
func (rt *Router) Document() (map[string]any, error) { return route.Document(rt.OpenAPI(), rt.table) }

// Routes returns the table of routes, without the pages.
func (rt *Router) Routes() []route.Route { return rt.table.Routes }

// OpenAPI returns the registered API. Document returns the form that is published.
func (rt *Router) OpenAPI() *huma.OpenAPI { return rt.api.OpenAPI() }

// ServeHTTP handles one request.
func (rt *Router) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) { rt.mux.ServeHTTP(w, r) }

// adapter adds the operations of huma to the router, each behind the guard that its policy requires.
type adapter struct{ router *Router }

func (a adapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	policy := op.Metadata["policy"].(route.Policy)
	a.router.mux.Method(op.Method, op.Path, a.router.guard(policy, op, handler))
}

func (a adapter) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) { a.router.ServeHTTP(w, r) }

func apiConfig() huma.Config {
	config := huma.DefaultConfig("Turnstone", "1")
	config.CreateHooks = nil // no $schema in responses
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.AllowAdditionalPropertiesByDefault = true // unknown fields are ignored
	config.Formats = map[string]huma.Format{"application/json": response.JSONFormat, "json": response.JSONFormat}
	return config
}
