package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// stream is one connection with one answer of server-sent events: a goroutine, no client library. What it reads is
// scanned, not decoded.
type stream struct {
	n       int // which one of its fleet
	rec     *recorder
	request []byte
	after   int64 // the sequence before the first one that is expected
	resumes bool  // it goes on with the tally of another

	conn     net.Conn
	asked    int64
	turn     string // X-Turn-Id
	tally    tally
	sequence int64
	events   int
	gaps     int
	kind     []byte // of the event that is being read
	finished bool   // its end came
	failure  string // the event of its end, if that tells of a failure
	onFirst  func()
}

const (
	dialTimeout = 10 * time.Second
	lineBuffer  = 4 << 10
)

func dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

// errStatus is an answer that is no stream.
type errStatus struct {
	status int
	body   string
}

func (e errStatus) Error() string { return fmt.Sprintf("status %d: %.200s", e.status, e.body) }

// ask sends the request and reads the head of the answer. The connection is there already: connecting is no part of
// what is measured.
func (s *stream) ask() (*bufio.Reader, error) {
	s.asked = monotonic()
	if _, err := s.conn.Write(s.request); err != nil {
		return nil, fmt.Errorf("asking: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(s.conn, lineBuffer), nil)
	if err != nil {
		return nil, fmt.Errorf("reading the head: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, lineBuffer)) // what came of it is shown
		return nil, errStatus{response.StatusCode, string(text)}
	}
	if s.rec.open.Load() {
		shard := s.rec.shard(s.n)
		shard.mu.Lock()
		record(shard.begin, monotonic()-s.asked)
		shard.mu.Unlock()
	}
	s.turn, s.sequence = response.Header.Get("X-Turn-Id"), s.after
	if !s.resumes {
		s.tally = newTally()
	}
	return bufio.NewReaderSize(response.Body, lineBuffer), nil
}

// follow asks and reads to the end of the stream. Closing the connection ends it early.
func (s *stream) follow() error {
	lines, err := s.ask()
	if err != nil {
		return err
	}
	return s.read(lines)
}

func (s *stream) read(lines *bufio.Reader) error {
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			return s.end(err)
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		s.line(line)
		long = long[:0]
	}
}

// errCut is a stream that ended before its end.
var errCut = errors.New("the stream was cut")

func (s *stream) end(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	switch {
	case !s.finished:
		return errCut
	case s.failure != "":
		return fmt.Errorf("the turn failed: %.400s", s.failure)
	case s.tally.count >= 0 && s.tally.count != s.tally.tokens:
		return fmt.Errorf("%d tokens of %d came", s.tally.tokens, s.tally.count)
	case s.gaps > 0 || s.tally.broken > 0:
		return errors.New("the stream has gaps")
	}
	return nil
}

var (
	idPrefix    = []byte("id: ")
	eventPrefix = []byte("event: ")
	dataPrefix  = []byte("data: ")
	deltaKind   = []byte("answer.delta")
	finalKind   = []byte("turn.finished")
	deltaKey    = []byte(`"delta":"`)
	contentKey  = []byte(`"content":"`)
	doneData    = []byte("[DONE]")
	firstMark   = []byte(" @")
	completed   = []byte(`"status":"completed"`)
)

func (s *stream) line(line []byte) {
	switch {
	case bytes.HasPrefix(line, dataPrefix):
		s.data(line[len(dataPrefix):])
	case bytes.HasPrefix(line, idPrefix):
		n, _ := leadingInt(line[len(idPrefix):])
		if n != s.sequence+1 {
			s.gaps++
		}
		s.sequence = n
	case bytes.HasPrefix(line, eventPrefix):
		kind := bytes.TrimRight(line[len(eventPrefix):], "\n")
		switch {
		case bytes.Equal(kind, deltaKind):
			s.kind = deltaKind
		case bytes.Equal(kind, finalKind):
			s.kind, s.finished = finalKind, true
		default:
			s.kind = nil
		}
	}
}

func (s *stream) data(data []byte) {
	key := deltaKey
	switch {
	case s.sequence == 0: // the model's own format has no events
		key = contentKey
		s.finished = s.finished || bytes.HasPrefix(data, doneData)
	case !bytes.Equal(s.kind, deltaKind):
		if bytes.Equal(s.kind, finalKind) && !bytes.Contains(data, completed) {
			s.failure = string(data)
		}
		s.count(len(data), nil)
		return
	}
	at := bytes.Index(data, key)
	if at < 0 {
		s.count(len(data), nil)
		return
	}
	text := data[at+len(key):]
	if end := bytes.IndexByte(text, '"'); end >= 0 {
		text = text[:end]
	}
	s.count(len(data), text)
}

// count takes an event in, with its text if it has one.
func (s *stream) count(size int, text []byte) {
	s.events++
	now := monotonic()
	open := s.rec.open.Load()
	shard := s.rec.shard(s.n)
	before := s.tally.tokens
	if open {
		shard.mu.Lock()
		defer shard.mu.Unlock()
		shard.events++
		shard.bytes += int64(size)
	}
	if len(text) == 0 {
		return
	}
	if before == 0 && !s.resumes {
		if s.onFirst != nil {
			s.onFirst()
		}
		if open {
			record(shard.first, now-s.asked)
		}
	}
	if !s.tally.stamped && !bytes.HasPrefix(text, firstMark) {
		s.plain(text, open, shard)
		return
	}
	s.tally.read(text, func(due int64) {
		if open {
			record(shard.delay, now-due)
			shard.tokens++
		}
	})
}

// plain counts words of a text that does not tell its times.
func (s *stream) plain(text []byte, open bool, shard *shard) {
	n := max(1, bytes.Count(text, []byte{' '}))
	s.tally.tokens += n
	if open {
		shard.tokens += int64(n)
	}
}

// chatRequest is POST /chat by an account, ready to be written.
func (a *account) chatRequest(text, conversation string) []byte {
	body := `{"input":[{"type":"text","text":` + strconv.Quote(text) + `}]`
	if conversation != "" {
		body += `,"conversation_id":"` + conversation + `"`
	}
	return a.chat(body + "}")
}

// chat is POST /chat under a key of its own.
func (a *account) chat(body string) []byte {
	a.mu.Lock()
	a.sent++
	key := a.sent
	a.mu.Unlock()
	return fmt.Appendf(nil, "POST /chat HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-CSRF-Token: %s\r\nIdempotency-Key: load-%d\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", a.host, a.cookie, a.csrf, key, len(body), body)
}

// eventsRequest follows a turn after a sequence.
func (a *account) eventsRequest(turn string, after int64) []byte {
	return fmt.Appendf(nil, "GET /chat/turns/%s/events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nLast-Event-ID: %d\r\n\r\n", turn, a.host, a.cookie, after)
}

// completionRequest asks the model itself, or a relay before it.
func completionRequest(host, text string) []byte {
	body := `{"model":"load","stream":true,"max_tokens":8192,"messages":[{"role":"user","content":` + strconv.Quote(text) + `}]}`
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		host, len(body), body)
}
