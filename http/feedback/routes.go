package feedback

import (
	"turnstone/http/route"
	"turnstone/protocol"
)

const (
	path    = "/conversations/{conversation_id}/feedback"
	applies = " It applies to the latest eligible response: the newest answer of the active branch that is `complete` or `incomplete`, among its " +
		"newest 200 messages. If `message_id` names another message, or if there is no such response, the request fails with 409 `conflict`; `current` " +
		"has the latest eligible response."
)

// Routes returns the routes of feedback.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Routes: []route.Route{
			route.Call("PUT", path, "putFeedback", "Rate the latest response", route.Writes, h.put).
				DescribedAs("Stores or replaces feedback on a response, as shown in `feedback` of its message." + applies).
				WithExample(route.Object{"rating": "up", "reasons": []string{"clear", "complete"}, "comment": "The steps are easy to follow."}).
				WithCodes(protocol.CodeConflict),
			route.Call("DELETE", path, "deleteFeedback", "Remove the rating of the latest response", route.Writes, h.delete).
				DescribedAs("Removes the feedback on a response, if there is any." + applies).
				WithCodes(protocol.CodeConflict),
		},
	}
}
