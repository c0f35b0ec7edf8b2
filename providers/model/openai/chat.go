package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/lenient"
)

// streamChat sends one request in the Chat Completions format. Compatible servers omit different parts (usage, tool
// identifiers, choices, the stop reason, the end marker), so only two things are required: the answer has an end, and it
// has content.
func (m *Model) streamChat(_ context.Context, request llm.Request, call *model.Call) error {
	body, err := m.chatBody(request)
	if err != nil {
		return err
	}
	if err := call.Post("chat/completions", m.header(), body); err != nil {
		return err
	}
	answer := chatAnswer{call: call}
	err = call.Events(func(event model.Event) (bool, error) {
		if event.Done() {
			return true, nil
		}
		return false, answer.take(event)
	})
	if err != nil || !call.Terminated() {
		return err
	}
	return answer.finish()
}

// chatChunk is an event of an answer, or a whole answer.
type chatChunk struct {
	Choices []chatChoice `json:"choices"`
	Usage   chatUsage    `json:"usage"`
}

type chatChoice struct {
	Index        lenient.Count `json:"index"`
	Delta        chatDelta     `json:"delta"`
	Message      chatDelta     `json:"message"` // of a whole answer
	Text         lenient.Text  `json:"text"`    // of servers that answer as for a completion
	FinishReason lenient.Text  `json:"finish_reason"`
}

// isWhole reports whether the choice has a message, which chunks of a stream have not.
func (c *chatChoice) isWhole() bool {
	return c.Message.Content.Text != "" || c.Message.Refusal != "" || len(c.Message.ToolCalls) > 0
}

type chatDelta struct {
	Content          lenient.Content   `json:"content"`
	Refusal          lenient.Text      `json:"refusal"`
	ReasoningContent lenient.Content   `json:"reasoning_content"`
	Reasoning        lenient.Content   `json:"reasoning"`
	Details          json.RawMessage   `json:"reasoning_details"`
	ToolCalls        []chatToolDelta   `json:"tool_calls"`
	FunctionCall     chatFunctionDelta `json:"function_call"` // deprecated, and still sent by older gateways
	Extra            lenient.Raw       `json:"extra_content"`
	Annotations      []annotation      `json:"annotations"`
}

// annotation is a source of a text. Chat Completions nests its fields, Responses does not.
type annotation struct {
	Type  lenient.Text `json:"type"`
	URL   lenient.Text `json:"url"`
	Title lenient.Text `json:"title"`
	Inner struct {
		URL   lenient.Text `json:"url"`
		Title lenient.Text `json:"title"`
	} `json:"url_citation"`
}

// cite adds the annotations of a text that are sources on the web.
func cite(call *model.Call, annotations ...annotation) error {
	for i := range annotations {
		a := &annotations[i]
		if err := call.Cite(string(a.Title+a.Inner.Title), string(a.URL+a.Inner.URL)); err != nil {
			return err
		}
	}
	return nil
}

type chatToolDelta struct {
	Index    *lenient.Count    `json:"index"`
	ID       lenient.Text      `json:"id"`
	Function chatFunctionDelta `json:"function"`
	Extra    lenient.Raw       `json:"extra_content"`
}

type chatFunctionDelta struct {
	Name      lenient.Text `json:"name"`
	Arguments arguments    `json:"arguments"`
}

// arguments are the arguments of a call: the text of an object, or an object.
type arguments string

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	if raw[0] == '{' || raw[0] == '[' {
		*a = arguments(raw)
		return nil
	}
	var text lenient.Text
	_ = text.UnmarshalJSON(raw)
	*a = arguments(text)
	return nil
}

