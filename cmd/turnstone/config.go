package main

import (
	"encoding"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	modelapi "turnstone/providers/model"
)

// Config is everything that an operator can set, by the names of the environment. No other package reads that: each
// takes options, made of this. The tags hold what `config doc` prints: env and envDefault are the name and the default,
// help says what it is for, secret marks what is never shown ("url": shown without its password) and may come as
// <NAME>_FILE.
type Config struct {
	Service ServiceConfig `group:"Service"`
	Stores  StoresConfig  `group:"Stores"`
	Model   ModelConfig   `group:"Model"`
	Limits  LimitsConfig  `group:"Limits"`
	Access  AccessConfig  `group:"Access"`
	// OIDC has the providers of TURNSTONE_OIDC_<NAME>_*, by name.
	OIDC map[string]OIDCConfig
}

// ServiceConfig is where the service listens and how it runs.
type ServiceConfig struct {
	Listen         string        `env:"TURNSTONE_LISTEN" envDefault:"127.0.0.1:8080" help:"Where the API and the web app listen, as host:port. Off loopback TURNSTONE_BASE_URL is needed. Requests are answered for the hosts of both, for loopback names and, off loopback, for any IP address; another Host gets 421."`
	BaseURL        httpURL       `env:"TURNSTONE_BASE_URL" help:"Where browsers reach the service. Left out: the address that it listens on. Off loopback it must be https."`
	InternalListen string        `env:"TURNSTONE_INTERNAL_LISTEN" envDefault:"127.0.0.1:9090" help:"Where operators reach /health, /ready without a session, /metrics, profiling and the turn commands. Keep it private. Requests are answered for its host, for loopback names and, off loopback, for any IP address, as probes use; another Host gets 421."`
	InternalHosts  hostNames     `env:"TURNSTONE_INTERNAL_HOSTS" help:"Other names for which the internal listener answers, with commas between: those by which a collector of metrics or a probe addresses it, as turnstone-internal.monitoring.svc. Left out: none."`
	TLSCert        string        `env:"TURNSTONE_TLS_CERT_FILE" help:"Certificate chain (PEM). Left out: plain HTTP, behind a TLS proxy."`
	TLSKey         string        `env:"TURNSTONE_TLS_KEY_FILE" help:"Private key (PEM) of the certificate."`
	DataDir        string        `env:"TURNSTONE_DATA_DIR" envDefault:"./.turnstone" help:"Folder of the node: its lock, the local object store and, under dev, the private servers and the secret."`
	Environment    string        `env:"TURNSTONE_ENVIRONMENT" help:"Name of the installation, shown by GET /version. Left out: development under dev, else production."`
	LogLevel       zapcore.Level `env:"TURNSTONE_LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error."`
	DrainGrace     duration      `env:"TURNSTONE_DRAIN_GRACE" envDefault:"25s" help:"How long live turns may go on after SIGTERM before they are handed on."`
}

// StoresConfig is what the service keeps things in.
type StoresConfig struct {
	DatabaseURL        string `env:"DATABASE_URL" secret:"url" help:"Postgres, as the service's own role: neither owner nor superuser. Left out under dev: a private server."`
	MigrateDatabaseURL string `env:"TURNSTONE_MIGRATE_DATABASE_URL" secret:"url" help:"Postgres, as the owner of the schema. Used by migrate only."`
	RedisURL           string `env:"REDIS_URL" secret:"url" help:"Redis (redis://, rediss:// or unix://), for limits. Left out under dev: a private server."`
	S3Endpoint         string `env:"TURNSTONE_S3_ENDPOINT" help:"Address of an S3-compatible store. Left out: AWS itself."`
	S3Region           string `env:"TURNSTONE_S3_REGION" envDefault:"us-east-1" help:"Region of the bucket."`
	S3Bucket           string `env:"TURNSTONE_S3_BUCKET" help:"Bucket for files; credentials come from the usual AWS_* names. Left out: a folder in the data folder."`
	ClamdAddress       string `env:"TURNSTONE_CLAMD_ADDRESS" help:"ClamAV daemon, as host:port or the path of its socket. Left out: a scanner that finds only the industry's test file, and says so."`
}

