package http

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	stdhttp "net/http"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/turn/machine"
	"turnstone/http/chat"
	"turnstone/http/listener"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/protocol"
)

// smallBuffers is a listener whose connections have small send buffers, so that a write to a client that does not read
// blocks early.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, is := conn.(*net.TCPConn); is {
		err = tcp.SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// startListener serves a handler with listener.New until the test ends and returns the address. closed receives a value
// for each connection that is closed.
func startListener(t *testing.T, handler stdhttp.Handler, options listener.Options) (address string, closed <-chan struct{}) {
	t.Helper()
	options.Log = zap.NewNop()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := listener.New(handler, options)
	ended, bound := make(chan struct{}, 1000), server.ConnState
	server.ConnState = func(conn net.Conn, state stdhttp.ConnState) {
		if bound != nil {
			bound(conn, state)
		}
		if state == stdhttp.StateClosed {
			ended <- struct{}{}
		}
	}
	done := make(chan error, 1)
	go func() { done <- listener.Serve(server, smallBuffers{socket}) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return socket.Addr().String(), ended
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// 200 clients request 1 MiB each and read nothing. The server disconnects them, whether or not they are signed in, and
// the heap grows by at most 100 MiB: the number of concurrent requests of one account is limited.
func TestReadersThatNeverReadAreDisconnected(t *testing.T) {
	const readers, size, stall, most = 200, 1 << 20, time.Second, 100 << 20
	text := strings.Repeat("x", size)
	content := []byte(text)
	w := newWorld(t)
	config := w.Config
	config.Web = fstest.MapFS{"index.html": {Data: []byte("app")}, "assets/large.js": {Data: []byte(text)}}
	server, err := newServer(config, func(s *Server) route.Table {
		return s.table().With(route.Call("GET", "/large", "getLarge", "", route.Reads, func(context.Context, *resource.Nothing) (*resource.Body[echoOutput], error) {
			return resource.OK(echoOutput{Title: text}), nil
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	cookie := w.cookieName() + "=" + w.client().register("ada@example.com").token()
	for name, c := range map[string]struct {
		handler stdhttp.Handler
		path    string
	}{
		"signed in":     {server, "/large"},
		"not signed in": {server, "/assets/large.js"},
		"internal": {listener.OnlyHosts("127.0.0.1:9090", nil, stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
			_, _ = w.Write(content) // fails: the client does not read
		})), "/debug/pprof/heap"},
	} {
		address, closed := startListener(t, c.handler, listener.Options{WriteStall: stall})
		before := heap()
		for range readers {
			conn := dial(t, address)
			if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\nConnection: close\r\n\r\n", c.path, cookie); err != nil {
				t.Fatal(err)
			}
		}
		peak := uint64(0)
		for i := range readers {
			<-closed
			if i%20 == 0 {
				peak = max(peak, heap())
			}
		}
		t.Logf("%s: the heap grew from %d to %d MiB", name, before>>20, peak>>20)
		if peak > before+most {
			t.Errorf("%s: the heap grew from %d to %d MiB", name, before>>20, peak>>20)
		}
	}
}

// heap returns the number of bytes of reachable heap objects. It runs the garbage collector first.
func heap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// openStreams is a handler that reports hijacked connections, which net/http does not count.
type openStreams struct {
	stdhttp.Handler
	open atomic.Int64
}

func (o *openStreams) OpenStreams() int { return int(o.open.Load()) }

func TestAListenerLimitsItsConnections(t *testing.T) {
	t.Parallel()
	handler := &openStreams{Handler: stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) { w.WriteHeader(204) })}
	handler.open.Store(1)
	address, closed := startListener(t, handler, listener.Options{MaxConnections: 2})
	responds := func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // the read below fails if it is closed
		n, err := conn.Read(make([]byte, 1))
		return n == 1 && err == nil
	}
	first := dial(t, address)
	if !responds(first) {
		t.Error("the first connection is closed")
	}
	if responds(dial(t, address)) {
		t.Error("a connection beyond the limit gets a response")
	}
	<-closed
	handler.open.Store(0)
	if !responds(dial(t, address)) {
		t.Error("a connection is refused after a stream has ended")
	}
	if responds(dial(t, address)) {
		t.Error("a connection beyond the limit gets a response")
	}
	<-closed
	_ = first.Close()
	<-closed
	if !responds(dial(t, address)) {
		t.Error("a connection is refused after another connection has ended")
	}
}

func TestAnAccountsConcurrentRequestsAreLimited(t *testing.T) {
	t.Parallel()
	const most = 3
	w := newWorld(t, func(c *testConfig) { c.MaxRequests = most })
	began, proceed := make(chan struct{}), make(chan struct{})
	server, err := newServer(w.Config, func(s *Server) route.Table {
		return s.table().With(route.Call("GET", "/slow", "getSlow", "", route.Reads, func(context.Context, *resource.Nothing) (*resource.Body[echoOutput], error) {
			began <- struct{}{}
			<-proceed
			return resource.OK(echoOutput{Title: "ok"}), nil
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	replies := make(chan *reply, most)
	for range most {
		go func() { replies <- ada.twin().do("GET", "/slow", nil) }()
		<-began
	}
	over := ada.twin().do("GET", "/conversations", nil)
	if over.status != 429 || over.Code != protocol.CodeTooManyRequests || over.header.Get("Retry-After") == "" {
		t.Errorf("a request over the limit: %d %s", over.status, over.body)
	}
	eve.expect(200, "GET", "/conversations", nil)
	close(proceed)
	for range most {
		if resp := <-replies; resp.status != 200 {
			t.Errorf("%d %s", resp.status, resp.body)
		}
	}
	ada.expect(200, "GET", "/conversations", nil)
}

// heldCommands blocks each command of a turn until proceed is closed.
type heldCommands struct {
	chat.Turns
	began, proceed chan struct{}
}

func (h *heldCommands) Command(context.Context, protocol.AccountID, protocol.TurnID, *machine.Command) (protocol.SteeringReceipt, error) {
	h.began <- struct{}{}
	<-h.proceed
	return protocol.SteeringReceipt{}, nil
}

func TestACancelHasASlotAlthoughTheOtherRequestsOfItsAccountHang(t *testing.T) {
	t.Parallel()
	const most = 3
	held := &heldCommands{began: make(chan struct{}), proceed: make(chan struct{})}
	w := newWorld(t, func(c *testConfig) { c.MaxRequests, c.Turns = most, held })
	ada := w.client().register("ada@example.com")
	turn := protocol.NewTurnID().String()
	input := func(id string) route.Object {
		return route.Object{"type": "input", "turn_id": turn, "client_steering_id": id, "input": []route.Object{{"type": "text", "text": "x"}}}
	}
	cancel := route.Object{"type": "cancel", "turn_id": turn}
	replies := make(chan *reply, most+reservedSlots)
	hang := func(body route.Object) {
		go func() { replies <- ada.twin().do("POST", "/chat/steering", body) }()
		<-held.began
	}
	wantRefused := func(what, method, path string, body any) {
		t.Helper()
		if resp := ada.twin().do(method, path, body); resp.status != 429 || resp.Code != protocol.CodeTooManyRequests {
			t.Errorf("%s: %d %s", what, resp.status, resp.body)
		}
	}
	for n := range most {
		hang(input(strconv.Itoa(n)))
	}
	for range reservedSlots {
		wantRefused("another input", "POST", "/chat/steering", input("more"))
		wantRefused("a withdrawal", "POST", "/chat/steering", route.Object{"type": "withdraw", "turn_id": turn, "steering_id": protocol.NewSteeringID().String()})
		wantRefused("a read", "GET", "/conversations", nil)
		hang(cancel)
	}
	wantRefused("a cancel beyond the reserved slots", "POST", "/chat/steering", cancel)
	close(held.proceed)
	for range most + reservedSlots {
		if resp := <-replies; resp.status != 202 {
			t.Errorf("%d %s", resp.status, resp.body)
		}
	}
	ada.expect(200, "GET", "/conversations", nil)
}

func TestARequestForTheWholeServerGetsAResponseOfTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address, _ := startListener(t, w.Server, listener.Options{})
	conn := dial(t, address)
	if _, err := fmt.Fprintf(conn, "OPTIONS * HTTP/1.1\r\nHost: %s\r\n\r\n", w.BaseURL.Host); err != nil {
		t.Fatal(err)
	}
	resp, err := stdhttp.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for _, name := range []string{"X-Request-Id", "X-Content-Type-Options", "Referrer-Policy"} {
		if resp.StatusCode != 401 || resp.Header.Get(name) == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
	}
}
