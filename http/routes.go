package http

import "slices"

// table is every route of the service. An endpoint is a line here, a handler and a method of the store.
func (s *Server) table() []route {
	return slices.Concat(
		[]route{
			// System
			call("GET", "/health", "getHealth", "Tells that the process answers; asks no dependency.", Policy{Public: true, NoStore: true}, s.getHealth),
		},
		s.chatRoutes(),
	)
}