// ModelConfig is which language model answers.
type ModelConfig struct {
	Provider      string       `env:"TURNSTONE_MODEL_PROVIDER" envDefault:"scripted" help:"scripted (a demonstration without a model), openai (and all that speak like it) or anthropic."`
	API           string       `env:"TURNSTONE_MODEL_API" envDefault:"chat" help:"Of openai: chat (Chat Completions) or responses."`
	BaseURL       string       `env:"TURNSTONE_MODEL_BASE_URL" help:"Address of the provider. Left out: the vendor's own."`
	APIKey        string       `env:"TURNSTONE_MODEL_API_KEY" secret:"true" help:"Key of the provider. Left out: none is sent."`
	Headers       modelHeaders `env:"TURNSTONE_MODEL_HEADERS" secret:"true" help:"Headers for every request to the provider (titles too), for gateways that need their own: Name: value, one a line. A header replaces the service's own of the same name; Authorization or X-Api-Key only without TURNSTONE_MODEL_API_KEY."`
	Balanced      string       `env:"TURNSTONE_MODEL_BALANCED" help:"The provider's name of the model behind the profile balanced. Needed with every provider but scripted."`
	DeepReasoning string       `env:"TURNSTONE_MODEL_DEEP_REASONING" help:"The same for deep_reasoning. Left out: that of balanced."`
	Coding        string       `env:"TURNSTONE_MODEL_CODING" help:"The same for coding. Left out: that of balanced."`
}

// LimitsConfig is how much one account, or one address without a session, may ask for.
type LimitsConfig struct {
	Chat           rate  `env:"TURNSTONE_LIMIT_CHAT" envDefault:"60/1m burst 20" help:"Starting and steering turns. Cancelling has a reserve of its own."`
	Writes         rate  `env:"TURNSTONE_LIMIT_WRITES" envDefault:"120/1m burst 30" help:"Changes of what is kept."`
	Reads          rate  `env:"TURNSTONE_LIMIT_READS" envDefault:"600/1m burst 100" help:"Reads; counted by each node for itself."`
	Replays        rate  `env:"TURNSTONE_LIMIT_REPLAYS" envDefault:"60/1m burst 30" help:"Streams and snapshots of turns that have ended; counted by each node for itself. Resuming a live turn is free."`
	SignIn         rate  `env:"TURNSTONE_LIMIT_SIGNIN" envDefault:"5/15m burst 5" help:"Attempts to sign in to an account, or to register, from one network (an IPv4 address, an IPv6 /48). All networks together have four times as many in four times as long for an account, and each of them then one more; browsers that signed in to the account before are counted for themselves."`
	Refusals       rate  `env:"TURNSTONE_LIMIT_REFUSALS" envDefault:"600/1m burst 300" help:"Requests of one address that end in 401 or 403; beyond, they get 429. Counted by each node for itself. Requests that succeed never draw from it."`
	MaxLiveTurns   int   `env:"TURNSTONE_MAX_LIVE_TURNS" envDefault:"5" help:"Turns of an account that may be live at once."`
	TokensPerDay   int64 `env:"TURNSTONE_TOKENS_PER_DAY" envDefault:"0" help:"Model tokens of an account and UTC day, read and written, titles included. Beyond, turns end as budget_reached and new ones get 429. 0: no limit."`
	MaxStreams     int   `env:"TURNSTONE_MAX_STREAMS" envDefault:"50" help:"Streams of an account that may be open at once on one node."`
	MaxConnections int   `env:"TURNSTONE_MAX_CONNECTIONS" envDefault:"20000" help:"Connections that the public listener keeps open at once, streams included; further ones are closed. About 20 kB of memory each, and a file descriptor."`
}

// AccessConfig is who is let in.
type AccessConfig struct {
	Secret         secrets  `env:"TURNSTONE_SECRET" secret:"true" help:"The keys of sessions, CSRF tokens, cursors and shares are derived from it: at least 32 random bytes, as text. For a rotation two values, the new one first, with a comma between. dev makes one in the data folder."`
	AllowedOrigins origins  `env:"TURNSTONE_ALLOWED_ORIGINS" help:"Other origins whose pages may call with credentials, exact, with commas between. They must be of the same site."`
	TrustedProxies prefixes `env:"TURNSTONE_TRUSTED_PROXIES" help:"Networks (CIDR) of the proxies whose X-Forwarded-For is believed, with commas between."`
	Registration   string   `env:"TURNSTONE_REGISTRATION" envDefault:"open" help:"open: anybody may make an account; closed: operators make them (turnstone user add)."`
}

// OIDCConfig is an OpenID Connect provider to sign in with.
type OIDCConfig struct {
	Issuer       string   `env:"ISSUER" help:"Address of the provider."`
	ClientID     string   `env:"CLIENT_ID" help:"What the provider calls this service."`
	ClientSecret string   `env:"CLIENT_SECRET" secret:"true" help:"The secret that goes with it."`
	Scopes       []string `env:"SCOPES" envSeparator:"," envDefault:"openid,email,profile" help:"What is asked for, with commas between."`
}

// rate is how often something may happen: so many in a time, and so many at once.
type rate struct {
	Count int
	Per   time.Duration
	Burst int
}

var _ encoding.TextUnmarshaler = (*rate)(nil)

