package listener

import (
	"bufio"
	"errors"
	"io"
	"net"
	stdhttp "net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// serve starts a server with the handler on a socket. It returns a connection to it and the server.
func serve(t *testing.T, handler stdhttp.HandlerFunc) (net.Conn, *stdhttp.Server) {
	t.Helper()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, done := New(handler, Options{Log: zap.NewNop()}), make(chan error, 1)
	go func() { done <- Serve(server, socket) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, stdhttp.ErrServerClosed) {
			t.Error(err)
		}
	})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, server
}

func refuse(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
	w.WriteHeader(stdhttp.StatusTooManyRequests)
	_, _ = io.WriteString(w, "refused")
}

// A client that sends the whole request before it reads is not reset, however early its request was refused.
func TestARefusedClientMaySendTheRestOfItsBody(t *testing.T) {
	const chunk = "100000\r\n" // 1 MiB
	half := strings.Repeat("x", 1<<19)
	for what, c := range map[string]struct {
		begun, rest string
		handler     stdhttp.HandlerFunc
	}{
		"that nobody reads": {"Content-Length: 4194304\r\n\r\n", strings.Repeat(half, 8), refuse},
		"whose start was read": {"Content-Length: 4194304\r\n\r\n" + half + half, strings.Repeat(half, 6), func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			if _, err := io.CopyN(io.Discard, r.Body, 1<<20); err != nil {
				t.Error(err)
			}
			refuse(w, r)
		}},
		"whose reader was stopped": {"Content-Length: 1048576\r\n\r\n", half + half, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			if err := stdhttp.NewResponseController(w).SetReadDeadline(time.Now()); err != nil {
				t.Error(err)
			}
			w.Header().Set("Connection", "close")
			refuse(w, r)
		}},
		"in chunks": {"Transfer-Encoding: chunked\r\n\r\n", strings.Repeat(chunk+half+half+"\r\n", 4) + "0\r\n\r\n", refuse},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			conn, _ := serve(t, c.handler)
			if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+c.begun); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			if _, err := in.Peek(1); err != nil { // the response comes before the body was sent
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.rest); err != nil {
				t.Fatalf("the rest of the body: %v", err)
			}
			got, err := stdhttp.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(got.Body); got.StatusCode != stdhttp.StatusTooManyRequests || string(text) != "refused" || err != nil {
				t.Errorf("%d %q %v", got.StatusCode, text, err)
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after the response: %v", err)
			}
		})
	}
}

// A server that stops does not wait for what such clients still send.
func TestAServerThatStopsWaitsForNoRefusedClient(t *testing.T) {
	conn, server := serve(t, refuse)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); !strings.HasSuffix(string(text), "refused") || err != nil {
		t.Fatalf("%s %v", text, err) // now the server lingers
	}
	began := time.Now()
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= lingerTime/2 {
		t.Errorf("it took %s", took)
	}
}
