package server

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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/researchlog"
)

// Upstream is the model stand-in. It must use very little CPU compared with what is measured: a single goroutine
// writes the tokens of all streams when they are due, in chunks that it copies together, directly into the sockets.
type Upstream struct {
	Listen string `help:"Address to listen on." default:"127.0.0.1:0"`
}

// Run serves until ctx ends.
func (c Upstream) Run(ctx context.Context, p *console.Console) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	console.Announce(p, listener)
	u := &upstream{wheel: newWheel(), ctx: ctx}
	go u.wheel.run(ctx)
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		go u.serve(conn)
	}
}

type upstream struct {
	wheel *wheel
	ctx   context.Context // of the command
}

// serve handles the requests of one connection.
func (u *upstream) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReaderSize(conn, 4<<10)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if err := u.respond(conn, request, body); err != nil {
			return
		}
	}
}

func (u *upstream) respond(conn net.Conn, request *http.Request, body []byte) error {
	switch {
	case strings.HasSuffix(request.URL.Path, "/chat/completions"):
		if bytes.Contains(body, []byte(researchlog.StepMarker)) {
			if step, ok := stepOf(body); ok {
				return u.respondStep(conn, step)
			}
		}
		return u.stream(conn, body)
	case request.URL.Path == "/end":
		u.wheel.ending.Store(load.Monotonic())
		return plain(conn, "ended")
	case request.URL.Path == "/reset":
		u.wheel.resetting.Store(load.Monotonic())
		return plain(conn, "reset")
	default: // the list of models, which the service requests to check that the model is available
		return plain(conn, `{"object":"list","data":[]}`)
	}
}

func plain(conn net.Conn, text string) error {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	return err
}

// titleLimit is the token limit in the service's requests for a title, which identifies them.
const titleLimit = `"max_tokens":64`

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

// stream passes the connection to the wheel until the response is complete.
func (u *upstream) stream(conn net.Conn, body []byte) error {
	script, ok := load.LastScript(body)
	if !ok || bytes.Contains(body, []byte(titleLimit)) {
		script = load.Script{Tokens: 4, Words: true}
	}
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("the connection is not a socket")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	now := load.Monotonic()
	s := &paced{raw: raw, script: script, begun: now, start: now + int64(script.First), done: make(chan error, 1)}
	s.pending = append(s.pending, streamHead...)
	u.wheel.add(s)
	err = <-s.done
	if tcp, ok := conn.(*net.TCPConn); ok && errors.Is(err, errReset) {
		_ = tcp.SetLinger(0) // closing it sends RST, not FIN
	}
	return err
}

// errReset ends a stream whose connection is reset on demand.
var errReset = errors.New("reset on demand")

// paced is a stream that the wheel writes. Once added, it is owned by the wheel.
type paced struct {
	raw     syscall.RawConn
	script  load.Script
	begun   int64
	start   int64 // when the first token is due
	sent    int
	pending []byte // bytes that the socket has not accepted yet
	done    chan error
}

