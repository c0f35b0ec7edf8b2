package http

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

	"turnstone/actors"
	"turnstone/protocol"
)

// liveStream is a stream on an HTTP/1.1 connection that was taken over from net/http: no goroutine, no buffers, a few
// hundred bytes. Its turn wakes it, a worker of the pump writes what is there without waiting, and it is at rest again.
// What has to wait (a slow reader, TLS, the durable log) goes on in a goroutine of its own until it is level again.
//
// Concurrency: Wake, end and beat may be called from anywhere. Everything else belongs to whoever runs the stream: state
// is resting while nobody does, and whoever moves it away from resting runs the stream, or hands it to who will.
type liveStream struct {
	server    *Server
	conn      net.Conn
	raw       syscall.RawConn // nil: writing to this connection may block
	reader    *actors.Reader
	account   protocol.AccountID
	session   protocol.SessionID
	requestID string
	method    string
	pattern   string
	began     time.Time

	state atomic.Int32
	cause atomic.Int32 // why it has to end
	quiet atomic.Bool  // for so long that a comment is due
	said  atomic.Int64 // when something was written, as time since start
	place place        // guarded by server.live.mu

	// Of whoever runs it.
	opening  []byte    // what is written first; nil once it was
	deadline time.Time // that is on the connection
	torn     bool      // a write was cut off in the middle
	released bool

	mu      sync.Mutex
	blocked bool               // guarded by mu; a write waits for the client
	stop    context.CancelFunc // guarded by mu; ends a wait for the log; nil without
}

// The states of a liveStream.
const (
	resting int32 = iota
	running
	wanted // running, and woken meanwhile
)

// Why a liveStream has to end.
const (
	goesOn  int32 = iota
	left          // the client closed its side, or the connection broke
	revoked       // the session ended
	closing       // the server closes
)

// farewell is how long the end of a stream whose session is over, or whose server closes, may take to be written.
const farewell = time.Second

var (
	start    = time.Now()
	errEnded = errors.New("the stream has to end")
)

// takeOver makes a liveStream of the request's connection, if it is one of HTTP/1.1; false: it stays the handler's.
//
// The answer says Connection: close, since the connection cannot be given back, and is chunked all the same: the last
// chunk tells a client, or a proxy between, a stream that ended from one that broke off.
func (s *Server) takeOver(w stdhttp.ResponseWriter, r *stdhttp.Request, opening []byte, reader *actors.Reader) (bool, error) {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return false, nil
	}
	conn, _, err := stdhttp.NewResponseController(w).Hijack()
	if errors.Is(err, stdhttp.ErrNotSupported) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("taking a connection over: %w", err)
	}
	ex := exchangeOf(r.Context())
	ex.handedOver = true
	l := &liveStream{
		server: s, conn: conn, raw: rawConn(conn), reader: reader, account: ex.caller.AccountID, session: ex.caller.SessionID,
		requestID: ex.requestID, method: knownMethod(r.Method), pattern: ex.pattern, began: ex.began,
	}
	const room = 1 << 10
	l.opening = appendHead(make([]byte, 0, room), w.Header(), time.Now())
	l.opening = appendChunk(l.opening, func(b []byte) []byte { return append(b, opening...) })
	l.state.Store(running)
	l.said.Store(int64(time.Since(start)))
	s.watches.add(l.account, l.session, l)
	s.live.add(l, s.log)
	out := s.pump.writer()
	defer s.pump.done(out)
	l.run(out)
	return true, nil
}

// rawConn lets writes be tried without waiting; nil where that is not possible.
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

// Wake implements actors.Waker.
func (l *liveStream) Wake() {
	for {
		switch state := l.state.Load(); {
		case state == resting && l.state.CompareAndSwap(resting, running):
			l.server.pump.push(l)
			return
		case state == running && l.state.CompareAndSwap(running, wanted), state == wanted:
			return
		}
	}
}

