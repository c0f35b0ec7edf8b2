package protocol

import "slices"

// ToolEffect is what a call of a tool can change.
type ToolEffect string

// The effects: nothing; something of the account in this service; something that leaves the service and others may see; the
// loss of something that cannot be brought back.
const (
	EffectRead        ToolEffect = "read"
	EffectWrite       ToolEffect = "write"
	EffectSend        ToolEffect = "send"
	EffectDestructive ToolEffect = "destructive"
)

// Risk is how much harm a call can do.
type Risk string

// The risks, in ascending order.
const (
	RiskLow      Risk = "low"
	RiskMedium   Risk = "medium"
	RiskHigh     Risk = "high"
	RiskCritical Risk = "critical"
)

// risks lists every risk in ascending order.
var risks = []Risk{RiskLow, RiskMedium, RiskHigh, RiskCritical}

// Raised returns the next higher risk; critical stays.
func (r Risk) Raised() Risk {
	for i, risk := range risks[:len(risks)-1] {
		if risk == r {
			return risks[i+1]
		}
	}
	return RiskCritical
}

// AtLeast returns the higher one of two risks.
func (r Risk) AtLeast(other Risk) Risk {
	if slices.Index(risks, other) > slices.Index(risks, r) {
		return other
	}
	return r
}

// Reversibility is whether the effect of a call can be undone.
type Reversibility string

// An effect can be undone completely, can be made up for by another action, or stays.
const (
	Reversible   Reversibility = "reversible"
	Compensable  Reversibility = "compensable"
	Irreversible Reversibility = "irreversible"
)

// ToolOutcome is what the result of a tool call is.
type ToolOutcome string

// The outcomes: an output; an output without any finding; an error; a refusal by the user, or an approval that expired; and a
// call that may have had its effect.
const (
	ResultOK      ToolOutcome = "ok"
	ResultEmpty   ToolOutcome = "empty"
	ResultFailed  ToolOutcome = "failed"
	ResultDenied  ToolOutcome = "denied"
	ResultUnknown ToolOutcome = "unknown"
)

// ToolErrorCode is the reason why a tool call has no output. A tool may report other codes than those below.
type ToolErrorCode string

// The reasons that the service itself reports.
const (
	ToolCallCancelled  ToolErrorCode = "cancelled"  // the turn ended first
	ToolCallTimeout    ToolErrorCode = "timeout"    // the call took too long
	ToolCallFailed     ToolErrorCode = "tool_error" // the tool failed without a reason of its own
	ToolCallUnknown    ToolErrorCode = "unknown_tool"
	ToolOutcomeMissing ToolErrorCode = "outcome_unknown" // the call may have had its effect
	ToolCallInvalid    ToolErrorCode = "invalid_input"   // the input does not conform to the schema of the tool
	ToolCallOff        ToolErrorCode = "tool_off"        // the user or the project does not let the turn use the tool
	ToolCallDenied     ToolErrorCode = "denied"          // the user rejected the call or does not consent, or nobody decided in time
	ToolCallRepeated   ToolErrorCode = "repeated_call"   // the same call was made too often
	ToolCallOverLimit  ToolErrorCode = "tool_limit"      // the turn has used all that it may
)

// ToolError is the reason why a tool call has no output.
type ToolError struct {
	Code   ToolErrorCode `json:"code"`
	Detail string        `json:"detail"`
}

// ToolInfo is a tool in the list of those that a conversation or a project can use.
type ToolInfo struct {
	Name          string        `json:"name"`
	Kind          string        `json:"kind" enum:"web_search,account_search,files,research,location,project,connector,memory,compute,artifact"`
	Title         string        `json:"title"`
	Description   string        `json:"description" doc:"What the model is told about the tool."`
	Effect        ToolEffect    `json:"effect" enum:"read,write,send,destructive"`
	Risk          Risk          `json:"risk" enum:"low,medium,high,critical"`
	Reversibility Reversibility `json:"reversibility" enum:"reversible,compensable,irreversible"`
	Source        string        `json:"source" doc:"builtin, or the identifier of the binding that the tool comes from."`
	Available     bool          `json:"available"`
	Reason        *string       `json:"reason" doc:"Why the tool is not available; null if it is."`
}

// ToolChoice chooses the tools that a turn may use.
type ToolChoice struct {
	WebSearch  *bool    `json:"web_search,omitempty" doc:"false: the turn neither searches the web nor reads pages of it. Default: it may."`
	Connectors []string `json:"connectors,omitempty" maxItems:"50" doc:"The bindings of the project that the turn may use. Default: all."`
	Off        []string `json:"off,omitempty" maxItems:"100" doc:"Names of tools that the turn may not use."`
}

// webTools are the tools that web_search of a ToolChoice switches.
var webTools = []string{"web_search", "read_page"}

// Disabled returns the names of the tools that are off, sorted.
func (c *ToolChoice) Disabled() []string {
	if c == nil {
		return nil
	}
	off := slices.Clone(c.Off)
	if c.WebSearch != nil && !*c.WebSearch {
		off = append(off, webTools...)
	}
	slices.Sort(off)
	return slices.Compact(off)
}

// ToolSwitches is a ToolChoice in the form in which it is stored, and in which earlier versions published it: tools by name,
// with false for those that are off.
type ToolSwitches map[string]bool

// Switches returns the stored form of a choice.
func (c *ToolChoice) Switches() ToolSwitches {
	switches := ToolSwitches{}
	for _, name := range c.Disabled() {
		switches[name] = false
	}
	return switches
}

// Choice returns the choice of the stored form.
func (s ToolSwitches) Choice() ToolChoice {
	c := ToolChoice{}
	for name, on := range s {
		if !on {
			c.Off = append(c.Off, name)
		}
	}
	slices.Sort(c.Off)
	if !slices.ContainsFunc(webTools, func(name string) bool { return !slices.Contains(c.Off, name) }) {
		c.WebSearch = new(bool)
		c.Off = slices.DeleteFunc(c.Off, func(name string) bool { return slices.Contains(webTools, name) })
	}
	return c
}
