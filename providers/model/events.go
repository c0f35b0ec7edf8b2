package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The limits of a response. An event is read completely before it is used, so a hostile server can make this process
// use maxEventBytes of memory.
const (
	maxEventBytes  = 8 << 20
	maxAnswerBytes = 64 << 20
)

// The sizes of read buffers. A stream waits most of the time. It waits with a small buffer, and takes a large one from
// a pool only while there is more data to read.
const (
	smallBuffer = 1 << 10
	largeBuffer = 16 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

	dataField  = []byte("data")
	eventField = []byte("event")
	doneMarker = []byte("[DONE]")
)

// Event is one server-sent event that carries data. Its bytes belong to the reader and are valid until the next event.
type Event struct {
	Name []byte // of its "event:" line; empty if there is none
	Data []byte // of its "data:" lines, joined by line feeds
}

// Done reports whether the event is the end marker of OpenAI's formats.
func (e Event) Done() bool { return bytes.HasPrefix(e.Data, doneMarker) }

// Events reads the response body and passes every event to take, until take reports that it was the last, take fails,
// or the body ends. An event that is cut by the end of the body is dropped. Before it waits for more of the body,
// Events emits the text that take has gathered. So pieces that arrive together are emitted together, and no piece waits
// for the next.
func (c *Call) Events(take func(Event) (last bool, err error)) error {
	if c.guard == nil {
		return nil // no request was sent
	}
	defer c.events.release()
	for {
		event, found, err := c.events.next()
		switch {
		case err != nil:
			return c.flushed(c.fail(protocolFailure(err)))
		case found:
			if last, err := take(event); last || err != nil {
				return c.flushed(err)
			}
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.events.fill(c.guard); errors.Is(err, io.EOF) {
			c.events.endLine()
			return nil
		} else if err != nil {
			return err
		}
	}
}

// flushed emits the text that was gathered before err, and returns err, or the error of emitting.
func (c *Call) flushed(err error) error {
	if flushErr := c.flush(); flushErr != nil {
		return flushErr
	}
	return err
}

// eventScanner finds events in a body. The current event starts at start in the buffer. Positions marked as relative
// count from there, because the bytes move within the buffer.
type eventScanner struct {
	buffer     []byte
	pooled     any // the pooled array behind buffer, if it came from a pool
	start, end int // of the bytes that were read and not yet returned
	full       bool

	line       int // relative: the start of the current line
	searched   int // relative: no line ends before this
	size       int // bytes of the event's complete lines, without line ends
	lines      int // data lines of the event
	name, data [2]int

	total  int  // bytes of the body
	events int  // data lines of all events
	done   bool // a line "data: [DONE]" was read
}

// next returns the next event that is completely in the buffer.
func (s *eventScanner) next() (event Event, found bool, err error) {
	for {
		unread := s.buffer[s.start:s.end]
		end := bytes.IndexByte(unread[s.searched:], '\n')
		if end < 0 {
			s.searched = len(unread)
			return Event{}, false, s.bound(len(unread) - s.line)
		}
		end += s.searched
		if err := s.bound(end - s.line); err != nil {
			return Event{}, false, err
		}
		blank := s.takeLine(unread, end)
		s.line, s.searched = end+1, end+1
		if !blank {
			continue
		}
		lines := s.lines
		event = Event{Name: unread[s.name[0]:s.name[1]], Data: unread[s.data[0]:s.data[1]]}
		if lines > 1 {
			event.Data = joinData(unread[:end])
		}
		s.start += end + 1
		s.line, s.searched, s.size, s.lines, s.name, s.data = 0, 0, 0, 0, [2]int{}, [2]int{}
		if len(event.Data) > 0 {
			return event, true, nil
		}
	}
}

func (s *eventScanner) bound(line int) error {
	if s.size+line > maxEventBytes {
		return fmt.Errorf("an event is longer than %d bytes", maxEventBytes)
	}
	return nil
}

// takeLine records the field of the line from s.line to end. It reports whether the line is the blank one that ends an
// event.
func (s *eventScanner) takeLine(unread []byte, end int) (blank bool) {
	s.size += end - s.line
	line := bytes.TrimSuffix(unread[s.line:end], []byte("\r"))
	if len(line) == 0 {
		return true
	}
	field, value := fieldOf(line)
	from := s.line + len(line) - len(value)
	switch {
	case bytes.Equal(field, dataField):
		s.lines++
		s.events++
		s.data = [2]int{from, from + len(value)}
		s.done = s.done || bytes.HasPrefix(value, doneMarker)
	case bytes.Equal(field, eventField):
		s.name = [2]int{from, from + len(value)}
	}
	return false
}

// fieldOf splits "name: value"; the name of a comment is empty.
func fieldOf(line []byte) (field, value []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return line, nil
	}
	field, value = line[:colon], line[colon+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return field, value
}

// joinData returns the data of an event that has several data lines.
func joinData(event []byte) []byte {
	var data []byte
	for line := range bytes.Lines(event) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if field, value := fieldOf(line); bytes.Equal(field, dataField) {
			data = append(append(data, value...), '\n')
		}
	}
	return bytes.TrimSuffix(data, []byte("\n"))
}

