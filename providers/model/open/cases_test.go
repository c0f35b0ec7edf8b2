package open_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/open"
)

// answerCase is an answer of a real server, and what the service makes of it.
type answerCase struct {
	name string
	api  string // chat, responses or anthropic
	body string // of the response; a line that starts with "{" is an event
	want string // text, (reasoning), name{input} and the stop reason; or "!", the code of the failure and "cut"
}

var answerCases = []answerCase{
	{"an end without its marker", "chat", delta(`{"content":"Hi"}`) + end("stop"), "Hi end_turn"},
	{"a call without the marker", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"clock","arguments":"{}"}}]}`) + end("tool_calls"), "clock{} tool_calls"},
	{"an answer that is cut", "chat", delta(`{"content":"Hi"}`), "!model_unavailable cut"},
	{"a stop reason and no message_stop", "anthropic", block(`{"type":"text","text":"Hi"}`) + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "Hi end_turn"},

	{"an error event", "chat", delta(`{"content":"Hi"}`) + "event: error\n" + `data: {"message":"boom"}` + "\n\ndata: [DONE]\n\n", "!model_unavailable cut"},
	{"an error line", "chat", delta(`{"content":"Hi"}`) + `error: {"message":"boom"}` + "\n\ndata: [DONE]\n\n", "!model_unavailable cut"},
	{"an error object", "chat", delta(`{"content":"Hi"}`) + `{"object":"error","message":"boom"}` + "\n[DONE]", "!model_unavailable cut"},
	{"an error code", "chat", delta(`{"content":"Hi"}`) + `{"text":"NETWORK ERROR","error_code":50004}` + "\n[DONE]", "!model_unavailable cut"},
	{"an error without type", "anthropic", block(`{"type":"text","text":"Hi"}`) + "event: error\n" + `data: {"message":"boom"}`, "!model_unavailable cut"},
	{"a completed response that failed", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.completed","response":{"status":"failed"}}`, "!model_unavailable cut"},

	{"a reason that is none", "chat", chunk(`{"content":"Hi"}`, `"null"`) + "\n", "!model_unavailable cut"},
	{"a whole answer without a message", "chat", `={"choices":[{"index":0}]}`, "!model_unavailable"},
	{"no resources", "chat", delta(`{"content":"Hi"}`) + end("insufficient_system_resource"), "!model_unavailable cut"},
	{"a network error", "chat", delta(`{"content":"Hi"}`) + end("network_error"), "!model_unavailable cut"},
	{"an abort", "chat", delta(`{"content":"Hi"}`) + end("abort"), "!model_unavailable cut"},
	{"the limit of Gemini", "chat", delta(`{"content":"Hi"}`) + end("MAX_TOKENS"), "Hi max_tokens"},
	{"the limit of Mistral", "chat", delta(`{"content":"Hi"}`) + end("model_length"), "Hi max_tokens"},
	{"the context of Claude", "anthropic", claude("model_context_window_exceeded"), "Hi max_tokens"},
	{"a pause", "anthropic", claude("pause_turn"), "Hi max_tokens"},
	{"safety", "chat", delta(`{"content":"Hi"}`) + end("SAFETY"), "Hi refusal"},
	{"recitation", "chat", delta(`{"content":"Hi"}`) + end("RECITATION"), "Hi refusal"},
	{"sensitive", "chat", delta(`{"content":"Hi"}`) + end("sensitive"), "Hi refusal"},
	{"guardrails", "anthropic", claude("guardrail_intervened"), "Hi refusal"},
	{"an unknown reason", "chat", delta(`{"content":"Hi"}`) + end("because"), "Hi end_turn"},
	{"incomplete without a reason", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.incomplete","response":{"status":"incomplete"}}`, "Hi max_tokens"},

	{"calls with the index 0 and no identifier", "chat", delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"clock","arguments":"{\"x\":1}"}}]}`) + delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"calc","arguments":"{\"y\":2}"}}]}`) + end("tool_calls"), `clock{"x":1} calc{"y":2} tool_calls`},
	{"calls with the same identifier", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}}]}`) + delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":2}"}}]}`) + end("tool_calls"), `calc{"x":1} calc{"x":2} tool_calls`},
	{"calls without an index", "chat", delta(`{"tool_calls":[{"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"calc","arguments":"{\"x\":2}"}}]}`) + end("tool_calls"), `calc{"x":1} calc{"x":2} tool_calls`},
	{"content in parts", "chat", delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hello"}]}`) + end("stop"), "(Hm) Hello end_turn"},

	{"thoughts in pieces", "chat", delta(`{"content":"<th"}`) + delta(`{"content":"ink>Hm</thi"}`) + delta(`{"content":"nk>\n\nHello"}`) + end("stop"), "(Hm) Hello end_turn"},
	{"thoughts without a start", "chat", delta(`{"content":"Hm"}`) + delta(`{"content":"\n</think>\n\nHello"}`) + end("stop"), "Hm\n <thought> Hello end_turn"},
	{"thoughts by other names", "chat", delta(`{"content":"<thought>Hm</thought>A\n<reasoning>x</reasoning>B"}`) + end("stop"), "(Hm) A\n (x) B end_turn"},
	{"thoughts in code", "chat", delta("{\"content\":\"```\\n<think>\\n```\\nThe `</think>` tag\"}") + end("stop"), "```\n<think>\n```\nThe `</think>` tag end_turn"},

	{"thoughts in other code", "chat", delta("{\"content\":\"~~~~\\n```\\n</think>\\n~~~\\n</think>\\n~~~~\"}") + end("stop"), "~~~~\n```\n</think>\n~~~\n</think>\n~~~~ end_turn"},
	{"a text about thoughts", "chat", delta(`{"content":"The tags:\n<think>, <thought> and\n<reasoning> start one."}`) + end("stop"), "The tags:\n<think>, <thought> and\n<reasoning> start one. end_turn"},

	{"only whole texts", "responses", `{"type":"response.output_text.done","text":"Hi"}` + "\n" + done(``), "Hi end_turn"},
	{"only whole items", "responses", `{"type":"response.output_item.done","item":{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]}}` + "\n" + done(``), "Hi end_turn"},
	{"only the response", "responses", done(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"clock","arguments":"{}"}]`), "Hi clock{} tool_calls"},
	{"whole arguments only", "responses", `{"type":"response.function_call_arguments.done","item_id":"i","arguments":"{\"x\":1}"}` + "\n" + `{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"calc","arguments":""}}` + "\n" + done(``), `calc{"x":1} tool_calls`},
	{"a whole refusal only", "responses", `{"type":"response.refusal.done","refusal":"No."}` + "\n" + done(``), "No. refusal"},
	{"messages in several ways", "responses", `{"type":"response.output_text.delta","item_id":"a","delta":"A"}` + "\n" + `{"type":"response.output_item.done","item":{"type":"message","id":"a2","content":[{"type":"output_text","text":"A"}]}}` + "\n" + `{"type":"response.output_item.done","item":{"type":"message","id":"b","content":[{"type":"output_text","text":"B"}]}}` + "\n" + done(`,"output":[{"type":"message","id":"a3","content":[{"type":"output_text","text":"A"}]},{"type":"message","id":"b3","content":[{"type":"output_text","text":"B"}]}],"output_text":"AB"`), "AB end_turn"},
	{"a call with several identifiers", "responses", `{"type":"response.output_item.done","item":{"type":"function_call","id":"i","call_id":"c","name":"calc","arguments":"{\"x\":1}"}}` + "\n" + done(`,"output":[{"type":"function_call","id":"j","call_id":"c","name":"calc","arguments":"{\"x\":1}"}]`), `calc{"x":1} tool_calls`},
	{"everything twice", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.output_text.done","text":"Hi"}` + "\n" + done(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]`), "Hi end_turn"},

	{"a whole answer", "chat", `=` + `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "Hi end_turn"},
	{"a whole response", "responses", `=` + `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`, "Hi end_turn"},
	{"a whole message", "anthropic", `=` + `{"type":"message","content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"clock","input":{}}],"stop_reason":"tool_use"}`, "Hi clock{} tool_calls"},
	{"an error as a whole answer", "chat", `=` + `{"error":{"message":"boom","code":503}}`, "!model_unavailable"},
	{"events without blank lines", "chat", "=data: " + chunk(`{"content":"Hi"}`, "null") + "\ndata: " + chunk(`{}`, `"stop"`) + "\ndata: [DONE]\n", "Hi end_turn"},
	{"carriage returns", "chat", "=data: " + chunk(`{"content":"Hi"}`, "null") + "\r\rdata: " + chunk(`{}`, `"stop"`) + "\r\rdata: [DONE]\r\r", "Hi end_turn"},
	{"a byte order mark", "chat", "=\ufeffdata: " + chunk(`{"content":"Hi"}`, "null") + "\n\ndata: " + chunk(`{}`, `"stop"`) + "\n\n", "Hi end_turn"},
	{"compressed", "chat", "=" + compressed("data: "+chunk(`{"content":"Hi"}`, "null")+"\n\ndata: "+chunk(`{}`, `"stop"`)+"\n\n"), "Hi end_turn"},
	{"a web page", "chat", "=<html><title>Sign in</title></html>", "!model_protocol"},

	{"half characters", "chat", delta(`{"content":"a\ud83d"}`) + delta(`{"content":"\udc26b"}`) + end("stop"), "a🐦b end_turn"},
	{"a half character", "chat", delta(`{"content":"a\ud83d"}`) + delta(`{"content":"b"}`) + end("stop"), "a\ufffdb end_turn"},
	{"half characters of Claude", "anthropic", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"\ud83d"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"text_delta","text":"\udc26"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "🐦 end_turn"},

	{"a name in pieces", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"clo","arguments":""}}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"name":"ck","arguments":"{}"}}]}`) + end("tool_calls"), "clock{} tool_calls"},
	{"a name with a namespace", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"functions.Clock<|channel|>x","arguments":"{}"}}]}`) + end("tool_calls"), "clock{} tool_calls"},
	{"arguments encoded twice", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"\"{\\\"x\\\":1}\""}}]}`) + end("tool_calls"), `calc{"x":1} tool_calls`},
	{"arguments in a fence", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"`+"```json"+`\n{\"x\":1}\n`+"```"+`"}}]}`) + end("tool_calls"), `calc{"x":1} tool_calls`},
	{"repeated arguments", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}}]}`) + delta(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}]}`) + end("tool_calls"), `calc{"x":1} tool_calls`},
	{"arguments as an object", "chat", delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":{"x":1}}}]}`) + end("tool_calls"), `calc{"x":1} tool_calls`},
	{"the whole input at once", "anthropic", block(`{"type":"tool_use","id":"t","name":"calc","input":{"x":1}}`) + `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n" + `{"type":"message_stop"}`, `calc{"x":1} tool_calls`},
	{"sources", "chat", delta(`{"content":"Hi","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}]}`) + end("stop"), "Hi [A https://a.example] end_turn"},
	{"sources of a response", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.output_text.annotation.added","annotation":{"type":"url_citation","url":"https://a.example","title":"A"}}` + "\n" + done(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi","annotations":[{"type":"url_citation","url":"https://a.example","title":"A"},{"type":"url_citation","url":"javascript:x"}]}]}]`), "Hi [A https://a.example] end_turn"},
	{"sources of Claude", "anthropic", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"A"}}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "Hi [A https://a.example] end_turn"},
	{"members of other types", "chat", `{"id":5,"created":"now","choices":[{"index":"0","delta":{"content":"Hi","tool_calls":{}},"finish_reason":null}],"usage":"none"}` + "\n" + end("stop"), "Hi end_turn"},
}

func chunk(delta, reason string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
}

func delta(content string) string { return chunk(content, "null") + "\n" }
func end(reason string) string    { return chunk("{}", `"`+reason+`"`) + "\n" }
func done(more string) string {
	return `{"type":"response.completed","response":{"status":"completed"` + more + `}}`
}

func block(content string) string {
	return `{"type":"content_block_start","content_block":` + content + "}\n" + `{"type":"content_block_stop"}` + "\n"
}

func claude(reason string) string {
	return block(`{"type":"text","text":"Hi"}`) + `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}` + "\n" + `{"type":"message_stop"}`
}

func compressed(text string) string {
	var to bytes.Buffer
	writer := gzip.NewWriter(&to)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	return to.String()
}

// body returns the bytes of a case. "=" means that they are written as they are.
func (c *answerCase) bytes() string {
	if raw, is := strings.CutPrefix(c.body, "="); is {
		return raw
	}
	return regexp.MustCompile(`(?m)^(\{.*\}|\[DONE\])$\n?`).ReplaceAllString(c.body, "data: $1\n\n")
}

// TestAnswersOfRealServers sends every case at once, byte by byte with keep-alives, and with a wrong type.
func TestAnswersOfRealServers(t *testing.T) {
	var current atomic.Pointer[func(http.ResponseWriter)]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (*current.Load())(w) }))
	defer server.Close()
	ways := map[string]func(text string) func(http.ResponseWriter){
		"at once": func(text string) func(http.ResponseWriter) {
			return func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/octet-stream")
				_, _ = w.Write([]byte(text))
			}
		},
		"byte by byte": func(text string) func(http.ResponseWriter) {
			return func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range len(text) {
					_, _ = w.Write([]byte{text[i]})
					_ = http.NewResponseController(w).Flush()
				}
			}
		},
		"with keep-alives": func(text string) func(http.ResponseWriter) {
			return func(w http.ResponseWriter) {
				if strings.Contains(text, "\n\n") && strings.HasPrefix(text, "data") {
					text = ": keep-alive\n\n" + strings.ReplaceAll(text, "\n\n", "\n\n: keep-alive\n\n")
				}
				_, _ = w.Write([]byte(text))
			}
		},
	}
	for way, write := range ways {
		for _, each := range answerCases {
			answer := write(each.bytes())
			current.Store(&answer)
			if got := ask(t, each.api, server.URL); got != each.want {
				t.Errorf("%s, %s:\n got %q\nwant %q", each.name, way, got, each.want)
			}
		}
	}
}

