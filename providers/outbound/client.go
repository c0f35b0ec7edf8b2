package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The limits of a request.
const (
	maxRedirects   = 3
	maxHeaderBytes = 64 << 10
	maxAddress     = 4096 // characters; longer addresses are seldom accepted by servers
	// MaxBody is the default limit of a body after decompression.
	MaxBody        = 10 << 20
	connectTimeout = 10 * time.Second
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second // with redirects and the body
)

// Config configures a client. The zero value allows public servers only.
type Config struct {
	Allowed Allowed
	// OwnHosts are names of this service. Requests to them are refused, unless they are allowed.
	OwnHosts []string
	// UserAgent is sent with each request.
	UserAgent string

	// For tests. nil and 0: the defaults.
	Resolver *net.Resolver
	TLS      *tls.Config
	Timeout  time.Duration
}

// Client sends requests. Its methods may be called from any goroutine.
type Client struct {
	allowed   Allowed
	own       []string
	userAgent string
	timeout   time.Duration
	resolver  *net.Resolver // nil: that of the system
	tls       *tls.Config
	transport *http.Transport
}

// New returns a client.
func New(config Config) *Client {
	c := &Client{allowed: config.Allowed, userAgent: config.UserAgent, timeout: config.Timeout, resolver: config.Resolver, tls: config.TLS}
	if c.tls == nil {
		c.tls = &tls.Config{}
	}
	for _, name := range config.OwnHosts {
		c.own = append(c.own, strings.ToLower(name))
	}
	if c.timeout == 0 {
		c.timeout = requestTimeout
	}
	c.transport = &http.Transport{
		Proxy: nil, DialContext: c.dial, DialTLSContext: c.dialTLS, ResponseHeaderTimeout: headerTimeout, MaxResponseHeaderBytes: maxHeaderBytes,
		DisableKeepAlives: true, // each connection is checked for the request that uses it
	}
	return c
}

// Error is a request that failed. Its text is a sentence for users, without the text of an error of a library, which may name
// addresses of this network.
type Error struct {
	// Blocked means that the rules of this package refuse the address.
	Blocked bool
	// NoServer means that the name of the host has no address.
	NoServer bool
	Detail   string
	Err      error // nil: none
}

func (e *Error) Error() string { return e.Detail }

func (e *Error) Unwrap() error { return e.Err }

func blocked(format string, args ...any) error {
	return &Error{Blocked: true, Detail: fmt.Sprintf(format, args...)}
}

// Request is a request without a body.
type Request struct {
	Address string
	// Header has additional headers. After a redirect to another host only Accept and Accept-Language are sent.
	Header http.Header
	// Redirect is called before a redirect is followed; its error ends the request. nil: every allowed redirect is followed.
	Redirect func(to *url.URL) error
	// MaxBody limits the body after decompression; 0: the default.
	MaxBody int64
}

// Response is a response with its body.
type Response struct {
	Status int
	URL    *url.URL // after redirects
	Header http.Header
	Body   []byte
	Cut    bool // the body was longer than its limit
}

// Get sends a GET request, follows redirects, and reads the body.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	address, err := Parse(r.Address)
	if err != nil {
		return nil, err
	}
	if err := c.check(address); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, blocked("This is not a valid web address.")
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	request.Header.Set("User-Agent", c.userAgent)
	client := &http.Client{Transport: c.transport, CheckRedirect: c.checkRedirect(r.Redirect)}
	response, err := client.Do(request)
	if err != nil {
		return nil, c.failure(ctx, address, err)
	}
	defer func() { _ = response.Body.Close() }()                                                       // it was only read
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" { // the transport has removed gzip
		return nil, &Error{Detail: "The server used a compression that was not asked for."}
	}
	limit := r.MaxBody
	if limit == 0 {
		limit = MaxBody
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, c.failure(ctx, response.Request.URL, err)
	}
	got := &Response{Status: response.StatusCode, URL: response.Request.URL, Header: response.Header, Body: body}
	if int64(len(body)) > limit {
		got.Body, got.Cut = body[:limit], true
	}
	return got, nil
}

// Parse reads a web address. It refuses what programs read in different ways.
func Parse(text string) (*url.URL, error) {
	if len(text) > maxAddress {
		return nil, blocked("The address is too long.")
	}
	address, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || address.Opaque != "" || address.Host == "" || address.Hostname() == "" || strings.ContainsAny(text, "\\\t\r\n"):
		return nil, blocked("This is not a valid web address.")
	case address.Scheme != "https" && address.Scheme != "http":
		return nil, blocked("Only addresses that start with https:// can be read.")
	case address.User != nil:
		return nil, blocked("An address with a user name or a password cannot be read.")
	}
	address.Fragment, address.RawFragment = "", ""
	return address, nil
}

