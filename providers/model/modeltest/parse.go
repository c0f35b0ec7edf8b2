package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
)

// parse parses a request as the vendor of the wire format does, and refuses requests that the vendor refuses.
func parse(wire string, body []byte) (Request, error) {
	var common struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int    `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &common); err != nil {
		return Request{}, err
	}
	if common.Model == "" || !common.Stream {
		return Request{}, fmt.Errorf("model and stream are required")
	}
	request := Request{Model: common.Model, MaxTokens: common.MaxTokens, Raw: body}
	switch wire {
	case Chat:
		return request, parseChat(body, &request)
	case Responses:
		return request, parseResponses(body, &request)
	default:
		return request, parseAnthropic(body, &request)
	}
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func parseChat(body []byte, request *Request) error {
	var wire struct {
		Messages []struct {
			Role       string  `json:"role"`
			Content    content `json:"content"`
			ToolCallID string  `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string       `json:"id"`
				Type     string       `json:"type"`
				Function wireFunction `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string       `json:"type"`
			Function wireFunction `json:"function"`
		} `json:"tools"`
		MaxCompletion int    `json:"max_completion_tokens"`
		Effort        string `json:"reasoning_effort"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return err
	}
	request.Effort, request.MaxTokens = wire.Effort, max(request.MaxTokens, wire.MaxCompletion)
	for _, tool := range wire.Tools {
		request.Tools = append(request.Tools, tool.Function.Name)
	}
	for _, message := range wire.Messages {
		if message.Role == "system" {
			request.System = message.Content.text
			continue
		}
		parsed := llm.Message{Role: message.Role, Text: message.Content.text, Pictures: message.Content.pictures, ToolCallID: message.ToolCallID}
		for _, call := range message.ToolCalls {
			if call.Type != "function" {
				return fmt.Errorf("a tool call of type %q", call.Type)
			}
			parsed.ToolCalls = append(parsed.ToolCalls, llm.ToolCall{
				ID: call.ID, Name: call.Function.Name, Input: json.RawMessage(call.Function.Arguments),
			})
		}
		request.Messages = append(request.Messages, parsed)
	}
	return nil
}

// content is the content of a message in the formats of OpenAI: a text, or a list of texts and pictures.
type content struct {
	text     string
	pictures []turnlog.Picture
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return json.Unmarshal(raw, &c.text)
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		ImageURL json.RawMessage `json:"image_url"`
		Detail   string          `json:"detail"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		var nested struct {
			URL string `json:"url"`
		}
		switch part.Type {
		case "text", "input_text":
			c.text += part.Text
			continue
		case "image_url":
			if err := json.Unmarshal(part.ImageURL, &nested); err != nil {
				return err
			}
		case "input_image":
			if err := json.Unmarshal(part.ImageURL, &nested.URL); err != nil || part.Detail == "" {
				return fmt.Errorf("a picture without detail: %w", err)
			}
		default:
			return fmt.Errorf("a part of type %q", part.Type)
		}
		mediaType, data, _ := strings.Cut(strings.TrimPrefix(nested.URL, "data:"), ";base64,")
		decoded, err := base64.StdEncoding.DecodeString(data)
		picture := turnlog.Picture{MediaType: mediaType, Content: decoded}
		if err != nil || !isPicture(picture) {
			return fmt.Errorf("a picture of the type %q with other content", mediaType)
		}
		c.pictures = append(c.pictures, picture)
	}
	return nil
}

// isPicture reports whether the content of a picture is of its type. Vendors refuse other requests.
func isPicture(p turnlog.Picture) bool {
	return http.DetectContentType(p.Content) == p.MediaType
}

func parseResponses(body []byte, request *Request) error {
	var wire struct {
		Instructions string `json:"instructions"`
		Store        *bool  `json:"store"`
		MaxOutput    int    `json:"max_output_tokens"`
		Reasoning    struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Input []struct {
			wireFunction
			Type      string  `json:"type"`
			Role      string  `json:"role"`
			Content   content `json:"content"`
			CallID    string  `json:"call_id"`
			Output    string  `json:"output"`
			Encrypted string  `json:"encrypted_content"`
		} `json:"input"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return err
	}
	if wire.Store == nil || *wire.Store {
		return fmt.Errorf("store must be false")
	}
	request.System, request.MaxTokens, request.Effort = wire.Instructions, wire.MaxOutput, wire.Reasoning.Effort
	for _, tool := range wire.Tools {
		request.Tools = append(request.Tools, tool.Name)
	}
	for _, item := range wire.Input {
		switch item.Type {
		case "", "message":
			request.add(llm.Message{Role: item.Role, Text: item.Content.text, Pictures: item.Content.pictures})
		case "reasoning":
			request.add(llm.Message{Role: "assistant", Opaque: json.RawMessage(`"` + item.Encrypted + `"`)})
		case "function_call":
			request.add(llm.Message{Role: "assistant", ToolCalls: []llm.ToolCall{
				{ID: item.CallID, Name: item.Name, Input: json.RawMessage(item.Arguments)},
			}})
		case "function_call_output":
			request.Messages = append(request.Messages, llm.Message{Role: "tool", Text: item.Output, ToolCallID: item.CallID})
		default:
			return fmt.Errorf("an item of type %q", item.Type)
		}
	}
	return nil
}

