package protocol

import (
	"bytes"
	"iter"
)

// FrameLines iterates over stored frames: each event is one line that ends with a newline.
func FrameLines(frames []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(frames) > 0 {
			line, rest, _ := bytes.Cut(frames, []byte{'\n'})
			if !yield(line) {
				return
			}
			frames = rest
		}
	}
}

// SkipFrames returns the frames after the first n events.
func SkipFrames(frames []byte, n int64) []byte {
	for ; n > 0 && len(frames) > 0; n-- {
		i := bytes.IndexByte(frames, '\n')
		if i < 0 {
			return nil
		}
		frames = frames[i+1:]
	}
	return frames
}

// FrameHead reads the sequence and the type of a frame without decoding it, from the fixed prefix that AppendEvent
// writes.
func FrameHead(frame []byte) (sequence int64, eventType string, ok bool) {
	const beforeSequence, beforeType = `,"sequence":`, `,"type":"`
	i := bytes.Index(frame, []byte(beforeSequence))
	if i < 0 {
		return 0, "", false
	}
	rest := frame[i+len(beforeSequence):]
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		sequence = sequence*10 + int64(rest[n]-'0')
		n++
	}
	kind, found := bytes.CutPrefix(rest[n:], []byte(beforeType))
	if n == 0 || !found {
		return 0, "", false
	}
	end := bytes.IndexByte(kind, '"')
	if end < 0 {
		return 0, "", false
	}
	return sequence, string(kind[:end]), true
}

// EndsTurn reports whether the last of the frames is turn.finished.
func EndsTurn(frames []byte) bool { return lastType(frames) == "turn.finished" }

// EndsUpload reports whether the last of the frames is upload.finished.
func EndsUpload(frames []byte) bool { return lastType(frames) == "upload.finished" }

// EndsResearch reports whether the last of the frames is task.finished.
func EndsResearch(frames []byte) bool { return lastType(frames) == "task.finished" }

func lastType(frames []byte) string {
	frames = bytes.TrimRight(frames, "\n")
	if i := bytes.LastIndexByte(frames, '\n'); i >= 0 {
		frames = frames[i+1:]
	}
	_, kind, _ := FrameHead(frames)
	return kind
}