func connect(t *testing.T, api, url string, options model.Options) llm.Model {
	t.Helper()
	options.Backoff = time.Nanosecond
	config := open.Config{Provider: "openai", API: api, BaseURL: url, Client: options}
	if api == "anthropic" {
		config = open.Config{Provider: api, BaseURL: url, Client: options}
	}
	provider, err := open.Model(config)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func question() llm.Request {
	return llm.Request{
		Model: "m", Messages: []llm.Message{{Role: "user", Text: "hello"}}, MaxOutputTokens: 100, Step: 1,
		Tools: []llm.Tool{{Name: "clock"}, {Name: "calc"}},
	}
}

// ask returns the answer of a server in the notation of answerCase.want.
func ask(t *testing.T, api, url string) string {
	t.Helper()
	var parts []string
	kind := llm.ChunkKind(0)
	err := connect(t, api, url, model.Options{}).Stream(t.Context(), question(), func(chunk llm.Chunk) error {
		switch last := len(parts) - 1; {
		case (chunk.Kind == llm.ChunkText || chunk.Kind == llm.ChunkReasoning) && chunk.Kind == kind:
			parts[last] += chunk.Text
		case chunk.Kind == llm.ChunkText, chunk.Kind == llm.ChunkReasoning:
			parts = append(parts, chunk.Text)
		case chunk.Kind == llm.ChunkToolCall:
			parts = append(parts, chunk.ToolCall.Name+string(chunk.ToolCall.Input))
		case chunk.Kind == llm.ChunkCitation:
			parts = append(parts, "["+chunk.Text+" "+chunk.Address+"]")
		case chunk.Kind == llm.ChunkThought:
			parts = append(parts, "<thought>")
		case chunk.Kind == llm.ChunkStop:
			parts = append(parts, string(chunk.Stop))
		default:
			return nil
		}
		if last := len(parts) - 1; kind == llm.ChunkReasoning && chunk.Kind != kind {
			parts[last-1] = "(" + parts[last-1] + ")"
		}
		kind = chunk.Kind
		return nil
	})
	var failure *llm.Error
	switch {
	case errors.As(err, &failure) && failure.Cut:
		return "!" + string(failure.Code) + " cut"
	case errors.As(err, &failure):
		return "!" + string(failure.Code)
	}
	return strings.Join(parts, " ")
}
