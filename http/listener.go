package http

import (
	"bufio"
	"net"
	stdhttp "net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Limits of a connection (the body and stream limits are stated where they are applied).
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	// writeStall is how long one piece of an answer may wait for its reader. Each piece that is taken begins it anew.
	writeStall = 30 * time.Second
	writePiece = 64 << 10
)

// ListenerOptions bound what clients may hold of a listener.
type ListenerOptions struct {
	Log            *zap.Logger
	MaxConnections int           // further ones are closed at once; 0: no bound
	WriteStall     time.Duration // 0: writeStall
}

// Listener is an http.Server whose connections are bounded in number, time and memory: a reader that takes nothing of an
// answer for WriteStall is disconnected. Streams set their own deadline for each flush, and those that a handler took
// over from the server go on being counted.
func Listener(handler stdhttp.Handler, options ListenerOptions) *stdhttp.Server {
	if options.WriteStall == 0 {
		options.WriteStall = writeStall
	}
	server := &stdhttp.Server{
		Handler: patient(handler, options.WriteStall), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2:    &stdhttp.HTTP2Config{WriteByteTimeout: options.WriteStall},
		ErrorLog: zap.NewStdLog(options.Log.Named("listener")),
	}
	if options.MaxConnections > 0 {
		taken, _ := handler.(interface{ OpenStreams() int })
		server.ConnState = (&connections{most: int64(options.MaxConnections), taken: taken}).changed
	}
	return server
}

// connections counts those of a listener and closes the ones beyond the bound before anything is read from them.
type connections struct {
	most  int64
	taken interface{ OpenStreams() int } // connections that the server knows nothing of any more; nil: none
	open  atomic.Int64
}

func (c *connections) changed(conn net.Conn, state stdhttp.ConnState) {
	switch state {
	case stdhttp.StateNew:
		open := c.open.Add(1)
		if c.taken != nil {
			open += int64(c.taken.OpenStreams())
		}
		if open > c.most {
			_ = conn.Close() // the server finds it closed
		}
	case stdhttp.StateClosed, stdhttp.StateHijacked:
		c.open.Add(-1)
	case stdhttp.StateActive, stdhttp.StateIdle:
	}
}

// OpenStreams is how many connections were taken over from the server.
func (s *Server) OpenStreams() int {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.live.open
}

// patient has every answer written in pieces, each with a deadline of its own.
func patient(next stdhttp.Handler, stall time.Duration) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		p := &patientWriter{ResponseWriter: w, control: stdhttp.NewResponseController(w), stall: stall}
		defer p.extend() // for what the server has not written yet
		next.ServeHTTP(p, r)
	})
}

type patientWriter struct {
	stdhttp.ResponseWriter
	control *stdhttp.ResponseController
	stall   time.Duration
	taken   bool // the connection is somebody else's
}

func (p *patientWriter) extend() {
	if !p.taken {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.stall)) // a connection that is closed says so when it is written to
	}
}

func (p *patientWriter) Write(b []byte) (n int, err error) {
	if p.Header().Get("Content-Type") == eventStreamType { // sets its own deadlines
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

// Hijack gives the connection away, and its deadlines with it.
func (p *patientWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := p.control.Hijack()
	p.taken = err == nil
	return conn, buffers, err
}

func (p *patientWriter) Unwrap() stdhttp.ResponseWriter { return p.ResponseWriter }
