package http

import (
	"context"

	"turnstone/http/ready"
)

// CloseStreams ends the streams whose connections were taken over; see sse.Server.Close.
func (s *Server) CloseStreams(ctx context.Context) { s.sse.Close(ctx) }

// AllStreams returns the number of open streams.
func (s *Server) AllStreams() int { return s.streams.Slots.Open() }

// OpenStreams returns the number of connections that were taken over from the server.
func (s *Server) OpenStreams() int {
	return s.sse.TakenOver()
}

// Readiness checks all dependencies, at most once per second.
func (s *Server) Readiness(ctx context.Context) ready.Readiness { return s.readiness.Check(ctx) }
