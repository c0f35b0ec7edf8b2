package settings

import (
	"path/filepath"
	"time"

	"go.uber.org/zap/zapcore"
)

// Config holds every setting that an operator can set through environment variables. No other package reads the
// environment; their options are derived from Config. The struct tags are the source of `config doc`: env and
// envDefault hold a setting's name and default, help describes it. secret marks a value that is never shown
// (secret:"url": shown without its password) and that can also be read from the file that <NAME>_FILE names.
type Config struct {
	Service   Service   `group:"Service"`
	Cluster   Cluster   `group:"Cluster"`
	Stores    Stores    `group:"Stores"`
	Model     Model     `group:"Model"`
	Limits    Limits    `group:"Limits"`
	Web       Web       `group:"Web search and web pages"`
	Dictation Dictation `group:"Dictation"`
	Access    Access    `group:"Access"`
	Mail      Mail      `group:"Mail"`
	// OIDC contains the providers configured by TURNSTONE_OIDC_<NAME>_*, keyed by name.
	OIDC map[string]OIDC
}

// Service configures the listeners and how the process runs.
type Service struct {
	Listen         string        `env:"TURNSTONE_LISTEN" envDefault:"127.0.0.1:8080" help:"Address (host:port) on which the API and the web app listen. TURNSTONE_BASE_URL is required if this is not a loopback address. The Host header of a request must contain the host of one of these two settings, a loopback name or, if this is not a loopback address, any IP address; other requests get 421."`
	BaseURL        httpURL       `env:"TURNSTONE_BASE_URL" help:"URL at which browsers reach the service. It must be https unless its host is loopback. Passkeys are bound to its host: with another host, they end. Unset: the address of TURNSTONE_LISTEN."`
	InternalListen string        `env:"TURNSTONE_INTERNAL_LISTEN" envDefault:"127.0.0.1:9090" help:"Address (host:port) of the internal listener, which serves /health, /ready without a session, /openapi.json, /events.schema.json, /metrics, profiling, and the commands for turns and nodes. Keep it private. The Host header of a request must contain the host of this setting, a name from TURNSTONE_INTERNAL_HOSTS, a loopback name or, if this is not a loopback address, any IP address (which probes use); other requests get 421."`
	DocsListen     string        `env:"TURNSTONE_DOCS_LISTEN" help:"Address (host:port) of the documentation origin, which serves these pages, /openapi.json, /events.schema.json and /deprecations to everybody, without cookies and without data. It uses the certificate of TURNSTONE_TLS_CERT_FILE. off: it is not served. Unset: 127.0.0.1:8081 under dev, otherwise off."`
	ContentListen  string        `env:"TURNSTONE_CONTENT_LISTEN" envDefault:"127.0.0.1:8082" help:"Address (host:port) of the sandbox origin, on which artifacts run. It serves one static page, without cookies and without data. It uses the certificate of TURNSTONE_TLS_CERT_FILE. off: it is not served here, for example because another node does."`
	ContentURL     httpURL       `env:"TURNSTONE_CONTENT_URL" help:"URL at which browsers reach the sandbox origin. It must have another origin than TURNSTONE_BASE_URL, and should be another site. Required if TURNSTONE_CONTENT_LISTEN is not a loopback address. Unset: the address of TURNSTONE_CONTENT_LISTEN if TURNSTONE_BASE_URL is a loopback address; otherwise, artifacts are shown but do not run."`
	InternalHosts  hostNames     `env:"TURNSTONE_INTERNAL_HOSTS" help:"Additional host names that the internal listener accepts in the Host header, separated by commas. List the names that metrics collectors and probes use, for example turnstone-internal.monitoring.svc. Unset: none."`
	TLSCert        string        `env:"TURNSTONE_TLS_CERT_FILE" help:"Path of the TLS certificate chain (PEM). Unset: plain HTTP, for use behind a TLS proxy."`
	TLSKey         string        `env:"TURNSTONE_TLS_KEY_FILE" help:"Path of the certificate's private key (PEM)."`
	DataDir        string        `env:"TURNSTONE_DATA_DIR" envDefault:"./.turnstone" help:"Data folder of the node. It holds the node's lock, the local object store and, under dev, the private Postgres and Redis and the generated secret."`
	Environment    string        `env:"TURNSTONE_ENVIRONMENT" help:"Name of the installation, returned by GET /version. Unset: development under dev, otherwise production."`
	LogLevel       zapcore.Level `env:"TURNSTONE_LOG_LEVEL" envDefault:"info" help:"Log level: debug, info, warn or error. dev uses warn unless this is set."`
	RunCode        string        `env:"TURNSTONE_RUN_CODE" envDefault:"on" help:"on: models can run JavaScript (the tool run_code) in limited child processes of the node, at most 4 at the same time, each with up to 640 MiB of memory. off: they cannot."`
	DrainGrace     duration      `env:"TURNSTONE_DRAIN_GRACE" envDefault:"25s" help:"How long live turns may continue after SIGTERM. Turns that are still live then are handed over to another node or to the next process. dev uses 2s unless this is set."`
}

