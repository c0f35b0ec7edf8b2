package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/clock"
)

// Request is one request to the API.
type Request struct {
	Method         string
	Path           string // with the query
	Body           any    // encoded as JSON, except for a Content or a Body; nil: no body
	IdempotencyKey string // of a POST: makes repeating it safe. "": none
	Header         http.Header
}

// Content is a body that is sent unchanged. Its request needs a header Content-Type.
type Content []byte

// Body is Content that is read once, while it is sent.
type Body struct {
	Reader io.Reader
	Size   int64
}

// Response is a complete response.
type Response struct {
	Request string // method and path
	Status  int
	Header  http.Header
	Body    []byte
	Took    time.Duration // until the body was read
}

// Replayed reports whether the response is that of an earlier request with the same Idempotency-Key.
func (r *Response) Replayed() bool { return r.Header.Get("Idempotent-Replayed") == "true" }

// Problem returns the error that the response reports; nil for a status below 400.
func (r *Response) Problem() *Problem {
	if r.Status < http.StatusBadRequest {
		return nil
	}
	p := &Problem{}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // an invalid value does not name a problem document
	if media != "application/problem+json" || json.Unmarshal(r.Body, p) != nil {
		p = &Problem{Detail: fmt.Sprintf("%.200s", r.Body)} // the response of a proxy in front of the service
	}
	p.Status, p.Request = r.Status, r.Request
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// Retry configures how Do repeats requests and how a TurnReader reconnects.
type Retry struct {
	// Attempts is the maximum number of attempts of one call of Do, including the first. Default: 1. Do repeats a
	// request after 429, 503, 409 idempotency_in_progress and a lost connection, and only if repeating it is safe: a
	// GET, or a request with an Idempotency-Key.
	Attempts int
	// Wait is the time before the second attempt. It doubles with every attempt, up to MaxWait, and is randomized. A
	// Retry-After of the service replaces it, up to MaxWait. Defaults: 200 ms and 10 s.
	Wait, MaxWait time.Duration
}

const (
	defaultWait    = 200 * time.Millisecond
	defaultMaxWait = 10 * time.Second
)

// wait waits before the next attempt. failed is the number of failed attempts; hint is the wait that the service
// requested, or 0.
func (r Retry) wait(ctx context.Context, failed int, hint time.Duration) error {
	first, limit := r.Wait, r.MaxWait
	if first == 0 {
		first = defaultWait
	}
	if limit == 0 {
		limit = defaultMaxWait
	}
	pause := hint
	if pause == 0 {
		pause = first << min(failed-1, 16)
		pause = pause/2 + rand.N(pause/2+1)
	}
	return clock.Sleep(ctx, min(pause, limit))
}

// Do sends a request, repeats it as Options.Retry allows, and decodes the response body into into, unless that is nil.
// A response with a status of 400 or above is returned as a *Problem. After any other error, it is unknown whether the
// request had an effect.
func (c *Client) Do(ctx context.Context, r Request, into any) error {
	for failed := 1; ; failed++ {
		response, err := c.Send(ctx, r)
		var hint time.Duration
		switch {
		case err == nil:
			problem := response.Problem()
			if problem == nil {
				return response.decode(into)
			}
			if !repeatable(problem) {
				return problem
			}
			err, hint = problem, problem.RetryAfter
		case ctx.Err() != nil:
			return err
		}
		if failed >= c.retry.Attempts || !r.safe() {
			return err
		}
		if waitErr := c.retry.wait(ctx, failed, hint); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

func (r *Response) decode(into any) error {
	if into == nil || len(r.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("%s: decoding the response: %w", r.Request, err)
	}
	return nil
}

// repeatable reports whether a later attempt may succeed.
func repeatable(p *Problem) bool {
	return p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests || p.Code == protocol.CodeIdempotencyBusy
}

// safe reports whether a second attempt of the request has no second effect.
func (r *Request) safe() bool { return r.Method == http.MethodGet || r.IdempotencyKey != "" }

// Send sends a request once and reads the complete response, whatever its status.
func (c *Client) Send(ctx context.Context, r Request) (*Response, error) {
	began := time.Now()
	response, err := c.Open(ctx, r) //nolint:bodyclose // readResponse closes it
	if err != nil {
		return nil, err
	}
	return readResponse(response, began)
}

func readResponse(response *http.Response, began time.Time) (*Response, error) {
	defer func() { _ = response.Body.Close() }() // the body was read, or its error is returned
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &Response{
		Request: response.Request.Method + " " + response.Request.URL.Path, Status: response.StatusCode, Header: response.Header,
		Body: body, Took: time.Since(began),
	}, nil
}

// Open sends a request once and returns the response with an open body, whatever its status.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	request, err := c.NewRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	response, err := c.http.Do(request)
	attempt := Attempt{Request: r.Method + " " + r.Path, Began: began, Err: err}
	if err == nil {
		attempt.Status = response.StatusCode
	}
	if err == nil || ctx.Err() == nil {
		c.report(attempt)
	}
	return response, err
}

// NewRequest returns a request with the headers that the API requires, except for the cookies, which the HTTP client
// adds.
func (c *Client) NewRequest(ctx context.Context, r Request) (*http.Request, error) {
	body, size, err := encodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, c.base.String()+r.Path, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	// Without GetBody, net/http does not repeat a request by itself: every attempt is reported to Options.Observe.
	request.GetBody = nil
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Body != nil && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token := c.token(); token != "" && r.Method != http.MethodGet && r.Method != http.MethodHead && request.Header.Get("X-CSRF-Token") == "" {
		request.Header.Set("X-CSRF-Token", token)
	}
	if r.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", r.IdempotencyKey)
	}
	return request, nil
}

// encodeBody returns the body of a request and its size.
func encodeBody(body any) (io.Reader, int64, error) {
	switch body := body.(type) {
	case nil:
		return nil, 0, nil
	case Content:
		return bytes.NewReader(body), int64(len(body)), nil
	case Body:
		return body.Reader, body.Size, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, 0, fmt.Errorf("encoding the body: %w", err)
	}
	return bytes.NewReader(text), int64(len(text)), nil
}

func (c *Client) token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.csrf
}

func (c *Client) report(a Attempt) {
	if c.observe != nil {
		c.observe(a)
	}
}
