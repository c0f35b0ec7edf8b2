package sse

import (
	"context"
	stdhttp "net/http"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

const (
	// ContentType is the media type of a stream.
	ContentType = "text/event-stream"

	flushDeadline          = 10 * time.Second // for one flush; a slower reader is disconnected, and resumes
	minFlushTime           = 7 * time.Second  // minimum for a flush: moving the deadline each time costs as much as the write
	retryMillis            = 2000             // the reconnection time of an EventSource
	maxHandoverRetryMillis = 1000             // upper bound of the random reconnection time when a node hands over its turns
)

// Server writes the streams of a node. Its methods may be called from any goroutine.
type Server struct {
	log      *zap.Logger
	sessions sessionStreams
	live     liveStreams
	pump     pump
}

// NewServer returns a server without streams.
func NewServer(log *zap.Logger) *Server { return &Server{log: log} }

// Reader reads the events of a stream that follow a cursor. The packages turn, follow and feed implement it.
//
// Order: that of the log, each event once. Resume: after any event, with a new Reader. Loss: none, unless the implementation says
// otherwise: what Take has not in memory, Next reads. Slow reader: it delays neither what is read nor other readers. Close: after the
// last event, or when the node drains or stops. Concurrency: used by one goroutine at a time; only the waker is notified by others.
type Reader interface {
	// Take appends the next events that are in memory to into, and never waits. The result says what follows: TakenSome: call Take
	// again. TakenCaughtUp: the waker is notified once when there may be more. TakenNotInMemory: call Next. TakenEnd and
	// TakenMoved: nothing.
	Take(waker tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken)
	// Next returns the next events that are not in memory, in the form that Stream.Render reads, and whether the stream ends with them.
	// If there are none, it either returns tail.ErrNone, and the caller calls Take again, or it waits for them until beat
	// fires: then it returns no frames and no error, and the caller sends a heartbeat. It returns tail.ErrMoved if the client should
	// reconnect to another node, and ctx's error when ctx is done. Any other error ends the stream.
	Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error)
	// Leave ends the reading. It is called once, at the end.
	Leave()
}

// Stream is one stream of events.
type Stream struct {
	Reader Reader
	First  []byte // frames that precede those of Reader
	// Render appends frames of First and Reader as server-sent events; nil: they are events of a turn, one per line. A
	// Reader whose Take returns runs needs nil, because readers share the rendered form of a run.
	Render  func(b, frames []byte) []byte
	Account protocol.AccountID
	Session protocol.SessionID // the stream ends with it
	// RequestID is that of the request, for the log.
	RequestID string
	// Ended is called once if the stream has taken over the connection, before the client can see its end.
	Ended func()
}

// Serve responds with a stream until the log ends, the client disconnects or the session ends. The caller has set the
// headers of the response other than those of every stream.
//
// Order: as the log. Resume: every event carries its sequence as id. Slow reader: a flush that takes longer than
// flushDeadline ends this stream only; nothing is dropped, and the reader resumes. Close: the body ends after the last
// event or, when the node hands over its turns, after a retry field of less than a second. An error after the first
// byte ends the connection; no event reports it.
//
// An HTTP/1.1 connection is taken over: Serve returns at once with takenOver, and the stream continues. On other
// connections Serve returns when the stream has ended.
func (s *Server) Serve(w stdhttp.ResponseWriter, r *stdhttp.Request, stream *Stream) (takenOver bool, err error) {
	SetHeaders(w.Header())
	if takenOver, err = s.takeOver(w, r, stream); takenOver || err != nil {
		return takenOver, err
	}
	return false, s.serveHandler(w, r, stream)
}

// SetHeaders sets the headers of the response that every stream has.
func SetHeaders(header stdhttp.Header) {
	header.Set("Content-Type", ContentType)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
}

// EndSession ends every stream of a session.
func (s *Server) EndSession(session protocol.SessionID) { s.sessions.end(session) }

// Sessions returns the sessions with open streams, and the account of each.
func (s *Server) Sessions() map[protocol.SessionID]protocol.AccountID { return s.sessions.all() }

// TakenOver returns the number of open streams whose connections were taken over.
func (s *Server) TakenOver() int {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.live.open
}

// Close waits for the streams whose connections were taken over to end by themselves. When ctx is done, it ends the
// others, and returns when all have ended. http.Server.Shutdown does not know these streams; call Close after it.
func (s *Server) Close(ctx context.Context) {
	select {
	case <-s.live.whenDrained():
		return
	case <-ctx.Done():
	}
	s.live.each(func(open watchedStream) { open.end(causeClosing) })
	<-s.live.whenDrained()
}
