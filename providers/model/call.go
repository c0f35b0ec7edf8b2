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

	"turnstone/actors"
)

// errAbandoned ends the context of an attempt that is over; nobody sees it.
var errAbandoned = errors.New("the attempt is over")

// Call is one attempt at an answer: it carries the guarded HTTP client of the attempt and turns what the wire format
// yields into chunks, in order, with usage, opaque state and the stop last. Its methods belong to the goroutine that
// runs the attempt, and each returns an error once the attempt must end.
type Call struct {
	// Set by newCall.
	parent  context.Context
	ctx     context.Context // ends with parent, with a timeout of ours, or with the attempt
	cancel  context.CancelCauseFunc
	client  *Client
	request actors.ModelRequest
	sink    func(actors.ModelChunk) error
	first   *time.Timer // ends the attempt when no body begins in time
	began   time.Time

	// Owned by the attempt's goroutine.
	guard   *guard             // the body, once there is one
	events  eventScanner       // in the body
	text    []byte             // gathered, not yet emitted
	kind    actors.ChunkKind   // of text
	failure *actors.ModelError // what the guard found; it knows better than the SDK's error
	sinkErr error              // the caller wants no more
	emitted bool
	stopped bool
	usage   *actors.ModelUsage // counted, not yet emitted
	counted bool               // the provider counts
	output  sample             // for the estimate, where it does not
	layout  layout
	refused bool
	calls   []actors.ModelToolCall
}

func newCall(
	parent context.Context, client *Client, request actors.ModelRequest, sink func(actors.ModelChunk) error,
) *Call {
	ctx, cancel := context.WithCancelCause(parent)
	patience := client.options.FirstByte
	if request.FirstByte > 0 {
		patience = request.FirstByte
	}
	call := &Call{parent: parent, ctx: ctx, cancel: cancel, client: client, request: request, sink: sink, began: time.Now()}
	call.first = time.AfterFunc(patience, func() {
		cancel(unavailable(fmt.Errorf("no answer began within %s", patience)))
	})
	return call
}

// end releases timers and connection; the body may not be read afterwards.
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

// What may follow an answer's end marker, and for how long it is waited for: the end of the body, mostly.
const (
	maxDrain      = 4 << 10
	drainPatience = 100 * time.Millisecond
)

// drain reads to the end of the body, because a connection whose answer was not read whole is not used again.
func (c *Call) drain() {
	patience := time.AfterFunc(drainPatience, func() { c.cancel(errAbandoned) })
	defer patience.Stop()
	_, _ = io.CopyN(io.Discard, c.guard.body, maxDrain)
}

// HTTP returns the client that this attempt's one request must use. It follows no redirect, because RoundTrip fails on
// one: the credentials are for the configured host.
func (c *Call) HTTP() *http.Client { return &http.Client{Transport: c} }

// Send runs send, which sends the attempt's request, and returns what it returns. It runs in a goroutine of its own,
// that the attempt waits for: the SDKs grow a stack to 32 kB, and the attempt's own goroutine, which waits for the
// answer most of its life, keeps what it has grown to.
func (c *Call) Send(send func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	return <-sent
}

// maxPiece bounds a chunk of text, and with it what one chunk can add to a reader's buffer.
const maxPiece = 32 << 10

// Text takes more of the answer. Chunks that arrive together are emitted as one.
func (c *Call) Text(text string) error { return c.gather(actors.ChunkText, text) }

// Reasoning takes more of a summary of the reasoning.
func (c *Call) Reasoning(text string) error { return c.gather(actors.ChunkReasoning, text) }

// Quoted takes more of the answer (ChunkText) or of the reasoning (ChunkReasoning) as it stands in JSON, without its
// quotes. It takes nothing, and says so, where decoders differ about what the bytes mean.
func (c *Call) Quoted(kind actors.ChunkKind, raw []byte) (taken bool, err error) {
	if err := c.begin(kind); err != nil {
		return true, err
	}
	before := len(c.text)
	text, ok := AppendUnquoted(c.text, raw)
	if c.text = text; !ok {
		c.text = text[:before]
		return false, nil
	}
	return true, c.gathered(len(c.text) - before)
}

