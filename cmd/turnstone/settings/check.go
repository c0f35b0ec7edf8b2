package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"turnstone/http/listener"
	"turnstone/providers/mail"
	"turnstone/providers/model/open"
	"turnstone/providers/model/scripted"
	"turnstone/providers/scanner/clamd"
)

// Check validates settings that are valid individually but may not fit together. It also fills in defaults that depend
// on other settings.
func (c *Config) Check() error {
	for name, address := range map[string]string{
		"TURNSTONE_LISTEN": c.Service.Listen, "TURNSTONE_INTERNAL_LISTEN": c.Service.InternalListen,
	} {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return fmt.Errorf("%s: invalid address %q (want for example 127.0.0.1:8080)", name, address)
		}
	}
	if (c.Service.TLSCert == "") != (c.Service.TLSKey == "") {
		return errors.New("TURNSTONE_TLS_CERT_FILE and TURNSTONE_TLS_KEY_FILE must be set together")
	}
	if c.Service.BaseURL.URL == nil {
		c.Service.BaseURL = httpURL{c.ownAddress()}
	}
	if err := c.checkContent(); err != nil {
		return err
	}
	if c.Access.Registration != "open" && c.Access.Registration != "closed" {
		return fmt.Errorf("TURNSTONE_REGISTRATION: invalid value %q (want open or closed)", c.Access.Registration)
	}
	if lifetime := time.Duration(c.Limits.ApprovalLifetime); lifetime < time.Minute || lifetime > 30*24*time.Hour {
		return errors.New("TURNSTONE_APPROVAL_LIFETIME must be between 1m and 720h")
	}
	if c.Limits.MaxLiveTurns < 1 {
		return errors.New("TURNSTONE_MAX_LIVE_TURNS must be at least 1")
	}
	for name, value := range map[string]int64{
		"TURNSTONE_MAX_UPLOAD_BYTES": c.Limits.MaxUploadBytes, "TURNSTONE_MAX_FILE_BYTES": c.Limits.MaxFileBytes, "TURNSTONE_MAX_FILES": c.Limits.MaxFiles,
		"TURNSTONE_MAX_TEXT_BYTES":  c.Limits.MaxTextBytes,
		"TURNSTONE_UPLOAD_LIFETIME": int64(c.Limits.UploadLifetime),
	} {
		if value < 1 {
			return fmt.Errorf("%s must be positive", name)
		}
	}
	if c.Limits.NodeLiveTurns < 0 {
		return errors.New("TURNSTONE_NODE_MAX_LIVE_TURNS must not be negative (0: no limit)")
	}
	if c.Limits.MaxStreams < 1 {
		return errors.New("TURNSTONE_MAX_STREAMS must be at least 1")
	}
	if c.Limits.MaxConnections < 1 {
		return errors.New("TURNSTONE_MAX_CONNECTIONS must be at least 1")
	}
	if c.Limits.WebSearches < 0 || c.Limits.WebPages < 0 {
		return errors.New("TURNSTONE_WEB_SEARCHES_PER_DAY and TURNSTONE_WEB_PAGES_PER_DAY must not be negative (0: no limit)")
	}
	if c.Limits.CodeSeconds < 0 {
		return errors.New("TURNSTONE_CODE_SECONDS_PER_DAY must not be negative (0: no limit)")
	}
	if c.Service.RunCode != On && c.Service.RunCode != Off {
		return fmt.Errorf("TURNSTONE_RUN_CODE: invalid value %q (want on or off)", c.Service.RunCode)
	}
	for _, check := range []func() error{c.checkCluster, c.checkWeb, c.checkDictation, c.checkDocs} {
		if err := check(); err != nil {
			return err
		}
	}
	return c.checkProviders()
}

// checkWeb checks that each search provider has what it needs, and that nothing is set without its provider.
func (c *Config) checkWeb() error {
	for _, one := range []struct{ provider, name, value string }{
		{SearXNG, "TURNSTONE_SEARCH_SEARXNG_URL", c.Web.SearXNGURL}, {Brave, "TURNSTONE_SEARCH_BRAVE_KEY", c.Web.BraveKey}, {Tavily, "TURNSTONE_SEARCH_TAVILY_KEY", c.Web.TavilyKey},
	} {
		switch listed := slices.Contains(c.Web.Providers, one.provider); {
		case listed && one.value == "":
			return fmt.Errorf("%s is needed with %s in TURNSTONE_SEARCH_PROVIDERS", one.name, one.provider)
		case !listed && one.value != "":
			return fmt.Errorf("%s is set without %s in TURNSTONE_SEARCH_PROVIDERS", one.name, one.provider)
		}
	}
	if c.Web.SearXNGURL != "" && !hasScheme(c.Web.SearXNGURL, "http", "https") {
		return errors.New("TURNSTONE_SEARCH_SEARXNG_URL is not an http or https URL (want for example http://searxng:8080)")
	}
	return nil
}

