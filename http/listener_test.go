package http

import (
	"context"
	"fmt"
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/zap"

	"turnstone/actors"
	"turnstone/protocol"
)

// smallBuffers keeps what the system takes of an answer small, so that a reader who does not read is noticed.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, is := conn.(*net.TCPConn); is {
		err = tcp.SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// serving runs a handler on a listener of the product; closed gets a value for each connection that ends.
func serving(t *testing.T, handler stdhttp.Handler, options ListenerOptions) (address string, closed <-chan struct{}) {
	t.Helper()
	options.Log = zap.NewNop()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Listener(handler, options)
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
	go func() { done <- server.Serve(smallBuffers{socket}) }()
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

// 200 readers ask for much and read nothing. They are disconnected, whoever they are, and hold no more memory than the
// requests that one account may have under way.
func TestReadersThatNeverReadAreDisconnected(t *testing.T) {
	const readers, size, stall, most = 200, 1 << 20, time.Second, 100 << 20
	text := strings.Repeat("x", size)
	content := []byte(text)
	w := newWorld(t)
	config := w.Config
	config.Web = fstest.MapFS{"index.html": {Data: []byte("app")}, "assets/large.js": {Data: []byte(text)}}
	server, err := newServer(config, func(s *Server) []route {
		return append(s.table(), call("GET", "/large", "getLarge", "", reads, func(context.Context, *nothing) (*body[echoOutput], error) {
			return ok(echoOutput{Title: text}), nil
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
		"internal": {OnlyHosts("127.0.0.1:9090", nil, stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
			_, _ = w.Write(content) // nobody reads it
		})), "/debug/pprof/heap"},
	} {
		address, closed := serving(t, c.handler, ListenerOptions{WriteStall: stall})
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

// heap is what is held, without what only waits to be collected.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// deadlines notes what is written under which deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	set    int
	pieces []int
}

func (d *deadlines) SetWriteDeadline(time.Time) error { d.set++; return nil }

func (d *deadlines) Write(b []byte) (int, error) {
	if d.pieces = append(d.pieces, len(b)); d.set < len(d.pieces) {
		return 0, fmt.Errorf("piece %d has no deadline of its own", len(d.pieces))
	}
	return d.ResponseRecorder.Write(b)
}

func TestProgressExtendsTheDeadlineOfAnAnswer(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	text := strings.Repeat("x", 3*writePiece+1)
	patient(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}), time.Second).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if len(w.pieces) != 4 || w.set != 5 || w.Body.String() != text {
		t.Errorf("pieces %v, %d deadlines", w.pieces, w.set)
	}
}

// openStreams is a handler with connections that the server knows nothing of.
type openStreams struct {
	stdhttp.Handler
	open atomic.Int64
}

func (o *openStreams) OpenStreams() int { return int(o.open.Load()) }

func TestAListenerHasAtMostSoManyConnections(t *testing.T) {
	handler := &openStreams{Handler: stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) { w.WriteHeader(204) })}
	handler.open.Store(1)
	address, closed := serving(t, handler, ListenerOptions{MaxConnections: 2})
	answered := func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // a closed one shows when it is read
		n, err := conn.Read(make([]byte, 1))
		return n == 1 && err == nil
	}
	first := dial(t, address)
	if !answered(first) {
		t.Error("the first connection is closed")
	}
	if answered(dial(t, address)) {
		t.Error("a connection beyond the bound is answered")
	}
	<-closed
	handler.open.Store(0)
	if !answered(dial(t, address)) {
		t.Error("a connection is refused after a stream has ended")
	}
	if answered(dial(t, address)) {
		t.Error("a connection beyond the bound is answered")
	}
	<-closed
	_ = first.Close()
	<-closed
	if !answered(dial(t, address)) {
		t.Error("a connection is refused after another one has ended")
	}
}

func TestAnAccountHasAtMostSoManyRequestsUnderWay(t *testing.T) {
	const most = 3
	w := newWorld(t, func(c *Config) { c.MaxRequests = most })
	began, proceed := make(chan struct{}), make(chan struct{})
	server, err := newServer(w.Config, func(s *Server) []route {
		return append(s.table(), call("GET", "/slow", "getSlow", "", reads, func(context.Context, *nothing) (*body[health], error) {
			began <- struct{}{}
			<-proceed
			return ok(health{Status: "ok"}), nil
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	answers := make(chan *reply, most)
	for range most {
		go func() { answers <- ada.twin().do("GET", "/slow", nil) }()
		<-began
	}
	over := ada.twin().do("GET", "/conversations", nil)
	if over.status != 429 || over.Code != protocol.CodeTooManyRequests || over.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", over.status, over.body)
	}
	eve.expect(200, "GET", "/conversations", nil)
	close(proceed)
	for range most {
		if answer := <-answers; answer.status != 200 {
			t.Errorf("%d %s", answer.status, answer.body)
		}
	}
	ada.expect(200, "GET", "/conversations", nil)
}

// heldCommands lets no command of a turn end before it is released.
type heldCommands struct {
	Turns
	began, proceed chan struct{}
}

func (h *heldCommands) Command(context.Context, protocol.AccountID, protocol.TurnID, *actors.Command) (protocol.SteeringReceipt, error) {
	h.began <- struct{}{}
	<-h.proceed
	return protocol.SteeringReceipt{}, nil
}

func TestACancelHasASlotAlthoughTheOtherRequestsOfItsAccountHang(t *testing.T) {
	const most = 3
	held := &heldCommands{began: make(chan struct{}), proceed: make(chan struct{})}
	w := newWorld(t, func(c *Config) { c.MaxRequests, c.Turns = most, held })
	ada := w.client().register("ada@example.com")
	turn := protocol.NewTurnID().String()
	input := func(id string) object {
		return object{"type": "input", "turn_id": turn, "client_steering_id": id, "input": []object{{"type": "text", "text": "x"}}}
	}
	cancel := object{"type": "cancel", "turn_id": turn}
	answers := make(chan *reply, most+cancelSlots)
	hang := func(body object) {
		go func() { answers <- ada.twin().do("POST", "/chat/steering", body) }()
		<-held.began
	}
	refused := func(what, method, path string, body any) {
		t.Helper()
		if answer := ada.twin().do(method, path, body); answer.status != 429 || answer.Code != protocol.CodeTooManyRequests {
			t.Errorf("%s: %d %s", what, answer.status, answer.body)
		}
	}
	for n := range most {
		hang(input(strconv.Itoa(n)))
	}
	for range cancelSlots {
		refused("one more input", "POST", "/chat/steering", input("more"))
		refused("a withdrawal", "POST", "/chat/steering", object{"type": "withdraw", "turn_id": turn, "steering_id": protocol.NewSteeringID().String()})
		refused("a read", "GET", "/conversations", nil)
		hang(cancel)
	}
	refused("a cancel beyond the reserve", "POST", "/chat/steering", cancel)
	close(held.proceed)
	for range most + cancelSlots {
		if answer := <-answers; answer.status != 202 {
			t.Errorf("%d %s", answer.status, answer.body)
		}
	}
	ada.expect(200, "GET", "/conversations", nil)
}
