package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxFrame limits the size of one frame, in bytes: more than any event that the service sends.
const maxFrame = 64 << 20

// FrameReader parses a stream of server-sent events (WHATWG HTML, section 9.2). It copies no data unless a frame has
// several data lines or a line exceeds the buffer.
//
// Comments, among them the heartbeats of the service, are skipped. Lines end with LF or CRLF.
type FrameReader struct {
	from  *bufio.Reader
	frame Frame
	lines []byte        // the lines of the current frame
	retry time.Duration // the last retry field
	begun bool          // a part of a frame was read
}

// Frame is one frame. Its slices are valid until the next call of Next.
type Frame struct {
	ID, Event, Data []byte
}

// NewFrameReader returns a reader of the frames in from.
func NewFrameReader(from io.Reader) *FrameReader {
	return &FrameReader{from: bufio.NewReaderSize(from, 4<<10)}
}

// Retry returns the reconnection time that the stream requested last; 0: none.
func (r *FrameReader) Retry() time.Duration { return r.retry }

// Next returns the next frame that has data. It returns io.EOF when the stream ends between two frames, and
// io.ErrUnexpectedEOF when it ends within one.
func (r *FrameReader) Next() (Frame, error) {
	r.frame, r.lines, r.begun = Frame{}, r.lines[:0], false
	// The fields are kept as offsets until the frame is complete, because lines may move while it grows.
	var id, event, data span
	for {
		line, err := r.line()
		if err != nil {
			if errors.Is(err, io.EOF) && (r.begun || line.size > 0) {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
		text := line.in(r.lines)
		if len(text) == 0 {
			if data.set {
				return Frame{id.in(r.lines), event.in(r.lines), data.in(r.lines)}, nil
			}
			id, event, r.lines, r.begun = span{}, span{}, r.lines[:0], false
			continue
		}
		name, _, _ := bytes.Cut(text, []byte{':'})
		value := line.after(len(name), text)
		switch string(name) {
		case "": // a comment
			r.lines = r.lines[:line.at]
			continue
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			data = r.joinData(data, value)
		case "retry":
			if ms, err := strconv.Atoi(string(value.in(r.lines))); err == nil && ms >= 0 {
				r.retry = time.Duration(ms) * time.Millisecond
			}
			continue
		}
		r.begun = true
	}
}

// span is a part of FrameReader.lines.
type span struct {
	at, size int
	set      bool
}

func (s span) in(lines []byte) []byte { return lines[s.at : s.at+s.size] }

// after returns the value of a field: what follows the name, the colon and one space.
func (s span) after(name int, text []byte) span {
	skip := min(name+1, len(text))
	if skip < len(text) && text[skip] == ' ' {
		skip++
	}
	return span{s.at + skip, s.size - skip, true}
}

// joinData joins the data lines of a frame with a line feed.
func (r *FrameReader) joinData(data, more span) span {
	if !data.set {
		return more
	}
	at := len(r.lines)
	r.lines = append(r.lines, data.in(r.lines)...)
	r.lines = append(r.lines, '\n')
	r.lines = append(r.lines, more.in(r.lines)...)
	return span{at, len(r.lines) - at, true}
}

// line appends the next line to lines, without its end.
func (r *FrameReader) line() (span, error) {
	at := len(r.lines)
	for {
		piece, err := r.from.ReadSlice('\n')
		r.lines = append(r.lines, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(r.lines) > maxFrame {
				return span{}, fmt.Errorf("a frame exceeds %d bytes", maxFrame)
			}
			continue
		case err != nil:
			return span{at, len(r.lines) - at, true}, err
		}
		text := bytes.TrimSuffix(r.lines[at:len(r.lines)-1], []byte{'\r'})
		r.lines = r.lines[:at+len(text)]
		return span{at, len(text), true}, nil
	}
}
