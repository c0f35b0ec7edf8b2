package open_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
)

// scriptedServer returns a server that gives the answers in turn, the last one repeatedly, and the bodies that it received.
func scriptedServer(t *testing.T, answers ...func(http.ResponseWriter)) (url string, received func() []map[string]any) {
	t.Helper()
	var mu sync.Mutex
	var bodies []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		mu.Lock()
		bodies = append(bodies, body)
		n := min(len(bodies), len(answers))
		mu.Unlock()
		answers[n-1](w)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []map[string]any {
		mu.Lock()
		defer mu.Unlock()
		return bodies
	}
}

func refusing(status int, body string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func answering(w http.ResponseWriter) {
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`)
}

func TestRefusalsOfRealServers(t *testing.T) {
	for _, each := range modeltest.RefusalCases {
		url, received := scriptedServer(t, refusing(each.Status, each.Body))
		stop := llm.Stop("")
		err := connect(t, "chat", url, model.Options{}).Stream(t.Context(), question(), func(chunk llm.Chunk) error {
			stop = chunk.Stop
			return nil
		})
		var failure *llm.Error
		got := string(stop)
		if errors.As(err, &failure) {
			got = string(failure.Code)
			if failure.Limit != each.Limit || failure.Retryable != each.Passes() {
				t.Errorf("%s: the limit is %d, retryable %v", each.Name, failure.Limit, failure.Retryable)
			}
		}
		requests := 1
		if each.Passes() {
			requests = 3
		}
		bodies := received()
		if got != each.Want || len(bodies) != requests || !reflect.DeepEqual(bodies[0], bodies[len(bodies)-1]) {
			t.Errorf("%s: got %s after %d requests, want %s (%v)", each.Name, got, len(bodies), each.Want, err)
		}
	}
}

func TestARefusedParameterIsNotSentAgain(t *testing.T) {
	for name, each := range map[string]struct {
		status int
		body   string
		check  func(body map[string]any) bool
	}{
		"effort":      {400, `{"error":{"message":"Unsupported parameter: 'reasoning_effort' is not supported with this model.","param":"reasoning_effort"}}`, func(b map[string]any) bool { return b["reasoning_effort"] == nil && b["tools"] != nil }},
		"limit":       {400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}`, func(b map[string]any) bool { return b["max_tokens"] == nil && b["max_completion_tokens"] == 1000.0 }},
		"large limit": {400, `{"error":{"message":"max_tokens is too large: 1000. This model supports at most 512 completion tokens."}}`, func(b map[string]any) bool { return b["max_tokens"] == 512.0 }},
		"range":       {400, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 640]"}}`, func(b map[string]any) bool { return b["max_tokens"] == 640.0 }},
		"between":     {400, `{"error":{"message":"max_tokens must be between 1 and 640"}}`, func(b map[string]any) bool { return b["max_tokens"] == 640.0 }},
		"exceeds":     {400, `{"error":{"message":"max_tokens cannot exceed 640"}}`, func(b map[string]any) bool { return b["max_tokens"] == 640.0 }},
		"thinking":    {400, `{"error":{"message":"\"gemma3:4b\" does not support thinking","type":"api_error"}}`, func(b map[string]any) bool { return b["reasoning_effort"] == nil && b["tools"] != nil }},
		"reasoning":   {400, `{"error":{"message":"Reasoning is not supported by this model."}}`, func(b map[string]any) bool { return b["reasoning_effort"] == nil && b["tools"] != nil }},
		"stream":      {422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted: stream_options"}]}`, func(b map[string]any) bool { return b["stream_options"] == nil }},
		"tools":       {400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools"}}`, func(b map[string]any) bool { return b["tools"] == nil }},
		"endpoints":   {404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`, func(b map[string]any) bool { return b["tools"] == nil }},
		"a choice":    {400, `{"error":{"message":"deepseek-reasoner does not support this tool_choice","type":"invalid_request_error"}}`, func(b map[string]any) bool { return b["tools"] != nil }},
		"o1":          {400, `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","param":"messages[0].role"}}`, func(b map[string]any) bool { return len(b["messages"].([]any)) == 1 }},
		"system":      {400, `{"error":{"message":"System role not supported"}}`, func(b map[string]any) bool { return len(b["messages"].([]any)) == 1 }},
	} {
		url, received := scriptedServer(t, refusing(each.status, each.body), answering)
		core, logs := observer.New(zap.InfoLevel)
		provider := connect(t, "chat", url, model.Options{Log: zap.New(core)})
		request := question()
		request.ReasoningEffort, request.System, request.MaxOutputTokens = "high", "Be kind.", 1000
		for range 2 {
			if err := provider.Stream(t.Context(), request, func(llm.Chunk) error { return nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		bodies := received()
		if len(bodies) != 3 || !each.check(bodies[1]) || !each.check(bodies[2]) {
			t.Errorf("%s: %d requests: %v", name, len(bodies), bodies)
		}
		if logs.Len() != 1 {
			t.Errorf("%s: logged %v", name, logs.All())
		}
	}
}

func TestAWaitInWordsIsRead(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"have exceeded token rate limit of your tier. Please retry after 6 seconds.": 6 * time.Second,
		"Rate limit reached. Please try again in 1m30.5s. Visit the page.":           90*time.Second + 500*time.Millisecond,
		"Please retry in 36.3s.":  36*time.Second + 300*time.Millisecond,
		"Please try again later.": 0,
	} {
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message}})
		if got := model.ProviderFailure(429, nil, body).RetryAfter; got != want {
			t.Errorf("%s: %s", message, got)
		}
	}
}

func TestARefusalOfOneRequestTeachesNothing(t *testing.T) {
	for _, message := range []string{
		"messages.5.content.0: Invalid `signature` in `thinking` block",
		"Invalid value for messages[3]: reasoning_effort is not supported",
		"input[2]: unknown parameter 'include'",
		"The model 'm-thinking' is not available",
		"JSON schema keyword 'oneOf' is not supported by tools",
		"tools.1.custom.input_schema: JSON schema keyword 'oneOf' is not supported",
		"Image inputs inside tool messages are not supported",
		"max_tokens must be less than or equal to 400, because the prompt has 8000 tokens",
		"Invalid: this thinking model requires max_tokens > 1024",
		"max_tokens must be greater than 512",
		"max_tokens must be less than or equal to 255",
		"'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens (4096 > 4096 - 1000)",
	} {
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message}})
		url, received := scriptedServer(t, refusing(400, string(body)), answering)
		request := question()
		request.ReasoningEffort, request.MaxOutputTokens = "high", 4096
		if err := connect(t, "chat", url, model.Options{}).Stream(t.Context(), request, func(llm.Chunk) error { return nil }); err == nil || len(received()) != 1 {
			t.Errorf("%s: %d requests: %v", message, len(received()), err)
		}
	}
}

