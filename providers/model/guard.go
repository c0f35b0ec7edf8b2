package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"turnstone/actors"
)

// How much an answer may be. A line, and an event of several lines, is read whole before it means anything, so this is
// what a hostile server can make us hold; the SDKs would hold 32 MiB a line and any number of lines.
const (
	maxEventBytes  = 8 << 20
	maxAnswerBytes = 64 << 20
)

var doneMarker = []byte("[DONE]")

// RoundTrip sends the attempt's request and judges the answer's head before the SDK sees it, so that every provider
// classifies refusals by one table and no refusal is read without end.
func (c *Call) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.client.transport.RoundTrip(request)
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

// guard reads the body of an answer for the SDK. It bounds the time that a read may take, the size of an event and of
// the whole, remembers errors that decoders swallow, and sees the end marker that they hide.
//
// Time counts only inside Read: while the caller is slow in taking a chunk nothing is owed by the provider.
type guard struct {
	call *Call
	body io.ReadCloser
	idle *time.Timer // nil until the first byte

	total  int    // bytes of the body
	event  int    // bytes since the last blank line
	head   []byte // how the line that is being read begins
	events int    // lines that carry data
	done   bool   // "data: [DONE]" was read
}

// lineHead is as much of a line as must be kept to know what it is.
const lineHead = len("data: [DONE]")

func (g *guard) Read(buffer []byte) (int, error) {
	if g.call.failure != nil {
		return 0, g.call.failure
	}
	if g.idle != nil {
		g.idle.Reset(g.call.client.options.Idle)
	}
	n, err := g.body.Read(buffer)
	if g.idle != nil {
		g.idle.Stop()
	} else if n > 0 {
		g.begin()
	}
	if failure := g.inspect(buffer[:n]); failure != nil {
		return 0, g.call.fail(failure)
	}
	if errors.Is(err, io.EOF) {
		g.endLine()
		return n, io.EOF
	}
	if err != nil {
		return n, g.call.fail(unavailable(fmt.Errorf("reading the answer: %w", err)))
	}
	return n, nil
}

// begin replaces the patience for the first byte by the one between reads.
func (g *guard) begin() {
	g.call.first.Stop()
	patience, cancel := g.call.client.options.Idle, g.call.cancel
	g.idle = time.AfterFunc(patience, func() {
		cancel(unavailable(fmt.Errorf("the answer was silent for %s", patience)))
	})
	g.idle.Stop()
}

func (g *guard) inspect(part []byte) *actors.ModelError {
	g.total += len(part)
	if g.total > maxAnswerBytes {
		return protocolFailure(fmt.Errorf("the answer is longer than %d bytes", maxAnswerBytes))
	}
	for len(part) > 0 {
		end := bytes.IndexByte(part, '\n')
		piece := part
		if end >= 0 {
			piece = part[:end]
		}
		g.event += len(piece)
		if g.event > maxEventBytes {
			return protocolFailure(fmt.Errorf("an event is longer than %d bytes", maxEventBytes))
		}
		if room := lineHead - len(g.head); room > 0 {
			g.head = append(g.head, piece[:min(room, len(piece))]...)
		}
		if end < 0 {
			return nil
		}
		g.endLine()
		part = part[end+1:]
	}
	return nil
}

func (g *guard) endLine() {
	line := bytes.TrimSuffix(g.head, []byte("\r"))
	if data, found := bytes.CutPrefix(line, []byte("data:")); found {
		g.events++
		g.done = g.done || bytes.HasPrefix(bytes.TrimPrefix(data, []byte(" ")), doneMarker)
	} else if len(line) == 0 {
		g.event = 0
	}
	g.head = g.head[:0]
}

// Close is called by the SDK when it saw an end, and by the attempt in any case.
func (g *guard) Close() error {
	if g.idle != nil {
		g.idle.Stop()
	}
	return g.body.Close()
}

// fail keeps the first failure, and is what is returned to the SDK.
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
	case c.guard != nil && c.guard.total > 0 && c.guard.events == 0:
		failure = protocolFailure(errors.New("the answer holds no event"))
	default:
		failure = unavailable(errors.New("the answer ended without its end marker"))
	}
	told := *failure
	told.Cut = c.emitted
	return &told
}
