package listener

import (
	"context"
	"errors"
	"io"
	"net"
	stdhttp "net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// maxDrained is how much of a body that the handler does not read net/http reads itself before it responds. It closes
	// the connections of longer ones.
	maxDrained = 256 << 10
	// lingerStep is how long it takes at most until lingering connections notice that their listener was closed.
	lingerStep = 250 * time.Millisecond
	// lingerTime is how long a client may still send the rest of a body after the response that refuses it.
	lingerTime = 10 * time.Second
)

// lingeringListener is a TCP listener whose connections are closed gently: a client that is still sending the body of a
// request that was refused early reads the response. A socket that is closed while bytes arrive is reset instead, and
// the client may lose the response that it has not read yet.
type lingeringListener struct {
	net.Listener
	closed atomic.Bool
}

// Accept implements net.Listener.
func (l *lingeringListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, is := conn.(*net.TCPConn); is {
		conn = &lingeringConn{TCPConn: tcp, listener: l}
	}
	return conn, err
}

// Close implements net.Listener. Lingering connections end with their listener.
func (l *lingeringListener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// lingeringConn is a connection of a lingeringListener.
type lingeringConn struct {
	*net.TCPConn
	listener *lingeringListener
	// sending: the connection ends after the response, which the client gets before it has sent the whole request.
	sending atomic.Bool
}

// Close implements net.Conn. While the client is sending, it first ends the response and reads what the client sends, up
// to lingerTime.
func (c *lingeringConn) Close() error {
	if c.sending.CompareAndSwap(true, false) {
		c.drain()
	}
	return c.TCPConn.Close()
}

func (c *lingeringConn) drain() {
	if c.CloseWrite() != nil {
		return // the client has closed the connection
	}
	end := time.Now().Add(lingerTime)
	for now := time.Now(); now.Before(end) && !c.listener.closed.Load(); now = time.Now() {
		if c.SetReadDeadline(now.Add(min(lingerStep, end.Sub(now)))) != nil {
			return
		}
		if _, err := io.Copy(io.Discard, c.TCPConn); !errors.Is(err, os.ErrDeadlineExceeded) {
			return // nil: the client has ended the connection
		}
	}
}

type lingeringKey struct{}

// withLingering makes the connection of a request known to stallWriter. It is for the ConnContext of a server.
func withLingering(ctx context.Context, conn net.Conn) context.Context {
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	if strict, is := conn.(*strictConn); is {
		conn = strict.lingeringConn
	}
	if lingering, is := conn.(*lingeringConn); is {
		return context.WithValue(ctx, lingeringKey{}, lingering)
	}
	return ctx
}

// lingers makes the connection of a request linger when it is closed, which must happen after this response.
func lingers(r *stdhttp.Request) {
	if conn, is := r.Context().Value(lingeringKey{}).(*lingeringConn); is {
		conn.sending.Store(true)
	}
}
