package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/openai"
)

// ask requests an answer from a server that sends exactly these lines as its events.
func ask(t *testing.T, api, contentType string, lines ...string) ([]llm.Chunk, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		} else {
			w.Header()["Content-Type"] = nil
		}
		for _, line := range lines {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", line)
		}
	}))
	defer server.Close()
	provider, err := openai.New(openai.Options{BaseURL: server.URL + "/", API: api, Client: model.Options{Backoff: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.Collect(t.Context(), t, provider, llm.Request{
		Model: "m", MaxOutputTokens: 10, Messages: []llm.Message{{Role: "user", Text: "hi"}},
	})
}

const stream = "text/event-stream"

func choice(delta, finish string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// describe returns the chunks as text. It joins adjacent chunks of one kind, because pieces that arrive together may be
// emitted together.
func describe(chunks []llm.Chunk) string {
	var all []string
	for i, chunk := range chunks {
		joined := i > 0 && chunks[i-1].Kind == chunk.Kind
		switch {
		case chunk.Kind == llm.ChunkText && joined:
			all[len(all)-1] += chunk.Text
		case chunk.Kind == llm.ChunkText:
			all = append(all, chunk.Text)
		case chunk.Kind == llm.ChunkReasoning && joined:
			all[len(all)-1] = strings.TrimSuffix(all[len(all)-1], ")") + chunk.Text + ")"
		case chunk.Kind == llm.ChunkReasoning:
			all = append(all, "("+chunk.Text+")")
		case chunk.Kind == llm.ChunkToolCall:
			all = append(all, chunk.ToolCall.Name+string(chunk.ToolCall.Input))
		case chunk.Kind == llm.ChunkStop:
			all = append(all, string(chunk.Stop))
		}
	}
	return strings.Join(all, " ")
}

func TestChatToleratesWhatCompatibleServersDo(t *testing.T) {
	for name, each := range map[string]struct {
		lines []string
		want  string
	}{
		"complete calls without identifiers that end with stop": {[]string{
			choice(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"g","arguments":""}}]}`, `"stop"`),
		}, "f{} g{} tool_calls"},
		"every call under index 0": {[]string{
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `null`),
			choice(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]}`, `"tool_calls"`),
		}, `f{"x":1} f{"x":2} tool_calls`},
		"the identifier with every piece": {[]string{
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`, `null`),
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":":1}"}}]}`, `"tool_calls"`),
		}, `f{"x":1} tool_calls`},
		"the deprecated function_call": {[]string{
			choice(`{"function_call":{"name":"f","arguments":""}}`, `null`), choice(`{"function_call":{"arguments":"{\"x\":1}"}}`, `"function_call"`),
		}, `f{"x":1} tool_calls`},
		"arguments that are not JSON": {[]string{
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"x = 1"}}]}`, `"tool_calls"`),
		}, `f{"invalid_arguments":"x = 1"} tool_calls`},
		"no choices, null choices, another choice": {[]string{
			`{"choices":[]}`, `{"choices":null}`, `{}`, `{"choices":[{"index":1,"delta":{"content":"other"}}]}`, choice(`{"content":"a"}`, `"stop"`),
		}, "a end_turn"},
		"a null error in every chunk": {[]string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}],"error":null}`,
			`{"error":null,"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`,
			`{"error": null ,"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		}, "ab end_turn"},
		"events without data":   {[]string{"", choice(`{"content":"a"}`, `"stop"`), ""}, "a end_turn"},
		"no reason for the end": {[]string{choice(`{"content":"a"}`, `null`)}, "a end_turn"},
		"an unknown reason":     {[]string{choice(`{"content":"a"}`, `"eos"`)}, "a end_turn"},
		"reasoning by either name": {[]string{
			choice(`{"reasoning_content":"b"}`, `null`), choice(`{"reasoning":"c"}`, `null`), choice(`{"reasoning":null,"content":"a"}`, `"stop"`),
		}, "(bc) a end_turn"},
		"a refusal":     {[]string{choice(`{"refusal":"No."}`, `"stop"`)}, "No. refusal"},
		"an empty text": {[]string{choice(`{"content":""}`, `"stop"`)}, "end_turn"},
	} {
		for _, contentType := range []string{stream, "Text/Event-Stream; charset=utf-8", ""} {
			chunks, err := ask(t, openai.APIChat, contentType, append(each.lines, "[DONE]")...)
			if got := describe(chunks); err != nil || got != each.want {
				t.Errorf("%s (%s): got %s, %v", name, contentType, got, err)
			}
		}
	}
}

func TestChatRefusesStreamsWithoutAnAnswer(t *testing.T) {
	for name, each := range map[string]struct {
		contentType string
		lines       []string
		code        protocol.TurnErrorCode
	}{
		"nothing but the marker":    {stream, []string{"[DONE]"}, "model_protocol"},
		"an empty body":             {stream, nil, "model_unavailable"},
		"an error with 200":         {"application/json", []string{}, "model_unavailable"},
		"the finish reason error":   {stream, []string{choice(`{}`, `"error"`), "[DONE]"}, "model_unavailable"},
		"an error, then the marker": {stream, []string{`{"error":{"message":"boom","type":"server_error"}}`, "[DONE]"}, "model_unavailable"},
	} {
		_, err := ask(t, openai.APIChat, each.contentType, each.lines...)
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Code != each.code || failure.Cut {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResponsesFailInTheirOwnWay(t *testing.T) {
	for name, each := range map[string]struct {
		line string
		code protocol.TurnErrorCode
	}{
		"failed":         {`{"type":"response.failed","response":{"error":{"code":"server_error","message":"boom"}}}`, "model_unavailable"},
		"too long":       {`{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"no"}}}`, "model_context_exceeded"},
		"rate limit":     {`{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`, "model_rate_limited"},
		"a nested error": {`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, "model_rejected"},
		"unknown events": {`{"type":"something.else"}`, "model_unavailable"},
	} {
		_, err := ask(t, openai.APIResponses, stream, each.line)
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Code != each.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResponsesTolerateNoError(t *testing.T) {
	chunks, err := ask(t, openai.APIResponses, stream,
		`{"type":"response.created","error":null,"response":{"error":null}}`,
		`{"type":"response.output_text.delta","delta":"a","error":null}`,
		`{"type":"response.completed","error":null,"response":{"status":"completed"}}`)
	if got := describe(chunks); err != nil || got != "a end_turn" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestTheEnvironmentIsNotRead(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "key-of-the-environment", "OPENAI_BASE_URL": "http://127.0.0.1:1/", "OPENAI_ORG_ID": "org-of-the-environment",
		"OPENAI_CUSTOM_HEADERS": "X-Stray: 1", "HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Steps: []modeltest.Step{{Text: []string{"ok"}}}})
	defer server.Close()
	provider, err := openai.New(openai.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = provider.Stream(context.Background(), llm.Request{
		Model: "m", MaxOutputTokens: 10, Messages: []llm.Message{{Role: "user", Text: "hi"}},
	}, func(llm.Chunk) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	header := server.Requests()[0].Header
	if header.Get("Authorization") != "" || header.Get("OpenAI-Organization") != "" || header.Get("X-Stray") != "" {
		t.Errorf("sent %v", header)
	}
}

func TestABadSchemaIsARejectedRequest(t *testing.T) {
	provider, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	err = provider.Stream(t.Context(), llm.Request{Tools: []llm.Tool{{Name: "f", Schema: []byte("{")}}}, nil)
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Code != "model_rejected" {
		t.Error(err)
	}
	if _, err := openai.New(openai.Options{API: "assistants"}); err == nil {
		t.Error("an unknown API was accepted")
	}
}