func (c *Call) gather(kind actors.ChunkKind, text string) error {
	if text == "" {
		return nil
	}
	if err := c.begin(kind); err != nil {
		return err
	}
	c.text = append(c.text, text...)
	return c.gathered(len(text))
}

// begin makes kind the kind of what is gathered.
func (c *Call) begin(kind actors.ChunkKind) error {
	if c.kind != kind {
		if err := c.flush(); err != nil {
			return err
		}
		c.kind = kind
	}
	return nil
}

func (c *Call) gathered(bytes int) error {
	if bytes > 0 && c.kind == actors.ChunkText {
		c.layout.addText(bytes)
	}
	if len(c.text) >= maxPiece {
		return c.flush()
	}
	return nil
}

// flush emits what was gathered.
func (c *Call) flush() error {
	if len(c.text) == 0 {
		return nil
	}
	all := string(c.text)
	if c.text = c.text[:0]; cap(c.text) > smallBuffer {
		c.text = nil // a long piece is no reason to hold its room until the answer ends
	}
	for all != "" {
		piece := clip(all, maxPiece)
		all = all[len(piece):]
		c.output.add(piece)
		if err := c.emit(actors.ModelChunk{Kind: c.kind, Text: piece}); err != nil {
			return err
		}
	}
	return nil
}

// ToolCall takes one whole call; it is emitted by Stop, because only the end tells whether a limit cut it. A missing
// identifier is made up; arguments that are no JSON object become one that holds them as text, so that the tool refuses
// them by its schema and the model reads why.
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
	c.calls = append(c.calls, actors.ModelToolCall{ID: id, Name: name, Input: inputObject(arguments)})
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

// Opaque keeps what the provider wants back unread at this place of the answer.
func (c *Call) Opaque(raw json.RawMessage) { c.layout.addRaw(raw) }

// Usage takes the provider's count. It is emitted ahead of the next chunk, so that a count alone, which some providers
// send before they have decided to answer, does not forbid a retry.
func (c *Call) Usage(usage actors.ModelUsage) {
	c.usage, c.counted = &usage, true
}

// Refuse says that what the model wrote is a refusal, whatever the wire format calls its end.
func (c *Call) Refuse() { c.refused = true }

// Empty says that the answer holds nothing so far.
func (c *Call) Empty() bool { return !c.emitted && len(c.text) == 0 && len(c.calls) == 0 }

// Terminated says whether the body held the line "data: [DONE]".
func (c *Call) Terminated() bool { return c.events.done }

// Stop ends the answer. Tool calls decide over what the provider calls the end, because some call every end "stop". An
// answer that was cut by a limit or refused runs no tools: what it asked for may be half of what it meant.
func (c *Call) Stop(reason actors.ModelStop) error {
	if err := c.flush(); err != nil {
		return err
	}
	if c.refused {
		reason = actors.StopRefusal
	}
	if reason == actors.StopEndTurn && len(c.calls) > 0 {
		reason = actors.StopToolCalls
		for _, call := range c.calls {
			if err := c.emit(actors.ModelChunk{Kind: actors.ChunkToolCall, ToolCall: call}); err != nil {
				return err
			}
		}
	}
	if !c.counted {
		c.usage = &actors.ModelUsage{
			InputTokens: EstimateRequest(c.request), OutputTokens: c.output.tokens(), Estimated: true,
		}
	}
	if err := c.emitUsage(); err != nil {
		return err
	}
	if raw := c.layout.encode(); raw != nil {
		if err := c.send(actors.ModelChunk{Kind: actors.ChunkOpaque, Opaque: raw}); err != nil {
			return err
		}
	}
	if err := c.send(actors.ModelChunk{Kind: actors.ChunkStop, Stop: reason}); err != nil {
		return err
	}
	c.stopped = true
	return nil
}

func (c *Call) emit(chunk actors.ModelChunk) error {
	if err := c.emitUsage(); err != nil {
		return err
	}
	return c.send(chunk)
}

func (c *Call) emitUsage() error {
	if c.usage == nil {
		return nil
	}
	chunk := actors.ModelChunk{Kind: actors.ChunkUsage, Usage: *c.usage}
	c.usage = nil
	return c.send(chunk)
}

func (c *Call) send(chunk actors.ModelChunk) error {
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