// endLine processes a last line without a line feed, because some servers send their end marker without one.
func (s *eventScanner) endLine() {
	if unread := s.buffer[s.start:s.end]; len(unread) > s.line {
		s.takeLine(unread, len(unread))
		s.line = len(unread)
	}
}

// fill reads once from body and appends to the buffer.
func (s *eventScanner) fill(body io.Reader) error {
	s.makeRoom()
	free := s.buffer[s.end:]
	n, err := body.Read(free)
	s.end += n
	s.total += n
	s.full = n == len(free)
	if s.total > maxAnswerBytes {
		return errTooLong
	}
	if n > 0 && errors.Is(err, io.EOF) {
		return nil // the next read returns it again
	}
	return err
}

var errTooLong error = protocolFailure(fmt.Errorf("the response is longer than %d bytes", maxAnswerBytes))

// makeRoom prepares the buffer for the next read: a small buffer if no bytes are left and the last read did not fill
// the buffer, otherwise a buffer with free space after the remaining bytes.
func (s *eventScanner) makeRoom() {
	left := s.end - s.start
	switch {
	case left == 0 && !s.full && len(s.buffer) != smallBuffer:
		s.release()
		small := smallBuffers.Get().(*[smallBuffer]byte)
		s.buffer, s.pooled = small[:], small
	case left == 0 && s.full && len(s.buffer) < largeBuffer, left > 0 && left == len(s.buffer):
		s.grow(left)
	case left > 0 && s.start > 0:
		copy(s.buffer, s.buffer[s.start:s.end])
	}
	s.start, s.end = 0, left
}

func (s *eventScanner) grow(left int) {
	var larger []byte
	var pooled any
	if left < largeBuffer {
		large := largeBuffers.Get().(*[largeBuffer]byte)
		larger, pooled = large[:], large
	} else {
		larger = make([]byte, min(2*left, 2*maxEventBytes))
	}
	copy(larger, s.buffer[s.start:s.end])
	s.release()
	s.buffer, s.pooled = larger, pooled
}

// release returns the buffer to its pool. Its bytes must not be used afterwards.
func (s *eventScanner) release() {
	switch pooled := s.pooled.(type) {
	case *[smallBuffer]byte:
		smallBuffers.Put(pooled)
	case *[largeBuffer]byte:
		largeBuffers.Put(pooled)
	}
	s.buffer, s.pooled, s.start, s.end = nil, nil, 0, 0
}

// noEvents reports whether the body had content but no data line, and so was not an event stream.
func (s *eventScanner) noEvents() bool { return s.total > 0 && s.events == 0 }
