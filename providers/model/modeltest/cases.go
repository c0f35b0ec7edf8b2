package modeltest

import (
	"bytes"
	"compress/gzip"
	"regexp"
	"strings"
)

// AnswerCase is an answer of a real server, and what the service makes of it.
type AnswerCase struct {
	Name string
	API  string // chat, responses or anthropic
	Body string // of the response; a line that starts with "{" is an event
	Want string // text, (reasoning), name{input} and the stop reason; or "!", the code of the failure and "cut"
}

// AnswerCases are answers of real servers.
var AnswerCases = []AnswerCase{
	{"an end without its marker", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("stop"), "Hi end_turn"},
	{"a call without the marker", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"clock","arguments":"{}"}}]}`) + ChatEnd("tool_calls"), "clock{} tool_calls"},
	{"an answer that is cut", "chat", ChatDelta(`{"content":"Hi"}`), "!model_unavailable cut"},
	{"a stop reason and no message_stop", "anthropic", block(`{"type":"text","text":"Hi"}`) + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "Hi end_turn"},

	{"an error event", "chat", ChatDelta(`{"content":"Hi"}`) + "event: error\n" + `data: {"message":"boom"}` + "\n\ndata: [DONE]\n\n", "!model_unavailable cut"},
	{"an error line", "chat", ChatDelta(`{"content":"Hi"}`) + `error: {"message":"boom"}` + "\n\ndata: [DONE]\n\n", "!model_unavailable cut"},
	{"an error object", "chat", ChatDelta(`{"content":"Hi"}`) + `{"object":"error","message":"boom"}` + "\n[DONE]", "!model_unavailable cut"},
	{"an error code", "chat", ChatDelta(`{"content":"Hi"}`) + `{"text":"NETWORK ERROR","error_code":50004}` + "\n[DONE]", "!model_unavailable cut"},
	{"an error without type", "anthropic", block(`{"type":"text","text":"Hi"}`) + "event: error\n" + `data: {"message":"boom"}`, "!model_unavailable cut"},
	{"a completed response that failed", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.completed","response":{"status":"failed"}}`, "!model_unavailable cut"},

	{"a reason that is none", "chat", ChatChunk(`{"content":"Hi"}`, `"null"`) + "\n", "!model_unavailable cut"},
	{"a whole answer without a message", "chat", `={"choices":[{"index":0}]}`, "!model_unavailable"},
	{"no resources", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("insufficient_system_resource"), "!model_unavailable cut"},
	{"a network error", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("network_error"), "!model_unavailable cut"},
	{"an abort", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("abort"), "!model_unavailable cut"},
	{"the limit of Gemini", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("MAX_TOKENS"), "Hi max_tokens"},
	{"the limit of Mistral", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("model_length"), "Hi max_tokens"},
	{"the limit of a gateway", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("MaxTokens"), "Hi max_tokens"},
	{"the limit of tokens", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("token_limit"), "Hi max_tokens"},
	{"a filter with another separator", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("content-filter"), "Hi refusal"},
	{"the context of Claude", "anthropic", claude("model_context_window_exceeded"), "Hi max_tokens"},
	{"a pause", "anthropic", claude("pause_turn"), "Hi max_tokens"},
	{"safety", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("SAFETY"), "Hi refusal"},
	{"recitation", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("RECITATION"), "Hi refusal"},
	{"sensitive", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("sensitive"), "Hi refusal"},
	{"guardrails", "anthropic", claude("guardrail_intervened"), "Hi refusal"},
	{"an unknown reason", "chat", ChatDelta(`{"content":"Hi"}`) + ChatEnd("because"), "Hi end_turn"},
	{"incomplete without a reason", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.incomplete","response":{"status":"incomplete"}}`, "Hi max_tokens"},

	{"calls with the index 0 and no identifier", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"clock","arguments":"{\"x\":1}"}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"calc","arguments":"{\"y\":2}"}}]}`) + ChatEnd("tool_calls"), `clock{"x":1} calc{"y":2} tool_calls`},
	{"calls with the same identifier", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":2}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} calc{"x":2} tool_calls`},
	{"calls without an index", "chat", ChatDelta(`{"tool_calls":[{"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"calc","arguments":"{\"x\":2}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} calc{"x":2} tool_calls`},
	{"a call without a name after another one", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}}]}`) + ChatDelta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"","arguments":"{\"x\":2}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} unnamed{"x":2} tool_calls`},
	{"two calls in one piece", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc"}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}{\"x\":"}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":"2} {\"x\":3}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} calc{"x":2} calc{"x":3} tool_calls`},
	{"arguments that are written twice", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}{\"x\":1}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} tool_calls`},
	{"calls in turns without an index", "chat", ChatDelta(`{"tool_calls":[{"id":"a","function":{"name":"calc","arguments":"{\"x\":"}}]}`) + ChatDelta(`{"tool_calls":[{"id":"b","function":{"name":"clock","arguments":"{\"y\":"}}]}`) + ChatDelta(`{"tool_calls":[{"id":"a","function":{"arguments":"1}"}}]}`) + ChatDelta(`{"tool_calls":[{"id":"b","function":{"arguments":"2}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} clock{"y":2} tool_calls`},
	{"content in parts", "chat", ChatDelta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hello"}]}`) + ChatEnd("stop"), "(Hm) Hello end_turn"},

	{"thoughts in pieces", "chat", ChatDelta(`{"content":"<th"}`) + ChatDelta(`{"content":"ink>Hm</thi"}`) + ChatDelta(`{"content":"nk>\n\nHello"}`) + ChatEnd("stop"), "(Hm) Hello end_turn"},
	{"thoughts without a start", "chat", ChatDelta(`{"content":"Hm"}`) + ChatDelta(`{"content":"\n</think>\n\nHello"}`) + ChatEnd("stop"), "Hm\n <thought> Hello end_turn"},
	{"thoughts by other names", "chat", ChatDelta(`{"content":"<thought>Hm</thought>A\n<reasoning>x</reasoning>B"}`) + ChatEnd("stop"), "(Hm) A\n (x) B end_turn"},
	{"thoughts in code", "chat", ChatDelta("{\"content\":\"```\\n<think>\\n```\\nThe `</think>` tag\"}") + ChatEnd("stop"), "```\n<think>\n```\nThe `</think>` tag end_turn"},

	{"thoughts in other code", "chat", ChatDelta("{\"content\":\"~~~~\\n```\\n</think>\\n~~~\\n</think>\\n~~~~\"}") + ChatEnd("stop"), "~~~~\n```\n</think>\n~~~\n</think>\n~~~~ end_turn"},
	{"a closing tag in thoughts", "chat", ChatDelta("{\"content\":\"<think>The `</think>` tag\"}") + ChatDelta("{\"content\":\" and\\n```\\n</think>\\n``\"}") + ChatDelta("{\"content\":\"`\\n</think>Hi\"}") + ChatEnd("stop"), "(The `</think>` tag and\n```\n</think>\n```\n) Hi end_turn"},
	{"thoughts that end with a tag in quotes", "chat", ChatDelta(`{"content":"<think>A \"</think>"}`) + ChatDelta(`{"content":"\"Hi"}`) + ChatEnd("stop"), "(A \"</think>\"Hi) Hi end_turn"},
	{"thoughts of Magistral", "chat", ChatDelta(`{"content":"[THI"}`) + ChatDelta(`{"content":"NK]Hm[/TH"}`) + ChatDelta(`{"content":"INK]Hi"}`) + ChatEnd("stop"), "(Hm) Hi end_turn"},
	{"thoughts of Kimi", "chat", ChatDelta(`{"content":"◁thi"}`) + ChatDelta(`{"content":"nk▷Hm◁/think"}`) + ChatDelta(`{"content":"▷Hi"}`) + ChatEnd("stop"), "(Hm) Hi end_turn"},
	{"thoughts of Seed-OSS", "chat", ChatDelta(`{"content":"<seed:"}`) + ChatDelta(`{"content":"think>Hm</seed:"}`) + ChatDelta(`{"content":"think>Hi"}`) + ChatEnd("stop"), "(Hm) Hi end_turn"},
	{"frames of gpt-oss", "chat", ChatDelta(`{"content":"<|channel|>analysis<|mess"}`) + ChatDelta(`{"content":"age|>Hm<|end|><|start|>assis"}`) + ChatDelta(`{"content":"tant<|channel|>final<|message|>Hi<|ret"}`) + ChatDelta(`{"content":"urn|>"}`) + ChatEnd("stop"), "(Hm) Hi end_turn"},
	{"a text about other marks", "chat", ChatDelta(`{"content":"They are:\n[THINK]\n◁think▷ and\n<|channel|>analysis<|message|>x<|end|>"}`) + ChatEnd("stop"), "They are:\n[THINK]\n◁think▷ and\n<|channel|>analysis<|message|>x<|end|> end_turn"},
	{"a text about thoughts", "chat", ChatDelta(`{"content":"The tags:\n<think>, <thought> and\n<reasoning> start one."}`) + ChatEnd("stop"), "The tags:\n<think>, <thought> and\n<reasoning> start one. end_turn"},

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
	{"an error of MiniMax", "chat", ChatDelta(`{"content":"Hi"}`) + `{"base_resp":{"status_code":1002,"status_msg":"rate limit"},"choices":null}`, "!model_rate_limited cut"},
	{"no credit with MiniMax", "chat", `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`, "!model_credit_used_up"},
	{"a whole answer of MiniMax", "chat", `={"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"base_resp":{"status_code":0,"status_msg":"success"}}`, "Hi end_turn"},
	{"events without blank lines", "chat", "=data: " + ChatChunk(`{"content":"Hi"}`, "null") + "\ndata: " + ChatChunk(`{}`, `"stop"`) + "\ndata: [DONE]\n", "Hi end_turn"},
	{"carriage returns", "chat", "=data: " + ChatChunk(`{"content":"Hi"}`, "null") + "\r\rdata: " + ChatChunk(`{}`, `"stop"`) + "\r\rdata: [DONE]\r\r", "Hi end_turn"},
	{"a byte order mark", "chat", "=\ufeffdata: " + ChatChunk(`{"content":"Hi"}`, "null") + "\n\ndata: " + ChatChunk(`{}`, `"stop"`) + "\n\n", "Hi end_turn"},
	{"compressed", "chat", "=" + compressed("data: "+ChatChunk(`{"content":"Hi"}`, "null")+"\n\ndata: "+ChatChunk(`{}`, `"stop"`)+"\n\n"), "Hi end_turn"},
	{"a web page", "chat", "=<html><title>Sign in</title></html>", "!model_protocol"},

	{"half characters", "chat", ChatDelta(`{"content":"a\ud83d"}`) + ChatDelta(`{"content":"\udc26b"}`) + ChatEnd("stop"), "a🐦b end_turn"},
	{"a half character", "chat", ChatDelta(`{"content":"a\ud83d"}`) + ChatDelta(`{"content":"b"}`) + ChatEnd("stop"), "a\ufffdb end_turn"},
	{"half characters of Claude", "anthropic", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"\ud83d"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"text_delta","text":"\udc26"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "🐦 end_turn"},

	{"a name in pieces", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"clo","arguments":""}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"function":{"name":"ck","arguments":"{}"}}]}`) + ChatEnd("tool_calls"), "clock{} tool_calls"},
	{"a name with a namespace", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"functions.Clock<|channel|>x","arguments":"{}"}}]}`) + ChatEnd("tool_calls"), "clock{} tool_calls"},
	{"arguments encoded twice", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"\"{\\\"x\\\":1}\""}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} tool_calls`},
	{"arguments in a fence", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"`+"```json"+`\n{\"x\":1}\n`+"```"+`"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} tool_calls`},
	{"repeated arguments", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":1}"}}]}`) + ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} tool_calls`},
	{"arguments as an object", "chat", ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":{"x":1}}}]}`) + ChatEnd("tool_calls"), `calc{"x":1} tool_calls`},
	{"the whole input at once", "anthropic", block(`{"type":"tool_use","id":"t","name":"calc","input":{"x":1}}`) + `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n" + `{"type":"message_stop"}`, `calc{"x":1} tool_calls`},
	{"sources", "chat", ChatDelta(`{"content":"Hi","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}]}`) + ChatEnd("stop"), "Hi [A https://a.example] end_turn"},
	{"sources of a response", "responses", `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.output_text.annotation.added","annotation":{"type":"url_citation","url":"https://a.example","title":"A"}}` + "\n" + done(`,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi","annotations":[{"type":"url_citation","url":"https://a.example","title":"A"},{"type":"url_citation","url":"javascript:x"}]}]}]`), "Hi [A https://a.example] end_turn"},
	{"sources of Claude", "anthropic", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}` + "\n" + `{"type":"content_block_delta","delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"A"}}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "Hi [A https://a.example] end_turn"},
	{"members of other types", "chat", `{"id":5,"created":"now","choices":[{"index":"0","delta":{"content":"Hi","tool_calls":{}},"finish_reason":null}],"usage":"none"}` + "\n" + ChatEnd("stop"), "Hi end_turn"},
}

// ChatChunk returns an event of Chat Completions.
func ChatChunk(delta, reason string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
}

// ChatDelta returns a line with an event that contains a piece of an answer.
func ChatDelta(content string) string { return ChatChunk(content, "null") + "\n" }

// ChatEnd returns a line with an event that contains the reason for the end of an answer.
func ChatEnd(reason string) string { return ChatChunk("{}", `"`+reason+`"`) + "\n" }

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

// Bytes returns the response. "=" means that they are written as they are.
func (c *AnswerCase) Bytes() string {
	if raw, is := strings.CutPrefix(c.Body, "="); is {
		return raw
	}
	return regexp.MustCompile(`(?m)^(\{.*\}|\[DONE\])$\n?`).ReplaceAllString(c.Body, "data: $1\n\n")
}

// RefusalCase is an error response of a real server, and the code that the service gives it; "refusal" is an answer.
type RefusalCase struct {
	Name   string
	Status int
	Body   string
	Want   string
	Limit  int // of the context
}

// Passes reports whether a later request may succeed, so that the client repeats it twice.
func (c *RefusalCase) Passes() bool {
	return c.Want == "model_rate_limited" || c.Want == "model_unavailable"
}

// RefusalCases are refusals of real servers.
var RefusalCases = []RefusalCase{
	{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}`, "model_context_exceeded", 8192},
	{"Gemini", 400, `[{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, "model_context_exceeded", 1048576},
	{"xAI", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, "model_context_exceeded", 131072},
	{"Qwen", 400, `{"error":{"message":"Range of input length should be [1, 30720]","type":"invalid_request_error"}}`, "model_context_exceeded", 30720},
	{"Together", 422, "{\"error\":{\"message\":\"`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000\"}}", "model_context_exceeded", 8193},
	{"vLLM", 400, `{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}`, "model_context_exceeded", 4096},
	{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, "model_context_exceeded", 0},
	{"Moonshot", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192","type":"invalid_request_error"}}`, "model_context_exceeded", 8192},
	{"GLM", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, "model_context_exceeded", 0},
	{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, "model_context_exceeded", 200000},
	{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, "model_context_exceeded", 4096},
	{"llama.cpp, older", 500, `{"error":{"code":500,"message":"input (9000 tokens) is larger than the max context size (4096 tokens)"}}`, "model_context_exceeded", 4096},
	{"too large", 413, `<html><title>413 Request Entity Too Large</title></html>`, "model_context_exceeded", 0},

	{"MiniMax", 400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}`, "model_context_exceeded", 0},
	{"the context and the answer", 400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 1000 input tokens (4096 > 4096 - 1000). None"}}`, "model_context_exceeded", 4096},

	{"the tokens of a minute at Anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later."}}`, "model_rate_limited", 0},
	{"the tokens of a minute at OpenAI", 429, `{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, "model_rate_limited", 0},
	{"the tokens of a minute at Groq", 413, `{"error":{"message":"Request too large for model 'llama-3.1-8b-instant' in organization 'org_1' service tier 'on_demand' on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}`, "model_rate_limited", 0},
	{"the tokens of a minute at Azure", 429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier."}}`, "model_rate_limited", 0},
	{"the tokens of a minute behind a gateway", 400, `{"error":{"message":"AnthropicException - This request would exceed the rate limit for your organization of 20,000 input tokens per minute. max_tokens: unsupported","type":"invalid_request_error","param":null,"code":"rate_limit_error"}}`, "model_rate_limited", 0},
	{"too many tokens at Bedrock", 400, `{"message":"Too many tokens, please wait before trying again."}`, "model_rate_limited", 0},
	{"a plan of MiniMax that is used up", 200, `{"base_resp":{"status_code":2056,"status_msg":"usage limit exceeded"},"choices":null}`, "model_rate_limited", 0},
	{"a number that MiniMax does not document", 200, `{"base_resp":{"status_code":9999,"status_msg":"something else"},"choices":null}`, "model_unavailable", 0},
	{"characters that MiniMax refuses", 200, `{"base_resp":{"status_code":1042,"status_msg":"invisible character ratio limit"},"choices":null}`, "model_rejected", 0},

	{"no credit with MiniMax", 200, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`, "model_credit_used_up", 0},
	{"no credit", 402, `{"error":{"message":"Insufficient Balance"}}`, "model_credit_used_up", 0},
	{"no quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}`, "model_credit_used_up", 0},
	{"a low balance", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, "model_credit_used_up", 0},

	{"the filter of Azure", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter"}}`, "refusal", 0},
	{"the policy of OpenAI", 400, `{"error":{"message":"Your request was rejected","code":"content_policy_violation"}}`, "refusal", 0},
	{"moderation", 403, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"]}}}`, "refusal", 0},

	{"an account that is flagged", 401, `{"error":{"message":"Your account has been flagged for potential abuse.","code":"account_flagged"}}`, "model_unauthorized", 0},

	{"a list", 400, `[{"error":{"message":"no"}}]`, "model_rejected", 0},
	{"a text", 401, `"Unauthorized"`, "model_unauthorized", 0},
	{"a page", 403, `<html><title>Forbidden</title></html>`, "model_unauthorized", 0},
	{"an unknown model", 404, `{"error":"model not found"}`, "model_rejected", 0},
}
