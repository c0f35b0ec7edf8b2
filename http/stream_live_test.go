package http

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/actors"
	"turnstone/protocol"
)

// patience is what a test waits for what must happen.
const patience = 30 * time.Second

// turnMemory is a store of turns that keeps nothing but their logs.
type turnMemory struct {
	actors.TurnStore // what is not here is not asked for
	actors.Directory
	mu     sync.Mutex
	frames []byte // guarded by mu; of the one turn
	last   int64  // guarded by mu
	over   bool   // guarded by mu
}

func (m *turnMemory) StartTurn(_ context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	spec := &protocol.TurnSpec{
		AccountID: start.AccountID, TurnID: protocol.NewTurnID(), ConversationID: protocol.NewConversationID(), BranchID: protocol.NewBranchID(),
		UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(), Requested: protocol.ProfileBalanced, Input: start.Input, CreatedAt: time.Now(),
	}
	begin, err := start.Begin(spec)
	m.add(begin.Frames, begin.Last)
	return &protocol.TurnStartResult{Spec: spec, Begin: begin}, err
}

func (m *turnMemory) add(frames []byte, last int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frames, m.last = append(m.frames, frames...), last
}

func (m *turnMemory) Append(batch *protocol.TurnAppend, done func(error)) {
	m.add(batch.Frames, batch.Last)
	done(nil)
}

func (m *turnMemory) FinishTurn(_ context.Context, finish *protocol.TurnFinish) (*protocol.StartedTurn, error) {
	m.add(finish.Frames, finish.Last)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	return nil, nil //nolint:nilnil // nothing follows
}

func (m *turnMemory) History(context.Context, protocol.AccountID, protocol.ConversationID, protocol.BranchID, protocol.MessageID, int, int) ([]protocol.HistoryMessage, bool, error) {
	return nil, false, nil
}

func (m *turnMemory) TurnHead(context.Context, protocol.AccountID, protocol.TurnID) (protocol.TurnHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := protocol.TurnHead{State: protocol.TurnRunning, LastSequence: m.last}
	if m.over {
		head.State = protocol.TurnCompleted
	}
	return head, nil
}

func (m *turnMemory) TurnFrames(_ context.Context, _ protocol.AccountID, _ protocol.TurnID, after int64, _ int) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(protocol.SkipFrames(m.frames, after)), max(after, m.last), nil
}

func (m *turnMemory) TurnRecord(context.Context, protocol.AccountID, protocol.TurnID, string, string) (*protocol.TurnRecord, error) {
	return nil, nil //nolint:nilnil // there is none
}

// dictated is a model that says what it is given, until that is closed.
type dictated chan string