// Cluster configures how the nodes of a cluster reach one another. The file settings are paths.
type Cluster struct {
	Listen    string `env:"TURNSTONE_CLUSTER_LISTEN" help:"Address (host:port) on which this node accepts connections of the other nodes. They always use TLS in both directions, so the three files below are required. Unset: the node is alone, and TURNSTONE_CLUSTER_* must not be set."`
	Advertise string `env:"TURNSTONE_CLUSTER_ADVERTISE" help:"Address (host:port) at which the other nodes reach this one, for example the address of its pod. Required if TURNSTONE_CLUSTER_LISTEN has no host or an unspecified one (0.0.0.0, ::). Unset: the address of TURNSTONE_CLUSTER_LISTEN."`
	CA        string `env:"TURNSTONE_CLUSTER_CA_FILE" help:"Path of the certificates (PEM) of the authority that signs the nodes' certificates (turnstone cluster certs). A node accepts only peers with such a certificate."`
	Cert      string `env:"TURNSTONE_CLUSTER_CERT_FILE" help:"Path of the node's certificate chain (PEM). It needs the DNS name node.turnstone.internal and is used as a server and as a client. A renewed file is used without a restart."`
	Key       string `env:"TURNSTONE_CLUSTER_KEY_FILE" help:"Path of the private key (PEM) of the node's certificate. Only the file's owner may have access to it (mode 0600)."`
}

// Stores configures the stores that the service uses.
type Stores struct {
	DatabaseURL        string `env:"DATABASE_URL" secret:"url" help:"URL of the Postgres database with the service's login role, which must be neither the owner of the schema nor a superuser. Unset under dev: a private server."`
	MigrateDatabaseURL string `env:"TURNSTONE_MIGRATE_DATABASE_URL" secret:"url" help:"URL of the same database with the role that owns the schema. Only migrate and doctor use it."`
	RedisURL           string `env:"REDIS_URL" secret:"url" help:"URL of Redis (redis://, rediss:// or unix://), which stores rate limits. Unset under dev: a private server."`
	S3Endpoint         string `env:"TURNSTONE_S3_ENDPOINT" help:"URL of an S3-compatible object store. Unset: AWS S3."`
	S3Region           string `env:"TURNSTONE_S3_REGION" envDefault:"us-east-1" help:"Region of the bucket."`
	S3Bucket           string `env:"TURNSTONE_S3_BUCKET" help:"Bucket for files. Credentials are read from the usual AWS_* variables. Unset: files are stored in a folder, see TURNSTONE_FILES_DIR."`
	FilesDir           string `env:"TURNSTONE_FILES_DIR" help:"Folder in which files are stored if TURNSTONE_S3_BUCKET is not set. All nodes of a cluster need the same folder, on one host computer or on a shared file system. Unset: objects in the data folder."`
	ClamdAddress       string `env:"TURNSTONE_CLAMD_ADDRESS" help:"Address of the ClamAV daemon: host:port, or the path of its socket. Unset: a scanner that detects only the EICAR test file; /ready reports it as test-signatures."`
}