// check refuses what can be refused without the resolved address.
func (c *Client) check(address *url.URL) error {
	name := strings.ToLower(address.Hostname())
	if c.allowed.host(name) {
		return nil
	}
	literal, err := netip.ParseAddr(name)
	isLiteral := err == nil
	switch {
	case isLiteral && c.allowed.network(literal.Unmap()):
		return nil
	case !isStrict(address) && (isLiteral || len(c.allowed.networks) == 0):
		return errStrict
	case isLiteral && !isPublic(literal.Unmap()):
		return errPrivate
	}
	name = strings.TrimSuffix(name, ".")
	for _, own := range c.own {
		if name == own {
			return errPrivate
		}
	}
	return nil
}

var (
	errStrict  = blocked("Only addresses with https and the usual port can be read. Try the address with https://.")
	errPrivate = blocked("The address is not one of a public server, so it is not read.")
)

// shared are the headers that are also sent to other hosts.
var shared = []string{"User-Agent", "Accept", "Accept-Language"}

// hookError is the error of Request.Redirect.
type hookError struct{ error }

func (c *Client) checkRedirect(hook func(*url.URL) error) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return blocked("The page was redirected more than %d times.", maxRedirects)
		}
		address, err := Parse(next.URL.String())
		if err == nil {
			err = c.check(address)
		}
		if err != nil {
			return err
		}
		if hook != nil {
			if err := hook(address); err != nil {
				return &hookError{err}
			}
		}
		next.Header.Del("Referer")
		if changesHost(next, via) {
			kept := http.Header{}
			for _, name := range shared {
				if value := next.Header.Get(name); value != "" {
					kept.Set(name, value)
				}
			}
			next.Header = kept
		}
		return nil
	}
}

// changesHost reports whether a redirect has led to another host or to another scheme, even if it leads back.
func changesHost(next *http.Request, via []*http.Request) bool {
	first := via[0].URL
	for _, request := range append(via[1:len(via):len(via)], next) {
		if request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
			return true
		}
	}
	return false
}

// dial connects to a host without TLS.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.connect(ctx, network, address, false)
}

// dialTLS connects to a host with TLS.
func (c *Client) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	raw, err := c.connect(ctx, network, address, slices.Contains(publicPorts, port))
	if err != nil {
		return nil, err
	}
	config := c.tls.Clone()
	config.ServerName = strings.TrimSuffix(host, ".")
	secured := tls.Client(raw, config)
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := secured.HandshakeContext(bounded); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return secured, nil
}

// connect connects to a host. Its address is checked after it was resolved, and each one that is tried. public means that the
// host may be any public server.
func (c *Client) connect(ctx context.Context, network, address string, public bool) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: c.resolver}
	if !c.allowed.host(strings.ToLower(host)) {
		own := c.ownAddresses(ctx)
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error { return c.checkResolved(resolved, public, own) }
	}
	return dialer.DialContext(ctx, network, address)
}

// ownAddresses returns the addresses of the host computer and of the names of this service. A name that cannot be resolved has
// none.
func (c *Client) ownAddresses(ctx context.Context) []netip.Addr {
	var own []netip.Addr
	interfaces, _ := net.InterfaceAddrs() // an error gives fewer of them; private ones are refused in any case
	for _, one := range interfaces {
		if network, is := one.(*net.IPNet); is {
			if address, valid := netip.AddrFromSlice(network.IP); valid {
				own = append(own, address.Unmap())
			}
		}
	}
	for _, name := range c.own {
		resolved, _ := c.resolver.LookupNetIP(ctx, "ip", name)
		for _, address := range resolved {
			own = append(own, address.Unmap())
		}
	}
	return own
}

// checkResolved refuses the address of a connection.
func (c *Client) checkResolved(resolved string, public bool, own []netip.Addr) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return errPrivate
	}
	address := at.Addr().Unmap()
	switch {
	case c.allowed.network(address):
		return nil
	case !public:
		return errStrict
	case !isPublic(address) || slices.Contains(own, address):
		return errPrivate
	}
	return nil
}

// failure returns the error of a request that was not answered.
func (c *Client) failure(ctx context.Context, address *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *Error
	var hook *hookError
	switch {
	case errors.As(err, &hook):
		return hook.error
	case errors.As(err, &known):
		return known
	}
	var name *net.DNSError
	var timeout net.Error
	var untrusted *tls.CertificateVerificationError
	detail := "The server of the page did not answer as a web server does."
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		detail = "The server of the page did not answer in time."
	case errors.As(err, &name):
		detail = fmt.Sprintf("There is no server with the name %s.", address.Hostname())
	case errors.As(err, &untrusted):
		detail = "The certificate of the server is not valid, so the page is not read."
	case errors.Is(err, syscall.ECONNREFUSED):
		detail = "The server of the page refused the connection."
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		detail = "The server of the page ended the connection too early."
	case errors.As(err, new(*net.OpError)):
		detail = "The server of the page cannot be reached."
	}
	return &Error{Detail: detail, NoServer: name != nil && name.IsNotFound, Err: err}
}
