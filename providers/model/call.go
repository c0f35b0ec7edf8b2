package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/providers/model/lenient"
)

// errAbandoned is the cancel cause of an attempt that has ended. It is never returned to a caller.
var errAbandoned = errors.New("the attempt has ended")

// Call is one attempt to get an answer. It sends the request, and turns the content of the wire
// format into chunks, in order, with usage, opaque state and the stop last. Only the goroutine that runs the attempt
// may call its methods. When a method returns an error, the attempt must end.
type Call struct {
	// Set by newCall.
	parent   context.Context
	ctx      context.Context // ends with parent, on a timeout, or with the attempt
	cancel   context.CancelCauseFunc
	client   *Client
	request  llm.Request
	sink     func(llm.Chunk) error
	first    *time.Timer // ends the attempt if the body does not start in time
	began    time.Time
	complete atomic.Bool // see Complete; set by the attempt's goroutine

	// Owned by the attempt's goroutine.
	guard    *guard        // the response body; nil before the response
	events   eventScanner  // of the body
	text     []byte        // gathered, not yet emitted
	kind     llm.ChunkKind // of text
	failure  *llm.Error    // found by send or the guard
	sinkErr  error         // the error that sink returned
	emitted  bool
	stopped  bool
	usage    *llm.Usage // not yet emitted
	counted  bool       // the provider has reported usage
	output   sample     // for the estimate if the provider reports no usage
	layout   layout
	refused  bool
	cited    []string // addresses; see Cite
	tools    toolCalls
	thoughts thoughts
	answered bool // there is text other than white space
	reasoned bool // there is reasoning other than white space
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
	call.tools.request = &call.request
	call.first = time.AfterFunc(timeout, func() {
		cancel(pending(fmt.Errorf("the response did not start within %s", timeout)))
	})
	return call
}

