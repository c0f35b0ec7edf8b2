package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/open"
)

// modelCase is what a real server sends for a question, and the message that the service stores.
type modelCase struct {
	name    string
	profile protocol.Profile // balanced: Chat Completions, deep_reasoning: Responses, coding: Messages
	answers []modelAnswer    // to the first request, the second, …; the last is repeated
	want    string           // the status of the message, its parts, and the code of the failure after "!"
	sent    []string         // parts of the bodies of the second request and later ones
	calls   int              // requests
}

// modelAnswer is a response; the lines of body that start with "{" are events, unless it starts with "=".
type modelAnswer struct {
	status int
	body   string
}

func said(lines ...string) modelAnswer { return modelAnswer{200, strings.Join(lines, "\n")} }

func chatDelta(delta string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func chatEnd(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const (
	chatHi     = `{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`
	claudeStop = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n" + `{"type":"message_stop"}`
	claudeHi   = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`
	fourTwo    = `"arguments":"{\"expression\":\"40+2\"}"`
)

var modelCases = []modelCase{
	{"an end without its marker", "balanced", []modelAnswer{said(chatHi, chatEnd("stop"))}, "complete text:Hi", nil, 1},
	{"an error event after text", "balanced", []modelAnswer{said(chatHi, "event: error", `data: {"message":"boom"}`, "", "data: [DONE]", "")}, "incomplete text:Hi !model_unavailable", nil, 2},
	{"the limit of Gemini", "balanced", []modelAnswer{said(chatHi, chatEnd("MAX_TOKENS"))}, "incomplete text:Hi", nil, 1},
	{"safety after text", "balanced", []modelAnswer{said(chatHi, chatEnd("SAFETY"))}, "complete text:Hi", nil, 1},
	{"thoughts in tags", "balanced", []modelAnswer{said(chatDelta(`{"content":"<thi"}`), chatDelta(`{"content":"nk>Hm</think>Hi"}`), chatEnd("stop"))}, "complete reasoning_summary:Hm text:Hi", nil, 1},
	{"content in parts", "balanced", []modelAnswer{said(chatDelta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hi"}]}`), chatEnd("stop"))}, "complete reasoning_summary:Hm text:Hi", nil, 1},
	{"sources", "balanced", []modelAnswer{said(chatHi, chatDelta(`{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}]}`), chatEnd("stop"))}, "complete text:Hi [1 A https://a.example]", nil, 1},
	{"half characters", "balanced", []modelAnswer{said(chatDelta(`{"content":"\ud83d"}`), chatDelta(`{"content":"\udc26"}`), chatEnd("stop"))}, "complete text:🐦", nil, 1},
	{"a whole answer", "balanced", []modelAnswer{said(`={"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`)}, "complete text:Hi", nil, 1},
	{"an empty answer", "balanced", []modelAnswer{said(chatDelta(`{"content":" \n"}`), chatEnd("stop"))}, "incomplete notice:empty_answer !model_protocol", nil, 2},
	{
		"reasoning that comes back with the result of a tool", "balanced", []modelAnswer{
			said(chatDelta(`{"reasoning_content":"Add them"}`), chatDelta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"functions.Calculate",`+fourTwo+`}}]}`), chatEnd("tool_calls")),
			said(chatHi, chatEnd("stop")),
		}, "complete reasoning_summary:Add them tool:calculate=42 text:Hi", []string{`"reasoning_content":"Add them"`}, 2,
	},
	{
		"the signature of Gemini", "balanced", []modelAnswer{
			said(chatDelta(`{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"calculate",`+fourTwo+`}}]}`), chatEnd("tool_calls")),
			said(chatHi, chatEnd("stop")),
		}, "complete tool:calculate=42 text:Hi", []string{`"thought_signature":"c2ln"`}, 2,
	},
	{
		"two calls with the index 0", "balanced", []modelAnswer{
			said(chatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calculate",`+fourTwo+`}}]}`), chatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calculate","arguments":"{\"expression\":\"1+1\"}"}}]}`), chatEnd("tool_calls")),
			said(chatHi, chatEnd("stop")),
		}, "complete tool:calculate=42 tool:calculate=2 text:Hi", nil, 2,
	},
	{
		"arguments that are not JSON", "balanced", []modelAnswer{
			said(chatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calculate","arguments":"{\"expression\": 40+"}}]}`), chatEnd("tool_calls")),
			said(chatHi, chatEnd("stop")),
		}, "complete tool:calculate= text:Hi", []string{"nvalid JSON"}, 2,
	},

	{"a context that is exceeded", "balanced", []modelAnswer{
		{400, `{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}`}, said(chatHi, chatEnd("stop")),
	}, "complete text:Hi", nil, 2},
	{"a parameter that is refused", "balanced", []modelAnswer{
		{400, `{"error":{"message":"Unsupported parameter: 'stream_options'","param":"stream_options","code":"unsupported_parameter"}}`}, said(chatHi, chatEnd("stop")),
	}, "complete text:Hi", nil, 2},
	{"a refused request", "balanced", []modelAnswer{{400, `{"error":{"message":"no"}}`}}, "failed !model_rejected", nil, 1},
	{"a wrong key", "balanced", []modelAnswer{{401, `"Unauthorized"`}}, "failed !model_unauthorized", nil, 1},
	{"no credit", "balanced", []modelAnswer{{402, `{"error":{"message":"Insufficient Balance"}}`}}, "failed !model_credit_used_up", nil, 1},
	{"the filter of Azure", "balanced", []modelAnswer{{400, `{"error":{"message":"filtered","code":"content_filter"}}`}}, "complete notice:refused", nil, 1},

	{"only whole texts", "deep_reasoning", []modelAnswer{said(`{"type":"response.output_text.done","text":"Hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`)}, "complete text:Hi", nil, 1},
	{"a completed response that failed", "deep_reasoning", []modelAnswer{said(`{"type":"response.completed","response":{"status":"failed"}}`)}, "failed !model_unavailable", nil, 3},
	{"a refusal only", "deep_reasoning", []modelAnswer{said(`{"type":"response.refusal.done","refusal":"No."}`, `{"type":"response.completed","response":{"status":"completed"}}`)}, "complete text:No.", nil, 1},
	{"encrypted reasoning", "deep_reasoning", []modelAnswer{
		said(`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c","name":"calculate",`+fourTwo+`}}`, `{"type":"response.completed","response":{"status":"completed"}}`),
		said(`{"type":"response.output_text.delta","delta":"Hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`),
	}, "complete tool:calculate=42 text:Hi", []string{`"encrypted_content":"c2VjcmV0"`}, 2},

	{"no message_stop", "coding", []modelAnswer{said(claudeHi, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)}, "complete text:Hi", nil, 1},
	{"the context of Claude", "coding", []modelAnswer{said(claudeHi, `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`, `{"type":"message_stop"}`)}, "incomplete text:Hi", nil, 1},
	{"signed thinking", "coding", []modelAnswer{
		said(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Add"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"calculate","input":{"expression":"40+2"}}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`),
		said(claudeHi, claudeStop),
	}, "complete reasoning_summary:Add tool:calculate=42 text:Hi", []string{`"signature":"c2ln"`}, 2},
	{"no credit at Anthropic", "coding", []modelAnswer{{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`}}, "failed !model_credit_used_up", nil, 1},
}

// upstream is a provider of models that gives the answers of one case after the other.
type upstream struct {
	mu      sync.Mutex
	answers []modelAnswer // guarded by mu
	bodies  []string      // guarded by mu
}

func (u *upstream) ServeHTTP(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.bodies = append(u.bodies, string(body))
	answer := u.answers[min(len(u.bodies), len(u.answers))-1]
	u.mu.Unlock()
	w.WriteHeader(answer.status)
	if whole, is := strings.CutPrefix(answer.body, "="); is || answer.status != 200 {
		_, _ = io.WriteString(w, whole)
		return
	}
	for line := range strings.Lines(answer.body + "\n") {
		if strings.HasPrefix(line, "{") {
			line = "data: " + line + "\n"
		}
		_, _ = io.WriteString(w, line)
	}
}

func (u *upstream) start(answers []modelAnswer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers, u.bodies = answers, nil
}

func (u *upstream) received() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bodies
}

// byProfile calls a model for each profile. The names of models are those of nodeOn.
type byProfile struct {
	*open.Routed
	routes map[string]string
}

func (m byProfile) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	request.Route = m.routes[request.Model]
	return m.Routed.Stream(ctx, request, emit)
}

// modelsAt returns a model with the three wire formats at an address.
func modelsAt(t *testing.T, url string) llm.Model {
	t.Helper()
	client := model.Options{Backoff: 1}
	routed, err := open.Models([]open.Route{
		{Name: "chat", Config: open.Config{Provider: "openai", API: "chat", BaseURL: url, Client: client}},
		{Name: "responses", Config: open.Config{Provider: "openai", API: "responses", BaseURL: url, Client: client}},
		{Name: "anthropic", Config: open.Config{Provider: "anthropic", BaseURL: url, Client: client}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return byProfile{routed, map[string]string{"a": "chat", "b": "responses", "c": "anthropic"}}
}

// storedAnswer describes a message in the notation of modelCase.want.
func storedAnswer(message protocol.Message) string {
	all := []string{string(message.Status)}
	for _, part := range message.Parts {
		switch part.Type {
		case protocol.PartTool:
			all = append(all, fmt.Sprintf("tool:%s=%s", part.ToolName, part.Output))
		case protocol.PartNotice:
			all = append(all, "notice:"+part.Kind)
		case protocol.PartCode:
			all = append(all, "code:"+part.Code)
		default:
			all = append(all, string(part.Type)+":"+part.Text)
			for _, cited := range part.Citations {
				all = append(all, fmt.Sprintf("[%d %s %s]", cited.Index, cited.Title, cited.URL))
			}
		}
	}
	return strings.Join(all, " ")
}

// storedTurn runs a turn in a conversation of its own. It returns the stored message in the notation of modelCase.want, and
// the error of the turn.
func (c *client) storedTurn(profile protocol.Profile) (stored string, failure *protocol.TurnError) {
	c.t.Helper()
	started, finished := turnOf(c.t, c.expect(200, "POST", "/chat", asking("hello", nil, "profile", profile)).body)
	stored = storedAnswer(c.newestFirst(started.ConversationID)[0])
	if finished.Error != nil {
		stored += " !" + string(finished.Error.Code)
	}
	return stored, finished.Error
}

// TestAnswersOfRealServersAreStoredAsTheyWereMeant sends each case from a provider's socket through POST /chat to the stored
// message.
func TestAnswersOfRealServersAreStoredAsTheyWereMeant(t *testing.T) {
	t.Parallel()
	provider := &upstream{}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, modelsAt(t, server.URL), nil, func() {}) })
	c := w.client().register("ada@example.com")
	for _, each := range modelCases {
		provider.start(each.answers)
		got, failure := c.storedTurn(each.profile)
		if failure != nil && failure.Detail == "" {
			t.Errorf("%s: the error has no sentence", each.name)
		}
		bodies := provider.received()
		if got != each.want || len(bodies) != each.calls {
			t.Errorf("%s:\n got %s, after %d requests\nwant %s, after %d", each.name, got, len(bodies), each.want, each.calls)
		}
		later := strings.Join(bodies[1:], "\n")
		for _, part := range each.sent {
			if !strings.Contains(later, part) {
				t.Errorf("%s: %s was not sent: %s", each.name, part, later)
			}
		}
	}
}

// wantStored returns the stored message, in the notation of modelCase.want, for what the client of models emits. Calls of
// tools are answered with "Hi".
func wantStored(chunks []llm.Chunk, err error) string {
	var parts []string
	var texts []string // of the parts so far: with type, for text that becomes reasoning
	status, answered := "complete", false
	add := func(kind, text string) {
		if last := len(texts) - 1; last >= 0 && strings.HasPrefix(texts[last], kind+":") {
			texts[last] += text
			return
		}
		texts = append(texts, kind+":"+text)
	}
	for _, chunk := range chunks {
		switch chunk.Kind {
		case llm.ChunkText:
			add("text", chunk.Text)
			answered = true
		case llm.ChunkReasoning:
			add("reasoning_summary", chunk.Text)
		case llm.ChunkThought:
			for i := range texts {
				texts[i] = strings.Replace(texts[i], "text:", "reasoning_summary:", 1)
			}
		case llm.ChunkToolCall:
			texts = append(texts, "tool:"+chunk.ToolCall.Name+"=")
		case llm.ChunkCitation:
			texts = append(texts, fmt.Sprintf("[1 %s %s]", chunk.Text, chunk.Address))
		case llm.ChunkStop:
			switch {
			case chunk.Stop == llm.StopMaxTokens:
				status = "incomplete"
			case chunk.Stop == llm.StopToolCalls:
				texts = append(texts, "text:Hi")
			case chunk.Stop == llm.StopRefusal && !answered:
				texts = append(texts, "notice:refused")
			}
		}
	}
	var failure *llm.Error
	if errors.As(err, &failure) {
		if status = "failed"; failure.Cut {
			status = "incomplete"
		}
		texts = append(texts, "!"+string(failure.Code))
	}
	return strings.Join(append(append(parts, status), texts...), " ")
}

// TestEveryAnswerIsStoredAsTheClientReadsIt sends all cases of the client of models through POST /chat. That the client reads
// them as they are meant is a test of package open.
func TestEveryAnswerIsStoredAsTheClientReadsIt(t *testing.T) {
	t.Parallel()
	provider := &upstream{}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	models := modelsAt(t, server.URL)
	w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, models, nil, func() {}) })
	c := w.client().register("ada@example.com")
	names := map[string]string{"chat": "a", "responses": "b", "anthropic": "c"}
	profiles := map[string]protocol.Profile{"chat": protocol.ProfileBalanced, "responses": protocol.ProfileDeepReasoning, "anthropic": protocol.ProfileCoding}
	hi := map[string]modelAnswer{
		"chat": said(chatHi, chatEnd("stop")), "anthropic": said(claudeHi, claudeStop),
		"responses": said(`{"type":"response.output_text.delta","delta":"Hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`),
	}
	withCode := map[string]string{
		"thoughts in code":       "complete code:<think>\n text:The `</think>` tag",
		"thoughts in other code": "complete code:```\n</think>\n~~~\n</think>\n",
	}
	for _, each := range modeltest.AnswerCases {
		answers := []modelAnswer{{200, "=" + each.Bytes()}}
		if strings.HasSuffix(each.Want, "tool_calls") {
			answers = append(answers, hi[each.API])
		}
		provider.start(answers)
		var chunks []llm.Chunk
		request := llm.Request{Model: names[each.API], Messages: []llm.Message{{Role: "user", Text: "hello"}}, MaxOutputTokens: 100, Step: 1, Tools: []llm.Tool{{Name: "calculate"}}}
		err := models.Stream(t.Context(), request, func(chunk llm.Chunk) error {
			chunks = append(chunks, chunk)
			return nil
		})
		provider.start(answers)
		got, _ := c.storedTurn(profiles[each.API])
		want := wantStored(chunks, err)
		if split, has := withCode[each.Name]; has {
			want = split
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", each.Name, got, want)
		}
	}
}

// TestEveryRefusalIsToldAsItIsMeant sends all refusals of real servers through POST /chat.
func TestEveryRefusalIsToldAsItIsMeant(t *testing.T) {
	t.Parallel()
	provider := &upstream{}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, modelsAt(t, server.URL), nil, func() {}) })
	c := w.client().register("ada@example.com")
	for _, each := range modeltest.RefusalCases {
		provider.start([]modelAnswer{{each.Status, each.Body}})
		got, failure := c.storedTurn(protocol.ProfileBalanced)
		want, calls := "failed !"+each.Want, 1
		switch each.Want {
		case "refusal":
			want = "complete notice:refused"
		case string(protocol.ModelContextExceeded): // one repetition, shorter
			calls = 2
		case string(protocol.ModelRateLimited), string(protocol.ModelUnavailable):
			calls = 3
		}
		if failure != nil && (failure.Detail == "" || strings.Contains(failure.Detail, "went wrong")) {
			t.Errorf("%s: %q does not say what to do", each.Name, failure.Detail)
		}
		if n := len(provider.received()); got != want || n != calls {
			t.Errorf("%s:\n got %s, after %d requests\nwant %s, after %d", each.Name, got, n, want, calls)
		}
	}
}

