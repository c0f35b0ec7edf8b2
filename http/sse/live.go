package sse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	stdhttp "net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
)

// liveStream is a stream on an HTTP/1.1 connection that was taken over from net/http. While it is idle, it has no
// goroutine and no buffers, and takes a few hundred bytes. When there are events, the actor of the turn wakes it, a
// worker of the pump writes them without blocking, and it becomes idle again. Work that may block (a slow reader, TLS,
// reading the durable log) runs in a goroutine of its own until the stream has caught up.
//
// Concurrency: Wake, end and beat may be called by any goroutine. Everything else belongs to the goroutine that runs
// the stream. The goroutine whose event returns streamStart runs the stream, or passes it to the pump, which runs it.
type liveStream struct {
	server    *Server
	conn      net.Conn
	raw       syscall.RawConn // nil: every write to this connection may block
	account   protocol.AccountID
	session   protocol.SessionID
	requestID string
	slot      streamSlot // set before the first run

	state        liveState
	cause        atomic.Int32 // why the stream must end; causeNone: it continues
	heartbeatDue atomic.Bool  // a heartbeat comment is due
	lastWrite    atomic.Int64 // when the last write ended, as time since processStart

	// Owned by the goroutine that runs the stream.
	source     source
	ended      func()    // see Stream.Ended; nil once it was called
	deadline   time.Time // set on the connection
	incomplete bool      // the last write was incomplete

	mu         sync.Mutex
	blocked    bool               // guarded by mu; a write is waiting for the client
	cancelWait context.CancelFunc // guarded by mu; ends a wait for the log; nil: no wait
}

// The causes for which a liveStream must end.
const (
	causeNone         int32 = iota
	causeDisconnected       // the client closed its side, or the connection broke
	causeRevoked            // the session ended
	causeClosing            // the server is closing
)

// closeGrace limits the time for writing the end of a stream whose session has ended or whose server is closing.
const closeGrace = time.Second

var (
	processStart = time.Now()
	errEnded     = errors.New("the stream must end")
)

// takeOver moves the connection of the request to a liveStream if it is an HTTP/1.1 connection. It returns false if the
// handler keeps the connection.
//
// The response has Connection: close, since the connection cannot be returned to net/http. Its body is chunked all the
// same: the last chunk lets a client or a proxy distinguish a stream that ended from one that was cut off.
func (s *Server) takeOver(w stdhttp.ResponseWriter, r *stdhttp.Request, stream *Stream) (bool, error) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return false, nil
	}
	conn, _, err := stdhttp.NewResponseController(w).Hijack()
	if errors.Is(err, stdhttp.ErrNotSupported) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("taking over a connection: %w", err)
	}
	l := &liveStream{
		server: s, conn: conn, raw: rawConn(conn), account: stream.Account, session: stream.Session, requestID: stream.RequestID,
		source: source{reader: stream.Reader, render: stream.render(), chunked: true}, ended: stream.Ended,
	}
	l.source.atEnd = l.release
	const size = 1 << 10
	l.source.head = appendChunk(appendHead(make([]byte, 0, size), w.Header(), time.Now()), func(b []byte) []byte {
		return stream.render()(appendRetry(b, retryMillis), stream.First)
	})
	l.state.begin()
	l.lastWrite.Store(int64(time.Since(processStart)))
	s.sessions.add(l.account, l.session, l)
	l.slot = s.live.add(l, conn, s.log)
	out := s.pump.writer()
	defer s.pump.done(out)
	l.run(out)
	return true, nil
}

// rawConn returns the RawConn of a connection, for writes that do not block; nil if the connection is not TCP.
func rawConn(conn net.Conn) syscall.RawConn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Wake implements tail.Waker.
func (l *liveStream) Wake() {
	if l.state.on(streamWake) == streamStart {
		l.server.pump.push(l)
	}
}

// becomeIdle ends a run that has caught up with the log. It returns false if the stream was woken in the meantime; the
// run then continues.
func (l *liveStream) becomeIdle() bool { return l.state.on(streamCaughtUp) != streamContinue }

// end requests the end of the stream. Any goroutine may call it.
func (l *liveStream) end(cause int32) {
	if !l.cause.CompareAndSwap(causeNone, cause) {
		return
	}
	l.mu.Lock()
	if l.cancelWait != nil {
		l.cancelWait()
	}
	if l.blocked {
		_ = l.conn.SetWriteDeadline(processStart) // in the past, so the write returns
	}
	l.mu.Unlock()
	l.Wake()
}

func (l *liveStream) sessionEnded() { l.end(causeRevoked) }

// checkHeartbeat requests a heartbeat comment if one is due.
func (l *liveStream) checkHeartbeat(now time.Duration) {
	if heartbeatIsDue(time.Duration(l.lastWrite.Load()), now) {
		l.heartbeatDue.Store(true)
		l.Wake()
	}
}

// run writes for as long as that does not block. Then the stream becomes idle, ends, or continues in runBlocking.
func (l *liveStream) run(out *streamWriter) {
	defer l.recoverPanic()
	for {
		switch rest, p, err := l.advance(out); {
		case err != nil:
			l.finish(err)
			return
		case len(rest) > 0 || p == progressInLog:
			go l.runBlocking(rest, p)
			return
		case p == progressEnded:
			l.finish(nil)
			return
		case l.becomeIdle():
			return
		}
	}
}

