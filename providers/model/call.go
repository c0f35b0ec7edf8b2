package model

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"turnstone/actors/llm"
)

// errAbandoned is the cancel cause of an attempt that has ended. It is never returned to a caller.
var errAbandoned = errors.New("the attempt has ended")

// Call is one attempt to get an answer. It provides the HTTP client of the attempt, and turns the content of the wire
// format into chunks, in order, with usage, opaque state and the stop last. Only the goroutine that runs the attempt
// may call its methods. When a method returns an error, the attempt must end.
type Call struct {
	// Set by newCall.
	parent  context.Context
	ctx     context.Context // ends with parent, on a timeout, or with the attempt
	cancel  context.CancelCauseFunc
	client  *Client
	request llm.Request
	sink    func(llm.Chunk) error
	first   *time.Timer // ends the attempt if the body does not start in time
	began   time.Time

	// Owned by the attempt's goroutine.
	guard   *guard        // the response body; nil before the response
	events  eventScanner  // of the body
	text    []byte        // gathered, not yet emitted
	kind    llm.ChunkKind // of text
	failure *llm.Error    // found by RoundTrip or the guard; more precise than the SDK's error
	sinkErr error         // the error that sink returned
	emitted bool
	stopped bool
	usage   *llm.Usage // not yet emitted
	counted bool       // the provider has reported usage
	output  sample     // for the estimate if the provider reports no usage
	layout  layout
	refused bool
	calls   []llm.ToolCall
}

func newCall(
	parent context.Context, client *Client, request llm.Request, sink func(llm.Chunk) error,
) *Call {
	ctx, cancel := context.WithCancelCause(parent)
	timeout := client.options.FirstByte
	if request.FirstByte > 0 {
		timeout = request.FirstByte
	}
	call := &Call{parent: parent, ctx: ctx, cancel: cancel, client: client, request: request, sink: sink, began: time.Now()}
	call.first = time.AfterFunc(timeout, func() {
		cancel(unavailable(fmt.Errorf("the response did not start within %s", timeout)))
	})
	return call
}

// end releases the timers and the connection. The body must not be read afterwards.
func (c *Call) end() {
	c.first.Stop()
	if c.guard != nil {
		if c.stopped {
			c.drain()
		}
		_ = c.guard.Close()
	}
	c.cancel(errAbandoned)
}

// The limits of drain, in bytes and in time. Usually only the end of the body follows the end marker of an answer.
const (
	maxDrain     = 4 << 10
	drainTimeout = 100 * time.Millisecond
)

