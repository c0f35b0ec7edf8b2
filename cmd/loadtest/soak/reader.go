package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/client"
	"turnstone/protocol/verify"
)

// connections holds the connections of all readers, so that all can be cut at once.
type connections struct {
	mu  sync.Mutex
	all map[net.Conn]struct{} // guarded by mu
}

func (l *connections) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := load.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[conn] = struct{}{}
	return conn, nil
}

func (l *connections) drop(conn net.Conn) {
	l.mu.Lock()
	delete(l.all, conn)
	l.mu.Unlock()
	_ = conn.Close() // may be cut already
}

// cut resets every connection, as a failing network does.
func (l *connections) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.all {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// readerState is the state of a reader of a turn: enough to resume, and to compare with another reader of the turn. It
// does not store the events themselves.
type readerState struct {
	verify.Reader
	tally  load.Tally
	broken int // missing tokens of earlier parts
}

func newReaderState() *readerState { return &readerState{tally: load.NewTally()} }

var (
	answerKind       = []byte("answer.started")
	conversationName = []byte(`"conversation_id":"`)
)

// take processes a complete event.
func (v *readerState) take(id int64, kind, data []byte, due func(at int64)) {
	v.Take(id, kind, data)
	switch {
	case bytes.Equal(kind, load.DeltaKind):
		v.tally.Read(field(data, load.DeltaKey), due)
	case bytes.Equal(kind, answerKind): // a new part, or a part that was cut and starts again
		v.broken += v.tally.Broken
		v.tally = load.NewTally()
	}
}

// missing returns the number of tokens that did not follow the one before them.
func (v *readerState) missing() int { return v.broken + v.tally.Broken }

// field returns the text that follows a name in the data, or nil. It does not decode escapes: the texts that we read
// have none.
func field(data, name []byte) []byte {
	at := bytes.Index(data, name)
	if at < 0 {
		return nil
	}
	text := data[at+len(name):]
	if end := bytes.IndexByte(text, '"'); end >= 0 {
		return text[:end]
	}
	return nil
}

// readTimeout is how long a stream may send nothing; heartbeats come every ten seconds. renewInterval limits how often
// the deadline is renewed.
const (
	readTimeout   = 30 * time.Second
	renewInterval = 5 * time.Second
)

// deadlineConn is a connection with a read deadline that reading renews.
type deadlineConn struct {
	net.Conn
	armed time.Time
}

func (p *deadlineConn) Read(into []byte) (int, error) {
	if now := time.Now(); now.Sub(p.armed) > renewInterval {
		p.armed = now
		if err := p.SetReadDeadline(now.Add(readTimeout)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Read(into)
}

// streamResponse is the header of a response, with its frames if it is a stream.
type streamResponse struct {
	status   int
	replayed bool
	turn     string
	body     string // if it is not a stream
	frames   *client.FrameReader
}

// open sends a request on a new connection. The caller drops conn, which is nil on an error.
func (l *connections) open(ctx context.Context, address string, request []byte) (net.Conn, *streamResponse, error) {
	conn, err := l.dial(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	a, err := exchange(conn, request)
	if err != nil {
		l.drop(conn)
		return nil, nil, err
	}
	return conn, a, nil
}

func exchange(conn net.Conn, request []byte) (*streamResponse, error) {
	if err := conn.SetWriteDeadline(time.Now().Add(readTimeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(&deadlineConn{Conn: conn}, load.LineBuffer), nil) //nolint:bodyclose // the caller drops the connection
	if err != nil {
		return nil, err
	}
	a := &streamResponse{
		status: response.StatusCode, turn: response.Header.Get("X-Turn-Id"), replayed: response.Header.Get("Idempotent-Replayed") == "true",
	}
	if a.status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, load.LineBuffer)) // an error leaves the part that was read
		a.body = string(text)
		return a, nil
	}
	a.frames = client.NewFrameReader(response.Body)
	return a, nil
}

// errLeft reports that the reader left by its own decision.
var errLeft = errors.New("left")

// read processes events until the stream ends. It returns io.EOF if the body is complete, and errLeft if leave, which
// it calls after each event, returns true.
func (v *readerState) read(from *client.FrameReader, due func(at int64), leave func() bool) error {
	for {
		frame, err := from.Next()
		if err != nil {
			return err
		}
		id, _ := load.LeadingInt(frame.ID)
		v.take(id, frame.Event, frame.Data, due)
		if leave() {
			return errLeft
		}
	}
}

func (v *readerState) String() string {
	return fmt.Sprintf("sequence %d, hash %x, over %v", v.Last, v.Digest, v.Ended)
}