func parseAnthropic(body []byte, request *Request) error {
	var wire struct {
		System []struct {
			Text string `json:"text"`
		} `json:"system"`
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Output struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return err
	}
	request.Effort = wire.Output.Effort
	for _, block := range wire.System {
		request.System += block.Text
	}
	for _, tool := range wire.Tools {
		if len(tool.Schema) == 0 {
			return fmt.Errorf("tool %s has no input_schema", tool.Name)
		}
		request.Tools = append(request.Tools, tool.Name)
	}
	role := ""
	for i, message := range wire.Messages {
		if message.Role == role || len(message.Content) == 0 {
			return fmt.Errorf("message %d repeats the role %q or is empty", i, role)
		}
		role = message.Role
		for _, raw := range message.Content {
			if err := request.addBlock(role, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Request) addBlock(role string, raw json.RawMessage) error {
	var block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		Signature string          `json:"signature"`
		ToolUseID string          `json:"tool_use_id"`
		Failed    bool            `json:"is_error"`
		Content   []struct {
			Text string `json:"text"`
		} `json:"content"`
		Source struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      []byte `json:"data"`
		} `json:"source"`
	}
	if err := json.Unmarshal(raw, &block); err != nil {
		return err
	}
	switch {
	case block.Type == "text" && strings.TrimSpace(block.Text) != "":
		r.add(llm.Message{Role: role, Text: block.Text})
	case block.Type == "image" && role == "user" && block.Source.Type == "base64":
		picture := turnlog.Picture{MediaType: block.Source.MediaType, Content: block.Source.Data}
		if !isPicture(picture) {
			return fmt.Errorf("a picture of the type %q with other content", picture.MediaType)
		}
		r.pending = append(r.pending, picture)
	case block.Type == "thinking" && role == "assistant":
		r.add(llm.Message{Role: role, Opaque: json.RawMessage(`"` + block.Signature + `"`)})
	case block.Type == "tool_use" && role == "assistant":
		r.add(llm.Message{Role: role, ToolCalls: []llm.ToolCall{{ID: block.ID, Name: block.Name, Input: block.Input}}})
	case block.Type == "tool_result" && role == "user":
		text := ""
		for _, part := range block.Content {
			text += part.Text
		}
		r.Messages = append(r.Messages, llm.Message{
			Role: "tool", Text: text, ToolCallID: block.ToolUseID, ToolFailed: block.Failed,
		})
	default:
		return fmt.Errorf("a block of type %q of the %s, or an empty one", block.Type, role)
	}
	return nil
}

// add joins the parts of one assistant message, which two of the formats send separately. A sealed part starts a new
// message.
func (r *Request) add(part llm.Message) {
	if part.Role == "user" {
		part.Pictures, r.pending = append(r.pending, part.Pictures...), nil
	}
	last := len(r.Messages) - 1
	if part.Role != "assistant" || part.Opaque != nil || last < 0 || r.Messages[last].Role != "assistant" {
		r.Messages = append(r.Messages, part)
		return
	}
	r.Messages[last].Text += part.Text
	r.Messages[last].ToolCalls = append(r.Messages[last].ToolCalls, part.ToolCalls...)
}
