package openai

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"

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

func TestTheBodyOfARequestIsCanonical(t *testing.T) {
	made, err := New(Options{BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	body := func() string {
		body, err := made.chatBody(requestsToEncode["full"])
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	first := body()
	if second := body(); second != first { // the second call finds the schemas in the cache
		t.Errorf("the body is\n%s, then\n%s", first, second)
	}
	got := read(t, []byte(first))
	if got["stream"] != true || got["max_tokens"] != 77.0 || got["reasoning_effort"] != "high" {
		t.Errorf("the body is %v", got)
	}
	messages := got["messages"].([]any)
	if len(messages) != 9 || !reflect.DeepEqual(messages[0], map[string]any{"role": "system", "content": "be <brief> & \"kind\"\u2028"}) {
		t.Errorf("%d messages: %v", len(messages), messages[0])
	}
	if results := messages[4].(map[string]any); results["content"] != "Error: broken" || results["tool_call_id"] != "2" {
		t.Errorf("a failed tool is sent as %v", results)
	}
}

func TestMessagesOfStrictTemplatesAlternate(t *testing.T) {
	messages := chatMessages(llm.Request{System: "be kind", Messages: []llm.Message{
		{Role: "user", Text: "one"}, {Role: "user", Text: "two"}, {Role: "assistant", Text: "three"}, {Role: "user", Text: "four"},
	}}, false)
	if len(messages) != 3 || messages[0].Content != "be kind\n\none\n\ntwo" || messages[0].Role != "user" {
		t.Errorf("%+v", messages)
	}
}

func TestTheCallsOfAMessageWithTooManyAreSplitWithTheirResults(t *testing.T) {
	var calls []llm.ToolCall
	messages := []llm.Message{{Role: "user", Text: "go"}, {Role: "assistant", Text: "I look."}}
	for n := range 300 {
		id := strconv.Itoa(n)
		calls = append(calls, llm.ToolCall{ID: id, Name: "look", Input: json.RawMessage(`{}`)})
		messages = append(messages, llm.Message{Role: "tool", ToolCallID: id, Text: "seen"})
	}
	messages[1].ToolCalls = calls
	messages = append(messages, llm.Message{Role: "user", Text: "more"})
	var sizes []int
	var open []string // calls without a result so far
	for i, message := range chatMessages(llm.Request{Messages: messages}, true) {
		switch message.Role {
		case "assistant":
			if len(open) > 0 {
				t.Fatalf("message %d follows %d calls without results", i, len(open))
			}
			sizes = append(sizes, len(message.ToolCalls))
			for _, call := range message.ToolCalls {
				open = append(open, call.ID)
			}
		case "tool":
			if len(open) == 0 || open[0] != message.ToolCallID {
				t.Fatalf("message %d is the result of %s", i, message.ToolCallID)
			}
			open = open[1:]
		}
	}
	if !slices.Equal(sizes, []int{128, 128, 44}) || len(open) > 0 {
		t.Errorf("messages with %v calls, %d without results", sizes, len(open))
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
