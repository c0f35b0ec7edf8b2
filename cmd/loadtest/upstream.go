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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// upstreamCommand is the stand-in for a model. It must cost next to nothing beside what is measured: a goroutine writes
// the tokens of all streams when they are due, in chunks that are copied together, straight into the sockets.
type upstreamCommand struct {
	Listen string `help:"Where to listen." default:"127.0.0.1:0"`
}

// Run serves until ctx ends.
func (c upstreamCommand) Run(ctx context.Context, p *program) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	announce(p, listener)
	u := &upstream{wheel: newWheel()}
	go u.wheel.turn(ctx)
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

// announcement is how a child says where it listens.
const announcement = "listening on "

func announce(p *program, listener net.Listener) {
	fmt.Fprintln(p.stdout, announcement+listener.Addr().String())
}

type upstream struct{ wheel *wheel }

// serve answers the requests of one connection.
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
		if err := u.answer(conn, request, body); err != nil {
			return
		}
	}
}

func (u *upstream) answer(conn net.Conn, request *http.Request, body []byte) error {
	switch {
	case strings.HasSuffix(request.URL.Path, "/chat/completions"):
		return u.stream(conn, body)
	case request.URL.Path == "/end":
		u.wheel.ending.Store(monotonic())
		return plain(conn, "ended")
	case request.URL.Path == "/reset":
		u.wheel.resetting.Store(monotonic())
		return plain(conn, "reset")
	default: // the list of models, by which the service sees that we are there
		return plain(conn, `{"object":"list","data":[]}`)
	}
}

func plain(conn net.Conn, text string) error {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	return err
}

// titleLimit is the most that a request for a title allows for.
const titleLimit = `"max_tokens":64`

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

// stream hands the connection to the wheel until the answer stands.
func (u *upstream) stream(conn net.Conn, body []byte) error {
	asked, ok := lastScript(body)
	if !ok || bytes.Contains(body, []byte(titleLimit)) {
		asked = script{Tokens: 4, Words: true}
	}
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("no socket")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	now := monotonic()
	s := &paced{raw: raw, script: asked, begun: now, start: now + int64(asked.First), done: make(chan error, 1)}
	s.pending = append(s.pending, streamHead...)
	u.wheel.add(s)
	err = <-s.done
	if tcp, ok := conn.(*net.TCPConn); ok && errors.Is(err, errReset) {
		_ = tcp.SetLinger(0) // closing it says RST and not FIN
	}
	return err
}

// errReset ends a stream whose connection is broken off on demand.
var errReset = errors.New("reset on demand")

// paced is a stream that the wheel writes. It belongs to the wheel once it was added.
type paced struct {
	raw     syscall.RawConn
	script  script
	begun   int64
	start   int64 // when the first token is due
	sent    int
	pending []byte // what the socket has not taken yet
	done    chan error
}

const (
	chunkHead = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[{"index":0,"delta":{"content":"`
	chunkTail = `"},"finish_reason":null}]}` + "\n\n"
	lastChunk = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageHead = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1700000000,"model":"load","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":`
)

// due is when the next token is.
func (s *paced) due() int64 { return s.start + int64(s.sent)*int64(s.script.Interval) }

// write adds what is due and gives the socket what it takes. It never waits: a reader that does not read finds later
// what it missed. ended asks for the end now.
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

// maxPending is where a stream that nobody reads stops to be made.
const maxPending = 256 << 10

func (s *paced) add() {
	var room [48]byte
	text := room[:0]
	switch {
	case s.script.Words:
		text = appendWord(text, uint64(s.begun), s.sent)
	case s.sent == 0:
		text = appendFirstToken(text, s.start, int64(s.script.Interval))
	default:
		text = appendToken(text, s.sent)
	}
	s.sent++
	s.content(text)
}

func (s *paced) content(text []byte) {
	s.chunk(chunkHead, text, chunkTail)
}

// chunk is one of the transfer coding.
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
		s.content(appendCount(nil, s.sent))
	}
	s.chunk(lastChunk, nil, "")
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
		return true // what was not taken is given again at the next turn
	})
	return errors.Join(err, failure)
}

const (
	wheelTick  = time.Millisecond
	wheelSlots = 4096
)

// wheel knows when each stream has to be looked at: a slot a millisecond. What is due later than a whole turn is looked
// at once a turn.
type wheel struct {
	slots  [wheelSlots][]*paced // owned by turn
	place  int                  // owned by turn
	ending atomic.Int64         // streams that began before it end at their next look

	resetting atomic.Int64 // the connections of streams that began before it are broken off at their next look

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

// turn looks at what is due, every millisecond, and at what is new at once.
func (w *wheel) turn(ctx context.Context) {
	ticker := time.NewTicker(wheelTick)
	defer ticker.Stop()
	turned := monotonic()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		case <-ticker.C:
		}
		w.takeNew()
		now := monotonic()
		for ; turned+int64(wheelTick) <= now; turned += int64(wheelTick) {
			w.place = (w.place + 1) % wheelSlots
			slot := w.slots[w.place]
			w.slots[w.place] = nil
			for _, s := range slot {
				w.look(s)
			}
			clear(slot)
			w.slots[w.place] = slot[:0] // nobody plans a whole turn ahead
		}
	}
}

func (w *wheel) takeNew() {
	w.mu.Lock()
	added := w.added
	w.added = nil
	w.mu.Unlock()
	for _, s := range added {
		w.look(s)
	}
}

func (w *wheel) look(s *paced) {
	now := monotonic()
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

// drain gives a finished stream to a goroutine of its own when its socket is full.
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
				return false // wait until it takes more
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

// maxLook is how long a stream may go without a look: it has to hear of an end.
const maxLook = 250 * time.Millisecond

func (w *wheel) plan(s *paced, in int64) {
	ticks := int(min(max(in, 0), int64(maxLook))/int64(wheelTick)) + 1
	at := (w.place + ticks) % wheelSlots
	w.slots[at] = append(w.slots[at], s)
}
