package approvals

import (
	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of approvals.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags:   []route.Tag{{Name: "approvals", Description: "Tool calls that wait for a decision of the user, or were decided."}},
		Params: []route.Param{route.Identifier[protocol.ApprovalID]("approval_id", nil)},
		Routes: []route.Route{
			route.Call("GET", "/approvals", "listApprovals", "List approvals", route.Lists, h.list).
				DescribedAs("Lists the tool calls of all conversations that wait for a decision, or were decided, newest first. Decide with POST /chat/steering."),
			route.Call("GET", "/approvals/{approval_id}", "getApproval", "Get an approval", route.Reads, h.get).
				DescribedAs("Returns one approval, with the exact input of its call. A pending approval whose time has passed is `expired`."),
		},
	}
}
