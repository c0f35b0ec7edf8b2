package open_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/open"
)

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
		for _, each := range modeltest.AnswerCases {
			answer := write(each.Bytes())
			current.Store(&answer)
			if got := ask(t, each.API, server.URL); got != each.Want {
				t.Errorf("%s, %s:\n got %q\nwant %q", each.Name, way, got, each.Want)
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

// ask returns the answer of a server in the notation of modeltest.AnswerCase.want.
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
