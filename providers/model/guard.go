package model

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/actors/llm"
)

// send sends the attempt's request, and checks the status of the response. It follows no redirect: the credentials are
// meant for the configured host only.
func (c *Call) send(request *http.Request) error {
	sent := newPayload(request)
	outgoing := sent.request(c.ctx, request)
	outgoing.Header = c.client.withHeaders(request.Header)
	response, err := c.client.transport.RoundTrip(outgoing) //nolint:bodyclose // readRefusal or the guard closes it
	sent.release()
	if err != nil {
		return c.fail(transportFailure(err))
	}
	if response.StatusCode >= 300 {
		body := readRefusal(response)
		return c.fail(c.client.refusal(response.StatusCode, response.Header, body, c.request))
	}
	c.guard = &guard{call: c, body: response.Body}
	c.guard.accepted()
	return nil
}

// readRefusal reads the body of an error response, up to maxErrorBody bytes. The first-byte timer, which is still
// running, limits its time.
func readRefusal(response *http.Response) []byte {
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	return body
}

// guard reads the body of a response. It limits the time that a read may take, and stores the error that ended the
// body.
//
// Only time inside Read counts: the time that a slow caller takes does not. One timer checks from time to time how long
// the current read has lasted, so that a read does not need its own timer.
type guard struct {
	call    *Call
	body    io.ReadCloser
	reading atomic.Int64 // start of the current read: nanoseconds since call.began, plus 1; 0 if there is none

	mu            sync.Mutex
	idle          *time.Timer // guarded by mu; nil until the first byte
	closed        bool        // guarded by mu
	firstByteRead bool        // owned by the attempt's goroutine: the first byte was read
}

func (g *guard) Read(buffer []byte) (int, error) {
	if g.call.failure != nil {
		return 0, g.call.failure
	}
	if err := g.call.ctx.Err(); err != nil {
		return 0, g.call.fail(unavailable(err))
	}
	g.reading.Store(1 + int64(time.Since(g.call.began)))
	n, err := g.body.Read(buffer)
	g.reading.Store(0)
	if n > 0 && !g.firstByteRead {
		g.startIdleTimer()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if g.call.complete.Load() {
			return n, io.EOF
		}
		return n, g.call.fail(unavailable(fmt.Errorf("reading the response: %w", err)))
	}
	return n, err
}

// startIdleTimer replaces the first-byte timer with the idle timer.
func (g *guard) startIdleTimer() {
	g.firstByteRead = true
	g.call.first.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.idle = time.AfterFunc(g.timeout(), g.checkIdle)
	}
}

// accepted replaces the limit for the response by the one for the first byte of its body: a provider that has accepted
// the request may work on it for minutes.
func (g *guard) accepted() {
	c := g.call
	timeout := max(c.client.options.FirstData, c.request.FirstByte)
	if !c.first.Stop() {
		return // the attempt has ended
	}
	c.first = time.AfterFunc(timeout, func() {
		c.cancel(pending(fmt.Errorf("the answer did not start within %s", timeout)))
	})
}

// timeout returns the longest silence that the attempt waits for.
func (g *guard) timeout() time.Duration {
	c := g.call
	if c.complete.Load() {
		return min(maxTrailer, c.client.options.Idle)
	}
	return c.client.options.Idle
}

// checkIdle ends the attempt if the current read has lasted too long. Otherwise it runs again at the earliest time at
// which that can be the case.
func (g *guard) checkIdle() {
	timeout := g.timeout()
	left := timeout
	if began := g.reading.Load(); began != 0 {
		left -= time.Since(g.call.began) - time.Duration(began)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case left > 0:
		g.idle.Reset(left)
	case g.call.complete.Load():
		_ = g.body.Close()
	default:
		g.call.cancel(pending(fmt.Errorf("the response was silent for %s", timeout)))
	}
}

// Close closes the body. The attempt calls it in any case.
func (g *guard) Close() error {
	g.mu.Lock()
	g.closed = true
	if g.idle != nil {
		g.idle.Stop()
	}
	g.mu.Unlock()
	return g.body.Close()
}

// fail stores the first failure, and returns it.
func (c *Call) fail(failure *llm.Error) error {
	if c.failure == nil {
		c.failure = failure
	}
	return c.failure
}
