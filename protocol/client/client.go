package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"turnstone/protocol"
)

// UnusedTimeout is the IdleConnTimeout of a transport for the service. It is shorter than the 5 s after which the
// service closes a connection that never had a request: Go's transport opens spare connections, and a request on one
// that is just being closed fails.
const UnusedTimeout = 2 * time.Second

// Client sends requests as one account, or as none before SignIn or Register. Its methods may be called from any
// goroutine.
type Client struct {
	base    *url.URL
	http    *http.Client
	retry   Retry
	observe func(Attempt)

	mu   sync.Mutex
	csrf string // guarded by mu: sent with unsafe methods; "" without a session
}

// Options configure a Client. Zero values mean the defaults.
type Options struct {
	// HTTP sends the requests. It needs a cookie jar, in which the session is stored, and must not limit the time of a
	// request, because streams are long. Default: a client of its own.
	HTTP *http.Client
	// Retry configures how failed requests are repeated. By default they are not.
	Retry Retry
	// Observe is called for every attempt: after the response header, after an attempt without a response, and after a
	// stream that ended too early. It may be called from any goroutine.
	Observe func(Attempt)
}

// Attempt is the outcome of one request, for Options.Observe.
type Attempt struct {
	Request string // method and path
	Began   time.Time
	Status  int   // 0: no response
	Err     error // of the connection; nil with a response
}

// New returns a client for the API at base, for example "https://chat.example.org".
func New(base string, options Options) (*Client, error) {
	address, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the API: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("invalid API address %q (want for example https://chat.example.org)", base)
	}
	c := &Client{base: address, http: options.HTTP, retry: options.Retry, observe: options.Observe}
	if c.http == nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		c.http = &http.Client{Jar: jar, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: UnusedTimeout,
		}}
	}
	return c, nil
}

// Register creates an account and signs in to it.
func (c *Client) Register(ctx context.Context, email, password, displayName string) (*protocol.SessionInfo, error) {
	return c.openSession(ctx, "/auth/register", map[string]string{"email": email, "password": password, "display_name": displayName})
}

// SignIn signs in to an account.
func (c *Client) SignIn(ctx context.Context, email, password string) (*protocol.SessionInfo, error) {
	return c.openSession(ctx, "/auth/login", map[string]string{"email": email, "password": password})
}

func (c *Client) openSession(ctx context.Context, path string, body any) (*protocol.SessionInfo, error) {
	session := new(protocol.SessionInfo)
	if err := c.Do(ctx, Request{Method: http.MethodPost, Path: path, Body: body}, session); err != nil {
		return nil, err
	}
	c.UseToken(session.CSRFToken)
	return session, nil
}

// UseToken sets the CSRF token of unsafe requests. It is needed only if the session was not created by Register or
// SignIn.
func (c *Client) UseToken(csrf string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.csrf = csrf
}

// SignOut ends the session.
func (c *Client) SignOut(ctx context.Context) error {
	return c.Do(ctx, Request{Method: http.MethodPost, Path: "/auth/logout"}, nil)
}

// NewKey returns a new value for an Idempotency-Key.
func NewKey() string { return rand.Text() }

// Text returns a message that consists of a text.
func Text(text string) []protocol.InputItem { return []protocol.InputItem{{Type: "text", Text: text}} }

// Problem is an error response of the API.
type Problem struct {
	Status     int                   `json:"status"`
	Code       protocol.Code         `json:"code"`
	Title      string                `json:"title"`
	Detail     string                `json:"detail"`
	Current    json.RawMessage       `json:"current"` // the state that caused a 409
	Errors     []protocol.FieldError `json:"errors"`  // the invalid fields of a 400 or 422
	RequestID  string                `json:"request_id"`
	RetryAfter time.Duration         `json:"-"` // 0: not stated
	Request    string                `json:"-"` // method and path
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%s: %d %s", p.Request, p.Status, p.Code)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, invalid := range p.Errors {
		text += fmt.Sprintf("; %s: %s", invalid.Field, invalid.Message)
	}
	return text
}
