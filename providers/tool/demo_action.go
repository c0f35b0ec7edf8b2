package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

//go:embed demo_action.md
var demoActionDescription string

// DemoAction shows what an approval looks like: it asks for one, and changes nothing. A service has it only with the scripted
// model.
type DemoAction struct{}

type demoInput struct {
	Note          string                 `json:"note"`
	Recipient     string                 `json:"recipient"`
	Risk          protocol.Risk          `json:"risk"`
	Reversibility protocol.Reversibility `json:"reversibility"`
}

// Spec implements toolbox.Tool.
func (DemoAction) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "demo_action", Kind: "connector", Title: "Demonstrate an action", Description: demoActionDescription,
		Effect: protocol.EffectSend, Risk: protocol.RiskMedium, Reversibility: protocol.Compensable, Timeout: 5 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"note":{"type":"string","minLength":1,"maxLength":2000,"description":"What would be sent."},` +
			`"recipient":{"type":"string","maxLength":200,"default":"nobody","description":"Who would get it."},` +
			`"risk":{"enum":["low","medium","high","critical"],"default":"medium"},` +
			`"reversibility":{"enum":["reversible","compensable","irreversible"],"default":"compensable"}},` +
			`"required":["note"],"additionalProperties":false}`),
		Describe: func(input json.RawMessage) policy.Description {
			in := readDemo(input)
			return policy.Description{
				Summary:  fmt.Sprintf("Sends a note of %d characters to %s. This is a demonstration: nothing is sent.", len([]rune(in.Note)), in.Recipient),
				Resource: in.Recipient, Effects: []string{in.Recipient + " would get the note."}, Risk: in.Risk, Reversibility: in.Reversibility,
			}
		},
	}
}

func readDemo(input json.RawMessage) (in demoInput) {
	_ = json.Unmarshal(input, &in) // it is valid
	return in
}

// Run implements toolbox.Tool.
func (DemoAction) Run(_ context.Context, call *toolbox.Call) (toolbox.Result, error) {
	in := readDemo(call.Input)
	if strings.TrimSpace(in.Note) == "" {
		return toolbox.Result{}, &toolbox.Failure{Code: protocol.ToolCallInvalid, Detail: "A note is needed."}
	}
	return toolbox.Result{Output: "The action was approved and would have been done now. This is a demonstration, so nothing was sent."}, nil
}
