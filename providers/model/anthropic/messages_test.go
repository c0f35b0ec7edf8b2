package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model/modeltest"
)

// TestOnlyClaudeGetsMarksOfTheCache marks the system prompt, which follows the tools, and the end of the history.
func TestOnlyClaudeGetsMarksOfTheCache(t *testing.T) {
	for name, want := range map[string]int{"claude-sonnet-4-5": 2, "us.anthropic.claude-sonnet-4-5": 2, "MiniMax-M2": 0} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":7,"output_tokens":1}}`)
		}))
		model, err := New(Options{BaseURL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		var used llm.Usage
		request := llm.Request{Model: name, System: "Be brief.", MaxOutputTokens: 10, Messages: []llm.Message{{Role: "user", Text: "hello"}}, Tools: []llm.Tool{{Name: "clock"}}}
		err = model.Stream(t.Context(), request, func(chunk llm.Chunk) error {
			if chunk.Kind == llm.ChunkUsage {
				used = chunk.Usage
			}
			return nil
		})
		server.Close()
		if got := strings.Count(string(body), `"cache_control":{"type":"ephemeral"}`); err != nil || got != want {
			t.Errorf("%s: %d marks, want %d: %s, %v", name, got, want, body, err)
		}
		if used.InputTokens != 50 || used.CachedInputTokens != 40 {
			t.Errorf("%s: %+v", name, used)
		}
	}
}

func TestACutAnswerIsContinuedToTheByte(t *testing.T) {
	for _, each := range []struct{ prefix, continuation, whole string }{
		{"A small wader", " of the shore.", "A small wader of the shore."},
		{"A small wader ", " of the shore.", "A small wader of the shore."}, // the model repeats the white space that was not sent
		{"A small wader ", "of the shore.", "A small wader of the shore."},
		{"First.\n\n", "\n\nSecond.", "First.\n\nSecond."},
		{"First.\n\n", "\nSecond.", "First.\n\nSecond."},
	} {
		server := modeltest.NewServer(modeltest.Anthropic, modeltest.Script{Steps: []modeltest.Step{
			{Text: []string{each.continuation[:1], each.continuation[1:]}},
		}})
		provider, err := New(Options{BaseURL: server.URL, Prefill: true})
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := modeltest.Collect(t.Context(), t, provider, llm.Request{
			Model: "claude-sonnet-4-5", MaxOutputTokens: 8000, ReasoningEffort: "high",
			Messages: []llm.Message{{Role: "user", Text: "What is it?"}, {Role: "assistant", Text: each.prefix}},
		})
		if got := each.prefix + modeltest.TextOf(chunks); err != nil || got != each.whole {
			t.Errorf("%q and %q gave %q, %v", each.prefix, each.continuation, got, err)
		}
		if raw := string(server.Requests()[0].Raw); strings.Contains(raw, `"thinking"`) {
			t.Errorf("a continuation requests thinking: %s", raw)
		}
		if !provider.Continues() {
			t.Error("Continues returns false")
		}
		server.Close()
	}
}

func TestThinkingIsRequestedAsTheModelRequires(t *testing.T) {
	for name, want := range map[string]string{
		"claude-3-5-haiku-latest":           ``,
		"claude-sonnet-4-20250514":          `"thinking":{"budget_tokens":2976,"type":"enabled"}`,
		"claude-opus-4-5":                   `"thinking":{"budget_tokens":2976,"type":"enabled"}`,
		"claude-opus-4-6":                   `"output_config":{"effort":"high"},"thinking":{"display":"summarized","type":"adaptive"}`,
		"us.anthropic.claude-opus-4-6-v1:0": `"output_config":{"effort":"high"},"thinking":{"display":"summarized","type":"adaptive"}`,
		"anthropic/claude-sonnet-4.5":       `"thinking":{"budget_tokens":2976,"type":"enabled"}`,
		"kimi-k2-thinking":                  ``,
		"claude-of-next-year":               `"output_config":{"effort":"high"},"thinking":{"display":"summarized","type":"adaptive"}`,
	} {
		params, _ := bodyOf(llm.Request{
			Model: name, MaxOutputTokens: 4000, ReasoningEffort: "high", Messages: []llm.Message{{Role: "user", Text: "hi"}},
		})
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "messages")
		delete(fields, "model")
		delete(fields, "max_tokens")
		if raw, _ = json.Marshal(fields); string(raw) != "{"+want+"}" {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

func TestNeighboursOfOneRoleAreOneMessage(t *testing.T) {
	messages, _ := messagesOf([]llm.Message{
		{Role: "user", Text: "one"},
		{Role: "user", Text: " "},
		{Role: "user", Text: "two"},
		{Role: "assistant"}, // no content: no message
		{Role: "user", Text: "three"},
		{Role: "assistant", ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Input: json.RawMessage(`{}`)}}},
		{Role: "tool", ToolCallID: "a", Text: "r", ToolFailed: true},
		{Role: "user", Text: "four"},
	})
	var shape []string
	for _, message := range messages {
		shape = append(shape, message.Role+strings.Repeat("+", len(message.Content)))
	}
	if got := strings.Join(shape, " "); got != "user+++ assistant+ user++" {
		t.Error(got)
	}
	if result := messages[2].Content[0]; result.Type != "tool_result" || !result.IsError {
		t.Error("the failed result must come first and be marked as an error")
	}
}

