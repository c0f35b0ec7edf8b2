// Package model holds what every provider of language models shares: the transport that survives bad answers, the
// timeouts, the retry rule, the classification of errors and the estimates of tokens.
//
// A provider is a folder beside this file that implements actors.Model. It turns an actors.ModelRequest into the
// parameters of its vendor's SDK, and the vendor's events into calls of a Call; everything else happens here, so that
// all providers fail in the same way. The SDKs are used for their types and their encoding only: their retries are
// off, they read no environment, and the body of an answer is read here (guard.go, events.go), because they take lines
// of 32 MiB, put no bound on an event of many lines, wait for ever on a silent server and take the end of a cut body for
// the end of the answer. Most events of an answer bring a few bytes of text in one shape, for which their decoders take
// tens of microseconds: those are walked by a Cursor (cursor.go), and every other event is decoded by the SDK's types.
//
// Adding a provider takes one folder, one case in the package open and one run of modeltest.Run.
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

	"turnstone/actors"
)

// What holds where Options are silent, and what no option moves.
const (
	defaultConnect       = 5 * time.Second
	defaultFirstByte     = 60 * time.Second
	defaultIdle          = 45 * time.Second
	defaultBackoff       = 500 * time.Millisecond
	defaultMaxRetryAfter = 10 * time.Second

	// maxRetries more attempts follow a failed one, and only while nothing has been emitted.
	maxRetries = 2
	// maxHeaderBytes ends an answer whose header does not.
	maxHeaderBytes = 64 << 10
	// maxErrorBody is how much of a refusal is read; the rest is of no use.
	maxErrorBody = 64 << 10
	// maxIdlePerHost connections are kept: a node talks to one provider, with many turns at once.
	maxIdlePerHost = 256
	// readBuffer and writeBuffer are what each connection of HTTP/1.1 holds for as long as an answer lasts: some chunks of
	// it, and the head of a request. What is longer goes past them.
	readBuffer  = 2 << 10
	writeBuffer = 1 << 10
	// pingAfter notices a dead HTTP/2 connection before a turn is put on it.
	pingAfter = 15 * time.Second
	// keepIdle closes connections that nobody used.
	keepIdle = 30 * time.Second
)

// Options are what every call of a provider has in common: the operator's headers, and times that bound it. The zero
// value means the defaults.
type Options struct {
	Headers       http.Header   // sent with every request; see ParseHeaders
	Connect       time.Duration // to open a connection, TLS included; default 5 s each
	FirstByte     time.Duration // until the body begins, where the request does not say; default 60 s
	Idle          time.Duration // between two reads of the body that bring something; default 45 s
	Backoff       time.Duration // before the first retry, growing; default 500 ms
	MaxRetryAfter time.Duration // the longest Retry-After that is waited for; default 10 s
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

// Client asks one provider. It is safe for concurrent use and holds no goroutine of its own beyond idle connections.
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
		return nil, fmt.Errorf("the model base URL must not hold credentials, a query or a fragment")
	}
	options = options.withDefaults()
	return &Client{family: family, base: base, options: options, transport: newTransport(options)}, nil
}

// newTransport never asks a proxy (the operator's address is the address that is dialled), never unpacks (a small
// packed body may be a huge one), and bounds what comes before the body.
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

// Host is the name of the provider's host, by which wire formats tell the vendor from those who speak like it.
func (c *Client) Host() string { return c.base.Hostname() }

// Ask runs attempt until one succeeds, one has emitted a chunk, or the retries are used up.
//
// An attempt sends the request through call.HTTP(), reports what comes through the methods of call and ends with
// call.Stop once it has seen the terminal marker of its wire format; returning without it means that the answer was
// cut. Ask gives the caller what actors.Model promises.
func (c *Client) Ask(
	ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error,
	attempt func(ctx context.Context, call *Call) error,
) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = c.options.Backoff
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.once(ctx, request, emit, attempt)
		var failure *actors.ModelError
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
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (c *Client) once(
	ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error,
	attempt func(ctx context.Context, call *Call) error,
) error {
	call := newCall(ctx, c, request, emit)
	defer call.end()
	return call.outcome(attempt(call.ctx, call))
}

// sleep waits and says whether ctx is still alive.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Ready asks for the list of models, the cheapest question that needs the credentials. A gateway that has no such list
// (404, 405, 501) or is busy (429) was reached, which is all that can be known.
func (c *Client) Ready(ctx context.Context, path string, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Connect*2)
	defer cancel()
	address := c.base.JoinPath(path).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("asking the model provider: %w", err)
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
		return &actors.ModelError{
			Code: codeUnauthorized,
			Err:  fmt.Errorf("the model provider refuses the API key (%d from %s)", status, address),
		}
	case status < 300, status == http.StatusNotFound, status == http.StatusMethodNotAllowed,
		status == http.StatusNotImplemented, status == http.StatusTooManyRequests:
		return nil
	default:
		return ProviderFailure(status, response.Header, body)
	}
}

// TrimBase removes slashes at the end, and suffix, which operators copy along with the address.
func TrimBase(baseURL, suffix string) string {
	return strings.TrimSuffix(strings.TrimRight(baseURL, "/"), suffix)
}