func (d dictated) Stream(ctx context.Context, _ actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	for {
		select {
		case text, more := <-d:
			if !more {
				return emit(actors.ModelChunk{Kind: actors.ChunkStop, Stop: actors.StopEndTurn})
			}
			if err := emit(actors.ModelChunk{Kind: actors.ChunkText, Text: text}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d dictated) Continues() bool             { return true }
func (d dictated) Ready(context.Context) error { return nil }
func (d dictated) Family() string              { return "dictated" }

// stage is a turn with whoever reads it over sockets.
type stage struct {
	t       *testing.T
	server  *Server
	node    *actors.Node
	model   dictated
	caller  *Caller
	turn    protocol.TurnID
	logged  *observer.ObservedLogs
	service *httptest.Server
}

func newStage(t *testing.T, change func(*httptest.Server)) *stage {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	server, err := New(Config{
		Log: zap.New(core), Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	store, model := &turnMemory{}, make(dictated)
	s := &stage{t: t, server: server, model: model, logged: logged, caller: &Caller{SessionID: protocol.NewSessionID()}}
	s.caller.AccountID = protocol.NewAccountID()
	s.node = actors.NewNode(actors.Config{
		Store: store, Log: store, Directory: store, Model: model, Routes: actors.DefaultRoutes("b", "d", "c"), MaxLiveTurns: 1, Logger: zap.NewNop(),
	})
	t.Cleanup(s.node.Stop)
	server.Turns = s.node
	started, err := s.node.StartTurn(t.Context(), &protocol.TurnStart{AccountID: s.caller.AccountID, Input: "speak"})
	if err != nil {
		t.Fatal(err)
	}
	s.turn = started.Spec.TurnID
	s.service = httptest.NewUnstartedServer(server.begin(stdhttp.HandlerFunc(s.serve)))
	if change == nil {
		s.service.Start()
	} else {
		change(s.service)
	}
	t.Cleanup(s.service.Close)
	return s
}

func (s *stage) serve(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	ex := exchangeOf(r.Context())
	ex.caller, ex.pattern = s.caller, "/turn"
	if err := s.server.streams.enter(s.caller.AccountID, defaultStreams); err != nil {
		s.server.fail(w, r, err)
		return
	}
	defer s.server.leaveStream(r.Context(), s.caller.AccountID)
	if err := s.server.streamTurn(w, r, s.turn, 0); err != nil {
		s.server.failStream(w, r, err)
	}
}

func (s *stage) say(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		select {
		case s.model <- text:
		case <-time.After(patience):
			s.t.Fatal("the model is not listened to")
		}
	}
}

func (s *stage) open() int {
	s.server.live.mu.Lock()
	defer s.server.live.mu.Unlock()
	return s.server.live.open
}

func (s *stage) places() int {
	s.server.streams.mu.Lock()
	defer s.server.streams.mu.Unlock()
	return s.server.streams.open[s.caller.AccountID]
}

func (s *stage) until(what string, done func() bool) {
	s.t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatal("waited in vain: " + what)
		}
	}
}

// audience is an answer that is being read.
type audience struct {
	*stdhttp.Response
	stage *stage
	lines *bufio.Reader
}

func (s *stage) listen() *audience {
	s.t.Helper()
	request, err := stdhttp.NewRequestWithContext(s.t.Context(), stdhttp.MethodGet, s.service.URL, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.service.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return &audience{answer, s, bufio.NewReader(answer.Body)}
}

// hears reads until a line holds the text.
func (a *audience) hears(text string) {
	a.stage.t.Helper()
	for {
		line, err := a.lines.ReadString('\n')
		if err != nil {
			a.stage.t.Fatalf("before %q: %v (%d, %q)", text, err, a.StatusCode, line)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// rest reads to the end, which must be one.
func (a *audience) rest() string {
	a.stage.t.Helper()
	text, err := io.ReadAll(a.lines)
	if err != nil {
		a.stage.t.Fatalf("the stream broke off: %v", err)
	}
	return string(text)
}

var transports = []struct {
	name  string
	proto int
	live  bool // the connection is taken over
	start func(*httptest.Server)
}{
	{"HTTP 1.1", 1, true, func(s *httptest.Server) { s.Start() }},
	{"HTTP 1.1 over TLS", 1, true, func(s *httptest.Server) { s.StartTLS() }},
	{"HTTP 2", 2, false, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }},
}

func TestAStreamIsTheSameOnEveryTransport(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStage(t, transport.start)
			one := s.listen()
			s.say("one ")
			one.hears("one ")
			if one.ProtoMajor != transport.proto || (s.open() == 1) != transport.live {
				t.Errorf("HTTP/%d, %d connections taken over", one.ProtoMajor, s.open())
			}
			two := s.listen() // from the beginning, what is there comes together
			two.hears("turn.started")
			two.hears("one ")
			s.say("two ")
			one.hears("two ")
			two.hears("two ")
			close(s.model)
			for _, a := range []*audience{one, two} {
				if text := a.rest(); !strings.Contains(text, "event: turn.finished\n") || !strings.HasSuffix(text, "\n\n") {
					t.Errorf("it ended with %q", text)
				}
				for name, want := range map[string]string{
					"Content-Type": "text/event-stream", "X-Turn-Id": s.turn.String(), "Location": "/chat/turns/" + s.turn.String(),
					"Cache-Control": "no-cache, no-transform", "X-Content-Type-Options": "nosniff", "X-Accel-Buffering": "no",
				} {
					if got := a.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if a.Header.Get("X-Request-Id") == "" || a.Header.Get("Date") == "" || a.StatusCode != stdhttp.StatusOK {
					t.Errorf("%d %v", a.StatusCode, a.Header)
				}
			}
			s.until("every place is free", func() bool { return s.open() == 0 && s.places() == 0 })
			s.until("both requests are in the log", func() bool { return s.logged.FilterMessage("request").Len() == 2 })
			for _, line := range s.logged.FilterMessage("request").All() {
				fields := line.ContextMap()
				if fields["route"] != "/turn" || fields["status"] != int64(200) || fields["method"] != "GET" || fields["account"] == nil {
					t.Errorf("logged %v", fields)
				}
			}
		})
	}
}

func TestAStreamEndsWithItsSession(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStage(t, transport.start)
			a := s.listen()
			a.hears("turn.started")
			s.server.watches.end(s.caller.SessionID)
			if text := a.rest(); strings.Contains(text, "turn.finished") {
				t.Errorf("it ended with %q", text)
			}
			s.until("its place is free", func() bool { return s.places() == 0 })
		})
	}
}