// Model selects the language model.
type Model struct {
	Provider      string       `env:"TURNSTONE_MODEL_PROVIDER" envDefault:"scripted" help:"Model provider: scripted (scripted answers for demonstrations, without a model), openai (OpenAI and compatible APIs) or anthropic."`
	API           string       `env:"TURNSTONE_MODEL_API" help:"API of the provider openai: chat (Chat Completions) or responses. Unset: responses at api.openai.com, chat elsewhere."`
	BaseURL       string       `env:"TURNSTONE_MODEL_BASE_URL" help:"Base URL of the provider's API. Unset: the vendor's own."`
	APIKey        string       `env:"TURNSTONE_MODEL_API_KEY" secret:"true" help:"API key for the provider. Unset: no key is sent."`
	Headers       modelHeaders `env:"TURNSTONE_MODEL_HEADERS" secret:"true" help:"Additional headers for every request to the provider, including requests for titles, for gateways that require their own headers. One header per line, as Name: value. A header replaces the service's own header of the same name. Authorization, X-Api-Key and Api-Key are allowed only if TURNSTONE_MODEL_API_KEY is unset."`
	Balanced      string       `env:"TURNSTONE_MODEL_BALANCED" help:"The provider's name of the model for the profile balanced. Required unless the provider is scripted."`
	DeepReasoning string       `env:"TURNSTONE_MODEL_DEEP_REASONING" help:"The provider's name of the model for the profile deep_reasoning. Unset: the model of balanced."`
	Coding        string       `env:"TURNSTONE_MODEL_CODING" help:"The provider's name of the model for the profile coding. Unset: the model of balanced."`
	Images        []string     `env:"TURNSTONE_MODEL_IMAGES" help:"The names of those of these models that accept images, separated by commas. They get the pictures of a message; the others get the names and sizes of pictures. Unset: none. Set it before pictures are uploaded: of earlier ones, models get only the thumbnail."`
	Proxy         string       `env:"TURNSTONE_MODEL_PROXY" secret:"url" help:"http or https URL of an outgoing proxy for requests to the provider. Unset: none; HTTPS_PROXY is not used."`
	CAFile        string       `env:"TURNSTONE_MODEL_CA_FILE" help:"Path of certificates (PEM) that are trusted for the provider in addition to those of the system. Unset: none."`
	Config        string       `env:"TURNSTONE_MODEL_CONFIG" help:"Path of a file with several model routes, described below. The other TURNSTONE_MODEL_* variables must then be unset. Unset: those variables describe the only model route."`
}

