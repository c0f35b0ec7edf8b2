package sse

import (
	"sync"

	"turnstone/protocol"
)

// sessionStreams has the sessions with open streams on this node, and ends the streams of a session with it.
type sessionStreams struct {
	mu   sync.Mutex
	open map[protocol.SessionID]*streamsOfSession // guarded by mu
}

// streamsOfSession are the open streams of a session.
type streamsOfSession struct {
	account protocol.AccountID // of the session
	streams map[sessionStream]struct{}
}

// sessionStream is a stream that ends with its session. sessionEnded must not block.
type sessionStream interface{ sessionEnded() }

func (w *sessionStreams) add(account protocol.AccountID, session protocol.SessionID, one sessionStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[protocol.SessionID]*streamsOfSession{}
	}
	if w.open[session] == nil {
		w.open[session] = &streamsOfSession{account: account, streams: map[sessionStream]struct{}{}}
	}
	w.open[session].streams[one] = struct{}{}
}

func (w *sessionStreams) remove(session protocol.SessionID, one sessionStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.open[session]
	if open == nil { // the session has ended
		return
	}
	delete(open.streams, one)
	if len(open.streams) == 0 {
		delete(w.open, session)
	}
}

// end ends every stream of a session.
func (w *sessionStreams) end(session protocol.SessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if open := w.open[session]; open != nil {
		for one := range open.streams {
			one.sessionEnded()
		}
	}
	delete(w.open, session)
}

// all returns the sessions with open streams, and the account of each.
func (w *sessionStreams) all() map[protocol.SessionID]protocol.AccountID {
	w.mu.Lock()
	defer w.mu.Unlock()
	owners := make(map[protocol.SessionID]protocol.AccountID, len(w.open))
	for session, open := range w.open {
		owners[session] = open.account
	}
	return owners
}

// watched is a sessionStream that calls a function.
type watched struct{ end func() }

func (w *watched) sessionEnded() { w.end() }

// Watch calls end when a session ends, as for the streams of the session, until stop is called. end must not block. It
// is for long responses that are not streams of events.
func (s *Server) Watch(account protocol.AccountID, session protocol.SessionID, end func()) (stop func()) {
	one := &watched{end}
	s.sessions.add(account, session, one)
	return func() { s.sessions.remove(session, one) }
}