func TestAClientThatLeavesGivesItsPlaceBack(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStage(t, transport.start)
			a := s.listen()
			a.hears("turn.started")
			_ = a.Body.Close()
			s.until("its place is free", func() bool { return s.open() == 0 && s.places() == 0 })
			b := s.listen()
			s.say("still there")
			b.hears("still there")
		})
	}
}

// TestASlowReaderIsDroppedAlone lets one client read nothing: the others do not notice, and it is let go.
func TestASlowReaderIsDroppedAlone(t *testing.T) {
	for _, transport := range transports[:2] {
		t.Run(transport.name, func(t *testing.T) {
			t.Parallel() // they wait for the same ten seconds
			s := newStage(t, func(service *httptest.Server) {
				service.Listener = narrow{service.Listener}
				transport.start(service)
			})
			slow := s.connect(transport.name != transports[0].name)
			quick := s.listen()
			s.until("both read", func() bool { return s.open() == 2 })
			mark, filling := "the end", strings.Repeat("x", 16<<10)
			for range 64 {
				s.say(filling)
			}
			s.say(mark)
			quick.hears(mark)
			s.until("the slow one was let go", func() bool { return s.open() == 1 && s.places() == 1 })
			if text, err := io.ReadAll(slow); err == nil && strings.HasSuffix(string(text), lastChunk) {
				t.Error("it was told that this was all")
			}
			s.say("and on")
			quick.hears("and on")
		})
	}
}

// narrow is a listener whose connections take little at once.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// connect asks on a connection of its own and reads nothing.
func (s *stage) connect(secure bool) net.Conn {
	s.t.Helper()
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(s.t.Context(), "tcp", s.service.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		s.t.Fatal(err)
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) //nolint:gosec // the test's own
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestClosingWaitsForStreamsAndThenEndsThem(t *testing.T) {
	s := newStage(t, nil)
	ends, stays := s.listen(), s.listen()
	ends.hears("turn.started")
	stays.hears("turn.started")
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.server.CloseStreams(ctx)
	}()
	_ = ends.Body.Close()
	s.until("one has left", func() bool { return s.open() == 1 })
	select {
	case <-closed:
		t.Error("it did not wait")
	default:
	}
	cancel()
	stays.rest()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("it waits for ever")
	}
	if s.open() != 0 || s.places() != 0 {
		t.Errorf("%d are open, %d places taken", s.open(), s.places())
	}
}

// TestASilentStreamIsKeptAlive wakes the sweep's way: what is quiet for long gets a comment, and nobody else.
func TestASilentStreamIsKeptAlive(t *testing.T) {
	s := newStage(t, nil)
	a := s.listen()
	a.hears("turn.started")
	s.server.live.each(time.Since(start)+heartbeat, (*liveStream).beat)
	a.hears(": ")
	s.say("and on")
	a.hears("and on")
}

// TestAReaderInTheMiddleOfAChunkGetsTheSameBytes compares what is shared with what is made for one reader.
func TestAReaderInTheMiddleOfAChunkGetsTheSameBytes(t *testing.T) {
	var frames []byte
	turn := protocol.NewTurnID()
	for i := range int64(3) {
		var err error
		if frames, err = protocol.AppendEvent(frames, turn, i+1, time.Now(), &protocol.AnswerDelta{Delta: "a"}); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, '\n')
	}
	whole := unframed(renderChunk(frames))
	part := appendEvents(nil, protocol.SkipFrames(frames, 1))
	if !bytes.HasSuffix(whole, part) || !bytes.Equal(whole, appendEvents(nil, frames)) {
		t.Errorf("%s\n%s", whole, part)
	}
	body, err := io.ReadAll(dechunked(append(renderChunk(frames), lastChunk...)))
	if err != nil || !bytes.Equal(body, whole) {
		t.Errorf("as a chunk of HTTP: %s (%v)", body, err)
	}
	if len(renderChunk(nil)) != 0 {
		t.Error("nothing would be the last chunk")
	}
}

// dechunked reads a body as a client of HTTP does.
func dechunked(b []byte) io.Reader {
	head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	answer, err := stdhttp.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(head), bytes.NewReader(b))), nil)
	if err != nil {
		return strings.NewReader(err.Error())
	}
	return answer.Body
}
