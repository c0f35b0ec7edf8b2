package http

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
)

const (
	watchRecheck = 4 * time.Second // a notification may be lost; a revocation ends streams within five seconds
	watchRetry   = time.Second     // before listening again after the connection broke
	watchTimeout = 900 * time.Millisecond
)

// watches knows the sessions that have open streams here, and ends the streams with them.
type watches struct {
	mu   sync.Mutex
	open map[protocol.SessionID]*watched // guarded by mu
}

// watched are the open streams of a session.
type watched struct {
	account protocol.AccountID // the session's
	streams map[watcher]struct{}
}

// watcher is a stream that ends with its session. sessionEnded must not block.
type watcher interface{ sessionEnded() }

// watch is the stream of a handler.
type watch struct{ cancel context.CancelFunc }

func (w *watch) sessionEnded() { w.cancel() }

// untilRevoked gives a stream a context that ends with its session. The caller calls the function when the stream ends
// by itself.
func (s *Server) untilRevoked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel}
	caller := callerOf(ctx)
	s.watches.add(caller.AccountID, caller.SessionID, w)
	return ctx, func() {
		s.watches.remove(caller.SessionID, w)
		cancel()
	}
}

func (w *watches) add(account protocol.AccountID, session protocol.SessionID, one watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[protocol.SessionID]*watched{}
	}
	if w.open[session] == nil {
		w.open[session] = &watched{account: account, streams: map[watcher]struct{}{}}
	}
	w.open[session].streams[one] = struct{}{}
}

func (w *watches) remove(session protocol.SessionID, one watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.open[session]
	if open == nil { // it has ended
		return
	}
	delete(open.streams, one)
	if len(open.streams) == 0 {
		delete(w.open, session)
	}
}

// end closes every stream of a session.
func (w *watches) end(session protocol.SessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if open := w.open[session]; open != nil {
		for one := range open.streams {
			one.sessionEnded()
		}
	}
	delete(w.open, session)
}

// sessions are those with open streams, and whose they are.
func (w *watches) sessions() map[protocol.SessionID]protocol.AccountID {
	w.mu.Lock()
	defer w.mu.Unlock()
	owners := make(map[protocol.SessionID]protocol.AccountID, len(w.open))
	for session, open := range w.open {
		owners[session] = open.account
	}
	return owners
}

// Run does what a Server does beside requests, until ctx ends. Whoever makes one runs it, once. It ends streams whose
// session has ended: at once when another node says so, and by asking every four seconds in case that was not heard. And
// it writes what was counted for the audit.
func (s *Server) Run(ctx context.Context) {
	var listener sync.WaitGroup
	defer listener.Wait()
	listener.Go(func() { s.listen(ctx) })
	ticker, tally := time.NewTicker(watchRecheck), time.NewTicker(tallyEvery)
	defer ticker.Stop()
	defer tally.Stop()
	defer s.writeTallies(ctx)
	defer s.providers.asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.recheck(ctx)
		case <-tally.C:
			s.writeTallies(ctx)
		}
	}
}

func (s *Server) listen(ctx context.Context) {
	for {
		err := s.DB.ListenSessions(ctx, s.watches.end)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("listening for ended sessions broke off", zap.Error(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchRetry):
		}
	}
}

// recheck ends the streams of sessions that are not live any more. While the database cannot be asked nothing is ended:
// no revocation can have been acknowledged either.
func (s *Server) recheck(ctx context.Context) {
	owners := s.watches.sessions()
	if len(owners) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	live, err := s.DB.LiveSessions(ctx, owners, s.now())
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("sessions of open streams were not rechecked", zap.Error(err))
		}
		return
	}
	for _, session := range live {
		delete(owners, session)
	}
	for session := range owners { // of the sessions that have ended
		s.watches.end(session)
	}
}
