package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/providers/model/lenient"
)

// pieceReader returns at most size bytes per read. If size is even, it returns its error together with the last bytes,
// otherwise after them.
type pieceReader struct {
	text string
	size int
	err  error
}

func (p *pieceReader) Read(to []byte) (int, error) {
	if p.text == "" {
		return 0, p.err
	}
	n := copy(to, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	if p.text == "" && p.size%2 == 0 {
		return n, p.err
	}
	return n, nil
}

// scanAll runs a body through an eventScanner and returns its events as "name=data".
func scanAll(body io.Reader) (seen []string, scanner *eventScanner, err error) {
	scanner = new(eventScanner)
	defer scanner.release()
	for {
		event, found, err := scanner.next()
		if err != nil {
			return seen, scanner, err
		}
		if found {
			seen = append(seen, string(event.Name)+"="+string(event.Data))
			continue
		}
		if err := scanner.fill(body); errors.Is(err, io.EOF) {
			scanner.endLine()
			return seen, scanner, nil
		} else if err != nil {
			return seen, scanner, err
		}
	}
}

func TestEventsAreTheSameHoweverTheyAreCut(t *testing.T) {
	long := strings.Repeat("long ", largeBuffer/2)
	for body, want := range map[string][]string{
		"data: a\n\ndata:b\n\n":                                {"=a", "=b"},
		"event: x\ndata: a\n\nevent:y\ndata: b\n\ndata: c\n\n": {"x=a", "y=b", "=c"},
		"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n":           {"x=a", "=b"},
		"data: a\ndata:  b\ndata\ndata: c\n\n":                 {"=a\n b\n\nc"},
		": hello\n\n: there\ndata: a\nid: 7\nretry: 1\n\n":     {"=a"},
		"event: x\n\ndata: a\n\n":                              {"=a"},
		"data:\n\ndata: \n\ndata: a\n\n":                       {"=a"},
		"\n\n\ndata: a\n\n\n\n":                                {"=a"},
		"data: cut\n":                                          nil,
		"data: a\n\ndata: cut":                                 {"=a"},
		"datum: a\nxdata: b\n\n{\"data\": 1}\n\n":              nil,
		"data: " + long + "\n\ndata: a\n\n":                    {"=" + long, "=a"},
		"data: [DONE]":                                         nil,
	} {
		sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, smallBuffer - 1, smallBuffer, largeBuffer, 1 << 20}
		for _, size := range sizes {
			seen, scanner, err := scanAll(&pieceReader{body, size, io.EOF})
			if err != nil || strings.Join(seen, "|") != strings.Join(want, "|") {
				t.Fatalf("%.60q by %d: got %.200q, %v", body, size, seen, err)
			}
			if scanner.done != strings.HasSuffix(body, "[DONE]") {
				t.Errorf("%.60q by %d: done is %v", body, size, scanner.done)
			}
		}
	}
}

func TestTheMarkerIsSeenHoweverItIsCut(t *testing.T) {
	for body, want := range map[string]bool{
		"data: {}\n\ndata: [DONE]\n\n": true, "data:[DONE]\n\n": true, "data: [DONE]\r\n\r\n": true, "data: [DONE]": true,
		"data: {}\n\n": false, "event: [DONE]\n\n": false, ": data: [DONE]\n": false, "data: \"[DONE]\"\n": false,
	} {
		for size := 1; size <= len(body); size++ {
			_, scanner, err := scanAll(&pieceReader{body, size, io.EOF})
			if err != nil || scanner.done != want {
				t.Errorf("%q by %d: %v, %v", body, size, scanner.done, err)
			}
		}
	}
}

func TestEventsOfManyLinesAndTheWholeAreBounded(t *testing.T) {
	line := "data: " + strings.Repeat("a", 1000) + "\n"
	for name, each := range map[string]struct {
		body string
		fits bool
	}{
		"many lines in an event": {strings.Repeat(line, maxEventBytes/1000), false},
		"many events":            {strings.Repeat(line+"\n", maxEventBytes/500), true},
		"too many bytes":         {strings.Repeat(line+"\n", maxAnswerBytes/1000), false},
		"a line of 8 MiB":        {"data: " + strings.Repeat("a", maxEventBytes), false},
		"a line below 8 MiB":     {"data: " + strings.Repeat("a", maxEventBytes-6) + "\n\ndata: [DONE]\n\n", true},
		"comments without end":   {strings.Repeat(": nothing\n", maxEventBytes/8), false},
	} {
		for _, size := range []int{4 << 10, 32 << 10} {
			if _, _, err := scanAll(&pieceReader{each.body, size, io.EOF}); (err == nil) != each.fits {
				t.Errorf("%s by %d: %v", name, size, err)
			}
		}
	}
}

func TestAWaitingStreamHoldsASmallBuffer(t *testing.T) {
	scanner := new(eventScanner)
	defer scanner.release()
	read := func(body io.Reader) {
		for {
			if _, found, err := scanner.next(); err != nil {
				t.Fatal(err)
			} else if found {
				continue
			}
			if scanner.fill(body) != nil {
				return
			}
		}
	}
	burst := strings.Repeat("data: {\"a\":1}\n\n", 10_000)
	read(iotest.TimeoutReader(strings.NewReader(burst)))
	read(strings.NewReader("data: {\"long\":\"" + strings.Repeat("a", 1<<20) + "\"}\n\n"))
	read(iotest.OneByteReader(strings.NewReader(strings.Repeat("data: 1\n\n", 20))))
	if got := len(scanner.buffer); got > smallBuffer {
		t.Errorf("the scanner waits with a buffer of %d bytes", got)
	}
}

