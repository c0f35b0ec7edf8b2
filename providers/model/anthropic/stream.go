package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// thought is a signed block of thinking, as it is stored in a message's opaque part.
type thought struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// attempt sends one request. The end marker is message_stop; a stream without it was cut.
func (m *Model) attempt(ctx context.Context, request llm.Request, call *model.Call) error {
	answer := answer{call: call}
	if err := call.Send(func() (err error) {
		answer.trimmed, err = m.send(ctx, request, call)
		return err
	}); err != nil {
		return err
	}
	return call.Events(answer.read)
}

// send sends the request, and returns the white space that was removed from its end.
func (m *Model) send(ctx context.Context, request llm.Request, call *model.Call) (trimmed string, err error) {
	params, trimmed := paramsOf(request)
	return trimmed, m.messages.NewStreaming(ctx, params, option.WithHTTPClient(call.HTTP())).Err()
}

// answer collects the data that arrive in pieces: the open block, the usage and the stop reason.
type answer struct {
	call    *model.Call
	trimmed string // white space that the caller already has: it is removed from a continuation
	reason  sdk.StopReason
	usage   llm.Usage

	kind      string // of the open block
	id, name  string
	input     strings.Builder
	thinking  []byte
	signature string
	redacted  string
}

// read processes an event, and reports whether it was the last. It ignores events without a name, which are not part of
// the format.
func (a *answer) read(event model.Event) (last bool, err error) {
	switch string(event.Name) {
	case "", "ping":
		return false, nil
	case "error":
		return false, model.ProviderFailure(0, nil, event.Data)
	}
	if kind, raw, ok := scanDelta(event.Data); ok && a.trimmed == "" {
		if kind == llm.ChunkReasoning {
			a.thinking, ok = model.AppendUnquoted(a.thinking, raw)
		}
		if ok {
			if taken, err := a.call.Quoted(kind, raw); taken {
				return false, err
			}
		}
	}
	return a.decode(event.Data)
}

// decode processes an event of any shape.
func (a *answer) decode(data []byte) (last bool, err error) {
	var event sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &event); err != nil {
		return false, model.Protocol(err)
	}
	if event.Type == "message_stop" {
		return true, a.finish()
	}
	return false, a.take(event)
}

func (a *answer) take(event sdk.MessageStreamEventUnion) error {
	switch event.Type {
	case "message_start":
		usage := event.Message.Usage
		a.count(usage.InputTokens, usage.CacheReadInputTokens, usage.CacheCreationInputTokens)
		a.usage.OutputTokens = int(usage.OutputTokens)
		if event.Message.JSON.Usage.Valid() {
			a.call.Usage(a.usage)
		}
	case "content_block_start":
		return a.begin(event.ContentBlock)
	case "content_block_delta":
		return a.delta(event.Delta)
	case "content_block_stop":
		return a.end()
	case "message_delta":
		a.reason = event.Delta.StopReason
		if event.JSON.Usage.Valid() {
			usage := event.Usage
			a.count(usage.InputTokens, usage.CacheReadInputTokens, usage.CacheCreationInputTokens)
			a.usage.OutputTokens = int(usage.OutputTokens)
			a.usage.ReasoningTokens = int(usage.OutputTokensDetails.ThinkingTokens)
			a.call.Usage(a.usage)
		}
	}
	return nil
}

// count keeps the larger totals, because the last event may omit the input. The format counts cached input separately;
// llm.Usage includes it in InputTokens.
func (a *answer) count(input, read, created int64) {
	a.usage.InputTokens = max(a.usage.InputTokens, int(input+read+created))
	a.usage.CachedInputTokens = max(a.usage.CachedInputTokens, int(read))
}

func (a *answer) begin(block sdk.ContentBlockStartEventContentBlockUnion) error {
	a.kind, a.id, a.name, a.signature, a.redacted = block.Type, block.ID, block.Name, block.Signature, block.Data
	a.input.Reset()
	a.thinking = a.thinking[:0]
	if block.Type == "thinking" {
		return a.think(block.Thinking)
	}
	return a.text(block.Text)
}

func (a *answer) delta(delta sdk.MessageStreamEventUnionDelta) error {
	switch delta.Type {
	case "text_delta":
		return a.text(delta.Text)
	case "thinking_delta":
		return a.think(delta.Thinking)
	case "signature_delta":
		a.signature += delta.Signature
	case "input_json_delta":
		a.input.WriteString(delta.PartialJSON)
	}
	return nil
}

func (a *answer) text(text string) error {
	for a.trimmed != "" && text != "" {
		if text[0] != a.trimmed[0] {
			a.trimmed = ""
			break
		}
		text, a.trimmed = text[1:], a.trimmed[1:]
	}
	return a.call.Text(text)
}

func (a *answer) think(text string) error {
	a.thinking = append(a.thinking, text...)
	return a.call.Reasoning(text)
}

func (a *answer) end() error {
	switch a.kind {
	case "tool_use":
		return a.call.ToolCall(a.id, a.name, a.input.String())
	case "thinking", "redacted_thinking":
		raw, err := json.Marshal(thought{Thinking: string(a.thinking), Signature: a.signature, Redacted: a.redacted})
		if err != nil {
			return model.Protocol(err)
		}
		a.call.Opaque(raw)
	}
	return nil
}

func (a *answer) finish() error {
	switch a.reason {
	case "refusal":
		a.call.Refuse()
	case "max_tokens", "model_context_window_exceeded":
		return a.call.Stop(llm.StopMaxTokens)
	case "":
		if a.call.Empty() {
			return model.Protocol(errors.New("the stream contains no answer"))
		}
	}
	return a.call.Stop(llm.StopEndTurn)
}
