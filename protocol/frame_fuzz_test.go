package protocol

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// FuzzFrames checks, for arbitrary bytes, that iterating over frames, skipping frames and reading their heads agree
// with each other and with splitting the bytes at newlines.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(""), int64(0))
	f.Add([]byte("\n"), int64(1))
	f.Add([]byte("\n\n"), int64(1))
	f.Add([]byte(`{"protocol_version":1,"turn_id":"x","sequence":7,"type":"turn.finished"}`+"\n"), int64(1))
	f.Add([]byte(`a,"sequence":1,"type":"x"`+"\n"+`b,"sequence":99999999999999999999,"type":"turn.finished"`), int64(1))
	f.Add([]byte(`,"sequence":,"type":"x"`), int64(-1))
	f.Add([]byte(`,"sequence":12,"type":"`), int64(2))
	f.Fuzz(func(t *testing.T, frames []byte, skip int64) {
		lines := slices.Collect(FrameLines(frames))
		plain := bytes.Split(bytes.TrimSuffix(frames, []byte("\n")), []byte("\n"))
		if len(frames) == 0 {
			plain = nil
		}
		if !slices.EqualFunc(lines, plain, bytes.Equal) {
			t.Errorf("FrameLines yielded %q, want %q", lines, plain)
		}
		rest := SkipFrames(frames, skip)
		if left := slices.Collect(FrameLines(rest)); !slices.EqualFunc(left, lines[min(max(skip, 0), int64(len(lines))):], bytes.Equal) {
			t.Errorf("SkipFrames of %d of %q left %q", skip, lines, left)
		}
		for _, line := range lines {
			sequence, kind, ok := FrameHead(line)
			if ok && (sequence < 0 || bytes.ContainsAny([]byte(kind), "\"\n")) {
				t.Errorf("the head of %q is %d %q", line, sequence, kind)
			}
		}
		if len(lines) > 0 && EndsTurn(frames) {
			trimmed := bytes.TrimRight(frames, "\n")
			if _, kind, ok := FrameHead(trimmed[bytes.LastIndexByte(trimmed, '\n')+1:]); !ok || kind != "turn.finished" {
				t.Errorf("EndsTurn is true for %q", frames)
			}
		}
	})
}

// FuzzEventText checks, for events with arbitrary text, that the frame is one line, that FrameHead reads the event's
// own sequence and type, and that the text is decoded unchanged except that invalid UTF-8 is replaced.
func FuzzEventText(f *testing.F) {
	f.Add("plain", int64(1))
	f.Add("a\nb\r\nc\u2028d\u2029\x00", int64(2))
	f.Add(`","sequence":9,"type":"turn.finished"`, int64(3))
	f.Add("\xff\xfe broken \xc3", int64(4))
	f.Add("🐦<script>&amp;", int64(1<<53))
	turn := TurnID{0: 1, 15: 1}
	f.Fuzz(func(t *testing.T, text string, sequence int64) {
		if sequence < 1 {
			sequence = 1
		}
		for _, payload := range []Payload{
			&AnswerDelta{PartID: PartID{0: 1, 15: 2}, Delta: text, Obfuscation: text},
			&CodeDelta{PartID: PartID{0: 1, 15: 2}, Delta: text},
			&Notice{PartID: PartID{0: 1, 15: 2}, Kind: text, Text: text},
		} {
			frame, err := AppendEvent(nil, turn, sequence, time.Unix(0, 0), payload)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.ContainsAny(frame, "\n\r") {
				t.Errorf("the frame has more than one line: %q", frame)
			}
			got, kind, ok := FrameHead(frame)
			if !ok || got != sequence || kind != string(payload.EventType()) {
				t.Errorf("the head of %q is %d %q %v", frame, got, kind, ok)
			}
			envelope, back, err := DecodeEvent(frame)
			if err != nil || envelope.Sequence != sequence || envelope.TurnID != turn {
				t.Fatalf("%q came back as %+v (%v)", frame, envelope, err)
			}
			want := string([]rune(text)) // invalid UTF-8 is replaced
			if delta, isDelta := back.(*AnswerDelta); isDelta && (delta.Delta != want || delta.Obfuscation != want) {
				t.Errorf("%q came back as %q", text, delta.Delta)
			}
			if delta, isDelta := back.(*CodeDelta); isDelta && delta.Delta != want {
				t.Errorf("%q came back as %q", text, delta.Delta)
			}
		}
	})
}
