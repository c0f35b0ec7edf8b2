package listener

import (
	"bufio"
	"cmp"
	"errors"
	"io"
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
	// readStall limits the time in which a client sends the rest of a body that the handler does not read: net/http reads
	// it before the connection serves another request. Handlers limit what they read themselves.
	readStall = 15 * time.Second
)

// Options limit the resources that clients can use on a listener.
type Options struct {
	Log            *zap.Logger
	MaxConnections int           // further connections are closed at once; 0: no limit
	WriteStall     time.Duration // 0: writeStall
	ReadStall      time.Duration // 0: readStall
}

// New returns an http.Server whose connections are limited in number, time and memory. A client that reads nothing of a
// response for WriteStall is disconnected. Streams set their own deadline for each flush. The connections of streams
// that were taken over from the server still count as connections of the listener.
func New(handler stdhttp.Handler, options Options) *stdhttp.Server {
	options.WriteStall = cmp.Or(options.WriteStall, writeStall)
	options.ReadStall = cmp.Or(options.ReadStall, readStall)
	server := &stdhttp.Server{
		Handler: withStallTimeouts(handler, options), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2: &stdhttp.HTTP2Config{WriteByteTimeout: options.WriteStall},
		// Otherwise net/http itself responds to "OPTIONS *", without the headers that every response has.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     zap.NewStdLog(options.Log.Named("listener")), ConnContext: withLingering,
	}
	if options.MaxConnections > 0 {
		hijacked, _ := handler.(interface{ OpenStreams() int })
		server.ConnState = (&connections{limit: int64(options.MaxConnections), hijacked: hijacked}).connState
	}
	return server
}

// Serve serves the connections of a TCP listener until the server, which New has made, is closed. The connections use TLS
// if the server has a configuration for it.
func Serve(server *stdhttp.Server, socket net.Listener) error {
	socket = &lingeringListener{Listener: socket}
	if server.TLSConfig != nil {
		return server.ServeTLS(socket, "", "")
	}
	return server.Serve(strictListener{socket})
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

// withStallTimeouts returns a handler whose response is written in pieces, each with a deadline of its own. The rest of a
// body that it does not read has a deadline too.
func withStallTimeouts(next stdhttp.Handler, options Options) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		p := &stallWriter{ResponseWriter: w, control: stdhttp.NewResponseController(w), options: options}
		if r.ProtoMajor == 1 && r.ContentLength != 0 {
			p.body = &body{ReadCloser: r.Body, long: r.ContentLength > maxDrained}
			r = r.WithContext(r.Context()) // net/http examines the Body of its own
			r.Body = p.body
		}
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(p, r)
		p.extend() // for what the server still has to write and to read
		if p.body.remains() && w.Header().Get("Connection") == "close" {
			lingers(r)
		}
		if r.Header.Get("Expect") != "" && p.body.remains() && !p.hijacked {
			_ = p.control.SetReadDeadline(time.Now()) // the client was not asked for it, and the connection ends
		}
	})
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	long  bool        // the server does not read it to its end by itself
	ended atomic.Bool // it was read to its end
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// remains reports whether there is a body that was not read to its end.
func (b *body) remains() bool { return b != nil && !b.ended.Load() }

type stallWriter struct {
	stdhttp.ResponseWriter
	control  *stdhttp.ResponseController
	options  Options
	body     *body       // nil: the request has none, or is not one of HTTP/1
	hijacked bool        // the connection was hijacked
	limited  atomic.Bool // there is a deadline for the body
}

// extend gives the client new time to read the response, and limits the time to send the rest of the body if it is not
// limited yet. A body that was read to its end gets no deadline, which would end the context of the request.
func (p *stallWriter) extend() {
	if p.hijacked {
		return
	}
	now := time.Now()
	_ = p.control.SetWriteDeadline(now.Add(p.options.WriteStall)) // on a closed connection, the write fails
	if p.body.remains() && p.limited.CompareAndSwap(false, true) {
		_ = p.control.SetReadDeadline(now.Add(p.options.ReadStall))
	}
}

// SetReadDeadline sets a deadline for the body; the zero time: none. The handler may call it from any goroutine.
func (p *stallWriter) SetReadDeadline(at time.Time) error {
	p.limited.Store(!at.IsZero())
	return p.control.SetReadDeadline(at)
}

// WriteHeader starts the response. A connection on which the client is still sending a long body ends with it.
func (p *stallWriter) WriteHeader(status int) {
	if status >= stdhttp.StatusOK && p.body.remains() && p.body.long {
		p.Header().Set("Connection", "close")
	}
	p.ResponseWriter.WriteHeader(status)
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
	if strict, is := conn.(*strictConn); is {
		conn = strict.TCPConn
	}
	return conn, buffers, err
}

func (p *stallWriter) Unwrap() stdhttp.ResponseWriter { return p.ResponseWriter }
