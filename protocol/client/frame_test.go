package client_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"turnstone/protocol/client"
)

func TestFramesAreParsedAsTheStandardSpecifies(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, test := range map[string]struct {
		text string
		want []string // id|event|data
		end  error
	}{
		"fields in any order":              {"data: a\nid: 1\nevent: b\n\n", []string{"1|b|a"}, io.EOF},
		"CRLF":                             {"id: 1\r\nevent: b\r\ndata: a\r\n\r\n", []string{"1|b|a"}, io.EOF},
		"no space after the colon":         {"id:1\nevent:b\ndata:a\n\n", []string{"1|b|a"}, io.EOF},
		"only one space is removed":        {"data:  a\n\n", []string{"|| a"}, io.EOF},
		"several data lines":               {"data: a\ndata\ndata: b\n\n", []string{"||a\n\nb"}, io.EOF},
		"comments between and within":      {": one\n\nid: 1\n: two\ndata: a\n: three\n\n", []string{"1||a"}, io.EOF},
		"a frame without data":             {"id: 1\nevent: b\n\ndata: a\n\n", []string{"||a"}, io.EOF},
		"an unknown field":                 {"colour: red\ndata: a\n\n", []string{"||a"}, io.EOF},
		"a field without a colon":          {"data\n\n", []string{"||"}, io.EOF},
		"lines that exceed the buffer":     {"id: 1\ndata: " + long + "\n\nid: 2\ndata: b\n\n", []string{"1||" + long, "2||b"}, io.EOF},
		"an end within a line":             {"data: a\n\ndata: b", []string{"||a"}, io.ErrUnexpectedEOF},
		"an end within a frame":            {"data: a\n\nid: 2\n", []string{"||a"}, io.ErrUnexpectedEOF},
		"an end after a reconnection time": {"retry: 100\n", nil, io.EOF},
		"nothing":                          {"", nil, io.EOF},
	} {
		for way, from := range map[string]io.Reader{
			"at once": strings.NewReader(test.text), "byte by byte": iotest.OneByteReader(strings.NewReader(test.text)),
		} {
			frames := client.NewFrameReader(from)
			var got []string
			frame, err := frames.Next()
			for ; err == nil; frame, err = frames.Next() {
				got = append(got, string(frame.ID)+"|"+string(frame.Event)+"|"+string(frame.Data))
			}
			if !errors.Is(err, test.end) || strings.Join(got, "\x00") != strings.Join(test.want, "\x00") {
				t.Errorf("%s, %s: %q, %v", name, way, got, err)
			}
		}
	}
}

func TestTheReconnectionTimeIsTheLastOne(t *testing.T) {
	frames := client.NewFrameReader(strings.NewReader("retry: 100\n\ndata: a\n\nretry: x\nretry: 200\ndata: b\n\n"))
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		if _, err := frames.Next(); err != nil || frames.Retry() != want {
			t.Errorf("%s, want %s; %v", frames.Retry(), want, err)
		}
	}
}

// FuzzFrames checks that the result of parsing a stream does not depend on the pieces in which it arrives.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"id: 1\nevent: e\ndata: a\ndata: b\n\n", ": c\r\n\r\nretry: 5\r\ndata\r\n\r\n", "data: a\n\n\n\ndata:"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(from io.Reader) (all []string, err error) {
			frames := client.NewFrameReader(from)
			for {
				frame, err := frames.Next()
				if err != nil {
					return append(all, frames.Retry().String()), err
				}
				if bytes.ContainsAny(frame.ID, "\n") || bytes.ContainsAny(frame.Event, "\n") {
					t.Errorf("a field contains a line end: %q", frame)
				}
				all = append(all, string(frame.ID)+"|"+string(frame.Event)+"|"+string(frame.Data))
			}
		}
		whole, errWhole := read(bytes.NewReader(text))
		pieces, errPieces := read(iotest.OneByteReader(bytes.NewReader(text)))
		if strings.Join(whole, "\x00") != strings.Join(pieces, "\x00") || !errors.Is(errPieces, errWhole) {
			t.Errorf("%q, %v; in pieces %q, %v", whole, errWhole, pieces, errPieces)
		}
	})
}
