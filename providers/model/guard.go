package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/actors"
)

// RoundTrip sends the attempt's request and judges the answer's head before the SDK sees it, so that every provider
// classifies refusals by one table and no refusal is read without end.
func (c *Call) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := newPayload(request)
	lean := sent.request(c.ctx, request)
	lean.Header = c.client.withHeaders(request.Header)
	response, err := c.client.transport.RoundTrip(lean)
	sent.letGo()
	if err != nil {
		return nil, c.fail(transportFailure(err))
	}
	if response.StatusCode >= 300 {
		body := c.readRefusal(response)
		return nil, c.fail(ProviderFailure(response.StatusCode, response.Header, body))
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "" && kind != "text/event-stream" {
		body := c.readRefusal(response)
		if named := readProviderError(body); named.given() {
			return nil, c.fail(named.failure(0)) // some gateways say 200 and mean the error in the body
		}
		return nil, c.fail(protocolFailure(fmt.Errorf("the answer is %q and not an event stream", kind)))
	}
	c.guard = &guard{call: c, body: response.Body}
	response.Body = c.guard
	return response, nil
}

// readRefusal is bounded in time by the timer of the first byte, which still runs.
func (c *Call) readRefusal(response *http.Response) []byte {
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	return body
}

// guard reads the body of an answer. It bounds the time that a read may take and keeps the error that ended the body.
//
// Time counts only inside Read: while the caller is slow in taking a chunk nothing is owed by the provider. One timer
// looks now and then how long the read under way has lasted, so that a read costs no timer of its own.
type guard struct {
	call    *Call
	body    io.ReadCloser
	reading atomic.Int64 // when the read under way began, after call.began; 0 while there is none

	mu     sync.Mutex
	idle   *time.Timer // guarded by mu; nil until the first byte
	closed bool        // guarded by mu
	begun  bool        // owned by the attempt's goroutine: there was a first byte
}

func (g *guard) Read(buffer []byte) (int, error) {
	if g.call.failure != nil {
		return 0, g.call.failure
	}
	g.reading.Store(1 + int64(time.Since(g.call.began)))
	n, err := g.body.Read(buffer)
	g.reading.Store(0)
	if n > 0 && !g.begun {
		g.begin()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, g.call.fail(unavailable(fmt.Errorf("reading the answer: %w", err)))
	}
	return n, err
}

// begin replaces the patience for the first byte by the one between reads.
func (g *guard) begin() {
	g.begun = true
	g.call.first.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.idle = time.AfterFunc(g.call.client.options.Idle, g.look)
	}
}

// look ends the attempt when a read has lasted too long, or comes again when it will have.
func (g *guard) look() {
	patience := g.call.client.options.Idle
	left := patience
	if began := g.reading.Load(); began != 0 {
		left -= time.Since(g.call.began) - time.Duration(began)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case left > 0:
		g.idle.Reset(left)
	default:
		g.call.cancel(unavailable(fmt.Errorf("the answer was silent for %s", patience)))
	}
}

// Close is called by the SDK when it refuses the answer, and by the attempt in any case.
func (g *guard) Close() error {
	g.mu.Lock()
	g.closed = true
	if g.idle != nil {
		g.idle.Stop()
	}
	g.mu.Unlock()
	return g.body.Close()
}

// fail keeps the first failure, and returns it.
func (c *Call) fail(failure *actors.ModelError) error {
	if c.failure == nil {
		c.failure = failure
	}
	return c.failure
}

// outcome says how the attempt ended, in the order of who knows best: the caller, our own timeouts, the guard, the
// provider's error events, and at last the decoder, whose complaint means that this is not the wire format.
func (c *Call) outcome(err error) error {
	var failure *actors.ModelError
	switch {
	case c.stopped && err == nil:
		return nil
	case c.sinkErr != nil:
		return c.sinkErr
	case c.parent.Err() != nil:
		return c.parent.Err()
	case errors.As(context.Cause(c.ctx), &failure):
	case c.failure != nil:
		failure = c.failure
	case errors.As(err, &failure):
	case err != nil:
		failure = protocolFailure(err)
	case c.events.noEvents():
		failure = protocolFailure(errors.New("the answer holds no event"))
	default:
		failure = unavailable(errors.New("the answer ended without its end marker"))
	}
	told := *failure
	told.Cut = c.emitted
	return &told
}
