package model

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"turnstone/providers/model/lenient"
)

// The limits of a response. An event is read completely before it is used, so a hostile server can make this process
// use maxEventBytes of memory.
const (
	maxEventBytes  = 8 << 20
	maxAnswerBytes = 64 << 20
	// maxObjectLines limits the data lines of an event that is looked at before its blank line. JSON is sent in one line.
	maxObjectLines = 64
	// An event without a blank line behind it is looked at again with each line. All such looks at an answer together read
	// at most freeLooks bytes and, for each byte of the answer, looksPerByte.
	freeLooks    = 1 << 20
	looksPerByte = 8
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
	errorField = []byte("error") // of some servers, in place of an event
	byteOrder  = []byte("\ufeff")
	doneMarker = []byte("[DONE]")
)

// Event is one server-sent event that carries data. Its bytes belong to the reader and are valid until the next event.
type Event struct {
	Name   []byte // of its "event:" line; empty if there is none
	Data   []byte // of its "data:" lines, joined by line feeds
	Failed bool   // the event is called "error", or the data are those of a line "error: …"
	Whole  bool   // the data are a whole JSON answer, which the server sent in place of a stream
}

// Done reports whether the event is the end marker of OpenAI's formats.
func (e Event) Done() bool { return bytes.HasPrefix(e.Data, doneMarker) }

// Events reads the response body and passes every event to take, until take reports that it was the last, take fails,
// or the body ends. Its first bytes decide what the body is, because servers label it wrongly: an event stream or JSON,
// compressed or not. An event that is cut by the end of the body is dropped. Before it waits for more of the body,
// Events emits the text that take has gathered. So pieces that arrive together are emitted together, and no piece waits
// for the next.
func (c *Call) Events(take func(Event) (last bool, err error)) error {
	if c.guard == nil {
		return nil // no request was sent
	}
	defer c.events.release()
	body, whole, err := c.events.open(c.guard)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case whole:
		return c.flushed(wholeAnswer(c, body, take))
	}
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
		if err := c.events.fill(body); errors.Is(err, io.EOF) {
			if event, found := c.events.endLine(); found {
				_, err := take(event)
				return c.flushed(err)
			}
			return nil
		} else if err != nil {
			return err
		}
	}
}

// wholeAnswer passes the JSON texts of a body to take. A text that is cut by the end of the body is dropped.
func wholeAnswer(c *Call, body io.Reader, take func(Event) (last bool, err error)) error {
	text := io.MultiReader(bytes.NewReader(bytes.Clone(c.events.unread())), body)
	decoder := json.NewDecoder(io.LimitReader(text, maxEventBytes))
	for {
		var data json.RawMessage
		switch err := decoder.Decode(&data); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case c.failure != nil:
			return c.failure
		case err != nil:
			return c.fail(protocolFailure(err))
		}
		c.events.events++
		if last, err := take(Event{Data: data, Whole: true}); last || err != nil {
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
	failed     bool // the event has a line "error: …"
	afterCR    bool // the last line ended with a carriage return, to which a line feed may belong
	bare       bool // no blank lines separate the events

	total  int  // bytes of the body
	looked int  // bytes that complete has read
	events int  // data lines of all events
	done   bool // a line "data: [DONE]" was read
}

// open reads the start of the body. It returns the body to read on, without compression, and reports whether it is JSON
// and not an event stream.
func (s *eventScanner) open(body io.Reader) (rest io.Reader, whole bool, err error) {
	for compressed := false; ; {
		if err := s.fill(body); err != nil {
			return body, false, err
		}
		text := s.unread()
		switch {
		case len(text) == 0:
			continue
		case !compressed && len(text) < 2 && text[0] == 0x1f, bytes.HasPrefix(byteOrder, text) && len(text) < len(byteOrder):
			continue
		case !compressed && bytes.HasPrefix(text, []byte{0x1f, 0x8b}):
			compressed = true
			body, err = gzip.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(text)), body))
			if err != nil {
				return body, false, protocolFailure(fmt.Errorf("decompressing the response: %w", err))
			}
			s.start, s.end, s.total = 0, 0, 0
			continue
		case bytes.HasPrefix(text, byteOrder):
			s.start += len(byteOrder)
			text = s.unread()
		}
		if text = bytes.TrimLeft(text, " \t\r\n"); len(text) > 0 {
			return body, text[0] == '{' || text[0] == '[', nil
		}
		s.start = s.end // only white space
	}
}

func (s *eventScanner) unread() []byte { return s.buffer[s.start:s.end] }

// next returns the next event that is completely in the buffer.
func (s *eventScanner) next() (event Event, found bool, err error) {
	for {
		unread := s.unread()
		if s.afterCR && s.line < len(unread) {
			if s.afterCR = false; unread[s.line] == '\n' {
				s.line, s.searched = s.line+1, s.line+1
			}
		}
		end, after := lineEnd(unread, s.searched)
		if end < 0 {
			s.searched = len(unread)
			return Event{}, false, s.bound(len(unread) - s.line)
		}
		if err := s.bound(end - s.line); err != nil {
			return Event{}, false, err
		}
		line := unread[s.line:end]
		if s.lines > 0 && startsEvent(line) && s.complete(unread[:s.line]) {
			s.bare = true
			return s.take(unread, s.line), true, nil
		}
		blank := s.takeLine(unread, end)
		s.line, s.searched, s.afterCR = after, after, unread[after-1] == '\r'
		if blank || s.bare && s.complete(unread[:s.line]) {
			if event = s.take(unread, after); len(event.Data) > 0 {
				return event, true, nil
			}
		}
	}
}

