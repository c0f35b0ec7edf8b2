package tools

import (
	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of tools.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "tools", Description: "The tools that turns can use."}},
		Routes: []route.Route{
			route.Call("GET", "/tools", "listTools", "List the tools", route.Reads, h.list).
				DescribedAs("Lists the tools that turns of the account can use, or those of a conversation or a project. A tool that cannot be used is in the list with the reason.").
				WithCodes(protocol.CodeNotFound),
		},
	}
}
