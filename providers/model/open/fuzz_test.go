package open_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/anthropic"
	"turnstone/providers/model/openai"
)

// FuzzAnswer checks that for any response, in any wire format, a call ends either with exactly one stop as its last
// chunk or with an llm.Error, and that every emitted chunk is allowed by the contract of llm.Model.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}},{\"index\":7}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n", "data: {\"choices\":null}\n\ndata: [DONE]\n\n",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
		"data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"[]\"}}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":9,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
		"", "\n\n\n", "data:\n\n", "data: {\n\n", "<html>", "data: [DONE]\n\n", "data: null\n\n", "data: \xff\n\n", ": comment\n\n", "data: {\"type\":\"ping\"}\r\n\r\n",
	} {
		f.Add([]byte(body))
	}
	var body atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(*body.Load())
	}))
	f.Cleanup(server.Close)
	options := model.Options{Backoff: time.Nanosecond, Idle: 10 * time.Second, FirstByte: 10 * time.Second}
	subjects := map[string]llm.Model{}
	for _, api := range []string{openai.APIChat, openai.APIResponses} {
		m, err := openai.New(openai.Options{BaseURL: server.URL, APIKey: "k", API: api, Client: options})
		if err != nil {
			f.Fatal(err)
		}
		subjects[api] = m
	}
	m, err := anthropic.New(anthropic.Options{BaseURL: server.URL, APIKey: "k", Client: options})
	if err != nil {
		f.Fatal(err)
	}
	subjects["messages"] = m
	request := llm.Request{
		Model: "m", Messages: []llm.Message{{Role: "user", Text: "hello"}}, MaxOutputTokens: 100, Step: 1,
		Tools: []llm.Tool{{Name: "f", Description: "f", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		answer = bytes.Clone(answer)
		body.Store(&answer)
		for wire, subject := range subjects {
			var chunks []llm.Chunk
			err := subject.Stream(t.Context(), request, func(chunk llm.Chunk) error {
				chunks = append(chunks, chunk)
				return nil
			})
			var failure *llm.Error
			if err != nil && (!errors.As(err, &failure) || failure.Code == "") {
				t.Errorf("%s: %q ends with %v", wire, answer, err)
			}
			if failure != nil && failure.Cut != (len(chunks) > 0) {
				t.Errorf("%s: %q emitted %d chunks, and cut is %v", wire, answer, len(chunks), failure.Cut)
			}
			stops := 0
			for i, chunk := range chunks {
				if fault := wrong(chunk); fault != "" {
					t.Errorf("%s: %q: %s: %+v", wire, answer, fault, chunk)
				}
				if chunk.Kind == llm.ChunkStop {
					stops++
					if i != len(chunks)-1 {
						t.Errorf("%s: %q continues after its stop", wire, answer)
					}
				}
			}
			if (err == nil) != (stops == 1) {
				t.Errorf("%s: %q ends with %v and %d stops", wire, answer, err, stops)
			}
		}
	})
}

// wrong returns what is wrong with a chunk by the contract of llm.Model, or "" if the chunk is valid.
func wrong(chunk llm.Chunk) string {
	switch chunk.Kind {
	case llm.ChunkText, llm.ChunkReasoning:
		if chunk.Text == "" || !utf8.ValidString(chunk.Text) {
			return "no text"
		}
	case llm.ChunkToolCall:
		var input map[string]json.RawMessage
		if json.Unmarshal(chunk.ToolCall.Input, &input) != nil || input == nil {
			return "the input is not an object"
		}
		if chunk.ToolCall.Name == "" || chunk.ToolCall.ID == "" {
			return "a call without a name"
		}
	case llm.ChunkUsage:
		if chunk.Usage.InputTokens < 0 || chunk.Usage.OutputTokens < 0 {
			return "a negative usage"
		}
	case llm.ChunkOpaque:
		if !json.Valid(chunk.Opaque) {
			return "the opaque state is not JSON"
		}
	case llm.ChunkStop:
		if chunk.Stop == "" {
			return "a stop without a reason"
		}
	default:
		return "an unknown kind"
	}
	return ""
}