const (
	chunkHead = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[{"index":0,"delta":{"content":"`
	chunkTail = `"},"finish_reason":null}]}` + "\n\n"
	callChunk = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call-1","type":"function",` +
		`"function":{"name":"start_research","arguments":"{\"question\":\"What are tides?\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	lastChunk = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageHead = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":`
)

// due returns when the next token is due.
func (s *paced) due() int64 { return s.start + int64(s.sent)*int64(s.script.Interval) }

// write appends the tokens that are due and writes what the socket accepts. It never waits: a reader that does not read
// gets the rest later. ended ends the stream now. over reports that the end was appended.
func (s *paced) write(now int64, ended bool) (over bool, err error) {
	if len(s.pending) < maxPending {
		for s.sent < s.script.Tokens && s.due() <= now && !ended {
			s.add()
		}
		if over = ended || s.sent == s.script.Tokens; over {
			s.finish()
		}
	}
	return over, s.flush()
}

// maxPending is the number of pending bytes from which on no more tokens are appended to a stream.
const maxPending = 256 << 10

func (s *paced) add() {
	var buffer [48]byte
	text := buffer[:0]
	switch {
	case s.script.Words:
		text = load.AppendWord(text, uint64(s.begun), s.sent)
	case s.sent == 0:
		text = load.AppendFirstToken(text, s.start, int64(s.script.Interval))
	default:
		text = load.AppendToken(text, s.sent)
	}
	s.sent++
	s.content(text)
}

func (s *paced) content(text []byte) {
	s.chunk(chunkHead, text, chunkTail)
}

// chunk appends a chunk of the chunked transfer coding.
func (s *paced) chunk(head string, text []byte, tail string) {
	s.pending = strconv.AppendInt(s.pending, int64(len(head)+len(text)+len(tail)), 16)
	s.pending = append(s.pending, "\r\n"...)
	s.pending = append(s.pending, head...)
	s.pending = append(s.pending, text...)
	s.pending = append(s.pending, tail...)
	s.pending = append(s.pending, "\r\n"...)
}

func (s *paced) finish() {
	if !s.script.Words {
		s.content(load.AppendCount(nil, s.sent))
	}
	if s.script.Approval {
		s.chunk(callChunk, nil, "")
	} else {
		s.chunk(lastChunk, nil, "")
	}
	s.chunk(usageHead, strconv.AppendInt(nil, int64(s.sent), 10), "}}\n\n")
	s.chunk("data: [DONE]\n\n", nil, "")
	s.pending = append(s.pending, "0\r\n\r\n"...)
}

func (s *paced) flush() error {
	if len(s.pending) == 0 {
		return nil
	}
	var failure error
	err := s.raw.Write(func(fd uintptr) bool {
		n, err := syscall.Write(int(fd), s.pending)
		switch {
		case err == nil:
			s.pending = s.pending[:copy(s.pending, s.pending[n:])]
		case !errors.Is(err, syscall.EAGAIN):
			failure = err
		}
		return true // the rest is written at the next visit
	})
	return errors.Join(err, failure)
}

const (
	wheelTick  = time.Millisecond
	wheelSlots = 4096
)

// wheel is a timing wheel with a slot per millisecond. It visits each stream when its next token is due, and at least
// once per maxVisitInterval.
type wheel struct {
	slots    [wheelSlots][]*paced // owned by the goroutine of run
	position int                  // owned by the goroutine of run
	ending   atomic.Int64         // streams that started before this time end at their next visit

	resetting atomic.Int64 // streams that started before this time are reset at their next visit

	mu    sync.Mutex
	added []*paced // guarded by mu
	woken chan struct{}
}

func newWheel() *wheel { return &wheel{woken: make(chan struct{}, 1)} }

func (w *wheel) add(s *paced) {
	w.mu.Lock()
	w.added = append(w.added, s)
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// run visits the streams that are due every millisecond, and new streams immediately.
func (w *wheel) run(ctx context.Context) {
	ticker := time.NewTicker(wheelTick)
	defer ticker.Stop()
	served := load.Monotonic()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		case <-ticker.C:
		}
		w.visitAdded()
		now := load.Monotonic()
		for ; served+int64(wheelTick) <= now; served += int64(wheelTick) {
			w.position = (w.position + 1) % wheelSlots
			slot := w.slots[w.position]
			w.slots[w.position] = nil
			for _, s := range slot {
				w.visit(s)
			}
			clear(slot)
			w.slots[w.position] = slot[:0] // empty, since no stream is planned a whole revolution ahead
		}
	}
}

func (w *wheel) visitAdded() {
	w.mu.Lock()
	added := w.added
	w.added = nil
	w.mu.Unlock()
	for _, s := range added {
		w.visit(s)
	}
}

func (w *wheel) visit(s *paced) {
	now := load.Monotonic()
	if s.begun <= w.resetting.Load() {
		s.done <- errReset
		return
	}
	over, err := s.write(now, s.begun <= w.ending.Load())
	switch {
	case err != nil:
		s.done <- err
	case over:
		w.drain(s)
	default:
		w.plan(s, s.due()-now)
	}
}

// drain completes a finished stream. If its socket is full, a separate goroutine writes the rest.
func (w *wheel) drain(s *paced) {
	if len(s.pending) == 0 {
		s.done <- nil
		return
	}
	go func() {
		var failure error
		err := s.raw.Write(func(fd uintptr) bool {
			n, err := syscall.Write(int(fd), s.pending)
			if errors.Is(err, syscall.EAGAIN) {
				return false // wait until the socket accepts more
			}
			if failure = err; err != nil {
				return true
			}
			s.pending = s.pending[n:]
			return len(s.pending) == 0
		})
		s.done <- errors.Join(err, failure)
	}()
}

// maxVisitInterval is the longest time between two visits of a stream, which must notice that it is ended or reset.
const maxVisitInterval = 250 * time.Millisecond

func (w *wheel) plan(s *paced, in int64) {
	ticks := int(min(max(in, 0), int64(maxVisitInterval))/int64(wheelTick)) + 1
	at := (w.position + ticks) % wheelSlots
	w.slots[at] = append(w.slots[at], s)
}