func TestRedactedThinkingIsSentBackUnchanged(t *testing.T) {
	raw, err := json.Marshal([]map[string]any{{"raw": thought{Redacted: "xyz"}}, {"text": 2}})
	if err != nil {
		t.Fatal(err)
	}
	_, blocks := blocksOf(llm.Message{Role: "assistant", Text: "ok", Opaque: raw, OpaqueOwner: Family})
	if len(blocks) != 2 || blocks[0].Type != "redacted_thinking" || blocks[0].Data != "xyz" {
		t.Errorf("got %+v", blocks)
	}
}

func TestThoughtsStayWithTheirCallsHoweverManyThereAre(t *testing.T) {
	var layout []map[string]any
	message := llm.Message{Role: "assistant", OpaqueOwner: Family}
	messages := []llm.Message{{Role: "user", Text: "go"}, {}}
	for n := range 200 {
		id := strconv.Itoa(n)
		layout = append(layout, map[string]any{"raw": thought{Thinking: "about " + id, Signature: "s" + id}}, map[string]any{"call": true})
		message.ToolCalls = append(message.ToolCalls, llm.ToolCall{ID: id, Name: "look", Input: json.RawMessage(`{}`)})
		messages = append(messages, llm.Message{Role: "tool", ToolCallID: id, Text: "seen"})
	}
	var err error
	if message.Opaque, err = json.Marshal(layout); err != nil {
		t.Fatal(err)
	}
	messages[1] = message
	sent, _ := messagesOf(messages)
	if len(sent) != 3 || len(sent[1].Content) != 400 || len(sent[2].Content) != 200 {
		t.Fatalf("%d messages", len(sent))
	}
	for n := range 200 {
		thinking, call := sent[1].Content[2*n], sent[1].Content[2*n+1]
		if id := strconv.Itoa(n); thinking.Signature != "s"+id || *thinking.Thinking != "about "+id || call.Type != "tool_use" || call.ID != id {
			t.Fatalf("block %d is %+v before %+v", 2*n, thinking, call)
		}
	}
}

func TestTheEnvironmentIsNotRead(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "key-of-the-environment", "ANTHROPIC_AUTH_TOKEN": "token-of-the-environment",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "ANTHROPIC_CUSTOM_HEADERS": "X-Stray: 1", "HTTP_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	server := modeltest.NewServer(modeltest.Anthropic, modeltest.Script{Steps: []modeltest.Step{{Text: []string{"ok"}}}})
	defer server.Close()
	provider, err := New(Options{BaseURL: server.URL + "/v1/", APIKey: "ours"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := modeltest.Collect(t.Context(), t, provider, llm.Request{
		Model: "m", MaxOutputTokens: 10, Messages: []llm.Message{{Role: "user", Text: "hi"}},
	}); err != nil {
		t.Fatal(err)
	}
	header := server.Requests()[0].Header
	if header.Get("X-Api-Key") != "ours" || header.Get("Authorization") != "" || header.Get("X-Stray") != "" {
		t.Errorf("sent %v", header)
	}
}

// The API refuses the calls of earlier steps in a request that names no tools.
func TestToolsThatMayNotBeCalledStay(t *testing.T) {
	body, _ := bodyOf(llm.Request{Model: "claude-x", Tools: []llm.Tool{{Name: "clock"}}, WithoutCalls: true, HideTools: true})
	if len(body.Tools) != 1 || body.ToolChoice == nil || *body.ToolChoice != (toolChoice{"none"}) {
		t.Errorf("%d tools, choice %v", len(body.Tools), body.ToolChoice)
	}
}
