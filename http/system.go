package http

import "context"

type health struct {
	Status string `json:"status" enum:"ok"`
}

func (s *Server) getHealth(context.Context, *nothing) (*body[health], error) {
	return ok(health{Status: "ok"}), nil
}
