// Package model contains what all providers of language models share: the transport, which limits the responses, the
// timeouts, the retry rule, the classification of errors and the estimates of tokens.
//
// A provider is a subfolder of this package that implements llm.Model. It turns an llm.Request into the body of its
// wire format, and the events of the format into method calls on a Call. Everything else happens in this package, so
// that all providers fail in the same way.
//
// The types of the wire formats are our own, because the vendors' libraries refuse what real servers send. Members that
// a server leaves out, renames or sends with another type are the rule (package lenient). Most events of an answer carry a few
// bytes of text in one shape. A lenient.Cursor parses these events; every other event is decoded.
//
// The package does not choose a model, build a history or store anything: packages routing, modelinput and turn do.
//
// A new provider needs one folder, one case in the package open and one run of modeltest.Run.
package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
)

// The defaults of Options, and the limits that no option changes.
const (
	defaultFirstByte     = 60 * time.Second
	defaultFirstData     = 180 * time.Second
	defaultIdle          = 120 * time.Second
	maxTrailer           = 5 * time.Second // silence after a complete answer, before its usage or its end marker
	defaultBackoff       = 500 * time.Millisecond
	defaultMaxRetryAfter = 10 * time.Second

	// maxRetries limits the attempts after the first one. A retry is made only while nothing has been emitted.
	maxRetries = 2
	// maxLessons limits the repetitions of a request without a parameter that the provider refused.
	maxLessons = 4
	// creditInterval is the time between two reports that the credit is used up.
	creditInterval = time.Minute
	// minAskedWait is the shortest wait that is reported to the reader. Waits of at least this length are not limited in
	// number, only by the deadline of the request, because the provider asks for them.
	minAskedWait = time.Second
	// maxHeaderBytes limits the header of a response.
	maxHeaderBytes = 64 << 10
	// maxErrorBody limits the bytes of an error response that are read. The rest is ignored.
	maxErrorBody = 64 << 10
	// maxIdlePerHost limits the idle connections. A node calls one provider, for many turns at the same time.
	maxIdlePerHost = 256
	// readBuffer and writeBuffer are the buffer sizes of an HTTP/1.1 connection, which keeps its buffers until the
	// response ends. They fit a few chunks of an answer, and the head of a request. Longer data bypasses them.
	readBuffer  = 2 << 10
	writeBuffer = 1 << 10
	// pingAfter is the silence after which an HTTP/2 connection is checked, so that a dead connection is found before a
	// request uses it.
	pingAfter = 15 * time.Second
	// keepIdle is the time after which an unused connection is closed.
	keepIdle = 30 * time.Second
)

// defaultConnect is the default of Options.Connect.
var defaultConnect = timelimit.Of(5 * time.Second)

// Options apply to every call to a provider: the operator's headers, and the time limits. The zero value means the
// defaults.
type Options struct {
	Headers       http.Header   // sent with every request; see ParseHeaders
	Connect       time.Duration // for opening a connection, and again for TLS; default 5 s each
	FirstByte     time.Duration // until the response starts, unless the request sets it; default 60 s
	FirstData     time.Duration // then, until its body starts; default 180 s, and not less than the request's FirstByte
	Idle          time.Duration // for one read of the body to return data; default 120 s
	Backoff       time.Duration // before the first retry, then growing; default 500 ms
	MaxRetryAfter time.Duration // the longest wait before a retry of a request without a deadline; default 10 s
	Log           *zap.Logger   // nil: nothing is logged
	Secret        string        // the API key, which must not appear in the log

	Extra  map[string]json.RawMessage // members of every body, in addition to those of the wire format or instead of them
	Drop   []string                   // members that no body has, for example temperature, or reasoning.summary
	Proxy  string                     // http or https URL of an outgoing proxy; empty: none
	CAFile string                     // path of certificates (PEM) that are trusted in addition to those of the system; empty: none
}

func (o Options) withDefaults() Options {
	set := func(value *time.Duration, fallback time.Duration) {
		if *value <= 0 {
			*value = fallback
		}
	}
	set(&o.Connect, defaultConnect)
	set(&o.FirstByte, defaultFirstByte)
	set(&o.FirstData, defaultFirstData)
	set(&o.Idle, defaultIdle)
	set(&o.Backoff, defaultBackoff)
	set(&o.MaxRetryAfter, defaultMaxRetryAfter)
	return o
}

// Client calls one provider. It is safe for concurrent use. Its only goroutines between calls are those of idle
// connections.
type Client struct {
	family    string
	base      *url.URL
	options   Options
	transport *http.Transport
	learned   learned
	credit    atomic.Int64 // when creditUsedUp last logged, in Unix nanoseconds
}

// NewClient returns a client for the provider at baseURL, an absolute http or https address without credentials.
func NewClient(family, baseURL string, options Options) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("the model base URL must be an absolute http or https address")
	}
	query := base.Query()
	query.Del("api-version") // of Azure
	if base.User != nil || len(query) > 0 || base.Fragment != "" {
		return nil, fmt.Errorf("the model base URL must not contain credentials, a fragment or a query other than api-version")
	}
	options = options.withDefaults()
	transport := newTransport(options)
	if options.Proxy != "" {
		proxy, err := url.Parse(options.Proxy)
		if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" {
			return nil, fmt.Errorf("the proxy for the model must be an http or https URL")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	if options.CAFile != "" {
		if transport.TLSClientConfig, err = trusting(options.CAFile); err != nil {
			return nil, err
		}
	}
	return &Client{family: family, base: base, options: options, transport: transport}, nil
}

