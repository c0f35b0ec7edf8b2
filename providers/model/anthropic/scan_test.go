package anthropic

import (
	"math/rand/v2"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model/lenient"
)

// The events that servers send most of the time. Each must be scanned, not decoded.
var usual = []string{
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" wäder"}}`,
	`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"a\n\"b\" \ud83d\udc26"}}`,
	`{"delta":{"text":"a","type":"text_delta"},"index":12,"type":"content_block_delta"} `,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`,
}

// The events that the scan must leave to the decoder.
var unusual = []string{
	`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","thinking":"x"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","type":"thinking_delta","text":"a"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"delta":{}}`,
	`{"type":"content_block_delta","type":"message_stop","delta":{"type":"text_delta","text":"a"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}`, `{"type":"content_block_delta"}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
	`{"type":"message_stop"}`, `{"type":"ping"}`, `{}`, `[]`, `null`, ``, `{`,
}

// compareWithDecoder compares a scan with the decoder, and reports whether the event was scanned.
func compareWithDecoder(t *testing.T, data []byte) (scanned bool) {
	t.Helper()
	kind, raw, scanned := scanDelta(data)
	text, ok := lenient.AppendUnquoted(nil, raw)
	if !scanned || !ok {
		return false
	}
	var event streamEvent
	if err := lenient.Decode(data, &event); err != nil {
		t.Errorf("%q was scanned, but is not JSON: %v", data, err)
		return true
	}
	want := map[lenient.Text]lenient.Text{"text_delta": event.Delta.Text, "thinking_delta": event.Delta.Thinking}[event.Delta.Type]
	wantKind := map[lenient.Text]llm.ChunkKind{"text_delta": llm.ChunkText, "thinking_delta": llm.ChunkReasoning}[event.Delta.Type]
	if event.Type != "content_block_delta" || kind != wantKind || string(text) != string(want) {
		t.Errorf("%q: scanned %d %q, decoded %+v", data, kind, text, event)
	}
	return true
}

func TestUsualDeltasAreScanned(t *testing.T) {
	for _, data := range usual {
		if !compareWithDecoder(t, []byte(data)) {
			t.Errorf("not scanned: %s", data)
		}
	}
	for _, data := range unusual {
		if compareWithDecoder(t, []byte(data)) {
			t.Errorf("scanned: %s", data)
		}
	}
}

// TestAScanAgreesWithTheDecoder makes a few random changes to usual events.
func TestAScanAgreesWithTheDecoder(t *testing.T) {
	parts := []string{
		`"type"`, `"delta"`, `"index"`, `"text"`, `"thinking"`, `"text_delta"`, `"content_block_delta"`, `:`, `,`, `{`, `}`, `[`, `]`,
		`null`, `0`, `-1`, `1.5`, `""`, `"a"`, `"\ud83d"`, "\"\xff\"", ` `, `"text":"b",`, `"index":1,`, `"type":"text_delta",`, `"x":"y",`,
	}
	all := append(append([]string(nil), usual...), unusual...)
	random, scanned := rand.New(rand.NewPCG(1, 2)), 0
	for range 100_000 {
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
		if compareWithDecoder(t, []byte(data)) {
			scanned++
		}
	}
	if scanned < 300 {
		t.Errorf("only %d of the changed events were scanned", scanned)
	}
}

func FuzzAScanAgreesWithTheDecoder(f *testing.F) {
	for _, seed := range append(append([]string(nil), usual...), unusual...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareWithDecoder(t, data) })
}

// BenchmarkChunk measures the scan of one usual event.
func BenchmarkChunk(b *testing.B) {
	b.ReportAllocs()
	data, text := []byte(usual[0]), []byte(nil)
	for b.Loop() {
		_, raw, scanned := scanDelta(data)
		var ok bool
		if text, ok = lenient.AppendUnquoted(text[:0], raw); !scanned || !ok {
			b.Fatal("not scanned")
		}
	}
}