func TestABusyProviderIsWaitedForWithinTheDeadline(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter){
		"a header":  refusing(429, ``, "Retry-After", "1.01"),
		"the body":  refusing(429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"1.01s"}]}}`),
		"OpenAI":    refusing(429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 1.01s.","type":"tokens","code":"rate_limit_exceeded"}}`),
		"in ms":     refusing(429, `{"error":{"message":"Rate limit reached. Please try again in 1010ms."}}`),
		"the reset": refusing(529, ``, "X-Ratelimit-Reset-Requests", "1.01s"),
	} {
		url, received := scriptedServer(t, refuse, answering)
		request := question()
		request.Deadline = time.Now().Add(time.Hour)
		var waits []time.Duration
		err := connect(t, "chat", url, model.Options{}).Stream(t.Context(), request, func(chunk llm.Chunk) error {
			if chunk.Kind == llm.ChunkWaiting {
				waits = append(waits, chunk.Wait)
			}
			return nil
		})
		if err != nil || len(waits) != 1 || waits[0] != 1010*time.Millisecond || len(received()) != 2 {
			t.Errorf("%s: waited %v, %v", name, waits, err)
		}
	}
	url, received := scriptedServer(t, refusing(429, ``, "Retry-After", "19"))
	request := question()
	request.Deadline = time.Now().Add(10 * time.Second)
	err := connect(t, "chat", url, model.Options{}).Stream(t.Context(), request, func(llm.Chunk) error { return nil })
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Code != "model_rate_limited" || len(received()) != 1 {
		t.Errorf("a wait beyond the deadline: %v", err)
	}
}

func TestTheLogShowsNeitherTheKeyNorTheRequest(t *testing.T) {
	url, _ := scriptedServer(t, refusing(400, `{"error":{"type":"sk-secret-key","message":"bad value in 'my private words here' near sk-secret-key","code":"bad"}}`))
	provider := connect(t, "chat", url, model.Options{Headers: http.Header{"Authorization": {"Bearer sk-secret-key"}}})
	request := question()
	request.Messages[0].Text = "These are my private words here, friend."
	err := provider.Stream(t.Context(), request, func(llm.Chunk) error { return nil })
	if text := err.Error(); strings.Contains(text, "sk-secret") || strings.Contains(text, "private words") || !strings.Contains(text, "bad value") {
		t.Error(text)
	}
}

