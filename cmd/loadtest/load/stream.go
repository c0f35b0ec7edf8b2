package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"turnstone/protocol/client"
	"turnstone/protocol/verify"
)

// Stream is one connection that reads one response of server-sent events, with one goroutine. Events are scanned, not
// decoded.
type Stream struct {
	N       int // its index in its fleet
	Rec     *Recorder
	Request []byte
	After   int64 // the first expected sequence number is after+1
	Resumes bool  // it continues the tally of an earlier stream

	Conn        net.Conn
	requestedAt int64
	Turn        string // X-Turn-Id
	Tally       Tally
	verify.Position
	events  int
	Gaps    int    // events that did not follow the one before them
	kind    []byte // of the current event
	failure string // the data of the last event if that reports a failure
	onFirst func()
}

const (
	dialTimeout = 10 * time.Second
	// LineBuffer is the size of the buffer for the lines of a stream.
	LineBuffer = 4 << 10
)

// Dial opens a connection for a stream.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

// SendRequest sends the request and reads the response header. The connection is open already, because connecting is
// not part of what is measured.
func (s *Stream) SendRequest() (*client.FrameReader, error) {
	s.requestedAt = Monotonic()
	if _, err := s.Conn.Write(s.Request); err != nil {
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(s.Conn, LineBuffer), nil) //nolint:bodyclose // closing Conn ends the body
	if err != nil {
		return nil, fmt.Errorf("reading the response header: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, LineBuffer)) // an error leaves the part that was read
		if response.StatusCode == http.StatusServiceUnavailable {
			return nil, fmt.Errorf("%w: %.200s", ErrRefused, text)
		}
		return nil, fmt.Errorf("status %d: %.200s", response.StatusCode, text)
	}
	if s.Rec.Open.Load() {
		shard := s.Rec.shard(s.N)
		shard.mu.Lock()
		Record(shard.begin, Monotonic()-s.requestedAt)
		shard.mu.Unlock()
	}
	s.Turn, s.Position = response.Header.Get("X-Turn-Id"), verify.Position{Last: s.After}
	if !s.Resumes {
		s.Tally = NewTally()
	}
	return client.NewFrameReader(response.Body), nil
}

// Follow sends the request and reads to the end of the stream. Closing the connection ends it early.
func (s *Stream) Follow() error {
	frames, err := s.SendRequest()
	if err != nil {
		return err
	}
	return s.Read(frames)
}

func (s *Stream) Read(frames *client.FrameReader) error {
	for {
		frame, err := frames.Next()
		if err != nil {
			return s.end(err)
		}
		s.event(frame)
	}
}

// ErrCut reports a stream that ended before its last event.
var ErrCut = errors.New("the stream was cut")

func (s *Stream) end(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	switch {
	case !s.Ended:
		return ErrCut
	case s.failure != "":
		return fmt.Errorf("the turn failed: %.400s", s.failure)
	case s.Tally.Count >= 0 && s.Tally.Count != s.Tally.Tokens:
		return fmt.Errorf("%d of %d tokens arrived", s.Tally.Tokens, s.Tally.Count)
	case s.Gaps > 0 || s.Tally.Broken > 0:
		return errors.New("the stream has gaps")
	}
	return nil
}

// What the readers of streams look for.
var (
	DeltaKind  = []byte("answer.delta")
	FinalKind  = []byte("turn.finished")
	DeltaKey   = []byte(`"delta":"`)
	contentKey = []byte(`"content":"`)
	doneData   = []byte("[DONE]")
	firstMark  = []byte(" @")
	completed  = []byte(`"status":"completed"`)
)

// event processes an event. The model's own format has no identifiers.
func (s *Stream) event(frame client.Frame) {
	switch {
	case bytes.Equal(frame.Event, DeltaKind):
		s.kind = DeltaKind
	case bytes.Equal(frame.Event, FinalKind):
		s.kind = FinalKind
	default:
		s.kind = nil
	}
	if len(frame.ID) > 0 {
		n, _ := LeadingInt(frame.ID)
		if s.Next(n, bytes.Equal(s.kind, FinalKind)) != "" {
			s.Gaps++
		}
	}
	s.data(frame.Data)
}

func (s *Stream) data(data []byte) {
	key := DeltaKey
	switch {
	case s.Last == 0: // the model's own format has no event ids
		key = contentKey
		s.Ended = s.Ended || bytes.HasPrefix(data, doneData)
	case !bytes.Equal(s.kind, DeltaKind):
		if bytes.Equal(s.kind, FinalKind) && !bytes.Contains(data, completed) {
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

// count counts an event, and the tokens of its text if it has one.
func (s *Stream) count(size int, text []byte) {
	s.events++
	now := Monotonic()
	open := s.Rec.Open.Load()
	shard := s.Rec.shard(s.N)
	before := s.Tally.Tokens
	if open {
		shard.mu.Lock()
		defer shard.mu.Unlock()
		shard.events++
		shard.bytes += int64(size)
	}
	if len(text) == 0 {
		return
	}
	if before == 0 && !s.Resumes {
		if s.onFirst != nil {
			s.onFirst()
		}
		if open {
			Record(shard.first, now-s.requestedAt)
		}
	}
	if !s.Tally.stamped && !bytes.HasPrefix(text, firstMark) {
		s.plain(text, open, shard)
		return
	}
	s.Tally.Read(text, func(due int64) {
		if open {
			Record(shard.delay, now-due)
			shard.tokens++
		}
	})
}

// plain counts the words of a text whose tokens have no due times.
func (s *Stream) plain(text []byte, open bool, shard *shard) {
	n := max(1, bytes.Count(text, []byte{' '}))
	s.Tally.Tokens += n
	if open {
		shard.tokens += int64(n)
	}
}

// Resume connects, requests the events after the stream's cursor and reads the first of them.
func (s *Stream) Resume(ctx context.Context, address string) (err error) {
	if s.Conn, err = Dial(ctx, address); err != nil {
		return err
	}
	if err := s.Conn.SetReadDeadline(time.Now().Add(CallTimeout)); err != nil {
		return err
	}
	frames, err := s.SendRequest()
	if err != nil {
		return err
	}
	first, err := frames.Next()
	if err != nil {
		return fmt.Errorf("resuming: %w", err)
	}
	s.event(first)
	return nil
}