// advance writes the events that are in memory. rest is what the connection did not accept without blocking.
func (l *liveStream) advance(out *streamWriter) (rest []byte, p progress, err error) {
	for {
		b, shared, p := l.next(out)
		if len(b) > 0 {
			if rest, err = l.try(out, b); err != nil {
				return nil, p, err
			}
		}
		if len(rest) > 0 && !shared {
			rest = bytes.Clone(rest) // the next stream reuses the buffers
		}
		if len(rest) > 0 || p != progressMore {
			return rest, p, nil
		}
	}
}

// next returns the bytes to write next; see source.next.
func (l *liveStream) next(out *streamWriter) (b []byte, shared bool, p progress) {
	return l.source.next(l, &out.buffers, l.cause.Load() != causeNone, l.heartbeatDue.Swap(false))
}

// try writes what the connection accepts without blocking, and returns the rest.
func (l *liveStream) try(out *streamWriter, b []byte) (rest []byte, err error) {
	if l.raw == nil {
		return b, nil
	}
	n, err := out.try(l.raw, b)
	l.lastWrite.Store(int64(time.Since(processStart)))
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	l.incomplete = n < len(b)
	return b[n:], err
}

// write blocks until b is written, for at most the time of a flush.
func (l *liveStream) write(b []byte) error {
	l.mu.Lock()
	if l.cause.Load() != causeNone && l.incomplete {
		l.mu.Unlock()
		return errEnded
	}
	l.blocked = true
	limit := flushDeadline
	if l.cause.Load() != causeNone {
		limit = closeGrace
	}
	if now := time.Now(); limit == closeGrace || l.deadline.Sub(now) < minFlushTime {
		l.deadline = now.Add(limit)
		_ = l.conn.SetWriteDeadline(l.deadline) // on a closed connection, the write fails
	}
	l.mu.Unlock()
	l.incomplete = true
	_, err := l.conn.Write(b)
	l.lastWrite.Store(int64(time.Since(processStart)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = false
	if err == nil {
		l.incomplete = false
	}
	if err == nil && l.raw != nil && l.cause.Load() == causeNone { // try sets no deadline; an old one would make it fail
		l.deadline = time.Time{}
		err = l.conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// runBlocking runs the stream in a goroutine of its own, which may block, until it has caught up with the log.
func (l *liveStream) runBlocking(rest []byte, p progress) {
	defer l.recoverPanic()
	out := l.server.pump.writer()
	defer l.server.pump.done(out)
	for {
		if len(rest) > 0 {
			if err := l.write(rest); err != nil {
				l.finish(err)
				return
			}
		}
		switch p {
		case progressEnded:
			l.finish(nil)
			return
		case progressCaughtUp:
			if l.becomeIdle() {
				return
			}
		case progressInLog:
			rest, p = l.fromLog()
			continue
		case progressMore:
		}
		rest, _, p = l.next(out)
	}
}

// fromLog waits for events that are not in memory, or until a heartbeat comment is due, and returns the bytes to write.
func (l *liveStream) fromLog() (b []byte, p progress) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.mu.Lock()
	l.cancelWait = cancel
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.cancelWait = nil
		l.mu.Unlock()
	}()
	if l.cause.Load() != causeNone {
		return l.source.appendEnd(nil), progressEnded
	}
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	b, p, err := l.source.fromLog(ctx, timer.C)
	if err == nil {
		return b, p
	}
	if l.cause.Load() == causeNone {
		l.server.log.Info("stream failed", zap.String("request_id", l.requestID), zap.Error(err))
	}
	return l.source.appendEnd(nil), progressEnded
}

// finish closes the connection. The stream does not run again.
func (l *liveStream) finish(err error) {
	if err != nil && !errors.Is(err, errEnded) && l.cause.Load() == causeNone {
		reason := "the client disconnected"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			reason = "the client reads too slowly"
		}
		l.server.log.Debug("stream failed", zap.String("request_id", l.requestID), zap.String("reason", reason))
	}
	l.release()
	l.server.sessions.remove(l.session, l)
	if l.raw == nil { // closing a TLS connection may block
		go func() {
			_ = l.conn.Close() // closed even if it returns an error
			l.server.live.remove(l.slot)
		}()
		return
	}
	_ = l.conn.Close()
	l.server.live.remove(l.slot)
}

// release reports the end of the stream. Only the first call has an effect.
func (l *liveStream) release() {
	if l.ended == nil {
		return
	}
	ended := l.ended
	l.ended = nil
	l.source.reader.Leave()
	ended()
}

// recoverPanic recovers from a panic of this stream, so that it does not end the others.
func (l *liveStream) recoverPanic() {
	cause := recover()
	if cause == nil {
		return
	}
	l.server.log.Error("a stream panicked", zap.String("request_id", l.requestID), zap.String("kind", fmt.Sprintf("%T", cause)),
		zap.String("stack", string(debug.Stack())))
	l.incomplete = true
	l.finish(nil)
}