// drain reads to the end of the body, because the transport does not reuse a connection whose response was not read
// completely.
func (c *Call) drain() {
	timer := time.AfterFunc(drainTimeout, func() { c.cancel(errAbandoned) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, c.guard.body, maxDrain)
}

// HTTP returns the client that the attempt must use for its single request. It follows no redirect, because RoundTrip
// returns an error for one: the credentials are meant for the configured host only.
func (c *Call) HTTP() *http.Client { return &http.Client{Transport: c} }

// Send runs send, which sends the attempt's request, in a separate goroutine, waits for it and returns its error. The
// SDKs grow a stack to 32 kB. The attempt's own goroutine would keep that stack while it waits for the answer, which it
// does most of the time.
func (c *Call) Send(send func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	return <-sent
}

// maxPiece limits the bytes of a chunk of text, and so the bytes that one chunk can add to a reader's buffer.
const maxPiece = 32 << 10

// Text adds to the text of the answer. Pieces that arrive together are emitted as one chunk.
func (c *Call) Text(text string) error { return c.addText(llm.ChunkText, text) }

// Reasoning adds to the summary of the reasoning.
func (c *Call) Reasoning(text string) error { return c.addText(llm.ChunkReasoning, text) }

// Quoted adds to the text (ChunkText) or to the reasoning (ChunkReasoning). raw is the content of a JSON string,
// without its quotes and with its escapes. If decoders differ about the meaning of raw, Quoted adds nothing and returns
// false.
func (c *Call) Quoted(kind llm.ChunkKind, raw []byte) (taken bool, err error) {
	if err := c.begin(kind); err != nil {
		return true, err
	}
	before := len(c.text)
	text, ok := AppendUnquoted(c.text, raw)
	if c.text = text; !ok {
		c.text = text[:before]
		return false, nil
	}
	return true, c.textAdded(len(c.text) - before)
}

func (c *Call) addText(kind llm.ChunkKind, text string) error {
	if text == "" {
		return nil
	}
	if err := c.begin(kind); err != nil {
		return err
	}
	c.text = append(c.text, text...)
	return c.textAdded(len(text))
}

// begin sets the kind of the gathered text. It first flushes text of another kind.
func (c *Call) begin(kind llm.ChunkKind) error {
	if c.kind != kind {
		if err := c.flush(); err != nil {
			return err
		}
		c.kind = kind
	}
	return nil
}

func (c *Call) textAdded(bytes int) error {
	if bytes > 0 && c.kind == llm.ChunkText {
		c.layout.addText(bytes)
	}
	if len(c.text) >= maxPiece {
		return c.flush()
	}
	return nil
}

// flush emits the gathered text.
func (c *Call) flush() error {
	if len(c.text) == 0 {
		return nil
	}
	all := string(c.text)
	if c.text = c.text[:0]; cap(c.text) > smallBuffer {
		c.text = nil // do not keep a large buffer until the answer ends
	}
	for all != "" {
		piece := clip(all, maxPiece)
		all = all[len(piece):]
		c.output.add(piece)
		if err := c.emit(llm.Chunk{Kind: c.kind, Text: piece}); err != nil {
			return err
		}
	}
	return nil
}

// ToolCall adds one complete tool call. Stop emits it, because only the end of the answer shows whether a limit has cut
// the call. A missing identifier is generated. Arguments that are not a JSON object are wrapped in one as text, so that
// the tool refuses them by its schema and the model gets the reason.
func (c *Call) ToolCall(id, name, arguments string) error {
	if name == "" {
		return Protocol(errors.New("a tool call without a name"))
	}
	if id == "" {
		id = "call_" + rand.Text()
	}
	c.output.add(name)
	c.output.add(arguments)
	c.layout.addCall()
	c.calls = append(c.calls, llm.ToolCall{ID: id, Name: name, Input: inputObject(arguments)})
	return nil
}

func inputObject(arguments string) json.RawMessage {
	trimmed := strings.TrimSpace(arguments)
	if trimmed == "" || trimmed == "null" {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": arguments})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}

// Opaque adds a part of the answer that must be sent back to the provider unchanged, at its position in the answer.
func (c *Call) Opaque(raw json.RawMessage) { c.layout.addRaw(raw) }

// Usage sets the usage that the provider reports. It is emitted just before the next chunk. Some providers report usage
// before they start to answer; that alone must not prevent a retry.
func (c *Call) Usage(usage llm.Usage) {
	c.usage, c.counted = &usage, true
}

// Refuse marks the answer as a refusal, whatever stop reason the wire format reports.
func (c *Call) Refuse() { c.refused = true }

// Empty reports whether the answer has no text, reasoning or tool calls so far.
func (c *Call) Empty() bool { return !c.emitted && len(c.text) == 0 && len(c.calls) == 0 }

// Terminated reports whether the body contained the line "data: [DONE]".
func (c *Call) Terminated() bool { return c.events.done }

// Stop ends the answer. With tool calls, StopEndTurn becomes StopToolCalls, because some providers report "stop" for
// every end. The tool calls of an answer that was refused or cut by a limit are dropped, because they may be
// incomplete.
func (c *Call) Stop(reason llm.Stop) error {
	if err := c.flush(); err != nil {
		return err
	}
	if c.refused {
		reason = llm.StopRefusal
	}
	if reason == llm.StopEndTurn && len(c.calls) > 0 {
		reason = llm.StopToolCalls
		for _, call := range c.calls {
			if err := c.emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: call}); err != nil {
				return err
			}
		}
	}
	if !c.counted {
		c.usage = &llm.Usage{
			InputTokens: EstimateRequest(c.request), OutputTokens: c.output.tokens(), Estimated: true,
		}
	}
	if err := c.emitUsage(); err != nil {
		return err
	}
	if raw := c.layout.encode(); raw != nil {
		if err := c.send(llm.Chunk{Kind: llm.ChunkOpaque, Opaque: raw}); err != nil {
			return err
		}
	}
	if err := c.send(llm.Chunk{Kind: llm.ChunkStop, Stop: reason}); err != nil {
		return err
	}
	c.stopped = true
	return nil
}

func (c *Call) emit(chunk llm.Chunk) error {
	if err := c.emitUsage(); err != nil {
		return err
	}
	return c.send(chunk)
}

func (c *Call) emitUsage() error {
	if c.usage == nil {
		return nil
	}
	chunk := llm.Chunk{Kind: llm.ChunkUsage, Usage: *c.usage}
	c.usage = nil
	return c.send(chunk)
}

func (c *Call) send(chunk llm.Chunk) error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	c.emitted = true
	if err := c.sink(chunk); err != nil {
		c.sinkErr = err
		return err
	}
	return nil
}