// Limits limits what one account, or one client address without a session, may request.
type Limits struct {
	Chat             Rate     `env:"TURNSTONE_LIMIT_CHAT" envDefault:"60/1m burst 20" help:"Rate at which turns may be started and steered. Cancelling has a separate limit. A rate is written as count/period burst size, for example 60/1m burst 20; if the burst is left out, it equals the count."`
	Writes           Rate     `env:"TURNSTONE_LIMIT_WRITES" envDefault:"120/1m burst 30" help:"Rate of requests that change stored data."`
	Reads            Rate     `env:"TURNSTONE_LIMIT_READS" envDefault:"600/1m burst 100" help:"Rate of read requests. Each node counts separately."`
	Search           Rate     `env:"TURNSTONE_LIMIT_SEARCH" envDefault:"30/1m burst 30" help:"Rate of searches."`
	Replays          Rate     `env:"TURNSTONE_LIMIT_REPLAYS" envDefault:"60/1m burst 30" help:"Rate of event streams and snapshots of finished turns. Each node counts separately. Resuming a live turn does not count."`
	Uploads          Rate     `env:"TURNSTONE_LIMIT_UPLOADS" envDefault:"60/1m burst 60" help:"Rate at which an account may start uploads."`
	Shares           Rate     `env:"TURNSTONE_LIMIT_SHARES" envDefault:"20/1h burst 20" help:"Rate at which an account may create shares."`
	Shared           Rate     `env:"TURNSTONE_LIMIT_SHARED" envDefault:"60/1m burst 60" help:"Rate at which one client address (an IPv4 address or an IPv6 /64) may read shares. No session is needed to read them."`
	SignIn           Rate     `env:"TURNSTONE_LIMIT_SIGNIN" envDefault:"5/15m burst 5" help:"Rate of attempts, from one network (an IPv4 address or an IPv6 /48), to sign in to one account or to register. For one account, all networks together have four times as many attempts in four times the period; when those are used up, each network has one more in that period. Browsers that signed in to the account before are counted separately, and not in the limit of all networks. The same rate applies to the requests of one network for mails to reset a password, and to the mails to one address."`
	Refusals         Rate     `env:"TURNSTONE_LIMIT_REFUSALS" envDefault:"600/1m burst 300" help:"Rate of requests from one client address that end in 401 or 403; further ones get 429 instead. Each node counts separately. Successful requests do not count."`
	ApprovalLifetime duration `env:"TURNSTONE_APPROVAL_LIFETIME" envDefault:"24h" help:"How long an approval of a tool call can be decided, between 1m and 720h. Afterwards the call does not run, and the turn goes on without it."`
	MaxLiveTurns     int      `env:"TURNSTONE_MAX_LIVE_TURNS" envDefault:"5" help:"Maximum number of live turns per account."`
	NodeLiveTurns    int      `env:"TURNSTONE_NODE_MAX_LIVE_TURNS" envDefault:"1000" help:"Number of live turns up to which a node accepts new ones; further starts get 503 with Retry-After. Turns of other nodes that it takes over may exceed the number. The default takes 0.7 of a processor at 30 tokens per second and turn, and 0.3 of one on the Postgres server (P1 b of benchmarks.md). Every node has its own setting. 0: no limit."`
	NodeResearch     int      `env:"TURNSTONE_NODE_MAX_RESEARCH_TASKS" envDefault:"20" help:"Number of research tasks that run on a node at the same time. Others wait."`
	TokensPerDay     int64    `env:"TURNSTONE_TOKENS_PER_DAY" envDefault:"0" help:"Model tokens (input and output, titles included) that an account may use per UTC day. When they are used up, running turns end with the stop reason budget_reached, and new turns get 429. 0: no limit."`
	WebSearches      int      `env:"TURNSTONE_WEB_SEARCHES_PER_DAY" envDefault:"200" help:"Web searches of an account per UTC day. Further ones fail, and the turn goes on. 0: no limit."`
	WebPages         int      `env:"TURNSTONE_WEB_PAGES_PER_DAY" envDefault:"500" help:"Web pages that an account may read per UTC day. Further ones fail, and the turn goes on. 0: no limit."`
	CodeSeconds      int      `env:"TURNSTONE_CODE_SECONDS_PER_DAY" envDefault:"600" help:"Processor time, in seconds per UTC day, that the calls of run_code of an account may use. Further calls fail, and the turn goes on. 0: no limit."`
	MaxUploadBytes   int64    `env:"TURNSTONE_MAX_UPLOAD_BYTES" envDefault:"104857600" help:"Maximum size of one file, in bytes. A ClamAV daemon must accept as much: StreamMaxLength, MaxFileSize and MaxScanSize."`
	UploadLifetime   duration `env:"TURNSTONE_UPLOAD_LIFETIME" envDefault:"1h" help:"How long an upload accepts its content after its start."`
	MaxFileBytes     int64    `env:"TURNSTONE_MAX_FILE_BYTES" envDefault:"10737418240" help:"Maximum number of bytes that the files of one account have together."`
	MaxTextBytes     int64    `env:"TURNSTONE_MAX_TEXT_BYTES" envDefault:"536870912" help:"Maximum number of bytes that the texts of the files of one account have together."`
	MaxFiles         int64    `env:"TURNSTONE_MAX_FILES" envDefault:"10000" help:"Maximum number of files of one account."`
	MaxStreams       int      `env:"TURNSTONE_MAX_STREAMS" envDefault:"50" help:"Maximum number of open streams per account on one node."`
	MaxConnections   int      `env:"TURNSTONE_MAX_CONNECTIONS" envDefault:"20000" help:"Maximum number of open connections of the public listener, streams included. Further connections are closed at once. Each takes about 20 kB of memory and a file descriptor."`
}

// Web configures the search of the web and the reading of web pages.
type Web struct {
	Providers  searchProviders `env:"TURNSTONE_SEARCH_PROVIDERS" help:"Search engines that are asked in this order until one answers, separated by commas: searxng, brave, tavily, or bundled (about 30 pages for demonstrations, without the web). Unset: under dev bundled, otherwise none; the web can then be neither searched nor read."`
	SearXNGURL string          `env:"TURNSTONE_SEARCH_SEARXNG_URL" secret:"url" help:"URL of a SearXNG server, whose settings must allow the format json. Required for searxng."`
	BraveKey   string          `env:"TURNSTONE_SEARCH_BRAVE_KEY" secret:"true" help:"Key for the Brave Search API. Required for brave."`
	TavilyKey  string          `env:"TURNSTONE_SEARCH_TAVILY_KEY" secret:"true" help:"Key for the Tavily API. Required for tavily."`
	Allow      webAllow        `env:"TURNSTONE_WEB_ALLOW" help:"Hosts and networks (CIDR), separated by commas, from which pages may be read although they are not public, also with http and on any port: wiki.example.org,10.1.0.0/16. Everything in them that needs no sign-in can then be read by every account. Unset: none."`
}

