package openai

import (
	"cmp"
	"encoding/json"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/lenient"
)

// responsesBody is the body of a request.
type responsesBody struct {
	Model           string              `json:"model"`
	Stream          bool                `json:"stream"`
	Store           bool                `json:"store"`
	Instructions    string              `json:"instructions,omitempty"`
	Input           []any               `json:"input"`
	MaxOutputTokens int                 `json:"max_output_tokens,omitempty"`
	Reasoning       *responsesReasoning `json:"reasoning,omitempty"`
	Include         []string            `json:"include,omitempty"`
	Tools           []responsesTool     `json:"tools,omitempty"`
	ToolChoice      string              `json:"tool_choice,omitempty"`
}

type responsesReasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// The items of the input. The content of a message is a text or []responsesPart.
type (
	responsesMessage struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	responsesPart struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
		Detail   string `json:"detail,omitempty"`
	}
	responsesCall struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	responsesOutput struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
	reasoningItem struct {
		Type             string             `json:"type"`
		ID               string             `json:"id"`
		Summary          []responsesSummary `json:"summary"` // required, even if empty
		EncryptedContent string             `json:"encrypted_content"`
	}
	responsesSummary struct {
		Type string       `json:"type"`
		Text lenient.Text `json:"text"`
	}
)

func (m *Model) responsesBody(request llm.Request) (*responsesBody, error) {
	body := &responsesBody{
		Model: request.Model, Stream: true, Instructions: request.System, Input: responseItems(request.Messages, cmp.Or(request.PictureDetail, "auto")),
		MaxOutputTokens: max(0, request.MaxOutputTokens),
	}
	if request.ReasoningEffort != "" { // models without reasoning refuse all three fields
		body.Reasoning = &responsesReasoning{Effort: request.ReasoningEffort, Summary: "auto"}
		body.Include = []string{"reasoning.encrypted_content"}
	}
	if request.HideTools {
		request.Tools = nil
	}
	for _, tool := range request.Tools {
		schema, err := m.schemas.encoded(tool)
		if err != nil {
			return nil, err
		}
		body.Tools = append(body.Tools, responsesTool{Type: typeFunction, Name: tool.Name, Description: tool.Description, Parameters: schema})
	}
	if request.WithoutCalls && len(body.Tools) > 0 {
		body.ToolChoice = "none"
	}
	return body, nil
}

func responseItems(messages []llm.Message, detail string) []any {
	items := make([]any, 0, len(messages))
	add := func(item any) { items = append(items, item) }
	for i := range messages {
		message := &messages[i]
		switch message.Role {
		case "assistant":
			model.Replay(*message, Family,
				func(raw json.RawMessage) {
					var item reasoningItem
					if lenient.Decode(raw, &item) == nil && item.EncryptedContent != "" {
						add(item)
					}
				},
				func(text string) { add(responsesMessage{"message", "assistant", text}) },
				func(call llm.ToolCall) {
					add(responsesCall{"function_call", call.ID, call.Name, string(call.Input)})
				})
		case "tool":
			add(responsesOutput{"function_call_output", message.ToolCallID, toolResult(*message)})
		default:
			add(userItem(message, detail))
		}
	}
	return items
}

// userItem returns a message of the user: its text, after its pictures if it has any.
func userItem(message *llm.Message, detail string) responsesMessage {
	if len(message.Pictures) == 0 {
		return responsesMessage{"message", "user", message.Text}
	}
	var content []responsesPart
	for _, picture := range message.Pictures {
		content = append(content, responsesPart{Type: "input_image", Detail: detail, ImageURL: dataURL(picture)})
	}
	return responsesMessage{"message", "user", append(content, responsesPart{Type: "input_text", Text: message.Text})}
}
