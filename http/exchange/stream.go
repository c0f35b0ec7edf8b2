package exchange

import (
	"context"
	"fmt"
	stdhttp "net/http"

	"turnstone/http/route"
	"turnstone/http/sse"
	"turnstone/protocol"
)

const (
	defaultStreams = 50 // default of the limit of open streams per account
	retryStreams   = 5  // seconds; the Retry-After of an account with too many streams
)

// Streams serves the streams of a node, and limits how many of them an account may have open. Its methods may be called
// from any goroutine.
type Streams struct {
	server *sse.Server
	limits *Limits
	limit  int                             // per account
	Slots  SlotCounter[protocol.AccountID] // the open streams of each account
}

// NewStreams returns Streams without open ones. limit 0 stands for 50.
func NewStreams(server *sse.Server, limits *Limits, limit int) *Streams {
	if limit == 0 {
		limit = defaultStreams
	}
	return &Streams{server: server, limits: limits, limit: limit}
}

// Acquire takes one of the stream slots of an account, before any work for the stream. The caller defers Release.
func (s *Streams) Acquire(account protocol.AccountID) error {
	if !s.Slots.Take(account, s.limit) {
		return &protocol.Error{Code: protocol.CodeTooManyStreams, Detail: fmt.Sprintf("At most %d streams may be open.", s.limit), RetryAfter: retryStreams}
	}
	return nil
}

// Release returns the slot that Acquire took, unless the stream has taken over the connection of the request of ctx.
func (s *Streams) Release(ctx context.Context, account protocol.AccountID) {
	if !Of(ctx).TakenOver {
		s.Slots.Release(account)
	}
}

// Serve responds with a stream of the caller's account. Of the stream, it sets all that follows from the request.
// The response to HEAD has the headers of the stream only.
func (s *Streams) Serve(w stdhttp.ResponseWriter, r *stdhttp.Request, stream *sse.Stream) error {
	if r.Method == stdhttp.MethodHead {
		stream.Reader.Leave()
		sse.SetHeaders(w.Header())
		w.WriteHeader(stdhttp.StatusOK)
		return nil
	}
	ex := Of(r.Context())
	ex.ReleaseSlot() // streams have a limit of their own
	account, ended := ex.Caller.AccountID, CarrierOf(r.Context()).BeginStream()
	stream.Account, stream.Session, stream.RequestID = account, ex.Caller.SessionID, ex.ID
	stream.Ended = func() {
		s.Slots.Release(account)
		ended()
	}
	takenOver, err := s.server.Serve(w, r, stream)
	ex.TakenOver = takenOver
	return err
}

// Log is the log of work whose events are streamed.
type Log struct {
	Ended  bool  // no event follows
	Last   int64 // the sequence of the last event so far
	After  int64 // the sequence after which the client continues
	Follow func(after int64) sse.Reader
	// Snapshot returns an event that stands for the events so far, and the sequence of the last of them. The stream begins with it,
	// wherever the client is, unless the client has all events of ended work. nil: the stream begins with the event after After.
	Snapshot func() (event []byte, covers int64, err error)
}

// ServeLog responds with the events of a log: 204 if there will be none, and a conflict for a sequence that the log has not
// reached. Following work that has not ended is not limited; replaying ended work is. The slot is taken first, so that a
// request that gets none uses up nothing of that limit.
func (s *Streams) ServeLog(w stdhttp.ResponseWriter, r *stdhttp.Request, account protocol.AccountID, log *Log) error {
	complete := log.Ended && log.After >= log.Last
	switch {
	case complete: // no stream, so no slot is needed
	case log.Snapshot == nil && log.After > log.Last:
		return protocol.Conflict(protocol.CodeSequenceAhead, map[string]int64{"last_sequence": log.Last}, "There is no event with this sequence yet. Load the resource again.")
	default:
		if err := s.Acquire(account); err != nil {
			return err
		}
		defer s.Release(r.Context(), account)
	}
	if log.Ended {
		if err := s.limits.Draw(r.Context(), route.BucketReplays, account.String()); err != nil {
			return err
		}
	}
	if complete {
		w.WriteHeader(stdhttp.StatusNoContent) // an EventSource does not reconnect
		return nil
	}
	after, stream := log.After, &sse.Stream{}
	if log.Snapshot != nil {
		var err error
		if stream.First, after, err = log.Snapshot(); err != nil {
			return err
		}
	}
	stream.Reader = log.Follow(after)
	return s.Serve(w, r, stream)
}