// rest ends a run that is level with the log; false: something has come meanwhile.
func (l *liveStream) rest() bool {
	if l.state.CompareAndSwap(running, resting) {
		return true
	}
	l.state.Store(running)
	return false
}

// end asks for the end of the stream, from anywhere.
func (l *liveStream) end(cause int32) {
	if !l.cause.CompareAndSwap(goesOn, cause) {
		return
	}
	l.mu.Lock()
	if l.stop != nil {
		l.stop()
	}
	if l.blocked {
		_ = l.conn.SetWriteDeadline(start) // long ago: the write returns
	}
	l.mu.Unlock()
	l.Wake()
}

func (l *liveStream) sessionEnded() { l.end(revoked) }

// beat has a comment written if nothing else was for a while.
func (l *liveStream) beat(now time.Duration) {
	if now-time.Duration(l.said.Load()) >= heartbeat-sweepEvery {
		l.quiet.Store(true)
		l.Wake()
	}
}

// run goes on as far as that needs no waiting.
func (l *liveStream) run(out *writer) {
	defer l.guard()
	for {
		switch rest, taken, err := l.advance(out); {
		case err != nil:
			l.finish(err)
			return
		case len(rest) > 0 || taken == actors.TakenElsewhere:
			go l.goOn(rest, taken)
			return
		case taken != actors.TakenLive:
			l.finish(nil)
			return
		case l.rest():
			return
		}
	}
}

// advance writes what is there. rest is what the connection did not take at once.
func (l *liveStream) advance(out *writer) (rest []byte, taken actors.Taken, err error) {
	for {
		b, shared, taken := l.gather(out)
		if len(b) > 0 {
			if rest, err = l.try(out, b); err != nil {
				return nil, taken, err
			}
		}
		if len(rest) > 0 && !shared {
			rest = bytes.Clone(rest) // the writer's room is for the next one
		}
		if len(rest) > 0 || taken != actors.TakenSome {
			return rest, taken, nil
		}
	}
}

// gather finds what is to be written: bytes that all readers share, or what is in the writer's room.
func (l *liveStream) gather(out *writer) (b []byte, shared bool, taken actors.Taken) {
	runs, taken := l.reader.Take(l, out.runs[:0])
	out.runs = runs
	if l.cause.Load() != goesOn {
		taken = actors.TakenAll
	}
	if len(runs) == 1 && runs[0].Whole() && l.opening == nil && taken == actors.TakenSome {
		return runs[0].Rendered(renderChunk), true, taken
	}
	b = append(out.room[:0], l.opening...)
	l.opening = nil
	for _, run := range runs {
		if run.Whole() {
			b = append(b, run.Rendered(renderChunk)...)
		} else {
			b = appendEventChunk(b, run.Frames())
		}
	}
	if l.quiet.Swap(false) && len(b) == 0 && taken == actors.TakenLive {
		b = appendCommentChunk(b)
	}
	switch taken {
	case actors.TakenMoved:
		b = l.appendLast(appendRetryChunk(b, handOnMillis()))
	case actors.TakenAll:
		b = l.appendLast(b)
	}
	out.room = b
	return b, false, taken
}

// appendLast ends the body. Before the client can see that, its place is free and the request in the log.
func (l *liveStream) appendLast(b []byte) []byte {
	l.release()
	return append(b, lastChunk...)
}

// try writes what the connection takes at once.
func (l *liveStream) try(out *writer, b []byte) (rest []byte, err error) {
	if l.raw == nil {
		return b, nil
	}
	n, err := out.try(l.raw, b)
	l.said.Store(int64(time.Since(start)))
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	l.torn = n < len(b)
	return b[n:], err
}

