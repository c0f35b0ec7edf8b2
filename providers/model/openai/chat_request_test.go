package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"turnstone/actors/llm"
)

var requestsToEncode = map[string]llm.Request{
	"bare": {Model: "m", Messages: []llm.Message{{Role: "user", Text: "hello"}}},
	"full": {
		Model: "m", System: "be <brief> & \"kind\"\u2028", ReasoningEffort: "high", MaxOutputTokens: 77,
		Messages: []llm.Message{
			{Role: "user", Text: "if a < b && c > d {\n\t\x00\xff}"},
			{Role: "assistant", Text: "let me see", ToolCalls: []llm.ToolCall{
				{ID: "1", Name: "calculate", Input: json.RawMessage(`{"expression":"6*7"}`)}, {ID: "2", Name: "clock", Input: json.RawMessage(`{}`)},
			}},
			{Role: "tool", ToolCallID: "1", Text: "42"},
			{Role: "tool", ToolCallID: "2", Text: "broken", ToolFailed: true},
			{Role: "assistant", ToolCalls: []llm.ToolCall{{ID: "3", Name: "clock", Input: json.RawMessage(`{}`)}}},
			{Role: "tool", ToolCallID: "3", Text: ""},
			{Role: "assistant"},
			{Role: "user", Text: "😀"},
		},
		Tools: []llm.Tool{
			{Name: "clock"},
			{Name: "calculate", Description: "Calculates.", Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string","maxLength":100}},"required":["expression"]}`)},
		},
	},
}

func TestTheBodyOfARequestIsWhatTheSDKWouldSend(t *testing.T) {
	for name, request := range requestsToEncode {
		for _, native := range []bool{false, true} {
			m := &Model{native: native}
			if _, err := m.encodeChat(request); err != nil { // the second call finds the schemas in the cache
				t.Fatal(err)
			}
			ours, err := m.encodeChat(request)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := sdkBody(m, request)
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, theirs)
			want["stream"] = true // which the SDK adds last
			if got := read(t, ours); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the body is\n%v, want\n%v", name, got, want)
			}
		}
	}
}

// read decodes a body as a server does.
func read(t *testing.T, text []byte) (body map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func BenchmarkChatRequest(b *testing.B) {
	m := &Model{}
	for name, encode := range map[string]func(llm.Request) ([]byte, error){
		"ours":  m.encodeChat,
		"SDK's": func(request llm.Request) ([]byte, error) { return sdkBody(m, request) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(requestsToEncode["full"]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func sdkBody(m *Model, request llm.Request) ([]byte, error) {
	params, err := sdkParams(m, request)
	if err != nil {
		return nil, err
	}
	return params.MarshalJSON()
}

// sdkParams returns a request in the SDK's own types.
func sdkParams(m *Model, request llm.Request) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{
		Model:           request.Model,
		Messages:        sdkMessages(request),
		ReasoningEffort: shared.ReasoningEffort(request.ReasoningEffort),
		StreamOptions:   sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if limit := int64(request.MaxOutputTokens); limit > 0 && m.native {
		params.MaxCompletionTokens = param.NewOpt(limit)
	} else if limit > 0 {
		params.MaxTokens = param.NewOpt(limit)
	}
	for _, tool := range request.Tools {
		schema, err := parameters(tool)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.Name, Description: param.NewOpt(tool.Description), Parameters: schema,
		}))
	}
	return params, nil
}

func sdkMessages(request llm.Request) []sdk.ChatCompletionMessageParamUnion {
	messages := make([]sdk.ChatCompletionMessageParamUnion, 0, len(request.Messages)+1)
	if request.System != "" {
		messages = append(messages, sdk.SystemMessage(request.System))
	}
	for _, message := range request.Messages {
		switch message.Role {
		case "assistant":
			messages = append(messages, sdkAssistant(message))
		case "tool":
			messages = append(messages, sdk.ToolMessage(toolResult(message), message.ToolCallID))
		default:
			messages = append(messages, sdk.UserMessage(message.Text))
		}
	}
	return messages
}

func sdkAssistant(message llm.Message) sdk.ChatCompletionMessageParamUnion {
	assistant := sdk.ChatCompletionAssistantMessageParam{}
	if message.Text != "" || len(message.ToolCalls) == 0 {
		assistant.Content.OfString = param.NewOpt(message.Text)
	}
	for _, call := range message.ToolCalls {
		assistant.ToolCalls = append(assistant.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: call.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: call.Name, Arguments: string(call.Input),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &assistant}
}
