package usage

import (
	stdhttp "net/http"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of usage records.
func (h *Handlers) Routes() route.Table {
	const path = "/conversations/{conversation_id}/usage"
	return route.Table{
		Tags:   []route.Tag{{Name: "usage", Description: "Usage of the account."}},
		Params: []route.Param{route.Identifier[protocol.UsageID]("usage_id", nil)},
		Routes: []route.Route{
			route.Call("GET", path, "listUsage", "List the usage of a conversation", route.Lists, h.listUsage).
				DescribedAs("Lists the usage records of a conversation, newest first: those of the server, for turns and generated titles, and those that clients have recorded."),
			route.Call("POST", path, "recordUsage", "Record usage", route.Creates, h.recordUsage).
				DescribedAs("Stores usage that a client reports. Such records are listed, but never count towards limits or sums.").
				WithExample(route.Object{"kind": "characters", "quantity": 120, "unit": "character"}).
				WithStatus(stdhttp.StatusCreated),
			route.Call("GET", path+"/{usage_id}", "getUsage", "Get a usage record", route.Reads, h.getUsage).
				DescribedAs("Returns one usage record of a conversation."),
			route.Call("GET", "/usage", "sumUsage", "Sum the usage of the account", route.Lists, h.sumUsage).
				DescribedAs("Sums the usage records of the server in a period of at most 366 UTC days, grouped by day, profile or conversation, in the " +
					"order of the keys. A page can have fewer groups than `limit`, or none, while `has_more` is true. " +
					"`budget` is the state of the account's budget of model tokens, whatever the period."),
		},
	}
}
