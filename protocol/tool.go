package protocol

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
