package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// lines are the connections of all readers, so that all can be cut at once.
type lines struct {
	mu  sync.Mutex
	all map[net.Conn]struct{} // guarded by mu
}

func (l *lines) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[conn] = struct{}{}
	return conn, nil
}

func (l *lines) drop(conn net.Conn) {
	l.mu.Lock()
	delete(l.all, conn)
	l.mu.Unlock()
	_ = conn.Close() // may be cut already
}

// cut breaks every connection off, as a network that fails does.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.all {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// sight is what a reader has seen of a turn: enough to go on, and to compare with what another sees. It never holds the
// events themselves.
type sight struct {
	sequence int64
	hash     uint64 // of every event so far, in order
	over     bool   // turn.finished came
	status   string // as it told
	gaps     int
	doubles  int // events behind turn.finished
	tally    tally
	broken   int // tokens that were missing, of parts that are over

	conversation string
	steered      map[string]int // what became of inputs: how often each was applied or returned
}

func newSight() *sight { return &sight{tally: newTally()} }

var (
	hashSeed = maphash.MakeSeed()

	startedKind      = []byte("turn.started")
	answerKind       = []byte("answer.started")
	appliedKind      = []byte("steering.applied")
	returnedKind     = []byte("steering.returned")
	conversationName = []byte(`"conversation_id":"`)
	steeringName     = []byte(`"steering_id":"`)
	statusName       = []byte(`"status":"`)
)

const hashPrime = 0x9E3779B97F4A7C15

// take takes an event in, which came whole.
func (v *sight) take(id int64, kind, data []byte, due func(at int64)) {
	switch {
	case v.over:
		v.doubles++
	case id != v.sequence+1:
		v.gaps++
	}
	v.sequence = id
	v.hash = (v.hash^maphash.Bytes(hashSeed, kind))*hashPrime + uint64(id)
	v.hash = (v.hash ^ maphash.Bytes(hashSeed, data)) * hashPrime
	switch {
	case bytes.Equal(kind, deltaKind):
		v.tally.read(field(data, deltaKey), due)
	case bytes.Equal(kind, answerKind): // a part, or one that was cut, from its beginning
		v.broken += v.tally.broken
		v.tally = newTally()
	case bytes.Equal(kind, startedKind):
		v.conversation = string(field(data, conversationName))
	case bytes.Equal(kind, appliedKind), bytes.Equal(kind, returnedKind):
		if v.steered == nil {
			v.steered = map[string]int{}
		}
		v.steered[string(field(data, steeringName))]++
	case bytes.Equal(kind, finalKind):
		v.over, v.status = true, string(field(data, statusName))
	}
}

// field is the text behind a name that stands in the data, without its escapes, which ours have none of.
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

// readPatience is how long a stream may be silent: heartbeats come every ten seconds.
const (
	readPatience = 30 * time.Second
	armEvery     = 5 * time.Second
)

// patient is a connection whose silence has a limit.
type patient struct {
	net.Conn
	armed time.Time
}

func (p *patient) Read(into []byte) (int, error) {
	if now := time.Now(); now.Sub(p.armed) > armEvery {
		p.armed = now
		if err := p.SetReadDeadline(now.Add(readPatience)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Read(into)
}

// answerOf is the head of an answer, and its lines if it is a stream.
type answerOf struct {
	status   int
	replayed bool
	turn     string
	body     string // of what is no stream
	lines    *bufio.Reader
}

// open sends a request on a connection of its own. The caller drops conn, which is nil on an error.
func (l *lines) open(ctx context.Context, address string, request []byte) (net.Conn, *answerOf, error) {
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

func exchange(conn net.Conn, request []byte) (*answerOf, error) {
	if err := conn.SetWriteDeadline(time.Now().Add(readPatience)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(&patient{Conn: conn}, lineBuffer), nil) //nolint:bodyclose // the caller drops the connection
	if err != nil {
		return nil, err
	}
	a := &answerOf{
		status: response.StatusCode, turn: response.Header.Get("X-Turn-Id"), replayed: response.Header.Get("Idempotent-Replayed") == "true",
	}
	if a.status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, lineBuffer)) // what came of it is shown
		a.body = string(text)
		return a, nil
	}
	a.lines = bufio.NewReaderSize(response.Body, lineBuffer)
	return a, nil
}

// errLeft is a reader that goes by itself.
var errLeft = errors.New("left")

// read takes events in until the stream ends: io.EOF when the body came to its proper end. leave is asked after each
// event.
func (v *sight) read(from *bufio.Reader, due func(at int64), leave func() bool) error {
	var id int64
	var kind, long []byte
	for {
		line, err := from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		switch {
		case bytes.HasPrefix(line, idPrefix):
			id, _ = leadingInt(line[len(idPrefix):])
		case bytes.HasPrefix(line, eventPrefix):
			kind = append(kind[:0], bytes.TrimRight(line[len(eventPrefix):], "\n")...)
		case bytes.HasPrefix(line, dataPrefix):
			v.take(id, kind, line[len(dataPrefix):], due)
			if leave() {
				return errLeft
			}
		}
		long = long[:0]
	}
}

func (v *sight) String() string {
	return fmt.Sprintf("sequence %d, hash %x, over %v %s", v.sequence, v.hash, v.over, v.status)
}