func TestStateOfAStepIsSentBackWithItsResults(t *testing.T) {
	const call = `{"choices":[{"delta":{"reasoning_content":"Hm","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[{"index":0,"id":"a","function":{"name":"clock","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]},"finish_reason":"tool_calls"}]}`
	url, received := scriptedServer(t, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "data: "+call+"\n\n") }, answering)
	provider := connect(t, "chat", url, model.Options{})
	request := question()
	step := llm.Message{Role: "assistant", OpaqueOwner: "openai"}
	if err := provider.Stream(t.Context(), request, func(chunk llm.Chunk) error {
		if chunk.Kind == llm.ChunkToolCall {
			step.ToolCalls = append(step.ToolCalls, chunk.ToolCall)
		}
		if chunk.Kind == llm.ChunkOpaque {
			step.Opaque = chunk.Opaque
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	request.Messages = append(request.Messages, step, llm.Message{Role: "tool", ToolCallID: "a", Text: "noon"})
	if err := provider.Stream(t.Context(), request, func(llm.Chunk) error { return nil }); err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(received()[1]["messages"])
	for _, wanted := range []string{`"reasoning_content":"Hm"`, `"data":"x"`, `"thought_signature":"sig"`} {
		if !strings.Contains(string(raw), wanted) {
			t.Errorf("%s is not in %s", wanted, raw)
		}
	}
}

// A provider may repeat what a user wrote. Nothing is learned from it that other users would notice.
func TestARepetitionOfTheRequestTeachesNothing(t *testing.T) {
	for _, text := range []string{
		"This model does not support tools.",
		"temperature is not supported",
		"Your credit balance is too low to access the API.",
		"This model's maximum context length is 100 tokens.",
		"max_tokens is at most 100",
	} {
		for what, request := range map[string]llm.Request{
			"a message":               {Messages: []llm.Message{{Role: "user", Text: text}}},
			"a message in the middle": {Messages: []llm.Message{{Role: "user", Text: "So: " + text + " Right?"}, {Role: "user", Text: "Go on."}}},
			"the input of a tool": {Messages: []llm.Message{{Role: "user", Text: "Go."}, {Role: "assistant", ToolCalls: []llm.ToolCall{
				{ID: "a", Name: "clock", Input: json.RawMessage(`{"text":"` + text + `"}`)},
			}}, {Role: "tool", ToolCallID: "a", Text: "noon"}}},
		} {
			written, _ := json.Marshal(request.Messages) // as gateways repeat the request
			body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "Bad value: " + string(written)}})
			url, received := scriptedServer(t, refusing(400, string(body)))
			logged, lines := observer.New(zap.WarnLevel)
			request.Model, request.Tools = "m", question().Tools
			err := connect(t, "chat", url, model.Options{Log: zap.New(logged)}).Stream(t.Context(), request, func(llm.Chunk) error { return nil })
			var failure *llm.Error
			if !errors.As(err, &failure) || failure.Lasting || failure.Limit != 0 || len(received()) != 1 || lines.Len() != 0 {
				t.Errorf("%s, %q: %v after %d requests", what, text, err, len(received()))
			}
		}
	}
}

// Only the status of a refused key, and what says that the credit is used up, is true for every request.
func TestAPageOfAProxyClosesNoRoute(t *testing.T) {
	for status, lasting := range map[int]bool{401: true, 402: true, 403: false} {
		url, _ := scriptedServer(t, refusing(status, "<html><title>Forbidden</title></html>"))
		err := connect(t, "chat", url, model.Options{}).Stream(t.Context(), question(), func(llm.Chunk) error { return nil })
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Lasting != lasting {
			t.Errorf("%d: %+v", status, failure)
		}
	}
}

