package http

import (
	"encoding/json"
	"fmt"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"turnstone/protocol"
	"turnstone/providers/model"
	"turnstone/providers/model/open"
)

// An emulation answers as one provider documents it: it refuses what that provider refuses, and asks for a calculation if it
// is offered the tool. It knows nothing of the service.
type emulation struct {
	config func(base string) open.Config
	tools  map[string]bool // by model: whether it calls tools
	path   string
	key    string                                                   // the header with the key, and its value
	check  func(r *stdhttp.Request, body requestBody) (int, string) // status and body of a refusal; 0: none
	call   func(w io.Writer)                                        // asks for the calculation
	say    func(w io.Writer, text string)                           // answers
	result func(body requestBody) (output string, is bool)          // the result of the tool, if the request ends with it
}

type requestBody map[string]any

func (b requestBody) list(name string) (list []requestBody) {
	items, _ := b[name].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		list = append(list, object)
	}
	return list
}

func (b requestBody) object(name string) requestBody {
	object, _ := b[name].(map[string]any)
	return object
}

func (b requestBody) text(name string) string {
	text, _ := b[name].(string)
	return text
}

// strictly refuses members that the provider does not know.
func (b requestBody) strictly(known ...string) string {
	for name := range b {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// chatResult is the result of the tool in the format Chat Completions. It also reports a history that the format forbids:
// each call of a message must have its result directly behind it.
func chatResult(body requestBody) (output string, is bool) {
	messages := body.list("messages")
	last := messages[len(messages)-1]
	return last.text("content"), last.text("role") == "tool"
}

func chatHistory(body requestBody) string {
	waiting := map[string]bool{}
	for i, message := range body.list("messages") {
		if message.text("role") != "tool" && len(waiting) > 0 {
			return fmt.Sprintf("An assistant message with 'tool_calls' must be followed by tool messages: %v", waiting)
		}
		switch message.text("role") {
		case "system", "user":
			if message["content"] == nil || message["content"] == "" {
				return fmt.Sprintf("messages[%d] has no content", i)
			}
		case "assistant":
			for _, call := range message.list("tool_calls") {
				if call.text("id") == "" || !json.Valid([]byte(call.object("function").text("arguments"))) {
					return fmt.Sprintf("messages[%d].tool_calls is not valid", i)
				}
				waiting[call.text("id")] = true
			}
		case "tool":
			if !waiting[message.text("tool_call_id")] {
				return fmt.Sprintf("messages[%d] is the result of no call", i)
			}
			delete(waiting, message.text("tool_call_id"))
		default:
			return fmt.Sprintf("messages[%d] has the role %q", i, message.text("role"))
		}
	}
	return ""
}

func events(w io.Writer, lines ...string) {
	for _, line := range lines {
		if strings.HasPrefix(line, "{") {
			line = "data: " + line
		}
		_, _ = io.WriteString(w, line+"\n\n")
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func sayInChat(w io.Writer, text string) {
	events(w, chatDelta(`{"role":"assistant","content":""}`), chatDelta(`{"content":`+quoted(text)+`}`), chatEnd("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`, "data: [DONE]")
}

func chatConfig(base string) open.Config {
	return open.Config{Provider: "openai", API: "chat", BaseURL: base + "/v1", APIKey: "sesame"}
}

const bearer = "Authorization: Bearer sesame"

var everyModel = map[string]bool{"a": true, "b": true, "c": true}

var emulations = map[string]emulation{
	"Ollama": {
		config: func(base string) open.Config {
			return open.Config{Provider: "openai", API: "chat", BaseURL: base + "/v1"}
		},
		path: "/v1/chat/completions",
		check: func(_ *stdhttp.Request, body requestBody) (int, string) {
			raw, _ := json.Marshal(body["messages"])
			switch {
			case body["tools"] != nil:
				return 400, `{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error","param":null,"code":null}}`
			case body["reasoning_effort"] != nil:
				return 400, `{"error":{"message":"\"gemma3:4b\" does not support thinking","type":"api_error","param":null,"code":null}}`
			case len(raw)/4 > 8192:
				return 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":9999,"n_ctx":8192}}`
			}
			return 0, ""
		},
		say: sayInChat, result: chatResult,
	},
	"DeepSeek": {
		config: chatConfig, tools: everyModel, path: "/v1/chat/completions", key: bearer,
		check: func(_ *stdhttp.Request, body requestBody) (int, string) {
			if limit, _ := body["max_tokens"].(float64); limit < 1 || limit > 8192 {
				return 400, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`
			}
			messages := body.list("messages")
			for i, message := range messages {
				if message["tool_calls"] != nil && i == len(messages)-2 && message.text("reasoning_content") != "I add them." {
					return 400, fmt.Sprintf("{\"error\":{\"message\":\"Missing `reasoning_content` field in the assistant message at message index %d\"}}", i)
				}
			}
			return 0, ""
		},
		call: func(w io.Writer) {
			events(w, ": keep-alive", chatDelta(`{"role":"assistant","content":null,"reasoning_content":""}`), chatDelta(`{"content":null,"reasoning_content":"I add "}`), chatDelta(`{"content":null,"reasoning_content":"them."}`),
				chatDelta(`{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"calculate","arguments":""}}]}`), chatDelta(`{"tool_calls":[{"index":0,"function":{`+fourTwo+`}}]}`), chatEnd("tool_calls"), "data: [DONE]")
		},
		say: sayInChat, result: chatResult,
	},
	"Gemini": {
		config: chatConfig, tools: everyModel, path: "/v1/chat/completions", key: bearer,
		check: func(_ *stdhttp.Request, body requestBody) (int, string) {
			if name := body.strictly("model", "messages", "stream", "stream_options", "max_tokens", "tools", "tool_choice", "temperature", "top_p", "reasoning_effort"); name != "" {
				return 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"` + name + `\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`
			}
			for _, message := range body.list("messages") {
				for _, call := range message.list("tool_calls") {
					if call.object("extra_content").object("google").text("thought_signature") != "c2ln" {
						return 400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`
					}
				}
			}
			return 0, ""
		},
		call: func(w io.Writer) { // no index, no identifier, and another reason than tool_calls
			events(w, `{"choices":[{"delta":{"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},"function":{`+fourTwo+`,"name":"calculate"},"id":"","type":"function"}]},"finish_reason":"stop","index":0}],"usage":{"completion_tokens":5,"prompt_tokens":9,"total_tokens":14}}`, "data: [DONE]")
		},
		say: sayInChat, result: chatResult,
	},
	"Azure": {
		config: func(base string) open.Config {
			return open.Config{Provider: "openai", API: "chat", BaseURL: base + "/openai/deployments/d?api-version=2024-10-21", Client: model.Options{Headers: stdhttp.Header{"Api-Key": {"sesame"}}}}
		},
		tools: everyModel, path: "/openai/deployments/d/chat/completions", key: "Api-Key: sesame",
		check: func(r *stdhttp.Request, body requestBody) (int, string) {
			switch {
			case r.URL.Query().Get("api-version") != "2024-10-21":
				return 404, `{"error":{"code":"404","message":"Resource not found"}}`
			case body["max_tokens"] != nil:
				return 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
			case body["reasoning_effort"] != nil:
				return 400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}`
			}
			return 0, ""
		},
		call: func(w io.Writer) {
			events(w, `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`,
				chatDelta(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_Az","type":"function","function":{"name":"calculate","arguments":""}}]}`), chatDelta(`{"tool_calls":[{"index":0,"function":{`+fourTwo+`}}]}`), chatEnd("tool_calls"), "data: [DONE]")
		},
		say: sayInChat, result: chatResult,
	},
	"OpenRouter": {
		config: chatConfig, tools: map[string]bool{"a": true, "b": true}, path: "/v1/chat/completions", key: bearer,
		check: func(_ *stdhttp.Request, body requestBody) (int, string) {
			if body["model"] == "c" && body["tools"] != nil {
				return 404, `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs","code":404}}`
			}
			messages := body.list("messages")
			for i, message := range messages {
				if message["tool_calls"] != nil && i == len(messages)-2 && len(message.list("reasoning_details")) == 0 {
					return 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"reasoning_details must be passed back"}}}`
				}
			}
			return 0, ""
		},
		call: func(w io.Writer) {
			events(w, ": OPENROUTER PROCESSING", ": OPENROUTER PROCESSING", chatDelta(`{"role":"assistant","content":"","reasoning":"I add.","reasoning_details":[{"type":"reasoning.text","text":"I add.","signature":"c2ln","format":"anthropic-claude-v1","index":0}]}`),
				chatDelta(`{"tool_calls":[{"index":0,"id":"toolu_1","type":"function","function":{"name":"calculate","arguments":""}}]}`), chatDelta(`{"tool_calls":[{"index":0,"id":null,"function":{`+fourTwo+`}}]}`), chatEnd("tool_calls"), "data: [DONE]")
		},
		say: sayInChat, result: chatResult,
	},
	"Anthropic": {
		config: func(base string) open.Config {
			return open.Config{Provider: "anthropic", BaseURL: base, APIKey: "sesame"}
		},
		tools: everyModel, path: "/v1/messages", key: "X-Api-Key: sesame",
		check: func(r *stdhttp.Request, body requestBody) (int, string) {
			refuse := func(message string) (int, string) {
				return 400, `{"type":"error","error":{"type":"invalid_request_error","message":` + quoted(message) + `},"request_id":"req_1"}`
			}
			limit, _ := body["max_tokens"].(float64)
			thinking := body.object("thinking")
			budget, _ := thinking["budget_tokens"].(float64)
			switch {
			case r.Header.Get("Anthropic-Version") == "":
				return refuse("anthropic-version: header is required")
			case limit < 1:
				return refuse("max_tokens: Field required")
			case thinking.text("type") == "enabled" && (budget < 1024 || budget >= limit):
				return refuse("`max_tokens` must be greater than `thinking.budget_tokens`")
			}
			waiting := map[string]bool{}
			for i, message := range body.list("messages") {
				blocks := message.list("content")
				if message.text("role") == "user" {
					for _, block := range blocks {
						delete(waiting, block.text("tool_use_id"))
					}
				}
				if len(waiting) > 0 {
					return refuse(fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after", i))
				}
				for _, block := range blocks {
					if block.text("type") == "tool_use" {
						waiting[block.text("id")] = true
						if thinking.text("type") == "enabled" && (blocks[0].text("type") != "thinking" || blocks[0].text("signature") != "c2ln") {
							return refuse(fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`", i, blocks[0].text("type")))
						}
					}
				}
			}
			return 0, ""
		},
		call: func(w io.Writer) {
			for _, line := range []string{
				`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"ping"}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I add."}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"calculate","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"expression\": \"40+2\"}"}}`, `{"type":"content_block_stop","index":1}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}}`, `{"type":"message_stop"}`,
			} {
				var event struct{ Type string }
				_ = json.Unmarshal([]byte(line), &event)
				_, _ = io.WriteString(w, "event: "+event.Type+"\ndata: "+line+"\n\n")
			}
		},
		say: func(w io.Writer, text string) {
			events(w, `{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quoted(text)+`}}`, `{"type":"content_block_stop","index":0}`, claudeStop)
		},
		result: func(body requestBody) (string, bool) {
			messages := body.list("messages")
			for _, block := range messages[len(messages)-1].list("content") {
				if block.text("type") == "tool_result" {
					for _, part := range block.list("content") {
						return part.text("text"), true
					}
					return block.text("content"), true
				}
			}
			return "", false
		},
	},
	"OpenAI Responses": {
		config: func(base string) open.Config {
			return open.Config{Provider: "openai", API: "responses", BaseURL: base + "/v1", APIKey: "sesame"}
		},
		tools: everyModel, path: "/v1/responses", key: bearer,
		check: func(_ *stdhttp.Request, body requestBody) (int, string) {
			refuse := func(param, message string) (int, string) {
				return 400, `{"error":{"message":` + quoted(message) + `,"type":"invalid_request_error","param":"` + param + `","code":"unsupported_value"}}`
			}
			reasoning := body.object("reasoning")
			if reasoning["summary"] != nil {
				return refuse("reasoning.summary", "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.")
			}
			if body["model"] == "c" && reasoning["effort"] != nil {
				return refuse("reasoning.effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model.")
			}
			calls := map[string]bool{}
			items := body.list("input")
			for i, item := range items {
				switch item.text("type") {
				case "reasoning":
					if item.text("encrypted_content") == "" || i+1 == len(items) || items[i+1].text("type") != "function_call" {
						return refuse("input", "Item 'rs_1' of type 'reasoning' was provided without its required following item.")
					}
				case "function_call":
					calls[item.text("call_id")] = true
				case "function_call_output":
					if !calls[item.text("call_id")] {
						return refuse("input", "No tool call found for function call output with call_id "+item.text("call_id")+".")
					}
				}
			}
			return 0, ""
		},
		call: func(w io.Writer) {
			events(w, `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`,
				`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2VjcmV0"}}`,
				`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"calculate"}}`,
				`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"expression\":"}`, `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"40+2\"}"}`,
				`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,`+fourTwo+`}`,
				`{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed",`+fourTwo+`,"call_id":"call_1","name":"calculate"}}`,
				`{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[{"id":"fc_1","type":"function_call","status":"completed",`+fourTwo+`,"call_id":"call_1","name":"calculate"}],"usage":{"input_tokens":9,"output_tokens":20}}}`)
		},
		say: func(w io.Writer, text string) {
			events(w, `{"type":"response.created","response":{"id":"resp_2","object":"response","status":"in_progress","output":[]}}`, `{"type":"response.output_text.delta","item_id":"msg_1","delta":`+quoted(text)+`}`,
				`{"type":"response.output_item.done","item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":`+quoted(text)+`,"annotations":[]}]}}`,
				`{"type":"response.completed","response":{"id":"resp_2","object":"response","status":"completed","usage":{"input_tokens":9,"output_tokens":3}}}`)
		},
		result: func(body requestBody) (string, bool) {
			items := body.list("input")
			last := items[len(items)-1]
			return last.text("output"), last.text("type") == "function_call_output"
		},
	},
}

// emulated serves an emulation and notes its refusals, and requests that no client should send.
type emulated struct {
	emulation
	mu       sync.Mutex
	refusals []string // guarded by mu
	wrong    []string // guarded by mu
}

func (e *emulated) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	var body requestBody
	raw, _ := io.ReadAll(r.Body)
	err := json.Unmarshal(raw, &body)
	e.mu.Lock()
	defer e.mu.Unlock()
	name, value, _ := strings.Cut(e.key, ": ")
	switch wrong := chatHistory(body); {
	case err != nil || r.Method != "POST" || r.URL.Path != e.path:
		e.wrong = append(e.wrong, fmt.Sprint(err, r.Method, r.URL.Path))
	case e.key != "" && r.Header.Get(name) != value:
		e.wrong = append(e.wrong, "no key")
	case wrong != "" && strings.HasSuffix(e.path, "completions"):
		e.wrong = append(e.wrong, wrong)
	}
	if status, refusal := e.check(r, body); status != 0 {
		e.refusals = append(e.refusals, refusal)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, refusal)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch output, is := e.result(body); {
	case is:
		e.say(w, "It is "+strings.TrimSpace(output)+".")
	case e.tools[body.text("model")] && body["tools"] != nil && !strings.Contains(string(raw), "You are welcome"):
		e.call(w)
	default:
		e.say(w, "You are welcome.")
	}
}

