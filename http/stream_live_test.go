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
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/node"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/sse"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/turnlog"
	"turnstone/providers/model/modeltest"
)

// testTimeout limits the wait for an expected event.
const testTimeout = clocktest.HangGuard

// dictatedModel is a model that emits each text that the test sends to the channel, and ends its answer when the
// channel is closed.
type dictatedModel chan string

func (d dictatedModel) Stream(ctx context.Context, _ llm.Request, emit func(llm.Chunk) error) error {
	for {
		select {
		case text, more := <-d:
			if !more {
				return modeltest.Emit(ctx, emit, modeltest.Ended(llm.StopEndTurn)...)
			}
			if err := modeltest.Emit(ctx, emit, llm.Chunk{Kind: llm.ChunkText, Text: text}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d dictatedModel) Continues() bool             { return true }
func (d dictatedModel) Ready(context.Context) error { return nil }
func (d dictatedModel) Family() string              { return "dictated" }

// streamServer is a server with one live turn, whose stream clients read over sockets.
type streamServer struct {
	t       *testing.T
	server  *Server
	node    *turn.Host
	model   dictatedModel
	caller  *auth.Caller
	turn    protocol.TurnID
	logged  *observer.ObservedLogs
	changes clocktest.Changes // streams were opened, or requests have ended
	service *httptest.Server
}

func newStreamServer(t *testing.T, change func(*httptest.Server)) *streamServer {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	store, model := actorstest.NewMemory(), make(dictatedModel)
	s := &streamServer{t: t, model: model, logged: logged, caller: &auth.Caller{SessionID: protocol.NewSessionID()}}
	server, err := newServer(Config{
		Log: zap.New(core, zap.Hooks(func(zapcore.Entry) error { s.changes.Notify(); return nil })), Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
	}, func(*Server) route.Table {
		return route.Table{}.With(route.Stream("GET", "/turn", "followTurn", "", route.Policy{Public: true}, s.serve))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	s.caller.AccountID = protocol.NewAccountID()
	process := node.New(node.Config{Logger: zap.NewNop()}) // not started: it has no lease
	s.node = turn.New(turn.Config{
		Node: process.Host(), Store: store, FollowUps: store, Log: store, Ownership: store, Model: model, Routes: routing.Defaults("b", "d", "c"), MaxLiveTurns: 1, Logger: zap.NewNop(),
	})
	process.Attach(s.node.Load, s.node)
	t.Cleanup(store.Appends.Wait)
	t.Cleanup(process.Stop)
	started, err := s.node.StartTurn(t.Context(), &turnlog.Start{AccountID: s.caller.AccountID, Input: "speak"})
	if err != nil {
		t.Fatal(err)
	}
	s.turn = started.Spec.TurnID
	s.service = httptest.NewUnstartedServer(server)
	if change == nil {
		s.service.Start()
	} else {
		change(s.service)
	}
	t.Cleanup(s.service.Close)
	return s
}

// serve streams the turn to the caller, with headers of its own.
func (s *streamServer) serve(w stdhttp.ResponseWriter, r *stdhttp.Request, _ *resource.Nothing) error {
	exchange.Of(r.Context()).Caller = s.caller
	if err := s.server.streams.Acquire(s.caller.AccountID); err != nil {
		return err
	}
	defer s.server.streams.Release(r.Context(), s.caller.AccountID)
	w.Header().Set("X-Turn-Id", s.turn.String())
	w.Header().Set("Location", "/chat/turns/"+s.turn.String())
	defer s.changes.Notify()
	return s.server.streams.Serve(w, r, &sse.Stream{Reader: s.node.Follow(s.caller.AccountID, s.turn, 0)})
}

// emit makes the model emit texts.
func (s *streamServer) emit(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		select {
		case s.model <- text:
		case <-time.After(testTimeout):
			s.t.Fatal("the model does not accept a text")
		}
	}
}

// open returns the number of streams whose connections were taken over.
func (s *streamServer) open() int { return s.server.sse.TakenOver() }

// slots returns the number of stream slots that the account occupies.
func (s *streamServer) slots() int {
	free := 0
	for s.server.streams.Acquire(s.caller.AccountID) == nil {
		free++
	}
	for range free {
		s.server.streams.Slots.Release(s.caller.AccountID)
	}
	return maxStreams - free
}

// drained waits until no connection is taken over, or its end is in progress.
func (s *streamServer) drained() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.server.sse.Close(ctx)
	if ctx.Err() != nil {
		s.t.Fatal("a connection is still taken over")
	}
}

// streamReader is a client that reads the stream.
type streamReader struct {
	*stdhttp.Response
	server *streamServer
	lines  *bufio.Reader
}

func (s *streamServer) openStream() *streamReader {
	s.t.Helper()
	request, err := stdhttp.NewRequestWithContext(s.t.Context(), stdhttp.MethodGet, s.service.URL+"/turn", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.service.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &streamReader{resp, s, bufio.NewReader(resp.Body)}
}

// readUntil reads until a line contains the text.
func (a *streamReader) readUntil(text string) {
	a.server.t.Helper()
	for {
		line, err := a.lines.ReadString('\n')
		if err != nil {
			a.server.t.Fatalf("the stream ended before %q: %v (%d, %q)", text, err, a.StatusCode, line)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// readAll reads to the end of the stream and fails the test if the stream is cut off.
func (a *streamReader) readAll() string {
	a.server.t.Helper()
	text, err := io.ReadAll(a.lines)
	if err != nil {
		a.server.t.Fatalf("the stream was cut off: %v", err)
	}
	return string(text)
}

var transports = []struct {
	name  string
	proto int
	live  bool // the connection is taken over from net/http
	start func(*httptest.Server)
}{
	{"HTTP 1.1", 1, true, func(s *httptest.Server) { s.Start() }},
	{"HTTP 1.1 over TLS", 1, true, func(s *httptest.Server) { s.StartTLS() }},
	{"HTTP 2", 2, false, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }},
}

func TestAStreamIsTheSameOnEveryTransport(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStreamServer(t, transport.start)
			one := s.openStream()
			s.emit("one ")
			one.readUntil("one ")
			if one.ProtoMajor != transport.proto || (s.open() == 1) != transport.live {
				t.Errorf("HTTP/%d, %d connections taken over", one.ProtoMajor, s.open())
			}
			two := s.openStream() // resumes from the start: the stored events arrive together
			two.readUntil("turn.started")
			two.readUntil("one ")
			s.emit("two ")
			one.readUntil("two ")
			two.readUntil("two ")
			close(s.model)
			for _, a := range []*streamReader{one, two} {
				if text := a.readAll(); !strings.Contains(text, "event: turn.finished\n") || !strings.HasSuffix(text, "\n\n") {
					t.Errorf("the stream ended with %q", text)
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
			s.changes.Await(t, "both requests are in the log", func() bool { return s.logged.FilterMessage("request").Len() == 2 })
			s.drained()
			if n := s.slots(); n != 0 {
				t.Errorf("%d slots are occupied", n)
			}
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
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStreamServer(t, transport.start)
			a := s.openStream()
			a.readUntil("turn.started")
			s.server.sse.EndSession(s.caller.SessionID)
			if text := a.readAll(); strings.Contains(text, "turn.finished") {
				t.Errorf("the stream ended with %q", text)
			}
			s.changes.Await(t, "its slot is free", func() bool { return s.slots() == 0 })
		})
	}
}

func TestAClientThatDisconnectsReleasesItsSlot(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			s := newStreamServer(t, transport.start)
			a := s.openStream()
			a.readUntil("turn.started")
			_ = a.Body.Close()
			s.changes.Await(t, "its slot is free", func() bool { return s.slots() == 0 })
			s.drained()
			b := s.openStream()
			s.emit("still there")
			b.readUntil("still there")
		})
	}
}

// TestOnlyTheSlowReaderIsDisconnected has one client that reads nothing. The server disconnects it, and the other
// client is not affected.
func TestOnlyTheSlowReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	for _, transport := range transports[:2] {
		t.Run(transport.name, func(t *testing.T) {
			t.Parallel() // both wait for the same ten seconds
			s := newStreamServer(t, func(service *httptest.Server) {
				service.Listener = smallSendBuffers{service.Listener}
				transport.start(service)
			})
			slow := s.connect(transport.name != transports[0].name)
			quick := s.openStream()
			s.changes.Await(t, "both streams are open", func() bool { return s.open() == 2 })
			mark, filling := "the end", strings.Repeat("x", 16<<10)
			for range 64 {
				s.emit(filling)
			}
			s.emit(mark)
			quick.readUntil(mark)
			s.changes.Await(t, "the slow client was disconnected", func() bool { return s.slots() == 1 })
			if text, err := io.ReadAll(slow); err == nil && strings.HasSuffix(string(text), "0\r\n\r\n") {
				t.Error("the slow client received the last chunk")
			}
			s.emit("and on")
			quick.readUntil("and on")
		})
	}
}

// smallSendBuffers is a listener whose connections have small send buffers.
type smallSendBuffers struct{ net.Listener }

func (n smallSendBuffers) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// connect sends the request on a connection of its own and reads nothing.
func (s *streamServer) connect(secure bool) net.Conn {
	s.t.Helper()
	dialer := net.Dialer{Timeout: testTimeout}
	conn, err := dialer.DialContext(s.t.Context(), "tcp", s.service.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		s.t.Fatal(err)
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) // the server of the test
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /turn HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestClosingWaitsForStreamsAndThenEndsThem(t *testing.T) {
	t.Parallel()
	s := newStreamServer(t, nil)
	ends, stays := s.openStream(), s.openStream()
	ends.readUntil("turn.started")
	stays.readUntil("turn.started")
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.server.CloseStreams(ctx)
	}()
	_ = ends.Body.Close()
	s.changes.Await(t, "one client has disconnected", func() bool { return s.slots() == 1 })
	select {
	case <-closed:
		t.Error("CloseStreams did not wait")
	default:
	}
	cancel()
	stays.readAll()
	select {
	case <-closed:
	case <-time.After(testTimeout):
		t.Fatal("CloseStreams does not return")
	}
	if s.open() != 0 || s.slots() != 0 {
		t.Errorf("%d streams are open, %d slots are occupied", s.open(), s.slots())
	}
}