// emittedChunks runs do with a new call, stops the call and returns the emitted chunks.
func emittedChunks(t *testing.T, do func(*Call) error) []llm.Chunk {
	t.Helper()
	client, err := NewClient("x", "http://127.0.0.1:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var chunks []llm.Chunk
	call := newCall(t.Context(), client, llm.Request{}, func(chunk llm.Chunk) error {
		chunks = append(chunks, chunk)
		return nil
	})
	defer call.end()
	if err := do(call); err != nil {
		t.Fatal(err)
	}
	if err := call.Stop(llm.StopEndTurn); err != nil {
		t.Fatal(err)
	}
	return chunks
}

func TestLongTextLeavesInPiecesThatCutNoCharacter(t *testing.T) {
	whole := strings.Repeat("wäder 🐦 ", maxPiece/4)
	for _, add := range []func(*Call) error{
		func(c *Call) error { return c.Text(whole) },
		func(c *Call) error {
			for _, r := range whole {
				if err := c.Text(string(r)); err != nil {
					return err
				}
			}
			return nil
		},
		func(c *Call) error {
			quoted, _ := json.Marshal(whole)
			_, err := c.Quoted(llm.ChunkText, quoted[1:len(quoted)-1])
			return err
		},
	} {
		chunks := emittedChunks(t, add)
		text := ""
		for _, chunk := range chunks {
			if len(chunk.Text) > maxPiece || !utf8.ValidString(chunk.Text) {
				t.Fatalf("a piece of %d bytes", len(chunk.Text))
			}
			text += chunk.Text
		}
		if text != whole {
			t.Errorf("%d bytes of %d", len(text), len(whole))
		}
		if last := chunks[len(chunks)-1]; last.Kind != llm.ChunkStop {
			t.Errorf("the last chunk is %+v", last)
		}
	}
}

func TestKindsOfTextKeepTheirOrder(t *testing.T) {
	chunks := emittedChunks(t, func(c *Call) error {
		return errors.Join(c.Reasoning("a"), c.Reasoning("b"), c.Text("c"), c.Text(""), c.Text("d"), c.Reasoning("e"))
	})
	text := ""
	for _, chunk := range chunks {
		text += fmt.Sprint(chunk.Kind, chunk.Text, " ")
	}
	if want := "2ab 1cd 2e 4 6 "; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestUnquotingIsWhatTheDecoderDoes(t *testing.T) {
	for _, text := range []string{
		``, `plain`, `wäder 🐦`, `\"\\\/\b\f\n\r\t`, `\u0041\u00e4\u2028\u0000`, `\ud83d\udc26`, `a\ud83d\udc26b`, `\uFFFD`,
		`\ud83d`, `\udc26`, `\ud83dx`, `\ud83d\ud83d`, `\ud83d\n`, "\xff", "a\xc3", `\u00e`, `\x`, `\`, `\u12g4`, `\ud83d\u12`,
	} {
		got, ok := lenient.AppendUnquoted([]byte("before "), []byte(text))
		var want string
		err := json.Unmarshal([]byte(`"`+text+`"`), &want)
		if ok && (err != nil || string(got) != "before "+want) {
			t.Errorf("%q: got %q, want %q, %v", text, got, want, err)
		}
		if plain := err == nil && !strings.ContainsRune(want, utf8.RuneError); plain && !ok {
			t.Errorf("%q was refused", text)
		}
	}
}

func FuzzUnquotingIsWhatTheDecoderDoes(f *testing.F) {
	for _, seed := range []string{``, `wäder 🐦`, `\"\\\/\b\f\n\r\t`, `\ud83d\udc26`, `\ud83d`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		cursor := lenient.NewCursor([]byte(`"` + string(raw) + `"`))
		if whole := cursor.String(); !cursor.End() || len(whole) != len(raw) {
			return
		}
		got, ok := lenient.AppendUnquoted(nil, raw)
		var want string
		if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &want); err != nil || ok && string(got) != want {
			t.Errorf("%q: got %q, want %q, %v", raw, got, want, err)
		}
	})
}

// A turn must not fail because its model asks for more calls than any turn runs.
func TestCallsBeyondTheLimitAreLeftOut(t *testing.T) {
	for name, do := range map[string]func(*Call) error{
		"whole": func(c *Call) error {
			for n := range 3 * maxCalls {
				if err := c.ToolCall("", "look", fmt.Sprintf(`{"n":%d}`, n)); err != nil {
					return err
				}
			}
			return nil
		},
		"in pieces": func(c *Call) error {
			for n := range 3 * maxCalls {
				c.ToolPiece(n, "", "look", `{"n":`)
				c.ToolPiece(n, "", "", fmt.Sprintf(`%d}`, n))
			}
			if len(c.tools.pieces) > maxCalls+1 {
				t.Errorf("%d calls are kept", len(c.tools.pieces))
			}
			return c.ToolPieces()
		},
		"in one piece": func(c *Call) error {
			text := ""
			for n := range 3 * maxCalls {
				text += fmt.Sprintf(`{"n":%d}`, n)
			}
			c.ToolPiece(0, "", "look", text)
			return c.ToolPieces()
		},
	} {
		n := 0
		for _, chunk := range emittedChunks(t, do) {
			if chunk.Kind != llm.ChunkToolCall {
				continue
			}
			if got, want := string(chunk.ToolCall.Input), fmt.Sprintf(`{"n":%d}`, n); got != want {
				t.Fatalf("%s: call %d has the input %s", name, n, got)
			}
			n++
		}
		if n != maxCalls {
			t.Errorf("%s: %d calls are left, want %d", name, n, maxCalls)
		}
	}
}
