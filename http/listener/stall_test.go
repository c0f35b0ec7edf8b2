package listener

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	stdhttp "net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// pipes is a listener for connections in memory, whose deadlines follow the fake clock.
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p.accepted
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p.accepted); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// exchange sends text to a server of New with the handler. It returns the response, and how long the server kept the
// connection after text was sent.
func exchange(t *testing.T, text string, handler stdhttp.HandlerFunc) (status int, kept time.Duration) {
	t.Helper()
	server, socket := New(handler, Options{Log: zap.NewNop()}), pipes{make(chan net.Conn, 1)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(socket) }()
	defer func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, stdhttp.ErrServerClosed) {
			t.Error(err)
		}
	}()
	conn, end := net.Pipe()
	socket.accepted <- end
	sent := time.Now()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	got, err := stdhttp.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(got.Body); err != nil {
		t.Error(err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the response: %v", err)
	}
	return got.StatusCode, time.Since(sent)
}

// A handler that refuses a request does not read its body. A client that does not send the body has readStall.
func TestAClientThatDoesNotSendABodyIsDisconnected(t *testing.T) {
	refuse := func(text string) stdhttp.HandlerFunc {
		return func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
			w.WriteHeader(stdhttp.StatusUnauthorized)
			_, _ = io.WriteString(w, text)
		}
	}
	for what, c := range map[string]struct {
		header, text string
		kept         time.Duration
	}{
		"none of it":                      {"Content-Length: 10\r\n\r\n", "refused", readStall},
		"the rest of it":                  {"Content-Length: 10\r\n\r\n{}", "refused", readStall},
		"a chunk":                         {"Transfer-Encoding: chunked\r\n\r\n5\r\n", "refused", readStall},
		"before a long response":          {"Content-Length: 10\r\n\r\n", strings.Repeat("x", 100<<10), readStall},
		"that the service did not expect": {"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n", "refused", 0},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status, kept := exchange(t, "POST / HTTP/1.1\r\nHost: x\r\n"+c.header, refuse(c.text))
				if status != stdhttp.StatusUnauthorized || kept != c.kept {
					t.Errorf("%d, and the connection is closed after %s, want %s", status, kept, c.kept)
				}
			})
		})
	}
}

// The limit does not concern a request whose body was read, nor one that the handler limits itself.
func TestARequestMayTakeLongerThanItsClientMayTakeForTheBody(t *testing.T) {
	const long = 10 * readStall
	synctest.Test(t, func(t *testing.T) {
		status, kept := exchange(t, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "begun") // as in exchange
			wait(r.Context(), t, long)
		})
		if status != stdhttp.StatusOK || kept != long {
			t.Errorf("%d after %s", status, kept)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, kept := exchange(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
			if err := stdhttp.NewResponseController(w).SetReadDeadline(time.Now()); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "refused")
		})
		if kept != 0 {
			t.Errorf("closed after %s", kept)
		}
	})
}

// wait waits for d on the fake clock. It fails the test if ctx ends before.
func wait(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Errorf("the context ends: %v", context.Cause(ctx))
	}
}