// checkDictation checks that the server for transcriptions has an address and a model.
func (c *Config) checkDictation() error {
	switch d := c.Dictation; {
	case d.URL == "" && (d.Key != "" || d.Model != ""):
		return errors.New("TURNSTONE_TRANSCRIPTION_URL is needed with TURNSTONE_TRANSCRIPTION_KEY and TURNSTONE_TRANSCRIPTION_MODEL")
	case d.URL == "":
		return nil
	case !hasScheme(d.URL, "http", "https"):
		return errors.New("TURNSTONE_TRANSCRIPTION_URL is not an http or https URL (want for example https://api.openai.com/v1)")
	case d.Model == "":
		return errors.New("TURNSTONE_TRANSCRIPTION_MODEL is needed with TURNSTONE_TRANSCRIPTION_URL (for example whisper-1)")
	}
	return nil
}

// checkDocs also sets the address of the documentation origin if there is none.
func (c *Config) checkDocs() error {
	if c.Service.DocsListen == "" {
		c.Service.DocsListen = Off
	}
	if c.Service.DocsListen == Off {
		return nil
	}
	if _, port, err := net.SplitHostPort(c.Service.DocsListen); err != nil || port == "" {
		return fmt.Errorf("TURNSTONE_DOCS_LISTEN: invalid address %q (want for example 127.0.0.1:8081, or off)", c.Service.DocsListen)
	}
	return nil
}

// checkContent also derives the URL of the sandbox origin from the address on which it listens, if browsers reach the app on a
// loopback address too. Other users would ask a server on their own computer for that address.
func (c *Config) checkContent() error {
	if address := c.Service.ContentListen; address != Off {
		host, port, err := net.SplitHostPort(address)
		if err != nil || port == "" {
			return fmt.Errorf("TURNSTONE_CONTENT_LISTEN: invalid address %q (want for example 127.0.0.1:8082, or off)", address)
		}
		if ip, err := netip.ParseAddr(host); c.Service.ContentURL.URL == nil {
			if err != nil || !ip.IsLoopback() {
				return errors.New("TURNSTONE_CONTENT_URL is needed because TURNSTONE_CONTENT_LISTEN is not a loopback address: set it to the URL at which browsers reach the sandbox origin")
			}
			if isLoopback(c.Service.BaseURL.URL) {
				c.Service.ContentURL = httpURL{&url.URL{Scheme: c.Scheme(), Host: address}}
			}
		}
	}
	switch content, base := c.Service.ContentURL.URL, c.Service.BaseURL.URL; {
	case content == nil:
		return nil
	case content.Host == base.Host:
		return errors.New("TURNSTONE_CONTENT_URL must have another origin than TURNSTONE_BASE_URL: artifacts would have the session of their user")
	case isLoopback(content) && !isLoopback(base):
		return fmt.Errorf("TURNSTONE_CONTENT_URL: %s is a loopback address and TURNSTONE_BASE_URL is not: other computers cannot reach it", content)
	case content.Scheme == "http" && base.Scheme == "https" && !isLoopback(content):
		return fmt.Errorf("TURNSTONE_CONTENT_URL: %s is plain http and TURNSTONE_BASE_URL is not: browsers would not load it", content)
	}
	return nil
}