// Dictation configures the server that turns speech into text.
type Dictation struct {
	URL   string `env:"TURNSTONE_TRANSCRIPTION_URL" secret:"url" help:"Base URL of a server with the API of OpenAI for transcriptions, without /audio/transcriptions: https://api.openai.com/v1, or http://whisper:8000/v1. Unset: the app uses the speech recognition of the browser, where there is one."`
	Key   string `env:"TURNSTONE_TRANSCRIPTION_KEY" secret:"true" help:"Key for the server. Unset: none is sent."`
	Model string `env:"TURNSTONE_TRANSCRIPTION_MODEL" help:"Name of the model. Required with TURNSTONE_TRANSCRIPTION_URL, for example whisper-1."`
}

// Access configures authentication and which clients the service trusts.
type Access struct {
	Secret         Secrets  `env:"TURNSTONE_SECRET" secret:"true" help:"Secret from which the keys of sessions, CSRF tokens, cursors and confirmations are derived: at least 32 random bytes, as text. Every node needs the same secret. To rotate it, set two values separated by a comma, the new one first. dev generates one in the data folder."`
	AllowedOrigins origins  `env:"TURNSTONE_ALLOWED_ORIGINS" help:"Additional origins whose pages may send requests with credentials: exact origins, separated by commas. They must be of the same site."`
	TrustedProxies prefixes `env:"TURNSTONE_TRUSTED_PROXIES" help:"Networks (CIDR) of the proxies whose X-Forwarded-For header is trusted, separated by commas."`
	Registration   string   `env:"TURNSTONE_REGISTRATION" envDefault:"open" help:"open: anyone can create an account. closed: only operators create accounts (turnstone user add)."`
}

// Mail configures the mails to the owners of accounts.
type Mail struct {
	URL    string `env:"TURNSTONE_SMTP_URL" secret:"url" help:"URL of the mail server: smtps://user:password@mail.example.org for TLS from the start (port 465 if there is none), or smtp://user:password@mail.example.org for STARTTLS (port 587), which is required except on a loopback address. Without user and password, the service does not sign in to the server; special characters in them are percent-encoded. Unset: no mail is sent, passwords cannot be reset by mail, and a new email address is used without a confirmation."`
	From   string `env:"TURNSTONE_SMTP_FROM" help:"Address from which the mails are sent, for example Turnstone <no-reply@example.org>. Required with TURNSTONE_SMTP_URL."`
	CAFile string `env:"TURNSTONE_SMTP_CA_FILE" help:"Path of certificates (PEM) that are trusted for the mail server in addition to those of the system. Unset: none."`
}

// OIDC configures an OpenID Connect provider for signing in.
type OIDC struct {
	Issuer       string   `env:"ISSUER" help:"Issuer URL of the provider."`
	ClientID     string   `env:"CLIENT_ID" help:"Client ID that the provider assigned to this service."`
	ClientSecret string   `env:"CLIENT_SECRET" secret:"true" help:"Client secret that belongs to the client ID."`
	Scopes       []string `env:"SCOPES" envSeparator:"," envDefault:"openid,email,profile" help:"Scopes to request, separated by commas."`
}

const (
	minSecret  = 32
	maxSecrets = 2
	// minDistinct is the minimum number of different characters. The text of 32 random bytes practically always has
	// more; a value with fewer was probably typed by hand.
	minDistinct = 10
)

// FilesFolder returns the folder in which files are stored if no bucket is configured.
func (c *Config) FilesFolder() string {
	if c.Stores.FilesDir != "" {
		return c.Stores.FilesDir
	}
	return filepath.Join(c.Service.DataDir, "objects")
}

// StopTimeout bounds the shutdown that follows the drain.
const StopTimeout = 30 * time.Second
