package protocol

import (
	"bytes"
	"iter"
)

// FrameLines walks the events of a stored run of frames: each is one line, ended by a newline.
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

// SkipFrames drops the first n events of a run.
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