// end releases the timers and the connection. The body must not be read afterwards.
func (c *Call) end() {
	c.first.Stop()
	if c.guard != nil {
		if c.stopped {
			drain(c)
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
func drain(c *Call) {
	timer := time.AfterFunc(drainTimeout, func() { c.cancel(errAbandoned) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, c.guard.body, maxDrain)
}

// Post sends the attempt's request, with body encoded as JSON, to a path below the base URL. It runs in a separate
// goroutine, because encoding and sending grow a stack. The attempt's own goroutine would keep that stack while it waits
// for the answer, which it does most of the time.
func (c *Call) Post(path string, header http.Header, body any) error {
	sent := make(chan error, 1)
	go func() {
		request, err := c.client.request(c.ctx, c.request.Model, path, header, body)
		if err == nil {
			err = c.send(request)
		}
		sent <- err
	}()
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
	text, ok := lenient.AppendUnquoted(c.text, raw)
	if c.text = text; !ok {
		c.text = text[:before]
		return false, nil
	}
	return true, c.textAdded()
}

func (c *Call) addText(kind llm.ChunkKind, text string) error {
	if text == "" {
		return nil
	}
	if err := c.begin(kind); err != nil {
		return err
	}
	c.text = append(c.text, text...)
	return c.textAdded()
}

// begin sets the kind of the gathered text. It first flushes text of another kind.
func (c *Call) begin(kind llm.ChunkKind) error {
	if c.kind != kind {
		if err := c.flushText(true); err != nil {
			return err
		}
		c.kind = kind
	}
	return nil
}

func (c *Call) textAdded() error {
	if len(c.text) >= maxPiece {
		return c.flush()
	}
	return nil
}

// flush emits the gathered text, except an end that it cannot interpret before more arrives.
func (c *Call) flush() error { return c.flushText(false) }

func (c *Call) flushText(last bool) error {
	if len(c.text) == 0 {
		return nil
	}
	text, half := lenient.Settle(c.text, last)
	if c.text = c.text[:0]; cap(c.text) > smallBuffer {
		c.text = nil // do not keep a large buffer until the answer ends
	}
	held, err := "", error(nil)
	half = bytes.Clone(half)
	if c.kind == llm.ChunkText {
		held, err = c.thoughts.split(text, last, c.emitText)
	} else {
		err = c.emitText(c.kind, text)
	}
	c.text = append(append(c.text, held...), half...)
	return err
}

// emitText emits text or reasoning, in pieces of limited size.
func (c *Call) emitText(kind llm.ChunkKind, text string) error {
	switch blank := strings.TrimSpace(text) == ""; {
	case kind == llm.ChunkThought:
		c.answered = false
		c.layout = layout{}
		return c.emit(llm.Chunk{Kind: llm.ChunkThought})
	case kind == llm.ChunkReasoning && blank && !c.reasoned:
		return nil // some servers mark the absence of reasoning in this way
	case kind == llm.ChunkReasoning:
		c.reasoned = true
	default:
		c.answered = c.answered || !blank
		c.layout.addText(len(text))
	}
	for text != "" {
		piece := clip.Bytes(text, maxPiece)
		text = text[len(piece):]
		c.output.add(piece)
		if err := c.emit(llm.Chunk{Kind: kind, Text: piece}); err != nil {
			return err
		}
	}
	return nil
}

// Opaque adds a part of the answer that must be sent back to the provider unchanged, at its position in the answer.
func (c *Call) Opaque(raw json.RawMessage) error {
	if err := c.flush(); err != nil {
		return err
	}
	c.layout.addRaw(raw)
	return nil
}

// maxCited limits the sources of one answer.
const maxCited = 200

// Cite adds a source on the web that the provider names for the text so far. Each source is added once; an address that readers
// may not follow is left out.
func (c *Call) Cite(title, address string) error {
	if protocol.WebAddress(address).IsZero() || len(c.cited) >= maxCited || slices.Contains(c.cited, address) {
		return nil
	}
	c.cited = append(c.cited, address)
	if err := c.flush(); err != nil {
		return err
	}
	return c.emit(llm.Chunk{Kind: llm.ChunkCitation, Text: title, Address: address})
}

// Usage sets the usage that the provider reports. It is emitted just before the next chunk. Some providers report usage
// before they start to answer; that alone must not prevent a retry. Counts that are negative, larger than lenient.MaxCount or
// all zero are not used; the tokens are then estimated.
func (c *Call) Usage(usage llm.Usage) {
	if min(usage.InputTokens, usage.OutputTokens) < 0 || usage.InputTokens+usage.OutputTokens == 0 || usage.InputTokens > lenient.MaxCount {
		return
	}
	usage.CachedInputTokens = min(max(0, usage.CachedInputTokens), usage.InputTokens)
	usage.ReasoningTokens = min(max(0, usage.ReasoningTokens), usage.OutputTokens)
	c.usage, c.counted = &usage, true
}

// Refuse marks the answer as a refusal, whatever stop reason the wire format reports.
func (c *Call) Refuse() { c.refused = true }

// Empty reports whether the answer has no text, reasoning or tool calls so far.
func (c *Call) Empty() bool {
	return !c.emitted && len(c.text) == 0 && len(c.tools.calls) == 0 && len(c.tools.pieces) == 0
}

// Complete notes that the answer is complete, although more may follow: usage, or the end marker of the wire format.
// If the body ends or breaks now, Events ends as if the marker had been read.
func (c *Call) Complete() { c.complete.Store(true) }

// Terminated reports whether the body contained the line "data: [DONE]", or the answer was complete before the body
// ended.
func (c *Call) Terminated() bool { return c.events.done || c.complete.Load() }

// Stop ends the answer. With tool calls, StopEndTurn becomes StopToolCalls, because some providers report "stop" for
// every end. The tool calls of an answer that was refused or cut by a limit are dropped, because they may be
// incomplete.
func (c *Call) Stop(reason llm.Stop) error {
	if err := c.flushText(true); err != nil {
		return err
	}
	if c.refused {
		reason = llm.StopRefusal
	}
	if rest := c.thoughts.unended(); rest != "" && reason == llm.StopEndTurn && !c.answered && len(c.tools.calls) == 0 {
		if err := c.emitText(llm.ChunkText, rest); err != nil {
			return err
		}
	}
	if reason == llm.StopEndTurn && len(c.tools.calls) > 0 {
		reason = llm.StopToolCalls
		for _, call := range c.tools.calls {
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
		if err := c.pass(llm.Chunk{Kind: llm.ChunkOpaque, Opaque: raw}); err != nil {
			return err
		}
	}
	if err := c.pass(llm.Chunk{Kind: llm.ChunkStop, Stop: reason}); err != nil {
		return err
	}
	c.stopped = true
	return nil
}

func (c *Call) emit(chunk llm.Chunk) error {
	if err := c.emitUsage(); err != nil {
		return err
	}
	return c.pass(chunk)
}

func (c *Call) emitUsage() error {
	if c.usage == nil {
		return nil
	}
	chunk := llm.Chunk{Kind: llm.ChunkUsage, Usage: *c.usage}
	c.usage = nil
	return c.pass(chunk)
}

func (c *Call) pass(chunk llm.Chunk) error {
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
