package search

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	requestTimeout = 8 * time.Second // of one engine, so that another one may still be asked
	maxAnswer      = 2 << 20         // bytes; answers with 20 results have 100 kB
)

// Options replace parts of a client in tests. Zero values: the defaults.
type Options struct {
	BaseURL string
	Timeout time.Duration
}

// caller sends the requests of an engine.
type caller struct {
	name   string
	base   string
	client *http.Client
}

func newCaller(name, base string, options Options) caller {
	if options.BaseURL != "" {
		base = options.BaseURL
	}
	timeout := options.Timeout
	if timeout == 0 {
		timeout = requestTimeout
	}
	return caller{name: name, base: base, client: &http.Client{
		Timeout: timeout, Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it could carry the key elsewhere
	}}
}

// Name implements Engine.
func (c *caller) Name() string { return c.name }

// call sends a request and decodes its answer.
func (c *caller) call(ctx context.Context, request *http.Request, into any) error {
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "Turnstone")
	response, err := c.client.Do(request.WithContext(ctx))
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if err := c.refused(response.StatusCode); err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.unanswered(ctx, err)
	case len(body) > maxAnswer:
		return c.failed(" sent an answer that is too long.", nil)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return c.failed(" did not answer with JSON.", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return c.failed(" sent an answer that cannot be understood.", err)
	}
	return nil
}

// failed returns an error that begins with the name of the engine.
func (c *caller) failed(detail string, err error) error {
	return &Error{Detail: c.name + detail, Err: err}
}

func (c *caller) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if timeout := (interface{ Timeout() bool })(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return c.failed(" did not answer in time.", err)
	}
	return c.failed(" cannot be reached.", err)
}

// refused returns an error for a status that is not a success.
func (c *caller) refused(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return c.failed(" refused this service: its key or its settings are not valid.", nil)
	case status == http.StatusTooManyRequests || status == http.StatusPaymentRequired || status == 432 || status == 433: // the last two: limits of Tavily
		return c.failed(" allows no more requests of this service at the moment.", nil)
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return c.failed(" did not accept the query.", nil)
	}
	return c.failed(" answered with an error.", nil)
}

// objects decodes those elements of a list that have the expected fields.
func objects[T any](list []json.RawMessage, result func(*T) Result) []Result {
	var all []Result
	for _, raw := range list {
		var one T
		if json.Unmarshal(raw, &one) == nil {
			all = append(all, result(&one))
		}
	}
	return all
}
