package http

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/ready"
	"turnstone/http/shares"
)

const (
	watchRecheck = 4 * time.Second // in case a notification is lost: a revocation ends streams within five seconds
	watchRetry   = time.Second     // before listening again after the connection failed
	watchTimeout = 900 * time.Millisecond
)

// Run does the background work of a Server until ctx ends. The caller of New must call it, once. It ends the streams
// whose session has ended: at once when another node notifies it, and by a query every four seconds in case a
// notification was lost. At the same interval, it releases idempotency keys whose requests failed while the database was away.
// It also feeds the streams of GET /events, and writes the counts of audit events and of opened shares.
func (s *Server) Run(ctx context.Context) {
	var listener sync.WaitGroup
	defer listener.Wait()
	listener.Go(func() { s.listen(ctx) })
	listener.Go(func() { s.hub.Run(ctx) })
	ticker, tally, opens := time.NewTicker(watchRecheck), time.NewTicker(auth.TallyInterval), time.NewTicker(shares.OpensInterval)
	defer ticker.Stop()
	defer tally.Stop()
	defer opens.Stop()
	defer s.shares.WriteOpens(ctx)
	defer s.auth.WriteTallies(ctx)
	defer s.auth.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.recheck(ctx)
			s.releaseKeys(ctx)
		case <-tally.C:
			s.auth.WriteTallies(ctx)
		case <-opens.C:
			s.shares.WriteOpens(ctx)
		}
	}
}

// releaseKeys releases idempotency keys that could not be released when their requests failed.
func (s *Server) releaseKeys(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, watchTimeout) // the next recheck waits for it
	defer cancel()
	if err := s.replays.ReleaseLeft(bounded); err != nil && ctx.Err() == nil {
		s.log.Warn("idempotency keys could not be released", zap.Error(err))
	}
}

func (s *Server) listen(ctx context.Context) {
	for {
		err := s.Sessions.ListenSessions(ctx, s.sse.EndSession)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("listening for ended sessions failed", zap.Error(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchRetry):
		}
	}
}

// recheck ends the streams of sessions that are no longer live. While the database is unavailable, it ends no stream:
// no revocation is acknowledged in that time either.
func (s *Server) recheck(ctx context.Context) {
	owners := s.sse.Sessions()
	if len(owners) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	live, err := s.Sessions.LiveSessions(ctx, owners, s.now())
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the sessions of open streams could not be rechecked", zap.Error(err))
		}
		return
	}
	for _, session := range live {
		delete(owners, session)
	}
	for session := range owners { // those that are not live
		s.sse.EndSession(session)
	}
}

// CloseStreams ends the streams whose connections were taken over; see sse.Server.Close.
func (s *Server) CloseStreams(ctx context.Context) { s.sse.Close(ctx) }

// AllStreams returns the number of open streams.
func (s *Server) AllStreams() int { return s.streams.Slots.Open() }

// OpenStreams returns the number of connections that were taken over from the server.
func (s *Server) OpenStreams() int { return s.sse.TakenOver() }

// Readiness checks all dependencies, at most once per second.
func (s *Server) Readiness(ctx context.Context) ready.Readiness { return s.readiness.Check(ctx) }
