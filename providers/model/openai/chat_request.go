package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/lenient"
)

// chatBody is the body of a request.
type chatBody struct {
	Model               string        `json:"model"`
	Stream              bool          `json:"stream"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           int           `json:"max_tokens,omitzero"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitzero"`
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools      []chatTool `json:"tools,omitempty"`
	ToolChoice string     `json:"tool_choice,omitempty"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    any            `json:"content,omitempty"` // a text or []chatPart; nil only if there are tool calls
	ToolCalls  []chatToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`

	ReasoningContent string            `json:"reasoning_content,omitempty"`
	Reasoning        string            `json:"reasoning,omitempty"`
	Details          []json.RawMessage `json:"reasoning_details,omitempty"`
	Extra            lenient.Raw       `json:"extra_content,omitempty"`
}

// chatPart is a part of a message with pictures.
type chatPart struct {
	Type     string       `json:"type"`
	Text     string       `json:"text,omitempty"`
	ImageURL *chatPicture `json:"image_url,omitempty"`
}

type chatPicture struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

type chatToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

const typeFunction = "function"

// maxSchemas limits the number of cached schemas. They belong to the tools that the operator chose.
const maxSchemas = 256

// schemas caches the encoded parameters of tools, which are the same in every request. Its zero value is ready to use.
// Its method may be called from any goroutine.
type schemas struct {
	mu     sync.RWMutex
	byText map[string]json.RawMessage // by the text of the tool's schema; guarded by mu
}

// encoded returns the result of parameters for a tool, as JSON.
func (s *schemas) encoded(tool llm.Tool) (json.RawMessage, error) {
	s.mu.RLock()
	cached := s.byText[string(tool.Schema)]
	s.mu.RUnlock()
	if cached != nil {
		return cached, nil
	}
	schema, err := parameters(tool)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema of tool %s: %w", tool.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byText == nil {
		s.byText = map[string]json.RawMessage{}
	}
	if len(s.byText) < maxSchemas {
		s.byText[string(tool.Schema)] = text
	}
	return text, nil
}

// chatBody returns the body of a request.
func (m *Model) chatBody(request llm.Request) (*chatBody, error) {
	body := &chatBody{
		Stream: true, Model: request.Model, Messages: chatMessages(request, m.client.SystemRole(request.Model)), ReasoningEffort: request.ReasoningEffort,
	}
	body.StreamOptions.IncludeUsage = true
	if m.native {
		body.MaxCompletionTokens = max(0, request.MaxOutputTokens)
	} else {
		body.MaxTokens = max(0, request.MaxOutputTokens)
	}
	if request.HideTools {
		request.Tools = nil
	}
	for _, tool := range request.Tools {
		schema, err := m.schemas.encoded(tool)
		if err != nil {
			return nil, err
		}
		body.Tools = append(body.Tools, chatTool{typeFunction, chatFunction{tool.Name, tool.Description, schema}})
	}
	if request.WithoutCalls && len(body.Tools) > 0 {
		body.ToolChoice = "none"
	}
	return body, nil
}

// chatMessages returns the messages of a request. Adjacent messages of the user are joined, because strict templates
// require that roles alternate. Without systemRole, the system prompt precedes the first message of the user.
func chatMessages(request llm.Request, systemRole bool) []chatMessage {
	messages := make([]chatMessage, 0, len(request.Messages)+1)
	system := request.System
	if system != "" && systemRole {
		messages = append(messages, chatMessage{Role: "system", Content: system})
		system = ""
	}
	for i := range request.Messages {
		message := &request.Messages[i]
		switch message.Role {
		case "assistant":
			messages = append(messages, chatAssistant(message))
		case "tool":
			result := toolResult(*message)
			messages = append(messages, chatMessage{Role: "tool", Content: result, ToolCallID: message.ToolCallID})
		default:
			if system != "" {
				first := *message
				first.Text, system = joinTexts(system, first.Text), ""
				message = &first
			}
			content := chatContent(message, request.PictureDetail)
			if last := len(messages) - 1; last >= 0 && messages[last].Role == "user" {
				messages[last].Content = joinContent(messages[last].Content, content)
				continue
			}
			messages = append(messages, chatMessage{Role: "user", Content: content})
		}
	}
	return splitCalls(messages)
}

// maxMessageCalls limits the calls of one message: OpenAI refuses a message with more.
const maxMessageCalls = 128

// splitCalls sends the calls of a message with too many as several messages, each one followed by its results.
func splitCalls(messages []chatMessage) []chatMessage {
	if !slices.ContainsFunc(messages, func(message chatMessage) bool { return len(message.ToolCalls) > maxMessageCalls }) {
		return messages
	}
	split := make([]chatMessage, 0, len(messages))
	for len(messages) > 0 {
		message, rest := messages[0], messages[1:]
		for len(message.ToolCalls) > maxMessageCalls {
			more := message.ToolCalls[maxMessageCalls:]
			message.ToolCalls = message.ToolCalls[:maxMessageCalls]
			split = append(split, message)
			for n := 0; n < maxMessageCalls && len(rest) > 0 && rest[0].Role == "tool"; n++ {
				split, rest = append(split, rest[0]), rest[1:]
			}
			message = chatMessage{Role: "assistant", ToolCalls: more}
		}
		split, messages = append(split, message), rest
	}
	return split
}

func joinTexts(a, b string) string { return a + "\n\n" + b }

// joinContent joins the contents of two messages.
func joinContent(a, b any) any {
	first, isText := a.(string)
	second, bothText := b.(string)
	if isText && bothText {
		return joinTexts(first, second)
	}
	return append(partsOf(a), partsOf(b)...)
}

func partsOf(content any) []chatPart {
	if text, is := content.(string); is {
		return []chatPart{{Type: "text", Text: text}}
	}
	return content.([]chatPart)
}

// chatContent returns the content of a user's message: its text, after its pictures if it has any.
func chatContent(message *llm.Message, detail string) any {
	if len(message.Pictures) == 0 {
		return message.Text
	}
	parts := make([]chatPart, 0, len(message.Pictures)+1)
	for _, picture := range message.Pictures {
		parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatPicture{dataURL(picture), detail}})
	}
	return append(parts, chatPart{Type: "text", Text: message.Text})
}

// chatAssistant returns a message of the model. With tool calls it contains the state that the provider sent with them.
func chatAssistant(message *llm.Message) chatMessage {
	assistant := chatMessage{Role: "assistant"}
	if message.Text != "" || len(message.ToolCalls) == 0 {
		assistant.Content = message.Text
	}
	var state chatState
	model.Replay(*message, Family, func(raw json.RawMessage) { _ = lenient.Decode(raw, &state) }, func(string) {}, func(call llm.ToolCall) {
		toolCall := chatToolCall{ID: call.ID, Type: typeFunction}
		toolCall.Function.Name, toolCall.Function.Arguments = call.Name, string(call.Input)
		toolCall.Extra = state.Calls[len(assistant.ToolCalls)]
		assistant.ToolCalls = append(assistant.ToolCalls, toolCall)
	})
	if len(assistant.ToolCalls) == 0 {
		return assistant
	}
	assistant.ReasoningContent, assistant.Details, assistant.Extra = state.ReasoningContent, state.Details, state.Extra
	if len(state.Details) == 0 {
		assistant.Reasoning = state.Reasoning
	}
	return assistant
}