// UnmarshalText reads "30/1m burst 10"; without a burst it is the count.
func (r *rate) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf(`%q is no rate, as "30/1m burst 10"`, text)
	fields := strings.Fields(string(text))
	if len(fields) != 1 && (len(fields) != 3 || fields[1] != "burst") {
		return wrong
	}
	count, per, found := strings.Cut(fields[0], "/")
	if !found {
		return wrong
	}
	if !strings.ContainsAny(per[:min(1, len(per))], "0123456789") {
		per = "1" + per // 30/m
	}
	parsed := rate{}
	var err error
	if parsed.Count, err = strconv.Atoi(count); err != nil {
		return wrong
	}
	if parsed.Per, err = time.ParseDuration(per); err != nil {
		return wrong
	}
	parsed.Burst = parsed.Count
	if len(fields) == 3 {
		if parsed.Burst, err = strconv.Atoi(fields[2]); err != nil {
			return wrong
		}
	}
	if parsed.Count < 1 || parsed.Burst < 1 || parsed.Per <= 0 {
		return wrong
	}
	*r = parsed
	return nil
}

func (r rate) String() string {
	return fmt.Sprintf("%d/%s burst %d", r.Count, duration(r.Per), r.Burst)
}

// duration is a time.Duration that prints without zeros.
type duration time.Duration

// UnmarshalText reads "25s".
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%q is no duration, as 25s", text)
	}
	*d = duration(parsed)
	return nil
}

func (d duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// httpURL is an address of an origin: scheme and host, nothing behind.
type httpURL struct{ *url.URL }

// UnmarshalText reads https://chat.example.org.
func (u *httpURL) UnmarshalText(text []byte) error {
	parsed, err := parseOrigin(strings.TrimSuffix(string(text), "/"))
	if err != nil {
		return err
	}
	u.URL = parsed
	return nil
}

func (u httpURL) String() string {
	if u.URL == nil {
		return ""
	}
	return u.URL.String()
}

func parseOrigin(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" ||
		parsed.Scheme+"://"+parsed.Host != text {
		return nil, fmt.Errorf("%q is no origin, as https://chat.example.org", text)
	}
	return parsed, nil
}

// origins are exact origins; "*" and "null" are none.
type origins []string

// UnmarshalText reads origins with commas between.
func (o *origins) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if _, err := parseOrigin(one); err != nil {
			return err
		}
		*o = append(*o, one)
	}
	return nil
}

func (o origins) String() string { return strings.Join(o, ",") }

// hostNames are names without a port or a wildcard.
type hostNames []string

var hostName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// UnmarshalText reads names with commas between.
func (h *hostNames) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if !hostName.MatchString(one) {
			return fmt.Errorf("%q is not a host name without a port, as metrics.example.org", one)
		}
		*h = append(*h, one)
	}
	return nil
}

func (h hostNames) String() string { return strings.Join(h, ",") }

// prefixes are networks.
type prefixes []netip.Prefix

// UnmarshalText reads CIDRs, and single addresses, with commas between.
func (p *prefixes) UnmarshalText(text []byte) error {
	for _, one := range splitList(string(text)) {
		if address, err := netip.ParseAddr(one); err == nil {
			*p = append(*p, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(one)
		if err != nil {
			return fmt.Errorf("%q is no network, as 10.0.0.0/8", one)
		}
		*p = append(*p, prefix)
	}
	return nil
}

func (p prefixes) String() string {
	var list []string
	for _, one := range p {
		list = append(list, one.String())
	}
	return strings.Join(list, ",")
}

// secrets are one value, or two during a rotation, the one that signs first.
type secrets [][]byte

const (
	minSecret  = 32
	maxSecrets = 2
	// minDistinct is how many different bytes 32 random ones surely have; fewer is something typed by hand.
	minDistinct = 10
)

// UnmarshalText reads one or two values with a comma between. Its errors never show one.
func (s *secrets) UnmarshalText(text []byte) error {
	list := splitList(string(text))
	if len(list) < 1 || len(list) > maxSecrets {
		return fmt.Errorf("it has %d values; one, or two during a rotation, are needed", len(list))
	}
	for _, one := range list {
		distinct := map[rune]bool{}
		for _, c := range one {
			distinct[c] = true
		}
		if len(one) < minSecret || len(distinct) < minDistinct {
			return fmt.Errorf("a value is too short or too simple: use at least %d random bytes (openssl rand -base64 48)", minSecret)
		}
		*s = append(*s, []byte(one))
	}
	return nil
}

// String hides the values, so that no format verb shows them by mistake.
func (s secrets) String() string { return mask(len(s) > 0) }

// modelHeaders are headers for requests to the model provider.
type modelHeaders struct{ http.Header }

// UnmarshalText reads "Name: value", one a line. Its errors never show a value.
func (h *modelHeaders) UnmarshalText(text []byte) (err error) {
	h.Header, err = modelapi.ParseHeaders(string(text))
	return err
}

// String hides the values, which may be secret.
func (h modelHeaders) String() string { return mask(len(h.Header) > 0) }

func mask(set bool) string {
	if set {
		return "[set]"
	}
	return ""
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r' })
}
