package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/lenient"
)

// thought is a signed block of thinking, as it is stored in a message's opaque part.
type thought struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// attempt sends one request. The end marker is message_stop; a stream without it and without a stop reason was cut.
func (m *Model) attempt(_ context.Context, request llm.Request, call *model.Call) error {
	body, trimmed := bodyOf(request)
	body.Stream = true
	if familyOf(request.Model) != "" {
		body.cache()
	}
	if err := call.Post("v1/messages", m.header(), body); err != nil {
		return err
	}
	answer := answer{call: call, trimmed: trimmed}
	if err := call.Events(answer.read); err != nil || answer.stopped || !call.Terminated() {
		return err
	}
	return answer.finish()
}

// streamEvent is an event of an answer, or a whole answer.
type streamEvent struct {
	Type         lenient.Text  `json:"type"`
	Message      wholeMessage  `json:"message"`
	ContentBlock answerBlock   `json:"content_block"`
	Delta        blockDelta    `json:"delta"`
	Usage        messageUsage  `json:"usage"`
	Content      []answerBlock `json:"content"`
	StopReason   lenient.Text  `json:"stop_reason"`
}

type wholeMessage struct {
	Usage messageUsage `json:"usage"`
}

type answerBlock struct {
	Type      lenient.Text    `json:"type"`
	ID        lenient.Text    `json:"id"`
	Name      lenient.Text    `json:"name"`
	Text      lenient.Text    `json:"text"`
	Thinking  lenient.Text    `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Input     json.RawMessage `json:"input"`
}

type blockDelta struct {
	Type        lenient.Text `json:"type"`
	Text        lenient.Text `json:"text"`
	Thinking    lenient.Text `json:"thinking"`
	Signature   string       `json:"signature"`
	PartialJSON lenient.Text `json:"partial_json"`
	StopReason  lenient.Text `json:"stop_reason"`
	Citation    struct {
		URL   lenient.Text `json:"url"`
		Title lenient.Text `json:"title"`
	} `json:"citation"`
}

type messageUsage struct {
	Input        lenient.Count `json:"input_tokens"`
	Output       lenient.Count `json:"output_tokens"`
	CacheRead    lenient.Count `json:"cache_read_input_tokens"`
	CacheCreated lenient.Count `json:"cache_creation_input_tokens"`
	Details      struct {
		Thinking lenient.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// answer collects the data that arrive in pieces: the open block, the usage and the stop reason.
type answer struct {
	call    *model.Call
	trimmed string // white space that the caller already has: it is removed from a continuation
	reason  string
	usage   llm.Usage
	stopped bool // the end marker was read

	kind      string // of the open block
	id, name  string
	input     strings.Builder
	whole     string // the input at the start of the block, which is used if no pieces follow
	thinking  []byte
	signature string
	redacted  string
}

// read processes an event, and reports whether it was the last. The type of an event is in its data, because some servers
// do not name their events.
func (a *answer) read(event model.Event) (last bool, err error) {
	if kind, raw, ok := scanDelta(event.Data); ok && a.trimmed == "" && !event.Failed {
		if kind == llm.ChunkReasoning {
			a.thinking, ok = lenient.AppendUnquoted(a.thinking, raw)
		}
		if ok {
			if taken, err := a.call.Quoted(kind, raw); taken {
				return false, err
			}
		}
	}
	if event.Done() {
		return true, nil
	}
	return a.decode(event)
}

// decode processes an event of any shape.
func (a *answer) decode(raw model.Event) (last bool, err error) {
	if err := a.call.EventError(raw); err != nil {
		return false, err
	}
	var event streamEvent
	if err := lenient.Decode(raw.Data, &event); err != nil {
		return false, model.Protocol(err)
	}
	switch {
	case event.Type == "message_stop":
		a.stopped = true
		return true, a.finish()
	case raw.Whole && event.Type == "message":
		for i := range event.Content {
			if err := errors.Join(a.begin(&event.Content[i]), a.end()); err != nil {
				return false, err
			}
		}
		a.count(&event.Usage)
		a.reason, a.stopped = string(event.StopReason), true
		return true, a.finish()
	}
	return false, a.take(&event)
}

func (a *answer) take(event *streamEvent) error {
	switch event.Type {
	case "message_start":
		a.count(&event.Message.Usage)
	case "content_block_start":
		return a.begin(&event.ContentBlock)
	case "content_block_delta":
		return a.delta(&event.Delta)
	case "content_block_stop":
		return a.end()
	case "message_delta":
		a.count(&event.Usage)
		if event.Delta.StopReason != "" {
			a.reason = string(event.Delta.StopReason)
			a.call.Complete()
		}
	}
	return nil
}

// count keeps the larger totals of the input, because the last event may omit it. The format counts cached input
// separately; llm.Usage includes it in InputTokens.
func (a *answer) count(usage *messageUsage) {
	if min(usage.Input, usage.Output, usage.CacheRead, usage.CacheCreated) < 0 {
		return
	}
	a.usage.InputTokens = max(a.usage.InputTokens, int(usage.Input+usage.CacheRead+usage.CacheCreated))
	a.usage.CachedInputTokens = max(a.usage.CachedInputTokens, int(usage.CacheRead))
	if usage.Output > 0 {
		a.usage.OutputTokens = int(usage.Output)
	}
	if usage.Details.Thinking > 0 {
		a.usage.ReasoningTokens = int(usage.Details.Thinking)
	}
	a.call.Usage(a.usage)
}

// begin opens a block. A block that was not closed is closed first.
func (a *answer) begin(block *answerBlock) error {
	if err := a.end(); err != nil {
		return err
	}
	a.kind, a.id, a.name, a.signature, a.redacted = string(block.Type), string(block.ID), string(block.Name), block.Signature, block.Data
	a.input.Reset()
	a.whole = string(block.Input)
	a.thinking = a.thinking[:0]
	if block.Type == "thinking" {
		return a.think(string(block.Thinking))
	}
	return a.text(string(block.Text))
}

func (a *answer) delta(delta *blockDelta) error {
	switch delta.Type {
	case "text_delta":
		return a.text(string(delta.Text))
	case "thinking_delta":
		return a.think(string(delta.Thinking))
	case "signature_delta":
		a.signature += delta.Signature
	case "citations_delta":
		return a.call.Cite(string(delta.Citation.Title), string(delta.Citation.URL))
	case "input_json_delta":
		a.input.WriteString(string(delta.PartialJSON))
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

// end closes the open block, if there is one.
func (a *answer) end() error {
	kind := a.kind
	a.kind = ""
	switch kind {
	case "tool_use":
		input := a.input.String()
		if strings.TrimSpace(input) == "" {
			input = a.whole
		}
		return a.call.ToolCall(a.id, a.name, input)
	case "thinking", "redacted_thinking":
		if a.signature == "" && a.redacted == "" {
			return nil // the format refuses thinking without a signature
		}
		raw, err := json.Marshal(thought{Thinking: string(a.thinking), Signature: a.signature, Redacted: a.redacted})
		if err != nil {
			return model.Protocol(err)
		}
		return a.call.Opaque(raw)
	}
	return nil
}

func (a *answer) finish() error {
	if a.reason == "" && a.call.Empty() {
		return model.Protocol(errors.New("the stream contains no answer"))
	}
	if err := a.end(); err != nil {
		return err
	}
	return a.call.Finish(a.reason)
}