// write waits for the client, for as long as a flush may take.
func (l *liveStream) write(b []byte) error {
	l.mu.Lock()
	if l.cause.Load() != goesOn && l.torn {
		l.mu.Unlock()
		return errEnded
	}
	l.blocked = true
	patience := flushDeadline
	if l.cause.Load() != goesOn {
		patience = farewell
	}
	if now := time.Now(); patience == farewell || l.deadline.Sub(now) < deadlineLeft {
		l.deadline = now.Add(patience)
		_ = l.conn.SetWriteDeadline(l.deadline) // a connection that is closed says so when it is written to
	}
	l.mu.Unlock()
	l.torn = true
	_, err := l.conn.Write(b)
	l.said.Store(int64(time.Since(start)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = false
	if err == nil {
		l.torn = false
	}
	if err == nil && l.raw != nil && l.cause.Load() == goesOn { // tries know no deadline
		l.deadline = time.Time{}
		err = l.conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// goOn waits for what run cannot wait for, until the stream is level with the log and the client.
func (l *liveStream) goOn(rest []byte, taken actors.Taken) {
	defer l.guard()
	out := l.server.pump.writer()
	defer l.server.pump.done(out)
	for {
		if len(rest) > 0 {
			if err := l.write(rest); err != nil {
				l.finish(err)
				return
			}
		}
		switch taken {
		case actors.TakenAll, actors.TakenMoved:
			l.finish(nil)
			return
		case actors.TakenLive:
			if l.rest() {
				return
			}
		case actors.TakenElsewhere:
			var err error
			if rest, taken, err = l.fromLog(); err != nil {
				l.finish(err)
				return
			}
			continue
		case actors.TakenSome:
		}
		rest, _, taken = l.gather(out)
	}
}

// fromLog waits for events that are not in memory, or for a comment to be due.
func (l *liveStream) fromLog() (b []byte, taken actors.Taken, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.mu.Lock()
	l.stop = cancel
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.stop = nil
		l.mu.Unlock()
	}()
	if l.cause.Load() != goesOn {
		return l.appendLast(nil), actors.TakenAll, nil
	}
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	frames, ended, err := l.reader.Next(ctx, timer.C)
	switch {
	case errors.Is(err, actors.ErrMoved):
		return l.appendLast(appendRetryChunk(nil, handOnMillis())), actors.TakenMoved, nil
	case l.cause.Load() != goesOn:
		return l.appendLast(nil), actors.TakenAll, nil
	case err != nil:
		l.server.log.Info("a stream broke off", zap.String("request_id", l.requestID), zap.Error(err))
		return l.appendLast(nil), actors.TakenAll, nil
	case ended:
		return l.appendLast(appendEventChunk(nil, frames)), actors.TakenAll, nil
	case len(frames) == 0:
		return appendCommentChunk(nil), actors.TakenSome, nil
	}
	return appendEventChunk(nil, frames), actors.TakenSome, nil
}

// finish closes the connection; the stream is never run again.
func (l *liveStream) finish(err error) {
	if err != nil && !errors.Is(err, errEnded) && l.cause.Load() == goesOn {
		reason := "the client is gone"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			reason = "the client reads too slowly"
		}
		l.server.log.Debug("a stream broke off", zap.String("request_id", l.requestID), zap.String("reason", reason))
	}
	l.release()
	l.server.watches.remove(l.session, l)
	if l.raw == nil { // the farewell of TLS may have to wait
		go func() {
			_ = l.conn.Close() // whatever it says, it is closed
			l.server.live.remove(l)
		}()
		return
	}
	_ = l.conn.Close()
	l.server.live.remove(l)
}

// release gives up the account's place and logs and counts the request, once.
func (l *liveStream) release() {
	if l.released {
		return
	}
	l.released = true
	l.reader.Leave()
	l.server.streams.leave(l.account)
	l.server.ended(&ended{l.requestID, l.method, l.pattern, stdhttp.StatusOK, l.began, &l.account})
}

// guard keeps a panic of one stream from the others.
func (l *liveStream) guard() {
	cause := recover()
	if cause == nil {
		return
	}
	l.server.log.Error("a stream panicked", zap.String("request_id", l.requestID), zap.String("kind", fmt.Sprintf("%T", cause)),
		zap.String("stack", string(debug.Stack())))
	l.torn = true
	l.finish(nil)
}
