package sse

import (
	"bytes"
	stdhttp "net/http"
	"strconv"
	"sync"
	"time"

	"turnstone/protocol"
)

// This file renders the bytes of streams. Bytes that several readers share are rendered as one chunk of an HTTP/1.1
// chunked body, so that a liveStream can write them as they are. net/http does its own framing, and gets the content of
// the chunk only.

const (
	chunkHead = len("00000000\r\n")
	chunkTail = "\r\n"
	lastChunk = "0\r\n\r\n"
)

// appendEvents appends a server-sent event for each frame: id, event and one line of data. The data are the bytes in
// the log.
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

// appendChunk appends what write appends, framed as one chunk of a body; nothing if write appends nothing.
func appendChunk(b []byte, write func([]byte) []byte) []byte {
	const hex = "0123456789abcdef"
	begin := len(b)
	b = append(b, "00000000\r\n"...)
	b = write(b)
	size := len(b) - begin - chunkHead
	if size == 0 {
		return b[:begin] // an empty chunk would end the body
	}
	for i, left := chunkHead-len(chunkTail)-1, size; left > 0; i, left = i-1, left/len(hex) {
		b[begin+i] = hex[left%len(hex)]
	}
	return append(b, chunkTail...)
}

func appendEventChunk(b, frames []byte) []byte {
	return appendChunk(b, func(b []byte) []byte { return appendEvents(b, frames) })
}

// renderBuffers has buffers for rendering chunks, whose size is not known in advance.
var renderBuffers = sync.Pool{New: func() any { return new([]byte) }}

// renderChunk returns the bytes that all readers of a committed chunk get.
func renderChunk(frames []byte) []byte {
	buffer := renderBuffers.Get().(*[]byte)
	defer renderBuffers.Put(buffer)
	*buffer = appendEventChunk((*buffer)[:0], frames)
	return bytes.Clone(*buffer)
}

// unframed returns the content of a framed chunk.
func unframed(chunk []byte) []byte {
	if len(chunk) == 0 {
		return nil
	}
	return chunk[chunkHead : len(chunk)-len(chunkTail)]
}

// appendHead appends the head of a response with status 200 and a chunked body, after which the connection is closed.
func appendHead(b []byte, header stdhttp.Header, now time.Time) []byte {
	out := bytes.NewBuffer(b)
	out.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(out) // writing to a buffer never fails
	out.WriteString("Date: ")
	out.Write(now.UTC().AppendFormat(out.AvailableBuffer(), stdhttp.TimeFormat))
	out.WriteString("\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	return out.Bytes()
}
