// Package model contains what all providers of language models share: the transport, which limits the responses, the
// timeouts, the retry rule, the classification of errors and the estimates of tokens.
//
// A provider is a subfolder of this package that implements llm.Model. It turns an llm.Request into the
// parameters of its vendor's SDK, and the vendor's events into method calls on a Call. Everything else happens in this
// package, so that all providers fail in the same way.
//
// The SDKs are used only for their types and their encoding. Their retries are off, and they read no environment
// variables. The body of a response is read here (guard.go, events.go), because the SDKs accept lines of 32 MiB, do not
// limit an event of many lines, wait forever for a silent server and take the end of a cut body for the end of the
// answer. Most events of an answer carry a few bytes of text in one shape, for which the decoders of the SDKs take tens
// of microseconds. A Cursor (cursor.go) parses these events. Every other event is decoded into the SDK's types.
//
// A new provider needs one folder, one case in the package open and one run of modeltest.Run.
package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
)

// The defaults of Options, and the limits that no option changes.
const (
	defaultFirstByte     = 60 * time.Second
	defaultIdle          = 45 * time.Second
	defaultBackoff       = 500 * time.Millisecond
	defaultMaxRetryAfter = 10 * time.Second

	// maxRetries limits the attempts after the first one. A retry is made only while nothing has been emitted.
	maxRetries = 2
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
	FirstByte     time.Duration // until the body starts, unless the request sets it; default 60 s
	Idle          time.Duration // for one read of the body to return data; default 45 s
	Backoff       time.Duration // before the first retry, then growing; default 500 ms
	MaxRetryAfter time.Duration // the longest Retry-After that a retry waits for; default 10 s
}

func (o Options) withDefaults() Options {
	set := func(value *time.Duration, fallback time.Duration) {
		if *value <= 0 {
			*value = fallback
		}
	}
	set(&o.Connect, defaultConnect)
	set(&o.FirstByte, defaultFirstByte)
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
}

// NewClient returns a client for the provider at baseURL, an absolute http or https address without credentials.
func NewClient(family, baseURL string, options Options) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("the model base URL must be an absolute http or https address")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the model base URL must not contain credentials, a query or a fragment")
	}
	options = options.withDefaults()
	return &Client{family: family, base: base, options: options, transport: newTransport(options)}, nil
}

// newTransport returns a transport that uses no proxy (the operator's address is the address that is dialled), does not
// decompress (a small compressed body may become a huge one), and limits the response header.
func newTransport(options Options) *http.Transport {
	dialer := &net.Dialer{Timeout: options.Connect, KeepAlive: pingAfter}
	return &http.Transport{
		Proxy:                  nil,
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

// Host returns the host name of the provider. Wire formats use it to distinguish the vendor from compatible servers.
func (c *Client) Host() string { return c.base.Hostname() }

// Stream runs attempt until one succeeds, one has emitted a chunk, or the retries are used up.
//
// An attempt sends the request through call.HTTP() and passes what it receives to the methods of call. It ends with
// call.Stop once it has seen the end marker of its wire format. If it returns nil without Stop, the answer was cut.
// Stream meets the contract of Stream in llm.Model.
func (c *Client) Stream(
	ctx context.Context, request llm.Request, emit func(llm.Chunk) error,
	attempt func(ctx context.Context, call *Call) error,
) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = c.options.Backoff
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.once(ctx, request, emit, attempt)
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Cut || !failure.Retryable || try == maxRetries {
			return err
		}
		wait := pause.NextBackOff()
		if failure.RetryAfter > 0 {
			wait = failure.RetryAfter
		}
		if wait > c.options.MaxRetryAfter {
			return err
		}
		if clock.Sleep(ctx, wait) != nil {
			return ctx.Err()
		}
	}
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
	address := c.base.JoinPath(path).String()
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
	return strings.TrimSuffix(strings.TrimRight(baseURL, "/"), suffix)
}