// trusting returns the settings of TLS that trust the certificates of a file in addition to those of the system.
func trusting(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates for the model: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate (PEM)", path)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// newTransport returns a transport that uses no proxy unless one is configured (not even one of the environment), does not
// decompress (a small compressed body may become a huge one), and limits the response header.
func newTransport(options Options) *http.Transport {
	dialer := &net.Dialer{Timeout: options.Connect, KeepAlive: pingAfter}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    options.Connect,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           maxIdlePerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        keepIdle,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        writeBuffer,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
}

// log returns the logger.
func (c *Client) log() *zap.Logger {
	if c.options.Log == nil {
		return zap.NewNop()
	}
	return c.options.Log
}

// Host returns the host name of the provider. Wire formats use it to distinguish the vendor from compatible servers.
func (c *Client) Host() string { return c.base.Hostname() }

// Stream runs attempt until one succeeds, one has emitted a chunk, or the retries are used up.
//
// An attempt sends the request with call.Post and passes what it receives to the methods of call. It ends with
// call.Finish once it has seen the end marker of its wire format. If it returns nil without it, the answer was cut. Stream
// meets the contract of Stream in llm.Model.
func (c *Client) Stream(
	ctx context.Context, request llm.Request, emit func(llm.Chunk) error,
	attempt func(ctx context.Context, call *Call) error,
) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = c.options.Backoff
	tries, lessons := 0, 0
	var waited time.Duration
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		version := c.learned.version(request.Model)
		err := c.once(ctx, request, emit, attempt)
		var failure *llm.Error
		switch {
		case !errors.As(err, &failure):
			return err
		case failure.Code == codePolicy: // also after the beginning of an answer, which stays
			return errors.Join(emit(llm.Chunk{Kind: llm.ChunkUsage}), emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopRefusal}))
		case failure.Cut:
			return err
		case failure.Code == protocol.ModelCreditUsedUp:
			if failure.Lasting {
				c.creditUsedUp(failure)
			}
			return err
		case lessons < maxLessons && c.learned.learn(c.log(), request.Model, version, failure):
			lessons++
			continue
		case !failure.Retryable || failure.Pending:
			return err
		}
		wait := pause.NextBackOff()
		if failure.RetryAfter > 0 {
			wait = failure.RetryAfter
		}
		if tries++; tries > maxRetries && failure.RetryAfter < minAskedWait || !c.mayWait(request, waited, wait) {
			return err
		}
		waited += wait
		if wait >= minAskedWait && !request.Deadline.IsZero() {
			if err := emit(llm.Chunk{Kind: llm.ChunkWaiting, Wait: wait}); err != nil {
				return err
			}
		}
		if clock.Sleep(ctx, wait) != nil {
			return ctx.Err()
		}
	}
}

// creditUsedUp logs for the operator that no request succeeds until there is new credit, at most once in creditInterval.
func (c *Client) creditUsedUp(failure *llm.Error) {
	last, now := c.credit.Load(), time.Now().UnixNano()
	if (last == 0 || now-last >= int64(creditInterval)) && c.credit.CompareAndSwap(last, now) {
		c.log().Error("the credit with the model's provider is used up: turns fail until it is renewed", zap.Error(failure))
	}
}

// mayWait reports whether a request that has waited for some time may wait again before a retry: until its deadline or,
// if it has none, for MaxRetryAfter in total.
func (c *Client) mayWait(request llm.Request, waited, wait time.Duration) bool {
	if request.Deadline.IsZero() {
		return waited+wait <= c.options.MaxRetryAfter
	}
	return time.Now().Add(wait).Before(request.Deadline)
}

func (c *Client) once(
	ctx context.Context, request llm.Request, emit func(llm.Chunk) error,
	attempt func(ctx context.Context, call *Call) error,
) error {
	call := newCall(ctx, c, request, emit)
	defer call.end()
	return call.outcome(attempt(call.ctx, call))
}

// Ready requests the list of models, which is the cheapest request that needs the credentials. A gateway that has no
// such list (404, 405, 501) or is busy (429) counts as ready: it was reached, and nothing more can be checked.
func (c *Client) Ready(ctx context.Context, path string, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Connect*2)
	defer cancel()
	address := c.Address(path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("calling the model provider: %w", err)
	}
	request.Header = c.withHeaders(header)
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return transportFailure(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // read, so that the connection can be used again
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &llm.Error{
			Code: protocol.ModelUnauthorized,
			Err:  fmt.Errorf("the model provider refuses the API key (%d from %s)", status, address),
		}
	case status < 300, status == http.StatusNotFound, status == http.StatusMethodNotAllowed,
		status == http.StatusNotImplemented, status == http.StatusTooManyRequests:
		return nil
	default:
		return ProviderFailure(status, response.Header, body)
	}
}

// TrimBase removes slashes at the end of baseURL, and then suffix, which operators copy along with the address.
func TrimBase(baseURL, suffix string) string {
	address, query, found := strings.Cut(baseURL, "?")
	address = strings.TrimSuffix(strings.TrimRight(address, "/"), suffix)
	if found {
		address += "?" + query
	}
	return address
}