// turnOf returns the first and the last event of a stream.
func turnOf(t *testing.T, stream []byte) (started *protocol.TurnStarted, finished *protocol.TurnFinished) {
	t.Helper()
	for line := range strings.Lines(string(stream)) {
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		_, payload, err := protocol.DecodeEvent([]byte(strings.TrimRight(data, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		switch payload := payload.(type) {
		case *protocol.TurnStarted:
			started = payload
		case *protocol.TurnFinished:
			finished = payload
		}
	}
	if started == nil || finished == nil {
		t.Fatalf("no whole turn: %s", stream)
	}
	return started, finished
}

// TestImpossibleUsageIsEstimated sends counts that no call can have.
func TestImpossibleUsageIsEstimated(t *testing.T) {
	t.Parallel()
	provider := &upstream{}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, modelsAt(t, server.URL), nil, func() {}) })
	c := w.client().register("ada@example.com")
	for reported, want := range map[string]protocol.Usage{
		`{"prompt_tokens":7,"completion_tokens":2}`:                       {InputTokens: 7, OutputTokens: 2},
		`{"prompt_tokens":1000000000000,"completion_tokens":2}`:           {OutputTokens: 1, Estimated: true},
		`{"prompt_tokens":7,"completion_tokens":1e12}`:                    {OutputTokens: 1, Estimated: true},
		`{"prompt_tokens":-7,"completion_tokens":-2,"total_tokens":"-9"}`: {OutputTokens: 1, Estimated: true},
	} {
		provider.start([]modelAnswer{said(chatHi, chatEnd("stop"), `{"choices":[],"usage":`+reported+`}`)})
		_, finished := turnOf(t, c.expect(200, "POST", "/chat", asking("hello", nil, "profile", "balanced")).body)
		got := finished.Usage
		if want.Estimated { // of the system prompt, the tools and the question
			if got.InputTokens < 1 || got.InputTokens > 3000 {
				t.Errorf("%s: %+v", reported, got)
			}
			got.InputTokens = 0
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", reported, got, want)
		}
	}
}

func TestAutoLooksAtTheConversation(t *testing.T) {
	t.Parallel()
	c := newWorld(t, func(c *testConfig) { liveOn(t, c) }).client().register("ada@example.com")
	first, _ := turnOf(t, c.expect(200, "POST", "/chat", asking("Write a Python script that renames files", nil, "profile", "auto")).body)
	c.expect(200, "POST", "/chat", asking("now add error handling", nil, "profile", "auto", "conversation_id", first.ConversationID))
	alone, _ := turnOf(t, c.expect(200, "POST", "/chat", asking("now add error handling", nil, "profile", "auto")).body)
	for conversation, want := range map[protocol.ConversationID]protocol.Profile{first.ConversationID: protocol.ProfileCoding, alone.ConversationID: protocol.ProfileBalanced} {
		if message := c.newestFirst(conversation)[0]; message.Profile == nil || *message.Profile != want {
			t.Errorf("%v, want %s", message.Profile, want)
		}
	}
}