// TestProvidersWorkWithTheirAddressKeyAndModelOnly holds a conversation with each provider: a question with a tool, then
// others. A provider refuses what it cannot do only once.
func TestProvidersWorkWithTheirAddressKeyAndModelOnly(t *testing.T) {
	t.Parallel()
	for name, each := range emulations {
		t.Run(name, func(t *testing.T) {
			provider := &emulated{emulation: each}
			server := httptest.NewServer(provider)
			t.Cleanup(server.Close)
			config := each.config(server.URL)
			config.Client.Backoff = 1
			client, err := open.Model(config)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, client, nil, func() {}) })
			c := w.client().register("ada@example.com")
			for id, profile := range map[string]protocol.Profile{"a": protocol.ProfileBalanced, "b": protocol.ProfileDeepReasoning, "c": protocol.ProfileCoding} {
				started, finished := turnOf(t, c.expect(200, "POST", "/chat", asking("What is 40+2?", nil, "profile", profile)).body)
				got, want := storedAnswer(c.newestFirst(started.ConversationID)[0]), "complete text:You are welcome."
				if each.tools[id] {
					want = "tool:calculate=42 text:It is 42."
				}
				if !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "complete") || finished.Error != nil {
					t.Errorf("%s: got %s, %+v, want %s", profile, got, finished.Error, want)
				}
				for range 4 { // long enough for a small context
					c.expect(200, "POST", "/chat", asking("Thank you. "+strings.Repeat("tide ", 3000), nil, "profile", profile, "conversation_id", started.ConversationID))
					if got := storedAnswer(c.newestFirst(started.ConversationID)[0]); !strings.HasPrefix(got, "complete") {
						t.Errorf("%s: got %s", profile, got)
					}
				}
			}
			provider.mu.Lock()
			defer provider.mu.Unlock()
			if len(provider.wrong) > 0 || len(provider.refusals) > 9 { // three models, each of which may refuse three things
				t.Errorf("%q; refused: %d times, %q", provider.wrong, len(provider.refusals), provider.refusals)
			}
			t.Logf("%d refusals", len(provider.refusals))
		})
	}
}
