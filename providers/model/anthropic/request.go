package anthropic

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// The types of a request.
type (
	requestBody struct {
		Model        string         `json:"model"`
		MaxTokens    int            `json:"max_tokens"`
		Stream       bool           `json:"stream,omitempty"`
		System       []contentBlock `json:"system,omitempty"`
		Messages     []inputMessage `json:"messages"`
		Tools        []inputTool    `json:"tools,omitempty"`
		ToolChoice   *toolChoice    `json:"tool_choice,omitempty"`
		Thinking     *thinking      `json:"thinking,omitempty"`
		OutputConfig *outputConfig  `json:"output_config,omitempty"`
	}
	inputMessage struct {
		Role    string         `json:"role"`
		Content []contentBlock `json:"content"`
	}
	inputTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	toolChoice struct {
		Type string `json:"type"`
	}
	thinking struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens,omitempty"`
		Display      string `json:"display,omitempty"`
	}
	outputConfig struct {
		Effort string `json:"effort"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
	// contentBlock is a block of any type; each type has other fields.
	contentBlock struct {
		Type         string          `json:"type"`
		Text         string          `json:"text,omitempty"`
		Source       *imageSource    `json:"source,omitempty"`
		ID           string          `json:"id,omitempty"`
		Name         string          `json:"name,omitempty"`
		Input        json.RawMessage `json:"input,omitempty"`
		ToolUseID    string          `json:"tool_use_id,omitempty"`
		Content      []contentBlock  `json:"content,omitempty"`
		IsError      bool            `json:"is_error,omitempty"`
		Thinking     *string         `json:"thinking,omitempty"`
		Signature    string          `json:"signature,omitempty"`
		Data         string          `json:"data,omitempty"`
		CacheControl *cacheControl   `json:"cache_control,omitempty"`
	}
	imageSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	}
)

func textBlock(text string) contentBlock { return contentBlock{Type: "text", Text: text} }

// bodyOf returns the body of a request, and the white space that messagesOf removed.
func bodyOf(request llm.Request) (*requestBody, string) {
	messages, trimmed := messagesOf(request.Messages)
	body := &requestBody{Model: request.Model, Messages: messages, MaxTokens: request.MaxOutputTokens}
	if request.System != "" {
		body.System = []contentBlock{textBlock(request.System)}
	}
	for _, tool := range request.Tools {
		schema := tool.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		body.Tools = append(body.Tools, inputTool{tool.Name, tool.Description, schema})
	}
	if request.WithoutCalls && len(body.Tools) > 0 {
		body.ToolChoice = &toolChoice{"none"}
	}
	family := familyOf(request.Model)
	if request.ReasoningEffort != "" && family != "" && !continues(request.Messages) {
		think(body, family, request.ReasoningEffort)
	}
	return body, trimmed
}

var claudeName = regexp.MustCompile(`claude-.*`)

// familyOf returns the name of a Claude model without the prefix of a gateway, such as "us.anthropic." or "anthropic/", and
// with the separators of Anthropic's own names. It is empty for other models, which get no request to think.
func familyOf(name string) string {
	return strings.ReplaceAll(claudeName.FindString(strings.ToLower(name)), ".", "-")
}

// silentModels do not think. budgetModels, which are newer, think within a budget of tokens. All later models choose
// how much they think, guided by the effort.
var (
	silentModels = []string{
		"claude-2", "claude-instant", "claude-3-haiku", "claude-3-sonnet", "claude-3-opus", "claude-3-5",
	}
	budgetModels = []string{
		"claude-3-7", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5",
		"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5",
	}
	budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24576}
)

func think(body *requestBody, family, effort string) {
	switch {
	case anyPrefix(family, silentModels):
	case anyPrefix(family, budgetModels), family == "claude-sonnet-4", family == "claude-opus-4":
		if budget := min(budgets[effort], body.MaxTokens-minThinking); budget >= minThinking {
			body.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
		}
	default:
		body.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
		body.OutputConfig = &outputConfig{Effort: effort}
	}
}

func anyPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// cache marks the system prompt and the end of the history, up to which the provider keeps its work for the next request.
// Only Claude models know the marks.
func (b *requestBody) cache() {
	mark := func(blocks []contentBlock) {
		if n := len(blocks); n > 0 && blocks[n-1].Type != "thinking" && blocks[n-1].Type != "redacted_thinking" {
			blocks[n-1].CacheControl = &cacheControl{Type: "ephemeral"}
		}
	}
	mark(b.System)
	if n := len(b.Messages); n > 0 {
		mark(b.Messages[n-1].Content)
	}
}

// continues reports whether the last message is an assistant's text that is to be continued.
func continues(messages []llm.Message) bool {
	return len(messages) > 0 && messages[len(messages)-1].Role == "assistant"
}

// messagesOf joins adjacent messages of one role, because the format requires alternating roles: tool results and the
// user's text after them become one message. It removes trailing white space from a text to be continued, because the
// format refuses it, and returns it as trimmed: the continuation may start with the same white space.
func messagesOf(messages []llm.Message) (joined []inputMessage, trimmed string) {
	for i, message := range messages {
		if i == len(messages)-1 && continues(messages) {
			text := strings.TrimRight(message.Text, " \t\r\n")
			message.Text, trimmed = text, message.Text[len(text):]
		}
		role, blocks := blocksOf(message)
		if last := len(joined) - 1; last >= 0 && joined[last].Role == role {
			joined[last].Content = append(joined[last].Content, blocks...)
		} else if len(blocks) > 0 {
			joined = append(joined, inputMessage{role, blocks})
		}
	}
	return joined, trimmed
}

func blocksOf(message llm.Message) (role string, blocks []contentBlock) {
	add := func(block contentBlock) { blocks = append(blocks, block) }
	switch message.Role {
	case "assistant":
		model.Replay(message, Family,
			func(raw json.RawMessage) {
				var block thought
				switch {
				case json.Unmarshal(raw, &block) != nil:
				case block.Redacted != "":
					add(contentBlock{Type: "redacted_thinking", Data: block.Redacted})
				default:
					add(contentBlock{Type: "thinking", Thinking: &block.Thinking, Signature: block.Signature})
				}
			},
			func(text string) {
				if strings.TrimSpace(text) != "" { // the format refuses blank blocks
					add(textBlock(text))
				}
			},
			func(call llm.ToolCall) {
				add(contentBlock{Type: "tool_use", ID: call.ID, Name: call.Name, Input: call.Input})
			})
		return "assistant", blocks
	case "tool":
		result := contentBlock{Type: "tool_result", ToolUseID: message.ToolCallID, IsError: message.ToolFailed}
		if message.Text != "" {
			result.Content = []contentBlock{textBlock(message.Text)}
		}
		add(result)
	default:
		for _, picture := range message.Pictures {
			add(contentBlock{Type: "image", Source: &imageSource{"base64", picture.MediaType, picture.Content}})
		}
		if strings.TrimSpace(message.Text) != "" {
			add(textBlock(message.Text))
		}
	}
	return "user", blocks
}

// header returns the headers with the version and the credentials.
func (m *Model) header() http.Header {
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if m.key != "" {
		header.Set("X-Api-Key", m.key)
	}
	return header
}