type chatUsage struct {
	Input     lenient.Count `json:"prompt_tokens"`
	Output    lenient.Count `json:"completion_tokens"`
	CacheHits lenient.Count `json:"prompt_cache_hit_tokens"`
	InDetails struct {
		Cached lenient.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutDetails struct {
		Reasoning lenient.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatState is what a provider sent with a step that calls tools, and needs back with the results: its reasoning, by the
// names of the members, and the extra content of the calls, by their number.
type chatState struct {
	ReasoningContent string                  `json:"reasoning_content,omitempty"`
	Reasoning        string                  `json:"reasoning,omitempty"`
	Details          []json.RawMessage       `json:"reasoning_details,omitempty"`
	Extra            lenient.Raw             `json:"extra_content,omitempty"`
	Calls            map[int]json.RawMessage `json:"calls,omitempty"`
}

// chatAnswer collects the data that arrive in pieces: the stop reason, and the state that must be sent back. The Call
// collects the tool calls.
type chatAnswer struct {
	call   *model.Call
	reason string
	state  chatState

	reasoningContent, reasoning strings.Builder // of the state
}

func (a *chatAnswer) take(event model.Event) error {
	if kind, raw, field, ok := scanChat(event.Data); ok && !event.Failed {
		if taken, err := a.call.Quoted(kind, raw); taken {
			a.keep(field, raw)
			return err
		}
	}
	return a.decode(event)
}

// keep adds a piece of reasoning to the state.
func (a *chatAnswer) keep(field string, raw []byte) {
	if field == "" || len(raw) == 0 {
		return
	}
	text, _ := lenient.AppendUnquoted(nil, raw)
	a.keepReasoning(field, string(text))
}

func (a *chatAnswer) keepReasoning(field, text string) {
	if field == reasoningContent {
		a.reasoningContent.WriteString(text)
	} else {
		a.reasoning.WriteString(text)
	}
}

// decode processes a chunk of any shape.
func (a *chatAnswer) decode(event model.Event) error {
	if err := a.call.EventError(event); err != nil {
		return err
	}
	var chunk chatChunk
	if err := lenient.Decode(event.Data, &chunk); err != nil {
		return model.Protocol(err)
	}
	usage := chunk.Usage
	a.call.Usage(llm.Usage{
		InputTokens: int(usage.Input), OutputTokens: int(usage.Output), ReasoningTokens: int(usage.OutDetails.Reasoning),
		CachedInputTokens: int(max(usage.InDetails.Cached, usage.CacheHits)),
	})
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index > 0 {
			continue // only one choice was requested
		}
		if choice.Text != "" {
			choice.Delta.Content.Text += string(choice.Text)
		}
		if err := errors.Join(a.takeDelta(&choice.Delta), a.takeDelta(&choice.Message)); err != nil {
			return err
		}
		reason := string(choice.FinishReason)
		if reason == "null" || strings.EqualFold(reason, "none") {
			reason = "" // as some servers write it while the answer goes on
		}
		if reason != "" {
			a.reason = reason
		}
		if reason != "" || event.Whole && choice.isWhole() {
			a.call.Complete()
		}
	}
	return nil
}

func (a *chatAnswer) takeDelta(delta *chatDelta) error {
	thought := delta.ReasoningContent.Text + delta.ReasoningContent.Reasoning
	if thought != "" {
		a.keepReasoning(reasoningContent, thought)
	} else if thought = delta.Reasoning.Text + delta.Reasoning.Reasoning; thought != "" {
		a.keepReasoning("reasoning", thought)
	}
	a.state.addDetails(delta.Details)
	if delta.Extra != nil {
		a.state.Extra = delta.Extra
	}
	if err := a.call.Reasoning(thought + delta.Content.Reasoning); err != nil {
		return err
	}
	if delta.Refusal != "" {
		a.call.Refuse()
	}
	if err := a.call.Text(delta.Content.Text + string(delta.Refusal)); err != nil {
		return err
	}
	if err := cite(a.call, delta.Annotations...); err != nil {
		return err
	}
	for i, tool := range delta.ToolCalls {
		index := -1
		if tool.Index != nil {
			index = int(*tool.Index)
		} else if len(delta.ToolCalls) > 1 {
			index = i
		}
		number := a.call.ToolPiece(index, string(tool.ID), string(tool.Function.Name), string(tool.Function.Arguments))
		if tool.Extra != nil {
			if a.state.Calls == nil {
				a.state.Calls = map[int]json.RawMessage{}
			}
			a.state.Calls[number] = json.RawMessage(tool.Extra)
		}
	}
	if function := delta.FunctionCall; function.Name != "" || function.Arguments != "" {
		a.call.ToolPiece(0, "", string(function.Name), string(function.Arguments))
	}
	return nil
}

// addDetails adds reasoning details. Pieces of one text are joined, as the gateway requires that the sequence is sent back
// as it was received.
func (s *chatState) addDetails(raw json.RawMessage) {
	var details []json.RawMessage
	if json.Unmarshal(raw, &details) == nil {
		s.Details = append(s.Details, details...)
	}
}

// finish runs at the end of the answer.
func (a *chatAnswer) finish() error {
	if a.reason == "" && a.call.Empty() {
		return model.Protocol(errors.New("the stream contains no answer"))
	}
	a.state.ReasoningContent, a.state.Reasoning = a.reasoningContent.String(), a.reasoning.String()
	if a.call.HasToolPieces() && (a.state.ReasoningContent != "" || a.state.Reasoning != "" || a.state.Details != nil || a.state.Calls != nil || a.state.Extra != nil) {
		raw, err := json.Marshal(a.state)
		if err != nil {
			return model.Protocol(err)
		}
		if err := a.call.Opaque(raw); err != nil {
			return err
		}
	}
	if err := a.call.ToolPieces(); err != nil {
		return err
	}
	return a.call.Finish(a.reason)
}