// lineEnd returns the end of a line, and the start of the next. A line ends with a line feed, a carriage return or both.
func lineEnd(text []byte, from int) (end, next int) {
	end = bytes.IndexByte(text[from:], '\n')
	if end < 0 {
		end = len(text) - from
	}
	if cr := bytes.IndexByte(text[from:from+end], '\r'); cr >= 0 {
		end = cr
	}
	end += from
	switch {
	case end == len(text):
		return -1, -1
	case text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n':
		return end, end + 2
	}
	return end, end + 1
}

// startsEvent reports whether a line may be the first of an event.
func startsEvent(line []byte) bool {
	field, _ := fieldOf(line)
	return bytes.Equal(field, dataField) || bytes.Equal(field, eventField)
}

// complete reports whether the data of the current event are a JSON object, or the end marker.
func (s *eventScanner) complete(unread []byte) bool {
	data := unread[s.data[0]:s.data[1]]
	if s.looked += s.size; s.looked > freeLooks+looksPerByte*s.total {
		return false
	}
	if s.lines > 1 {
		if s.lines > maxObjectLines || len(data) == 0 || data[len(data)-1] != '}' {
			return false
		}
		data = joinData(unread)
	}
	return len(data) > 0 && data[0] == '{' && json.Valid(data) || bytes.HasPrefix(data, doneMarker)
}

// take returns the current event. The next one starts at next.
func (s *eventScanner) take(unread []byte, next int) Event {
	event := Event{Name: unread[s.name[0]:s.name[1]], Data: unread[s.data[0]:s.data[1]], Failed: s.failed}
	if s.lines > 1 {
		event.Data = joinData(unread[:next])
	}
	event.Failed = event.Failed || bytes.Equal(event.Name, errorField)
	s.start += next
	s.line, s.searched, s.size, s.lines, s.name, s.data, s.failed = 0, 0, 0, 0, [2]int{}, [2]int{}, false
	return event
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
	line := unread[s.line:end]
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
	case bytes.Equal(field, errorField):
		s.lines++
		s.events++
		s.data, s.failed = [2]int{from, from + len(value)}, true
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
	for at := 0; at < len(event); {
		end, next := lineEnd(event, at)
		if end < 0 {
			end, next = len(event), len(event)
		}
		line := event[at:end]
		at = next
		if field, value := fieldOf(line); bytes.Equal(field, dataField) {
			data = append(append(data, value...), '\n')
		}
	}
	return bytes.TrimSuffix(data, []byte("\n"))
}

// endLine processes a last line without a line feed, because some servers send their end marker without one. It returns
// the last event if its data are complete JSON, although no blank line follows.
func (s *eventScanner) endLine() (event Event, found bool) {
	unread := s.unread()
	if len(unread) > s.line {
		s.takeLine(unread, len(unread))
		s.line = len(unread)
	}
	if s.lines == 0 || !s.complete(unread) {
		return Event{}, false
	}
	return s.take(unread, len(unread)), true
}

// fill reads once from body and appends to the buffer.
func (s *eventScanner) fill(body io.Reader) error {
	s.makeRoom()
	free := s.buffer[s.end:]
	if len(free) == 0 {
		return errTooLong
	}
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

// EventError returns the error that an event of any format contains in place of content, or nil. Some gateways set the
// error field of every event to null. Servers write errors in many forms.
func (c *Call) EventError(event Event) error {
	var shape struct {
		Object    lenient.Text    `json:"object"`
		Type      lenient.Text    `json:"type"`
		Error     lenient.Raw     `json:"error"`
		ErrorCode lenient.Raw     `json:"error_code"`
		Code      lenient.Raw     `json:"code"`
		Message   lenient.Raw     `json:"message"`
		Detail    lenient.Raw     `json:"detail"`
		Choices   json.RawMessage `json:"choices"`
		ID        lenient.Text    `json:"id"`
		Usage     lenient.Raw     `json:"usage"`
		Base      baseResponse    `json:"base_resp"`
	}
	if err := lenient.Decode(event.Data, &shape); err != nil && !event.Failed {
		return Protocol(err)
	}
	bare := shape.Choices == nil && shape.Type == "" && shape.Object == "" && shape.ID == "" && shape.Usage == nil
	if event.Failed || shape.Error != nil || shape.Object == "error" || shape.Type == "error" || shape.ErrorCode != nil || shape.Base.failed() ||
		bare && (shape.Detail != nil || shape.Message != nil || shape.Code != nil) {
		return c.client.refusal(0, nil, event.Data, c.request)
	}
	return nil
}
