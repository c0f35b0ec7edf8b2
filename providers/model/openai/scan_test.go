package openai

import (
	"math/rand/v2"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model/lenient"
)

// The events that servers send most of the time. Each must be scanned, not decoded.
var (
	usualChat = []string{
		`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1712345678,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" wäder"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aB3"}`,
		`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}`,
		`{"choices":[{"delta":{"content":"a\n\"b\" \u00e4 \ud83d\udc26"},"finish_reason":null,"index":0}],"created":1,"id":"x","model":"m","object":"chat.completion.chunk"}`,
		`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],"created":1,"id":"x","model":"m.gguf","system_fingerprint":"b1","object":"chat.completion.chunk"}`,
		`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Hm"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
		`{"id":"x","provider":"P","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}`,
		`{ "choices" : [ { "index" : 0 , "delta" : { "content" : "a" } } ] , "error" : null }`,
	}
	usualResponses = []string{
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" wäder","sequence_number":7,"logprobs":[],"obfuscation":"aB3"}`,
		`{"content_index":0,"delta":"a\n","item_id":"msg_1","type":"response.output_text.delta"}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hm","sequence_number":3}`,
		`{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"Hm","sequence_number":3}`,
	}
)

// The events that the scan must leave to the decoder.
var unusual = []string{
	`{"choices":[{"index":1,"delta":{"content":"other"}}]}`, `{"choices":[{"index":00,"delta":{"content":"a"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a","content":null}}]}`, `{"choices":[{"delta":{"content":"a","content":"b"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b"}}]}`, `{"choices":[{"index":0,"delta":{"content":5}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a","refusal":"no"}}]}`, `{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[]}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\"}}]}",
	`{"choices":[{"index":0,"delta":{"\u0063ontent":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":"a"}}],"error":{"message":"boom"}}`,
	`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
	`{"choices":[{"index":0,"delta":{"content":"a"}}]`, `{"choices":[{"index":0,"delta":{"content":"a"}}]}}`,
	`{"choices":[{"index":0,"delta":{"content":"a",}}]}`, `{"choices":[{"index":0,"delta":{"content":"a"}},]}`,
	`{"choices":[{"index":0 "delta":{"content":"a"}}]}`, `{"choices":[]}`, `{"choices":null}`, `{}`, `[]`, `null`, ``, `{`, `{"":""}`,
	`{"choices":[{"index":0,"delta":{}}],"choices":[{"index":0,"delta":{"content":"b"}}]}`, "{\"choices\":[{\"delta\":{\"content\":\"a\nb\"}}]}",
	`{"type":"response.output_text.delta"}`, `{"delta":"a"}`, `{"type":"response.refusal.delta","delta":"a"}`,
	`{"type":"response.output_text.delta","delta":"a","delta":"b"}`, `{"type":"response.output_text.delta","type":"error","delta":"a"}`,
	`{"type":"response.output_text.delta","delta":"a","logprobs":[1]}`, `{"type":"response.output_text.delta","delta":null}`,
}

// decoded is the content of a chunk in the types of the format, limited to what a scan can return.
type decoded struct {
	reasoning, text string
	more            bool // it has content other than text
	failed          bool
}

func decodeChat(data []byte) decoded {
	var chunk chatChunk
	if failed(data) || lenient.Decode(data, &chunk) != nil {
		return decoded{failed: true}
	}
	content := decoded{more: chunk.Usage.Input > 0 || chunk.Usage.Output > 0}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		delta := choice.Delta
		content.more = content.more || choice.FinishReason != "" || delta.Refusal != "" || len(delta.ToolCalls) > 0 ||
			delta.FunctionCall.Name != "" || delta.FunctionCall.Arguments != ""
		content.reasoning += delta.ReasoningContent.Text
		if delta.ReasoningContent.Text == "" {
			content.reasoning += delta.Reasoning.Text
		}
		content.text += delta.Content.Text
	}
	return content
}

// failed reports whether an event has an error.
func failed(data []byte) bool {
	var event struct {
		Error lenient.Raw `json:"error"`
	}
	return lenient.Decode(data, &event) != nil || event.Error != nil
}

func decodeEvent(data []byte) decoded {
	var event responseEvent
	if failed(data) || lenient.Decode(data, &event) != nil {
		return decoded{failed: true}
	}
	switch event.Type {
	case "response.output_text.delta":
		return decoded{text: string(event.Delta)}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return decoded{reasoning: string(event.Delta)}
	}
	return decoded{more: true}
}

// compareWithDecoder compares a scan with the decoder, and reports whether the event was scanned.
func compareWithDecoder(t *testing.T, data []byte) (chat, response bool) {
	t.Helper()
	compare := func(kind llm.ChunkKind, raw []byte, scanned bool, decode func([]byte) decoded) bool {
		text, ok := lenient.AppendUnquoted(nil, raw)
		if !scanned || !ok {
			return false
		}
		want, got := decode(data), decoded{text: string(text)}
		if kind == llm.ChunkReasoning {
			got = decoded{reasoning: string(text)}
		}
		if got != want {
			t.Errorf("%q: scanned %+v, decoded %+v", data, got, want)
		}
		return true
	}
	kind, raw, _, scanned := scanChat(data)
	chat = compare(kind, raw, scanned, decodeChat)
	kind, raw, scanned = scanResponse(data)
	return chat, compare(kind, raw, scanned, decodeEvent)
}

func TestUsualChunksAreScanned(t *testing.T) {
	for _, data := range usualChat {
		if chat, _ := compareWithDecoder(t, []byte(data)); !chat {
			t.Errorf("not scanned: %s", data)
		}
	}
	for _, data := range usualResponses {
		if _, response := compareWithDecoder(t, []byte(data)); !response {
			t.Errorf("not scanned: %s", data)
		}
	}
	for _, data := range unusual {
		if chat, response := compareWithDecoder(t, []byte(data)); chat || response {
			t.Errorf("scanned: %s", data)
		}
	}
}

// TestAScanAgreesWithTheDecoder makes a few random changes to usual chunks: it deletes, doubles, inserts and replaces
// pieces.
func TestAScanAgreesWithTheDecoder(t *testing.T) {
	parts := []string{
		`"content"`, `"delta"`, `"choices"`, `"index"`, `"reasoning"`, `"type"`, `"error"`, `"usage"`, `"finish_reason"`, `"role"`,
		`:`, `,`, `{`, `}`, `[`, `]`, `null`, `0`, `1`, `-0`, `0.0`, `1e3`, `""`, `"a"`, `"\ud83d"`, `"\u0000"`, "\"\xff\"", `true`, ` `,
		`"content":"b",`, `"content":null,`, `"index":0,`, `"index":1,`, `"error":null,`, `"refusal":null,`, `"refusal":"n",`,
	}
	all := append(append(append([]string(nil), usualChat...), usualResponses...), unusual...)
	random, scanned := rand.New(rand.NewPCG(1, 2)), 0
	for range 150_000 {
		data := all[random.IntN(len(all))]
		for range 1 + random.IntN(3) {
			at := random.IntN(len(data) + 1)
			end := min(len(data), at+random.IntN(8))
			switch random.IntN(4) {
			case 0:
				data = data[:at] + data[end:]
			case 1:
				data = data[:at] + parts[random.IntN(len(parts))] + data[at:]
			case 2:
				data = data[:at] + parts[random.IntN(len(parts))] + data[end:]
			default:
				data = data[:end] + data[at:]
			}
		}
		if chat, response := compareWithDecoder(t, []byte(data)); chat || response {
			scanned++
		}
	}
	if scanned < 1000 {
		t.Errorf("only %d of the changed events were scanned", scanned)
	}
}

func FuzzAScanAgreesWithTheDecoder(f *testing.F) {
	for _, seeds := range [][]string{usualChat, usualResponses, unusual} {
		for _, seed := range seeds {
			f.Add([]byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareWithDecoder(t, data) })
}

// BenchmarkChunk measures the scan of one usual chunk.
func BenchmarkChunk(b *testing.B) {
	for name, each := range map[string]struct {
		data string
		scan func([]byte) (llm.ChunkKind, []byte, bool)
	}{
		"chat": {usualChat[0], func(data []byte) (llm.ChunkKind, []byte, bool) {
			kind, raw, _, ok := scanChat(data)
			return kind, raw, ok
		}},
		"responses": {usualResponses[0], scanResponse},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			data, text := []byte(each.data), []byte(nil)
			for b.Loop() {
				_, raw, scanned := each.scan(data)
				var ok bool
				if text, ok = lenient.AppendUnquoted(text[:0], raw); !scanned || !ok {
					b.Fatal("not scanned")
				}
			}
		})
	}
}
