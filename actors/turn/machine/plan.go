package machine

import (
	"encoding/json"
	"slices"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// plan decides on a call with an input.
func (m *Machine) plan(name string, input json.RawMessage) policy.Plan {
	tool, known := m.tools[name]
	switch {
	case !known && m.off(name):
		return policy.Plan{Input: input, Failure: &protocol.ToolError{Code: protocol.ToolCallOff, Detail: "This tool is switched off for this conversation."}}
	case !known:
		return policy.Plan{Input: input, Failure: &protocol.ToolError{Code: protocol.ToolCallUnknown, Detail: "There is no tool with this name."}}
	case tool.Plan == nil:
		return policy.Plan{Input: input}
	}
	return tool.Plan(&policy.Call{Turn: m.spec.TurnID, Input: input, AskAll: m.spec.AskAll, Reading: m.reading, Grants: m.allGrants()})
}

// allGrants returns the grants of the conversation and those that were given in this turn.
func (m *Machine) allGrants() []turnlog.Grant {
	grants := append([]turnlog.Grant(nil), m.grants...)
	for _, a := range m.approvals {
		if !a.pending() && *a.Decision == protocol.ApproveForConversation {
			grants = append(grants, turnlog.Grant{Tool: a.ToolName, Resource: a.Scope.Resource, Definition: a.definition})
		}
	}
	return grants
}

// off reports whether the project or the request has switched a tool off.
func (m *Machine) off(name string) bool { return slices.Contains(m.spec.DisabledTools, name) }
