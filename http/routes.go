package http

import (
	"slices"

	"turnstone/http/route"
)

// table returns every route of the service. A new endpoint needs a line in the routes of its resource, a handler and a
// method of the store.
func (s *Server) table() []route.Route {
	return slices.Concat(
		s.system.Routes(),
		s.accounts.Routes(),
		s.chat.Routes(),
		s.conversations.Routes(),
		s.usage.Routes(),
		s.portability.Routes(),
		s.projects.Routes(),
		s.feedback.Routes(),
		s.search.Routes(),
		s.feed.Routes(),
		s.shares.Routes(),
		s.files.Routes(),
	)
}