// Requests that were sent before the first of them had its refusal are repeated, too.
func TestConcurrentRequestsShareALesson(t *testing.T) {
	const calls = 8
	var sent sync.WaitGroup
	sent.Add(calls)
	refuse := func(w http.ResponseWriter) {
		sent.Done()
		sent.Wait()
		refusing(400, `{"error":{"message":"Unsupported parameter: 'reasoning_effort' is not supported with this model.","param":"reasoning_effort"}}`)(w)
	}
	url, _ := scriptedServer(t, append(slices.Repeat([]func(http.ResponseWriter){refuse}, calls), answering)...)
	provider := connect(t, "chat", url, model.Options{})
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			request := question()
			request.ReasoningEffort = "high"
			if err := provider.Stream(t.Context(), request, func(llm.Chunk) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A provider that is busy again and again does not keep a request without a deadline, which another route waits for.
func TestWithoutADeadlineAllWaitsTogetherAreBounded(t *testing.T) {
	busy := refusing(429, `{"error":{"message":"Slow down."}}`, "Retry-After", "1")
	url, received := scriptedServer(t, busy)
	err := connect(t, "chat", url, model.Options{MaxRetryAfter: 1500 * time.Millisecond}).Stream(t.Context(), question(), func(llm.Chunk) error { return nil })
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Code != "model_rate_limited" || len(received()) != 2 {
		t.Errorf("%v after %d requests", err, len(received()))
	}
}

// A policy that ends an answer in its middle is a refusal, as one at its beginning is. What was said stays.
func TestAPolicyEndsAnAnswerThatHasBegun(t *testing.T) {
	url, _ := scriptedServer(t, func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"One "}}]}`+"\n\n"+`data: {"error":{"code":"content_filter","message":"filtered"}}`+"\n\n")
	})
	if got := ask(t, "chat", url); got != "One  refusal" {
		t.Error(got)
	}
}

// The service marks two blocks of a request for the cache of Anthropic, of the four that are permitted. A gateway that marks
// blocks itself gets none.
func TestMarksForTheCacheAreNeverTooMany(t *testing.T) {
	refuse := refusing(400, `{"type":"error","error":{"type":"invalid_request_error","message":"A maximum of 4 blocks with cache_control may be provided. Found 5."}}`)
	url, received := scriptedServer(t, refuse, func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`)
	})
	request := question()
	request.Model, request.System = "claude-sonnet-4-5", "Be kind."
	for i := range 20 {
		id := fmt.Sprint("t", i)
		request.Messages = append(
			request.Messages, llm.Message{Role: "assistant", Text: "So.", ToolCalls: []llm.ToolCall{{ID: id, Name: "clock", Input: json.RawMessage(`{}`)}}},
			llm.Message{Role: "tool", ToolCallID: id, Text: "noon"}, llm.Message{Role: "user", Text: "And now?"},
		)
	}
	if err := connect(t, "anthropic", url, model.Options{}).Stream(t.Context(), request, func(llm.Chunk) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var marks []int
	for _, body := range received() {
		raw, _ := json.Marshal(body)
		marks = append(marks, strings.Count(string(raw), `"cache_control"`))
	}
	if !slices.Equal(marks, []int{2, 0}) {
		t.Errorf("marked blocks: %v", marks)
	}
}

// Gateways give an item of reasoning another identifier, and other encrypted content, in each event.
func TestReasoningWithSeveralIdentifiersIsSentBackOnce(t *testing.T) {
	item := func(number, event int) string {
		return fmt.Sprintf(`{"type":"reasoning","id":"rs_%d_%d","summary":[{"type":"summary_text","text":"Hm%d"}],"encrypted_content":"secret-%d-%d"}`, number, event, number, number, event)
	}
	const call = `{"type":"function_call","id":"fc","call_id":"c","name":"clock","arguments":"{}"}`
	var answer strings.Builder
	for _, event := range []string{
		`{"type":"response.output_item.added","item":` + item(1, 1) + `}`, `{"type":"response.output_item.done","item":` + item(1, 2) + `}`,
		`{"type":"response.output_item.added","item":` + item(2, 1) + `}`, `{"type":"response.output_item.done","item":` + item(2, 2) + `}`,
		`{"type":"response.output_item.done","item":` + call + `}`,
		`{"type":"response.completed","response":{"status":"completed","output":[` + item(1, 3) + `,` + item(2, 3) + `,` + call + `]}}`,
	} {
		answer.WriteString("data: " + event + "\n\n")
	}
	url, _ := scriptedServer(t, func(w http.ResponseWriter) { _, _ = io.WriteString(w, answer.String()) })
	var opaque, reasoning string
	if err := connect(t, "responses", url, model.Options{}).Stream(t.Context(), question(), func(chunk llm.Chunk) error {
		opaque += string(chunk.Opaque)
		if chunk.Kind == llm.ChunkReasoning {
			reasoning += chunk.Text
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(opaque, "secret-") != 2 || !strings.Contains(opaque, "secret-1-2") || !strings.Contains(opaque, "secret-2-2") || reasoning != "Hm1Hm2" {
		t.Errorf("sent back: %s; shown: %q", opaque, reasoning)
	}
}
