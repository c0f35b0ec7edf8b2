package http

import (
	"bytes"
	"math/rand/v2"
	stdhttp "net/http"
	"strconv"
	"sync"
	"time"

	"turnstone/protocol"
)

// The bytes of streams. What readers share is framed as one chunk of an HTTP/1.1 body, so that a connection of ours
// takes it as it is; net/http frames by itself and gets what is inside.

const (
	comment   = ": \n\n"
	chunkHead = len("00000000\r\n")
	chunkTail = "\r\n"
	lastChunk = "0\r\n\r\n"
)

// appendEvents writes one frame an event: id, event and one line of data. The data are the log's bytes.
func appendEvents(b, frames []byte) []byte {
	for line := range protocol.FrameLines(frames) {
		sequence, kind, ok := protocol.FrameHead(line)
		if !ok {
			continue
		}
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, sequence, 10)
		b = append(b, "\nevent: "...)
		b = append(b, kind...)
		b = append(b, "\ndata: "...)
		b = append(b, line...)
		b = append(b, "\n\n"...)
	}
	return b
}

func appendRetry(b []byte, millis int) []byte {
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, int64(millis), 10)
	return append(b, "\n\n"...)
}

// handOnMillis spreads the reconnects of the readers of a node that hands its turns on.
func handOnMillis() int {
	return rand.IntN(maxHandOnMillis) //nolint:gosec // only spreads reconnects
}

// appendChunk frames what write appends as one chunk of a body, or nothing when that is nothing.
func appendChunk(b []byte, write func([]byte) []byte) []byte {
	const hex = "0123456789abcdef"
	begin := len(b)
	b = append(b, "00000000\r\n"...)
	b = write(b)
	size := len(b) - begin - chunkHead
	if size == 0 {
		return b[:begin] // an empty chunk would be the last one
	}
	for i, left := chunkHead-len(chunkTail)-1, size; left > 0; i, left = i-1, left/len(hex) {
		b[begin+i] = hex[left%len(hex)]
	}
	return append(b, chunkTail...)
}

func appendEventChunk(b, frames []byte) []byte {
	return appendChunk(b, func(b []byte) []byte { return appendEvents(b, frames) })
}

func appendRetryChunk(b []byte, millis int) []byte {
	return appendChunk(b, func(b []byte) []byte { return appendRetry(b, millis) })
}

func appendCommentChunk(b []byte) []byte {
	return appendChunk(b, func(b []byte) []byte { return append(b, comment...) })
}

// rendering is room in which chunks are rendered before their size is known.
var rendering = sync.Pool{New: func() any { return new([]byte) }}

// renderChunk is what all readers of a committed chunk get.
func renderChunk(frames []byte) []byte {
	room := rendering.Get().(*[]byte)
	defer rendering.Put(room)
	*room = appendEventChunk((*room)[:0], frames)
	return bytes.Clone(*room)
}

// unframed is the inside of a framed chunk.
func unframed(chunk []byte) []byte {
	if len(chunk) == 0 {
		return nil
	}
	return chunk[chunkHead : len(chunk)-len(chunkTail)]
}

// appendHead is the head of an answer with 200 whose body is chunked and ends with its connection.
func appendHead(b []byte, header stdhttp.Header, now time.Time) []byte {
	out := bytes.NewBuffer(b)
	out.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(out) // a buffer takes all
	out.WriteString("Date: ")
	out.Write(now.UTC().AppendFormat(out.AvailableBuffer(), stdhttp.TimeFormat))
	out.WriteString("\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	return out.Bytes()
}
