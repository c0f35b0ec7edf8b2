package protocol

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// deltaLog returns a log of n deltas, followed by turn.finished if ended is true.
func deltaLog(t interface{ Fatal(...any) }, n int, ended bool) []byte {
	var frames []byte
	for i := range n {
		frames = append(encode(t, frames, int64(i+1), &AnswerDelta{PartID: DerivePartID(goldenTurn, 1), Delta: `,"sequence":9,"type":"turn.finished"`}), '\n')
	}
	if ended {
		frames = append(encode(t, frames, int64(n+1), &TurnFinished{Status: TurnCompleted, LastSequence: int64(n + 1)}), '\n')
	}
	return frames
}

func TestTheHeadOfAFrameIsReadWithoutDecodingIt(t *testing.T) {
	for i, payload := range samples() {
		sequence, kind, ok := FrameHead(encode(t, nil, int64(i)+998, payload))
		if !ok || sequence != int64(i)+998 || EventType(kind) != payload.EventType() {
			t.Errorf("%s is read as %d, %s, %v", payload.EventType(), sequence, kind, ok)
		}
	}
	for _, frame := range []string{
		"", "{}", `,"sequence":`, `,"sequence":1`, `,"sequence":,"type":"x"`, `,"sequence":1,"type":"x`, `,"sequence":x1,"type":"x"`, `,"sequence":1 ,"type":"x"`,
	} {
		if sequence, kind, ok := FrameHead([]byte(frame)); ok {
			t.Errorf("%q has the head %d, %s", frame, sequence, kind)
		}
	}
}

func TestFramesAreWalkedAndSkippedOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "events")
		skip := rapid.IntRange(-1, 25).Draw(t, "skip")
		frames := deltaLog(t, n, false)
		var sequences []int64
		for line := range FrameLines(SkipFrames(frames, int64(skip))) {
			sequence, _, ok := FrameHead(line)
			if !ok || bytes.ContainsRune(line, '\n') {
				t.Fatalf("a line is not a frame: %q", line)
			}
			sequences = append(sequences, sequence)
		}
		var want []int64
		for sequence := max(skip, 0) + 1; sequence <= n; sequence++ {
			want = append(want, int64(sequence))
		}
		if !slices.Equal(sequences, want) {
			t.Fatalf("%d of %d skipped: %v is left, want %v", skip, n, sequences, want)
		}
	})
}

func TestIterationOverFramesMayStopEarly(t *testing.T) {
	seen := 0
	for range FrameLines(deltaLog(t, 5, false)) {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("%d frames were seen", seen)
	}
}

func TestSkippingAFrameWithoutNewlineLeavesNothing(t *testing.T) {
	if rest := SkipFrames([]byte(`{"cut":`), 1); rest != nil {
		t.Errorf("%q is left", rest)
	}
}

func TestOnlyTurnFinishedAtTheEndEndsATurn(t *testing.T) {
	for n := range 3 {
		if frames := deltaLog(t, n, true); !EndsTurn(frames) || !EndsTurn(bytes.TrimRight(frames, "\n")) {
			t.Errorf("EndsTurn is false for %d events and turn.finished", n)
		}
		if EndsTurn(deltaLog(t, n, false)) {
			t.Errorf("EndsTurn is true for %d deltas", n)
		}
	}
	if EndsTurn(append(deltaLog(t, 0, true), deltaLog(t, 1, false)...)) {
		t.Error("EndsTurn is true when an event follows turn.finished")
	}
	if EndsTurn(nil) || EndsTurn([]byte("\n\n")) {
		t.Error("EndsTurn is true without frames")
	}
}
