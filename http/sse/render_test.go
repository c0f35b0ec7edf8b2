package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// sseEvent is one event as a reader of the stream receives it.
type sseEvent struct{ id, event, data string }

// parseSSE parses a stream as the HTML standard defines. It is stricter where the writer guarantees more: a field
// occurs at most once in an event, every field is known, and the stream does not end within an event. comments counts
// the comment and retry fields.
func parseSSE(stream []byte) (events []sseEvent, comments int, err error) {
	text := strings.ReplaceAll(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\r", "\n")
	if text != "" && !strings.HasSuffix(text, "\n\n") {
		return nil, 0, errors.New("the stream ends within an event")
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var event sseEvent
		seen := map[string]bool{}
		for line := range strings.SplitSeq(block, "\n") {
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			if seen[field] {
				return nil, 0, fmt.Errorf("an event has the field %q twice", field)
			}
			seen[field] = true
			switch field {
			case "id":
				event.id = value
			case "event":
				event.event = value
			case "data":
				event.data = value
			case "retry", "":
				comments++
			default:
				return nil, 0, fmt.Errorf("unknown field %q", field)
			}
		}
		if seen["data"] || seen["id"] || seen["event"] {
			events = append(events, event)
		}
	}
	return events, comments, nil
}

// FuzzEventStream checks that a reader receives every event of a turn with its bytes unchanged, whatever texts the
// events contain.
func FuzzEventStream(f *testing.F) {
	f.Add("a", "b", int64(1), uint8(3))
	f.Add("a\n\ndata: b\n\nid: 9", "\r\r\nevent: turn.finished\n\n", int64(7), uint8(0))
	f.Add("\u2028\u2029\u0085\x00\x1f", `","sequence":1,"type":"x"`, int64(1<<40), uint8(255))
	f.Add("\xff\xc3(", "🐦: :", int64(2), uint8(9))
	turn, part := protocol.NewTurnID(), protocol.NewPartID()
	f.Fuzz(func(t *testing.T, first, second string, sequence int64, mix uint8) {
		sequence = max(1, sequence&(1<<53-1))
		payloads := []protocol.Payload{
			&protocol.AnswerDelta{PartID: part, Delta: first}, &protocol.CodeDelta{PartID: part, Delta: second},
			&protocol.Notice{PartID: part, Kind: second, Text: first}, &protocol.AnswerDelta{PartID: part, Delta: second, Obfuscation: first},
		}
		recorder := httptest.NewRecorder()
		out := &handlerStream{w: recorder, control: stdhttp.NewResponseController(recorder)}
		write := func(b []byte) {
			if err := out.write(b); err != nil {
				t.Fatal(err)
			}
		}
		var frames []byte
		var want []sseEvent
		for i, payload := range payloads {
			begin := len(frames)
			var err error
			if frames, err = protocol.AppendEvent(frames, turn, sequence+int64(i), time.Unix(0, 0), payload); err != nil {
				t.Fatal(err)
			}
			want = append(want, sseEvent{strconv.FormatInt(sequence+int64(i), 10), string(payload.EventType()), string(frames[begin:])})
			frames = append(frames, '\n')
			if mix&(1<<i) != 0 { // write the events so far as a chunk, then a comment and a retry
				write(unframed(renderChunk(frames)))
				write([]byte(comment))
				write(appendRetry(nil, int(mix)))
				frames = frames[:0]
			}
		}
		write(appendEvents(nil, frames))
		got, _, err := parseSSE(recorder.Body.Bytes())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("a reader receives %q (%v), want %q", got, err, want)
		}
	})
}

// TestAReaderInTheMiddleOfAChunkGetsTheSameBytes compares the bytes that readers share with those that are rendered for
// one reader.
func TestAReaderInTheMiddleOfAChunkGetsTheSameBytes(t *testing.T) {
	var frames []byte
	turn := protocol.NewTurnID()
	for i := range int64(3) {
		var err error
		if frames, err = protocol.AppendEvent(frames, turn, i+1, time.Now(), &protocol.AnswerDelta{Delta: "a"}); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, '\n')
	}
	whole := unframed(renderChunk(frames))
	part := appendEvents(nil, protocol.SkipFrames(frames, 1))
	if !bytes.HasSuffix(whole, part) || !bytes.Equal(whole, appendEvents(nil, frames)) {
		t.Errorf("%s\n%s", whole, part)
	}
	body, err := io.ReadAll(dechunked(append(renderChunk(frames), lastChunk...)))
	if err != nil || !bytes.Equal(body, whole) {
		t.Errorf("decoded from chunks of HTTP: %s (%v)", body, err)
	}
	if len(renderChunk(nil)) != 0 {
		t.Error("a chunk without events is not empty, so it would end the body")
	}
}

// dechunked returns the content of a chunked body, as an HTTP client reads it.
func dechunked(b []byte) io.Reader {
	head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	resp, err := stdhttp.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(head), bytes.NewReader(b))), nil)
	if err != nil {
		return strings.NewReader(err.Error())
	}
	return resp.Body
}