// checkCluster also derives the advertised address from the one on which the node listens, if only that is set.
func (c *Config) checkCluster() error {
	needed := []struct{ name, value string }{
		{"TURNSTONE_CLUSTER_CA_FILE", c.Cluster.CA}, {"TURNSTONE_CLUSTER_CERT_FILE", c.Cluster.Cert}, {"TURNSTONE_CLUSTER_KEY_FILE", c.Cluster.Key},
	}
	if c.Cluster.Listen == "" {
		for _, one := range append(needed, struct{ name, value string }{"TURNSTONE_CLUSTER_ADVERTISE", c.Cluster.Advertise}) {
			if one.value != "" {
				return fmt.Errorf("%s is set without TURNSTONE_CLUSTER_LISTEN", one.name)
			}
		}
		return nil
	}
	host, err := nodeHost("TURNSTONE_CLUSTER_LISTEN", c.Cluster.Listen)
	if err != nil {
		return err
	}
	for _, one := range needed {
		if one.value == "" {
			return fmt.Errorf("%s is needed with TURNSTONE_CLUSTER_LISTEN: create the files with turnstone cluster certs", one.name)
		}
	}
	if c.Stores.S3Bucket == "" && c.Stores.FilesDir == "" {
		return errors.New("the nodes of a cluster need the same files: set TURNSTONE_S3_BUCKET, or TURNSTONE_FILES_DIR to a folder that all of them share")
	}
	if c.Cluster.Advertise == "" {
		if isUnspecified(host) {
			return fmt.Errorf("TURNSTONE_CLUSTER_ADVERTISE is needed with TURNSTONE_CLUSTER_LISTEN=%s: set it to the address at which the other nodes reach this one", c.Cluster.Listen)
		}
		c.Cluster.Advertise = c.Cluster.Listen
		return nil
	}
	if host, err = nodeHost("TURNSTONE_CLUSTER_ADVERTISE", c.Cluster.Advertise); err == nil && isUnspecified(host) {
		err = fmt.Errorf("TURNSTONE_CLUSTER_ADVERTISE: other nodes cannot connect to %q (want for example 10.0.0.7:7946)", c.Cluster.Advertise)
	}
	return err
}

// nodeHost returns the host of a host:port. The port must be a number and not 0, because other nodes have to know it.
func nodeHost(name, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	_, notIP := netip.ParseAddr(host)
	if err != nil || notNumber != nil || number == 0 || host != "" && notIP != nil && !hostName.MatchString(host) {
		return "", fmt.Errorf("%s: invalid address %q (want for example 10.0.0.7:7946)", name, address)
	}
	return host, nil
}

func isUnspecified(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.IsUnspecified()
}

func (c *Config) checkProviders() error {
	for name, address := range map[string]string{
		"DATABASE_URL": c.Stores.DatabaseURL, "TURNSTONE_MIGRATE_DATABASE_URL": c.Stores.MigrateDatabaseURL,
	} {
		if address != "" && !hasScheme(address, "postgres", "postgresql") {
			return fmt.Errorf("%s is not a Postgres URL (want for example postgres://turnstone@db.example.org/turnstone)", name)
		}
	}
	if c.Stores.RedisURL != "" && !hasScheme(c.Stores.RedisURL, "redis", "rediss", "unix") {
		return errors.New("REDIS_URL is not a Redis URL (want for example redis://cache.example.org:6379)")
	}
	if c.Stores.S3Endpoint != "" {
		if _, err := parseOrigin(strings.TrimSuffix(c.Stores.S3Endpoint, "/")); err != nil {
			return fmt.Errorf("TURNSTONE_S3_ENDPOINT: %w", err)
		}
		if c.Stores.S3Bucket == "" {
			return errors.New("TURNSTONE_S3_ENDPOINT is set without TURNSTONE_S3_BUCKET")
		}
	}
	if c.Stores.ClamdAddress != "" {
		if _, err := clamd.New(c.Stores.ClamdAddress); err != nil {
			return fmt.Errorf("TURNSTONE_CLAMD_ADDRESS: %w", err)
		}
	}
	if c.Model.API != "" && c.Model.API != "chat" && c.Model.API != "responses" {
		return fmt.Errorf("TURNSTONE_MODEL_API: invalid value %q (want chat or responses)", c.Model.API)
	}
	if err := checkKeyHeaders(c.Model.Headers.Header, c.Model.APIKey); err != nil {
		return fmt.Errorf("TURNSTONE_MODEL_HEADERS: %w", err)
	}
	models, err := c.Models()
	if err != nil {
		return err
	}
	if _, err := open.Models(models.Clients); err != nil && c.Model.Config == "" {
		return fmt.Errorf("TURNSTONE_MODEL_*: %w", err)
	}
	if c.Model.Provider != scripted.Family && c.Model.Balanced == "" {
		return fmt.Errorf("TURNSTONE_MODEL_BALANCED is needed with TURNSTONE_MODEL_PROVIDER=%s: set it to the provider's name of a model", c.Model.Provider)
	}
	for _, name := range c.Model.Images {
		if name != c.Model.Balanced && name != c.Model.DeepReasoning && name != c.Model.Coding || name == "" {
			return fmt.Errorf("TURNSTONE_MODEL_IMAGES: %q is not one of the models in TURNSTONE_MODEL_BALANCED, _DEEP_REASONING and _CODING", name)
		}
	}
	if err := c.checkMail(); err != nil {
		return err
	}
	for name, provider := range c.OIDC {
		issuer, err := url.Parse(provider.Issuer)
		if err != nil || issuer.Host == "" || issuer.Scheme != "https" && (issuer.Scheme != "http" || !isLoopback(issuer)) {
			return fmt.Errorf("TURNSTONE_OIDC_%s_ISSUER: %q is not an https URL", strings.ToUpper(name), provider.Issuer)
		}
	}
	return nil
}

