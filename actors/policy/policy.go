package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// ReadMore is the name of the tool with which a model reads on in a result that was cut. The turn itself answers its calls.
const ReadMore = "read_more"

// Planner decides on a call of a tool before it runs. It is a pure function.
type Planner func(call *Call) Plan

// Call is a call that a model asks for.
type Call struct {
	Turn    protocol.TurnID
	Input   json.RawMessage
	AskAll  bool     // every call needs an approval
	Reading *Reading // what the model has read; nil: not known, so the worst is assumed
	Grants  []turnlog.Grant
}

// Plan is the decision on a call.
type Plan struct {
	Input   json.RawMessage     // valid and canonical, with defaults; as it was written if the call fails
	Failure *protocol.ToolError // why the call fails without running; nil: it does not
	// Ask is the request for an approval, without its identifier and its expiry; nil: the call runs at once.
	Ask        *protocol.ApprovalRequest
	Granted    bool   // the call would ask, but for a grant of the conversation
	Definition string // digest of the definition of the tool
}

// Tool is what the policy knows of a tool.
type Tool struct {
	Name, Title   string
	Definition    string // digest of its name, description, schema and effect
	Binding       string // identifier of the binding that it comes from; empty: built in
	Effect        protocol.ToolEffect
	Risk          protocol.Risk
	Reversibility protocol.Reversibility
	Own           bool // it writes only to the account's own artifacts and proposals
	AlwaysAsks    bool
}

// Description is what a call would do, for the user. Package toolbox derives it from a valid input.
type Description struct {
	Summary  string   // a sentence; empty: the title of the tool
	Resource string   // what the call acts on; empty: nothing in particular
	Effects  []string // what changes, each in a sentence
	Outward  string   // what the call sends out of the service; empty: nothing
	Address  bool     // Outward is a web address

	// Of this call; empty: those of the tool.
	Risk          protocol.Risk
	Reversibility protocol.Reversibility
}

// Decide decides on a call with a valid and canonical input.
func (t *Tool) Decide(call *Call, input json.RawMessage, about Description) Plan {
	plan := Plan{Input: input, Definition: t.Definition}
	if about.Outward == "" && t.Effect == protocol.EffectSend {
		about.Outward = string(input) // whatever it is, it leaves the service
	}
	reasons, marked := t.reasons(call, about)
	if len(reasons) == 0 {
		return plan
	}
	risk, reversibility := cmp.Or(about.Risk, t.Risk), cmp.Or(about.Reversibility, t.Reversibility)
	if call.Reading == nil || call.Reading.Untrusted {
		risk = risk.Raised()
	}
	if len(marked) > 0 {
		risk = risk.AtLeast(protocol.RiskHigh)
	}
	// A call that the user cannot approve in advance now is not covered by an approval of before either.
	granting := !t.AlwaysAsks && t.Effect != protocol.EffectDestructive && risk != protocol.RiskCritical && len(marked) == 0 && !call.AskAll
	grant := turnlog.Grant{Tool: t.Name, Resource: about.Resource, Definition: t.Definition}
	if granting && call.Reading != nil && slices.Contains(call.Grants, grant) {
		plan.Granted = true
		return plan
	}
	plan.Ask = &protocol.ApprovalRequest{
		Action: t.Title, Summary: foreign.Clean(about.Summary), Risk: risk, Reversibility: reversibility, Effects: cleaned(about.Effects),
		Scope: protocol.ApprovalScope{Resource: about.Resource}, Reasons: reasons, Marked: marked, Input: input,
		InputDigest: t.digest(call.Turn, input), Options: []protocol.Decision{protocol.ApproveOnce},
	}
	if plan.Ask.Summary == "" {
		plan.Ask.Summary = t.Title + "."
	}
	if granting {
		plan.Ask.Options = append(plan.Ask.Options, protocol.ApproveForConversation)
	}
	if len(input) <= maxEditable {
		plan.Ask.Options = append(plan.Ask.Options, protocol.ApproveWithEdits)
	}
	plan.Ask.Options = append(plan.Ask.Options, protocol.RejectCall)
	return plan
}

// cleaned returns texts without characters that are not seen, or that change the order in which others are. The input of the
// approval has them.
func cleaned(texts []string) []string {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = foreign.Clean(text)
	}
	return clean
}

// maxEditable is the size of an input, in bytes, up to which it can be edited: the edited one has to fit into a request.
const maxEditable = 64 << 10

// reasons returns why a call needs an approval, and the parts of its input that should not leave the service unnoticed. Without
// reasons, the call runs at once.
func (t *Tool) reasons(call *Call, about Description) (reasons, marked []string) {
	switch t.Effect {
	case protocol.EffectRead:
	case protocol.EffectWrite:
		if !t.Own {
			reasons = append(reasons, "The call changes something.")
		}
	case protocol.EffectSend:
		reasons = append(reasons, "The call sends something that others may see.")
	case protocol.EffectDestructive:
		reasons = append(reasons, "The call may delete something that cannot be brought back.")
	}
	if t.AlwaysAsks {
		reasons = append(reasons, "This tool always needs your approval.")
	}
	if call.AskAll {
		reasons = append(reasons, "The project asks before every call of a tool.")
	}
	if about.Outward != "" {
		why, parts := call.Reading.leaks(about.Outward, about.Address)
		reasons, marked = append(reasons, why...), parts
	}
	if len(reasons) > 0 && call.Reading != nil && call.Reading.Untrusted {
		reasons = append(reasons, "The answer was written after reading text of strangers, which may have asked for this.")
	}
	return reasons, marked
}

// digest returns the digest of exactly this call: of the tool, its definition, its binding, its input and its turn.
func (t *Tool) digest(turn protocol.TurnID, input json.RawMessage) string {
	text, err := json.Marshal([]any{t.Name, t.Definition, t.Binding, string(input), turn.String()})
	if err != nil {
		panic("policy: a digest cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
