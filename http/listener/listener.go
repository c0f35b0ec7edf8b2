package listener

import (
	"bufio"
	"net"
	stdhttp "net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/http/sse"
)

// Limits of a connection. The limits of bodies and streams are defined where they are applied.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	// writeStall limits the time for which one piece of a response waits for its reader. Each piece has a deadline of
	// its own.
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

// Options limit the resources that clients can use on a listener.
type Options struct {
	Log            *zap.Logger
	MaxConnections int           // further connections are closed at once; 0: no limit
	WriteStall     time.Duration // 0: writeStall
}

// New returns an http.Server whose connections are limited in number, time and memory. A client that reads nothing of a
// response for WriteStall is disconnected. Streams set their own deadline for each flush. The connections of streams
// that were taken over from the server still count as connections of the listener.
func New(handler stdhttp.Handler, options Options) *stdhttp.Server {
	if options.WriteStall == 0 {
		options.WriteStall = writeStall
	}
	server := &stdhttp.Server{
		Handler: withStallTimeout(handler, options.WriteStall), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2:    &stdhttp.HTTP2Config{WriteByteTimeout: options.WriteStall},
		ErrorLog: zap.NewStdLog(options.Log.Named("listener")),
	}
	if options.MaxConnections > 0 {
		hijacked, _ := handler.(interface{ OpenStreams() int })
		server.ConnState = (&connections{limit: int64(options.MaxConnections), hijacked: hijacked}).connState
	}
	return server
}

// connections counts the connections of a listener, and closes those beyond the limit before anything is read from
// them.
type connections struct {
	limit    int64
	hijacked interface{ OpenStreams() int } // counts hijacked connections, which the server no longer tracks; nil: none
	open     atomic.Int64
}

func (c *connections) connState(conn net.Conn, state stdhttp.ConnState) {
	switch state {
	case stdhttp.StateNew:
		open := c.open.Add(1)
		if c.hijacked != nil {
			open += int64(c.hijacked.OpenStreams())
		}
		if open > c.limit {
			_ = conn.Close() // the server fails to read from it
		}
	case stdhttp.StateClosed, stdhttp.StateHijacked:
		c.open.Add(-1)
	case stdhttp.StateActive, stdhttp.StateIdle:
	}
}

// withStallTimeout returns a handler whose response is written in pieces, each with a deadline of its own.
func withStallTimeout(next stdhttp.Handler, stall time.Duration) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		p := &stallWriter{ResponseWriter: w, control: stdhttp.NewResponseController(w), stall: stall}
		defer p.extend() // for what the server still has to write
		next.ServeHTTP(p, r)
	})
}

type stallWriter struct {
	stdhttp.ResponseWriter
	control  *stdhttp.ResponseController
	stall    time.Duration
	hijacked bool // the connection was hijacked
}

func (p *stallWriter) extend() {
	if !p.hijacked {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.stall)) // on a closed connection, the write fails
	}
}

func (p *stallWriter) Write(b []byte) (n int, err error) {
	if p.Header().Get("Content-Type") == sse.ContentType { // streams set their own deadlines
		return p.ResponseWriter.Write(b)
	}
	for {
		piece := b[n:min(len(b), n+writePiece)]
		p.extend()
		written, err := p.ResponseWriter.Write(piece)
		if n += written; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Hijack hands over the connection together with its deadlines.
func (p *stallWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := p.control.Hijack()
	p.hijacked = err == nil
	return conn, buffers, err
}

func (p *stallWriter) Unwrap() stdhttp.ResponseWriter { return p.ResponseWriter }