func (c *Config) checkMail() error {
	if c.Mail.URL == "" {
		if c.Mail.From != "" || c.Mail.CAFile != "" {
			return errors.New("TURNSTONE_SMTP_FROM and TURNSTONE_SMTP_CA_FILE are set without TURNSTONE_SMTP_URL")
		}
		return nil
	}
	if c.Mail.From == "" {
		return errors.New("TURNSTONE_SMTP_FROM is needed with TURNSTONE_SMTP_URL")
	}
	const anyServer = "smtp://localhost"
	for _, one := range []struct {
		name string
		with mail.Options
	}{
		{"TURNSTONE_SMTP_FROM", mail.Options{URL: anyServer, From: c.Mail.From}},
		{"TURNSTONE_SMTP_CA_FILE", mail.Options{URL: anyServer, From: c.Mail.From, CAFile: c.Mail.CAFile}},
		{"TURNSTONE_SMTP_URL", mail.Options(c.Mail)},
	} {
		if _, err := mail.New(one.with); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

// CheckServe validates the configuration for serve, whose users are on other host computers, in addition to Check.
func (c *Config) CheckServe() error {
	named := c.Service.BaseURL.URL != nil
	if err := c.Check(); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(c.Service.Listen); !named && !listener.IsLoopback(host) {
		return fmt.Errorf("TURNSTONE_BASE_URL is needed with TURNSTONE_LISTEN=%s, which other host computers can reach: set it to the https URL that browsers use", c.Service.Listen)
	}
	for _, needed := range []struct {
		name string
		set  bool
	}{
		{"DATABASE_URL", c.Stores.DatabaseURL != ""},
		{"REDIS_URL", c.Stores.RedisURL != ""},
		{"TURNSTONE_SECRET", len(c.Access.Secret) > 0},
	} {
		if !needed.set {
			return fmt.Errorf("%s is needed by serve (turnstone dev provides its own)", needed.name)
		}
	}
	if base := c.Service.BaseURL; base.Scheme == "http" && !isLoopback(base.URL) {
		return fmt.Errorf("TURNSTONE_BASE_URL: %s is plain http and not loopback: passwords would be sent unencrypted", base)
	}
	return nil
}

// Notes returns what an operator should know about a valid configuration.
func (c *Config) Notes() []string {
	var notes []string
	if c.Stores.ClamdAddress == "" {
		notes = append(notes, "files are not scanned for malware: TURNSTONE_CLAMD_ADDRESS is not set, and the test-signature scanner offers no protection")
	}
	if c.Stores.S3Bucket == "" {
		notes = append(notes, "files are stored in a folder on this host computer: TURNSTONE_S3_BUCKET is not set")
	}
	if c.Mail.URL == "" {
		notes = append(notes, "no mail is sent, so passwords cannot be reset by mail: TURNSTONE_SMTP_URL is not set")
	}
	if c.Service.ContentURL.URL == nil {
		notes = append(notes, "artifacts are shown but do not run: TURNSTONE_CONTENT_URL is not set")
	}
	if len(c.Web.Providers) == 0 {
		notes = append(notes, "the web can be neither searched nor read: TURNSTONE_SEARCH_PROVIDERS is not set")
	}
	if c.Model.Provider == scripted.Family && c.Model.Config == "" {
		notes = append(notes, "answers are scripted: TURNSTONE_MODEL_PROVIDER is not set")
	}
	return notes
}

// ownAddress returns the base URL of a service for which none is configured: the address on which it listens.
func (c *Config) ownAddress() *url.URL {
	host, port, _ := net.SplitHostPort(c.Service.Listen) // checked before
	if isUnspecified(host) {
		host = "127.0.0.1"
	}
	return &url.URL{Scheme: c.Scheme(), Host: net.JoinHostPort(host, port)}
}

// Scheme returns the scheme of the listeners that clients reach.
func (c *Config) Scheme() string {
	if c.Service.TLSCert != "" {
		return "https"
	}
	return "http"
}

func hasScheme(address string, schemes ...string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	for _, scheme := range schemes {
		if parsed.Scheme == scheme {
			return true
		}
	}
	return false
}

func isLoopback(address *url.URL) bool { return listener.IsLoopback(address.Hostname()) }
